//! Certificates: read from files, checked before anything is served, and swapped without interrupting service.
//!
//! * [`Pair`] is a certificate with its key, and [`authorities`] reads those that may issue certificates. Both come
//!   from PEM files. A [`FileError`] reports the problem with a file and its remedy.
//! * [`Downstream`] is the configuration with which listeners answer handshakes. It can be replaced at any time, and
//!   watches its files.
//! * [`UpstreamTls`] holds the TLS settings for connections to upstreams.
//!
//! * [`client`] makes the settings of this program's own connections to stores and servers.
//!
//! Nothing here depends on HTTP.

mod client;
mod downstream;
mod files;
mod server;
mod sessions;
mod settings;
pub(crate) mod stamp;
mod upstream;

pub use client::client;
pub use downstream::{CertificateExpiry, Downstream};
pub use files::{FileError, Pair, Validity, authorities, system_authorities};
pub use settings::{CertificateFiles, ClientAuth, ServerTls};
pub use upstream::UpstreamTls;
