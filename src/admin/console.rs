//! The page for people, and what it and other tools read of what has happened.

use std::fmt::Write as _;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use super::{
    AdminAnswer, AdminState,
    answer::{AdminProblem, joined},
    milliseconds,
};
use crate::{config::Word as _, entropy::random_u64, telemetry::activity::Meaning};

/// One document: its style and its script are in it.
const PAGE: &str = include_str!("console.html");
/// What stands in it for the word that lets them in.
const NONCE: &str = "{nonce}";
/// Hot resources in one answer.
const HOTTEST: usize = 50;
/// The media type of Prometheus's text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The console. Nothing but its own script may run in it, and nothing may be loaded from anywhere else.
pub(super) async fn page() -> AdminAnswer {
    let no_randomness = |_error| AdminProblem::new(StatusCode::SERVICE_UNAVAILABLE, "no-randomness", "try again");
    let mut nonce = String::new();
    for _ in 0..2 {
        // Writing to a string cannot fail.
        let _ = write!(nonce, "{:016x}", random_u64().map_err(no_randomness)?);
    }
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let policy = HeaderValue::try_from(policy).map_err(|error| AdminProblem::malformed(error.to_string()))?;
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    let fields = [(header::CONTENT_SECURITY_POLICY, policy), (header::CONTENT_TYPE, html)];
    Ok::<Response, _>((fields, PAGE.replace(NONCE, &nonce)).into_response())
}

/// The metrics, for Prometheus.
pub(super) async fn metrics(State(admin): AdminState) -> AdminAnswer {
    let text = (admin.subject.metrics)();
    Ok::<Response, _>(([(header::CONTENT_TYPE, HeaderValue::from_static(METRICS))], text).into_response())
}

/// How requests ended by route, since the start, and the resources that clients fight over, lately.
pub(super) async fn activity(State(admin): AdminState) -> AdminAnswer {
    let mut tallies = admin.subject.activity.routes();
    let config = admin.config();
    let mut routes = Vec::new();
    for route in &config.routes {
        let tally = tallies.remove(&route.name).unwrap_or_default();
        routes.push((route.name.clone(), Some(route.policy.word()), tally));
    }
    // Those of an earlier configuration, and requests that took no route.
    routes.extend(tallies.into_iter().map(|(name, tally)| (name, None, tally)));
    let routes = routes.iter().map(|(name, policy, tally)| {
        let meanings = Meaning::ALL.map(|(word, meaning)| (word.to_owned(), json!(tally.count(meaning))));
        let row = json!({
            "route": name,
            "policy": policy,
            "requests": tally.outcomes.values().sum::<u64>(),
            "outcomes": tally.outcomes,
        });
        joined(row, Value::Object(meanings.into_iter().collect()))
    });
    let hottest = admin.subject.activity.hottest(HOTTEST);
    let hot = hottest.iter().map(|hot| {
        json!({
            "key": hot.key.as_str(),
            "conflicts": hot.conflicts,
            "waits": hot.waits,
            "longest_wait_ms": milliseconds(hot.longest_wait),
        })
    });
    let document = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_ms": milliseconds(admin.started.elapsed()),
        "routes": routes.collect::<Vec<_>>(),
        "hot": hot.collect::<Vec<_>>(),
    });
    Ok(Json(document).into_response())
}
