package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	discoveryv1client "k8s.io/client-go/kubernetes/typed/discovery/v1"
)

// The clients implement only the requests the controllers send. Every other
// method is nil: should upstream start to use one, the panic becomes a fault.

type client struct {
	kubernetes.Interface
	server *server
}

func (c client) CoreV1() corev1client.CoreV1Interface {
	return coreClient{server: c.server}
}

func (c client) DiscoveryV1() discoveryv1client.DiscoveryV1Interface {
	return discoveryClient{server: c.server}
}

type coreClient struct {
	corev1client.CoreV1Interface
	server *server
}

func (c coreClient) Endpoints(namespace string) corev1client.EndpointsInterface {
	return endpointsClient{server: c.server, namespace: namespace}
}

type discoveryClient struct {
	discoveryv1client.DiscoveryV1Interface
	server *server
}

func (c discoveryClient) EndpointSlices(namespace string) discoveryv1client.EndpointSliceInterface {
	return sliceClient{server: c.server, namespace: namespace}
}

type endpointsClient struct {
	corev1client.EndpointsInterface
	server    *server
	namespace string
}

func (c endpointsClient) Create(
	_ context.Context, sent *corev1.Endpoints, _ metav1.CreateOptions,
) (*corev1.Endpoints, error) {
	return typed[*corev1.Endpoints](c.server.create(&c.server.endpoints, c.namespace, sent))
}

func (c endpointsClient) Update(
	_ context.Context, sent *corev1.Endpoints, _ metav1.UpdateOptions,
) (*corev1.Endpoints, error) {
	return typed[*corev1.Endpoints](c.server.update(&c.server.endpoints, c.namespace, sent))
}

func (c endpointsClient) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	return c.server.delete(&c.server.endpoints, c.namespace, name)
}

type sliceClient struct {
	discoveryv1client.EndpointSliceInterface
	server    *server
	namespace string
}

func (c sliceClient) Create(
	_ context.Context, sent *discoveryv1.EndpointSlice, _ metav1.CreateOptions,
) (*discoveryv1.EndpointSlice, error) {
	return typed[*discoveryv1.EndpointSlice](c.server.create(&c.server.slices, c.namespace, sent))
}

func (c sliceClient) Update(
	_ context.Context, sent *discoveryv1.EndpointSlice, _ metav1.UpdateOptions,
) (*discoveryv1.EndpointSlice, error) {
	return typed[*discoveryv1.EndpointSlice](c.server.update(&c.server.slices, c.namespace, sent))
}

func (c sliceClient) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	return c.server.delete(&c.server.slices, c.namespace, name)
}

func typed[T object](stored object, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return stored.(T), nil
}
