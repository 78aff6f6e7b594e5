//! The published objects of a namespace at one time, and short summaries of them.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_control_plane::{Api, ApiError};
use serde_json::Value;

const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Lists of one namespace, as the server returned them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedState {
    pub endpoints: Vec<Value>,
    pub slices: Vec<Value>,
    /// Objects that Endpoints and slices refer to: Services, pods.
    pub others: Vec<Value>,
}

impl ObservedState {
    /// Without pods, which can be many: cheap enough for polling.
    pub fn without_pods(api: &Api, namespace: &str) -> Result<Self, ApiError> {
        let slices = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices");
        Ok(Self {
            endpoints: list(api, &format!("/api/v1/namespaces/{namespace}/endpoints"))?,
            slices: list(api, &slices)?,
            others: list(api, &format!("/api/v1/namespaces/{namespace}/services"))?,
        })
    }

    /// Endpoints and slices of all namespaces.
    pub fn everywhere(api: &Api) -> Result<Self, ApiError> {
        Ok(Self {
            endpoints: list(api, "/api/v1/endpoints")?,
            slices: list(api, "/apis/discovery.k8s.io/v1/endpointslices")?,
            others: Vec::new(),
        })
    }

    pub fn with_pods(mut self, api: &Api, namespace: &str) -> Result<Self, ApiError> {
        self.others.extend(list(api, &format!("/api/v1/namespaces/{namespace}/pods"))?);
        Ok(self)
    }

    /// Uids of all objects, including Endpoints, which can own slices.
    pub fn uids(&self) -> BTreeSet<String> {
        let all = self.others.iter().chain(&self.endpoints).chain(&self.slices);
        all.filter_map(|object| object["metadata"]["uid"].as_str()).map(str::to_owned).collect()
    }

    /// resourceVersions by kind and name. Equal values before and after mean that nothing was
    /// written.
    pub fn versions(&self) -> BTreeMap<String, String> {
        let kinds = [("endpoints", &self.endpoints), ("slice", &self.slices)];
        let all = kinds.into_iter().flat_map(|(kind, list)| list.iter().map(move |o| (kind, o)));
        all.map(|(kind, object)| {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            let key = format!("{kind} {}/{}", text("namespace"), text("name"));
            (key, text("resourceVersion").to_owned())
        })
        .collect()
    }

    /// The slices of a Service that are not being deleted.
    pub fn slices_of<'a>(&'a self, service: &'a str) -> impl Iterator<Item = &'a Value> {
        self.slices.iter().filter(move |slice| {
            slice["metadata"]["labels"][SERVICE_NAME] == service
                && slice["metadata"]["deletionTimestamp"].is_null()
        })
    }

    /// Each endpoint in the slices of a Service as its addresses and marks: `!` not ready, `s`
    /// serving differs from ready, `t` terminating.
    pub fn slice_summary(&self, service: &str) -> Option<String> {
        let mut n_slices = 0;
        let mut words = Vec::new();
        for slice in self.slices_of(service) {
            n_slices += 1;
            words.extend(slice["endpoints"].as_array().into_iter().flatten().map(word));
        }
        (n_slices > 0).then(|| joined(words))
    }

    /// Each address in an Endpoints object, with `!` when it is not ready.
    pub fn endpoints_summary(&self, name: &str) -> Option<String> {
        let object = self.endpoints.iter().find(|one| one["metadata"]["name"] == name)?;
        let mut words = Vec::new();
        for subset in object["subsets"].as_array().into_iter().flatten() {
            for (list, mark) in [("addresses", ""), ("notReadyAddresses", "!")] {
                let addresses = subset[list].as_array().into_iter().flatten();
                words.extend(
                    addresses.filter_map(|one| Some(format!("{}{mark}", one["ip"].as_str()?))),
                );
            }
        }
        Some(joined(words))
    }
}

fn word(endpoint: &Value) -> String {
    let addresses = endpoint["addresses"].as_array().into_iter().flatten();
    let addresses: Vec<&str> = addresses.filter_map(Value::as_str).collect();
    let is = |name: &str, absent: bool| endpoint["conditions"][name].as_bool().unwrap_or(absent);
    let ready = is("ready", true);
    let mut word = addresses.join(",");
    word.extend((!ready).then_some('!'));
    word.extend((is("serving", ready) != ready).then_some('s'));
    word.extend(is("terminating", false).then_some('t'));
    word
}

/// Sorted, because the order has no meaning.
fn joined(mut words: Vec<String>) -> String {
    words.sort();
    words.join(" ")
}

fn list(api: &Api, path: &str) -> Result<Vec<Value>, ApiError> {
    let mut answer = api.get(path)?;
    Ok(answer["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
}
