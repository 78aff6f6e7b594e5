package main

import (
	coreinformers "k8s.io/client-go/informers/core/v1"
	discoveryinformers "k8s.io/client-go/informers/discovery/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

// stores are the controllers' view of the cluster. A controller sees them
// through informers that never run: the objects are put in by hand, and the
// handlers a controller registers are kept, to be called by hand.
type stores struct {
	services, pods, nodes, slices, endpoints *store
}

type store struct {
	cache.SharedIndexInformer // nil: only the two methods below are used
	objects                   cache.Indexer
	handlers                  []cache.ResourceEventHandler
}

func newStores() stores {
	return stores{newStore(), newStore(), newStore(), newStore(), newStore()}
}

func newStore() *store {
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	return &store{objects: cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace)}
}

func (s *store) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	s.handlers = append(s.handlers, h)
	return nil, nil
}

func (s *store) HasSynced() bool { return true }

// fill replaces everything in the store, without telling the handlers.
func fill[T any](s *store, objects []T) {
	all := make([]any, len(objects))
	for i, o := range objects {
		all[i] = o
	}
	if err := s.objects.Replace(all, ""); err != nil {
		panic(err) // Replace on a bare indexer cannot fail.
	}
}

func (s *stores) fillWith(world World) {
	fill(s.services, world.Services)
	fill(s.pods, world.Pods)
	fill(s.nodes, world.Nodes)
	fill(s.slices, world.EndpointSlices)
	fill(s.endpoints, world.Endpoints)
}

// catchUp shows the controllers what the API server holds. EndpointSlices that
// vanished are reported to the delete handlers, which the trackers rely on.
func (s *stores) catchUp(server *server) {
	for _, seen := range s.slices.objects.List() {
		if _, still := server.slices.storedBy[keyOf(seen.(object))]; still {
			continue
		}
		for _, h := range s.slices.handlers {
			h.OnDelete(seen)
		}
	}
	fill(s.slices, copies(server.slices.sorted()))
	fill(s.endpoints, copies(server.endpoints.sorted()))
}

type serviceInformer struct{ *store }

func (s serviceInformer) Informer() cache.SharedIndexInformer { return s.store }
func (s serviceInformer) Lister() corelisters.ServiceLister {
	return corelisters.NewServiceLister(s.objects)
}

type podInformer struct{ *store }

func (s podInformer) Informer() cache.SharedIndexInformer { return s.store }
func (s podInformer) Lister() corelisters.PodLister       { return corelisters.NewPodLister(s.objects) }

type nodeInformer struct{ *store }

func (s nodeInformer) Informer() cache.SharedIndexInformer { return s.store }
func (s nodeInformer) Lister() corelisters.NodeLister      { return corelisters.NewNodeLister(s.objects) }

type endpointsInformer struct{ *store }

func (s endpointsInformer) Informer() cache.SharedIndexInformer { return s.store }
func (s endpointsInformer) Lister() corelisters.EndpointsLister {
	return corelisters.NewEndpointsLister(s.objects)
}

type sliceInformer struct{ *store }

func (s sliceInformer) Informer() cache.SharedIndexInformer { return s.store }
func (s sliceInformer) Lister() discoverylisters.EndpointSliceLister {
	return discoverylisters.NewEndpointSliceLister(s.objects)
}

// The informers must stay what upstream's constructors ask for.
var (
	_ coreinformers.ServiceInformer            = serviceInformer{}
	_ coreinformers.PodInformer                = podInformer{}
	_ coreinformers.NodeInformer               = nodeInformer{}
	_ coreinformers.EndpointsInformer          = endpointsInformer{}
	_ discoveryinformers.EndpointSliceInformer = sliceInformer{}
)
