//! From drafts to writes: the one way both slice controllers end a plan.

use endpointd_model::{Annotations, DeleteTarget, Object, PublishedResource, Write};

use crate::packing::Draft;

/// Creates, then updates, then deletes, each by name. An owner on its way out gets no new slices:
/// the garbage collector would race us and leave one behind. Upstream: `finalize`.
pub fn of_drafts(
    drafts: Vec<Draft>,
    is_owner_deleting: bool,
    annotate: impl Fn(&Annotations) -> Annotations,
) -> Vec<Write> {
    let mut writes: Vec<Write> = Vec::new();
    for draft in drafts {
        match draft {
            Draft::Unchanged(_) => {}
            Draft::New(_) if is_owner_deleting => {}
            Draft::New(mut slice) => {
                slice.meta.annotations = annotate(&slice.meta.annotations);
                writes.push(Write::Create(Object::Slice(slice)));
            }
            Draft::Changed(mut slice) => {
                slice.meta.annotations = annotate(&slice.meta.annotations);
                writes.push(Write::Update(Object::Slice(slice)));
            }
            Draft::Doomed(slice) => {
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
