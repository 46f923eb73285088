//! Traces (W3C Trace Context): a span for each sampled request, spans for its steps, and the context that the proxy
//! passes from the client to the servers.
//!
//! # Design
//!
//! *Why not spans of `tracing`?* Each would be made, filtered and kept in a registry before the check whether its
//! request is sampled. Here that check comes first, and the other ninety-nine requests have no span at all.
//!
//! *What context do servers receive?* That of the proxy's own span. If a request is not sampled and its client says so
//! too, or if traces are off, the client's fields pass unchanged. The proxy then adds no span, and spans of the servers
//! join the client's last one.

use std::sync::OnceLock;

use http::{HeaderMap, HeaderName};
use opentelemetry::{
    Context, KeyValue,
    propagation::{Extractor, TextMapPropagator as _},
    trace::{
        Span as _, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt as _, Tracer as _, TracerProvider as _,
    },
};
use opentelemetry_sdk::{
    propagation::TraceContextPropagator,
    trace::{Sampler, SdkTracer, SdkTracerProvider, Span},
};
use parking_lot::{Mutex, MutexGuard};

use super::sampling::unrecorded;
use crate::core::digits::{hexadecimal_text, push_hexadecimal};

/// The field of W3C Trace Context with the ids of the trace and the span.
pub const TRACEPARENT: &str = "traceparent";
/// The length of that field.
const TRACEPARENT_BYTES: usize = 55;
/// The name of that field, read once: a look for the text would hash each of its letters for every request.
static TRACEPARENT_NAME: HeaderName = HeaderName::from_static(TRACEPARENT);
/// The field of W3C Trace Context with the additions of vendors.
pub const TRACESTATE: &str = "tracestate";

/// The parts of the SDK that make spans.
#[derive(Debug)]
pub(super) struct Tracing {
    pub(super) provider: SdkTracerProvider,
    /// The sampler of traces that begin here, if the SDK does not take it from the environment.
    pub(super) sampler: Option<Sampler>,
}

static TRACER: OnceLock<(Tracing, SdkTracer)> = OnceLock::new();

/// Starts the traces. Only the first call in a process has an effect.
pub(super) fn start(tracing: Tracing) {
    let tracer = tracing.provider.tracer("ifmatch");
    let _ = TRACER.set((tracing, tracer));
}

/// Returns the provider of all spans, if requests are traced.
pub(super) fn provider() -> Option<&'static SdkTracerProvider> {
    TRACER.get().map(|(tracing, _)| &tracing.provider)
}

/// Returns the maker of spans, if requests are traced.
pub(super) fn tracer() -> Option<&'static SdkTracer> {
    TRACER.get().map(|(_, tracer)| tracer)
}

/// The trace that a request belongs to.
#[derive(Debug)]
pub struct Trace {
    /// The context of the request's own span, recorded or not; else that of the client.
    context: SpanContext,
    /// True if servers receive the context that the client sent.
    passes: bool,
    /// The span being recorded, if the request is sampled. Boxed, so that the notes on all other requests stay small.
    recording: Option<Box<Mutex<Recording>>>,
}

#[derive(Debug)]
pub(super) struct Recording {
    span: Span,
    /// The parent of the next span.
    pub(super) parent: Context,
}

impl Trace {
    /// Returns a trace that records nothing.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self { context: SpanContext::NONE, passes: true, recording: None }
    }

    /// Begins the trace of a request with these header fields.
    pub(super) fn begin(headers: &HeaderMap) -> Self {
        let Some((Tracing { sampler, .. }, tracer)) = TRACER.get() else {
            let client = client(headers).unwrap_or_default();
            return Self { context: client.span().span_context().clone(), passes: true, recording: None };
        };
        let client = client(headers);
        if let (None, Some(sampler)) = (&client, sampler)
            && let Some(context) = unrecorded(sampler)
        {
            return Self { context, passes: false, recording: None };
        }
        let client = client.unwrap_or_default();
        let span = tracer.build_with_context(SpanBuilder::from_name("request").with_kind(SpanKind::Server), &client);
        let context = span.span_context().clone();
        if !span.is_recording() {
            let sent = client.span().span_context().clone();
            let passes = sent.is_valid() && !sent.is_sampled();
            return Self { context: if passes { sent } else { context }, passes, recording: None };
        }
        let parent = Context::new().with_remote_span_context(context.clone());
        Self { context, passes: false, recording: Some(Box::new(Mutex::new(Recording { span, parent }))) }
    }

    /// Returns the id of the trace, if there is one.
    pub(super) fn id(&self) -> Option<[u8; 16]> {
        self.context.is_valid().then(|| self.context.trace_id().to_bytes())
    }

    /// Returns the id of the trace in hexadecimal, if there is one.
    pub(super) fn id_text(&self) -> Option<String> {
        Some(hexadecimal_text(&self.id()?))
    }

    /// Returns the fields for a server: `traceparent`, and `tracestate` if any. `None` if the client's fields pass on.
    pub fn to_server(&self) -> Option<(String, Option<String>)> {
        if self.passes {
            return None;
        }
        let own = match self.lock() {
            Some(recording) => recording.parent.span().span_context().clone(),
            None => self.context.clone(),
        };
        let state = own.trace_state().header();
        Some((traceparent(&own), Some(state).filter(|state| !state.is_empty())))
    }

    /// Ends the span of the request, if there is one, with a description of the request.
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
        self.recording.as_ref().map(|recording| recording.lock())
    }
}

/// Returns the field of a context (W3C Trace Context, section 3.2).
fn traceparent(context: &SpanContext) -> String {
    let mut field = Vec::with_capacity(TRACEPARENT_BYTES);
    field.extend_from_slice(b"00-");
    push_hexadecimal(&mut field, &context.trace_id().to_bytes());
    field.push(b'-');
    push_hexadecimal(&mut field, &context.span_id().to_bytes());
    field.push(b'-');
    push_hexadecimal(&mut field, &[context.trace_flags().to_u8()]);
    String::from_utf8(field).unwrap_or_default()
}

/// The description of a request at its end.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) name: String,
    pub(super) attributes: Vec<KeyValue>,
    /// True if the failure is the server's.
    pub(super) failed: bool,
}

/// Returns the context that the client sent, if it sent one. Unreadable fields count as absent (W3C Trace Context,
/// section 4.3).
fn client(headers: &HeaderMap) -> Option<Context> {
    let extract = || TraceContextPropagator::new().extract_with_context(&Context::new(), &Fields(headers));
    headers.contains_key(&TRACEPARENT_NAME).then(extract)
}

struct Fields<'a>(&'a HeaderMap);

impl Extractor for Fields<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}
