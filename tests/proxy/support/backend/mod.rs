//! A backend over raw TCP whose every step a test can order.
//!
//! By itself it is a plain HTTP/1.1 server that keeps what is PUT to it ([`contents`]). A test changes that for
//! requests of its choice:
//!
//! * [`Backend::hold`] hands the next such request over to the test, which then reads, applies and answers it, or
//!   closes, whenever it likes ([`held`]).
//! * [`Backend::once`] and [`Backend::always`] give it another answer ([`answer`]), perhaps after a gate is opened.
//!
//! Each request is recorded with its exact bytes ([`Backend::requests`]), and so is the order of what happened
//! ([`Backend::events`]). Bytes that are no proper request fail the test when the backend is dropped.

pub mod answer;
pub mod contents;
mod exchange;
pub mod held;
pub mod record;
pub mod style;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Instant,
};

use tokio::{
    net::TcpListener,
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

pub use answer::Answer;
pub use contents::Validators;
pub use held::{Held, Hold};
pub use record::Request;

use super::wait::{until, within};
use contents::Contents;
use record::Record;

/// A running backend; its connections are closed on drop.
pub struct Backend {
    addr: SocketAddr,
    shared: Arc<Shared>,
    listener: tokio::sync::Mutex<JoinHandle<()>>,
}

/// The state that the connections and the test share.
#[derive(Default)]
struct Shared {
    record: Mutex<Record>,
    contents: Mutex<Contents>,
    rules: Mutex<Vec<Rule>>,
}

/// The action for the requests that a rule matches.
struct Rule {
    matches: Box<dyn Fn(&Request) -> bool + Send>,
    action: Action,
}

enum Action {
    Hold(oneshot::Sender<Held>),
    Once(Answer),
    Always(Arc<dyn Fn(&Request) -> Answer + Send + Sync>),
    Served(Arc<dyn Fn(&Request) -> Answer + Send + Sync>),
}

impl Backend {
    /// A backend that sends no validators.
    pub async fn start() -> Self {
        Self::with(Validators::None).await
    }

    /// A backend that labels what it serves with these.
    pub async fn with(validators: Validators) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.expect("a loopback port"), validators)
    }

    /// A backend with tags and resources of this style.
    pub async fn in_style(style: style::Style) -> Self {
        let backend = Self::start().await;
        *backend.shared.contents() = Contents::of(style);
        backend
    }

    /// The same behind a listener of the test's own.
    pub fn on(listener: TcpListener, validators: Validators) -> Self {
        let addr = listener.local_addr().expect("a bound listener");
        let shared = Arc::new(Shared::default());
        shared.contents().validators = validators;
        let listener = tokio::spawn(accept(listener, Arc::clone(&shared))).into();
        Self { addr, shared, listener }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Closes all connections and refuses new ones, until it comes back. What it keeps stays.
    pub async fn go_away(&self) {
        let mut listener = self.listener.lock().await;
        listener.abort();
        let ended = within("the backend to go away", &mut *listener).await;
        assert!(ended.is_err_and(|error| error.is_cancelled()), "it went away before");
    }

    /// Listens on its address again. No other program takes it meanwhile if it is one of [`free`](super::ports::free).
    pub async fn come_back(&self) {
        let listener = TcpListener::bind(self.addr).await.expect("the address that it had");
        *self.listener.lock().await = tokio::spawn(accept(listener, Arc::clone(&self.shared)));
    }

    /// Changes its content without the proxy.
    pub fn put(&self, target: &str, body: impl AsRef<[u8]>) {
        self.shared.contents().apply("PUT", target, body.as_ref());
    }

    /// Returns its present content, as text.
    pub fn content(&self, target: &str) -> Option<String> {
        let body = self.shared.contents().body(target)?;
        Some(String::from_utf8(body).expect("the content is text"))
    }

    /// Hands the next request with this method and target over to the test. `"*"` stands for any.
    #[must_use]
    pub fn hold(&self, method: &str, target: &str) -> Hold {
        self.hold_where(matcher(method, target))
    }

    /// Hands the next request that matches over to the test.
    #[must_use]
    pub fn hold_where(&self, matches: impl Fn(&Request) -> bool + Send + 'static) -> Hold {
        let (sender, receiver) = oneshot::channel();
        self.add_rule(matches, Action::Hold(sender));
        Hold::new(receiver)
    }

    /// Answers the next request with this method and target so. `"*"` stands for any.
    pub fn once(&self, method: &str, target: &str, answer: Answer) {
        self.add_rule(matcher(method, target), Action::Once(answer));
    }

    /// Answers each request with this method and target so, until a later call says something else; what [`Self::hold`]
    /// and [`Self::once`] ask for comes first. `"*"` stands for any.
    pub fn always(&self, method: &str, target: &str, answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) {
        self.always_where(matcher(method, target), answer);
    }

    /// The same for requests that match, e.g. those that come over a reused connection.
    pub fn always_where(
        &self,
        matches: impl Fn(&Request) -> bool + Send + 'static,
        answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) {
        self.add_rule(matches, Action::Always(Arc::new(answer)));
    }

    /// Answers each request so once its body is there too.
    pub fn serve(&self, answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) {
        self.add_rule(|_| true, Action::Served(Arc::new(answer)));
    }

    fn add_rule(&self, matches: impl Fn(&Request) -> bool + Send + 'static, action: Action) {
        self.shared.rules().push(Rule { matches: Box::new(matches), action });
    }

    /// All requests in the order in which their heads came, with what has come of their bodies.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.record().requests.clone()
    }

    /// The requests with this method and target. `"*"` stands for any.
    pub fn seen(&self, method: &str, target: &str) -> Vec<Request> {
        let matches = matcher(method, target);
        self.requests().into_iter().filter(matches).collect()
    }

    /// How many requests with this method and target have come. `"*"` stands for any.
    pub fn count(&self, method: &str, target: &str) -> usize {
        self.seen(method, target).len()
    }

    /// How many bytes of bodies have come with such requests.
    pub fn body_bytes(&self, method: &str, target: &str) -> usize {
        self.seen(method, target).iter().map(|request| request.body.len()).sum()
    }

    /// Waits until that many such requests have come.
    pub async fn reached(&self, method: &str, target: &str, count: usize) {
        let what = format!("{count} x {method} {target} to reach the backend");
        until(&what, || self.count(method, target) >= count).await;
    }

    /// Returns the events, in order: `"PUT /doc arrived"`, `"PUT /doc applied"`, `"PUT /doc answered 204"`, `"PUT /doc
    /// closed"`, `"PUT /doc reset"`, `"PUT /doc broken off"` (by the peer, within its body).
    pub fn events(&self) -> Vec<String> {
        self.shared.record().events.clone()
    }

    /// The writes that were applied, in that order, and when.
    pub fn applied(&self) -> Vec<(Request, Instant)> {
        let record = self.shared.record();
        record.applied.iter().map(|(number, at)| (record.requests[*number].clone(), *at)).collect()
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.shared.record().connections
    }

    /// How many of them are open.
    pub fn open_connections(&self) -> usize {
        self.shared.record().open_connections
    }

    /// Returns the messages that are no proper requests. A test that takes them away expects them; those that remain
    /// fail the test in the end.
    pub fn take_malformed(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.record().malformed)
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.listener.get_mut().abort();
        if !std::thread::panicking() {
            assert_eq!(self.take_malformed(), [""; 0], "the backend got what is no proper request");
        }
    }
}

impl Shared {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().expect("nobody panics with it")
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().expect("nobody panics with it")
    }

    fn rules(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.rules.lock().expect("nobody panics with it")
    }

    /// Returns the action for a request: the oldest rule for one request, else the newest for all, else the default.
    fn action_for(&self, request: &Request) -> Action {
        let mut rules = self.rules();
        let is_for_all = |rule: &Rule| matches!(rule.action, Action::Always(_) | Action::Served(_));
        let for_one = |rule: &Rule| !is_for_all(rule) && (rule.matches)(request);
        if let Some(found) = rules.iter().position(for_one) {
            return rules.remove(found).action;
        }
        let for_all = rules.iter().rev().find_map(|rule| match &rule.action {
            Action::Always(answer) if (rule.matches)(request) => Some(Action::Always(Arc::clone(answer))),
            Action::Served(answer) if (rule.matches)(request) => Some(Action::Served(Arc::clone(answer))),
            _ => None,
        });
        for_all.unwrap_or_else(|| Action::Once(Answer::stored()))
    }
}

fn matcher(method: &str, target: &str) -> impl Fn(&Request) -> bool + Send + use<> {
    let (method, target) = (method.to_owned(), target.to_owned());
    move |request| (method == "*" || request.method == method) && (target == "*" || request.target == target)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped with this task, and all connections with it.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(exchange::serve(stream, Arc::clone(&shared)));
    }
}
