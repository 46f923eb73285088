//! The measurements of every request and of every exchange with a server.

use std::{cell::RefCell, sync::Weak, time::Duration};

use http::{Method, StatusCode};
use opentelemetry::{
    KeyValue, StringValue,
    metrics::{BoundCounter, BoundHistogram},
};

use super::{Metrics, bound::BoundTable, definitions as define};
use crate::{config::Route, telemetry::Decision};

/// The methods that metrics name; all others are `_OTHER`.
const KNOWN: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/// Returns the status that metrics name. One that is not registered counts as the first of its class, as which its
/// client treats it (RFC 9110 section 15). So a server that makes up statuses does not make up metrics.
fn counted(status: u16) -> u16 {
    let is_registered = |code: StatusCode| code.canonical_reason().is_some();
    match status {
        0 => 0,
        status if StatusCode::from_u16(status).is_ok_and(is_registered) => status,
        100..=599 => status / 100 * 100,
        _ => 500,
    }
}

/// A finished request.
#[derive(Clone, Copy, Debug)]
pub struct EndedRequest<'a> {
    /// The name of the method, see [`known`].
    pub method: &'static str,
    /// True if the request came over TLS.
    pub is_tls: bool,
    /// The status of the answer; 0 if none was sent.
    pub status: u16,
    /// The route that the request took.
    pub route: Option<&'a std::sync::Arc<Route>>,
    /// The verdict, if it came to one.
    pub verdict: Option<Decision>,
    /// How long the request took.
    pub duration: Duration,
    /// How long the request waited for its claim, if it took one.
    pub claim_wait: Option<Duration>,
}

/// The labels that tell the measurements of requests on one route apart.
#[derive(PartialEq)]
struct OutcomeLabels {
    /// The address of the route. The weak reference in [`OfRequests`] keeps it from being reused by another route.
    route: usize,
    method: &'static str,
    is_tls: bool,
    status: u16,
    verdict: Option<Decision>,
}

struct OfRequests {
    duration: BoundHistogram<f64>,
    verdicts: BoundCounter<u64>,
    claim_wait: BoundHistogram<f64>,
    _route: Option<Weak<Route>>,
}

/// The labels that tell the measurements of exchanges with one server apart.
#[derive(PartialEq)]
struct Exchanged {
    method: &'static str,
    is_tls: bool,
    status: Result<u16, &'static str>,
}

thread_local! {
    static REQUESTS: RefCell<BoundTable<OutcomeLabels, OfRequests>> = RefCell::default();
    static EXCHANGES: RefCell<BoundTable<Exchanged, BoundHistogram<f64>>> = RefCell::default();
}

/// Returns the name of a method in metrics.
pub fn known(method: &Method) -> &'static str {
    known_name(method).unwrap_or("_OTHER")
}

/// Returns the name of a method that metrics name.
pub fn known_name(method: &Method) -> Option<&'static str> {
    KNOWN.into_iter().find(|known| *known == method.as_str())
}

impl Metrics {
    /// Measures a finished request.
    pub fn request(&self, ended: &EndedRequest<'_>) {
        let EndedRequest { is_tls, verdict, .. } = *ended;
        let status = counted(ended.status);
        let route = ended.route.map_or(0, |route| std::sync::Arc::as_ptr(route).addr());
        let outcome = OutcomeLabels { route, method: ended.method, is_tls, status, verdict };
        let name = ended.route.map_or("", |route| route.name.as_str());
        REQUESTS.with_borrow_mut(|table| {
            let Some(bound) = table.get(name, outcome, |outcome| self.bind(outcome, ended)) else { return };
            bound.duration.record(ended.duration.as_secs_f64());
            bound.verdicts.add(1);
            if let Some(wait) = ended.claim_wait {
                bound.claim_wait.record(wait.as_secs_f64());
            }
        });
    }

    fn bind(&self, outcome: &OutcomeLabels, ended: &EndedRequest<'_>) -> OfRequests {
        let name = ended.route.map(|route| KeyValue::new(define::ROUTE, StringValue::from(route.name.clone())));
        let mut of_duration =
            vec![KeyValue::new(define::METHOD, outcome.method), KeyValue::new(define::SCHEME, scheme(outcome.is_tls))];
        if outcome.status > 0 {
            of_duration.push(KeyValue::new(define::STATUS, i64::from(outcome.status)));
        }
        if outcome.status == 0 || outcome.status >= 500 {
            let error = if outcome.status == 0 { "aborted".to_owned() } else { outcome.status.to_string() };
            of_duration.push(KeyValue::new(define::ERROR, error));
        }
        of_duration.extend(ended.route.map(|route| KeyValue::new(define::HTTP_ROUTE, route.path.to_string())));
        of_duration.extend(name.clone());
        let mut of_verdicts: Vec<KeyValue> = name.clone().into_iter().collect();
        of_verdicts.push(KeyValue::new(define::VERDICT, outcome.verdict.map_or("aborted", Decision::word)));
        OfRequests {
            duration: self.server_duration.bind(&of_duration),
            verdicts: self.verdicts.bind(&of_verdicts),
            claim_wait: self.claim_wait.bind(name.as_slice()),
            _route: ended.route.map(std::sync::Arc::downgrade),
        }
    }

    /// Measures an exchange with a server, a `host:port` as in the configuration: its status, or the reason why it has
    /// none. Without a connection there is no method either.
    pub fn exchange(
        &self,
        server: &str,
        is_tls: bool,
        method: Option<&Method>,
        status: Result<u16, &'static str>,
        duration: Duration,
    ) {
        let exchanged = Exchanged { method: method.map_or("_OTHER", known), is_tls, status: status.map(counted) };
        EXCHANGES.with_borrow_mut(|table| {
            let bound = table.get(server, exchanged, |exchanged| self.bind_exchange(server, exchanged));
            if let Some(bound) = bound {
                bound.record(duration.as_secs_f64());
            }
        });
    }

    fn bind_exchange(&self, server: &str, exchanged: &Exchanged) -> BoundHistogram<f64> {
        let mut attributes = vec![
            KeyValue::new(define::METHOD, exchanged.method),
            KeyValue::new(define::SCHEME, scheme(exchanged.is_tls)),
        ];
        attributes.extend(server_attributes(server));
        match exchanged.status {
            Ok(status) => {
                attributes.push(KeyValue::new(define::STATUS, i64::from(status)));
                if status >= 400 {
                    attributes.push(KeyValue::new(define::ERROR, status.to_string()));
                }
            }
            Err(error) => attributes.push(KeyValue::new(define::ERROR, error)),
        }
        self.client_duration.bind(&attributes)
    }
}

/// Returns the attributes that name a server.
pub(super) fn server_attributes(server: &str) -> impl Iterator<Item = KeyValue> {
    let (host, port) = host_and_port(server);
    let port = port.map(|port| KeyValue::new(define::PORT, i64::from(port)));
    std::iter::once(KeyValue::new(define::SERVER, host.to_owned())).chain(port)
}

/// Splits `host:port`; a Unix socket has no port.
pub(in crate::telemetry) fn host_and_port(server: &str) -> (&str, Option<u16>) {
    let parts = server.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    parts.map_or((server, None), |(host, port)| (host.trim_matches(['[', ']']), Some(port)))
}

fn scheme(is_tls: bool) -> &'static str {
    if is_tls { "https" } else { "http" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_those_of_the_conventions_or_other() {
        let extension = Method::from_bytes(b"PROPFIND").expect("it is a method");
        let names = KNOWN.map(|method| known(&method.parse().unwrap()).to_owned());
        assert_eq!(names, KNOWN.map(str::to_owned));
        assert_eq!(known(&extension), "_OTHER");
    }

    #[test]
    fn statuses_are_registered_ones_or_the_first_of_their_class() {
        for (status, expected) in [
            (0, 0),
            (200, 200),
            (207, 207),
            (250, 200),
            (304, 304),
            (399, 300),
            (423, 423),
            (499, 400),
            (504, 504),
            (520, 500),
            (600, 500),
            (999, 500),
        ] {
            assert_eq!(counted(status), expected, "{status}");
        }
    }

    #[test]
    fn a_server_has_a_host_and_perhaps_a_port() {
        assert_eq!(host_and_port("docs.example.com:8080"), ("docs.example.com", Some(8080)));
        assert_eq!(host_and_port("[::1]:80"), ("::1", Some(80)));
        assert_eq!(host_and_port("unix:/run/docs.sock"), ("unix:/run/docs.sock", None));
    }
}
