//! The address of a server.

use std::{fmt, net::SocketAddr, path::Path, sync::Arc};

/// The prefix of the address of a server that listens on a Unix socket.
pub const UNIX: &str = "unix:";

/// The address that a connection is made to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// An address and a port.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(Arc<Path>),
}

impl Address {
    /// Returns the value of Host for a request without one, which only HTTP/1.0 allows. A socket has no name.
    pub(crate) fn host(&self) -> String {
        match self {
            Self::Tcp(address) => address.to_string(),
            Self::Unix(_) => "localhost".to_owned(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix(path) => write!(formatter, "{UNIX}{}", path.display()),
        }
    }
}
