//! Nodes.

use endpointd_model::{Key, Node};

use super::Variety;
use crate::api::Api;
use crate::script::NodeAct;

pub fn perform(api: &mut Api, number: u8, what: NodeAct) {
    let name = format!("node-{number}");
    let key = Key::new("", name.as_str());
    match what {
        NodeAct::Remove if api.nodes.contains(&key) => api.remove_node(&name),
        NodeAct::Remove => {}
        NodeAct::Put(variety) => {
            let mut variety = Variety(variety);
            let zone = variety.one_of(&["zone-a", "zone-b", "zone-a", "zone-b", "zone-c", ""]);
            let node = Node {
                name: name.into(),
                zone: (!zone.is_empty()).then(|| zone.into()),
                is_ready: variety.pick(6) > 0,
                is_control_plane: variety.pick(10) == 0,
                cpu_nanos: variety.one_of(&[4, 4, 4, 8, 2, 0]) * 1_000_000_000,
                ..Node::default()
            };
            api.put_node(node);
        }
    }
}
