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
}

pub(super) fn execute(options: &HealthOptions) -> ExitCode {
    execute_on_runtime(async {
        let (status, document) = ask(options).await?;
        print(verdict(options.ready, status, &document).map_err(CommandFailure::Unhealthy)?);
        Ok(())
    })
}

async fn ask(options: &HealthOptions) -> Result<(StatusCode, Value), CommandFailure> {
    let client = AdminClient::new(options.admin.as_deref(), None)?;
    let target = if options.ready { "/readyz" } else { "/livez" };
    let answer = client.answer(Method::GET, target, None);
    timeout(ANSWER_MAX, answer).await.map_err(|_elapsed| CommandFailure::NoAnswer(None))?
}

/// Judges an answer. Another server at the same address may answer 200 to everything, so the document counts too.
fn verdict(asked_ready: bool, status: StatusCode, document: &Value) -> Result<&'static str, &'static str> {
    let is = |member: &str| document.get(member).and_then(Value::as_bool);
    let (member, healthy) = if asked_ready { ("ready", "ready") } else { ("alive", "alive") };
    match is(member) {
        Some(true) if status == StatusCode::OK => Ok(healthy),
        Some(_) if is("draining") == Some(true) => Err("not ready: the process is about to end"),
        Some(_) if is("reads") == Some(false) => Err("not ready: the store is not available"),
        Some(_) => Err("not ready"),
        None => Err("the answer is not that of an admin listener"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_process_is_healthy_if_its_status_and_its_document_say_so() {
        let (ok, unavailable) = (StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(verdict(false, ok, &json!({ "alive": true })), Ok("alive"));
        assert_eq!(verdict(true, ok, &json!({ "ready": true, "reads": true, "draining": false })), Ok("ready"));
        for (asked_ready, status, document, reason) in [
            (true, unavailable, json!({ "ready": false }), "not ready"),
            (true, unavailable, json!({ "ready": true }), "not ready"),
            (true, unavailable, json!({ "ready": false, "reads": false, "draining": true }), "about to end"),
            (true, unavailable, json!({ "ready": false, "reads": false, "draining": false }), "the store"),
            (true, ok, json!({ "alive": true }), "not that of an admin listener"),
            (false, ok, json!({ "ready": true }), "not that of an admin listener"),
            (false, ok, Value::Null, "not that of an admin listener"),
        ] {
            let found = verdict(asked_ready, status, &document).expect_err("it is not healthy");
            assert!(found.contains(reason), "{document}: {found}");
        }
    }
}
