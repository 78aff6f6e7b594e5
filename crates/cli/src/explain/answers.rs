//! Finds the objects of a question, and explains them.

use endpointd_client::Client;
use endpointd_explain::{Code, Context, ControllerState, Findings, Mode, Objects, explain};
use endpointd_model::{Key, LabelSelector, Timestamp};
use endpointd_plan::Settings;

use super::controller_state::Reporter;
use super::flags::Flags;
use super::label_selector;
use crate::cli_error::CliError;
use crate::cluster::{
    Loaded, SERVICE_IMPORTS, Scope, connect, follow_up, load, load_what_if, namespaces,
    read_all_nodes, read_into,
};
use crate::target::{Kind, Target};

pub enum Question {
    One(Target),
    /// All Services with these labels.
    All(Option<LabelSelector>),
}

pub struct Answer {
    pub findings: Findings,
    /// Whether the object exists.
    pub is_found: bool,
    /// Whether the pods could not be read, so that nothing is known about them.
    pub is_partial: bool,
}

impl Answer {
    pub fn needs_attention(&self) -> bool {
        !self.is_found || self.is_partial || self.findings.has_problems()
    }
}

impl Question {
    pub fn resolve(flags: &Flags) -> Result<Self, CliError> {
        let selector = flags.selector.as_deref().map(label_selector::parse).transpose()?;
        match Target::parse(&flags.object)? {
            None => Ok(Self::All(selector)),
            Some(_) if flags.namespace.all_namespaces => Err(CliError::new(
                "an object is in one namespace, and `-A` means all",
                "choose its namespace with `-n`",
            )),
            Some(target) => Ok(Self::One(target)),
        }
    }
}

impl Question {
    /// The only Service that is asked about.
    fn service(&self) -> Option<&str> {
        match self {
            Self::One(Target { kind: Kind::Service, name }) => Some(name),
            Self::One(_) | Self::All(_) => None,
        }
    }
}

/// What is the same for all objects of one question.
struct Setting {
    mode: Mode,
    now: Timestamp,
    reporter: Option<Reporter>,
    settings: Settings,
}

pub async fn answer(flags: &Flags, question: &Question) -> Result<Vec<Answer>, CliError> {
    let reporter = match &flags.endpointd {
        Some(url) => Some(Reporter::connect(url).await?),
        None => None,
    };
    let mode = if flags.live { Mode::WhatIf } else { Mode::Observed };
    let settings = Settings {
        tolerate_unready_annotation: flags.annotations.policy(),
        managers: flags.instance.managers()?,
        ..Settings::default()
    };
    let setting = Setting { mode, now: Timestamp::now(), reporter, settings };
    if flags.namespace.all_namespaces && flags.files.files.is_empty() {
        return answer_by_namespace(flags, question, &setting).await;
    }
    let answered = answer_from_objects(flags, question, &setting).await;
    match (answered, &setting.reporter, question) {
        (Err(error), Some(reporter), Question::One(Target { kind: Kind::Service, name }))
            if flags.files.files.is_empty() =>
        {
            let namespace = flags.namespace.namespace.as_deref().unwrap_or("default");
            ask(reporter, &Key::new(namespace, name.as_str()), &error).await
        }
        (answered, _, _) => answered,
    }
}

async fn answer_from_objects(
    flags: &Flags,
    question: &Question,
    setting: &Setting,
) -> Result<Vec<Answer>, CliError> {
    let loaded = match flags.live {
        true => load_what_if(&flags.connect, &flags.namespace, &flags.files).await?,
        false => load(&flags.connect, &flags.namespace, &flags.files, question.service()).await?,
    };
    let Loaded { mut objects, client, scope } = loaded;
    explain_scope(question, setting, client.as_ref(), &scope, &mut objects).await
}

/// The running endpointd reads the cluster for somebody who cannot.
async fn ask(reporter: &Reporter, key: &Key, why: &CliError) -> Result<Vec<Answer>, CliError> {
    let findings = reporter.findings(key, why).await?;
    let is_found = findings.findings.iter().all(|one| one.code != Code::NoSuchService);
    Ok(vec![Answer { findings, is_found, is_partial: false }])
}

/// One namespace after the other, so that only one is in memory.
async fn answer_by_namespace(
    flags: &Flags,
    question: &Question,
    setting: &Setting,
) -> Result<Vec<Answer>, CliError> {
    let client = connect(&flags.connect).await?;
    let mut objects = Objects::default();
    let namespaces = namespaces(&client).await?;
    read_all_nodes(&client, &mut objects).await?;
    let mut answers = Vec::new();
    for namespace in namespaces {
        objects.forget_namespaced();
        let scope = Scope::Namespace(namespace);
        read_into(&client, &scope, &mut objects).await?;
        answers
            .extend(explain_scope(question, setting, Some(&client), &scope, &mut objects).await?);
    }
    Ok(answers)
}

async fn explain_scope(
    question: &Question,
    setting: &Setting,
    client: Option<&Client>,
    scope: &Scope,
    objects: &mut Objects,
) -> Result<Vec<Answer>, CliError> {
    check_services_were_read(objects, scope)?;
    let mut all_asked = Vec::new();
    for (kind, key) in targets(question, scope, objects) {
        let controller = match &setting.reporter {
            Some(reporter) => Some(reporter.state(&key).await?),
            None => None,
        };
        all_asked.push(Asked { kind, key, controller });
    }
    let mut explained = explain_all(setting, objects, &all_asked);
    if let Some(client) = client {
        for (asked, findings) in all_asked.iter().zip(&mut explained) {
            if follow_up(client, objects, findings).await {
                let again = explain_all(setting, objects, std::slice::from_ref(asked));
                again.into_iter().for_each(|one| *findings = one);
            }
        }
    }
    let is_partial = objects.is_unreadable("Pod");
    let answer = |(asked, findings): (Asked, Findings)| {
        let Asked { kind, key, .. } = asked;
        // A Service of other clusters is found by its import.
        let kinds = match kind {
            Kind::Service => &[kind.as_str(), SERVICE_IMPORTS.kind][..],
            Kind::Pod | Kind::Endpoints | Kind::EndpointSlice => &[kind.as_str()],
        };
        let is_found =
            kinds.iter().any(|kind| objects.get(kind, &key.namespace, &key.name).is_some());
        Answer { findings, is_found, is_partial }
    };
    Ok(all_asked.into_iter().zip(explained).map(answer).collect())
}

/// One object to explain, and what a running endpointd reports about it.
struct Asked {
    kind: Kind,
    key: Key,
    controller: Option<ControllerState>,
}

/// Without Services there is nothing to say.
fn check_services_were_read(objects: &Objects, scope: &Scope) -> Result<(), CliError> {
    if !objects.is_unreadable("Service") {
        return Ok(());
    }
    let (whose, flag) = match scope.namespace() {
        Some(namespace) => (format!("of namespace `{namespace}`"), format!("-n {namespace}")),
        None => ("of all namespaces".to_owned(), "-A".to_owned()),
    };
    let why = objects.why_unreadable("services").unwrap_or("not allowed");
    Err(CliError::new(
        format!("cannot list the Services {whose}: {why}"),
        format!("`kubectl auth can-i list services {flag}`, or `--as` another user"),
    ))
}

fn targets(question: &Question, scope: &Scope, objects: &Objects) -> Vec<(Kind, Key)> {
    let is_in = |key: &Key| scope.namespace().is_none_or(|namespace| *key.namespace == *namespace);
    match question {
        Question::One(target) => {
            let namespace = scope.namespace().unwrap_or("default");
            vec![(target.kind, Key::new(namespace, target.name.as_str()))]
        }
        Question::All(selector) => {
            let is_selected =
                |key: &Key| match (selector, objects.get("Service", &key.namespace, &key.name)) {
                    (Some(selector), Some(service)) => label_selector::matches(selector, service),
                    (None, _) | (_, None) => true,
                };
            let keys = objects.services().filter(|key| is_in(key) && is_selected(key));
            keys.map(|key| (Kind::Service, key)).collect()
        }
    }
}

/// The index of the objects is built once for all.
fn explain_all(setting: &Setting, objects: &Objects, asked: &[Asked]) -> Vec<Findings> {
    let indexed = objects.cluster().index();
    let explain_one = |Asked { kind, key, controller }: &Asked| {
        let context = Context {
            objects,
            indexed: &indexed,
            now: setting.now,
            settings: setting.settings.clone(),
            controller: controller.as_ref(),
            mode: setting.mode,
        };
        match kind {
            Kind::Service => explain::service(&context, key),
            Kind::Pod => explain::pod(&context, key),
            Kind::Endpoints => explain::endpoints(&context, key),
            Kind::EndpointSlice => explain::slice(&context, key),
        }
    };
    asked.iter().map(explain_one).collect()
}
