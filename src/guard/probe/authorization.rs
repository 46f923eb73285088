//! The credentials of probes (`probe_auth`).

use std::{sync::Arc, time::SystemTime};

use http::{HeaderName, header};
use pingora::http::RequestHeader;

use super::{Probes, unreadable::unreadable};
use crate::{
    config::HostHeader,
    core::{
        http::credentials::{PROOF_FIELDS, are_bound_to_request},
        policy::ProbeAuth,
        refusal::Refusal,
    },
    dialect::s3::{Signature, keep_for_own_signature},
    guard::request::Request,
    upstream::OwnCredentials,
};

/// The parts that a client's signature covers (RFC 9421 section 4.1). It means nothing without the signature.
static SIGNATURE_INPUT: HeaderName = HeaderName::from_static("signature-input");

/// True if a probe carries credentials of the client that hold for the client's own request alone.
pub(super) fn lends_bound_credentials(request: &Request) -> bool {
    request.rules().probe_auth == ProbeAuth::Client && are_bound_to_request(&request.head.headers)
}

impl Probes {
    /// Sets the credentials for routes that probe with the proxy's own, from now on.
    pub(crate) fn probe_with(&self, own: OwnCredentials) {
        let own = own.over(&self.own.load());
        self.own.store(Arc::new(own));
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
            ProbeAuth::None | ProbeAuth::Field | ProbeAuth::SigV4 => {}
        }
        let others: Vec<_> = head.headers.keys().filter(|name| !keep_for_own_signature(name)).cloned().collect();
        // Proofs of the right to the client's request prove nothing beside other credentials.
        let proofs = PROOF_FIELDS.iter().chain([&SIGNATURE_INPUT]);
        for name in request.rules().identity_headers.iter().chain(proofs).chain(&others) {
            head.remove_header(name);
        }
        let target = request.grammar().probe_target(head.raw_path());
        let unusable = |_error| unreadable("the probe head cannot be written");
        head.set_raw_path(&target).map_err(unusable)?;
        match (request.rules().probe_auth, &request.rules().probe_field_file) {
            (ProbeAuth::SigV4, _) => self.sign(request, head),
            (ProbeAuth::Field, Some(path)) => self.own.load().put_field(path, head).map_err(|_error| unsigned()),
            _ => Ok(()),
        }
    }

    fn sign(&self, request: &Request, head: &mut RequestHeader) -> Result<(), Refusal> {
        // The signature covers the Host that will be sent.
        if let HostHeader::Named(host) = &request.upstream().host_header {
            head.insert_header(header::HOST, host.as_str()).map_err(|_error| unsigned())?;
        }
        let own = self.own.load();
        let signer = own.signer().ok_or_else(unsigned)?;
        signer.sign(head, &request.rules().probe_region, SystemTime::now()).map_err(|_error| unsigned())
    }
}

fn unsigned() -> Refusal {
    unreadable("the proxy's own credentials cannot be put into the probe")
}
