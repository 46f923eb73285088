//! `ifmatch health`: asks a running process whether it lives, for images without a shell and a client.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use http::{Method, StatusCode};
use serde_json::Value;
use tokio::time::timeout;

use super::{
    admin_client::{AdminClient, CommandFailure, execute_on_runtime},
    print,
};

/// How long the answer may take. Supervisors that ask every few seconds give a check about as long.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// The options of `ifmatch health`.
#[derive(Debug, Args)]
pub(super) struct HealthOptions {
    /// The admin listener: `http://host:port` or `unix:/path`; without it, the variable `IFMATCH_ADMIN` names the listener,
    /// else it is at `http://127.0.0.1:9901`. No token is needed.
    #[arg(long, value_name = "URL")]
    admin: Option<String>,
    /// Ask whether the process should get requests (`/readyz`), not only whether it lives (`/livez`).
    #[arg(long)]
    ready: bool,
    /// Ask whether the process also accepts writes (`/readyz/writes`), and why not.
    #[arg(long, conflicts_with = "ready")]
    writes: bool,
}

/// The question to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HealthQuestion {
    Lives,
    Ready,
    Writes,
}

impl HealthOptions {
    fn question(&self) -> HealthQuestion {
        match (self.ready, self.writes) {
            (_, true) => HealthQuestion::Writes,
            (true, false) => HealthQuestion::Ready,
            (false, false) => HealthQuestion::Lives,
        }
    }
}

pub(super) fn execute(options: &HealthOptions) -> ExitCode {
    execute_on_runtime(async {
        let (status, document) = ask(options).await?;
        print(verdict(options.question(), status, &document).map_err(CommandFailure::Unhealthy)?);
        Ok(())
    })
}

async fn ask(options: &HealthOptions) -> Result<(StatusCode, Value), CommandFailure> {
    let client = AdminClient::new(options.admin.as_deref(), None)?;
    let target = match options.question() {
        HealthQuestion::Lives => "/livez",
        HealthQuestion::Ready => "/readyz",
        HealthQuestion::Writes => "/readyz/writes",
    };
    let answer = client.answer(Method::GET, target, None);
    timeout(ANSWER_MAX, answer).await.map_err(|_elapsed| CommandFailure::NoAnswer(None))?
}

/// Judges an answer. Another server at the same address may answer 200 to everything, so the document counts too.
fn verdict(question: HealthQuestion, status: StatusCode, document: &Value) -> Result<&'static str, &'static str> {
    let is = |member: &str| document.get(member).and_then(Value::as_bool);
    let (member, healthy) = match question {
        HealthQuestion::Lives => ("alive", "alive"),
        HealthQuestion::Ready => ("ready", "ready"),
        HealthQuestion::Writes => ("ready", "accepts writes"),
    };
    match is(member) {
        Some(true) if status == StatusCode::OK => Ok(healthy),
        Some(_) if is("draining") == Some(true) => Err("not ready: the process is about to end"),
        Some(_) if question == HealthQuestion::Writes => Err(why_no_writes(document)),
        Some(_) if is("reads") == Some(false) => Err("not ready: the store is not available"),
        Some(_) => Err("not ready"),
        None => Err("the answer is not that of an admin listener"),
    }
}

/// Returns the reason for which writes are refused. A client that does not call the listener by its name learns none.
fn why_no_writes(document: &Value) -> &'static str {
    match document.pointer("/store/problem").and_then(Value::as_str) {
        Some("lost-writes") => {
            "no writes: the store has lost acknowledged writes, and waits for an operator. See the alert IfmatchStoreFails \
             in docs/operations.md"
        }
        Some("full") => "no writes: the store is full. See the alert IfmatchStoreFails in docs/operations.md",
        Some(_) if document.pointer("/store/kind").and_then(Value::as_str) == Some("disk") => {
            "no writes: make room on the disk of the store, whose file cannot be written; the log has the reason. The process \
             needs no restart"
        }
        Some(_) => {
            "no writes: the store does not answer. The process needs no restart: it goes on when the store is back"
        }
        None if document.pointer("/start_grace/over") == Some(&Value::Bool(false)) => {
            "no writes yet: they are held back after the start (start_grace)"
        }
        None => "no writes",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_process_is_healthy_if_its_status_and_its_document_say_so() {
        let (ok, unavailable) = (StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(verdict(HealthQuestion::Lives, ok, &json!({ "alive": true })), Ok("alive"));
        let serves = json!({ "ready": true, "reads": true, "draining": false });
        assert_eq!(verdict(HealthQuestion::Ready, ok, &serves), Ok("ready"));
        assert_eq!(verdict(HealthQuestion::Writes, ok, &serves), Ok("accepts writes"));
        for (question, status, document, reason) in [
            (HealthQuestion::Ready, unavailable, json!({ "ready": false }), "not ready"),
            (HealthQuestion::Ready, unavailable, json!({ "ready": true }), "not ready"),
            (
                HealthQuestion::Ready,
                unavailable,
                json!({ "ready": false, "reads": false, "draining": true }),
                "about to end",
            ),
            (
                HealthQuestion::Ready,
                unavailable,
                json!({ "ready": false, "reads": false, "draining": false }),
                "the store",
            ),
            (HealthQuestion::Ready, ok, json!({ "alive": true }), "not that of an admin listener"),
            (HealthQuestion::Lives, ok, json!({ "ready": true }), "not that of an admin listener"),
            (HealthQuestion::Lives, ok, Value::Null, "not that of an admin listener"),
        ] {
            let found = verdict(question, status, &document).expect_err("it is not healthy");
            assert!(found.contains(reason), "{document}: {found}");
        }
    }

    #[test]
    fn a_question_about_writes_gets_the_reason_why_there_are_none() {
        let refused = |details: Value| {
            let mut document = json!({ "ready": false, "reads": true, "draining": false });
            document.as_object_mut().expect("an object").extend(details.as_object().expect("an object").clone());
            verdict(HealthQuestion::Writes, StatusCode::SERVICE_UNAVAILABLE, &document).expect_err("there are none")
        };
        for (details, reason) in [
            (json!({ "draining": true }), "about to end"),
            (json!({ "store": { "problem": "failed" } }), "the store does not answer"),
            (json!({ "store": { "kind": "disk", "problem": "failed" } }), "make room on the disk"),
            (json!({ "store": { "problem": "full" } }), "the store is full"),
            (json!({ "store": { "problem": "lost-writes" } }), "waits for an operator"),
            (json!({ "store": { "problem": null }, "start_grace": { "over": false } }), "held back after the start"),
            (json!({ "store": { "problem": null }, "start_grace": { "over": true } }), "no writes"),
            (json!({}), "no writes"),
        ] {
            assert!(refused(details.clone()).contains(reason), "{details}");
        }
    }
}
