//! What objects of a large cluster have in common is kept once: labels and ports of the pods of one
//! workload, and names and addresses that pods, slices, and Endpoints repeat.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use endpointd_model::{EndpointSlice, Endpoints, Labels, NamedPort, ObjectRef, Pod, SharedStr};

#[derive(Default)]
pub struct SharedParts {
    labels: HashSet<Labels>,
    ports: HashSet<Arc<[NamedPort]>>,
    texts: HashSet<SharedStr>,
}

impl SharedParts {
    pub fn share_pod(&mut self, pod: &mut Pod) {
        pod.labels = shared(&mut self.labels, &pod.labels);
        pod.named_ports = shared(&mut self.ports, &pod.named_ports);
        self.share(&mut pod.namespace);
        self.share(&mut pod.name);
        self.share_option(&mut pod.node_name);
    }

    pub fn share_slice(&mut self, slice: &mut EndpointSlice) {
        slice.endpoints.shrink_to_fit();
        for endpoint in &mut slice.endpoints {
            endpoint.addresses.shrink_to_fit();
            endpoint.addresses.iter_mut().for_each(|address| self.share(address));
            self.share_option(&mut endpoint.hostname);
            self.share_option(&mut endpoint.node_name);
            self.share_option(&mut endpoint.zone);
            self.share_target(&mut endpoint.target_ref);
        }
    }

    pub fn share_endpoints(&mut self, endpoints: &mut Endpoints) {
        for subset in &mut endpoints.subsets {
            for addresses in [&mut subset.addresses, &mut subset.not_ready_addresses] {
                addresses.shrink_to_fit();
                for address in addresses {
                    self.share(&mut address.ip);
                    self.share_option(&mut address.hostname);
                    self.share_option(&mut address.node_name);
                    self.share_target(&mut address.target_ref);
                }
            }
        }
    }

    fn share_target(&mut self, target: &mut Option<ObjectRef>) {
        let Some(target) = target else { return };
        // The uid has no allocation of its own.
        let ObjectRef { kind, namespace, name, uid: _, api_version, resource_version, field_path } =
            target;
        for text in [kind, namespace, name, api_version, resource_version, field_path] {
            self.share(text);
        }
    }

    fn share_option(&mut self, text: &mut Option<SharedStr>) {
        if let Some(text) = text {
            self.share(text);
        }
    }

    fn share(&mut self, text: &mut SharedStr) {
        *text = shared(&mut self.texts, text);
    }
}

fn shared<T: Clone + Eq + Hash>(known: &mut HashSet<T>, one: &T) -> T {
    match known.get(one) {
        Some(known) => known.clone(),
        None => {
            known.insert(one.clone());
            one.clone()
        }
    }
}
