//! The admin listener: health, metrics, leases and records, and a console, for operators (docs/admin.md).
//!
//! A request passes through `serve` (limits on connections) and `access` (known names, the token, no pages of other
//! origins) to one of the answers: `health`, `leases`, `records`, `refusals`, `timeline` (one resource), `views`
//! (configuration, routes, servers), `console`, and `watch`, the stream of all that a console shows. They use the operations that the guard offers an operator ([`Guard`]), and never show a lease id.
//!
//! # Design
//!
//! *Why hyper and not pingora?* The listener must answer when all workers of the proxy are busy, so it has its own
//! thread and runtime. It needs nothing of what a proxy needs.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request, State},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use http::{HeaderName, HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use tokio::time::timeout;

use crate::{
    config::{self, Config},
    core::resource::ResourceKey,
    generation::Live,
    guard::Guard,
    server::Stop,
    telemetry::activity::Activity,
};

mod access;
mod answer;
mod bind;
mod clients;
mod console;
mod doubts;
mod health;
mod leases;
mod overview;
mod parts;
mod records;
mod refusals;
mod serve;
mod sweep;
mod timeline;
mod token;
mod views;
mod watch;

pub use access::ADMIN_FIELD;
pub use bind::AdminSocket;
pub use token::{NoToken, Token};

use access::Access;
use answer::AdminProblem;

/// The largest request body, in bytes: keys are short.
const BODY_BYTES: usize = 64 * 1024;
/// The time limit of a request that only reads.
const LOOK_MAX: Duration = Duration::from_secs(15);
/// The time limit of a request that changes something: an engine needs a while to forget a prefix.
const CHANGE_MAX: Duration = Duration::from_secs(90);

/// The fields of every answer: no answer may be cached, framed, sniffed, or read by pages of other origins.
const FIELDS: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];
const NO_CONTENT_POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// The parts of the process that the admin listener shows and acts on.
pub struct Subject {
    /// The generation that is served now.
    pub live: Arc<Live>,
    /// The outcomes of requests so far.
    pub activity: Arc<Activity>,
    /// The addresses where clients connect.
    pub listeners: Vec<String>,
    /// The signal that asks the server to stop.
    pub stop: tokio::sync::watch::Receiver<Stop>,
    /// Returns the metrics in Prometheus's text format.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
}

/// The admin listener of a process.
pub(crate) struct AdminListener {
    subject: Subject,
    access: Access,
    durability: health::Durability,
    started: Instant,
    history: Mutex<console::KeptHistory>,
    rounds: watch::Rounds,
}

type AdminAnswer = Result<Response, AdminProblem>;
type AdminState = State<Arc<AdminListener>>;

/// Serves forever. Must be called on a runtime.
///
/// # Errors
///
/// Returns an error if the socket cannot be used.
pub async fn serve(
    socket: AdminSocket,
    settings: &config::Admin,
    token: Option<Token>,
    subject: Subject,
) -> std::io::Result<()> {
    let access = Access::new(&settings.listen, &settings.hosts, token);
    let admin = Arc::new(AdminListener {
        subject,
        access,
        durability: health::Durability::default(),
        started: Instant::now(),
        history: Mutex::default(),
        rounds: watch::Rounds::default(),
    });
    tokio::spawn(console::keep_history(Arc::clone(&admin)));
    serve::serve(socket, router(admin)).await
}

fn router(admin: Arc<AdminListener>) -> Router {
    Router::new()
        // Balancers also send OPTIONS, HAProxy for this path.
        .route("/", get(console::page).options(health::reads))
        .route("/livez", get(health::alive).options(health::alive))
        .route("/readyz", get(health::reads).options(health::reads))
        .route("/readyz/reads", get(health::reads).options(health::reads))
        .route("/readyz/writes", get(health::writes).options(health::writes))
        .route("/console/{name}", get(console::file))
        .route("/metrics", get(console::metrics))
        .route("/activity", get(console::activity))
        .route("/history", get(console::history))
        .route("/watch", get(watch::stream))
        .route("/timeline", get(timeline::one))
        .route("/leases", get(leases::list))
        .route("/leases/break", post(leases::break_them))
        .route("/doubts", get(doubts::list))
        .route("/records", get(records::one))
        .route("/forget", post(records::forget))
        .route("/refusals", get(refusals::list))
        .route("/refusals/{id}", get(refusals::one))
        .route("/config", get(views::config))
        .route("/routes", get(views::routes))
        .route("/servers", get(views::servers))
        .fallback(|| async { AdminProblem::new(StatusCode::NOT_FOUND, "not-found", "there is nothing here") })
        .method_not_allowed_fallback(|| async {
            AdminProblem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method-not-allowed",
                "docs/admin.md lists the paths and their methods",
            )
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .layer(middleware::from_fn_with_state(Arc::clone(&admin), enter))
        .with_state(admin)
}

/// Judges a request, answers it within its time limit, and adds the fields of every answer.
async fn enter(State(admin): AdminState, request: Request, next: Next) -> Response {
    let _answering = request.extensions().get::<serve::AdminConnection>().map(serve::AdminConnection::answer);
    let limit = if request.method().is_safe() { LOOK_MAX } else { CHANGE_MAX };
    let mut response = match admin.access.judge(request.method(), request.uri(), request.headers()) {
        Ok(()) => timeout(limit, next.run(request)).await.unwrap_or_else(|_elapsed| {
            AdminProblem::new(StatusCode::GATEWAY_TIMEOUT, "timeout", "this took too long; try again").into_response()
        }),
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    headers.extend(FIELDS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(NO_CONTENT_POLICY);
    response
}

impl AdminListener {
    /// Returns the configuration that is served now.
    fn config(&self) -> Arc<Config> {
        Arc::clone(&self.subject.live.serving().config)
    }

    /// Returns the guard that is in use now.
    fn guards(&self) -> Arc<Guard> {
        Arc::clone(&self.subject.live.serving().guards)
    }
}

/// Reads a key from a request.
fn key(text: &str) -> Result<ResourceKey, AdminProblem> {
    let is_key = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_key.then(|| ResourceKey::from_text(text)).ok_or_else(|| {
        AdminProblem::malformed("key must be a resource key as /leases and the access log show it: visible ASCII")
    })
}

/// Converts a duration to milliseconds.
fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
