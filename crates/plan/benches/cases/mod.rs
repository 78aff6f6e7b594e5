//! The measured cases, prepared so that only planning is measured.

use endpointd_model::{
    ClusterIp, EndpointSlice, Family, Node, Pod, PodIp, PodIps, Readiness, Service, ServicePort,
    SharedStr, TargetPort, Timestamp, Uid,
};
use endpointd_plan::{
    CarriedState, ClusterState, NodeState, Plan, PodOnNode, Settings, SliceSnapshot, Topology,
};

/// One Service and the rest of its snapshot.
pub struct Case {
    service: Service,
    pods: Vec<Pod>,
    slices: Vec<EndpointSlice>,
    topology: Topology,
    carried: CarriedState,
}

impl Case {
    pub fn plan(&self) -> Plan {
        let zone: SharedStr = "zone-a".into();
        let on_node = |pod| PodOnNode { pod, node: NodeState::Known { zone: Some(&zone) } };
        let snapshot = SliceSnapshot {
            service: Some(&self.service),
            pods: self.pods.iter().map(on_node).collect(),
            topology: &self.topology,
            slices: self.slices.iter().collect(),
            names_in_use: &(),
            carried: &self.carried,
        };
        endpointd_plan::slices(&snapshot, &Settings::default())
    }

    /// Applies the case's own plan.
    fn published(mut self) -> Self {
        let plan = self.plan();
        let mut cluster = ClusterState::default();
        plan.writes.iter().for_each(|write| cluster.apply(write));
        self.slices = cluster.slices.into_values().collect();
        self.carried = plan.carried;
        assert!(self.plan().writes.is_empty(), "the second plan writes");
        self
    }
}

/// All slices are up to date except for one pod that is no longer ready.
pub fn published_with_one_change(n_pods: usize) -> Case {
    let mut case = cold(n_pods).published();
    case.pods[n_pods / 2].readiness = Some(Readiness { is_ready: false, since: None });
    let plan = case.plan();
    assert_eq!(plan.writes.len(), 1, "one slice changes");
    case
}

/// No slice exists.
pub fn cold(n_pods: usize) -> Case {
    let service = Service {
        namespace: "shop".into(),
        name: "web".into(),
        uid: Uid::from("6f1cbb0e-0d5c-4a53-9e06-7a9ffb1f5a11"),
        labels: [("app", "web"), ("team", "shop")].into_iter().collect(),
        selector: [("app", "web")].into_iter().collect(),
        cluster_ip: ClusterIp::Ip(Family::V4),
        families: vec![Family::V4],
        ports: vec![port(0)],
        ..Service::default()
    };
    let pods = (0..n_pods).map(pod).collect();
    let nodes = [Node { name: "node-0".into(), ..Node::default() }];
    let topology = Topology::of(&nodes);
    Case { service, pods, slices: Vec::new(), topology, carried: CarriedState::default() }
}

/// A Service with many ports, half of them with a named target.
pub fn many_ports(n_ports: usize, n_pods: usize) -> Case {
    let mut case = cold(n_pods);
    case.service.ports = (0..n_ports).map(port).collect();
    let named = case.service.ports.iter().filter_map(|port| match &port.target {
        TargetPort::Name(name) => Some(endpointd_model::NamedPort {
            name: name.clone(),
            protocol: port.protocol.clone(),
            number: 8080,
        }),
        TargetPort::Number(_) => None,
    });
    let named: std::sync::Arc<[_]> = named.collect();
    case.pods.iter_mut().for_each(|pod| pod.named_ports = named.clone());
    case
}

fn port(n: usize) -> ServicePort {
    let number = i32::try_from(n).expect("fewer ports than that");
    ServicePort {
        name: format!("port-{n}").into(),
        protocol: endpointd_model::Protocol::Tcp,
        number,
        app_protocol: None,
        target: if n.is_multiple_of(2) {
            TargetPort::Number(8080 + number)
        } else {
            TargetPort::Name(format!("port-{n}").into())
        },
    }
}

fn pod(n: usize) -> Pod {
    let ip = PodIp::parse(&format!("10.{}.{}.{}", n / 65_536, n / 256 % 256, n % 256));
    Pod {
        namespace: "shop".into(),
        name: format!("web-6d4cf56db6-{n:05}").into(),
        uid: Uid::from(format!("6f1cbb0e-0d5c-4a53-9e06-{n:012x}").as_str()),
        labels: [("app", "web")].into_iter().collect(),
        node_name: Some(format!("node-{}", n % 100).into()),
        ips: PodIps { primary: Some(ip.clone()), all: [ip].into() },
        readiness: Some(Readiness { is_ready: true, since: Some(Timestamp::UNIX_EPOCH) }),
        ..Pod::default()
    }
}
