//! A tutorial on Services with the kubectl of this machine.

mod expected_state;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_playground::cluster_spec::Size;
use endpointd_playground::scenario::Scenario;
use endpointd_playground::{KubeconfigTarget, Options, Playground, TimeScale, Workload};
use tempfile::TempDir;

const TIMEOUT: Duration = Duration::from_secs(60);

struct Kubectl {
    home: TempDir,
}

impl Kubectl {
    /// `None` if there is no kubectl: the test is skipped. With `CI=true` that is a failure.
    fn find() -> Option<Self> {
        let found = Command::new("kubectl").args(["version", "--client"]).output();
        if found.is_ok_and(|output| output.status.success()) {
            return Some(Self { home: tempfile::tempdir().expect("a folder") });
        }
        let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!is_ci, "no kubectl on this machine");
        eprintln!("skipped: no kubectl on this machine");
        None
    }

    fn kubeconfig(&self) -> PathBuf {
        self.home.path().join("config")
    }

    fn command(&self, args: &str) -> Command {
        let mut command = Command::new("kubectl");
        command.args(args.split(' ')).stdin(Stdio::null());
        command.env("HOME", self.home.path()).env("KUBECONFIG", self.kubeconfig());
        command
    }

    /// Runs kubectl, which must succeed, and returns its output.
    #[track_caller]
    fn run(&self, args: &str) -> String {
        succeeded(args, self.command(args).output().expect("kubectl runs"))
    }

    /// Repeats a command until its output is as wanted.
    #[track_caller]
    fn wait_until(&self, args: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        loop {
            let stdout = self.run(args);
            if is_wanted(&stdout) {
                return stdout;
            }
            assert!(started.elapsed() < TIMEOUT, "kubectl {args}:\n{stdout}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Runs `kubectl edit` with a script as the editor.
    #[track_caller]
    fn edit(&self, args: &str, script: &str) -> String {
        let editor = self.home.path().join("editor");
        fs::write(&editor, format!("#!/bin/sh\n{script}\n")).expect("writable");
        let editor = format!("sh {}", editor.display());
        let output = self.command(args).env("KUBE_EDITOR", editor).output();
        succeeded(args, output.expect("kubectl runs"))
    }
}

#[track_caller]
fn succeeded(args: &str, output: Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {args}: {stdout}{stderr}");
    stdout
}

/// A running `kubectl … -w` and the lines it printed; killed when dropped.
struct Watch {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Watch {
    fn start(kubectl: &Kubectl, args: &str) -> Self {
        let mut child =
            kubectl.command(args).stdout(Stdio::piped()).spawn().expect("kubectl starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    #[track_caller]
    fn line_with(&self, text: &str) -> String {
        let started = Instant::now();
        let mut seen = String::new();
        while let Some(left) = TIMEOUT.checked_sub(started.elapsed()) {
            let Ok(line) = self.lines.recv_timeout(left) else { break };
            if line.contains(text) {
                return line;
            }
            seen += &format!("{line}\n");
        }
        panic!("no line with {text:?}:\n{seen}");
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn playground(kubectl: &Kubectl, workload: Workload) -> Playground {
    let options = Options {
        size: Size::default(),
        workload,
        scenario: Scenario::Idle,
        seed: 1,
        time_scale: TimeScale { speed: 3, ..TimeScale::default() },
        port: 0,
        page_port: 0,
        kubeconfig: KubeconfigTarget::Path(kubectl.kubeconfig()),
        version: "test".to_owned(),
    };
    Playground::start(options).await.expect("it starts")
}

const SLICE_IPS: &str = "get endpointslices -l kubernetes.io/service-name=hello \
                         -o jsonpath={.items[*].endpoints[*].addresses[0]}";

fn n_words(stdout: &str) -> usize {
    stdout.split_whitespace().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tutorial_on_services_works() {
    let Some(kubectl) = Kubectl::find() else { return };
    let playground = playground(&kubectl, Workload::None).await;
    let tutorial = tokio::task::spawn_blocking(move || {
        create_and_expose(&kubectl);
        scale_while_watching(&kubectl);
        lose_a_pod(&kubectl);
        change_the_selector(&kubectl);
        roll_out_and_back(&kubectl);
        look_closer(&kubectl);
        clean_up(&kubectl);
    });
    tutorial.await.expect("the tutorial works");
    playground.stop().await;
}

fn create_and_expose(kubectl: &Kubectl) {
    kubectl.run("create deployment hello --image=nginx:1 --replicas=2 --port=80");
    kubectl.run("expose deployment hello");
    let status = kubectl.run("rollout status deployment/hello --timeout=60s");
    assert!(status.contains("successfully rolled out"), "{status}");
    kubectl.wait_until(SLICE_IPS, |ips| n_words(ips) == 2);
    let table = kubectl.run("get endpointslices,endpoints,services,deployments,pods");
    assert!(table.contains("endpointslice.discovery.k8s.io/hello-"), "{table}");
}

fn scale_while_watching(kubectl: &Kubectl) {
    let watch = Watch::start(kubectl, "get endpointslices -w");
    watch.line_with("hello-");
    kubectl.run("scale deployment hello --replicas=6");
    // kubectl prints three addresses and counts the others.
    watch.line_with("+ 3 more...");
    kubectl.run("wait --for=condition=available deployment/hello --timeout=60s");
    kubectl.run("scale deployment hello --replicas=3");
    kubectl.wait_until("get pods --no-headers", |pods| pods.lines().count() == 3);
    kubectl.wait_until(SLICE_IPS, |ips| n_words(ips) == 3);
}

fn lose_a_pod(kubectl: &Kubectl) {
    let names = "get pods -o jsonpath={.items[*].metadata.name}";
    let before = kubectl.run(names);
    let first = before.split_whitespace().next().expect("there are pods").to_owned();
    kubectl.run(&format!("delete pod {first}"));
    let published = "get endpointslices -l kubernetes.io/service-name=hello \
                     -o jsonpath={.items[*].endpoints[*].targetRef.name}";
    let shown = kubectl.wait_until(published, |pods| n_words(pods) == 3 && !pods.contains(&first));
    assert!(!before.split_whitespace().eq(shown.split_whitespace()), "another took its place");
}

fn change_the_selector(kubectl: &Kubectl) {
    kubectl.run("run other --image=nginx:1 --labels=app=other --port=80");
    kubectl.run("wait --for=condition=Ready pod/other --timeout=60s");
    let edited =
        kubectl.edit("edit service hello", "sed -i '/selector:/,$s/app: hello/app: other/' $1");
    assert!(edited.contains("service/hello edited"), "{edited}");
    let ip = kubectl.run("get pod other -o jsonpath={.status.podIP}");
    kubectl.wait_until(SLICE_IPS, |ips| ips == ip);
    kubectl.edit("edit service hello", "sed -i '/selector:/,$s/app: other/app: hello/' $1");
    kubectl.wait_until(SLICE_IPS, |ips| n_words(ips) == 3);
}

fn roll_out_and_back(kubectl: &Kubectl) {
    let images = "get pods -l app=hello -o jsonpath={.items[*].spec.containers[0].image}";
    let all = |image: &'static str| {
        move |stdout: &str| {
            n_words(stdout) == 3 && stdout.split_whitespace().all(|one| one == image)
        }
    };
    kubectl.run("set image deployment/hello nginx=nginx:2");
    kubectl.run("rollout status deployment/hello --timeout=60s");
    kubectl.wait_until(images, all("nginx:2"));
    let history = kubectl.run("rollout history deployment/hello");
    assert!(history.contains("\n2 "), "{history}");
    kubectl.run("rollout undo deployment/hello");
    kubectl.run("rollout status deployment/hello --timeout=60s");
    kubectl.wait_until(images, all("nginx:1"));
    kubectl.wait_until(SLICE_IPS, |ips| n_words(ips) == 3);
}

fn look_closer(kubectl: &Kubectl) {
    let described = kubectl.run("describe service hello");
    assert!(described.contains("Endpoints:"), "{described}");
    let described = kubectl.run("describe deployment hello");
    assert!(described.contains("3 desired | 3 updated | 3 total | 3 available"), "{described}");
    let described = kubectl.run("describe endpointslices");
    assert!(described.contains("TargetRef:  Pod/hello-"), "{described}");
    let explained = kubectl.run("explain endpointslice.endpoints.conditions");
    assert!(explained.contains("serving"), "{explained}");
}

fn clean_up(kubectl: &Kubectl) {
    kubectl.run("delete service,deployment hello");
    kubectl.run("delete pod other");
    kubectl.wait_until("get pods,replicasets,endpoints -o name", |names| {
        names.trim() == "endpoints/kubernetes"
    });
    kubectl.wait_until("get endpointslices -o name", |names| n_words(names) == 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suggested_commands_work() {
    let Some(kubectl) = Kubectl::find() else { return };
    let playground = playground(&kubectl, Workload::Default).await;
    let shared = playground.server().clone();
    let tutorial = tokio::task::spawn_blocking(move || {
        kubectl.run("wait -n shop --for=condition=available deployment --all --timeout=60s");
        kubectl.run("scale deployment web -n shop --replicas=150");
        kubectl.run("rollout status deployment/web -n shop --timeout=60s");
        kubectl.run("set image deployment web -n shop app=playground.example/web:next");
        kubectl.run("annotate pods -n shop -l app=api endpointd-playground/ready=false");
        let conditions = "get endpointslices -n shop -l kubernetes.io/service-name=api \
                          -o jsonpath={.items[*].endpoints[*].conditions.ready}";
        kubectl.wait_until(conditions, |stdout| !stdout.contains("true"));
        kubectl.run("delete node node-01");
        kubectl.run("rollout status deployment/web -n shop --timeout=60s");
        let slices = "get endpointslices -n shop -o name -l kubernetes.io/service-name=web";
        let n_slices = n_words(&kubectl.run(slices));
        assert!(n_slices >= 2, "150 do not fit into one: {n_slices}");
    });
    tutorial.await.expect("the commands work");
    let started = Instant::now();
    while let Some(difference) = shared.with(|server| expected_state::difference(server)) {
        assert!(started.elapsed() < TIMEOUT, "{difference}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    playground.stop().await;
}
