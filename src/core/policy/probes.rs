//! The way in which the proxy asks the upstream for the state of a resource.

/// Whose credentials a probe carries (`probe_auth`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeAuth {
    /// The credentials of the request that the probe is made for.
    Client,
    /// No credentials.
    None,
    /// A field of the proxy's own (`probe_field_file`).
    Field,
    /// A signature with the proxy's own credentials (AWS Signature Version 4).
    SigV4,
}
