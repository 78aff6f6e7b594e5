//! Objects of a small cluster.

pub const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, uid: service-uid, labels: {tier: front}}
spec:
  clusterIP: 10.96.0.1
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
";
pub const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web-a, namespace: shop, uid: pod-a, labels: {app: web}}
spec: {nodeName: node-1}
status:
  podIP: 10.0.0.1
  podIPs: [{ip: 10.0.0.1}]
  conditions: [{type: Ready, status: \"True\"}]
";
pub const FAILED_POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web-z, namespace: shop, uid: pod-z, labels: {app: web}}
spec: {nodeName: node-1}
status: {phase: Failed, podIP: 10.0.0.9, podIPs: [{ip: 10.0.0.9}]}
";
pub const LOST_POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web-l, namespace: shop, uid: pod-l, labels: {app: web}}
spec: {nodeName: node-2}
status: {podIP: 10.0.0.3, podIPs: [{ip: 10.0.0.3}]}
";
pub const NODE: &str = "
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {topology.kubernetes.io/zone: a}}
";
pub const OLD_SLICE: &str = "
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web-old
  namespace: shop
  uid: slice-uid
  resourceVersion: \"12\"
  labels:
    kubernetes.io/service-name: web
    endpointslice.kubernetes.io/managed-by: endpointslice-controller.k8s.io
addressType: IPv6
endpoints: [{addresses: ['fd00::1'], conditions: {ready: true}}]
ports: []
";
pub const ENDPOINTS: &str = "
apiVersion: v1
kind: Endpoints
metadata: {name: web, namespace: shop, uid: endpoints-uid, resourceVersion: \"7\"}
subsets: [{addresses: [{ip: 10.0.0.8}, {ip: 10.0.0.9}], ports: [{port: 8080}]}]
";
