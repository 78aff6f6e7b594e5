//! A tutorial on Services, with kubectl as it is on this machine.

mod expected;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_playground::story::Scenario;
use endpointd_playground::world::Size;
use endpointd_playground::{Options, Place, Playground, Tempo, Workload};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);

struct Kubectl {
    home: TempDir,
}

impl Kubectl {
    /// `None` means skip, because there is no kubectl here; under `CI=true` that is a failure.
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

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new("kubectl");
        command.args(words.split(' ')).stdin(Stdio::null());
        command.env("HOME", self.home.path()).env("KUBECONFIG", self.kubeconfig());
        command
    }

    /// Runs and gives back what it printed; it must succeed.
    #[track_caller]
    fn say(&self, words: &str) -> String {
        succeeded(words, self.command(words).output().expect("kubectl runs"))
    }

    /// Repeats until what it prints is as wanted.
    #[track_caller]
    fn until(&self, words: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        let asked = Instant::now();
        loop {
            let printed = self.say(words);
            if is_wanted(&printed) {
                return printed;
            }
            assert!(asked.elapsed() < PATIENCE, "kubectl {words}:\n{printed}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Edits in an editor that is a script.
    #[track_caller]
    fn edit(&self, words: &str, script: &str) -> String {
        let editor = self.home.path().join("editor");
        fs::write(&editor, format!("#!/bin/sh\n{script}\n")).expect("writable");
        let editor = format!("sh {}", editor.display());
        let output = self.command(words).env("KUBE_EDITOR", editor).output();
        succeeded(words, output.expect("kubectl runs"))
    }
}

#[track_caller]
fn succeeded(words: &str, output: Output) -> String {
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {words}: {printed}{complained}");
    printed
}

/// `kubectl … -w`, and the lines it has printed; killed at the end.
struct Watch {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Watch {
    fn start(kubectl: &Kubectl, words: &str) -> Self {
        let mut child =
            kubectl.command(words).stdout(Stdio::piped()).spawn().expect("kubectl starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    #[track_caller]
    fn line_with(&self, text: &str) -> String {
        let asked = Instant::now();
        let mut seen = String::new();
        while let Some(left) = PATIENCE.checked_sub(asked.elapsed()) {
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
        tempo: Tempo { speed: 3, ..Tempo::default() },
        port: 0,
        kubeconfig: Place::Chosen(kubectl.kubeconfig()),
        version: "test".to_owned(),
    };
    Playground::start(options).await.expect("it starts")
}

const SLICE_IPS: &str = "get endpointslices -l kubernetes.io/service-name=hello \
                         -o jsonpath={.items[*].endpoints[*].addresses[0]}";

fn n_words(printed: &str) -> usize {
    printed.split_whitespace().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tutorial_on_services() {
    let Some(kubectl) = Kubectl::find() else { return };
    let playground = playground(&kubectl, Workload::None).await;
    let told = tokio::task::spawn_blocking(move || {
        create_and_expose(&kubectl);
        scale_while_watching(&kubectl);
        lose_a_pod(&kubectl);
        change_the_selector(&kubectl);
        roll_out_and_back(&kubectl);
        look_closer(&kubectl);
        clean_up(&kubectl);
    });
    told.await.expect("the tutorial works");
    playground.stop().await;
}

fn create_and_expose(kubectl: &Kubectl) {
    kubectl.say("create deployment hello --image=nginx:1 --replicas=2 --port=80");
    kubectl.say("expose deployment hello");
    let status = kubectl.say("rollout status deployment/hello --timeout=60s");
    assert!(status.contains("successfully rolled out"), "{status}");
    kubectl.until(SLICE_IPS, |ips| n_words(ips) == 2);
    let table = kubectl.say("get endpointslices,endpoints,services,deployments,pods");
    assert!(table.contains("endpointslice.discovery.k8s.io/hello-"), "{table}");
}

fn scale_while_watching(kubectl: &Kubectl) {
    let watch = Watch::start(kubectl, "get endpointslices -w");
    watch.line_with("hello-");
    kubectl.say("scale deployment hello --replicas=6");
    // kubectl shows three addresses and counts the rest.
    watch.line_with("+ 3 more...");
    kubectl.say("wait --for=condition=available deployment/hello --timeout=60s");
    kubectl.say("scale deployment hello --replicas=3");
    kubectl.until("get pods --no-headers", |pods| pods.lines().count() == 3);
    kubectl.until(SLICE_IPS, |ips| n_words(ips) == 3);
}

fn lose_a_pod(kubectl: &Kubectl) {
    let names = "get pods -o jsonpath={.items[*].metadata.name}";
    let before = kubectl.say(names);
    let first = before.split_whitespace().next().expect("there are pods").to_owned();
    kubectl.say(&format!("delete pod {first}"));
    let published = "get endpointslices -l kubernetes.io/service-name=hello \
                     -o jsonpath={.items[*].endpoints[*].targetRef.name}";
    let shown = kubectl.until(published, |pods| n_words(pods) == 3 && !pods.contains(&first));
    assert!(!before.split_whitespace().eq(shown.split_whitespace()), "another took its place");
}

fn change_the_selector(kubectl: &Kubectl) {
    kubectl.say("run other --image=nginx:1 --labels=app=other --port=80");
    kubectl.say("wait --for=condition=Ready pod/other --timeout=60s");
    let edited =
        kubectl.edit("edit service hello", "sed -i '/selector:/,$s/app: hello/app: other/' $1");
    assert!(edited.contains("service/hello edited"), "{edited}");
    let ip = kubectl.say("get pod other -o jsonpath={.status.podIP}");
    kubectl.until(SLICE_IPS, |ips| ips == ip);
    kubectl.edit("edit service hello", "sed -i '/selector:/,$s/app: other/app: hello/' $1");
    kubectl.until(SLICE_IPS, |ips| n_words(ips) == 3);
}

fn roll_out_and_back(kubectl: &Kubectl) {
    let images = "get pods -l app=hello -o jsonpath={.items[*].spec.containers[0].image}";
    let all = |image: &'static str| {
        move |printed: &str| {
            n_words(printed) == 3 && printed.split_whitespace().all(|one| one == image)
        }
    };
    kubectl.say("set image deployment/hello nginx=nginx:2");
    kubectl.say("rollout status deployment/hello --timeout=60s");
    kubectl.until(images, all("nginx:2"));
    let history = kubectl.say("rollout history deployment/hello");
    assert!(history.contains("\n2 "), "{history}");
    kubectl.say("rollout undo deployment/hello");
    kubectl.say("rollout status deployment/hello --timeout=60s");
    kubectl.until(images, all("nginx:1"));
    kubectl.until(SLICE_IPS, |ips| n_words(ips) == 3);
}

fn look_closer(kubectl: &Kubectl) {
    let described = kubectl.say("describe service hello");
    assert!(described.contains("Endpoints:"), "{described}");
    let described = kubectl.say("describe deployment hello");
    assert!(described.contains("3 desired | 3 updated | 3 total | 3 available"), "{described}");
    let described = kubectl.say("describe endpointslices");
    assert!(described.contains("TargetRef:  Pod/hello-"), "{described}");
    let explained = kubectl.say("explain endpointslice.endpoints.conditions");
    assert!(explained.contains("serving"), "{explained}");
}

fn clean_up(kubectl: &Kubectl) {
    kubectl.say("delete service,deployment hello");
    kubectl.say("delete pod other");
    kubectl.until("get pods,replicasets,endpoints -o name", |names| {
        names.trim() == "endpoints/kubernetes"
    });
    kubectl.until("get endpointslices -o name", |names| n_words(names) == 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suggested_commands_work() {
    let Some(kubectl) = Kubectl::find() else { return };
    let playground = playground(&kubectl, Workload::World).await;
    let shared = playground.server().clone();
    let told = tokio::task::spawn_blocking(move || {
        kubectl.say("wait -n shop --for=condition=available deployment --all --timeout=60s");
        kubectl.say("scale deployment web -n shop --replicas=150");
        kubectl.say("rollout status deployment/web -n shop --timeout=60s");
        kubectl.say("set image deployment web -n shop app=playground.example/web:next");
        kubectl.say("annotate pods -n shop -l app=api endpointd-playground/ready=false");
        let conditions = "get endpointslices -n shop -l kubernetes.io/service-name=api \
                          -o jsonpath={.items[*].endpoints[*].conditions.ready}";
        kubectl.until(conditions, |printed| !printed.contains("true"));
        kubectl.say("delete node node-01");
        kubectl.say("rollout status deployment/web -n shop --timeout=60s");
        let slices = "get endpointslices -n shop -o name -l kubernetes.io/service-name=web";
        let n_slices = n_words(&kubectl.say(slices));
        assert!(n_slices >= 2, "150 do not fit into one: {n_slices}");
    });
    told.await.expect("the commands work");
    let asked = Instant::now();
    while let Some(difference) = shared.with(|server| expected::difference(server)) {
        assert!(asked.elapsed() < PATIENCE, "{difference}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    playground.stop().await;
}
