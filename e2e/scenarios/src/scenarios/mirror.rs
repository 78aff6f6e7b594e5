//! Endpoints that users write and the mirroring controller mirrors.

use serde_json::{Value, json};

use crate::convergence::Expected;
use crate::test_namespace::{Kind, TestNamespace};

fn manual_service(ns: &TestNamespace<'_>) {
    ns.service("db", &json!({"ports": [{"name": "sql", "port": 5432}]}));
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

pub fn lifecycle(ns: &mut TestNamespace<'_>) {
    // Endpoints without a Service are not mirrored.
    ns.create(Kind::Endpoints, &endpoints(&ready(&["192.168.0.1", "192.168.0.2"])));
    ns.converge(
        "before the Service",
        &[Expected::no_slices("db"), Expected::endpoints("db", "192.168.0.1 192.168.0.2")],
    );
    manual_service(ns);
    ns.converge("mirrored", &[Expected::slices("db", "192.168.0.1 192.168.0.2")]);
    ns.merge(
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
    ns.converge(
        "changed",
        &[
            Expected::slices("db", "192.168.0.2 192.168.0.3! 192.168.0.4"),
            Expected::shows(&["slices of", r#""port":5433"#]),
        ],
    );
    ns.merge(Kind::Endpoints, "db", &json!({
        "metadata": {"labels": {"team": null, "tier": "back"}, "annotations": {"example.com/n": "y"}},
        "subsets": ready(&["192.168.0.9"]),
    }));
    ns.converge(
        "relabelled",
        &[
            Expected::slices("db", "192.168.0.9"),
            Expected::shows(&["slices of", r#""tier":"back""#]),
            Expected::lacks(&["slices of", r#""team""#]),
            Expected::lacks(&["slices of", r#""port":5433"#]),
        ],
    );
    ns.merge(Kind::Endpoints, "db", &json!({"subsets": null}));
    ns.converge("emptied", &[Expected::endpoints("db", ""), Expected::lacks(&["192.168.0.9"])]);
    ns.merge(Kind::Endpoints, "db", &json!({"subsets": ready(&["192.168.0.9"])}));
    ns.converge("filled again", &[Expected::slices("db", "192.168.0.9")]);
    ns.delete(Kind::Endpoints, "db");
    ns.converge("deleted", &[Expected::no_slices("db"), Expected::no_endpoints("db")]);
    ns.create(Kind::Endpoints, &endpoints(&ready(&["192.168.0.10"])));
    ns.converge("created again", &[Expected::slices("db", "192.168.0.10")]);
}

pub fn both_families(ns: &mut TestNamespace<'_>) {
    manual_service(ns);
    let mixed = json!([{
        "addresses": [{"ip": "192.168.0.1"}, {"ip": "fd00::1"}, {"ip": "fd00:0:0::2"}],
        "notReadyAddresses": [{"ip": "fd00::3"}],
        "ports": [{"name": "sql", "port": 5432}],
    }]);
    ns.create(Kind::Endpoints, &endpoints(&mixed));
    ns.converge("mixed", &[Expected::slices("db", "192.168.0.1 fd00::1 fd00::2 fd00::3!")]);
    ns.merge(Kind::Endpoints, "db", &json!({"subsets": ready(&["fd00::7"])}));
    ns.converge("of one family", &[Expected::slices("db", "fd00::7")]);
}

pub fn skip_label_on_and_off(ns: &mut TestNamespace<'_>) {
    manual_service(ns);
    ns.create(Kind::Endpoints, &endpoints(&ready(&["192.168.0.1"])));
    ns.converge("mirrored", &[Expected::slices("db", "192.168.0.1")]);
    let skip = |value: Value| json!({"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": value}}});
    ns.merge(Kind::Endpoints, "db", &skip(json!("true")));
    ns.converge("skipped", &[Expected::no_slices("db")]);
    ns.merge(Kind::Endpoints, "db", &json!({"subsets": ready(&["192.168.0.2"])}));
    ns.converge("changed while skipped", &[Expected::no_slices("db")]);
    ns.merge(Kind::Endpoints, "db", &skip(Value::Null));
    ns.converge("mirrored again", &[Expected::slices("db", "192.168.0.2")]);
}

pub fn recreated_at_once(ns: &mut TestNamespace<'_>) {
    manual_service(ns);
    ns.create(Kind::Endpoints, &endpoints(&ready(&["192.168.0.1"])));
    ns.converge("at first", &[Expected::slices("db", "192.168.0.1")]);
    ns.delete(Kind::Endpoints, "db");
    ns.create(Kind::Endpoints, &endpoints(&ready(&["192.168.0.2"])));
    ns.converge(
        "recreated",
        &[
            Expected::slices("db", "192.168.0.2"),
            Expected::lacks(&[r#""kind":"Endpoints""#, r#""uid":"stale""#]),
        ],
    );
}

/// Deleting a Service also deletes Endpoints that a user wrote, and their mirrored slices.
pub fn service_deleted(ns: &mut TestNamespace<'_>) {
    manual_service(ns);
    ns.create(Kind::Endpoints, &endpoints(&ready(&["192.168.0.1"])));
    ns.converge("mirrored", &[Expected::slices("db", "192.168.0.1")]);
    ns.delete(Kind::Service, "db");
    ns.converge("deleted", &[Expected::no_slices("db"), Expected::no_endpoints("db")]);
    manual_service(ns);
    ns.converge("created again", &[Expected::no_slices("db"), Expected::no_endpoints("db")]);
    ns.create(Kind::Endpoints, &endpoints(&ready(&["192.168.0.1"])));
    ns.converge("with Endpoints again", &[Expected::slices("db", "192.168.0.1")]);
}
