//! The page for people, and the activity and metrics that it and other tools read.

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

/// The page as one document that contains its style and its script.
const PAGE: &str = include_str!("console.html");
/// The placeholder in the page for the nonce that lets its style and its script run.
const NONCE: &str = "{nonce}";
/// The number of hot resources in one answer.
const HOTTEST: usize = 50;
/// The media type of Prometheus's text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves the console. Only its own script may run in it, and it may load nothing from anywhere else.
pub(super) async fn page() -> AdminAnswer {
    let no_randomness = |_error| AdminProblem::new(StatusCode::SERVICE_UNAVAILABLE, "no-randomness", "try again");
    let random = || random_u64().map_err(no_randomness);
    let nonce = format!("{:016x}{:016x}", random()?, random()?);
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let policy = HeaderValue::try_from(policy).map_err(|error| AdminProblem::malformed(error.to_string()))?;
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    let fields = [(header::CONTENT_SECURITY_POLICY, policy), (header::CONTENT_TYPE, html)];
    Ok::<Response, _>((fields, PAGE.replace(NONCE, &nonce)).into_response())
}

/// Serves the metrics, for Prometheus.
pub(super) async fn metrics(State(admin): AdminState) -> AdminAnswer {
    let text = (admin.subject.metrics)();
    Ok::<Response, _>(([(header::CONTENT_TYPE, HeaderValue::from_static(METRICS))], text).into_response())
}

/// Reports how requests ended by route since the start, and which resources clients have fought over lately.
pub(super) async fn activity(State(admin): AdminState) -> AdminAnswer {
    let mut tallies = admin.subject.activity.routes();
    let config = admin.config();
    let mut routes = Vec::new();
    for route in &config.routes {
        let tally = tallies.remove(&route.name).unwrap_or_default();
        routes.push((route.name.clone(), Some(route.policy.word()), tally));
    }
    // Routes of an earlier configuration, and requests that took no route.
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
