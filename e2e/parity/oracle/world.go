package main

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/json"
)

// Case is one line of input: a world, the key to sync in it, and how.
// Fields a recorded vector has beyond these (seed, tags, expect) are ignored,
// so that a vector can be asked again as it is.
type Case struct {
	ID         string   `json:"id"`
	Controller string   `json:"controller"`
	Settings   Settings `json:"settings"`
	Key        string   `json:"key"`
	World      World    `json:"world"`
	Then       *Then    `json:"then"`
	Runs       int      `json:"runs"`
}

type Settings struct {
	MaxEndpointsPerSlice  int32   `json:"maxEndpointsPerSlice"`
	MaxEndpointsPerSubset int32   `json:"maxEndpointsPerSubset"`
	Inject                *Inject `json:"inject"`
	StaleSync             bool    `json:"staleSync"`
}

// Inject names the requests the API server refuses during the first sync.
type Inject struct {
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	Error    string `json:"error"`
}

type Then struct {
	World World `json:"world"`
}

type World struct {
	Services       []*corev1.Service            `json:"services"`
	Pods           []*corev1.Pod                `json:"pods"`
	Nodes          []*corev1.Node               `json:"nodes"`
	EndpointSlices []*discoveryv1.EndpointSlice `json:"endpointslices"`
	Endpoints      []*corev1.Endpoints          `json:"endpoints"`
}

const runsMax = 10_000 // Enough to see rare choices; bounds the time one line can take.

// The defaults of kube-controller-manager's flags of the same names.
const (
	maxEndpointsPerSliceDefault  = 100
	maxEndpointsPerSubsetDefault = 1000
	maxEndpointsMax              = 1000 // Both flags; upstream never sees other values.
)

// readCase decodes a line. Objects are decoded strictly: a misspelt field
// would otherwise be dropped here and look like a difference in behaviour.
func readCase(line []byte) (*Case, error) {
	var c Case
	unknown, err := json.UnmarshalStrict(line, &c)
	if err != nil {
		return &c, fmt.Errorf("not a world: %w", err)
	}
	for _, problem := range unknown {
		if !isVectorField(problem) {
			return &c, fmt.Errorf("not a world: %w", problem)
		}
	}
	return &c, c.complete()
}

func isVectorField(problem error) bool {
	switch problem.Error() {
	case `unknown field "seed"`, `unknown field "tags"`, `unknown field "expect"`,
		`unknown field "then.expect"`:
		return true
	}
	return false
}

// complete fills in defaults and refuses what no informer could show.
func (c *Case) complete() error {
	if _, name, err := cache.SplitMetaNamespaceKey(c.Key); err != nil || name == "" {
		return fmt.Errorf("key %q is not namespace/name", c.Key)
	}
	if c.Runs == 0 {
		c.Runs = 1
	}
	if c.Runs < 1 || c.Runs > runsMax {
		return fmt.Errorf("runs is %d, must be 1 to %d", c.Runs, runsMax)
	}
	if err := c.Settings.complete(); err != nil {
		return err
	}
	if err := c.World.complete(); err != nil {
		return err
	}
	if c.Then == nil {
		return nil
	}
	if len(c.Then.World.EndpointSlices) > 0 ||
		(c.Controller != "mirroring" && len(c.Then.World.Endpoints) > 0) {
		return errors.New("then.world holds objects that are carried over from the API server")
	}
	return c.Then.World.complete()
}

func (s *Settings) complete() error {
	if s.MaxEndpointsPerSlice == 0 {
		s.MaxEndpointsPerSlice = maxEndpointsPerSliceDefault
	}
	if s.MaxEndpointsPerSubset == 0 {
		s.MaxEndpointsPerSubset = maxEndpointsPerSubsetDefault
	}
	for _, limit := range []int32{s.MaxEndpointsPerSlice, s.MaxEndpointsPerSubset} {
		if limit < 1 || limit > maxEndpointsMax {
			return fmt.Errorf("a limit of %d endpoints is not 1 to %d", limit, maxEndpointsMax)
		}
	}
	if s.Inject == nil {
		return nil
	}
	return s.Inject.check()
}

func (w *World) complete() error {
	return errors.Join(
		normalise("services", w.Services),
		normalise("pods", w.Pods),
		normalise("nodes", w.Nodes),
		normalise("endpointslices", w.EndpointSlices),
		normalise("endpoints", w.Endpoints),
	)
}

// normalise makes objects look as an informer holds them: without kind and
// apiVersion, and one to a name. Upstream compares whole placeholder slices, so
// a kind left on the stored one would make it differ from the desired one.
func normalise[T object](resource string, objects []T) error {
	seen := make(map[string]bool, len(objects))
	for i, o := range objects {
		if any(o) == any(*new(T)) {
			return fmt.Errorf("%s[%d] is null", resource, i)
		}
		key := keyOf(o)
		if o.GetName() == "" {
			return fmt.Errorf("%s[%d] has no name", resource, i)
		}
		if seen[key] {
			return fmt.Errorf("two %s are named %s", resource, key)
		}
		seen[key] = true
		o.GetObjectKind().SetGroupVersionKind(noKind)
	}
	return nil
}

// copied gives a run its own objects, so that nothing one run does to them can
// be seen by the next.
func (w *World) copied() World {
	return World{
		Services:       copies(w.Services),
		Pods:           copies(w.Pods),
		Nodes:          copies(w.Nodes),
		EndpointSlices: copies(w.EndpointSlices),
		Endpoints:      copies(w.Endpoints),
	}
}

func copies[T object](objects []T) []T {
	all := make([]T, len(objects))
	for i, o := range objects {
		all[i] = o.DeepCopyObject().(T)
	}
	return all
}

func keyOf(o metav1.Object) string {
	return o.GetNamespace() + "/" + o.GetName()
}
