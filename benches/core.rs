//! The cost of the pure core for a request: one group for each kind of decision.

#![allow(clippy::expect_used, reason = "a benchmark stops at the first surprise")]

use std::{hint::black_box, iter};

use criterion::{BenchmarkId, Criterion, Throughput};
use http::{HeaderMap, HeaderValue, Method, header};
use ifmatch::core::tags::{
    entity_tag::EntityTag,
    precondition::{MatchRule, Preconditions, judge},
    validators::{Representation, Validators},
};

/// The current tag, as long as a content tag is.
const CURRENT: &str = "9f86d081884c7d659a2feaa0c55ad015";
const OTHER: &str = "60303ae22b998861bce3b28f33eec1be";

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    parse_preconditions(&mut criterion);
    judge_preconditions(&mut criterion);
    criterion.final_summary();
}

/// An `If-Match` list whose last tag is the current one.
fn if_match(tags: usize) -> HeaderMap {
    let list = iter::repeat_n(OTHER, tags - 1).chain([CURRENT]).map(|opaque| format!("\"{opaque}\""));
    let value = HeaderValue::try_from(list.collect::<Vec<_>>().join(", ")).expect("a field value");
    HeaderMap::from_iter([(header::IF_MATCH, value)])
}

fn parse_preconditions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse_preconditions");
    group.bench_function("none", |bencher| {
        let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static("*/*"))]);
        bencher.iter(|| Preconditions::parse(black_box(&headers)));
    });
    group.bench_function("if_modified_since", |bencher| {
        let date = HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT");
        let headers = HeaderMap::from_iter([(header::IF_MODIFIED_SINCE, date)]);
        bencher.iter(|| Preconditions::parse(black_box(&headers)));
    });
    for tags in [1, 10, 1_000] {
        let headers = if_match(tags);
        group.throughput(Throughput::Elements(tags as u64));
        group.bench_with_input(BenchmarkId::new("if_match", tags), &headers, |bencher, headers| {
            bencher.iter(|| Preconditions::parse(black_box(headers)));
        });
    }
    group.finish();
}

fn judge_preconditions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("judge_preconditions");
    let tag = EntityTag::strong(CURRENT).ok();
    let current = Representation::Present(Validators { tag, modified: None });
    for tags in [1, 10, 1_000] {
        let conditions = Preconditions::parse(&if_match(tags)).expect("a list");
        group.throughput(Throughput::Elements(tags as u64));
        for (rule, name) in [(MatchRule::Strong, "strong"), (MatchRule::Version, "version")] {
            group.bench_with_input(BenchmarkId::new(name, tags), &conditions, |bencher, conditions| {
                bencher.iter(|| judge(&Method::PUT, black_box(conditions), black_box(&current), rule));
            });
        }
    }
    group.finish();
}
