//! The credentials of probes (`probe_auth`).

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
    /// Sets the credentials for routes that probe with the proxy's own, from now on.
    pub(crate) fn sign_with(&self, signer: Signer) {
        self.signer.store(Some(Arc::new(signer)));
    }

    /// Puts the credentials into the head of a probe: the client's, none, or the proxy's own. A client's signature
    /// holds only for the client's own request, so no probe uses it.
    pub(crate) fn set_credentials(&self, request: &Request, head: &mut RequestHeader) -> Result<(), Refusal> {
        let is_signed = Signature::of(request.head.raw_path(), &request.head.headers).is_of_aws();
        match request.rules().probe_auth {
            ProbeAuth::Client if is_signed => {
                return Err(unreadable(
                    "a probe cannot use the client's signature, which holds for one request: set \
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
        let target = request.grammar().probe_target(head.raw_path());
        let unusable = |_error| unreadable("the probe head cannot be written");
        head.set_raw_path(&target).map_err(unusable)?;
        if request.rules().probe_auth == ProbeAuth::SigV4 {
            // The signature covers the Host that will be sent.
            if let HostHeader::Named(host) = &request.upstream().host_header {
                head.insert_header(header::HOST, host.as_str()).map_err(unusable)?;
            }
            let signed =
                self.signer.load().as_ref().map(|own| own.sign(head, &request.rules().probe_region, SystemTime::now()));
            if !matches!(signed, Some(Ok(()))) {
                return Err(unreadable("the probe cannot be signed"));
            }
        }
        Ok(())
    }
}
