//! Endpoints that people write, through their whole life.

use serde_json::{Value, json};

use crate::settle::Wanted;
use crate::stage::{Kind, Stage};

fn manual_service(stage: &Stage<'_>) {
    stage.service("db", &json!({"ports": [{"name": "sql", "port": 5432}]}));
}

fn endpoints(subsets: &Value) -> Value {
    json!({
        "metadata": {
            "name": "db", "labels": {"team": "shop"}, "annotations": {"example.com/note": "x"},
        },
        "subsets": subsets,
    })
}

fn ready(ips: &[&str]) -> Value {
    let addresses: Vec<Value> = ips.iter().map(|ip| json!({ "ip": ip })).collect();
    json!([{"addresses": addresses, "ports": [{"name": "sql", "port": 5432}]}])
}

pub fn whole_life(stage: &mut Stage<'_>) {
    // Endpoints without a Service are nobody's business while they wait for one.
    stage.create(Kind::Endpoints, &endpoints(&ready(&["192.168.0.1", "192.168.0.2"])));
    stage.settle(
        "before the Service",
        &[Wanted::no_slices("db"), Wanted::endpoints("db", "192.168.0.1 192.168.0.2")],
    );
    manual_service(stage);
    stage.settle("mirrored", &[Wanted::slices("db", "192.168.0.1 192.168.0.2")]);
    stage.merge(
        Kind::Endpoints,
        "db",
        &json!({"subsets": [
            {
                "addresses": [{"ip": "192.168.0.2", "hostname": "two", "nodeName": "far"}],
                "notReadyAddresses": [{"ip": "192.168.0.3"}],
                "ports": [{"name": "sql", "port": 5432, "appProtocol": "postgres"}],
            },
            {"addresses": [{"ip": "192.168.0.4"}], "ports": [{"name": "sql", "port": 5433}]},
        ]}),
    );
    stage.settle(
        "changed",
        &[
            Wanted::slices("db", "192.168.0.2 192.168.0.3! 192.168.0.4"),
            Wanted::shows(&["slices of", r#""port":5433"#]),
        ],
    );
    stage.merge(Kind::Endpoints, "db", &json!({
        "metadata": {"labels": {"team": null, "tier": "back"}, "annotations": {"example.com/n": "y"}},
        "subsets": ready(&["192.168.0.9"]),
    }));
    stage.settle(
        "relabelled",
        &[
            Wanted::slices("db", "192.168.0.9"),
            Wanted::shows(&["slices of", r#""tier":"back""#]),
            Wanted::lacks(&["slices of", r#""team""#]),
            Wanted::lacks(&["slices of", r#""port":5433"#]),
        ],
    );
    stage.merge(Kind::Endpoints, "db", &json!({"subsets": null}));
    stage.settle("emptied", &[Wanted::endpoints("db", ""), Wanted::lacks(&["192.168.0.9"])]);
    stage.merge(Kind::Endpoints, "db", &json!({"subsets": ready(&["192.168.0.9"])}));
    stage.settle("filled again", &[Wanted::slices("db", "192.168.0.9")]);
    stage.delete(Kind::Endpoints, "db");
    stage.settle("deleted", &[Wanted::no_slices("db"), Wanted::no_endpoints("db")]);
    stage.create(Kind::Endpoints, &endpoints(&ready(&["192.168.0.10"])));
    stage.settle("created again", &[Wanted::slices("db", "192.168.0.10")]);
}

pub fn both_families(stage: &mut Stage<'_>) {
    manual_service(stage);
    let mixed = json!([{
        "addresses": [{"ip": "192.168.0.1"}, {"ip": "fd00::1"}, {"ip": "fd00:0:0::2"}],
        "notReadyAddresses": [{"ip": "fd00::3"}],
        "ports": [{"name": "sql", "port": 5432}],
    }]);
    stage.create(Kind::Endpoints, &endpoints(&mixed));
    stage.settle("mixed", &[Wanted::slices("db", "192.168.0.1 fd00::1 fd00::2 fd00::3!")]);
    stage.merge(Kind::Endpoints, "db", &json!({"subsets": ready(&["fd00::7"])}));
    stage.settle("of one family", &[Wanted::slices("db", "fd00::7")]);
}

pub fn skip_label_on_and_off(stage: &mut Stage<'_>) {
    manual_service(stage);
    stage.create(Kind::Endpoints, &endpoints(&ready(&["192.168.0.1"])));
    stage.settle("mirrored", &[Wanted::slices("db", "192.168.0.1")]);
    let skip = |value: Value| json!({"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": value}}});
    stage.merge(Kind::Endpoints, "db", &skip(json!("true")));
    stage.settle("skipped", &[Wanted::no_slices("db")]);
    stage.merge(Kind::Endpoints, "db", &json!({"subsets": ready(&["192.168.0.2"])}));
    stage.settle("changed while skipped", &[Wanted::no_slices("db")]);
    stage.merge(Kind::Endpoints, "db", &skip(Value::Null));
    stage.settle("mirrored again", &[Wanted::slices("db", "192.168.0.2")]);
}

pub fn recreated_at_once(stage: &mut Stage<'_>) {
    manual_service(stage);
    stage.create(Kind::Endpoints, &endpoints(&ready(&["192.168.0.1"])));
    stage.settle("at first", &[Wanted::slices("db", "192.168.0.1")]);
    stage.delete(Kind::Endpoints, "db");
    stage.create(Kind::Endpoints, &endpoints(&ready(&["192.168.0.2"])));
    stage.settle(
        "recreated",
        &[
            Wanted::slices("db", "192.168.0.2"),
            Wanted::lacks(&[r#""kind":"Endpoints""#, r#""uid":"stale""#]),
        ],
    );
}

/// With their Service go the Endpoints that people wrote, and the slices with them.
pub fn service_deleted(stage: &mut Stage<'_>) {
    manual_service(stage);
    stage.create(Kind::Endpoints, &endpoints(&ready(&["192.168.0.1"])));
    stage.settle("mirrored", &[Wanted::slices("db", "192.168.0.1")]);
    stage.delete(Kind::Service, "db");
    stage.settle("deleted", &[Wanted::no_slices("db"), Wanted::no_endpoints("db")]);
    manual_service(stage);
    stage.settle("created again", &[Wanted::no_slices("db"), Wanted::no_endpoints("db")]);
    stage.create(Kind::Endpoints, &endpoints(&ready(&["192.168.0.1"])));
    stage.settle("with Endpoints again", &[Wanted::slices("db", "192.168.0.1")]);
}
