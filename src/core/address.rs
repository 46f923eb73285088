//! The address of a server.

use std::{fmt, net::SocketAddr, path::Path, sync::Arc};

/// What the address of a server begins with that listens on a Unix socket.
pub const UNIX: &str = "unix:";

/// Where a connection is made to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An address and a port.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(Arc<Path>),
}

impl Address {
    /// What stands in Host where the client named none, which it may over HTTP/1.0 alone: a socket has no name.
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
