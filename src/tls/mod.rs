//! Certificates: read from files, checked before anything is served, and swapped while everything is served.
//!
//! * [`Pair`] is a certificate with its key, [`authorities`] are whom a certificate may come from; both are files in PEM
//!   form, and what is wrong with one is a [`FileError`] that says what to do.
//! * [`Downstream`] is what listeners answer handshakes with. It can be replaced at any moment, and watches its files.
//!
//! Nothing here knows HTTP. What upstreams are shown is made of the same parts by `exchange`.

mod downstream;
mod files;
mod server;
mod settings;
mod stamp;
mod upstream;

pub use downstream::Downstream;
pub use files::{FileError, Pair, Validity, authorities, system_authorities};
pub use settings::{CertificateFiles, ClientAuth, ServerTls};
pub use upstream::UpstreamTls;
