//! The socket of the admin listener, bound before anything is served.

use std::{
    fs::{self, Permissions},
    io,
    net::TcpListener,
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
    path::Path,
};

use crate::{
    config::Listen,
    server::{BindError, is_dead_socket},
};

/// The mode of a Unix socket: only its owner may connect.
const UNIX_SOCKET_MODE: u32 = 0o600;

/// The socket, bound but not yet served.
#[derive(Debug)]
pub enum AdminSocket {
    /// A socket of the network.
    Tcp(TcpListener),
    /// A socket of this machine.
    Unix(UnixListener),
}

impl AdminSocket {
    /// Binds the socket at an address.
    pub fn bind(listen: &Listen) -> Result<Self, BindError> {
        match listen {
            Listen::Tcp(address) => bind_tcp(address).map_err(|source| BindError::new(address.clone(), source)),
            // The configuration rejects TLS here.
            Listen::Tls(address) => Err(BindError::new(address.clone(), io::ErrorKind::Unsupported.into())),
            Listen::Unix(path) => {
                bind_unix(path).map_err(|source| BindError::new(format!("unix:{}", path.display()), source))
            }
        }
    }

    /// Returns the address, with the port that the system chose if the configuration has port 0.
    pub fn address(&self) -> String {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(|address| address.to_string()).unwrap_or_default(),
            Self::Unix(listener) => {
                let address = listener.local_addr().ok();
                let path = address.as_ref().and_then(|address| address.as_pathname()).unwrap_or(Path::new(""));
                format!("unix:{}", path.display())
            }
        }
    }
}

fn bind_tcp(address: &str) -> io::Result<AdminSocket> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(AdminSocket::Tcp(listener))
}

/// Binds a socket that gets its final name only when no user but its owner can connect to it.
fn bind_unix(path: &Path) -> io::Result<AdminSocket> {
    if path.exists() && !is_dead_socket(path) {
        return Err(io::Error::from(io::ErrorKind::AddrInUse));
    }
    let mut unnamed = path.as_os_str().to_owned();
    unnamed.push(format!(".{}", std::process::id()));
    let unnamed = Path::new(&unnamed);
    let listener = UnixListener::bind(unnamed)?;
    let named = fs::set_permissions(unnamed, Permissions::from_mode(UNIX_SOCKET_MODE))
        .and_then(|()| listener.set_nonblocking(true))
        .and_then(|()| fs::rename(unnamed, path));
    if named.is_err() {
        // The caller gets the first error, which tells the reason.
        let _ = fs::remove_file(unnamed);
    }
    named.map(|()| AdminSocket::Unix(listener))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_unix_socket_is_for_its_owner_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("admin");
        drop(UnixListener::bind(&path).expect("one of a process that was killed"));
        let _socket = AdminSocket::bind(&Listen::Unix(path.clone())).expect("its place is free");
        assert_eq!(fs::metadata(&path).expect("the socket").permissions().mode() & 0o777, 0o600);
        UnixStream::connect(&path).expect("it listens");
        let error = AdminSocket::bind(&Listen::Unix(path)).expect_err("it is in use");
        assert!(error.to_string().starts_with("cannot listen on unix:/"), "{error}");
    }

    #[test]
    fn what_is_no_socket_is_not_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("notes");
        fs::write(&path, "mine").expect("a file");
        AdminSocket::bind(&Listen::Unix(path.clone())).expect_err("it is somebody's file");
        assert_eq!(fs::read_to_string(path).expect("it is there"), "mine");
    }
}
