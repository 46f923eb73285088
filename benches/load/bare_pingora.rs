//! The least that a pingora proxy can do: what `ifmatch` is compared with by `make bench`.
//!
//! `bare_pingora LISTEN UPSTREAM [pass | 304 | 412]`: one worker thread; every request goes to the upstream, or is
//! answered on the spot with the same fields and a body of the same length as ifmatch's answer, all of them constants.

#![allow(clippy::expect_used, reason = "a benchmark stops at the first surprise")]

use std::{env, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http::{StatusCode, header};
use pingora::{
    http::ResponseHeader,
    protocols::ALPN,
    proxy::{ProxyHttp, Session, http_proxy_service},
    server::{RunArgs, Server, configuration::ServerConf},
    upstreams::peer::HttpPeer,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The time limits of ifmatch's defaults; a limit costs a timer.
const KEEPALIVE_SECONDS: u64 = 60;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(30);
const POOL_IDLE: Duration = Duration::from_secs(55);

/// The length of ifmatch's 412.
const PROBLEM_BYTES: usize = 267;
const ETAG: &str = "\"0123456789abcdef-1-01234567\"";
const PROXY_STATUS: &str = "ifmatch; error=http_request_denied; details=\"precondition-failed\"";

struct Bare {
    upstream: String,
    /// The answer to every request; none to forward it.
    local: Option<StatusCode>,
    problem: Bytes,
}

impl Bare {
    fn head(&self, status: StatusCode) -> pingora::Result<ResponseHeader> {
        let mut head = ResponseHeader::build(status, Some(4))?;
        if status == StatusCode::NOT_MODIFIED {
            head.insert_header(header::ETAG, ETAG)?;
            head.insert_header(header::VIA, "1.1 ifmatch")?;
        } else {
            head.insert_header(header::CONTENT_TYPE, "application/problem+json")?;
            head.insert_header(header::CACHE_CONTROL, "no-store")?;
            head.insert_header("Proxy-Status", PROXY_STATUS)?;
            head.insert_header(header::CONTENT_LENGTH, self.problem.len())?;
        }
        Ok(head)
    }
}

#[async_trait]
impl ProxyHttp for Bare {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn early_request_filter(&self, session: &mut Session, _context: &mut ()) -> pingora::Result<()> {
        session.set_keepalive(Some(KEEPALIVE_SECONDS));
        Ok(())
    }

    async fn request_filter(&self, session: &mut Session, _context: &mut ()) -> pingora::Result<bool> {
        let Some(status) = self.local else { return Ok(false) };
        // Keeps the connection where a request body was not read.
        session.set_close_on_response_before_downstream_finish(false);
        let body = (status != StatusCode::NOT_MODIFIED).then(|| self.problem.clone());
        session.write_response_header(Box::new(self.head(status)?), body.is_none()).await?;
        session.write_response_body(body, true).await?;
        Ok(true)
    }

    async fn upstream_peer(&self, _session: &mut Session, _context: &mut ()) -> pingora::Result<Box<HttpPeer>> {
        let mut peer = HttpPeer::new(&self.upstream, false, String::new());
        peer.options.connection_timeout = Some(CONNECT_TIMEOUT);
        peer.options.total_connection_timeout = Some(CONNECT_TIMEOUT);
        peer.options.read_timeout = Some(EXCHANGE_TIMEOUT);
        peer.options.write_timeout = Some(EXCHANGE_TIMEOUT);
        peer.options.idle_timeout = Some(POOL_IDLE);
        peer.options.alpn = ALPN::H1;
        Ok(Box::new(peer))
    }
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [listen, upstream, mode] = arguments.as_slice() else { panic!("LISTEN UPSTREAM pass|304|412") };
    let local = (mode != "pass").then(|| mode.parse().expect("pass or a status"));
    let problem = Bytes::from(vec![b' '; PROBLEM_BYTES]);
    let conf = ServerConf { threads: 1, work_stealing: false, ..ServerConf::default() };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    let bare = Bare { upstream: upstream.clone(), local, problem };
    let mut service = http_proxy_service(&Arc::clone(&server.configuration), bare);
    service.add_tcp(listen);
    server.add_service(service);
    server.run(RunArgs::default());
}
