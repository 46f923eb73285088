//! By whose right the upstream is asked (`probe_auth`).

use std::{sync::Arc, time::SystemTime};

use http::header;
use pingora::http::RequestHeader;

use super::{Probes, unreadable::unreadable};
use crate::{
    config::HostHeader,
    core::{policy::ProbeAuth, refusal::Refusal},
    dialect::s3::{Signature, keep_for_own_signature},
    guard::request::Request,
    upstream::Signer,
};

impl Probes {
    /// Signs with these credentials from now on, where a route probes with the proxy's own.
    pub(crate) fn sign_with(&self, signer: Signer) {
        self.signer.store(Some(Arc::new(signer)));
    }

    /// Makes the head of a probe one that the upstream will take: by the client's right, by nobody's, or by the
    /// proxy's own. A client's signature holds for the client's own request alone, and is lent to none.
    pub(crate) fn set_credentials(&self, request: &Request, head: &mut RequestHeader) -> Result<(), Refusal> {
        let is_signed = Signature::of(request.head.raw_path(), &request.head.headers).is_of_aws();
        match request.rules().probe_auth {
            ProbeAuth::Client if is_signed => {
                return Err(unreadable(
                    "it cannot be asked with the client's signature, which holds for one request: write \
                     probe_auth = \"sigv4\" for this route",
                ));
            }
            ProbeAuth::Client => return Ok(()),
            ProbeAuth::None | ProbeAuth::SigV4 => {}
        }
        let others: Vec<_> = head.headers.keys().filter(|name| !keep_for_own_signature(name)).cloned().collect();
        for name in request.rules().identity_headers.iter().chain(&others) {
            head.remove_header(name);
        }
        let target = request.rules().dialect.grammar().probe_target(head.raw_path());
        let unusable = |_error| unreadable("its request head cannot be written");
        head.set_raw_path(&target).map_err(unusable)?;
        if request.rules().probe_auth == ProbeAuth::SigV4 {
            // What is signed is what will be sent.
            if let HostHeader::Named(host) = &request.upstream().host_header {
                head.insert_header(header::HOST, host.as_str()).map_err(unusable)?;
            }
            let signed =
                self.signer.load().as_ref().map(|own| own.sign(head, &request.rules().probe_region, SystemTime::now()));
            if !matches!(signed, Some(Ok(()))) {
                return Err(unreadable("the question cannot be signed"));
            }
        }
        Ok(())
    }
}
