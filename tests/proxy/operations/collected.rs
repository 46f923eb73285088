//! The data that a collector of OTLP gets: spans, metrics and logs of requests (docs/telemetry.md).

use std::path::Path;

use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};

use crate::support::{
    backend::Backend,
    collector::{Collector, attributes, has, text},
    leases::acquire,
    ports,
    proxy::Proxy,
    raw::send,
    tls::Office,
    wait::{until, until_equal, until_some, within},
};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// Batches leave at once, nearly.
const SOON: [(&str, &str); 3] =
    [("OTEL_BSP_SCHEDULE_DELAY", "50"), ("OTEL_BLRP_SCHEDULE_DELAY", "50"), ("OTEL_METRIC_EXPORT_INTERVAL", "100")];

/// A proxy that tells this collector everything.
async fn told(collector: &Collector, backend: &Backend, route: &str, telemetry: &str) -> Proxy {
    told_with(collector, backend, route, telemetry, &[]).await
}

async fn told_with(
    collector: &Collector,
    backend: &Backend,
    route: &str,
    telemetry: &str,
    variables: &[(&str, &str)],
) -> Proxy {
    let configuration = Proxy::to(backend.addr()).route(route).configuration();
    let otlp = format!("\n[telemetry]\notlp = {{ endpoint = \"{}\" }}\n{telemetry}\n", collector.url());
    Proxy::start_with(&(configuration + &otlp), &[&SOON, variables].concat()).await
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

/// The spans of a trace, once there is a finished one of the request with this status.
async fn trace_of(collector: &Collector, name: &str, status: u16) -> Vec<Span> {
    let status = status.to_string();
    let is_it = |span: &&Span| {
        span.name == name && has(&attributes(&span.attributes), &[("http.response.status_code", &status)])
    };
    let server = until_some(name, || collector.spans().iter().find(is_it).cloned()).await;
    // The steps have ended before it, and may come in the same batch or in one before.
    collector.spans().into_iter().filter(|span| span.trace_id == server.trace_id).collect()
}

fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name} is not among {names:?}"))
}

/// W3C Trace Context, sections 3.2 and 4; the semantic conventions of HTTP spans.
#[tokio::test]
async fn a_guarded_write_is_a_span_with_its_steps_below_it() {
    let (collector, backend) = (Collector::start().await, Backend::start().await);
    backend.put("/doc", "one");
    let proxy = told(&collector, &backend, "", "sampling = 0").await;
    let tag = send(proxy.addr(), "GET", "/doc", &[], "").await.etag();
    // Its client's part is recorded, and so is that of the proxy, with any ratio.
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    let fields = [("If-Match", tag.as_str()), ("traceparent", &traceparent), ("tracestate", "vendor=1")];
    let written = send(proxy.addr(), "PUT", "/doc", &fields, "two").await;
    assert!((200..300).contains(&written.status), "{}", written.status);

    let spans = trace_of(&collector, "PUT /{*rest}", written.status).await;
    let server = named(&spans, "PUT /{*rest}");
    assert_eq!((hex(&server.trace_id).as_str(), hex(&server.parent_span_id).as_str()), (TRACE, PARENT));
    assert_eq!(server.kind(), SpanKind::Server);
    let expected =
        [("http.route", "/{*rest}"), ("ifmatch.route", "all"), ("ifmatch.verdict", "passed"), ("url.path", "/doc")];
    assert!(has(&attributes(&server.attributes), &expected), "{:?}", attributes(&server.attributes));
    for step in ["claim", "settle"] {
        assert_eq!(named(&spans, step).parent_span_id, server.span_id, "{step}");
    }
    assert_eq!(named(&spans, "probe").parent_span_id, named(&spans, "claim").span_id);
    assert!(has(&attributes(&named(&spans, "settle").attributes), &[("ifmatch.outcome", "applied")]));

    // The write arrives with the context of the span of its own exchange, and the state as it was.
    let sent = backend.seen("PUT", "/doc");
    let received = sent.first().expect("it arrived").header("traceparent").expect("a context").to_owned();
    let exchange = spans.iter().find(|span| received == format!("00-{TRACE}-{}-01", hex(&span.span_id)));
    let exchange = exchange.unwrap_or_else(|| panic!("{received} is none of ours"));
    assert_eq!((exchange.name.as_str(), exchange.kind()), ("exchange", SpanKind::Client));
    assert_eq!(exchange.parent_span_id, server.span_id);
    assert_eq!(sent[0].header("tracestate"), Some("vendor=1"));
}

#[tokio::test]
async fn an_unguarded_request_goes_on_with_the_trace_of_its_client() {
    let (collector, backend) = (Collector::start().await, Backend::start().await);
    backend.put("/doc", "one");
    let proxy = told(&collector, &backend, "policy = \"last-writer-wins\"", "sampling = 0").await;
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    send(proxy.addr(), "GET", "/doc", &[("traceparent", &traceparent)], "").await;
    let spans = trace_of(&collector, "GET /{*rest}", 200).await;
    let (server, exchange) = (named(&spans, "GET /{*rest}"), named(&spans, "exchange"));
    assert_eq!(hex(&server.parent_span_id), PARENT);
    assert_eq!(exchange.parent_span_id, server.span_id);
    let received = backend.seen("GET", "/doc")[0].header("traceparent").map(str::to_owned);
    assert_eq!(received, Some(format!("00-{TRACE}-{}-01", hex(&exchange.span_id))));
}

/// A request that is not recorded costs nothing, and the parts of a trace before and behind the proxy stay together.
#[tokio::test]
async fn a_request_that_is_not_recorded_passes_its_context_on() {
    let (collector, backend) = (Collector::start().await, Backend::start().await);
    backend.put("/doc", "one");
    for route in ["", "policy = \"last-writer-wins\""] {
        let proxy = told(&collector, &backend, route, "sampling = 1").await;
        let traceparent = format!("00-{TRACE}-{PARENT}-00");
        send(proxy.addr(), "GET", "/doc", &[("traceparent", &traceparent)], "").await;
        let received = backend.seen("GET", "/doc").last().expect("it arrived").header("traceparent").map(str::to_owned);
        assert_eq!(received, Some(traceparent), "{route}");
        // A later request is recorded: so the one before would be here as well.
        let later = send(proxy.addr(), "DELETE", "/other", &[("If-Match", "*")], "").await;
        trace_of(&collector, "DELETE /{*rest}", later.status).await;
    }
    assert!(collector.spans().iter().all(|span| hex(&span.trace_id) != TRACE));
}

/// Without anything to send, any context of a client passes unchanged.
#[tokio::test]
async fn without_traces_the_context_of_the_client_passes_untouched() {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    for route in ["", "policy = \"last-writer-wins\""] {
        let proxy = Proxy::to(backend.addr()).route(route).start().await;
        let traceparent = format!("00-{TRACE}-{PARENT}-01");
        let fields = [("traceparent", traceparent.as_str()), ("tracestate", "vendor=1")];
        send(proxy.addr(), "GET", "/doc", &fields, "").await;
        let seen = backend.seen("GET", "/doc").pop().expect("it arrived");
        assert_eq!((seen.header("traceparent"), seen.header("tracestate")), (Some(&*traceparent), Some("vendor=1")));
        until("the trace is in the log", || proxy.log().contains(TRACE)).await;
    }
}

#[tokio::test]
async fn metrics_count_what_was_decided_and_what_was_asked() {
    let (collector, backend) = (Collector::start().await, Backend::start().await);
    backend.put("/doc", "one");
    let proxy = told(&collector, &backend, "", "").await;
    let tag = send(proxy.addr(), "GET", "/doc", &[], "").await.etag();
    for status in [204, 412, 412] {
        assert_eq!(send(proxy.addr(), "PUT", "/doc", &[("If-Match", &tag)], "two").await.status, status);
    }
    assert_eq!(send(proxy.addr(), "PUT", "/doc", &[], "three").await.status, 428);
    let verdict =
        |verdict| collector.counter("ifmatch.verdicts", &[("ifmatch.route", "all"), ("ifmatch.verdict", verdict)]);
    let verdicts = || ["passed", "precondition-failed", "precondition-required"].map(verdict);
    until_equal("the verdicts", [Some(2), Some(2), Some(1)], verdicts).await;
    let served = |method, status| {
        let with = [("http.request.method", method), ("http.response.status_code", status), ("http.route", "/{*rest}")];
        collector.count("http.server.request.duration", &with)
    };
    // A request is counted when its answer is out.
    let all_served = || [("GET", "200"), ("PUT", "204"), ("PUT", "412")].map(|(method, status)| served(method, status));
    until_equal("the requests", [Some(1), Some(1), Some(2)], all_served).await;
    let probes = collector.counter("ifmatch.probes", &[("ifmatch.probe.found", "present")]);
    assert_eq!(probes, Some(3), "each write with a tag is judged by one");
    let port = backend.addr().port().to_string();
    let to_backend = [("http.request.method", "PUT"), ("server.address", "127.0.0.1"), ("server.port", port.as_str())];
    assert_eq!(collector.count("http.client.request.duration", &to_backend), Some(1), "one write was sent");
    assert_eq!(collector.count("ifmatch.claim.wait", &[("ifmatch.route", "all")]), Some(3));
    assert!(collector.count("ifmatch.store.duration", &[("ifmatch.store.operation", "swap")]) >= Some(2));
}

/// DESIGN, section 3, rule 11.
#[tokio::test]
async fn logs_arrive_with_their_fields_and_without_secrets() {
    let (collector, backend) = (Collector::start().await, Backend::start().await);
    backend.put("/doc", "one");
    let route = "policy = \"pessimistic\"";
    let proxy = told(&collector, &backend, route, "sampling = 1\nlog_format = \"json\"").await;
    let lease = acquire(proxy.addr(), "/doc", "30").await.id;
    let fields = [("Lease-Id", lease.as_str()), ("Authorization", "Bearer secret-credential")];
    send(proxy.addr(), "PUT", "/doc?sig=secret-signature", &fields, "two").await;
    let access = || collector.logs().into_iter().find(|log| has(&attributes(&log.attributes), &[("method", "PUT")]));
    let record = until_some("the access record", access).await;
    let expected = [("route", "all"), ("policy", "pessimistic"), ("path", "/doc"), ("verdict", "passed")];
    assert!(has(&attributes(&record.attributes), &expected), "{:?}", attributes(&record.attributes));
    until("the span", || collector.spans().iter().any(|span| span.name == "PUT /{*rest}")).await;
    until("the line", || proxy.log().contains("\"method\":\"PUT\"")).await;
    let told = format!("{:?} {:?} {}", collector.logs(), collector.spans(), proxy.log());
    for secret in [lease.as_str(), "secret-credential", "secret-signature"] {
        assert!(!told.contains(secret), "{secret} is in {told}");
    }
    assert!(
        collector.logs().iter().any(|log| text(log.body.as_ref()).starts_with("ifmatch ")),
        "the start is a record"
    );
}

/// The environment wins over the file.
#[tokio::test]
async fn the_standard_variables_win() {
    let (collector, backend) = (Collector::start().await, Backend::start().await);
    let elsewhere = "\n[telemetry]\notlp = { endpoint = \"http://127.0.0.1:1\" }\nservice_name = \"of-file\"\nsampling = 0\n\
                     resource = [\"team=of-file\", \"zone=of-file\"]\n";
    let configuration = Proxy::to(backend.addr()).configuration() + elsewhere;
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url()),
        ("OTEL_SERVICE_NAME", "of-environment"),
        ("OTEL_RESOURCE_ATTRIBUTES", "team=of-environment"),
        ("OTEL_TRACES_SAMPLER", "always_on"),
        ("OTEL_METRICS_EXPORTER", "none"),
    ];
    let variables: Vec<_> = variables.into_iter().chain(SOON).collect();
    let proxy = Proxy::start_with(&configuration, &variables).await;
    send(proxy.addr(), "GET", "/doc", &[], "").await;
    trace_of(&collector, "GET /{*rest}", 404).await;
    let resource = collector.resources().pop().expect("somebody");
    let expected = [("service.name", "of-environment"), ("team", "of-environment"), ("zone", "of-file")];
    assert!(has(&resource, &expected), "{resource:?}");
    assert_eq!(collector.count("http.server.request.duration", &[]), None, "metrics are switched off");
}

/// Over TLS, to a collector whose authority is named in the file, or in the environment; and to no other.
#[tokio::test]
async fn a_collector_proves_who_it_is() {
    let (office, backend) = (Office::new(), Backend::start().await);
    let (certificate, key) = office.issue(&[&ports::free().ip().to_string()]);
    let read = |path: &Path| std::fs::read(path).expect("a file");
    let collector = Collector::secure(&read(&certificate), &read(&key)).await;
    let endpoint = format!("endpoint = \"{}\"", collector.url());
    let otlp = |tls: &str| format!("\n[telemetry]\nsampling = 1\notlp = {{ {endpoint}{tls} }}\n");
    let configuration = Proxy::to(backend.addr()).configuration();
    let start = async |tls: &str, variables: &[(&str, &str)]| {
        let proxy = Proxy::start_with(&(configuration.clone() + &otlp(tls)), &[&SOON, variables].concat()).await;
        send(proxy.addr(), "GET", "/doc", &[], "").await;
        proxy
    };
    let strict = start("", &[]).await;
    until("the certificate to be refused", || strict.log().contains("the collector takes no traces")).await;
    drop(strict);
    assert!(collector.spans().is_empty() && collector.resources().is_empty());
    let ca = office.ca();
    let _of_file = start(&format!(", tls = {{ ca = {ca:?} }}"), &[]).await;
    trace_of(&collector, "GET /{*rest}", 404).await;
    let sent = collector.spans().len();
    let _of_environment = start("", &[("OTEL_EXPORTER_OTLP_CERTIFICATE", ca.to_str().expect("UTF-8"))]).await;
    until("more spans", || collector.spans().len() > sent).await;
}

#[tokio::test]
async fn all_of_it_can_be_forbidden() {
    let (collector, backend) = (Collector::start().await, Backend::start().await);
    let mut proxy = told_with(&collector, &backend, "", "sampling = 1", &[("OTEL_SDK_DISABLED", "true")]).await;
    send(proxy.addr(), "GET", "/doc", &[], "").await;
    proxy.signal("TERM");
    assert!(proxy.exit_status().await.success());
    assert!(collector.spans().is_empty() && collector.logs().is_empty() && collector.resources().is_empty());
}

/// A batch is not late because the process ends.
#[tokio::test]
async fn what_is_left_is_sent_at_the_end() {
    let (collector, backend) = (Collector::start().await, Backend::start().await);
    let late = [("OTEL_BSP_SCHEDULE_DELAY", "60000"), ("OTEL_METRIC_EXPORT_INTERVAL", "60000")];
    let mut proxy = told_with(&collector, &backend, "", "sampling = 1", &late).await;
    send(proxy.addr(), "GET", "/doc", &[], "").await;
    proxy.signal("TERM");
    assert!(proxy.exit_status().await.success());
    assert!(collector.spans().iter().any(|span| span.name == "GET /{*rest}"));
    assert_eq!(collector.count("http.server.request.duration", &[("http.request.method", "GET")]), Some(1));
}

/// Nothing waits for a collector, and it is spoken of once.
#[tokio::test]
async fn a_collector_that_is_gone_is_one_line_and_holds_up_nobody() {
    let backend = Backend::start().await;
    let collector = Collector::start().await;
    let addr = collector.addr();
    drop(collector);
    let telemetry = format!(
        "\n[telemetry]\nsampling = 1\notlp = {{ endpoint = \"http://{addr}\", signals = [\"traces\"], timeout = \"200ms\" }}\n"
    );
    let configuration = Proxy::to(backend.addr()).configuration() + &telemetry;
    let mut proxy = Proxy::start_with(&configuration, &SOON).await;
    let lines = |what: &str| proxy.log().matches(what).count();
    send(proxy.addr(), "GET", "/doc", &[], "").await;
    until("the line", || lines("the collector takes no traces") == 1).await;
    for _ in 0..5 {
        send(proxy.addr(), "GET", "/doc", &[], "").await;
    }
    let collector = Collector::on(addr).await;
    within("it is there again", async {
        while lines("the collector takes traces again") == 0 {
            send(proxy.addr(), "GET", "/doc", &[], "").await;
        }
    })
    .await;
    drop(collector);
    assert_eq!(lines("the collector takes no traces"), 1);
    proxy.signal("TERM");
    assert!(proxy.exit_status().await.success());
}
