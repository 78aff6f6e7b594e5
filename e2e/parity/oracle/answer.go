package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Answer is one line of output: what upstream did, or why it could not be asked.
type Answer struct {
	ID     string      `json:"id"`
	Fault  string      `json:"fault,omitempty"`
	Expect *Expect     `json:"expect,omitempty"`
	Then   *ThenAnswer `json:"then,omitempty"`
}

type ThenAnswer struct {
	Expect Expect `json:"expect"`
}

// Expect is the `expect` of a vector. A `then` has no stale sync, and in the
// recorded vectors no second sync either.
type Expect struct {
	Sync
	End              End      `json:"end"`
	StaleSync        *Sync    `json:"staleSync,omitempty"`
	SecondSyncWrites *[]Write `json:"secondSyncWrites,omitempty"`
	SecondSyncEvents []Notice `json:"secondSyncEvents,omitempty"`
	SecondSyncError  *string  `json:"secondSyncError,omitempty"`
	SecondSyncVaries bool     `json:"secondSyncVaries,omitempty"`
	Nondeterministic bool     `json:"nondeterministic,omitempty"`
	Variants         int      `json:"variants,omitempty"`
	Stable           []string `json:"stable,omitempty"`
}

// Sync is what one call of upstream's sync function did.
type Sync struct {
	Writes []Write  `json:"writes"`
	Events []Notice `json:"events"`
	Error  *string  `json:"error"`
	Errors []string `json:"errors,omitempty"`
}

type Write struct {
	Verb         string          `json:"verb"`
	Resource     string          `json:"resource"`
	Namespace    string          `json:"namespace"`
	Name         string          `json:"name,omitempty"`
	GenerateName string          `json:"generateName,omitempty"`
	AssignedName string          `json:"assignedName,omitempty"`
	Failed       string          `json:"failed,omitempty"`
	Object       json.RawMessage `json:"object"`
}

func (w *Write) fails(err error) error {
	w.Failed = err.Error()
	return err
}

// Notice is a Kubernetes Event.
type Notice struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	On      string `json:"on"`
}

type End struct {
	EndpointSlices []json.RawMessage `json:"endpointslices"`
	Endpoints      json.RawMessage   `json:"endpoints"`
}

// notices is an event recorder that keeps what it is told.
type notices struct {
	seen []Notice
}

func (n *notices) Event(about runtime.Object, kind, reason, message string) {
	n.seen = append(n.seen, Notice{kind, reason, message, nameOf(about)})
}

func (n *notices) Eventf(about runtime.Object, kind, reason, format string, args ...any) {
	n.Event(about, kind, reason, fmt.Sprintf(format, args...))
}

func (n *notices) AnnotatedEventf(
	about runtime.Object, _ map[string]string, kind, reason, format string, args ...any,
) {
	n.Eventf(about, kind, reason, format, args...)
}

func nameOf(about runtime.Object) string {
	switch o := about.(type) {
	case *corev1.Service:
		return "Service " + keyOf(o)
	case *corev1.Endpoints:
		return "Endpoints " + keyOf(o)
	}
	return fmt.Sprintf("%T", about)
}

// leaves are the distinct messages of an error that may be several joined ones.
func leaves(err error) []string {
	joined, several := err.(utilerrors.Aggregate)
	if !several {
		return []string{err.Error()}
	}
	distinct := map[string]bool{}
	for _, leaf := range utilerrors.Flatten(joined).Errors() {
		distinct[leaf.Error()] = true
	}
	messages := make([]string, 0, len(distinct))
	for message := range distinct {
		messages = append(messages, message)
	}
	sort.Strings(messages)
	return messages
}

func (s *server) end(namespace, name string) End {
	end := End{EndpointSlices: []json.RawMessage{}, Endpoints: null}
	for _, o := range s.slices.sorted() {
		if o.GetNamespace() == namespace && o.GetLabels()[discoveryv1.LabelServiceName] == name {
			end.EndpointSlices = append(end.EndpointSlices, objectJSON(o, s.slices.kind))
		}
	}
	if o, found := s.endpoints.storedBy[namespace+"/"+name]; found {
		end.Endpoints = objectJSON(o, s.endpoints.kind)
	}
	return end
}

var null = json.RawMessage("null")

// objectJSON writes an object with its kind and without nulls and empty
// structs, but with pointers to empty values ("hints":{}): those matter.
func objectJSON(o object, kind schema.GroupVersionKind) json.RawMessage {
	if o == nil {
		return null
	}
	kindly := o.DeepCopyObject()
	kindly.GetObjectKind().SetGroupVersionKind(kind)
	text := compact(kindly)
	// Conditions are the only struct of these kinds that is not a pointer and is
	// written when empty. Most objects have neither, and are spared the detour.
	if !bytes.Contains(text, []byte("null")) && !bytes.Contains(text, []byte(`"conditions":{}`)) {
		return text
	}
	var loose map[string]any
	if err := json.Unmarshal(text, &loose); err != nil {
		panic(err) // It was written two lines above.
	}
	dropNothings(loose)
	return compact(loose)
}

func dropNothings(at any) {
	switch v := at.(type) {
	case map[string]any:
		for name, value := range v {
			empty, isStruct := value.(map[string]any)
			if value == nil || (name == "conditions" && isStruct && len(empty) == 0) {
				delete(v, name)
				continue
			}
			dropNothings(value)
		}
	case []any:
		for _, value := range v {
			dropNothings(value)
		}
	}
}

// compact is JSON without HTML escapes, so that `<nil>` stays readable.
func compact(value any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // Only our own plain types come here.
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
