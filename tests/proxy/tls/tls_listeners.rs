//! Clients over TLS (docs/tls.md): protocols, certificates by name, certificates of clients, and new certificates while
//! requests go on. The clients are curl's.

#![allow(clippy::unnecessary_debug_formatting, reason = "a path in quotes is a text of TOML")]

use std::{fs, net::SocketAddr, path::Path, process::Command};

use tokio::task::{JoinSet, spawn_blocking};

use crate::{
    support::{
        backend::Backend,
        certificates::{Authority, Time},
        leases::leasing,
        nginx::Nginx,
        proxy::Proxy,
        raw::{Connection, get},
        tls::{Curl, Office, Secure},
        wait::{until, within},
    },
    writes::races::{only_winner, refused_but},
};

const NAME: &str = "proxy.example";
const DOC: &str = "/doc";

/// A backend with a document, and a proxy in front of it that is `proxy.example`.
async fn start(office: &Office, lines: &str) -> (Backend, Secure) {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let secure = Secure::start(Proxy::to(backend.addr()), &[office.issue(&[NAME])], lines).await;
    (backend, secure)
}

/// RFC 9113 section 3.2: the protocol is chosen with the handshake. RFC 9110 section 13.1.1 holds over both.
#[tokio::test]
async fn a_guarded_write_is_judged_over_either_protocol() {
    let office = Office::new();
    let (backend, secure) = start(&office, "").await;
    for (flag, version) in [("--http1.1", "1.1"), ("--http2", "2")] {
        let curl = |method| Curl::new(method).trust(&office.ca()).arg(flag);
        let read = curl("GET").send(NAME, secure.addr, DOC).await;
        assert_eq!((read.code, read.version.as_str(), read.response.status), (0, version, 200));
        let put = || curl("PUT").field(&format!("If-Match: {}", read.response.etag()));
        let written = put().body(version).response(NAME, secure.addr, DOC).await;
        assert_eq!(written.status / 100, 2, "{written:?}");
        put().body("stale").response(NAME, secure.addr, DOC).await.refused(412, "precondition-failed");
        assert_eq!(backend.content(DOC).as_deref(), Some(version));
    }
}

/// curl before its version 8 resets a stream that does not end with the last byte of the response, and the proxy takes
/// no more than 200 resets at once (docs/floods.md).
#[tokio::test]
async fn a_thousand_reads_on_one_connection_are_no_flood() {
    let office = Office::new();
    let (_backend, secure) = start(&office, "").await;
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--insecure", "--http2", "--max-time", "60", "--output", "/dev/null"]);
    curl.args(["--write-out", "%{http_code} %{num_connects} %{exitcode}\\n"]);
    // A fragment is never sent, so all of these are one target.
    curl.arg(format!("https://{}{DOC}#[1-1000]", secure.addr));
    let output = spawn_blocking(move || curl.output()).await.expect("no panic").expect("`make test` installs curl");
    let (first, rest) = ("200 1 0\n", "200 0 0\n".repeat(999));
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{first}{rest}"));
}

#[tokio::test]
async fn a_plain_listener_beside_it_stays_plain() {
    let office = Office::new();
    let (_backend, secure) = start(&office, "").await;
    assert_eq!(get(secure.proxy.addr(), DOC).await.text(), "one");
    let refused = Curl::new("GET").trust(&office.ca()).send(NAME, secure.proxy.addr(), DOC).await;
    assert_ne!(refused.code, 0, "{refused:?}");
}

/// The end of a listener ends idle connections, and a proxy without a plain listener has none that could end.
#[tokio::test]
async fn a_listener_needs_no_plain_one_beside_it() {
    let office = Office::new();
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let secure = Secure::alone(Proxy::to(backend.addr()), &[office.issue(&[NAME])]).await;
    // A request that came with the handshake had a chance even when the connection was about to end.
    for (flag, version) in [("--http1.1", "1.1"), ("--http2", "2")].repeat(20) {
        let read = Curl::new("GET").trust(&office.ca()).arg(flag).send(NAME, secure.addr, DOC).await;
        assert_eq!((read.code, read.version.as_str(), read.response.status), (0, version, 200));
    }
}

/// A document that curl sends whole over HTTP/2 over TLS, larger than every window on its way.
#[tokio::test]
async fn a_large_body_crosses_over_http2() {
    let office = Office::new();
    let (backend, secure) = start(&office, "").await;
    let body = "0123456789abcdef".repeat(1 << 17);
    let put = Curl::new("PUT").trust(&office.ca()).arg("--http2").field("If-None-Match: *").body(&body);
    assert_eq!(put.response(NAME, secure.addr, "/large").await.status / 100, 2);
    assert_eq!(backend.content("/large"), Some(body));
}

/// RFC 6066 section 3; wildcards by RFC 6125 section 6.4.3.
#[tokio::test]
async fn each_name_gets_its_own_certificate() {
    let office = Office::new();
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let certificates = [office.issue(&["first.example"]), office.issue(&["*.second.example", "third.example"])];
    let secure = Secure::start(Proxy::to(backend.addr()), &certificates, "").await;
    for name in ["first.example", "a.second.example", "third.example"] {
        let read = Curl::new("GET").trust(&office.ca()).response(name, secure.addr, DOC).await;
        assert_eq!(read.status, 200, "{name}");
    }
    // It gets the first one, which is for another name: exit code 60.
    let other = Curl::new("GET").trust(&office.ca()).send("other.example", secure.addr, DOC).await;
    assert_eq!(other.code, 60, "{other:?}");
}

/// RFC 8996: nothing before TLS 1.2. The client is made willing first.
#[tokio::test]
async fn old_versions_of_tls_are_refused() {
    let office = Office::new();
    let (_backend, secure) = start(&office, "").await;
    let at_most = |version: &str| {
        let curl = Curl::new("GET").trust(&office.ca()).arg("--tlsv1.0").arg("--ciphers").arg("DEFAULT@SECLEVEL=0");
        curl.arg("--tls-max").arg(version).send(NAME, secure.addr, DOC)
    };
    assert_eq!(at_most("1.1").await.code, 35);
    assert_eq!(at_most("1.2").await.code, 0);
    assert_eq!(at_most("1.3").await.code, 0);
}

fn clients(office: &Office, auth: &str) -> String {
    format!("client_auth = \"{auth}\"\nclient_ca = {:?}", office.ca())
}

#[tokio::test]
async fn only_clients_with_a_good_certificate_come_in_where_one_is_required() {
    let office = Office::new();
    let (_backend, secure) = start(&office, &clients(&office, "required")).await;
    let curl = || Curl::new("GET").trust(&office.ca());
    let ann = office.issue(&["ann"]);
    assert_eq!(curl().identity(&ann).response(NAME, secure.addr, DOC).await.status, 200);
    let stranger = Authority::new("another authority").issue(&["ann"]).write(office.path(), "stranger");
    let expired = office.authority.issue_at(&["ann"], Time::Past).write(office.path(), "expired");
    for refused in [curl(), curl().identity(&stranger), curl().identity(&expired)] {
        for version in ["1.2", "1.3"] {
            let outcome = refused.clone().arg("--tls-max").arg(version).send(NAME, secure.addr, DOC).await;
            assert!(outcome.code != 0 && outcome.response.status == 0, "{outcome:?}");
        }
    }
}

#[tokio::test]
async fn a_client_may_have_no_certificate_but_no_wrong_one_where_it_is_optional() {
    let office = Office::new();
    let (_backend, secure) = start(&office, &clients(&office, "optional")).await;
    let curl = || Curl::new("GET").trust(&office.ca());
    assert_eq!(curl().response(NAME, secure.addr, DOC).await.status, 200);
    assert_eq!(curl().identity(&office.issue(&["ann"])).response(NAME, secure.addr, DOC).await.status, 200);
    let stranger = Authority::new("another authority").issue(&["ann"]).write(office.path(), "stranger");
    assert_ne!(curl().identity(&stranger).send(NAME, secure.addr, DOC).await.code, 0);
}

/// DESIGN, section 8: the certificate is part of the principal, and a lease is bound to that.
#[tokio::test]
async fn a_lease_is_bound_to_the_certificate_of_its_holder() {
    let office = Office::new();
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let certificates = [office.issue(&[NAME])];
    let setup = leasing(&backend).route("lease.bind = true");
    let secure = Secure::start(setup, &certificates, &clients(&office, "required")).await;
    let (ann, bob) = (office.issue(&["ann"]), office.issue(&["bob"]));
    for protocol in ["--http1.1", "--http2"] {
        let curl = |method, client| Curl::new(method).trust(&office.ca()).arg(protocol).identity(client);
        let granted = curl("POST", &ann).field("Lease-Duration: 60").response(NAME, secure.addr, "/.leases/doc").await;
        let id = format!("Lease-Id: {}", granted.header("lease-id").expect("a lease"));
        curl("PUT", &bob)
            .field(&id)
            .body("bob's")
            .response(NAME, secure.addr, DOC)
            .await
            .refused(412, "lease-id-mismatch");
        let written = curl("PUT", &ann).field(&id).body("ann's").response(NAME, secure.addr, DOC).await;
        assert_eq!(written.status / 100, 2, "{written:?}");
        assert_eq!(curl("DELETE", &ann).field(&id).response(NAME, secure.addr, "/.leases/doc").await.status, 204);
    }
}

/// DESIGN, section 9: what is wrong is known before anything is served.
#[test]
fn a_listener_without_its_key_is_never_served() {
    let office = Office::new();
    let (certificate, _) = office.issue(&[NAME]);
    let file = office.path().join("ifmatch.toml");
    let text = format!(
        "[server]\nlisten = [\"tls:127.0.0.1:0\"]\n[[server.tls.certificates]]\ncert = {certificate:?}\nkey = {certificate:?}\n\
         [upstreams.app]\nservers = [\"127.0.0.1:9\"]\n[[routes]]\npath = \"/\"\nupstream = \"app\"\npolicy = \"optimistic\"\n"
    );
    fs::write(&file, text).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_ifmatch")).arg("run").arg(&file).output().expect("ifmatch starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(78), "{told}");
    assert!(told.contains("holds no private key") && told.contains("hint:"), "{told}");
}

/// Two threads serve all, and those who say nothing take nothing from them.
#[tokio::test]
async fn a_handshake_that_does_not_end_is_ended_and_holds_up_nobody() {
    let office = Office::new();
    let (_backend, secure) = start(&office, "handshake_timeout = \"2s\"").await;
    let mut silent = JoinSet::new();
    for _ in 0..64 {
        let mut connection = Connection::open(secure.addr).await;
        silent.spawn(async move { connection.closed().await });
    }
    let read = within("a request meanwhile", Curl::new("GET").trust(&office.ca()).response(NAME, secure.addr, DOC));
    assert_eq!(read.await.status, 200);
    while let Some(said) = silent.join_next().await {
        assert_eq!(said.expect("closed"), b"");
    }
}

/// True if a new connection is answered with a certificate of this authority.
async fn trusted(addr: SocketAddr, ca: &Path) -> bool {
    Curl::new("GET").trust(ca).send(NAME, addr, DOC).await.code == 0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_certificate_is_taken_under_load_without_a_failed_request() {
    let office = Office::new();
    let (_backend, secure) = start(&office, "reload_interval = \"100ms\"").await;
    let next = Authority::new("the next authority");
    let (both, only_next) = (office.path().join("both.pem"), next.write(office.path(), "next"));
    fs::write(&both, office.authority.pem() + &next.pem()).expect("a file");
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut load = JoinSet::new();
    for flag in ["--http1.1", "--http2", "--http2"] {
        let (both, addr, stopped) = (both.clone(), secure.addr, stopped.clone());
        load.spawn(async move {
            let mut requests = 0;
            while !*stopped.borrow() {
                let outcome = Curl::new("GET").trust(&both).arg(flag).send(NAME, addr, DOC).await;
                assert_eq!((outcome.code, outcome.response.status), (0, 200), "{outcome:?}");
                requests += 1;
            }
            requests
        });
    }
    assert!(!trusted(secure.addr, &only_next).await);
    next.issue(&[NAME]).write(office.path(), NAME);
    within("the new certificate", async { while !trusted(secure.addr, &only_next).await {} }).await;
    office.issue(&[NAME]);
    within("the old certificate", async { while trusted(secure.addr, &only_next).await {} }).await;
    stop.send_replace(true);
    while let Some(requests) = load.join_next().await {
        assert!(requests.expect("no request failed") > 0);
    }
}

#[tokio::test]
async fn a_broken_new_certificate_is_refused_and_the_old_one_stays() {
    let office = Office::new();
    let (_backend, secure) = start(&office, "reload_interval = \"100ms\"").await;
    fs::write(office.path().join(format!("{NAME}.pem")), "nothing").expect("a file");
    until("the refusal in the log", || secure.proxy.log().contains("changed certificates cannot be used")).await;
    assert!(trusted(secure.addr, &office.ca()).await);
    let next = Authority::new("the next authority");
    next.issue(&[NAME]).write(office.path(), NAME);
    let ca = next.write(office.path(), "next");
    within("the mended certificate", async { while !trusted(secure.addr, &ca).await {} }).await;
    assert_eq!(secure.proxy.log().matches("holds no certificate").count(), 1, "told of once");
}

/// RFC 9110 section 13.1.1, over HTTP/2 and TLS, in front of the real nginx.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_writers_with_one_tag_over_http2_and_tls_exactly_one_wins() {
    let office = Office::new();
    let nginx = Nginx::start().await;
    let setup = Proxy::to(nginx.addr()).route("hash_wait = \"10s\"");
    let secure = Secure::start(setup, &[office.issue(&[NAME])], "").await;
    fs::write(nginx.root().join("doc"), "the first state").expect("a file");
    for round in 0..3 {
        let curl = |method| Curl::new(method).trust(&office.ca()).arg("--http2");
        let tag = curl("GET").response(NAME, secure.addr, DOC).await.etag();
        let mut writers = JoinSet::new();
        for writer in 0..8 {
            let put = curl("PUT").field(&format!("If-Match: {tag}")).body(&format!("round {round} writer {writer}"));
            let addr = secure.addr;
            writers.spawn(async move { put.response(NAME, addr, DOC).await });
        }
        let responses = writers.join_all().await;
        let winner = only_winner(&responses, "a race over HTTP/2 and TLS");
        refused_but(winner, &responses);
    }
}
