//! Why pods are or are not behind a Service: reads the complete objects of one Service from the API
//! server when somebody asks, and explains them as `endpointd explain` does. What may not be read is
//! noted. Bounded: one Service at a time, and not at all if it has too many pods.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use endpointd_client::{Client, ConnectOptions, ListOptions, ReadError};
use endpointd_explain::{Context, ControllerState, FORMAT_VERSION, Mode, Objects, explain};
use endpointd_model::{Key, Timestamp, names};
use endpointd_plan::Settings;
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};

/// A pod has some ten kilobytes of JSON. With more pods, `endpointd explain` is the better place.
const PODS_MAX: usize = 500;
/// Pods that are compared with the selector if it matches none.
const NEAR_PODS_MAX: usize = 200;
const NODES_MAX: usize = 500;
const OTHERS_MAX: usize = 500;
/// The same findings are returned for this long.
const KEPT_FOR: Duration = Duration::from_secs(2);

/// Kinds that make sentences better and that the daemon itself does not need.
const OPTIONAL: [Resource; 3] = [
    Resource { kind: "Event", api_version: "v1", group: "/api/v1", plural: "events" },
    Resource {
        kind: "Deployment",
        api_version: "apps/v1",
        group: "/apis/apps/v1",
        plural: "deployments",
    },
    Resource {
        kind: "ReplicaSet",
        api_version: "apps/v1",
        group: "/apis/apps/v1",
        plural: "replicasets",
    },
];
const SERVICE: Resource = core("Service", "services");
const PODS: Resource = core("Pod", "pods");
const ENDPOINTS: Resource = core("Endpoints", "endpoints");
const NODES: Resource = core("Node", "nodes");
const SLICES: Resource = Resource {
    kind: "EndpointSlice",
    api_version: "discovery.k8s.io/v1",
    group: "/apis/discovery.k8s.io/v1",
    plural: "endpointslices",
};

#[derive(Clone, Copy)]
struct Resource {
    kind: &'static str,
    api_version: &'static str,
    group: &'static str,
    plural: &'static str,
}

const fn core(kind: &'static str, plural: &'static str) -> Resource {
    Resource { kind, api_version: "v1", group: "/api/v1", plural }
}

pub struct Finder {
    connect: ConnectOptions,
    settings: Settings,
    client: OnceCell<Client>,
    /// One Service at a time; the last answer.
    last: Mutex<Option<(Key, Instant, Arc<str>)>>,
    /// Kinds that may not be read: not asked for again.
    forbidden: Mutex<BTreeSet<&'static str>>,
}

/// Why there are no findings, for people.
pub struct NoFindings(pub String);

const MULTICLUSTER: &str = "/apis/multicluster.x-k8s.io/v1beta1";
const EXPORTS: Resource = multicluster("ServiceExport", "serviceexports");
const IMPORTS: Resource = multicluster("ServiceImport", "serviceimports");

const fn multicluster(kind: &'static str, plural: &'static str) -> Resource {
    let api_version = "multicluster.x-k8s.io/v1beta1";
    Resource { kind, api_version, group: MULTICLUSTER, plural }
}

impl Finder {
    pub fn new(connect: ConnectOptions, settings: Settings) -> Self {
        let (client, last, forbidden) = (OnceCell::new(), Mutex::default(), Mutex::default());
        Self { connect, settings, client, last, forbidden }
    }

    /// As JSON, in the form of `endpointd explain --output json`.
    pub async fn find(&self, key: &Key, state: ControllerState) -> Result<Arc<str>, NoFindings> {
        let mut last = self.last.lock().await;
        if let Some((of, at, text)) = &*last
            && of == key
            && at.elapsed() < KEPT_FOR
        {
            return Ok(text.clone());
        }
        let text: Arc<str> = self.explain(key, state).await?.to_string().into();
        *last = Some((key.clone(), Instant::now(), text.clone()));
        Ok(text)
    }

    async fn explain(&self, key: &Key, state: ControllerState) -> Result<Value, NoFindings> {
        let client = self.client.get_or_try_init(|| Client::connect(self.connect.clone()));
        let client = client.await.map_err(|error| NoFindings(error.to_string()))?;
        let is_importing = !state.clusters.is_empty();
        let mut objects = self.read(client, key).await?;
        if is_importing {
            read_cluster_set(client, key, &mut objects).await;
        }
        let (key, settings) = (key.clone(), self.settings.clone());
        // On another thread: other pages need not wait for it.
        let explained = tokio::task::spawn_blocking(move || {
            let indexed = objects.cluster().index();
            let context = Context {
                objects: &objects,
                indexed: &indexed,
                now: Timestamp::now(),
                settings,
                controller: Some(&state),
                mode: Mode::Observed,
            };
            serde_json::to_value(explain::service(&context, &key)).unwrap_or_default()
        });
        let mut value = explained.await.map_err(|error| NoFindings(error.to_string()))?;
        value["formatVersion"] = json!(FORMAT_VERSION);
        Ok(value)
    }

    async fn read(&self, client: &Client, key: &Key) -> Result<Objects, NoFindings> {
        let mut objects = Objects::default();
        let path = format!("{}/{}", SERVICE.path(&key.namespace), key.name);
        match client.get_value(&path).await {
            Ok(service) => objects.add(service.value),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(unread(SERVICE.plural, &error)),
        }
        objects.complete(SERVICE.kind);
        self.read_pods(client, key, &mut objects).await?;
        let of_service = format!("{}={}", names::SERVICE_NAME, key.name);
        let slices = list(client, SLICES, &key.namespace, Some(of_service), OTHERS_MAX).await;
        add(&mut objects, SLICES, slices);
        let field = Some(format!("metadata.name={}", key.name));
        let options = ListOptions { field_selector: field, ..ListOptions::default() };
        let endpoints = client.list_values(&ENDPOINTS.path(&key.namespace), &options).await;
        add(&mut objects, ENDPOINTS, endpoints.map(|list| list.items));
        read_nodes(client, &mut objects).await;
        self.read_optional(client, key, &mut objects).await;
        objects.assume_nodes();
        Ok(objects)
    }

    /// The pods that the Service selects; if there are none, some of the namespace.
    async fn read_pods(
        &self,
        client: &Client,
        key: &Key,
        objects: &mut Objects,
    ) -> Result<(), NoFindings> {
        let service = objects.get(SERVICE.kind, &key.namespace, &key.name);
        let Some(selector) = service.and_then(selector_text) else {
            objects.complete(PODS.kind);
            return Ok(());
        };
        let selected = list(client, PODS, &key.namespace, Some(selector), PODS_MAX + 1).await;
        let is_empty = matches!(&selected, Ok(pods) if pods.is_empty());
        if matches!(&selected, Ok(pods) if pods.len() > PODS_MAX) {
            return Err(NoFindings(format!(
                "Service {key} selects more than {PODS_MAX} pods, too many to explain here"
            )));
        }
        let pods = match is_empty {
            true => list(client, PODS, &key.namespace, None, NEAR_PODS_MAX).await,
            false => selected,
        };
        add(objects, PODS, pods);
        Ok(())
    }

    async fn read_optional(&self, client: &Client, key: &Key, objects: &mut Objects) {
        let mut forbidden = self.forbidden.lock().await;
        for resource in OPTIONAL {
            if forbidden.contains(resource.kind) {
                objects.not_read(format!("{}: not allowed", resource.plural));
                continue;
            }
            let found = list(client, resource, &key.namespace, None, OTHERS_MAX).await;
            if matches!(&found, Err(error) if error.is_forbidden()) {
                forbidden.insert(resource.kind);
            }
            add(objects, resource, found);
        }
    }
}

impl Resource {
    fn path(&self, namespace: &str) -> String {
        match self.kind {
            "Node" => format!("{}/{}", self.group, self.plural),
            _ => format!("{}/namespaces/{namespace}/{}", self.group, self.plural),
        }
    }
}

async fn list(
    client: &Client,
    resource: Resource,
    namespace: &str,
    label_selector: Option<String>,
    max: usize,
) -> Result<Vec<Value>, ReadError> {
    let options =
        ListOptions { label_selector, n_objects_max: Some(max), ..ListOptions::default() };
    let list = client.list_values(&resource.path(namespace), &options).await?;
    Ok(list.items)
}

fn add(objects: &mut Objects, resource: Resource, found: Result<Vec<Value>, ReadError>) {
    match found {
        Ok(items) => {
            objects.complete(resource.kind);
            items.into_iter().for_each(|item| objects.add(complete(item, resource)));
        }
        Err(error) => {
            let NoFindings(why) = unread(resource.plural, &error);
            objects.unreadable(resource.kind, why);
        }
    }
}

/// The items of a list have no `kind`.
fn complete(mut item: Value, resource: Resource) -> Value {
    item["apiVersion"] = resource.api_version.into();
    item["kind"] = resource.kind.into();
    item
}

/// In a large cluster, the nodes that were not read are assumed to exist.
/// The export, the import, and the slices with the endpoints of clusters. The account of a controller
/// that imports may read them.
async fn read_cluster_set(client: &Client, key: &Key, objects: &mut Objects) {
    let derived_from = objects.get(SERVICE.kind, &key.namespace, &key.name).and_then(|service| {
        let labels = service.pointer("/metadata/labels")?;
        Some(labels.get(names::IMPORT_NAME)?.as_str()?.to_owned())
    });
    let name = derived_from.unwrap_or_else(|| key.name.to_string());
    for resource in [EXPORTS, IMPORTS] {
        let field = Some(format!("metadata.name={name}"));
        let options = ListOptions { field_selector: field, ..ListOptions::default() };
        let found = client.list_values(&resource.path(&key.namespace), &options).await;
        add(objects, resource, found.map(|list| list.items));
    }
    let of_import = Some(format!("{}={name}", names::IMPORT_NAME));
    let slices = list(client, SLICES, &key.namespace, of_import, OTHERS_MAX).await;
    add(objects, SLICES, slices);
}

async fn read_nodes(client: &Client, objects: &mut Objects) {
    let found = list(client, NODES, "", None, NODES_MAX).await;
    let is_partial = matches!(&found, Ok(nodes) if nodes.len() >= NODES_MAX);
    add(objects, NODES, found);
    if !is_partial {
        return;
    }
    objects.not_read(format!("nodes: more than {NODES_MAX}, the others are assumed to exist"));
    let pods = objects.of_kind_anywhere(PODS.kind);
    let names: BTreeSet<String> = pods
        .filter_map(|(_, pod)| Some(pod.pointer("/spec/nodeName")?.as_str()?.to_owned()))
        .collect();
    for name in names {
        if objects.get(NODES.kind, "", &name).is_none() {
            objects.add(json!({
                "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }));
        }
    }
}

/// `None` without a selector.
fn selector_text(service: &Value) -> Option<String> {
    let selector = service.pointer("/spec/selector")?.as_object()?;
    let pairs: Vec<String> = selector
        .iter()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    (!pairs.is_empty()).then(|| pairs.join(","))
}

fn unread(what: &str, error: &ReadError) -> NoFindings {
    let why = if error.is_forbidden() { "not allowed" } else { &error.message };
    NoFindings(format!("{what}: {why}"))
}
