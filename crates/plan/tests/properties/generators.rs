//! Random small cluster states, decoded from bytes so that `proptest` can shrink a failing one.

use endpointd_model::{
    ClusterIp, Controller, EndpointAddress, EndpointSlice, Endpoints, Family, Key, Labels,
    NamedPort, Node, Phase, Pod, PodIp, PodIps, Protocol, Readiness, Service, ServicePort,
    SliceManagers, Subset, SubsetPort, TargetPort, Timestamp, TolerateUnready, TopologyMode,
    TrafficDistribution, Uid, names,
};
use endpointd_plan::{
    AnnotationPolicy, CarriedState, ClusterState, OrphanPolicy, ServicesSeen, Settings,
};

pub fn key() -> Key {
    Key::new("ns", "web")
}

/// A cluster state and the settings to plan it with.
#[derive(Debug)]
pub struct Case {
    pub cluster: ClusterState,
    pub settings: Settings,
}

pub fn settings(max: usize) -> Settings {
    Settings { endpoints_per_slice_max: max, mirrored_per_subset_max: max, ..Settings::default() }
}

/// `--controller-name blue`
pub fn another_instance() -> SliceManagers {
    SliceManagers::named("blue").expect("a name")
}

/// Zeros give the simplest cluster state, so shrinking the bytes shrinks the state.
pub fn decode(controller: Controller, bytes: &[u8]) -> Case {
    let mut source = ByteSource { bytes: bytes.iter() };
    let max = 1 + source.pick(5);
    let mut settings = settings(max);
    let mut cluster = ClusterState::default();
    source.populate(&mut cluster, controller);
    settings.tolerate_unready_annotation =
        source.one_of(&[AnnotationPolicy::Ignore, AnnotationPolicy::Honor]);
    settings.services_seen = source.one_of(&[ServicesSeen::All, ServicesSeen::Selected]);
    settings.orphan_policy = source.one_of(&[OrphanPolicy::Keep, OrphanPolicy::Delete]);
    if source.once_in(3) {
        settings.managers = another_instance();
    }
    // The published objects are those of an earlier state, modified by another client.
    if source.pick(4) > 0 {
        let plan = cluster.plan(controller, &key(), &CarriedState::default(), &settings);
        plan.writes.iter().for_each(|write| cluster.apply(write));
        source.populate(&mut cluster, controller);
        for slice in cluster.slices.values_mut() {
            source.modify_slice(slice);
        }
        for endpoints in cluster.endpoints.values_mut() {
            source.modify_endpoints(endpoints);
        }
    }
    Case { cluster, settings }
}

/// Cluster states for topology hints: many pods, unequal CPUs, hints from earlier states.
pub fn decode_zones(bytes: &[u8]) -> Case {
    let mut source = ByteSource { bytes: bytes.iter() };
    let max = 1 + source.pick(6);
    let settings = settings(max);
    let mut cluster = ClusterState::default();
    for _ in 0..2 {
        source.populate_zones(&mut cluster);
        let plan = cluster.plan(Controller::Slices, &key(), &CarriedState::default(), &settings);
        plan.writes.iter().for_each(|write| cluster.apply(write));
    }
    source.populate_zones(&mut cluster);
    Case { cluster, settings }
}

pub struct ByteSource<'a> {
    pub bytes: std::slice::Iter<'a, u8>,
}

impl ByteSource<'_> {
    /// A number below `n`; zero after the last byte.
    pub fn pick(&mut self, n: usize) -> usize {
        usize::from(*self.bytes.next().unwrap_or(&0)) % n
    }

    /// True with probability 1/`n`.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.pick(n) == n - 1
    }

    pub fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.pick(choices.len())].clone()
    }

    fn populate(&mut self, cluster: &mut ClusterState, controller: Controller) {
        let service = self.service();
        cluster.services.clear();
        if !self.once_in(12) {
            cluster.services.insert(key(), service);
        }
        match controller {
            Controller::Mirror => {
                cluster.endpoints.clear();
                let endpoints = self.endpoints();
                if !self.once_in(12) {
                    cluster.endpoints.insert(key(), endpoints);
                }
                let is_manual = !self.once_in(6);
                for service in cluster.services.values_mut().filter(|_| is_manual) {
                    service.selector = Labels::default();
                }
            }
            Controller::Import | Controller::MultiCluster => {
                panic!("tests/properties has the properties of this controller in its own file")
            }
            Controller::Slices | Controller::Endpoints => {
                cluster.nodes = (0..self.pick(4)).map(|n| self.node(n)).collect();
                cluster.pods = (0..self.pick(9)).map(|n| self.pod(n)).collect();
            }
        }
    }

    fn populate_zones(&mut self, cluster: &mut ClusterState) {
        let mut service = Service { topology: TopologyMode::Auto, ..ByteSource::plain_service() };
        service.is_deleting = self.once_in(16);
        cluster.services.insert(key(), service);
        cluster.nodes.clear();
        for n in 0..2 + self.pick(3) {
            let (name, mut node) = self.node(n);
            node.zone = Some(format!("z{n}").into());
            node.cpu_nanos = self.one_of(&[4, 1, 2, 3, 7, 30, 100]) * 1_000_000_000;
            node.is_control_plane = false;
            cluster.nodes.insert(name, node);
        }
        for n in 0..self.pick(24) {
            let (key, mut pod) = self.pod(n);
            pod.labels = [("app", "web")].into_iter().collect();
            pod.phase = Phase::Active;
            pod.node_name = Some(format!("n{}", self.pick(4)).into());
            cluster.pods.insert(key, pod);
        }
    }

    fn plain_service() -> Service {
        Service {
            namespace: "ns".into(),
            name: "web".into(),
            uid: Uid::from("service-1"),
            selector: [("app", "web")].into_iter().collect(),
            families: vec![Family::V4],
            ..Service::default()
        }
    }

    fn service(&mut self) -> Service {
        Service {
            namespace: "ns".into(),
            name: "web".into(),
            uid: Uid::from(self.one_of(&["service-1", "service-1", "service-1", "service-2"])),
            labels: self.labels(),
            created: Timestamp::from_second(100).ok(),
            is_deleting: self.once_in(12),
            is_external_name: self.once_in(16),
            selector: [("app", "web")].into_iter().collect(),
            cluster_ip: self.one_of(&[
                ClusterIp::Ip(Family::V4),
                ClusterIp::Headless,
                ClusterIp::Unset,
                ClusterIp::Ip(Family::V6),
            ]),
            families: self.one_of(&[
                vec![Family::V4],
                vec![Family::V6],
                vec![Family::V4, Family::V6],
                vec![],
            ]),
            ports: (0..self.pick(4)).map(|n| self.service_port(n)).collect(),
            publish_not_ready: self.once_in(5),
            topology: self.one_of(&[TopologyMode::Off, TopologyMode::Auto]),
            traffic_distribution: self.one_of(&[
                None,
                Some(TrafficDistribution::PreferClose),
                Some(TrafficDistribution::PreferSameNode),
            ]),
            tolerate_unready: self.one_of(&[
                TolerateUnready::Unset,
                TolerateUnready::Known(true),
                TolerateUnready::Known(false),
                TolerateUnready::Invalid("maybe".into()),
            ]),
            ..Service::default()
        }
    }

    fn labels(&mut self) -> Labels {
        let pairs = [("team", "x"), (names::HEADLESS, ""), (names::MANAGED_BY, "me"), ("a", "")];
        pairs.into_iter().filter(|_| self.once_in(4)).collect()
    }

    fn service_port(&mut self, n: usize) -> ServicePort {
        ServicePort {
            name: ["http", "dns", "metrics"][n].into(),
            protocol: self.one_of(&[Protocol::Tcp, Protocol::Udp]),
            number: 80,
            app_protocol: self.one_of(&[None, Some("h2c".into())]),
            target: self.one_of(&[
                TargetPort::Number(8080),
                TargetPort::Name("web".into()),
                TargetPort::Number(0),
            ]),
        }
    }

    fn node(&mut self, n: usize) -> (endpointd_model::SharedStr, Node) {
        let node = Node {
            name: format!("n{n}").into(),
            resource_version: 1.into(),
            zone: self.one_of(&[Some("za".into()), Some("zb".into()), Some("zc".into()), None]),
            is_ready: !self.once_in(8),
            is_control_plane: self.once_in(12),
            cpu_nanos: self.one_of(&[4_000_000_000, 1_000_000_000, 16_000_000_000, 0]),
        };
        (node.name.clone(), node)
    }

    fn pod(&mut self, n: usize) -> (Key, Pod) {
        let v4 = format!("10.0.1.{}", n + 1);
        let ips = self.one_of(&[
            vec![v4.clone()],
            vec![v4.clone(), format!("fd00::{n}")],
            vec![format!("fd00::{n}")],
            vec![],
            vec!["127.0.0.1".into()],
            vec!["garbage".into(), v4.clone()],
            vec!["10.0.0.9".into(), v4],
        ]);
        let all: Vec<PodIp> = ips.iter().map(|ip| PodIp::parse(ip)).collect();
        let port = |number| NamedPort { name: "web".into(), protocol: Protocol::Tcp, number };
        let pod = Pod {
            namespace: "ns".into(),
            name: format!("pod-{n}").into(),
            uid: Uid::from(format!("pod-{n}-{}", self.pick(2)).as_str()),
            labels: [("app", self.one_of(&["web", "web", "web", "other"]))].into_iter().collect(),
            node_name: self.one_of(&[
                Some("n0".into()),
                Some("n1".into()),
                Some("n2".into()),
                None,
            ]),
            hostname: self.one_of(&[None, Some(format!("host-{n}").into())]),
            subdomain: self.one_of(&[None, Some("web".into())]),
            ips: PodIps { primary: all.first().cloned(), all: all.into() },
            phase: self.one_of(&[Phase::Active, Phase::Active, Phase::Failed, Phase::Succeeded]),
            readiness: self.one_of(&[
                Some(Readiness { is_ready: true, since: Timestamp::from_second(200).ok() }),
                Some(Readiness { is_ready: false, since: None }),
                None,
            ]),
            is_terminating: self.once_in(5),
            named_ports: self.one_of(&[vec![], vec![port(80)], vec![port(81), port(82)]]).into(),
            ..Pod::default()
        };
        (Key::new("ns", pod.name.clone()), pod)
    }

    fn endpoints(&mut self) -> Endpoints {
        let mut endpoints = Endpoints::default();
        let meta = &mut endpoints.meta;
        meta.namespace = "ns".into();
        meta.name = "web".into();
        meta.uid = Uid::from(self.one_of(&["endpoints-1", "endpoints-1", "endpoints-2"]));
        meta.resource_version = 1.into();
        meta.labels = self.labels();
        meta.deleted = self.once_in(12).then_some(Timestamp::UNIX_EPOCH);
        if self.once_in(12) {
            meta.labels = meta.labels.with(names::SKIP_MIRROR, Some("true"));
        }
        if self.once_in(12) {
            meta.annotations = meta.annotations.with(names::LEADER, Some("me"));
        }
        endpoints.subsets = (0..self.pick(4)).map(|_| self.subset()).collect();
        endpoints
    }

    fn subset(&mut self) -> Subset {
        Subset {
            addresses: (0..self.pick(5)).map(|_| self.address()).collect(),
            not_ready_addresses: (0..self.pick(3)).map(|_| self.address()).collect(),
            ports: (0..self.pick(3)).map(|_| self.subset_port()).collect(),
        }
    }

    fn address(&mut self) -> EndpointAddress {
        let ips = ["10.0.0.1", "10.0.0.2", "fd00::1", "010.0.0.1", "10.0.0.3", "bad", "::1"];
        EndpointAddress {
            ip: self.one_of(&ips).into(),
            hostname: self.one_of(&[None, Some("h".into())]),
            node_name: self.one_of(&[None, Some("n0".into())]),
            target_ref: None,
        }
    }

    fn subset_port(&mut self) -> SubsetPort {
        SubsetPort {
            name: self.one_of(&["a", "b"]).into(),
            port: self.one_of(&[1, 2, 0]),
            protocol: Protocol::Tcp,
            app_protocol: self.one_of(&[None, None, Some("h2c".into())]),
        }
    }

    fn modify_slice(&mut self, slice: &mut EndpointSlice) {
        match self.pick(16) {
            0..6 => {}
            6 => slice.endpoints.clear(),
            7 => slice.endpoints.extend(slice.endpoints.clone()),
            8 => slice.endpoints.iter_mut().for_each(|one| one.hints = Some(Default::default())),
            9 => slice.meta.owners.clear(),
            10 => {
                let managers = ["other", names::MANAGED_BY_SLICES, "endpointslice-controller.blue"];
                let manager = self.one_of(&managers);
                slice.meta.labels = slice.meta.labels.with(names::MANAGED_BY, Some(manager));
            }
            11 => slice.meta.labels = slice.meta.labels.with("extra", Some("label")),
            12 => slice.ports.clear(),
            13 => slice.meta.deleted = Some(Timestamp::UNIX_EPOCH),
            14 => slice.endpoints.iter_mut().for_each(|one| one.zone = Some("za".into())),
            _ => slice.meta.annotations = slice.meta.annotations.with("note", Some("x")),
        }
        if slice.meta.is_deleting() || self.once_in(8) {
            slice.meta.finalizers = vec!["example.com/hold".into()];
        }
    }

    fn modify_endpoints(&mut self, endpoints: &mut Endpoints) {
        let annotations = &endpoints.meta.annotations;
        match self.pick(6) {
            0..3 => {}
            3 => endpoints.subsets.reverse(),
            4 => endpoints.meta.annotations = annotations.with(names::OVER_CAPACITY, Some("x")),
            _ => endpoints.meta.labels = Labels::default(),
        }
    }
}
