//! The cost of every request before its judgement: the normal form of its path, its route, and its key.

#![allow(clippy::expect_used, reason = "a benchmark stops at the first surprise")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use http::HeaderMap;
use ifmatch::core::{
    http::request_target::{KeptInNames, normalize},
    resource::{KeyParts, KeyTemplate},
    route::{HostPattern, PathPattern, RouteTable},
};

const HOST: &str = "docs.example.com:8080";

fn normal_form(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("normal form");
    let paths: [(&str, &[u8]); 3] = [
        ("plain", b"/documents/0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"),
        ("dots and slashes", b"/documents/./drafts/..//0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0/"),
        ("encoded", b"/documents/caf%c3%a9%20au%20lait/%7e0b1c2d3e-4f50"),
    ];
    for (name, path) in paths {
        group.bench_function(name, |bencher| bencher.iter(|| normalize(black_box(path), KeptInNames::NOTHING)));
    }
}

/// A table in which the route that is looked for stands last.
fn table(routes: usize) -> RouteTable {
    let path = |index| format!("/collection{index:03}/{{id}}/parts/{{part}}");
    let mut paths: Vec<_> = (1..routes).map(path).collect();
    paths.push("/documents/{id}".to_owned());
    RouteTable::new(paths.iter().map(|path| (HostPattern::Any, PathPattern::parse(path).expect("a pattern"))).collect())
}

fn route(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("route");
    let path = normalize(b"/documents/42", KeptInNames::NOTHING).expect("a normal form");
    for routes in [1, 10, 300] {
        let table = table(routes);
        group.bench_function(format!("the last of {routes}"), |bencher| {
            bencher.iter(|| table.find(black_box(HOST), black_box(&path)).map(|found| found.index));
        });
    }
    let table = table(10);
    group.bench_function("as spelled, the last of 10", |bencher| {
        bencher.iter(|| table.find_raw(black_box(HOST), black_box(b"/documents/42")));
    });
}

fn key(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("key");
    let path = normalize(b"/documents/42", KeptInNames::NOTHING).expect("a normal form");
    let table = table(10);
    let found = table.find(HOST, &path).expect("a route");
    let headers = HeaderMap::new();
    let query = Some(&b"a=1&part=b+c"[..]);
    let parts = KeyParts { host: HOST, path: &path, captures: &found.captures, query, headers: &headers };
    for template in ["{path}", "{host}#{id}#{query.part}"] {
        let parsed = KeyTemplate::parse(template, &["id"]).expect("a template");
        group.bench_function(template, |bencher| bencher.iter(|| parsed.key(black_box("docs"), black_box(&parts))));
    }
    let made = KeyTemplate::parse("{path}", &[]).expect("a template").key("docs", &parts).expect("a key");
    group.bench_function("bucket", |bencher| bencher.iter(|| black_box(&made).bucket()));
}

criterion_group!(benches, normal_form, route, key);
criterion_main!(benches);
