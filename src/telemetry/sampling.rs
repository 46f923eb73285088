//! The decision which new traces are recorded.
//!
//! # Design
//!
//! *Why not by the SDK alone?* The SDK makes a span before it finds that the trace is not recorded, as ninety-nine of a
//! hundred are not. Here the id of the trace is drawn first, and a sampler of the SDK decides by it. A trace that is recorded
//! begins in the SDK with the same id, by which the SDK decides the same.

use std::cell::Cell;

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, TraceFlags, TraceId, TraceState};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, Sampler, SamplingDecision, ShouldSample as _};

thread_local! {
    /// The id of a trace that this thread is about to begin in the SDK.
    static DRAWN: Cell<Option<TraceId>> = const { Cell::new(None) };
}

/// The random ids of the SDK, except for a trace whose id was drawn already.
#[derive(Debug, Default)]
pub(super) struct TraceIds(RandomIdGenerator);

impl IdGenerator for TraceIds {
    fn new_trace_id(&self) -> TraceId {
        DRAWN.take().unwrap_or_else(|| self.0.new_trace_id())
    }

    fn new_span_id(&self) -> SpanId {
        self.0.new_span_id()
    }
}

/// Draws the id of a new trace. Returns the context of its first span if the trace is not recorded; otherwise the SDK
/// begins it, directly afterwards in this thread.
pub(super) fn unrecorded(sampler: &Sampler) -> Option<SpanContext> {
    let (ids, kind) = (RandomIdGenerator::default(), SpanKind::Server);
    let trace_id = ids.new_trace_id();
    let result = sampler.should_sample(None, trace_id, "request", &kind, &[], &[]);
    if result.decision == SamplingDecision::Drop {
        let (span_id, flags) = (ids.new_span_id(), TraceFlags::default());
        return Some(SpanContext::new(trace_id, span_id, flags, false, TraceState::NONE));
    }
    DRAWN.set(Some(trace_id));
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_traces_are_recorded_as_the_sampler_says() {
        for (ratio, least, most) in [(0.0, 0, 0), (0.25, 150, 350), (1.0, 1_000, 1_000)] {
            let sampler = Sampler::TraceIdRatioBased(ratio);
            let recorded = (0..1_000).filter(|_| unrecorded(&sampler).is_none()).count();
            assert!((least..=most).contains(&recorded), "{ratio}: {recorded}");
        }
    }

    #[test]
    fn a_recorded_trace_begins_with_the_id_that_was_decided_by() {
        let sampler = Sampler::TraceIdRatioBased(0.5);
        let decided = |id| sampler.should_sample(None, id, "", &SpanKind::Server, &[], &[]).decision;
        for _ in 0..100 {
            match unrecorded(&sampler) {
                None => assert_eq!(decided(TraceIds::default().new_trace_id()), SamplingDecision::RecordAndSample),
                Some(context) => {
                    assert!(context.is_valid() && !context.is_sampled() && !context.is_remote());
                    assert_eq!(decided(context.trace_id()), SamplingDecision::Drop);
                }
            }
            assert_eq!(DRAWN.take(), None);
        }
    }
}
