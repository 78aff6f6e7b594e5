package main

import (
	"context"
	"fmt"
	"reflect"
	"time"
	"unsafe"

	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	endpointscontroller "k8s.io/kubernetes/pkg/controller/endpoint"
	slicecontroller "k8s.io/kubernetes/pkg/controller/endpointslice"
	mirrorcontroller "k8s.io/kubernetes/pkg/controller/endpointslicemirroring"
)

// What upstream keeps to itself is reached here and nowhere else: methods by
// their linker names, fields by reflection. The compiler cannot check the
// signatures below, so they are to be read again when the version in go.mod
// changes; the vectors fail at once if one is wrong.

//go:linkname syncEndpointsOfService k8s.io/kubernetes/pkg/controller/endpoint.(*Controller).syncService
func syncEndpointsOfService(c *endpointscontroller.Controller, ctx context.Context, key string) error

//go:linkname syncSlicesOfService k8s.io/kubernetes/pkg/controller/endpointslice.(*Controller).syncService
func syncSlicesOfService(c *slicecontroller.Controller, logger klog.Logger, key string) error

//go:linkname checkNodeTopology k8s.io/kubernetes/pkg/controller/endpointslice.(*Controller).checkNodeTopologyDistribution
func checkNodeTopology(c *slicecontroller.Controller, logger klog.Logger)

//go:linkname syncMirror k8s.io/kubernetes/pkg/controller/endpointslicemirroring.(*Controller).syncEndpoints
func syncMirror(c *mirrorcontroller.Controller, ctx context.Context, key string) error

// controller is a fresh upstream controller on stores of ours.
type controller struct {
	sync     func(key string) error
	seeNodes func() // what the node handlers lead to; nil where nodes do not matter
	stop     func()
}

// newController constructs the controller as kube-controller-manager does, with
// its default feature gates. Only the event recorder is exchanged afterwards:
// upstream's delivers to a goroutine, and we need to know when all is recorded.
func newController(c *Case, s stores, server *server, recorder record.EventRecorder) (*controller, error) {
	logger := klog.Logger{} // The zero logger discards.
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	api := client{server: server}
	const batchPeriod = time.Duration(0)
	switch c.Controller {
	case "endpoints":
		up := endpointscontroller.NewEndpointController(ctx, podInformer{s.pods},
			serviceInformer{s.services}, endpointsInformer{s.endpoints}, api, batchPeriod)
		set(up, recorder, "eventRecorder")
		return &controller{
			sync: func(key string) error { return syncEndpointsOfService(up, ctx, key) },
			stop: func() { stop(cancel, up, "queue", "podQueue") },
		}, nil
	case "endpointslice":
		up := slicecontroller.NewController(ctx, podInformer{s.pods},
			serviceInformer{s.services}, nodeInformer{s.nodes}, sliceInformer{s.slices},
			c.Settings.MaxEndpointsPerSlice, api, batchPeriod)
		set(up, recorder, "eventRecorder")
		set(up, recorder, "reconciler", "eventRecorder")
		return &controller{
			sync:     func(key string) error { return syncSlicesOfService(up, logger, key) },
			seeNodes: func() { checkNodeTopology(up, logger) },
			stop:     func() { stop(cancel, up, "serviceQueue", "podQueue", "topologyQueue") },
		}, nil
	case "mirroring":
		up := mirrorcontroller.NewController(ctx, endpointsInformer{s.endpoints},
			sliceInformer{s.slices}, serviceInformer{s.services},
			c.Settings.MaxEndpointsPerSubset, api, batchPeriod)
		set(up, recorder, "eventRecorder")
		set(up, recorder, "reconciler", "eventRecorder")
		return &controller{
			sync: func(key string) error { return syncMirror(up, ctx, key) },
			stop: func() { stop(cancel, up, "queue") },
		}, nil
	}
	cancel()
	return nil, fmt.Errorf("controller %q is not endpointslice, endpoints or mirroring", c.Controller)
}

// stop ends the goroutines a constructor starts: one for each queue, and those
// of the event broadcaster, which ends with the context.
func stop(cancel context.CancelFunc, upstream any, queues ...string) {
	cancel()
	for _, name := range queues {
		field(upstream, name).Interface().(interface{ ShutDown() }).ShutDown()
	}
}

func set(upstream any, value any, path ...string) {
	field(upstream, path...).Set(reflect.ValueOf(value))
}

// field finds an unexported field, following pointers along the path.
func field(upstream any, path ...string) reflect.Value {
	at := reflect.ValueOf(upstream)
	for _, name := range path {
		at = at.Elem().FieldByName(name)
		if !at.IsValid() {
			panic(fmt.Sprintf("%T has no field %v", upstream, path))
		}
		at = reflect.NewAt(at.Type(), unsafe.Pointer(at.UnsafeAddr())).Elem()
	}
	return at
}
