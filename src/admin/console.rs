//! The page for people, and the activity and metrics that it and other tools read.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
    response::{IntoResponse as _, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use tokio::time::interval;

use super::{
    AdminAnswer, AdminListener, AdminState,
    answer::{AdminProblem, joined},
    milliseconds,
};
use crate::{
    config::Word as _,
    telemetry::{activity::Meaning, history::History},
};

/// The number of hot resources in one answer.
const HOTTEST: usize = 50;
/// The media type of Prometheus's text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// A minute of the history.
const MINUTE: Duration = Duration::from_secs(60);

/// The media type of the modules of the page.
const SCRIPT: &str = "text/javascript; charset=utf-8";
/// The parts of the page: name, media type, text.
const FILES: &[(&str, &str, &str)] = &[
    ("style.css", "text/css; charset=utf-8", include_str!("console/style.css")),
    ("main.js", SCRIPT, include_str!("console/main.js")),
    ("ask.js", SCRIPT, include_str!("console/ask.js")),
    ("build.js", SCRIPT, include_str!("console/build.js")),
    ("chart.js", SCRIPT, include_str!("console/chart.js")),
    ("leases.js", SCRIPT, include_str!("console/leases.js")),
    ("refusals.js", SCRIPT, include_str!("console/refusals.js")),
    ("routes.js", SCRIPT, include_str!("console/routes.js")),
    ("tiles.js", SCRIPT, include_str!("console/tiles.js")),
    ("timeline.js", SCRIPT, include_str!("console/timeline.js")),
    ("trouble.js", SCRIPT, include_str!("console/trouble.js")),
    ("words.js", SCRIPT, include_str!("console/words.js")),
];

/// The rights of the page: it runs its own modules, and calls this listener. All other answers are JSON, and `nosniff`
/// keeps them from running.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Serves the console.
pub(super) async fn page() -> Response {
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    let policy = HeaderValue::from_static(POLICY);
    let fields = [(header::CONTENT_SECURITY_POLICY, policy), (header::CONTENT_TYPE, html)];
    (fields, include_str!("console/page.html")).into_response()
}

/// Serves a part of the page.
pub(super) async fn file(name: Result<Path<String>, PathRejection>) -> AdminAnswer {
    let name = name.map(|Path(name)| name).unwrap_or_default();
    let file = FILES.iter().find(|(known, ..)| *known == name);
    let (_, media_type, text) =
        file.ok_or_else(|| AdminProblem::new(StatusCode::NOT_FOUND, "not-found", "the console has no such part"))?;
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static(media_type))], *text).into_response())
}

/// Serves the metrics, for Prometheus.
pub(super) async fn metrics(State(admin): AdminState) -> AdminAnswer {
    let text = (admin.subject.metrics)();
    Ok::<Response, _>(([(header::CONTENT_TYPE, HeaderValue::from_static(METRICS))], text).into_response())
}

/// Reports the requests of each route by their outcomes since the start, and the resources that clients have recently
/// fought over.
pub(super) async fn activity(State(admin): AdminState) -> AdminAnswer {
    let document = joined(process(&admin), joined(routes(&admin, true), hot(&admin)));
    Ok(Json(document).into_response())
}

/// Reports how requests ended by route in each minute of the last hour.
pub(super) async fn history(State(admin): AdminState) -> AdminAnswer {
    let (_, document) = minutes(&admin);
    Ok(Json(document).into_response())
}

/// The program and its age.
pub(super) fn process(admin: &AdminListener) -> Value {
    json!({ "version": env!("CARGO_PKG_VERSION"), "uptime_ms": milliseconds(admin.started.elapsed()) })
}

/// The number of requests of each route since the start, by meaning, and also by verdict and code.
pub(super) fn routes(admin: &AdminListener, with_outcomes: bool) -> Value {
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
        let row = json!({ "route": name, "policy": policy, "requests": tally.outcomes.values().sum::<u64>() });
        let row = if with_outcomes { joined(row, json!({ "outcomes": tally.outcomes })) } else { row };
        joined(row, Value::Object(meanings.into_iter().collect()))
    });
    json!({ "routes": routes.collect::<Vec<_>>() })
}

/// The resources that clients have recently fought over.
pub(super) fn hot(admin: &AdminListener) -> Value {
    let hottest = admin.subject.activity.hottest(HOTTEST);
    let hot = hottest.iter().map(|hot| {
        json!({
            "key": hot.key.as_str(),
            "conflicts": hot.conflicts,
            "waits": hot.waits,
            "longest_wait_ms": milliseconds(hot.longest_wait),
        })
    });
    json!({ "hot": hot.collect::<Vec<_>>() })
}

/// The minutes of the last hour, and how many have ended since the start. The counts of a minute have the order of
/// `meanings`. A route without requests in the hour has no minutes.
pub(super) fn minutes(admin: &AdminListener) -> (u64, Value) {
    let kept = admin.history.lock();
    let routes = kept.history.routes().iter().map(|(name, route)| {
        let minutes = if route.had_requests() { json!(route.minutes) } else { json!([]) };
        json!({ "route": name, "until_now": route.until_now, "minutes": minutes })
    });
    let document = json!({
        "meanings": Meaning::ALL.map(|(word, _)| word),
        "minute_age_ms": milliseconds(kept.minute_began.elapsed()),
        "routes": routes.collect::<Vec<_>>(),
    });
    (kept.history.ended(), document)
}

/// The history of routes, and the current minute.
#[derive(Debug)]
pub(super) struct KeptHistory {
    history: History,
    minute_began: Instant,
}

impl Default for KeptHistory {
    fn default() -> Self {
        Self { history: History::default(), minute_began: Instant::now() }
    }
}

/// Ends each minute of the history, without end.
pub(super) async fn keep_history(admin: Arc<AdminListener>) {
    let mut minutes = interval(MINUTE);
    // The first tick comes at once.
    minutes.tick().await;
    loop {
        minutes.tick().await;
        let totals = admin.subject.activity.routes();
        let mut kept = admin.history.lock();
        kept.history.end_minute(&totals);
        kept.minute_began = Instant::now();
    }
}
