//! Services that ask for the endpoints of another one: EPD706 to EPD709. The source is in another
//! namespace, which may not be read here: what the condition of the Service says is all there is.

use endpointd_model::{Condition, ConditionStatus, Selection, SourceReason, names};

use crate::code::Code;
use crate::facts::ServiceFacts;
use crate::fields::counted;
use crate::finding::Finding;

pub fn explain(facts: &ServiceFacts) -> Option<Finding> {
    let cross = facts.service.cross_namespace.as_ref()?;
    let source = cross.source()?;
    let finding = |code, message: String| Some(Finding::new(code, facts.object(), message));
    let annotation = names::ENDPOINTS_FROM;
    match (facts.service.selection(), &source) {
        (Selection::Pods(_), _) => {
            let message = format!("the Service has a selector, so its {annotation} is ignored");
            return finding(Code::ImportIgnored, message);
        }
        (Selection::External, _) => {
            let message =
                format!("an ExternalName has no endpoints, so its {annotation} is ignored");
            return finding(Code::ImportIgnored, message);
        }
        (Selection::Manual, Err(invalid)) => {
            return finding(Code::ImportIgnored, format!("{annotation}: {invalid}"));
        }
        (Selection::Manual, Ok(_)) => {}
    }
    match cross.condition() {
        None => finding(
            Code::ImportNotProcessed,
            format!(
                "the Service asks for the endpoints of another one ({annotation}), and no controller \
                 has answered: endpointslice-import-controller does not run"
            ),
        ),
        Some(Condition { status: ConditionStatus::True, message, .. }) => {
            finding(Code::Imported, format!("it {message}, {}", endpoints(facts)))
        }
        Some(Condition { message, reason, .. }) => {
            let published = match SourceReason::parse(reason) {
                Some(SourceReason::PortNotFound) => "; its other ports are served",
                Some(_) | None => "",
            };
            finding(Code::ImportRefused, format!("{message}{published}"))
        }
    }
}

/// The Service whose endpoints this one has, and how many there are.
pub fn verdict(facts: &ServiceFacts) -> Option<String> {
    let cross = facts.service.cross_namespace.as_ref()?;
    let is_consumer = facts.service.selection() == Selection::Manual;
    let source = cross.source()?.ok().filter(|_| is_consumer)?;
    let name = format!("Service {}", facts.key);
    let is_true = cross.condition().is_some_and(|one| one.status == ConditionStatus::True);
    Some(match is_true {
        true => format!("{name} has the endpoints of {source}: {}.", endpoints(facts)),
        false => format!("{name} asks for the endpoints of {source}, and does not have them."),
    })
}

fn endpoints(facts: &ServiceFacts) -> String {
    let all: Vec<bool> = facts
        .imported
        .iter()
        .flat_map(|slice| slice.endpoints.iter().map(endpointd_model::Endpoint::is_ready))
        .collect();
    let n_ready = all.iter().filter(|is_ready| **is_ready).count();
    format!("{}, {n_ready} ready", counted(all.len(), "endpoint"))
}
