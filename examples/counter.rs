//! Adds to the counter at a URL, no matter how many clients change it at the same time: `counter URL TIMES`

use std::{env, error::Error, thread, time::Duration};

use serde::{Deserialize, Serialize};
use ureq::{Agent, Body, http::Response};
use uuid::Uuid;

const ATTEMPTS: u32 = 40;
/// ifmatch itself may wait 30 s for its turn and 30 s for the backend.
const PATIENCE: Duration = Duration::from_secs(90);

#[derive(Default, Deserialize, Serialize)]
struct Document {
    count: u64,
    changes: Vec<String>,
}

/// The outcome of an attempt.
enum Outcome {
    /// The change is there.
    Done,
    /// Another attempt may succeed after this time.
    Again(Duration),
}

/// Returns the time before another attempt; an error if no attempt can succeed.
fn hope(mut answer: Response<Body>) -> Result<Outcome, Box<dyn Error>> {
    let after = answer.headers().get("Retry-After").and_then(|value| value.to_str().ok()?.parse().ok());
    match (answer.status().as_u16(), after) {
        (_, Some(seconds)) => Ok(Outcome::Again(Duration::from_secs(seconds))),
        // 200 is a read without an ETag.
        (200 | 412 | 502 | 503 | 504, None) => Ok(Outcome::Again(Duration::ZERO)),
        (status, None) => Err(format!("{status} {}", answer.body_mut().read_to_string()?).into()),
    }
}

/// Reads, changes and writes once.
fn attempt(agent: &Agent, url: &str, change: fn(&mut Document), mark: &str) -> Result<Outcome, Box<dyn Error>> {
    let mut read = agent.get(url).call()?;
    let tag = read.headers().get("ETag").and_then(|tag| tag.to_str().ok()).map(str::to_owned);
    let (mut document, (field, value)) = match (read.status().as_u16(), tag) {
        (200, Some(tag)) => (serde_json::from_str(&read.body_mut().read_to_string()?)?, ("If-Match", tag)),
        (404, _) => (Document::default(), ("If-None-Match", "*".to_owned())),
        _ => return hope(read),
    };
    if document.changes.iter().any(|made| made == mark) {
        return Ok(Outcome::Done); // An attempt whose answer was lost has made it.
    }
    change(&mut document);
    document.changes.push(mark.to_owned());
    let write = agent.put(url).header(field, value).content_type("application/json");
    let written = write.send(serde_json::to_string(&document)?)?;
    if matches!(written.status().as_u16(), 200 | 201 | 204) { Ok(Outcome::Done) } else { hope(written) }
}

/// Makes one change to the document at `url`, exactly once.
fn update(agent: &Agent, url: &str, change: fn(&mut Document)) -> Result<(), Box<dyn Error>> {
    let mark = Uuid::new_v4().to_string();
    let mut ceiling = 0.02;
    for _ in 0..ATTEMPTS {
        let after = match attempt(agent, url, change, &mark) {
            Ok(Outcome::Done) => return Ok(()),
            Ok(Outcome::Again(after)) => after,
            // No answer. The next attempt sees the outcome of this one.
            Err(error) if error.is::<ureq::Error>() => Duration::ZERO,
            Err(error) => return Err(error),
        };
        thread::sleep(after + Duration::from_secs_f64(fastrand::f64() * ceiling));
        ceiling = f64::min(1.0, ceiling * 2.0);
    }
    Err("gave up; whether the change was made is not known".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, times] = arguments.as_slice() else { return Err("usage: counter URL TIMES".into()) };
    let agent: Agent =
        Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE)).build().into();
    for _ in 0..times.parse::<u32>()? {
        update(&agent, url, |document| document.count += 1)?;
    }
    Ok(())
}
