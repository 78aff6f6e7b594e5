//! `endpointd plan` as people run it: the real binary, small files, what it prints and how it ends.

use crate::run::objects::{ENDPOINTS, FAILED_POD, LOST_POD, NODE, OLD_SLICE, POD, SERVICE};
use crate::run::{self, Ran, plan, plan_stdin};
use expect_test::expect_file;
use serde_json::{Value, json};

fn stream(documents: &[&str]) -> String {
    documents.join("---")
}

fn shop() -> String {
    stream(&[SERVICE, POD, FAILED_POD, NODE, OLD_SLICE, ENDPOINTS])
}

/// Service `name` in `default` for one pod; the smallest JSON that plans something.
fn json_service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "uid": name},
        "spec": {"clusterIP": "10.96.0.2", "selector": {"app": name}, "ports": [{"port": 80}]}})
}

/// Verb, resource, and name of every write, with key and controller.
fn writes(ran: &Ran) -> Vec<String> {
    let mut lines = Vec::new();
    for plan in ran.json()["plans"].as_array().expect("plans") {
        for write in plan["writes"].as_array().expect("writes") {
            let text = |value: &Value| value.as_str().expect("text").to_owned();
            let words = [&plan["controller"], &plan["key"], &write["verb"], &write["resource"]];
            lines.push(words.map(text).join(" "));
        }
    }
    lines
}

/// Keys with controllers, in the order they are printed.
fn planned(ran: &Ran) -> Vec<String> {
    let plans = ran.json();
    let plans = plans["plans"].as_array().expect("plans").iter();
    let word = |value: &Value| value.as_str().expect("text").to_owned();
    plans.map(|plan| format!("{} {}", word(&plan["key"]), word(&plan["controller"]))).collect()
}

#[test]
fn the_table_says_what_would_be_written_and_why() {
    let documents = [&shop(), LOST_POD];
    let ran = plan(&[("world.yaml", &stream(&documents))], &["-f", "world.yaml"]).succeeded();
    expect_file!["plan.txt"].assert_eq(&ran.out);
    assert_eq!(ran.err, "planned 1 key: 1 create, 1 update, 1 delete\n");
}

#[test]
fn nothing_to_write_is_said() {
    let external = "
apiVersion: v1
kind: Service
metadata: {name: away}
spec: {type: ExternalName, externalName: example.com}
";
    let ran = plan(&[("a.yaml", external)], &["-f", "a.yaml"]).succeeded();
    assert_eq!(ran.out, "nothing to write\n");
    assert_eq!(ran.err, "planned 1 key: 0 creates, 0 updates, 0 deletes\n");
}

#[test]
fn the_json_is_complete() {
    let args = ["-f", "world.yaml", "-o", "json"];
    let world = stream(&[&shop(), LOST_POD]);
    let ran = plan(&[("world.yaml", &world)], &args).succeeded();
    expect_file!["plan.json"].assert_eq(&ran.out);
}

#[test]
fn order_of_documents_and_files_does_not_matter() {
    let documents = [SERVICE, POD, FAILED_POD, NODE, OLD_SLICE, ENDPOINTS];
    let want = plan(&[("a.yaml", &stream(&documents))], &["-f", "a.yaml", "-o", "json"]);
    for turn in 0..documents.len() {
        let mut turned = documents;
        turned.rotate_left(turn);
        turned[1..].reverse();
        let (first, second) = turned.split_at(3);
        let files = [("a.yaml", &*stream(first)), ("b.yaml", &*stream(second))];
        let ran = plan(&files, &["-o", "json", "-f", "a.yaml", "b.yaml"]).succeeded();
        assert_eq!(ran.out, want.out, "turned by {turn}");
    }
}

#[test]
fn every_shape_of_input_reads_the_same() {
    let (a, b) = (json_service("a"), json_service("b"));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [a, b]});
    let mut bare = [a.clone(), b.clone()];
    for item in &mut bare {
        let item = item.as_object_mut().expect("an object");
        item.remove("kind");
        item.remove("apiVersion");
    }
    let typed = json!({"items": bare, "apiVersion": "v1", "kind": "ServiceList"});
    let nested = json!({"kind": "List", "apiVersion": "v1", "items": [a, typed]});
    let indented = serde_json::to_string_pretty(&list).expect("JSON");
    let want = ["default/a endpointslice", "default/a endpoints", "default/b endpointslice"];
    let want = [&want[..], &["default/b endpoints"]].concat();
    for (shape, text) in [
        ("JSON stream", format!("{a}{b}")),
        ("JSON lines", format!("{a}\n{b}\n")),
        ("JSON list", list.to_string()),
        ("indented JSON list", indented),
        ("typed list", typed.to_string()),
        ("list in a list", nested.to_string()),
        ("YAML stream of JSON", format!("---\n{a}\n---\n{b}\n...\n")),
        ("JSON between lines", format!("{a}\n---\n{b}\n")),
        ("byte order mark", format!("\u{feff}{list}")),
        ("null documents", format!("---\n---\n{a}\n---\nnull\n---\n# text\n---\n{b}\n")),
        ("windows", format!("# text\r\n---\r\n{a}\r\n---\r\n{b}\r\n")),
    ] {
        let ran = plan(&[("in", &text)], &["-f", "in", "-o", "json"]).succeeded();
        assert_eq!(planned(&ran), want, "{shape}");
        let ran = plan_stdin(&text, &["-f", "-", "-o", "json"]).succeeded();
        assert_eq!(planned(&ran), want, "{shape} by standard input");
    }
}

/// In the shape of `kubectl get -A -o yaml`: `items` before `kind`, block scalars, quoted numbers.
#[test]
fn output_of_kubectl_is_read() {
    let text = include_str!("kubectl.yaml");
    let ran = plan(&[("dump.yaml", text)], &["-f", "dump.yaml"]).succeeded();
    expect_file!["kubectl.txt"].assert_eq(&ran.out);
    assert_eq!(ran.err, "planned 2 keys: 2 creates, 0 updates, 0 deletes\n");
}

#[test]
fn yaml_means_what_version_1_2_says() {
    let service = "
apiVersion: v1
kind: Service
metadata:
  name: web
  labels: &labels {a: yes, b: on, c: no, d: None, e: \"123\", f: !!str 123, 'g': 't'}
";
    let text = format!(
        "{service}spec:
  clusterIP: None
  selector:
    <<: *labels
    a: other
  ports: [{{port: 80}}]
---
apiVersion: v1
kind: Pod
metadata:
  name: p
  labels: {{a: other, b: on, c: no, d: None, e: \"123\", f: \"123\", g: t}}
spec: {{nodeName: n}}
status: {{podIPs: [{{ip: 10.0.0.1}}]}}
---
{{apiVersion: v1, kind: Node, metadata: {{name: n}}}}
"
    );
    let args = ["-f", "a.yaml", "-o", "json", "--controllers", "endpointslice"];
    let ran = plan(&[("a.yaml", &text)], &args).succeeded();
    let slices = ran.json();
    let slices = slices["plans"][0]["writes"].as_array().expect("writes").clone();
    let slice = slices.iter().find(|write| write["object"]["addressType"] == "IPv4");
    let slice = &slice.expect("one of each family")["object"];
    assert_eq!(slice["endpoints"][0]["addresses"], json!(["10.0.0.1"]), "the selector matches");
    let labels = &slice["metadata"]["labels"];
    for (key, want) in [("a", "yes"), ("b", "on"), ("c", "no"), ("d", "None"), ("e", "123")] {
        assert_eq!(labels[key], want, "{key}");
    }
    assert_eq!(labels["service.kubernetes.io/headless"], "", "`None` is text");
}

#[test]
fn other_kinds_are_ignored() {
    let deployment = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
items: not a list
";
    let knative = "{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: other}}";
    let alone = format!("{deployment}---\n{knative}");
    let ran = plan(&[("a.yaml", &alone)], &["-f", "a.yaml", "-o", "json"]).succeeded();
    assert_eq!(ran.json(), json!({"plans": []}));
    ran.says(
        "note: the input has no Service and no Endpoints to plan; ignored: 1 of kind \
        `Deployment`, 1 of kind `Service`",
    );
    let both = stream(&[deployment, SERVICE]);
    let ran = plan(&[("a.yaml", &both)], &["-f", "a.yaml", "-o", "json"]).succeeded();
    assert_eq!(planned(&ran), ["shop/web endpointslice", "shop/web endpoints"]);
    assert!(!ran.err.contains("ignored"), "{}", ran.err);
}

#[test]
fn a_malformed_object_does_not_take_its_neighbours_along() {
    let bad_pod = "
apiVersion: v1
kind: Pod
metadata: {name: broken, namespace: shop}
status: {podIPs: 7}
";
    let bad_service = "
apiVersion: v1
kind: Service
metadata: {name: bad, namespace: shop}
spec: {ports: true}
";
    let its_endpoints = ENDPOINTS.replace("name: web", "name: bad");
    let nameless = "
apiVersion: v1
kind: Pod
metadata: {namespace: shop}
";
    let documents = [bad_pod, SERVICE, bad_service, &its_endpoints, nameless, POD, NODE];
    let args = ["-f", "a.yaml", "-o", "json"];
    let ran = plan(&[("a.yaml", &stream(&documents))], &args).succeeded();
    ran.says("warning: left out: malformed Pod `shop/broken`: `status.podIPs`: invalid type");
    ran.says("warning: left out and not planned: malformed Service `shop/bad`: `spec.ports`: ");
    ran.says("warning: left out: malformed Pod");
    ran.says("`metadata.name`: missing");
    assert_eq!(
        planned(&ran),
        ["shop/web endpointslice", "shop/web endpoints"],
        "Endpoints must not be deleted because their Service cannot be read"
    );
    let ran = plan(&[("a.yaml", &stream(&documents))], &["-f", "a.yaml", "--service", "shop/bad"]);
    ran.refused("cannot plan what is malformed: `shop/bad`", "correct the object");
}

#[test]
fn items_without_a_kind_are_reported_and_the_rest_is_planned() {
    let list = json!({"apiVersion": "v1", "kind": "List",
        "items": [{"metadata": {"name": "what"}}, json_service("a"), 7]});
    let ran = plan(&[("a.json", &list.to_string())], &["-f", "a.json", "-o", "json"]).succeeded();
    assert_eq!(planned(&ran), ["default/a endpointslice", "default/a endpoints"]);
    ran.says("warning: left out: malformed object `what`: `apiVersion`: missing");
    ran.says("not a Kubernetes object");
}

#[test]
fn what_cannot_be_planned_is_refused_with_a_hint() {
    let needs = "every document needs `apiVersion` and `kind`";
    let syntax = "expected is YAML or JSON";
    let kubectl = "`kubectl get svc,pod,node,endpoints,endpointslices -A -o yaml`";
    let bomb = (0..9).fold("a0: &a0 [x, x, x, x, x, x, x, x]\n".to_owned(), |text, n| {
        let aliases = vec![format!("*a{n}"); 9].join(", ");
        format!("{text}a{}: &a{} [{aliases}]\n", n + 1, n + 1)
    });
    let heavy = format!("a: &a {}\nb: [{}]", "x".repeat(1 << 20), vec!["*a"; 99].join(", "));
    let deep: String = (0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    for (text, error, hint) in [
        ("", "the input is empty: `in`", kubectl),
        ("# nothing\n---\n", "the input is empty: `in`", kubectl),
        ("hello", "document 1 of `in` is not a Kubernetes object: bare text", needs),
        ("- a", "document 1 of `in` is not a Kubernetes object: a bare list", needs),
        ("[1]", "document 1 of `in` is not a Kubernetes object: a bare list", needs),
        ("{} 7", "document 1 of `in` is not a Kubernetes object: no `apiVersion`", needs),
        (
            "{\"apiVersion\": \"v1\", \"kind\": \"X\"} 7",
            "document 2 of `in` is not a Kubernetes object: a bare number",
            needs,
        ),
        (
            "apiVersion: v1\nkind: X\n---\napiVersion: v1\nmetadata: {name: a}",
            "document 2 of `in` is not a Kubernetes object: no `kind`",
            needs,
        ),
        ("apiVersion: v1\nkind: @", "cannot parse `in`, line 2, column 7: ", syntax),
        ("a:\n\tb: 2", "cannot parse `in`, line 2, column ", syntax),
        ("{\"apiVersion\": \"v1\",", "cannot parse `in`, line 1, column 20: EOF", syntax),
        ("{\"a\": 1,\n \"b\": ]}", "cannot parse `in`, line 2, column 7: expected value", syntax),
        ("a: 1\na: 2", "cannot parse `in`, line 2, column 1: the key is there twice: `a`", syntax),
        ("a: &a [*a]", "an alias to something that is not complete", syntax),
        ("a: *b", "cannot parse `in`, line 1, column ", syntax),
        (&bomb, "aliases stand for more than 64 MiB", syntax),
        (&heavy, "aliases stand for more than 64 MiB", syntax),
        (&deep, "nested more than 128 levels deep", syntax),
        (&format!("a: {}", "[".repeat(100_000)), "recursion limit exceeded", syntax),
        (&"{\"a\":".repeat(100_000), "recursion limit exceeded", syntax),
    ] {
        let ran = plan(&[("in", text)], &["-f", "in"]);
        ran.refused(error, hint);
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_a_hint() {
    plan(&[], &["-f", "nosuch.yaml"])
        .refused("cannot read `nosuch.yaml`: no such file or directory", "`-f` takes files");
    plan(&[("notes.txt", "")], &["-f", "."])
        .refused("there is no file to read in a directory: `.`", "json, yaml, yml");
    plan_stdin("", &["-f", "-"]).refused("the input is empty: standard input", "kubectl");
    plan_stdin("a: [", &["-f", "-"]).refused("cannot parse standard input, line ", "expected");
    plan_stdin(b"a: \xff", &["-f", "-"])
        .refused("standard input is not UTF-8: wrong from byte 3", "UTF-8");
    assert_eq!(plan(&[], &[]).code, Some(2), "`-f` is required");
}

#[test]
fn a_directory_stands_for_its_files() {
    let (a, b) = (json_service("a").to_string(), json_service("b").to_string());
    let files = [("b.json", &*b), ("a.yml", &*a), ("notes.txt", "no YAML: [")];
    let ran = plan(&files, &["-f", ".", "-o", "json", "--controllers=endpointslice"]).succeeded();
    assert_eq!(planned(&ran), ["default/a endpointslice", "default/b endpointslice"]);
}

#[test]
fn limits_are_checked() {
    for flag in ["max-endpoints-per-slice", "mirroring-max-endpoints-per-subset"] {
        for value in ["0", "1001", "-1", "many", "", "1.5", "99999999999999999999"] {
            let flag_value = format!("--{flag}={value}");
            let ran = plan(&[("a.yaml", SERVICE)], &["-f", "a.yaml", &flag_value]);
            let error = format!("`--{flag}` must be a number from 1 to 1000: `{value}`");
            ran.refused(&error, "without the flag it is 100");
            let ran = plan(&[("a.yaml", SERVICE)], &["-f", "a.yaml", &format!("--{flag}"), value]);
            ran.refused(&error, "without the flag it is 100");
        }
        for value in ["1", "1000"] {
            let flag_value = format!("--{flag}={value}");
            plan(&[("a.yaml", SERVICE)], &["-f", "a.yaml", &flag_value]).succeeded();
        }
    }
}

#[test]
fn limits_are_used() {
    let second = POD.replace("web-a", "web-b").replace("10.0.0.1", "10.0.0.2");
    let world = stream(&[SERVICE, POD, &second, NODE]);
    for (limit, want) in [("1", 2), ("2", 1)] {
        let args = ["-f", "a", "-o", "json", "--controllers=endpointslice"];
        let limit = format!("--max-endpoints-per-slice={limit}");
        let ran = plan(&[("a", &world)], &[&args[..], &[&limit]].concat()).succeeded();
        assert_eq!(writes(&ran).len(), want, "{limit}");
    }
    let manual = SERVICE.replace("selector", "nothing");
    let world = stream(&[&manual, ENDPOINTS]);
    for (limit, want) in [("1", 1), ("2", 2)] {
        let args = ["-f", "a", "-o", "json", "--controllers=endpointslicemirroring"];
        let limit = format!("--mirroring-max-endpoints-per-subset={limit}");
        let ran = plan(&[("a", &world)], &[&args[..], &[&limit]].concat()).succeeded();
        let endpoints = &ran.json()["plans"][0]["writes"][0]["object"]["endpoints"];
        assert_eq!(endpoints.as_array().map(Vec::len), Some(want), "{limit}");
    }
}

#[test]
fn controllers_are_chosen_as_in_kube_controller_manager() {
    let all = ["endpointslice", "endpoints", "mirroring"];
    for (list, want) in [
        ("*", &all[..]),
        ("endpointslice-controller", &all[..1]),
        ("endpointslice", &all[..1]),
        ("endpoint", &all[1..2]),
        ("endpoints-controller", &all[1..2]),
        ("endpointslicemirroring", &all[2..]),
        ("endpointslice-mirroring-controller,endpoint", &all[1..]),
        ("*,-endpointslice", &all[1..]),
        ("-endpointslice-mirroring-controller,*", &all[..2]),
        // The first word about a controller counts.
        ("endpoint,-endpoint", &all[1..2]),
        ("-endpoint,endpoint,*,-endpointslicemirroring", &all[..1]),
        ("-endpoint", &[]),
    ] {
        let world = stream(&[SERVICE, ENDPOINTS]);
        let ran = plan(&[("a", &world)], &["-f", "a", "-o", "json", "--controllers", list]);
        let ran = ran.succeeded();
        let want: Vec<String> = want.iter().map(|word| format!("shop/web {word}")).collect();
        assert_eq!(planned(&ran), want, "{list}");
    }
    plan(&[("a", SERVICE)], &["-f", "a", "--controllers", "*,-endpoints"]).refused(
        "`--controllers` names an unknown controller: `endpoints`",
        "known are `*`, `endpointslice-controller` (`endpointslice`), `endpoints-controller` \
         (`endpoint`), `endpointslice-mirroring-controller` (`endpointslicemirroring`)",
    );
}

#[test]
fn a_service_is_chosen_by_name() {
    let other = json_service("other").to_string();
    let files = [("a", &*shop()), ("b", &*other)];
    let plan = |args: &[&str]| run::plan(&files, &[&["-f", "a", "b", "-o", "json"], args].concat());
    let three =
        |key: &str| ["endpointslice", "endpoints", "mirroring"].map(|c| format!("{key} {c}"));
    let ran = plan(&["--service", "shop/web"]).succeeded();
    assert_eq!(planned(&ran), three("shop/web"));
    let ran = plan(&["--service", "shop/web", "--service", "other"]).succeeded();
    assert_eq!(planned(&ran), [three("default/other"), three("shop/web")].concat());
    // One that left no trace is planned as gone, and pointed out.
    for (name, hint) in
        [("web", "did you mean `--service shop/web`?"), ("shop/wbe", "check the name")]
    {
        let ran = plan(&["--service", name]).succeeded();
        assert!(ran.err.contains("no Service, Endpoints, or slice for"), "{}", ran.err);
        assert!(ran.err.contains(hint), "{}", ran.err);
        assert!(!ran.out.contains("\"verb\""), "{}", ran.out);
    }
    for text in ["", "/", "a/", "/a", "a/b/c"] {
        plan(&["--service", text])
            .refused("`--service` must be `namespace/name` or", "for example");
    }
}

#[test]
fn a_service_that_is_gone_is_planned() {
    let args = ["-f", "a", "-o", "json", "--service", "shop/web"];
    let ran = plan(&[("a", ENDPOINTS)], &args).succeeded();
    assert_eq!(writes(&ran), ["endpoints shop/web delete endpoints"]);
    let delete = ran.json()["plans"][1]["writes"][0].clone();
    assert_eq!(
        delete,
        json!({"verb": "delete", "resource": "endpoints", "name": "web", "object": null,
            "uid": "endpoints-uid", "resourceVersion": "7"})
    );
    let ran = plan(&[("a", OLD_SLICE)], &args).succeeded();
    assert_eq!(planned(&ran).len(), 3, "a slice is a trace too");
}

#[test]
fn what_has_no_namespace_is_in_default() {
    let world = stream(&[SERVICE, POD, NODE]).replace(", namespace: shop", "");
    let ran = plan(&[("a", &world)], &["-f", "a", "-o", "json"]).succeeded();
    assert_eq!(planned(&ran), ["default/web endpointslice", "default/web endpoints"]);
    let slice = &ran.json()["plans"][0]["writes"][0]["object"];
    assert_eq!(slice["metadata"]["namespace"], "default");
    assert_eq!(slice["endpoints"][0]["targetRef"]["namespace"], "default");
    assert_eq!(slice["endpoints"][0]["zone"], "a", "the node is found by its bare name");
}

#[test]
fn a_contradiction_is_pointed_out() {
    let twice = stream(&[SERVICE, POD, POD, NODE]);
    let ran = plan(&[("a", &twice)], &["-f", "a"]).succeeded();
    assert!(!ran.err.contains("warning"), "the same twice is no contradiction: {}", ran.err);
    let moved = POD.replace("10.0.0.1", "10.0.0.2");
    let ran = plan(&[("a", &stream(&[SERVICE, POD, &moved, NODE]))], &["-f", "a", "-o", "json"]);
    ran.says("warning: two different objects of one name, the last counts: Pod `shop/web-a`");
    let endpoint = &ran.json()["plans"][0]["writes"][0]["object"]["endpoints"][0];
    assert_eq!(endpoint["addresses"], json!(["10.0.0.2"]));
}

#[test]
fn forgotten_nodes_are_pointed_out() {
    let world = stream(&[SERVICE, POD]);
    plan(&[("a", &world)], &["-f", "a"]).succeeded().says("note: the input has pods but no nodes");
    let ran = plan(&[("a", &world)], &["-f", "a", "--controllers=endpoint"]).succeeded();
    assert!(!ran.err.contains("note"), "Endpoints need no nodes: {}", ran.err);
}

#[test]
fn help_and_version_are_there() {
    let alone = run::run(&[], &[], b"");
    assert!(alone.err.contains("Usage: endpointd <COMMAND>"), "{}", alone.err);
    let version = run::run(&[], &["--version"], b"").succeeded();
    assert_eq!(version.out, format!("endpointd {}\n", env!("CARGO_PKG_VERSION")));
    let help = plan(&[], &["--help"]).succeeded();
    for part in ["kubectl get svc,pod", "[default: 100]", "[default: 1000]", "Exit code"] {
        assert!(help.out.contains(part), "{part}: {}", help.out);
    }
}
