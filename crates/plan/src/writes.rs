//! Turns slice actions into writes, for both slice controllers.

use endpointd_model::{Annotations, DeleteTarget, Object, PublishedResource, Write};

use crate::packing::SliceAction;

/// Creates, then updates, then deletes, each sorted by name. An owner that is being deleted gets no
/// new slices: the garbage collector would race with the create and leave the slice behind.
/// Upstream: `finalize`.
pub fn of_actions(
    actions: Vec<SliceAction>,
    is_owner_deleting: bool,
    annotate: impl Fn(&Annotations) -> Annotations,
) -> Vec<Write> {
    let mut writes: Vec<Write> = Vec::new();
    for action in actions {
        match action {
            SliceAction::Keep(_) => {}
            SliceAction::Create(_) if is_owner_deleting => {}
            SliceAction::Create(mut slice) => {
                slice.meta.annotations = annotate(&slice.meta.annotations);
                writes.push(Write::Create(Object::Slice(slice)));
            }
            SliceAction::Update(mut slice) => {
                slice.meta.annotations = annotate(&slice.meta.annotations);
                writes.push(Write::Update(Object::Slice(slice)));
            }
            SliceAction::Delete(slice) => {
                writes
                    .push(Write::Delete(DeleteTarget::of(PublishedResource::Slices, &slice.meta)));
            }
        }
    }
    writes.sort_by_cached_key(|write| (rank(write), write.key()));
    writes
}

fn rank(write: &Write) -> u8 {
    match write {
        Write::Create(_) => 0,
        Write::Update(_) => 1,
        Write::Delete(_) => 2,
    }
}
