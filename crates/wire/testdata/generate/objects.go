package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func objects() map[string]runtime.Object {
	return map[string]runtime.Object{
		"pod":               pod(),
		"pod-bare":          &corev1.Pod{TypeMeta: core("Pod")},
		"podlist":           podList(),
		"service":           service(),
		"node":              node(),
		"endpoints":         endpoints(),
		"endpointslice":     endpointSlice(),
		"endpointslicelist": endpointSliceList(),
		"status":            status(),
	}
}

type watchEvent struct {
	name   string
	object runtime.Object
}

func watchEvents() []watchEvent {
	ready, gone := pod(), pod()
	ready.ResourceVersion = "102"
	gone.ResourceVersion = "103"
	gone.DeletionTimestamp = at(9)
	return []watchEvent{
		{"ADDED", pod()},
		{"BOOKMARK", &corev1.Pod{TypeMeta: core("Pod"), ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "101",
			Annotations:     map[string]string{"k8s.io/initial-events-end": "true"},
		}}},
		{"MODIFIED", ready},
		{"DELETED", gone},
		{"BOOKMARK", &corev1.Pod{TypeMeta: core("Pod"), ObjectMeta: metav1.ObjectMeta{ResourceVersion: "104"}}},
		{"ERROR", &metav1.Status{
			TypeMeta: core("Status"), Status: "Failure", Reason: metav1.StatusReasonExpired,
			Message: "too old resource version: 1 (2)", Code: 410,
		}},
	}
}

func core(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

func slices(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: kind}
}

func to[T any](value T) *T { return &value }

func at(minute int) *metav1.Time {
	return &metav1.Time{Time: time.Date(2026, 1, 2, 3, minute, 5, 0, time.UTC)}
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              name,
		GenerateName:      "web-",
		Namespace:         "shop",
		UID:               types.UID("5e2cb0a7-91d0-4a5b-8f1e-0123456789ab"),
		ResourceVersion:   "100",
		Generation:        7,
		CreationTimestamp: *at(0),
		Labels:            map[string]string{"app": "web", "empty": "", "zz": "last"},
		Annotations:       map[string]string{"note": "käse 🧀", "service.kubernetes.io/topology-mode": "Auto"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Service", Name: "web", UID: "svc-uid",
			Controller: to(true), BlockOwnerDeletion: to(true),
		}, {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-rs", UID: "rs-uid", Controller: to(false)}},
		Finalizers: []string{"example.com/hold"},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: at(1),
			FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{"f:app":{}}}}`)},
		}},
	}
}

func probe(path string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: intstr.FromString("http"),
			HTTPHeaders: []corev1.HTTPHeader{{Name: "X-Probe", Value: "1"}},
		}},
		PeriodSeconds: 5, FailureThreshold: 3,
	}
}

func container(name string, ports ...corev1.ContainerPort) corev1.Container {
	return corev1.Container{
		Name: name, Image: "registry.example/" + name + ":1", Command: []string{"/bin/serve"}, Args: []string{"-v", ""},
		Ports: ports,
		Env: []corev1.EnvVar{
			{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
			{Name: "MODE", Value: "fast"},
		},
		EnvFrom:       []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{Optional: to(true)}}},
		Resources:     corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("64Mi")}},
		VolumeMounts:  []corev1.VolumeMount{{Name: "cache", MountPath: "/cache", ReadOnly: true}},
		LivenessProbe: probe("/live"), ReadinessProbe: probe("/ready"),
		Lifecycle:       &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}}},
		SecurityContext: &corev1.SecurityContext{RunAsUser: to(int64(1000)), ReadOnlyRootFilesystem: to(true)},
		ImagePullPolicy: corev1.PullAlways, TTY: true,
	}
}

func pod() *corev1.Pod {
	sidecar := container("proxy", corev1.ContainerPort{Name: "proxy", ContainerPort: 15001, Protocol: "TCP"})
	sidecar.RestartPolicy = to(corev1.ContainerRestartPolicyAlways)
	return &corev1.Pod{
		TypeMeta:   core("Pod"),
		ObjectMeta: meta("web-a"),
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{
				container("setup", corev1.ContainerPort{Name: "setup", ContainerPort: 1, Protocol: "TCP"}), sidecar,
			},
			Containers: []corev1.Container{
				container("web",
					corev1.ContainerPort{Name: "http", ContainerPort: 8080, Protocol: "TCP", HostPort: 80, HostIP: "10.9.9.9"},
					corev1.ContainerPort{ContainerPort: 9999, Protocol: "TCP"}),
				container("dns",
					corev1.ContainerPort{Name: "dns", ContainerPort: 53, Protocol: "UDP"},
					corev1.ContainerPort{Name: "odd", ContainerPort: 54}),
			},
			Volumes:  []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: to(resource.MustParse("1Gi"))}}}},
			NodeName: "node-a", Hostname: "web-a", Subdomain: "web", RestartPolicy: corev1.RestartPolicyAlways,
			NodeSelector: map[string]string{"disk": "ssd"}, ServiceAccountName: "web", Priority: to(int32(-1)),
			Tolerations:                   []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists, TolerationSeconds: to(int64(300))}},
			Affinity:                      &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone"}}}},
			ReadinessGates:                []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}},
			TerminationGracePeriodSeconds: to(int64(30)), EnableServiceLinks: to(false),
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: *at(1)},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: *at(2), Reason: "r", Message: "m"},
				{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: *at(3)},
			},
			HostIP: "10.9.9.9", HostIPs: []corev1.HostIP{{IP: "10.9.9.9"}}, PodIP: "10.0.0.1",
			PodIPs:    []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}},
			StartTime: at(0), QOSClass: corev1.PodQOSBurstable,
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "web", Ready: true, RestartCount: 2, ContainerID: "cri://1", Started: to(true),
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *at(1)}},
			}},
		},
	}
}

func podList() *corev1.PodList {
	first, second := pod(), pod()
	first.TypeMeta, second.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
	second.Name, second.DeletionTimestamp, second.DeletionGracePeriodSeconds = "web-b", at(4), to(int64(0))
	second.Status = corev1.PodStatus{Phase: corev1.PodFailed}
	return &corev1.PodList{
		TypeMeta: core("PodList"),
		ListMeta: metav1.ListMeta{ResourceVersion: "200", Continue: "next", RemainingItemCount: to(int64(3))},
		Items:    []corev1.Pod{*first, *second},
	}
}

func service() *corev1.Service {
	return &corev1.Service{
		TypeMeta:   core("Service"),
		ObjectMeta: meta("web"),
		Spec: corev1.ServiceSpec{
			Ports: []corev1.ServicePort{
				{Name: "http", Protocol: "TCP", Port: 80, TargetPort: intstr.FromString("http"), AppProtocol: to("kubernetes.io/h2c"), NodePort: 30080},
				{Name: "dns", Protocol: "UDP", Port: 53, TargetPort: intstr.FromInt32(5353)},
			},
			Selector: map[string]string{"app": "web"}, ClusterIP: "fd00:10::1", ClusterIPs: []string{"fd00:10::1", "10.96.0.1"},
			Type: corev1.ServiceTypeLoadBalancer, ExternalIPs: []string{"192.0.2.1"}, PublishNotReadyAddresses: true,
			IPFamilies:     []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol},
			IPFamilyPolicy: to(corev1.IPFamilyPolicyRequireDualStack), SessionAffinity: corev1.ServiceAffinityClientIP,
			SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: to(int32(60))}},
			TrafficDistribution:   to(corev1.ServiceTrafficDistributionPreferSameNode), ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
		},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.9"}}}},
	}
}

func node() *corev1.Node {
	node := &corev1.Node{
		TypeMeta:   core("Node"),
		ObjectMeta: meta("node-a"),
		Spec:       corev1.NodeSpec{PodCIDR: "10.0.0.0/24", ProviderID: "x://1", Taints: []corev1.Taint{{Key: "t", Effect: "NoSchedule", TimeAdded: at(1)}}},
		Status: corev1.NodeStatus{
			Capacity:    corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi")},
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("3920m"), "memory": resource.MustParse("14Gi"), "pods": resource.MustParse("110")},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, LastHeartbeatTime: *at(1)},
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: *at(2), LastTransitionTime: *at(1)},
			},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.9.9.9"}},
			Images:    []corev1.ContainerImage{{Names: []string{"a", "b"}, SizeBytes: 1 << 33}},
			NodeInfo:  corev1.NodeSystemInfo{KernelVersion: "6.1", KubeletVersion: "v1.36.4"},
		},
	}
	node.Namespace = ""
	node.Labels = map[string]string{"topology.kubernetes.io/zone": "zone-a", "node-role.kubernetes.io/control-plane": ""}
	return node
}

func podRef(name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		Kind: "Pod", Namespace: "shop", Name: name, UID: "0c5d7b1e-0000-4000-8000-000000000001",
		APIVersion: "v1", ResourceVersion: "9", FieldPath: "spec.containers{web}",
	}
}

func endpoints() *corev1.Endpoints {
	object := &corev1.Endpoints{
		TypeMeta:   core("Endpoints"),
		ObjectMeta: meta("web"),
		Subsets: []corev1.EndpointSubset{
			{
				Addresses: []corev1.EndpointAddress{
					{IP: "10.0.0.1", Hostname: "web-a", NodeName: to("node-a"), TargetRef: podRef("web-a")},
					{IP: "10.0.0.2", NodeName: to("")},
					{IP: "10.0.0.3", TargetRef: &corev1.ObjectReference{}},
				},
				NotReadyAddresses: []corev1.EndpointAddress{{IP: "10.0.0.4"}},
				Ports: []corev1.EndpointPort{
					{Name: "http", Port: 8080, Protocol: "TCP", AppProtocol: to("http")},
					{Port: 53, Protocol: "UDP", AppProtocol: to("")},
				},
			},
			{Ports: []corev1.EndpointPort{{Name: "zero", Protocol: "SCTP"}}},
		},
	}
	object.DeletionTimestamp, object.DeletionGracePeriodSeconds = at(5), to(int64(0))
	return object
}

func endpointSlice() *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		TypeMeta:    slices("EndpointSlice"),
		ObjectMeta:  meta("web-x7k2p"),
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{
			{
				Addresses:  []string{"10.0.0.1", "10.0.0.9"},
				Conditions: discoveryv1.EndpointConditions{Ready: to(true), Serving: to(true), Terminating: to(false)},
				Hostname:   to("web-a"), TargetRef: podRef("web-a"), NodeName: to("node-a"), Zone: to("zone-a"),
				Hints: &discoveryv1.EndpointHints{
					ForZones: []discoveryv1.ForZone{{Name: "zone-a"}, {Name: "zone-b"}},
					ForNodes: []discoveryv1.ForNode{{Name: "node-a"}},
				},
				DeprecatedTopology: map[string]string{"old": "topology"},
			},
			{
				Addresses: []string{"10.0.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: to(false)},
				Hostname: to(""), NodeName: to(""), Zone: to(""), TargetRef: &corev1.ObjectReference{},
				Hints: &discoveryv1.EndpointHints{},
			},
			{Addresses: []string{"10.0.0.3"}},
		},
		Ports: []discoveryv1.EndpointPort{
			{Name: to("http"), Protocol: to(corev1.ProtocolTCP), Port: to(int32(8080)), AppProtocol: to("http")},
			{Name: to(""), Protocol: to(corev1.ProtocolUDP), Port: to(int32(0)), AppProtocol: to("")},
			{},
		},
	}
}

func endpointSliceList() *discoveryv1.EndpointSliceList {
	empty := discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeFQDN}
	full := *endpointSlice()
	full.TypeMeta = metav1.TypeMeta{}
	return &discoveryv1.EndpointSliceList{
		TypeMeta: slices("EndpointSliceList"),
		ListMeta: metav1.ListMeta{ResourceVersion: "201"},
		Items:    []discoveryv1.EndpointSlice{empty, full},
	}
}

func status() *metav1.Status {
	return &metav1.Status{
		TypeMeta: core("Status"), Status: "Failure", Code: 403, Reason: metav1.StatusReasonForbidden,
		Message: `namespace "shop" is being terminated`,
		Details: &metav1.StatusDetails{
			Name: "web", Group: "discovery.k8s.io", Kind: "endpointslices", UID: "u", RetryAfterSeconds: 2,
			Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause, Message: "namespace shop is being terminated", Field: "metadata.namespace"}},
		},
	}
}
