//! The telemetry of one exchange with a server: its span, its duration, and the trace fields for the server.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::Method;

use super::{
    metrics::{
        self, definitions as define,
        requests::{host_and_port, known},
    },
    step::Step,
    stream_info::{StreamInfo, current},
};
use crate::core::address::Address;

/// Watches an exchange that has begun. An exchange dropped without an answer counts as abandoned.
#[derive(Debug)]
pub struct ExchangeWatch(Option<Box<WatchedExchange>>);

#[derive(Debug)]
struct WatchedExchange {
    info: Option<Arc<StreamInfo>>,
    step: Option<Step>,
    /// The method, once the request has been made.
    method: Option<Method>,
    /// The `host:port` of the server, as in the configuration.
    server: String,
    is_tls: bool,
    address: Option<Address>,
    started: Instant,
}

impl ExchangeWatch {
    /// Creates a watch that records nothing.
    pub const fn nothing() -> Self {
        Self(None)
    }

    /// Watches an exchange on behalf of the request of this task, starting before there is a connection.
    pub fn begin(server: &str, is_tls: bool, address: Option<Address>) -> Self {
        Self::begin_for(current(), server, is_tls, address)
    }

    /// Watches an exchange on behalf of the request with this stream info.
    pub fn begin_for(info: Option<Arc<StreamInfo>>, server: &str, is_tls: bool, address: Option<Address>) -> Self {
        if info.is_none() && metrics::get().is_none() {
            return Self(None);
        }
        let mut step = info.as_ref().map(Step::exchange).filter(Step::is_recorded);
        if let Some(step) = &mut step {
            let (host, port) = host_and_port(server);
            step.set(define::SERVER, host.to_owned());
            step.set(define::SCHEME, if is_tls { "https" } else { "http" });
            if let Some(port) = port {
                step.set(define::PORT, i64::from(port));
            }
        }
        let (server, started) = (server.to_owned(), Instant::now());
        Self(Some(Box::new(WatchedExchange { info, step, method: None, server, is_tls, address, started })))
    }

    /// Notes the method of the request.
    pub fn asks(&mut self, method: &Method) {
        if let Some(watched) = &mut self.0 {
            watched.method = Some(method.clone());
            if let Some(step) = &mut watched.step {
                step.set(define::METHOD, known(method));
            }
        }
    }

    /// Returns the trace fields for the server: `traceparent`, and `tracestate` if there is one. `None` if the fields
    /// of the client are passed on.
    pub fn trace_fields(&self) -> Option<(String, Option<String>)> {
        self.0.as_ref()?.info.as_ref()?.trace.to_server()
    }

    /// Notes that the head of the response has arrived.
    pub fn answered(&mut self, status: u16) {
        if let Some(watched) = self.0.take() {
            watched.end(Ok(status));
        }
    }

    /// Notes that there is no response.
    pub fn failed(&mut self, reason: &'static str) {
        if let Some(watched) = self.0.take() {
            watched.end(Err(reason));
        }
    }
}

impl WatchedExchange {
    fn end(self, status: Result<u16, &'static str>) {
        let Self { info, step, method, server, is_tls, address, started } = self;
        let took: Duration = started.elapsed();
        if let Some(info) = info {
            info.exchanged(address, took);
        }
        if let Some(metrics) = metrics::get() {
            metrics.exchange(&server, is_tls, method.as_ref(), status, took);
        }
        let Some(mut step) = step else { return };
        match status {
            Ok(status) => {
                step.set(define::STATUS, i64::from(status));
                if status >= 400 {
                    step.fail("status");
                }
            }
            Err(reason) => step.fail(reason),
        }
    }
}

impl Drop for ExchangeWatch {
    fn drop(&mut self) {
        self.failed("abandoned");
    }
}
