package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func slice(name, version string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "n", Name: name, ResourceVersion: version, Generation: 7},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
}

func serverWith(slices ...*discoveryv1.EndpointSlice) *server {
	return newServer(World{EndpointSlices: slices})
}

func TestCreateGivesNamesAndVersions(t *testing.T) {
	s := serverWith(slice("a-gen02", "5"))
	unnamed := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}}
	got, err := s.create(&s.slices, "n", unnamed)
	if err != nil || got.GetName() != "a-gen01" || got.GetUID() != "uid-a-gen01" ||
		got.GetNamespace() != "n" || got.GetResourceVersion() != "900001" || got.GetGeneration() != 1 {
		t.Errorf("%v %+v", err, got)
	}
	if _, err := s.create(&s.slices, "n", unnamed); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a taken name: %v", err)
	}
	if w := s.writes[1]; w.AssignedName != "" || w.Failed != `endpointslices.discovery.k8s.io "a-gen02" already exists` {
		t.Errorf("recorded %+v", w)
	}
}

func TestUpdateChecksAndCountsVersions(t *testing.T) {
	s := serverWith(slice("a", "5"))
	if _, err := s.update(&s.slices, "n", slice("b", "")); !apierrors.IsNotFound(err) {
		t.Errorf("an absent object: %v", err)
	}
	if _, err := s.update(&s.slices, "n", slice("a", "4")); !apierrors.IsConflict(err) {
		t.Errorf("an old version: %v", err)
	}
	changed := slice("a", "5")
	for _, step := range []struct {
		name    string
		change  func()
		version string
		gen     int64
	}{
		{"nothing", func() { changed.Generation = 99 }, "5", 7},
		{"annotations", func() { changed.Annotations = map[string]string{"k": "v"} }, "900001", 7},
		{"labels", func() { changed.Labels = map[string]string{"k": "v"} }, "900002", 8},
		{"endpoints", func() { changed.Endpoints = []discoveryv1.Endpoint{{}} }, "900003", 9},
		{"ports", func() { changed.Ports = []discoveryv1.EndpointPort{{}} }, "900004", 10},
		{"address type", func() { changed.AddressType = discoveryv1.AddressTypeIPv6 }, "900005", 11},
	} {
		step.change()
		changed.ResourceVersion = ""
		got, err := s.update(&s.slices, "n", changed)
		if err != nil || got.GetResourceVersion() != step.version || got.GetGeneration() != step.gen {
			t.Errorf("%s changed: %v %+v", step.name, err, got)
		}
	}
}

func TestFinalizersDelayADelete(t *testing.T) {
	held := slice("a", "5")
	held.Finalizers = []string{"f"}
	s := serverWith(held, slice("b", "6"))
	for _, name := range []string{"a", "b"} {
		if err := s.delete(&s.slices, "n", name); err != nil {
			t.Fatal(err)
		}
	}
	marked, found := s.slices.storedBy["n/a"]
	if !found || marked.GetDeletionTimestamp() == nil {
		t.Errorf("with a finalizer: %+v", marked)
	}
	if err := s.delete(&s.slices, "n", "b"); !apierrors.IsNotFound(err) {
		t.Errorf("without: %v", err)
	}
	if _, err := s.update(&s.slices, "n", slice("a", "")); err != nil {
		t.Fatal(err)
	}
	if _, found := s.slices.storedBy["n/a"]; found {
		t.Error("still there when its last finalizer was removed")
	}
}

func TestInjectedRefusals(t *testing.T) {
	for name, text := range map[string]string{
		"internal":       `Internal error occurred: boom`,
		"not-found":      `endpointslices.discovery.k8s.io "a" not found`,
		"already-exists": `endpointslices.discovery.k8s.io "a" already exists`,
		"conflict": `Operation cannot be fulfilled on endpointslices.discovery.k8s.io "a": ` +
			`the object has been modified; please apply your changes to the latest version and try again`,
		"forbidden": `endpointslices.discovery.k8s.io "a" is forbidden: denied`,
		"namespace-terminating": `endpointslices.discovery.k8s.io "a" is forbidden: ` +
			`unable to create new content in namespace n because it is being terminated`,
	} {
		s := serverWith(slice("a", "5"))
		s.inject = &Inject{Verb: "update", Resource: "endpointslices", Error: name}
		_, err := s.update(&s.slices, "n", slice("a", ""))
		if err == nil || err.Error() != text || s.writes[0].Failed != text {
			t.Errorf("%s: %v", name, err)
		}
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) != (name == "namespace-terminating") {
			t.Errorf("%s: wrong cause", name)
		}
		if err := s.delete(&s.slices, "n", "a"); err != nil {
			t.Errorf("%s: another verb was refused: %v", name, err)
		}
	}
}
