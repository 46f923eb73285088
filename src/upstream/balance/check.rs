//! Active health checks: each server is probed regularly, on a runtime that carries no requests.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Method, header};
use pingora::http::RequestHeader;
use tokio::{
    runtime::Handle,
    time::{sleep, timeout},
};

use super::{UpstreamServers, server::UpstreamServer};
use crate::{
    body::Body,
    config::{HealthCheck, HealthProbe, Upstream},
    entropy::random_u64,
    upstream::{Purpose, dial::Dialler, peer::Resolver},
};

/// Begins the checks of an upstream that has them configured, on this runtime. They end with its configuration.
pub(super) fn begin(runtime: Option<&Handle>, upstream: &Arc<Upstream>, servers: &Arc<UpstreamServers>) {
    let checks = runtime.filter(|_| upstream.health.check != HealthProbe::Off);
    for (index, server) in servers.list.iter().enumerate() {
        match checks {
            Some(runtime) => {
                drop(runtime.spawn(check(Arc::downgrade(upstream), index, Arc::clone(server))));
            }
            // Without checks, nothing would find out that the server is well again.
            None => drop(server.set_down(false)),
        }
    }
}

/// Checks one server until its configuration is gone.
async fn check(upstream: Weak<Upstream>, index: usize, server: Arc<UpstreamServer>) {
    let (dialler, resolver) = (Dialler::new(Purpose::Read), Resolver::new());
    loop {
        let Some(upstream) = upstream.upgrade() else { return };
        let health = &upstream.health;
        let asked = timeout(health.timeout, ask(&dialler, &resolver, &upstream, index));
        let answer = asked.await.unwrap_or(Err("no answer in time".to_owned()));
        // The streak belongs to the server and not to this task: a reload restarts the tasks but keeps the findings.
        let news = count_answer(&server.streak, answer.is_ok(), server.is_down(), health);
        if let Some(down) = news
            && server.set_down(down)
        {
            tell(&upstream, &server, down, answer.err().as_deref().unwrap_or_default());
        }
        let interval = health.interval;
        drop(upstream);
        sleep(with_jitter(interval)).await;
    }
}

fn tell(upstream: &Upstream, server: &UpstreamServer, down: bool, reason: &str) {
    let (upstream, server) = (&upstream.name, &server.name);
    if down {
        tracing::warn!(%upstream, %server, reason, "the server is down: it gets no requests");
    } else {
        tracing::info!(%upstream, %server, "the server is up");
    }
}

/// Checks once whether a server is well. The error is the reason that it is not.
async fn ask(dialler: &Dialler, resolver: &Resolver, upstream: &Arc<Upstream>, index: usize) -> Result<(), String> {
    let name = upstream.servers.get(index).map_or("", String::as_str);
    let failed = |failure: crate::upstream::Failure| failure.to_string();
    let connected = dialler.dial(resolver, (upstream, index), upstream.http2, true).await.map_err(failed)?;
    let HealthCheck { check: HealthProbe::Http, path, status, .. } = &upstream.health else { return Ok(()) };
    let head = head(upstream.host_header.for_server(name).unwrap_or(name), path).map_err(|error| error.to_string())?;
    // The exchange closes the connection: a kept one would hide that no new one can be made.
    let exchange = connected.send(Box::new(head), &Body::empty()).await.map_err(failed)?;
    let found = exchange.head().status.as_u16();
    if status.contains(&found) { Ok(()) } else { Err(format!("it answered {found}")) }
}

fn head(host: &str, path: &str) -> pingora::Result<RequestHeader> {
    let mut head = RequestHeader::build(Method::GET, path.as_bytes(), Some(2))?;
    head.insert_header(header::HOST, host)?;
    head.insert_header(header::USER_AGENT, "ifmatch health check")?;
    Ok(head)
}

/// Counts the consecutive answers that contradict the server's current state. Returns whether the server is now down if
/// another answer changes that.
fn count_answer(streak: &AtomicUsize, is_well: bool, is_down: bool, health: &HealthCheck) -> Option<bool> {
    if is_well != is_down {
        streak.store(0, Ordering::Relaxed);
        return None;
    }
    let enough = if is_well { health.healthy_after } else { health.unhealthy_after };
    if streak.fetch_add(1, Ordering::Relaxed) + 1 < enough {
        return None;
    }
    streak.store(0, Ordering::Relaxed);
    Some(!is_well)
}

/// Varies the interval by up to a tenth, so that many proxies do not check at the same moment.
fn with_jitter(interval: Duration) -> Duration {
    let tenth = interval / 10;
    // If the system has no random numbers, the checks still work but are less evenly spread.
    let part = u32::try_from(random_u64().unwrap_or_default() % 2001).unwrap_or_default();
    interval.saturating_sub(tenth) + tenth * part / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health() -> HealthCheck {
        HealthCheck { healthy_after: 2, unhealthy_after: 3, ..HealthCheck::default() }
    }

    /// Returns whether the server is down after each answer, beginning with a server that is up.
    fn states(answers: &[bool]) -> Vec<bool> {
        let (count, mut down) = (AtomicUsize::new(0), false);
        let mut after = |is_well: &bool| {
            down = count_answer(&count, *is_well, down, &health()).unwrap_or(down);
            down
        };
        answers.iter().map(&mut after).collect()
    }

    #[test]
    fn a_server_is_down_after_so_many_bad_answers_in_a_row() {
        assert_eq!(states(&[false, false, true, false, false, false]), [false, false, false, false, false, true]);
    }

    #[test]
    fn a_server_is_up_after_so_many_good_answers_in_a_row() {
        assert_eq!(states(&[false, false, false, true, false, true, true])[2..], [true, true, true, true, false]);
    }

    #[test]
    fn jitter_is_bounded() {
        for _ in 0..1000 {
            let wait = with_jitter(Duration::from_secs(10));
            assert!((Duration::from_secs(9)..=Duration::from_secs(11)).contains(&wait), "{wait:?}");
        }
    }
}
