//! What users and controllers of each cluster do to Services, slices, and exports. A shape decides
//! ports, families, endpoints, and so on, one digit after the other.

use endpointd_model::{
    AddressType, ClusterIp, Endpoint, EndpointPort, EndpointSlice, Family, Key, Labels, Meta,
    MultiClusterObject, MultiClusterResource, Object, Protocol, PublishedResource, Service,
    ServiceExport, ServicePort, ServiceTraffic, SessionAffinity, TargetPort, TrafficDistribution,
    Uid, derived_name, names,
};

use super::ClusterSet;
use super::site::{HOME, NAMESPACE};
use crate::script::ClusterAction;

const SERVICES: [&str; 2] = ["web", "api"];
const SLICES: u32 = 3;
const EXPORT: PublishedResource =
    PublishedResource::MultiCluster(MultiClusterResource::ExportStatus);

struct Shape(u32);

impl Shape {
    fn pick(&mut self, n: u32) -> u32 {
        let choice = self.0 % n;
        self.0 /= n;
        choice
    }

    fn one_of<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.pick(from.len() as u32) as usize].clone()
    }
}

pub fn keys() -> impl Iterator<Item = Key> {
    SERVICES.into_iter().map(|name| Key::new(NAMESPACE, name))
}

fn key_of(number: u16) -> Key {
    Key::new(NAMESPACE, SERVICES[usize::from(number) % SERVICES.len()])
}

impl ClusterSet {
    pub(super) fn change_objects(&mut self, site: usize, action: ClusterAction) {
        match action {
            ClusterAction::Service(number, shape) => self.put_service(site, number, shape),
            ClusterAction::RemoveService(number) => {
                let key = key_of(number);
                for slice in self.slices_of(site, &key) {
                    self.sites[site].api.remove(PublishedResource::Slices, &slice);
                }
                if self.sites[site].api.services.contains(&key) {
                    self.sites[site].api.remove_service(&key);
                }
                self.note_change(key);
            }
            ClusterAction::Export(number, shape) => self.put_export(site, number, shape),
            ClusterAction::Unexport(number) => {
                let key = key_of(number);
                if self.sites[site].api.exports.contains(&key) {
                    self.sites[site].api.remove(EXPORT, &key);
                }
                self.note_change(key);
            }
            ClusterAction::Slice(number, shape) => self.put_slice(site, number, shape),
            ClusterAction::RemoveSlice(number, index) => {
                let key = key_of(number);
                let slices = self.slices_of(site, &key);
                if let Some(slice) = slices.get(index as usize % slices.len().max(1)) {
                    self.sites[site].api.remove(PublishedResource::Slices, slice);
                }
                self.note_change(key);
            }
            ClusterAction::Edit(number, shape) => self.edit_import(number, shape),
            ClusterAction::Cut(_)
            | ClusterAction::CutAndCompact(_)
            | ClusterAction::BackUp
            | ClusterAction::Restore
            | ClusterAction::Replace(_)
            | ClusterAction::RemoveKubeconfig
            | ClusterAction::ReturnKubeconfig
            | ClusterAction::Deny(_)
            | ClusterAction::ClockJump(_) => {}
        }
    }

    /// A new cluster that exports the same as others do, or nothing.
    pub(super) fn populate(&mut self, site: usize, shape: u32) {
        let mut choices = Shape(shape);
        if choices.pick(2) == 0 {
            return;
        }
        for number in 0..SERVICES.len() as u16 {
            self.put_service(site, number, 0);
            self.put_export(site, number, 0);
            self.put_slice(site, number, choices.pick(1000));
        }
    }

    pub(super) fn note_changes(&mut self) {
        keys().for_each(|key| self.note_change(key));
    }

    fn note_change(&mut self, key: Key) {
        self.changed.insert(key, self.now);
    }

    /// Of the Service itself, not imported ones.
    fn slices_of(&self, site: usize, key: &Key) -> Vec<Key> {
        let slices = self.sites[site].api.slices.iter();
        let is_of = |slice: &EndpointSlice| slice.meta.labels.has(names::SERVICE_NAME, &key.name);
        slices.filter(|(_, slice)| is_of(slice)).map(|(key, _)| key.clone()).collect()
    }

    fn put_service(&mut self, site: usize, number: u16, shape: u32) {
        let (key, mut shape) = (key_of(number), Shape(shape));
        let ports: &[(&str, i32)] = shape.one_of(&[
            &[("http", 80)][..],
            &[("http", 80), ("grpc", 90)],
            &[("", 80)],
            &[("web", 80)],
            &[("http", 8080)],
            &[("grpc", 90), ("http", 80)],
        ]);
        let families: &[Family] = shape.one_of(&[
            &[Family::V4][..],
            &[Family::V4],
            &[Family::V4, Family::V6],
            &[Family::V6, Family::V4],
            &[Family::V6],
        ]);
        let first = ClusterIp::Ip(families[0]);
        let cluster_ip = shape.one_of(&[first, first, first, ClusterIp::Headless]);
        let is_external_name = shape.pick(12) == 11;
        let distribution = shape.one_of(&[
            None,
            None,
            Some(TrafficDistribution::PreferSameZone),
            Some(TrafficDistribution::PreferSameNode),
        ]);
        let affinity = SessionAffinity::ClientIp { timeout_secs: Some(600) };
        let session_affinity = shape.one_of(&[SessionAffinity::None, affinity]);
        let traffic = ServiceTraffic { session_affinity, ..ServiceTraffic::default() };
        let port = |(name, number): &(&str, i32)| ServicePort {
            name: (*name).into(),
            protocol: Protocol::Tcp,
            number: *number,
            app_protocol: None,
            target: TargetPort::Number(number + 8000),
        };
        let known = self.sites[site].api.services.get(&key).map(|service| service.uid.clone());
        let uid: Uid = known.unwrap_or_else(|| self.sites[site].api.new_uid());
        self.sites[site].api.put_service(Service {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid,
            cluster_ip,
            is_external_name,
            families: families.to_vec(),
            ports: ports.iter().map(port).collect(),
            traffic_distribution: distribution,
            traffic: (traffic != ServiceTraffic::default()).then(|| Box::new(traffic)),
            ..Service::default()
        });
        self.remove_slices_of_other_families(site, &key, families);
        self.note_change(key);
    }

    fn remove_slices_of_other_families(&mut self, site: usize, key: &Key, families: &[Family]) {
        let kept: Vec<AddressType> = families.iter().copied().map(AddressType::from).collect();
        for slice in self.slices_of(site, key) {
            let api = &mut self.sites[site].api;
            let stored = api.slices.get(&slice);
            if stored.is_some_and(|stored| !kept.contains(&stored.address_type)) {
                api.remove(PublishedResource::Slices, &slice);
            }
        }
    }

    /// Its ports are those that the Service has now.
    fn put_slice(&mut self, site: usize, number: u16, shape: u32) {
        let (key, mut shape) = (key_of(number), Shape(shape));
        let api = &self.sites[site].api;
        let Some(service) = api.services.get(&key).cloned() else { return };
        let family = shape.one_of(&service.families);
        let index = shape.pick(SLICES);
        let n_endpoints = shape.pick(3) + 1;
        let endpoints = (0..n_endpoints).map(|n| endpoint(site, family, index, n, &mut shape));
        let port = |port: &ServicePort| EndpointPort {
            name: Some(port.name.clone()),
            port: Some(port.number + 8000),
            protocol: Some(port.protocol.clone()),
            app_protocol: None,
        };
        let labels: Labels =
            [(names::SERVICE_NAME, &*key.name), (names::MANAGED_BY, names::MANAGED_BY_SLICES)]
                .into_iter()
                .collect();
        let name = format!("{}-{index}-{family}", key.name).to_lowercase();
        let slice = EndpointSlice {
            meta: Meta {
                namespace: key.namespace.clone(),
                name: name.into(),
                labels,
                ..Meta::default()
            },
            address_type: family.into(),
            endpoints: endpoints.collect(),
            ports: service.ports.iter().map(port).collect(),
        };
        self.sites[site].api.force(Object::Slice(slice));
        self.note_change(key);
    }

    fn put_export(&mut self, site: usize, number: u16, shape: u32) {
        let (key, mut shape) = (key_of(number), Shape(shape));
        let api = &mut self.sites[site].api;
        let known = api.exports.get(&key).cloned();
        let created = api.now.timestamp(api.skew_secs);
        let labels: &[(&str, &str)] =
            shape.one_of(&[&[][..], &[], &[("tier", "a")], &[("tier", "b")]]);
        let meta = Meta {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            created: Some(created),
            ..Meta::default()
        };
        let export = match known {
            Some(known) => ServiceExport::clone(&known),
            None => ServiceExport { meta, ..ServiceExport::default() },
        };
        let export = ServiceExport { labels: labels.iter().copied().collect(), ..export };
        api.force(Object::MultiCluster(MultiClusterObject::ExportStatus(export)));
        self.note_change(key);
    }

    /// Another client deletes the derived Service or a copy, or edits a copy.
    fn edit_import(&mut self, number: u16, shape: u32) {
        let (key, mut shape) = (key_of(number), Shape(shape));
        let derived = Key::new(NAMESPACE, derived_name(&key));
        let api = &mut self.sites[HOME].api;
        let is_of = |slice: &EndpointSlice| slice.meta.labels.has(names::IMPORT_NAME, &key.name);
        let copies: Vec<EndpointSlice> =
            api.slices.values().filter(|slice| is_of(slice)).cloned().collect();
        let copy = (!copies.is_empty()).then(|| shape.one_of(&copies));
        match (shape.pick(3), copy) {
            (0, _) if api.derived.contains(&derived) => {
                let resource = PublishedResource::MultiCluster(MultiClusterResource::Derived);
                api.remove(resource, &derived);
            }
            (1, Some(copy)) => drop(api.remove(PublishedResource::Slices, &copy.meta.key())),
            (2, Some(mut copy)) => {
                copy.endpoints.pop();
                api.force(Object::Slice(copy));
            }
            (_, _) => {}
        }
        self.note_change(key);
    }
}

/// The address names the cluster; one of a few is one that no slice may have.
fn endpoint(site: usize, family: Family, slice: u32, n: u32, shape: &mut Shape) -> Endpoint {
    let is_loopback = shape.pick(9) == 8;
    let address = match (family, is_loopback) {
        (Family::V4, false) => format!("10.{site}.{slice}.{}", n + 1),
        (Family::V6, false) => format!("fd00:{}::{}:{}", site + 1, slice + 1, n + 1),
        (Family::V4, true) => "127.0.0.1".to_owned(),
        (Family::V6, true) => "::1".to_owned(),
    };
    let is_ready = shape.pick(4) != 0;
    let is_terminating = !is_ready && shape.pick(2) == 0;
    let mut endpoint = Endpoint { addresses: vec![address.into()], ..Endpoint::default() };
    endpoint.conditions.ready = Some(is_ready);
    endpoint.conditions.serving = Some(is_ready || is_terminating);
    endpoint.conditions.terminating = Some(is_terminating);
    endpoint.zone = shape.one_of(&[None, Some("zone-a".into())]);
    endpoint.node_name = Some(format!("node-{}", shape.pick(2)).into());
    endpoint
}
