//! One exchange with a server, as it is seen from here: its span, its time, and what it tells the server of the trace.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::Method;

use super::{
    is_on,
    metrics::{
        self, definitions as define,
        requests::{host_and_port, known},
    },
    step::Step,
    stream_info::{StreamInfo, current},
};
use crate::core::address::Address;

/// An exchange that has begun; dropped unanswered, it was given up.
#[derive(Debug)]
pub struct ExchangeWatch(Option<Box<WatchedExchange>>);

#[derive(Debug)]
struct WatchedExchange {
    trail: Option<Arc<StreamInfo>>,
    step: Option<Step>,
    /// The method, once the request is made.
    method: Option<Method>,
    /// `host:port`, as the configuration has it.
    server: String,
    is_tls: bool,
    address: Option<Address>,
    started: Instant,
}

impl ExchangeWatch {
    /// Of nothing.
    pub const fn nothing() -> Self {
        Self(None)
    }

    /// Watches an exchange on behalf of the request of this task, from before there is a connection.
    pub fn begin(server: &str, is_tls: bool, address: Option<Address>) -> Self {
        if is_on() { Self::begin_for(current(), server, is_tls, address) } else { Self(None) }
    }

    /// Watches an exchange on behalf of the request of this trail.
    pub fn begin_for(trail: Option<Arc<StreamInfo>>, server: &str, is_tls: bool, address: Option<Address>) -> Self {
        if trail.is_none() && metrics::get().is_none() {
            return Self(None);
        }
        let mut step = trail.as_ref().map(Step::exchange).filter(Step::is_recorded);
        if let Some(step) = &mut step {
            let (host, port) = host_and_port(server);
            step.set(define::SERVER, host.to_owned());
            step.set(define::SCHEME, if is_tls { "https" } else { "http" });
            if let Some(port) = port {
                step.set(define::PORT, i64::from(port));
            }
        }
        let (server, started) = (server.to_owned(), Instant::now());
        Self(Some(Box::new(WatchedExchange { trail, step, method: None, server, is_tls, address, started })))
    }

    /// What is asked for.
    pub fn asks(&mut self, method: &Method) {
        if let Some(watched) = &mut self.0 {
            watched.method = Some(method.clone());
            if let Some(step) = &mut watched.step {
                step.set(define::METHOD, known(method));
            }
        }
    }

    /// What the server is to be told of the trace: `traceparent`, and `tracestate` if there is one; `None` where it gets
    /// what the client sent.
    pub fn trace_fields(&self) -> Option<(String, Option<String>)> {
        self.0.as_ref()?.trail.as_ref()?.trace.to_server()
    }

    /// The head of the response is here.
    pub fn answered(&mut self, status: u16) {
        if let Some(watched) = self.0.take() {
            watched.end(Ok(status));
        }
    }

    /// There is no response.
    pub fn failed(&mut self, reason: &'static str) {
        if let Some(watched) = self.0.take() {
            watched.end(Err(reason));
        }
    }
}

impl WatchedExchange {
    fn end(self, status: Result<u16, &'static str>) {
        let Self { trail, step, method, server, is_tls, address, started } = self;
        let took: Duration = started.elapsed();
        if let Some(trail) = trail {
            trail.exchanged(address, took);
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
