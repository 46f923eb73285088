//! The metrics that Prometheus gets, read by its own parser (docs/telemetry.md).

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
    slice,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use crate::support::{
    admin::{look, start, start_of},
    backend::{Answer, Backend},
    clients::python,
    leases::{acquire, leasing},
    ports,
    proxy::Proxy,
    raw::{Connection, get, put_if_match, send},
    tls::{Office, Secure},
    wait::DEADLINE,
};

/// A sample: its type, name, labels and value.
type Sample = (String, String, BTreeMap<String, String>, f64);

/// Returns the present content of `/metrics`.
async fn scrape(admin: SocketAddr) -> Vec<Sample> {
    let text = look(admin, "/metrics").await.text().to_owned();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/metrics/samples.py");
    let mut command = python();
    command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut parser = command.spawn().expect("python starts");
    parser.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    let output = parser.wait_with_output().expect("it ends");
    assert!(output.status.success(), "this is not the text form of Prometheus:\n{text}");
    let lines = String::from_utf8(output.stdout).expect("text");
    lines.lines().map(|line| serde_json::from_str(line).expect("a sample")).collect()
}

/// The value of the one sample of this name with these labels.
fn value(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let has = |sample: &&Sample| {
        sample.1 == name && labels.iter().all(|(label, value)| sample.2.get(*label).is_some_and(|is| is == value))
    };
    let found: Vec<f64> = samples.iter().filter(has).map(|sample| sample.3).collect();
    assert!(found.len() <= 1, "{name} {labels:?} is not one sample: {found:?}");
    found.first().copied()
}

/// Prometheus sees no growth in a series that begins with one.
#[tokio::test]
async fn what_alerts_wait_for_stands_at_zero_before() {
    let backend = Backend::start().await;
    let (_proxy, admin) = start(&Proxy::to(backend.addr())).await;
    let samples = scrape(admin).await;
    for (name, labels) in [
        ("ifmatch_doubts_made_total", &[][..]),
        ("ifmatch_store_errors_total", &[("ifmatch_store_operation", "swap"), ("error_type", "unavailable")]),
        ("ifmatch_lease_events_total", &[("ifmatch_lease_event", "lost"), ("ifmatch_route", "all")]),
        ("ifmatch_tags_flapping_total", &[("ifmatch_route", "all")]),
        ("ifmatch_verdicts_total", &[("ifmatch_verdict", "overloaded"), ("ifmatch_route", "all")]),
    ] {
        assert_eq!(value(&samples, name, labels), Some(0.0), "{name}");
    }
}

/// A refused reload, a certificate that is about to expire and a restart are seen by nothing else.
#[tokio::test]
async fn loads_and_certificates_have_their_times() {
    let (backend, office) = (Backend::start().await, Office::new());
    let files = office.issue(&["proxy.example"]);
    let begun = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64().floor();
    let setup = Proxy::to(backend.addr()).server("control_socket = \"{control}\"");
    let configuration = Secure::configuration(&setup, ports::free(), slice::from_ref(&files), "");
    let (proxy, admin) = start_of(&configuration).await;
    let at = |samples: &[Sample], name: &str| value(samples, name, &[]).expect("it is told");
    let samples = scrape(admin).await;
    let certificate = [("ifmatch_certificate", files.0.to_str().expect("UTF-8"))];
    let expiry = value(&samples, "ifmatch_certificate_expiry_time_seconds", &certificate);
    assert_eq!(expiry, Some(expiry_by_openssl(&files.0)));
    assert_eq!(value(&samples, "ifmatch_config_last_reload_successful", &[]), Some(1.0));
    let (started, loaded) =
        (at(&samples, "ifmatch_process_start_time_seconds"), at(&samples, "ifmatch_config_load_time_seconds"));
    assert!(begun <= started && started <= loaded + 1.0, "{begun} {started} {loaded}");

    proxy.rewrite(&configuration.replace("optimistic", "optimist"));
    let reload = proxy.reload(&["--force"]).await;
    assert!(reload.code == Some(78) && reload.said.contains("policy cannot be \"optimist\""), "{reload:?}");
    let refused = scrape(admin).await;
    assert_eq!(value(&refused, "ifmatch_config_last_reload_successful", &[]), Some(0.0));
    let load_time = value(&refused, "ifmatch_config_load_time_seconds", &[]);
    assert_eq!(load_time, Some(loaded), "the old configuration stays");

    proxy.rewrite(&configuration);
    assert_eq!(proxy.reload(&[]).await.code, Some(0));
    let mended = scrape(admin).await;
    assert_eq!(value(&mended, "ifmatch_config_last_reload_successful", &[]), Some(1.0));
    assert!(at(&mended, "ifmatch_config_load_time_seconds") >= loaded);
    assert_eq!(value(&mended, "ifmatch_process_start_time_seconds", &[]), Some(started));
}

/// The Unix time at which a certificate expires, as OpenSSL tells it.
fn expiry_by_openssl(certificate: &Path) -> f64 {
    let script = "date -d \"$(openssl x509 -noout -enddate -in \"$0\" | cut -d= -f2)\" +%s";
    let output = Command::new("sh").args(["-c", script]).arg(certificate).output().expect("there is a shell");
    String::from_utf8(output.stdout).expect("text").trim().parse().expect("a number")
}

/// Up, down after a check that failed, and how many exchanges are in flight.
#[tokio::test]
async fn the_state_of_servers_is_shown() {
    let backend = Backend::start().await;
    let (well, slow) = (Arc::new(AtomicBool::new(true)), backend.hold("GET", "/slow"));
    let switch = Arc::clone(&well);
    let status = move || if switch.load(Ordering::SeqCst) { 204 } else { 503 };
    backend.always("GET", "/healthz", move |_| Answer::status(status()));
    let checks = "health.check = \"http\"\nhealth.path = \"/healthz\"\nhealth.status = \"204\"\n\
                  health.interval = \"50ms\"\nhealth.healthy_after = 1\nhealth.unhealthy_after = 1";
    let (proxy, admin) = start(&Proxy::to(backend.addr()).upstream(checks)).await;
    let port = backend.addr().port().to_string();
    let server = [("ifmatch_upstream", "backend"), ("server_port", port.as_str())];
    let is = async |name: &str, expected: f64| {
        let end = tokio::time::Instant::now() + DEADLINE;
        loop {
            let samples = scrape(admin).await;
            if value(&samples, name, &server) == Some(expected) {
                return;
            }
            assert!(tokio::time::Instant::now() < end, "{name} is not {expected}: {samples:?}");
        }
    };
    is("ifmatch_upstream_up", 1.0).await;
    is("ifmatch_upstream_active_requests", 0.0).await;
    is("ifmatch_upstream_waiters", 0.0).await;
    let addr = proxy.addr();
    let reading = tokio::spawn(async move { get(addr, "/slow").await.status });
    is("ifmatch_upstream_active_requests", 1.0).await;
    slow.arrived().await.answer(Answer::status(204)).await;
    assert_eq!(reading.await.expect("it is answered"), 204);
    is("ifmatch_upstream_active_requests", 0.0).await;
    well.store(false, Ordering::SeqCst);
    is("ifmatch_upstream_up", 0.0).await;
}

#[tokio::test]
async fn a_known_series_of_requests_gives_known_numbers() {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    let (proxy, admin) = start(&Proxy::to(backend.addr())).await;
    let tag = send(proxy.addr(), "GET", "/doc", &[], "").await.etag();
    for status in [204, 412, 412, 412] {
        assert_eq!(put_if_match(proxy.addr(), "/doc", &tag, "two").await.status, status);
    }
    send(proxy.addr(), "PROPFIND", "/doc", &[], "").await;
    let end = tokio::time::Instant::now() + DEADLINE;
    // The last request is counted when its answer is out.
    let samples = loop {
        let samples = scrape(admin).await;
        let counted =
            value(&samples, "http_server_request_duration_seconds_count", &[("http_request_method", "_OTHER")]);
        let is_over = value(&samples, "http_server_active_requests", &[]) == Some(0.0);
        if counted == Some(1.0) && is_over {
            break samples;
        }
        assert!(tokio::time::Instant::now() < end, "the requests are not counted: {samples:?}");
    };
    let verdicts =
        |word| value(&samples, "ifmatch_verdicts_total", &[("ifmatch_verdict", word), ("ifmatch_route", "all")]);
    assert_eq!(verdicts("precondition-failed"), Some(3.0));
    let put = [("http_request_method", "PUT"), ("http_response_status_code", "412"), ("http_route", "/{*rest}")];
    assert_eq!(value(&samples, "http_server_request_duration_seconds_count", &put), Some(3.0));
    let within_10_s = [&put[..], &[("le", "10")]].concat();
    assert_eq!(value(&samples, "http_server_request_duration_seconds_bucket", &within_10_s), Some(3.0));
    let port = backend.addr().port().to_string();
    let sent = [("http_request_method", "PUT"), ("server_address", "127.0.0.1"), ("server_port", port.as_str())];
    assert_eq!(value(&samples, "http_client_request_duration_seconds_count", &sent), Some(1.0));
    assert_eq!(value(&samples, "ifmatch_probes_total", &[("ifmatch_probe_found", "present")]), Some(4.0));
    assert_eq!(value(&samples, "ifmatch_records", &[]), Some(1.0));
    assert_eq!(value(&samples, "ifmatch_doubts", &[]), Some(0.0));
    assert_eq!(value(&samples, "ifmatch_log_dropped_total", &[]), Some(0.0));
    // No sample has a path, nor anything else of requests.
    assert!(samples.iter().all(|sample| sample.2.values().all(|value| !value.contains("doc"))));
}

/// Rule 13: inventions of an upstream cost no memory. An unregistered status counts as its class.
#[tokio::test]
async fn a_server_that_makes_up_statuses_makes_up_no_series() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&Proxy::to(backend.addr()).route("policy = \"last-writer-wins\"")).await;
    backend.serve(|request| Answer::status(request.target[1..].parse().expect("a status")));
    let mut client = Connection::open(proxy.addr()).await;
    for status in (200..1000).filter(|status| ![204, 205, 304].contains(status)) {
        assert_eq!(client.exchange("GET", &format!("/{status}"), &[], "").await.status, status);
    }
    let samples = scrape(admin).await;
    for name in ["http_server_request_duration_seconds_count", "http_client_request_duration_seconds_count"] {
        let counted = |sample: &&Sample| sample.1 == name;
        let statuses: BTreeSet<_> =
            samples.iter().filter(counted).map(|sample| sample.2["http_response_status_code"].as_str()).collect();
        assert!(statuses.len() < 70, "{name} {statuses:?}");
        assert!(statuses.contains("418") && !statuses.contains("419") && !statuses.contains("600"), "{statuses:?}");
    }
    let made_up: Vec<_> = (600..1000).map(|status| status.to_string()).collect();
    assert!(samples.iter().all(|sample| sample.2.values().all(|value| !made_up.contains(value))));
}

/// DESIGN, section 3, rule 11.
#[tokio::test]
async fn leases_are_counted_and_never_named() {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    let (proxy, admin) = start(&leasing(&backend)).await;
    let id = acquire(proxy.addr(), "/doc", "30").await.id;
    send(proxy.addr(), "PUT", "/.leases/doc", &[("Lease-Id", &id)], "").await;
    let samples = scrape(admin).await;
    assert_eq!(value(&samples, "ifmatch_leases", &[("ifmatch_lease_state", "leased")]), Some(1.0));
    for (event, times) in [("granted", 1.0), ("renewed", 1.0)] {
        assert_eq!(value(&samples, "ifmatch_lease_events_total", &[("ifmatch_lease_event", event)]), Some(times));
    }
    assert!(!look(admin, "/metrics").await.text().contains(&id));
}
