//! The buttons of the playground. Without a playground there is no request that changes anything.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::API_VERSION;

/// An action and its Service.
type Press = (String, Option<String>);

/// Where actions are sent, and which there are.
#[derive(Clone, Debug)]
pub struct PlaygroundControls {
    actions: Vec<Action>,
    requests: mpsc::Sender<ActionRequest>,
    /// Actions that the next press undoes, with their Service: the same for all readers.
    pressed: Arc<Mutex<BTreeSet<Press>>>,
}

/// An action for a button.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    pub name: &'static str,
    pub label: &'static str,
    /// What a second press does, if it undoes the first.
    pub undo_label: Option<&'static str>,
    pub description: &'static str,
    /// It can be about one Service.
    pub has_service: bool,
    /// A command of kubectl that does the same to one Service, with `{service}` in place of its name.
    pub command: Option<&'static str>,
}

/// One press of a button.
#[derive(Debug)]
pub struct ActionRequest {
    pub action: String,
    /// Of the namespace of the playground; `None` for any.
    pub service: Option<String>,
    pub reply: oneshot::Sender<Result<Performed, ActionError>>,
}

/// What an action did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Performed {
    pub caption: String,
    /// Commands of kubectl that do the same; empty if there is none.
    pub commands: Vec<String>,
    /// The next press of the button undoes this one.
    pub is_undone_next: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionError {
    UnknownAction,
    /// The cluster has nothing that the action could change, and why.
    NotPossible(String),
}

impl PlaygroundControls {
    pub fn new(actions: Vec<Action>, requests: mpsc::Sender<ActionRequest>) -> Self {
        Self { actions, requests, pressed: Arc::default() }
    }

    pub fn to_json(&self) -> Value {
        let actions = self.actions.iter().map(|action| {
            let Action { name, label, undo_label, description, has_service, command } = action;
            json!({
                "name": name,
                "label": label,
                "undoLabel": undo_label,
                "description": description,
                "hasService": has_service,
                "command": command,
            })
        });
        let pressed = self.pressed();
        let pressed = pressed.iter().map(|(action, service)| json!([action, service]));
        json!({
            "apiVersion": API_VERSION,
            "actions": actions.collect::<Vec<_>>(),
            "pressed": pressed.collect::<Vec<_>>(),
        })
    }

    /// `None`: the playground has ended.
    pub async fn perform(
        &self,
        action: String,
        service: Option<String>,
    ) -> Option<Result<Performed, ActionError>> {
        let (reply, answer) = oneshot::channel();
        let key = (action.clone(), service.clone());
        self.requests.send(ActionRequest { action, service, reply }).await.ok()?;
        let performed = answer.await.ok()?;
        match &performed {
            Ok(Performed { is_undone_next: true, .. }) => drop(self.pressed().insert(key)),
            Ok(_) => drop(self.pressed().remove(&key)),
            Err(_) => {}
        }
        Some(performed)
    }

    fn pressed(&self) -> MutexGuard<'_, BTreeSet<Press>> {
        self.pressed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Performed {
    pub fn to_json(&self) -> Value {
        let Self { caption, commands, is_undone_next } = self;
        json!({
            "apiVersion": API_VERSION,
            "caption": caption,
            "commands": commands,
            "undoneNext": is_undone_next,
        })
    }
}
