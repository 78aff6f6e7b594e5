//! Events. Upstream: `legacyValidateEvent`, `ValidateEventCreate` in
//! pkg/apis/core/validation/events.go.

use serde_json::Value;

use super::{Causes, names, text};

/// Events of `v1`: the involved object must be in the namespace of the event.
pub(crate) fn validate_core(object: &Value, causes: &mut Causes) {
    let involved = text(&object["involvedObject"]["namespace"]);
    let own = text(&object["metadata"]["namespace"]);
    // An event about a cluster-scoped object is in `default`.
    let matches = if involved.is_empty() { own == "default" } else { involved == own };
    if !matches {
        let why = "does not match event.namespace";
        causes.invalid_text("involvedObject.namespace", involved, why);
    }
    for wrong in names::subdomain(own) {
        causes.invalid_text("namespace", own, &wrong);
    }
}

/// Events of `events.k8s.io/v1`, after conversion to the stored form.
pub(crate) fn validate_new(object: &Value, causes: &mut Causes) {
    validate_core(object, causes);
    // Older recorders use the series of the core form and set none of the new fields.
    if object["eventTime"].is_null() {
        causes.required("eventTime", "");
        return;
    }
    let controller = text(&object["reportingComponent"]);
    if controller.is_empty() {
        causes.required("reportingController", "");
    }
    for wrong in names::qualified_name(controller) {
        causes.invalid_text("reportingController", controller, &wrong);
    }
    if text(&object["reportingInstance"]).is_empty() {
        causes.required("reportingInstance", "");
    }
    if text(&object["action"]).is_empty() {
        causes.required("action", "");
    }
    if text(&object["reason"]).is_empty() {
        causes.required("reason", "");
    }
    if !["Normal", "Warning"].contains(&text(&object["type"])) {
        let why = "has invalid value: ";
        causes.invalid("type", &object["type"], &format!("{why}{}", text(&object["type"])));
    }
}
