//! The plan for several clusters as tables and as JSON.

use std::io;

use comfy_table::Cell;
use endpointd_model::{Family, SharedStr, Write};
use endpointd_plan::{ExportState, SourceReport, SourceState, write_summary};
use endpointd_wire::to_json_value;
use serde_json::{Value, json};

use super::super::render_table::{Colours, Section, print};
use super::KeyPlan;

/// The version of the JSON; a field never changes its meaning.
const FORMAT_VERSION: &str = "1.0";

pub fn table(out: &mut dyn io::Write, planned: &[KeyPlan]) -> io::Result<()> {
    let sections = [
        (None, writes(planned)),
        (Some("clusters"), clusters(planned)),
        (Some("conflicts"), conflicts(planned)),
    ];
    for (title, section) in sections {
        match title {
            None if section.rows.is_empty() => writeln!(out, "nothing to write")?,
            None => print(out, section, Colours::wanted())?,
            Some(_) if section.rows.is_empty() => {}
            Some(title) => {
                writeln!(out, "\n{title}:")?;
                print(out, section, Colours::wanted())?;
            }
        }
    }
    Ok(())
}

/// In the order in which they are sent.
fn writes(planned: &[KeyPlan]) -> Section {
    let mut rows = Vec::new();
    for KeyPlan { key, writes, .. } in planned {
        for write in writes {
            rows.push(vec![
                Cell::new(key),
                Cell::new(write.verb()),
                Cell::new(write.resource().as_str()),
                Cell::new(write.key().name),
                Cell::new(write_summary(write)),
            ]);
        }
    }
    Section { header: &["KEY", "VERB", "RESOURCE", "NAME", "SUMMARY"], rows }
}

fn clusters(planned: &[KeyPlan]) -> Section {
    let mut rows = Vec::new();
    for KeyPlan { key, plan, .. } in planned {
        for report in &plan.sources {
            rows.push(vec![
                Cell::new(key),
                Cell::new(&report.cluster),
                Cell::new(export_text(report.export)),
                Cell::new(report.n_slices),
                Cell::new(format!("{}, {} ready", report.n_endpoints, report.n_ready)),
                Cell::new(remarks(report).join("; ")),
            ]);
        }
    }
    Section { header: &["KEY", "CLUSTER", "EXPORT", "SLICES", "ENDPOINTS", "REMARKS"], rows }
}

fn conflicts(planned: &[KeyPlan]) -> Section {
    let mut rows = Vec::new();
    for KeyPlan { key, plan, .. } in planned {
        for conflict in &plan.conflicts {
            rows.push(vec![Cell::new(key), Cell::new(conflict.kind.as_str()), Cell::new(conflict)]);
        }
    }
    Section { header: &["KEY", "REASON", "MESSAGE"], rows }
}

fn export_text(export: ExportState) -> &'static str {
    match export {
        ExportState::NotExported => "none",
        ExportState::NoService => "NoService",
        ExportState::InvalidServiceType => "InvalidServiceType",
        ExportState::Valid => "valid",
    }
}

fn remarks(report: &SourceReport) -> Vec<String> {
    let SourceReport { state, is_passed_over, left_out_ports, demoted, .. } = report;
    let mut remarks = Vec::new();
    if *is_passed_over {
        remarks.push("no common address family".to_owned());
    }
    if !left_out_ports.is_empty() {
        remarks.push(format!("port left out: {}", joined(left_out_ports)));
    }
    if let SourceState::Demoted { .. } = state {
        remarks.push(match demoted.is_empty() {
            true => "lost, and nobody else has enough endpoints".to_owned(),
            false => "lost, its endpoints are not ready".to_owned(),
        });
    }
    remarks
}

fn joined(texts: &[SharedStr]) -> String {
    let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    texts.join(", ")
}

pub fn json(out: &mut dyn io::Write, planned: &[KeyPlan]) -> io::Result<()> {
    let imports: Vec<Value> = planned.iter().map(key_json).collect();
    let output = json!({ "formatVersion": FORMAT_VERSION, "imports": imports });
    serde_json::to_writer_pretty(&mut *out, &output)?;
    writeln!(out)
}

fn key_json(one: &KeyPlan) -> Value {
    let KeyPlan { key, writes, plan } = one;
    let conflicts = plan.conflicts.iter();
    let conflicts =
        conflicts.map(|one| json!({ "reason": one.kind.as_str(), "message": one.to_string() }));
    json!({
        "key": key.to_string(),
        "writes": writes.iter().map(write_json).collect::<Vec<_>>(),
        "conflicts": conflicts.collect::<Vec<_>>(),
        "clusters": plan.sources.iter().map(source_json).collect::<Vec<_>>(),
    })
}

fn write_json(write: &Write) -> Value {
    let object = write.object().map_or(Value::Null, to_json_value);
    json!({
        "verb": write.verb(),
        "resource": write.resource().as_str(),
        "name": &*write.key().name,
        "object": object,
    })
}

fn source_json(report: &SourceReport) -> Value {
    let SourceReport {
        cluster,
        state,
        export,
        exported_since,
        is_passed_over,
        left_out_ports,
        demoted,
        n_slices,
        n_endpoints,
        n_ready,
    } = report;
    json!({
        "cluster": cluster.as_str(),
        "state": state.as_str(),
        "export": export_text(*export),
        "exportedSince": exported_since.map(|at| at.to_string()),
        "isPassedOver": is_passed_over,
        "leftOutPorts": left_out_ports.iter().map(AsRef::as_ref).collect::<Vec<&str>>(),
        "demotedFamilies": demoted.iter().map(Family::to_string).collect::<Vec<_>>(),
        "slices": n_slices,
        "endpoints": n_endpoints,
        "ready": n_ready,
    })
}
