//! Changes of nodes.

use endpointd_model::{Key, Node};

use super::ShapeSeed;
use crate::script::NodeAction;
use endpointd_memory_api::MemoryApi;

pub fn apply(api: &mut MemoryApi, number: u8, what: NodeAction) {
    let name = format!("node-{number}");
    let key = Key::new("", name.as_str());
    match what {
        NodeAction::Remove if api.nodes.contains(&key) => api.remove_node(&name),
        NodeAction::Remove => {}
        NodeAction::Put(shape) => {
            let mut shape = ShapeSeed(shape);
            let zone = shape.one_of(&["zone-a", "zone-b", "zone-a", "zone-b", "zone-c", ""]);
            let node = Node {
                name: name.into(),
                zone: (!zone.is_empty()).then(|| zone.into()),
                is_ready: shape.pick(6) > 0,
                is_control_plane: shape.pick(10) == 0,
                cpu_nanos: shape.one_of(&[4, 4, 4, 8, 2, 0]) * 1_000_000_000,
                ..Node::default()
            };
            api.put_node(node);
        }
    }
}
