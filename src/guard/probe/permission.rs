//! Asks the upstream whether a client may read a resource, where its answer decides what the client is told.

use http::Method;
use tokio::time::{Instant, timeout_at};

use super::{
    Asked, Probed, Probes,
    unreadable::{answered, timed_out},
};
use crate::{
    core::{credentials::signer, head_answer::Aim, policy::ProbeAuth, record::Snapshot},
    dialect::s3::Signature,
    guard::{answer::Answer, request::Request},
};

/// What the upstream says of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    /// It may read the resource.
    Granted,
    /// The upstream cannot be asked, or its answer does not tell.
    Unknown,
}

impl Probes {
    /// Asks the upstream whether it lets the sender of a request in, whether or not there is a representation. If not,
    /// fails with the upstream's own answer.
    pub(crate) async fn let_in(&self, request: &Request, snapshot: &Snapshot) -> Result<(), Answer> {
        match self.probe(request, snapshot, Aim::Right).await {
            found @ Probed::Current { .. } => {
                found.discard().await;
                Ok(())
            }
            Probed::Answer(exchange) => Err(self.upstreams_own(request, *exchange).await?),
            Probed::Unreadable(refusal) | Probed::Refused(refusal) => Err(refusal.into()),
        }
    }

    /// Asks the upstream whether the sender of a request may read its resource. If not, fails with the upstream's own
    /// answer. It must be asked with the client's credentials, and a signature holds for the client's request alone.
    pub(crate) async fn ask_permission(&self, request: &Request) -> Result<Permission, Answer> {
        let (headers, rules) = (&request.head.headers, &request.rules);
        let is_signed = signer(headers).is_some() || Signature::of(request.head.raw_path(), headers).is_of_aws();
        if is_signed || rules.probe_auth != ProbeAuth::Client {
            return Ok(Permission::Unknown);
        }
        let end = Instant::now() + rules.probe_timeout;
        let asked = timeout_at(end, self.ask(request, Method::GET, false, None)).await;
        let Asked { exchange, .. } = asked.unwrap_or_else(|_elapsed| Err(timed_out()))?;
        let status = exchange.head().status;
        match status.as_u16() {
            200..300 => {
                exchange.discard().await;
                Ok(Permission::Granted)
            }
            401 | 403 | 404 | 407 | 410 | 429 => Err(self.upstreams_own(request, exchange).await?),
            300..500 => Ok(Permission::Unknown),
            504 => Err(timed_out().into()),
            _ => Err(answered(status).into()),
        }
    }
}
