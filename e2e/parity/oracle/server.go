package main

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// object is what all Kubernetes objects here have in common.
type object interface {
	runtime.Object
	metav1.Object
}

var noKind = schema.GroupVersionKind{}

// Versions start far above those in worlds, so that one look tells who wrote.
const firstVersion = 900001

// A delete that only marks an object needs some time to mark it with.
var deletionTime = metav1.NewTime(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))

// server stands in for the API server: it keeps the two kinds the controllers
// write, and records every write as it was sent. Stored objects are never
// changed in place. See "What the stand-in API server does" in the vectors' README.
type server struct {
	slices    collection
	endpoints collection
	nNames    int
	nVersions int
	inject    *Inject // nil when nothing is refused
	writes    []Write
}

type collection struct {
	resource  schema.GroupResource
	kind      schema.GroupVersionKind
	storedBy  map[string]object // by namespace/name
	countsGen bool              // EndpointSlices have a generation, Endpoints do not
}

func newServer(world World) *server {
	return &server{
		slices: collection{
			resource:  discoveryv1.Resource("endpointslices"),
			kind:      discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
			storedBy:  byKey(world.EndpointSlices),
			countsGen: true,
		},
		endpoints: collection{
			resource: corev1.Resource("endpoints"),
			kind:     corev1.SchemeGroupVersion.WithKind("Endpoints"),
			storedBy: byKey(world.Endpoints),
		},
	}
}

func byKey[T object](objects []T) map[string]object {
	stored := make(map[string]object, len(objects))
	for _, o := range objects {
		stored[keyOf(o)] = o
	}
	return stored
}

func (s *server) create(c *collection, namespace string, sent object) (object, error) {
	write := s.record(c, "create", namespace, sent.GetName(), sent)
	if sent.GetName() == "" {
		write.GenerateName = sent.GetGenerateName()
	}
	if err := s.inject.refuses(c, "create", namespace, sent.GetName()); err != nil {
		return nil, write.fails(err)
	}
	created := sent.DeepCopyObject().(object)
	created.SetNamespace(namespace)
	if created.GetName() == "" {
		s.nNames++
		created.SetName(fmt.Sprintf("%sgen%02d", created.GetGenerateName(), s.nNames))
	}
	key := keyOf(created)
	if _, taken := c.storedBy[key]; taken {
		return nil, write.fails(apierrors.NewAlreadyExists(c.resource, created.GetName()))
	}
	if sent.GetName() == "" {
		write.AssignedName = created.GetName()
	}
	created.SetUID(types.UID("uid-" + created.GetName()))
	created.SetResourceVersion(s.nextVersion())
	if c.countsGen {
		created.SetGeneration(1)
	}
	c.storedBy[key] = created
	return created.DeepCopyObject().(object), nil
}

func (s *server) update(c *collection, namespace string, sent object) (object, error) {
	name := sent.GetName()
	write := s.record(c, "update", namespace, name, sent)
	if err := s.inject.refuses(c, "update", namespace, name); err != nil {
		return nil, write.fails(err)
	}
	key := namespace + "/" + name
	stored, found := c.storedBy[key]
	if !found {
		return nil, write.fails(apierrors.NewNotFound(c.resource, name))
	}
	if v := sent.GetResourceVersion(); v != "" && v != stored.GetResourceVersion() {
		return nil, write.fails(conflict(c, name))
	}
	updated := sent.DeepCopyObject().(object)
	updated.SetNamespace(namespace)
	updated.SetUID(stored.GetUID())
	updated.SetResourceVersion(stored.GetResourceVersion())
	updated.SetCreationTimestamp(stored.GetCreationTimestamp())
	updated.SetDeletionTimestamp(stored.GetDeletionTimestamp())
	updated.SetGeneration(stored.GetGeneration())
	if equality.Semantic.DeepEqual(stored, updated) {
		return updated, nil
	}
	if c.countsGen && contentDiffers(stored, updated) {
		updated.SetGeneration(stored.GetGeneration() + 1)
	}
	updated.SetResourceVersion(s.nextVersion())
	c.storedBy[key] = updated
	if updated.GetDeletionTimestamp() != nil && len(updated.GetFinalizers()) == 0 {
		delete(c.storedBy, key)
	}
	return updated.DeepCopyObject().(object), nil
}

func (s *server) delete(c *collection, namespace, name string) error {
	write := s.record(c, "delete", namespace, name, nil)
	if err := s.inject.refuses(c, "delete", namespace, name); err != nil {
		return write.fails(err)
	}
	key := namespace + "/" + name
	stored, found := c.storedBy[key]
	if !found {
		return write.fails(apierrors.NewNotFound(c.resource, name))
	}
	if len(stored.GetFinalizers()) == 0 {
		delete(c.storedBy, key)
		return nil
	}
	if stored.GetDeletionTimestamp() == nil {
		marked := stored.DeepCopyObject().(object)
		marked.SetDeletionTimestamp(&deletionTime)
		marked.SetResourceVersion(s.nextVersion())
		c.storedBy[key] = marked
	}
	return nil
}

// contentDiffers is the rule by which an EndpointSlice gets a new generation.
func contentDiffers(stored, updated object) bool {
	was, is := stored.(*discoveryv1.EndpointSlice), updated.(*discoveryv1.EndpointSlice)
	return was.AddressType != is.AddressType ||
		!equality.Semantic.DeepEqual(was.Endpoints, is.Endpoints) ||
		!equality.Semantic.DeepEqual(was.Ports, is.Ports) ||
		!equality.Semantic.DeepEqual(was.Labels, is.Labels)
}

func (s *server) nextVersion() string {
	version := firstVersion + s.nVersions
	s.nVersions++
	return strconv.Itoa(version)
}

// record notes a write before it is tried. The object is put into JSON at once,
// because upstream may go on changing what it sent.
func (s *server) record(c *collection, verb, namespace, name string, sent object) *Write {
	s.writes = append(s.writes, Write{
		Verb: verb, Resource: c.resource.Resource, Namespace: namespace, Name: name,
		Object: objectJSON(sent, c.kind),
	})
	return &s.writes[len(s.writes)-1]
}

// sorted lists what is stored, by namespace and name.
func (c *collection) sorted() []object {
	keys := make([]string, 0, len(c.storedBy))
	for key := range c.storedBy {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	objects := make([]object, len(keys))
	for i, key := range keys {
		objects[i] = c.storedBy[key]
	}
	return objects
}

func conflict(c *collection, name string) error {
	return apierrors.NewConflict(c.resource, name, errors.New(
		"the object has been modified; please apply your changes to the latest version and try again"))
}
