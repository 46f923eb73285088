//! The spans of a request's steps.

use std::sync::Arc;

use opentelemetry::{
    Context, KeyValue, Value,
    trace::{Span as _, SpanBuilder, SpanKind, Status, TraceContextExt as _, Tracer as _},
};
use opentelemetry_sdk::trace::Span;

use super::{
    stream_info::{StreamInfo, current},
    traces::tracer,
};

/// The span of one step of a request, which ends when this is dropped; nothing if the request is not sampled.
#[derive(Debug)]
#[must_use = "the step ends when it is dropped"]
pub struct Step(Option<OpenStep>);

#[derive(Debug)]
struct OpenStep {
    info: Arc<StreamInfo>,
    span: Span,
    /// The context that contains the step.
    around: Context,
}

impl Step {
    /// Begins a step of the request on whose behalf the caller runs.
    pub fn begin(name: &'static str) -> Self {
        if tracer().is_none() {
            return Self(None);
        }
        current().map_or(Self(None), |info| Self::of(&info, name, SpanKind::Internal))
    }

    /// Begins the step of an exchange with a server.
    pub fn exchange(info: &Arc<StreamInfo>) -> Self {
        Self::of(info, "exchange", SpanKind::Client)
    }

    fn of(info: &Arc<StreamInfo>, name: &'static str, kind: SpanKind) -> Self {
        let (Some(tracer), Some(mut recording)) = (tracer(), info.trace.lock()) else { return Self(None) };
        let span = tracer.build_with_context(SpanBuilder::from_name(name).with_kind(kind), &recording.parent);
        let own = Context::new().with_remote_span_context(span.span_context().clone());
        let around = std::mem::replace(&mut recording.parent, own);
        drop(recording);
        Self(Some(OpenStep { info: Arc::clone(info), span, around }))
    }

    /// Sets an attribute of the step.
    pub fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        if let Some(open) = &mut self.0 {
            open.span.set_attribute(KeyValue::new(name, value));
        }
    }

    /// Marks the step as failed.
    pub fn fail(&mut self, reason: &'static str) {
        if let Some(open) = &mut self.0 {
            open.span.set_attribute(KeyValue::new("error.type", reason));
            open.span.set_status(Status::error(""));
        }
    }

    /// Returns whether the step is recorded.
    pub const fn is_recorded(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        let Some(OpenStep { info, mut span, around }) = self.0.take() else { return };
        span.end();
        if let Some(mut recording) = info.trace.lock() {
            recording.parent = around;
        }
    }
}
