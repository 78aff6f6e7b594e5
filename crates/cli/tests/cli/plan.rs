//! `endpointd plan` as a process: output, messages, and exit codes for small files.

use crate::run::objects::{ENDPOINTS, FAILED_POD, LOST_POD, NODE, OLD_SLICE, POD, SERVICE};
use crate::run::{self, CommandOutput, plan, plan_stdin};
use expect_test::expect_file;
use serde_json::{Value, json};

fn stream(documents: &[&str]) -> String {
    documents.join("---")
}

fn shop() -> String {
    stream(&[SERVICE, POD, FAILED_POD, NODE, OLD_SLICE, ENDPOINTS])
}

/// Service `name` in `default` for one pod; the smallest JSON with a plan.
fn json_service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "uid": name},
        "spec": {"clusterIP": "10.96.0.2", "selector": {"app": name}, "ports": [{"port": 80}]}})
}

/// Controller, key, verb, and resource of every write.
fn writes(output: &CommandOutput) -> Vec<String> {
    let mut lines = Vec::new();
    for plan in output.json()["plans"].as_array().expect("plans") {
        for write in plan["writes"].as_array().expect("writes") {
            let text = |value: &Value| value.as_str().expect("text").to_owned();
            let words = [&plan["controller"], &plan["key"], &write["verb"], &write["resource"]];
            lines.push(words.map(text).join(" "));
        }
    }
    lines
}

/// Keys and controllers, in the order of the output.
fn planned(output: &CommandOutput) -> Vec<String> {
    let plans = output.json();
    let plans = plans["plans"].as_array().expect("plans").iter();
    let word = |value: &Value| value.as_str().expect("text").to_owned();
    plans.map(|plan| format!("{} {}", word(&plan["key"]), word(&plan["controller"]))).collect()
}

#[test]
fn the_table_shows_writes_events_and_excluded_pods() {
    let documents = [&shop(), LOST_POD];
    let output =
        plan(&[("cluster.yaml", &stream(&documents))], &["-f", "cluster.yaml"]).succeeded();
    expect_file!["plan.txt"].assert_eq(&output.out);
    assert_eq!(output.err, "planned 1 key: 1 create, 1 update, 1 delete\n");
}

#[test]
fn a_plan_without_writes_prints_nothing_to_write() {
    let external = "
apiVersion: v1
kind: Service
metadata: {name: away}
spec: {type: ExternalName, externalName: example.com}
";
    let output = plan(&[("a.yaml", external)], &["-f", "a.yaml"]).succeeded();
    assert_eq!(output.out, "nothing to write\n");
    assert_eq!(output.err, "planned 1 key: 0 creates, 0 updates, 0 deletes\n");
}

#[test]
fn the_exit_code_says_whether_something_is_written() {
    let files = [("a.yaml", shop())];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, &**text)).collect();
    assert_eq!(plan(&files, &["-f", "a.yaml"]).code, Some(0));
    assert_eq!(plan(&files, &["-f", "a.yaml", "--exit-code"]).code, Some(1));
    assert_eq!(plan(&[("a.yaml", NODE)], &["-f", "a.yaml", "--exit-code"]).code, Some(0));
}

#[test]
fn the_json_contains_the_whole_plan() {
    let args = ["-f", "cluster.yaml", "-o", "json"];
    let cluster = stream(&[&shop(), LOST_POD]);
    let output = plan(&[("cluster.yaml", &cluster)], &args).succeeded();
    expect_file!["plan.json"].assert_eq(&output.out);
}

#[test]
fn the_order_of_documents_and_files_does_not_matter() {
    let documents = [SERVICE, POD, FAILED_POD, NODE, OLD_SLICE, ENDPOINTS];
    let want = plan(&[("a.yaml", &stream(&documents))], &["-f", "a.yaml", "-o", "json"]);
    for turn in 0..documents.len() {
        let mut turned = documents;
        turned.rotate_left(turn);
        turned[1..].reverse();
        let (first, second) = turned.split_at(3);
        let files = [("a.yaml", &*stream(first)), ("b.yaml", &*stream(second))];
        let output = plan(&files, &["-o", "json", "-f", "a.yaml", "b.yaml"]).succeeded();
        assert_eq!(output.out, want.out, "turned by {turn}");
    }
}

#[test]
fn all_input_formats_give_the_same_plan() {
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
        let output = plan(&[("in", &text)], &["-f", "in", "-o", "json"]).succeeded();
        assert_eq!(planned(&output), want, "{shape}");
        let output = plan_stdin(&text, &["-f", "-", "-o", "json"]).succeeded();
        assert_eq!(planned(&output), want, "{shape} by standard input");
    }
}

/// In the format of `kubectl get -A -o yaml`: `items` before `kind`, block scalars, quoted numbers.
#[test]
fn kubectl_output_is_accepted() {
    let text = include_str!("kubectl.yaml");
    let output = plan(&[("dump.yaml", text)], &["-f", "dump.yaml"]).succeeded();
    expect_file!["kubectl.txt"].assert_eq(&output.out);
    assert_eq!(output.err, "planned 2 keys: 2 creates, 0 updates, 0 deletes\n");
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
    let output = plan(&[("a.yaml", &text)], &args).succeeded();
    let slices = output.json();
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
fn objects_of_other_kinds_are_ignored() {
    let deployment = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
items: not a list
";
    let knative = "{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: other}}";
    let alone = format!("{deployment}---\n{knative}");
    let output = plan(&[("a.yaml", &alone)], &["-f", "a.yaml", "-o", "json"]).succeeded();
    assert_eq!(output.json(), json!({"formatVersion": "1.0", "plans": []}));
    output.logs(
        "note: the input has no Service and no Endpoints to plan; ignored: 1 of kind \
        `Deployment`, 1 of kind `Service`",
    );
    let both = stream(&[deployment, SERVICE]);
    let output = plan(&[("a.yaml", &both)], &["-f", "a.yaml", "-o", "json"]).succeeded();
    assert_eq!(planned(&output), ["shop/web endpointslice", "shop/web endpoints"]);
    assert!(!output.err.contains("ignored"), "{}", output.err);
}

#[test]
fn a_malformed_object_does_not_affect_its_neighbours() {
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
    let output = plan(&[("a.yaml", &stream(&documents))], &args).succeeded();
    output.logs("warning: excluded: malformed Pod `shop/broken`: `status.podIPs`: invalid type");
    output.logs("warning: excluded and not planned: malformed Service `shop/bad`: `spec.ports`: ");
    output.logs("warning: excluded: malformed Pod");
    output.logs("`metadata.name`: missing");
    assert_eq!(
        planned(&output),
        ["shop/web endpointslice", "shop/web endpoints"],
        "Endpoints must not be deleted because their Service cannot be read"
    );
    let output =
        plan(&[("a.yaml", &stream(&documents))], &["-f", "a.yaml", "--service", "shop/bad"]);
    output.fails_with("cannot plan a malformed object: `shop/bad`", "correct the object");
}

#[test]
fn items_without_a_kind_are_reported_and_the_rest_is_planned() {
    let list = json!({"apiVersion": "v1", "kind": "List",
        "items": [{"metadata": {"name": "what"}}, json_service("a"), 7]});
    let output =
        plan(&[("a.json", &list.to_string())], &["-f", "a.json", "-o", "json"]).succeeded();
    assert_eq!(planned(&output), ["default/a endpointslice", "default/a endpoints"]);
    output.logs("warning: excluded: malformed object `what`: `apiVersion`: missing");
    output.logs("not a Kubernetes object");
}

#[test]
fn invalid_input_is_an_error_with_position_and_hint() {
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
        ("a: 1\na: 2", "cannot parse `in`, line 2, column 1: duplicate key: `a`", syntax),
        ("a: &a [*a]", "an alias to an incomplete value", syntax),
        ("a: *b", "cannot parse `in`, line 1, column ", syntax),
        (&bomb, "aliases expand to more than 64 MiB", syntax),
        (&heavy, "aliases expand to more than 64 MiB", syntax),
        (&deep, "nested more than 128 levels deep", syntax),
        (&format!("a: {}", "[".repeat(100_000)), "recursion limit exceeded", syntax),
        (&"{\"a\":".repeat(100_000), "recursion limit exceeded", syntax),
    ] {
        let output = plan(&[("in", text)], &["-f", "in"]);
        output.fails_with(error, hint);
    }
}

#[test]
fn unreadable_input_is_an_error_with_a_hint() {
    plan(&[], &["-f", "nosuch.yaml"])
        .fails_with("cannot read `nosuch.yaml`: no such file or directory", "`-f` takes files");
    plan(&[("notes.txt", "")], &["-f", "."])
        .fails_with("the directory has no file to read: `.`", "json, yaml, yml");
    plan_stdin("", &["-f", "-"]).fails_with("the input is empty: standard input", "kubectl");
    plan_stdin("a: [", &["-f", "-"]).fails_with("cannot parse standard input, line ", "expected");
    plan_stdin(b"a: \xff", &["-f", "-"])
        .fails_with("standard input is not UTF-8: invalid from byte 3", "UTF-8");
    assert_eq!(plan(&[], &[]).code, Some(2), "`-f` is required");
}

#[test]
fn a_directory_stands_for_its_files() {
    let (a, b) = (json_service("a").to_string(), json_service("b").to_string());
    let files = [("b.json", &*b), ("a.yml", &*a), ("notes.txt", "no YAML: [")];
    let output =
        plan(&files, &["-f", ".", "-o", "json", "--controllers=endpointslice"]).succeeded();
    assert_eq!(planned(&output), ["default/a endpointslice", "default/b endpointslice"]);
}

#[test]
fn limits_are_validated() {
    for flag in ["max-endpoints-per-slice", "mirroring-max-endpoints-per-subset"] {
        for value in ["0", "1001", "-1", "many", "", "1.5", "99999999999999999999"] {
            let flag_value = format!("--{flag}={value}");
            let output = plan(&[("a.yaml", SERVICE)], &["-f", "a.yaml", &flag_value]);
            let error = format!("`--{flag}` must be a number from 1 to 1000: `{value}`");
            output.fails_with(&error, "without the flag it is 100");
            let output =
                plan(&[("a.yaml", SERVICE)], &["-f", "a.yaml", &format!("--{flag}"), value]);
            output.fails_with(&error, "without the flag it is 100");
        }
        for value in ["1", "1000"] {
            let flag_value = format!("--{flag}={value}");
            plan(&[("a.yaml", SERVICE)], &["-f", "a.yaml", &flag_value]).succeeded();
        }
    }
}

#[test]
fn limits_are_applied() {
    let second = POD.replace("web-a", "web-b").replace("10.0.0.1", "10.0.0.2");
    let cluster = stream(&[SERVICE, POD, &second, NODE]);
    for (limit, want) in [("1", 2), ("2", 1)] {
        let args = ["-f", "a", "-o", "json", "--controllers=endpointslice"];
        let limit = format!("--max-endpoints-per-slice={limit}");
        let output = plan(&[("a", &cluster)], &[&args[..], &[&limit]].concat()).succeeded();
        assert_eq!(writes(&output).len(), want, "{limit}");
    }
    let manual = SERVICE.replace("selector", "nothing");
    let cluster = stream(&[&manual, ENDPOINTS]);
    for (limit, want) in [("1", 1), ("2", 2)] {
        let args = ["-f", "a", "-o", "json", "--controllers=endpointslicemirroring"];
        let limit = format!("--mirroring-max-endpoints-per-subset={limit}");
        let output = plan(&[("a", &cluster)], &[&args[..], &[&limit]].concat()).succeeded();
        let endpoints = &output.json()["plans"][0]["writes"][0]["object"]["endpoints"];
        assert_eq!(endpoints.as_array().map(Vec::len), Some(want), "{limit}");
    }
}

#[test]
fn controllers_are_selected_as_in_kube_controller_manager() {
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
        // The first entry that names a controller decides.
        ("endpoint,-endpoint", &all[1..2]),
        ("-endpoint,endpoint,*,-endpointslicemirroring", &all[..1]),
        ("-endpoint", &[]),
    ] {
        let cluster = stream(&[SERVICE, ENDPOINTS]);
        let output = plan(&[("a", &cluster)], &["-f", "a", "-o", "json", "--controllers", list]);
        let output = output.succeeded();
        let want: Vec<String> = want.iter().map(|word| format!("shop/web {word}")).collect();
        assert_eq!(planned(&output), want, "{list}");
    }
    plan(&[("a", SERVICE)], &["-f", "a", "--controllers", "*,-endpoints"]).fails_with(
        "`--controllers` names an unknown controller: `endpoints`",
        "known are `*`, `endpointslice-controller` (`endpointslice`), `endpoints-controller` \
         (`endpoint`), `endpointslice-mirroring-controller` (`endpointslicemirroring`)",
    );
}

#[test]
fn a_service_is_selected_by_name() {
    let other = json_service("other").to_string();
    let files = [("a", &*shop()), ("b", &*other)];
    let plan = |args: &[&str]| run::plan(&files, &[&["-f", "a", "b", "-o", "json"], args].concat());
    let three =
        |key: &str| ["endpointslice", "endpoints", "mirroring"].map(|c| format!("{key} {c}"));
    let output = plan(&["--service", "shop/web"]).succeeded();
    assert_eq!(planned(&output), three("shop/web"));
    let output = plan(&["--service", "shop/web", "--service", "other"]).succeeded();
    assert_eq!(planned(&output), [three("default/other"), three("shop/web")].concat());
    // A key without any object is planned as deleted, with a note.
    for (name, hint) in [("web", "did you mean `shop/web`?"), ("shop/wbe", "check the name")] {
        let output = plan(&["--service", name]).succeeded();
        assert!(output.err.contains("no Service, Endpoints, or slice for"), "{}", output.err);
        assert!(output.err.contains(hint), "{}", output.err);
        assert!(!output.out.contains("\"verb\""), "{}", output.out);
    }
    for text in ["", "/", "a/", "/a", "a/b/c"] {
        plan(&["--service", text])
            .fails_with("`--service` must be `namespace/name` or", "for example");
    }
}

#[test]
fn a_deleted_service_is_planned() {
    let args = ["-f", "a", "-o", "json", "--service", "shop/web"];
    let output = plan(&[("a", ENDPOINTS)], &args).succeeded();
    assert_eq!(writes(&output), ["endpoints shop/web delete endpoints"]);
    let delete = output.json()["plans"][1]["writes"][0].clone();
    let expected = json!({"verb": "delete", "resource": "endpoints", "name": "web",
        "object": null, "uid": "endpoints-uid", "resourceVersion": "7"});
    for (field, value) in expected.as_object().expect("fields") {
        assert_eq!(&delete[field], value, "{field}");
    }
    assert_eq!(delete["before"]["subsets"][0]["addresses"][1]["ip"], "10.0.0.9");
    assert_eq!(delete["changes"][0], "- 10.0.0.8, ready");
    let output = plan(&[("a", OLD_SLICE)], &args).succeeded();
    assert_eq!(planned(&output).len(), 3, "a slice is a trace too");
}

#[test]
fn objects_without_a_namespace_are_in_default() {
    let cluster = stream(&[SERVICE, POD, NODE]).replace(", namespace: shop", "");
    let output = plan(&[("a", &cluster)], &["-f", "a", "-o", "json"]).succeeded();
    assert_eq!(planned(&output), ["default/web endpointslice", "default/web endpoints"]);
    let slice = &output.json()["plans"][0]["writes"][0]["object"];
    assert_eq!(slice["metadata"]["namespace"], "default");
    assert_eq!(slice["endpoints"][0]["targetRef"]["namespace"], "default");
    assert_eq!(slice["endpoints"][0]["zone"], "a", "the node is found by its bare name");
}

#[test]
fn two_different_objects_of_one_name_are_reported() {
    let twice = stream(&[SERVICE, POD, POD, NODE]);
    let output = plan(&[("a", &twice)], &["-f", "a"]).succeeded();
    assert!(!output.err.contains("warning"), "the same twice is no contradiction: {}", output.err);
    let moved = POD.replace("10.0.0.1", "10.0.0.2");
    let output = plan(&[("a", &stream(&[SERVICE, POD, &moved, NODE]))], &["-f", "a", "-o", "json"]);
    output.logs("warning: two different objects of one name, the last counts: Pod `shop/web-a`");
    let endpoint = &output.json()["plans"][0]["writes"][0]["object"]["endpoints"][0];
    assert_eq!(endpoint["addresses"], json!(["10.0.0.2"]));
}

#[test]
fn missing_nodes_are_reported() {
    let cluster = stream(&[SERVICE, POD]);
    plan(&[("a", &cluster)], &["-f", "a"])
        .succeeded()
        .logs("note: the input has pods but no nodes");
    let output = plan(&[("a", &cluster)], &["-f", "a", "--controllers=endpoint"]).succeeded();
    assert!(!output.err.contains("note"), "Endpoints need no nodes: {}", output.err);
}

#[test]
fn help_and_version_are_printed() {
    let alone = run::run(&[], &[], b"");
    assert!(alone.err.contains("Usage: endpointd <COMMAND>"), "{}", alone.err);
    let version = run::run(&[], &["--version"], b"").succeeded();
    assert_eq!(version.out, format!("endpointd {}\n", env!("CARGO_PKG_VERSION")));
    let help = plan(&[], &["--help"]).succeeded();
    for part in ["kubectl get svc,pod", "[default: 100]", "[default: 1000]", "Exit code"] {
        assert!(help.out.contains(part), "{part}: {}", help.out);
    }
}
