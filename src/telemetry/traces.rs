//! Traces: a span for each request that is sampled, spans for its steps, and the context that goes from the client
//! through here to the servers (W3C Trace Context).
//!
//! # Design
//!
//! *Why not spans of `tracing`?* Each would be made, filtered and kept in a registry before anything asked whether its
//! request is sampled. Here that is asked first, and for the other ninety-nine there is no span at all.
//!
//! *What do servers get?* The context of our own span. Where a request is not sampled, and its client said that it is
//! not, its own field goes on untouched: its spans end here, and those behind us join the last one there is. The same
//! where traces are off.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use http::HeaderMap;
use opentelemetry::{
    Context, KeyValue,
    propagation::{Extractor, TextMapPropagator as _},
    trace::{
        Span as _, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt as _, Tracer as _, TracerProvider as _,
    },
};
use opentelemetry_sdk::{
    propagation::TraceContextPropagator,
    trace::{SdkTracer, SdkTracerProvider, Span},
};

/// The fields of W3C Trace Context.
pub const TRACEPARENT: &str = "traceparent";
/// The other one: what vendors add.
pub const TRACESTATE: &str = "tracestate";

pub(super) static TRACER: OnceLock<(SdkTracerProvider, SdkTracer)> = OnceLock::new();

/// Begins to trace. Only the first call of a process does anything.
pub(super) fn start(provider: SdkTracerProvider) {
    let tracer = provider.tracer("ifmatch");
    let _ = TRACER.set((provider, tracer));
}

/// Where spans come together, if requests are traced.
pub(super) fn provider() -> Option<&'static SdkTracerProvider> {
    TRACER.get().map(|(provider, _)| provider)
}

/// Whether requests are traced.
pub(super) fn are_on() -> bool {
    TRACER.get().is_some()
}

/// The trace that a request belongs to.
#[derive(Debug)]
pub struct Trace {
    /// That of its own span, recorded or not; else that of the client.
    context: SpanContext,
    /// Whether servers get the context as the client sent it.
    passes: bool,
    /// What is recorded, where the request is sampled.
    recording: Option<Mutex<Recording>>,
}

#[derive(Debug)]
pub(super) struct Recording {
    span: Span,
    /// What the next span is part of.
    pub(super) parent: Context,
}

impl Trace {
    /// No trace.
    pub fn none() -> Self {
        Self { context: SpanContext::NONE, passes: true, recording: None }
    }

    /// The trace of a request with these fields.
    pub(super) fn begin(headers: &HeaderMap) -> Self {
        let client = client(headers);
        let Some((_, tracer)) = TRACER.get() else {
            return Self { context: client.span().span_context().clone(), passes: true, recording: None };
        };
        let span = tracer.build_with_context(SpanBuilder::from_name("request").with_kind(SpanKind::Server), &client);
        let context = span.span_context().clone();
        if !span.is_recording() {
            let sent = client.span().span_context().clone();
            let passes = sent.is_valid() && !sent.is_sampled();
            return Self { context: if passes { sent } else { context }, passes, recording: None };
        }
        let parent = Context::new().with_remote_span_context(context.clone());
        Self { context, passes: false, recording: Some(Mutex::new(Recording { span, parent })) }
    }

    /// The trace's id in hexadecimal, if there is one.
    pub(super) fn id(&self) -> Option<String> {
        self.context.is_valid().then(|| self.context.trace_id().to_string())
    }

    /// What a server is told: `traceparent`, and `tracestate` if there is one; `None` where it gets what the client sent.
    pub fn to_server(&self) -> Option<(String, Option<String>)> {
        if self.passes {
            return None;
        }
        let own = match self.lock() {
            Some(recording) => recording.parent.span().span_context().clone(),
            None => self.context.clone(),
        };
        let parent = format!("00-{}-{}-{:02x}", own.trace_id(), own.span_id(), own.trace_flags().to_u8());
        let state = own.trace_state().header();
        Some((parent, Some(state).filter(|state| !state.is_empty())))
    }

    /// Ends the span of the request, if there is one, with what is known of it by now.
    pub(super) fn end(&self, describe: impl FnOnce() -> Description) {
        let Some(mut recording) = self.lock() else { return };
        let Description { name, attributes, failed } = describe();
        recording.span.update_name(name);
        recording.span.set_attributes(attributes);
        if failed {
            recording.span.set_status(Status::error(""));
        }
        recording.span.end();
    }

    pub(super) fn lock(&self) -> Option<MutexGuard<'_, Recording>> {
        self.recording.as_ref().map(|recording| recording.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What is known of a request at its end.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) name: String,
    pub(super) attributes: Vec<KeyValue>,
    /// Whether the server is to blame.
    pub(super) failed: bool,
}

/// The context that the client sent. What cannot be read is none (W3C Trace Context, section 4.3).
fn client(headers: &HeaderMap) -> Context {
    if !headers.contains_key(TRACEPARENT) {
        return Context::new();
    }
    TraceContextPropagator::new().extract_with_context(&Context::new(), &Fields(headers))
}

struct Fields<'a>(&'a HeaderMap);

impl Extractor for Fields<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}
