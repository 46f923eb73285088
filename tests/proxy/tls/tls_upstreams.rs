//! Upstreams over TLS, over HTTP/2 and on Unix sockets (docs/tls.md), in front of the real nginx.

#![allow(clippy::unnecessary_debug_formatting, reason = "a path in quotes is a text of TOML")]

use std::{fs, net::SocketAddr, path::PathBuf, sync::Arc};

use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    support::{
        certificates::{Authority, Time},
        nginx::Nginx,
        ports,
        proxy::Proxy,
        raw::{Connection, get, put, put_if_match, race, request_bytes, send},
        tls::{Office, nginx, nginx_tls},
        wait::{until, within},
    },
    writes::races::{only_winner, refused_but},
};

/// A proxy for this server; guarded below `/docs`, and not below `/open`.
async fn proxy(server: &str, options: &str, tls: &str) -> Proxy {
    let file = format!(
        "[server]\n{{listen}}\nspool_dir = \"{{spool}}\"\nthreads = 2\n\
         [upstreams.backend]\nservers = [\"{server}\"]\n{options}\n[upstreams.backend.tls]\n{tls}\n\
         [[routes]]\nname = \"docs\"\npath = \"/docs/{{*rest}}\"\nupstream = \"backend\"\npolicy = \"optimistic\"\n\
         hash_wait = \"10s\"\n\
         [[routes]]\nname = \"open\"\npath = \"/open/{{*rest}}\"\nupstream = \"backend\"\npolicy = \"last-writer-wins\"\n"
    );
    Proxy::start(&file).await
}

fn fill(nginx: &Nginx) {
    for (directory, text) in [("docs", "guarded"), ("open", "open")] {
        fs::create_dir(nginx.root().join(directory)).expect("a directory");
        fs::write(nginx.root().join(directory).join("1"), text).expect("a file");
    }
}

/// Reads, writes, refusals and large bodies, on both paths; all requests arrive by this protocol.
async fn carries_everything(proxy: &Proxy, nginx: &Nginx, protocol: &str) {
    let addr = proxy.addr();
    let content = |name: &str| fs::read_to_string(nginx.root().join(name)).expect("a file");
    let read = get(addr, "/docs/1").await;
    assert_eq!((read.status, read.text(), read.header("x-protocol")), (200, "guarded", Some(protocol)));
    let written = put_if_match(addr, "/docs/1", &read.etag(), "changed").await;
    assert_eq!((written.status, written.header("x-protocol")), (204, Some(protocol)), "{written:?}");
    assert_eq!(content("docs/1"), "changed");
    assert_eq!(get(addr, "/docs/1").await.etag(), written.etag());
    put_if_match(addr, "/docs/1", &read.etag(), "stale").await.refused(412, "precondition-failed");
    let large = "0123456789abcdef".repeat(1 << 18);
    let created = put(addr, "/docs/large", &[("If-None-Match", "*")], &large).await;
    assert_eq!(created.status, 201, "{created:?}");
    assert!(get(addr, "/docs/large").await.text() == large, "4 MiB came back as they went");
    assert_eq!(get(addr, "/docs/none").await.status, 404);

    let read = get(addr, "/open/1").await;
    assert_eq!((read.status, read.text(), read.header("x-protocol")), (200, "open", Some(protocol)));
    assert_eq!(put(addr, "/open/1", &[], &large).await.status, 204);
    assert!(get(addr, "/open/1").await.text() == large, "4 MiB came back as they went");
    assert!(!nginx.access_lines().await.iter().any(|line| line.ends_with("499")), "no exchange was broken off");
}

async fn one_writer_wins(proxy: &Proxy) {
    let tag = get(proxy.addr(), "/docs/1").await.etag();
    let body = |writer: usize| format!("writer {writer}");
    let request = |writer| request_bytes("PUT", "/docs/1", &[("If-Match", &tag)], body(writer).as_bytes());
    let responses = race(proxy.addr(), (0..16).map(request).collect()).await;
    refused_but(only_winner(&responses, "a race"), &responses);
}

fn trusting(office: &Office) -> String {
    format!("ca = {:?}", office.ca())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn both_paths_go_over_tls() {
    let office = Office::new();
    let (nginx, addr) = nginx("", &office.issue(&["backend.example"]), "").await;
    fill(&nginx);
    let tls = format!("{}\nserver_name = \"backend.example\"", trusting(&office));
    let proxy = proxy(&format!("https://{addr}"), "", &tls).await;
    carries_everything(&proxy, &nginx, "HTTP/1.1").await;
    one_writer_wins(&proxy).await;
}

/// RFC 7301: the server chooses HTTP/2.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn both_paths_go_over_http2_and_tls() {
    let office = Office::new();
    let (nginx, addr) = nginx("http2", &office.issue(&["backend.example"]), "").await;
    fill(&nginx);
    let tls = format!("{}\nserver_name = \"backend.example\"", trusting(&office));
    let proxy = proxy(&format!("https://{addr}"), "http2 = true", &tls).await;
    carries_everything(&proxy, &nginx, "HTTP/2.0").await;
    one_writer_wins(&proxy).await;
}

/// A server that does not choose HTTP/2 gets HTTP/1.1.
#[tokio::test]
async fn a_server_without_http2_is_spoken_to_all_the_same() {
    let office = Office::new();
    let (nginx, addr) = nginx("", &office.issue(&["backend.example"]), "").await;
    fill(&nginx);
    let tls = format!("{}\nserver_name = \"backend.example\"", trusting(&office));
    carries_everything(&proxy(&format!("https://{addr}"), "http2 = true", &tls).await, &nginx, "HTTP/1.1").await;
}

/// RFC 9113 section 3.3: prior knowledge.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn both_paths_go_over_http2_without_tls() {
    let addr = ports::free();
    let directives = format!("listen {addr} http2; etag off; add_header X-Protocol $server_protocol always;");
    let nginx = Nginx::with(&directives).await;
    fill(&nginx);
    let proxy = proxy(&addr.to_string(), "http2 = true", "").await;
    carries_everything(&proxy, &nginx, "HTTP/2.0").await;
    one_writer_wins(&proxy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn both_paths_go_to_a_unix_socket() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("backend.sock");
    let directives =
        format!("listen unix:{}; etag off; add_header X-Protocol $server_protocol always;", socket.display());
    let nginx = Nginx::with(&directives).await;
    fill(&nginx);
    let proxy = proxy(&format!("unix:{}", socket.display()), "", "").await;
    carries_everything(&proxy, &nginx, "HTTP/1.1").await;
    one_writer_wins(&proxy).await;
    until("the access log to name the server", || proxy.log().contains("backend.sock")).await;
}

/// The server's certificate is refused: both paths say so, nothing of a request has reached it, and the log has the reason.
async fn is_not_trusted(server: &str, tls: &str, nginx: &Nginx, reason: &str) {
    let proxy = proxy(server, "", tls).await;
    let addr = proxy.addr();
    get(addr, "/docs/1").await.refused(502, "upstream-failed");
    // Its probe fails, and so does it where none is needed.
    put(addr, "/docs/1", &[("If-None-Match", "*")], "lost").await.refused(502, "validator-unavailable");
    let any = send(addr, "POST", "/docs/1", &[], "lost").await;
    let open = put(addr, "/open/1", &[], "lost").await;
    for response in [get(addr, "/open/1").await, any, open] {
        let problem = response.refused(502, "upstream-failed");
        assert!(!problem.in_doubt && problem.detail.contains("TLS handshake"), "{problem:?}");
        assert!(response.header("proxy-status").is_some_and(|status| status.contains("tls_protocol_error")));
    }
    assert_eq!(nginx.access_lines().await, [""; 0]);
    proxy.logged(&[reason]).await;
}

async fn certified(files: &(PathBuf, PathBuf)) -> (Nginx, SocketAddr) {
    let (nginx, addr) = nginx("", files, "").await;
    fill(&nginx);
    (nginx, addr)
}

#[tokio::test]
async fn a_server_of_an_unknown_authority_is_not_spoken_to() {
    let office = Office::new();
    let (nginx, addr) = certified(&office.issue(&["127.0.0.1"])).await;
    let other = Authority::new("another authority").write(office.path(), "other");
    is_not_trusted(&format!("https://{addr}"), &format!("ca = {other:?}"), &nginx, "UnknownIssuer").await;
    // The authorities that the system trusts do not include it either.
    is_not_trusted(&format!("https://{addr}"), "", &nginx, "UnknownIssuer").await;
}

/// RFC 9110 section 4.3.4: the certificate is for the name that the server is reached by, unless another one is configured.
#[tokio::test]
async fn a_server_with_the_certificate_of_another_is_not_spoken_to() {
    let office = Office::new();
    let (nginx, addr) = certified(&office.issue(&["backend.example"])).await;
    let server = format!("https://{addr}");
    is_not_trusted(&server, &trusting(&office), &nginx, "certificate not valid for name").await;
    let other = format!("{}\nserver_name = \"other.example\"", trusting(&office));
    is_not_trusted(&server, &other, &nginx, "certificate not valid for name").await;
}

#[tokio::test]
async fn a_server_whose_certificate_has_expired_is_not_spoken_to() {
    let office = Office::new();
    let files = office.authority.issue_at(&["backend.example"], Time::Past).write(office.path(), "expired");
    let (nginx, addr) = certified(&files).await;
    let tls = format!("{}\nserver_name = \"backend.example\"", trusting(&office));
    is_not_trusted(&format!("https://{addr}"), &tls, &nginx, "certificate expired").await;
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_not_spoken_to() {
    let office = Office::new();
    let nginx = Nginx::start().await;
    fill(&nginx);
    let proxy = proxy(&format!("https://{}", nginx.addr()), "", &trusting(&office)).await;
    get(proxy.addr(), "/docs/1").await.refused(502, "upstream-failed");
    get(proxy.addr(), "/open/1").await.refused(502, "upstream-failed");
}

/// The certificate's address is one by which the server is reached.
#[tokio::test]
async fn a_server_is_known_by_its_address_too() {
    let office = Office::new();
    let addr = ports::free();
    let files = office.issue(&[&addr.ip().to_string()]);
    let nginx = Nginx::with(&nginx_tls(addr, "", &files)).await;
    fill(&nginx);
    let proxy = proxy(&format!("https://{addr}"), "", &trusting(&office)).await;
    assert_eq!(get(proxy.addr(), "/docs/1").await.text(), "guarded");
}

/// nginx answers 400 to clients without a certificate.
#[tokio::test]
async fn a_server_that_asks_for_a_certificate_gets_it_on_both_paths() {
    let office = Office::new();
    let verify = format!("ssl_verify_client on; ssl_client_certificate {};", office.ca().display());
    let (nginx, addr) = nginx("", &office.issue(&["backend.example"]), &verify).await;
    fill(&nginx);
    let (server, tls) =
        (format!("https://{addr}"), format!("{}\nserver_name = \"backend.example\"", trusting(&office)));
    let anonymous = proxy(&server, "", &tls).await;
    for target in ["/docs/1", "/open/1"] {
        assert_eq!(get(anonymous.addr(), target).await.status, 400);
    }
    let (certificate, key) = office.issue(&["the proxy"]);
    let known = proxy(&server, "", &format!("{tls}\ncert = {certificate:?}\nkey = {key:?}")).await;
    carries_everything(&known, &nginx, "HTTP/1.1").await;
}

/// A server that answers each request with content up to the end of the connection, and tells that it ends if `tells_end`.
async fn ending((certificate, key): (PathBuf, PathBuf), tells_end: bool) -> SocketAddr {
    let chain =
        CertificateDer::pem_file_iter(certificate).expect("a file").collect::<Result<_, _>>().expect("certificates");
    let key = PrivateKeyDer::from_pem_file(key).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    let acceptor = TlsAcceptor::from(Arc::new(config.with_single_cert(chain, key).expect("a certificate of this key")));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
    let addr = listener.local_addr().expect("a bound listener");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = acceptor.accept(stream).await.expect("a handshake");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.expect("a head"));
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\ncontent").await.expect("the proxy reads");
            if tells_end {
                stream.shutdown().await.expect("the proxy reads");
            }
        }
    });
    addr
}

/// RFC 9112 section 9.8: anybody on the way can end a connection, but not tell the end of TLS.
#[tokio::test]
async fn content_whose_end_tls_does_not_tell_is_not_whole() {
    let office = Office::new();
    let tls = format!("{}\nserver_name = \"backend.example\"", trusting(&office));
    for tells_end in [true, false] {
        let addr = ending(office.issue(&["backend.example"]), tells_end).await;
        let proxy = proxy(&format!("https://{addr}"), "", &tls).await;
        let guarded = get(proxy.addr(), "/docs/1").await;
        let mut connection = Connection::open(proxy.addr()).await;
        let open = connection.try_exchange("GET", "/open/1", &[], "").await;
        if tells_end {
            assert_eq!((guarded.status, guarded.text()), (200, "content"));
            assert_eq!(open.expect("an answer").text(), "content");
        } else {
            guarded.refused(502, "upstream-failed");
            assert!(open.is_err(), "the answer breaks off");
        }
    }
}

/// A check asks over TLS what requests are sent over, and believes the same certificates.
#[tokio::test]
async fn a_server_over_tls_is_checked_over_tls() {
    let (office, other) = (Office::new(), Office::new());
    let (nginx, addr) = nginx("", &office.issue(&["backend.example"]), "").await;
    fill(&nginx);
    let checks = "health.check = \"http\"\nhealth.path = \"/open/1\"\nhealth.interval = \"50ms\"\n\
                  health.unhealthy_after = 1";
    let tls = |office: &Office| format!("{}\nserver_name = \"backend.example\"", trusting(office));
    let trusting = proxy(&format!("https://{addr}"), checks, &tls(&office)).await;
    let asked = async || nginx.access_lines().await.iter().filter(|line| line.contains("/open/1")).count();
    let before = asked().await;
    within("further checks", async { while asked().await < before + 3 {} }).await;
    assert_eq!(get(trusting.addr(), "/docs/1").await.text(), "guarded");
    assert!(!trusting.log().contains("is down"), "{}", trusting.log());

    let strict = proxy(&format!("https://{addr}"), checks, &tls(&other)).await;
    until("the server to be down", || strict.log().contains("the server is down")).await;
    assert_eq!(get(strict.addr(), "/docs/1").await.status, 502);
}
