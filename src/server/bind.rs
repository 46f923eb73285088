//! Listening sockets, bound before anything is served, so that a port in use is found at once.

use std::{
    fs::{self, Permissions},
    io,
    net::TcpListener,
    os::{
        fd::{IntoRawFd as _, RawFd},
        unix::{
            fs::{FileTypeExt as _, PermissionsExt as _},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use pingora::{
    listeners::ListenerConfig,
    protocols::l4::stream::L4BufferSettings,
    server::{Fds, ListenFds},
    services::listening::Service,
};
use socket2::SockRef;
use thiserror::Error;

use crate::{config::Listen, downstream::WRITE_TIMEOUT, tls::Downstream};

/// The permissions of a Unix socket: its owner and group may connect.
const UNIX_SOCKET_MODE: u32 = 0o660;

/// The number of bytes that a connection reads ahead, which is its first read: all others are larger and pass by this
/// buffer. Most first heads are smaller. Pingora's 64 KiB would be the largest cost of an idle connection.
const READ_AHEAD_BYTES: usize = 1024;
/// Like [`READ_AHEAD_BYTES`], but over TLS: the size of a record (RFC 8446 section 5.1).
const READ_AHEAD_TLS_BYTES: usize = 16 * 1024;

/// An address that cannot be listened on.
#[derive(Debug, Error)]
#[error("cannot listen on {address}")]
pub struct BindError {
    address: String,
    #[source]
    source: io::Error,
}

impl BindError {
    pub(crate) fn new(address: String, source: io::Error) -> Self {
        Self { address, source }
    }
}

/// Listening sockets that are not served yet.
///
/// The file of a Unix socket stays when the process ends, and the next process replaces it. Removing it could take
/// away the socket of a successor.
#[derive(Debug)]
pub struct Listeners {
    sockets: Vec<Socket>,
    inherited: bool,
    tls: Option<Arc<Downstream>>,
}

#[derive(Debug)]
enum Socket {
    Tcp { address: String, listener: TcpListener, is_tls: bool },
    Unix { path: PathBuf, listener: UnixListener },
}

impl Listeners {
    /// Listens on each address, or on none if one fails.
    pub fn bind(listen: &[Listen]) -> Result<Self, BindError> {
        let sockets = listen.iter().map(bind).collect::<Result<_, _>>()?;
        Ok(Self { sockets, inherited: false, tls: None })
    }

    /// True if a supervisor has opened some of the sockets, so that another process may serve them too.
    pub fn are_inherited(&self) -> bool {
        self.inherited
    }

    /// Sets the certificates and settings for TLS handshakes. Without them, sockets that speak TLS are not served.
    #[must_use]
    pub fn secured(mut self, tls: Option<Arc<Downstream>>) -> Self {
        self.tls = tls;
        self
    }

    /// Returns the certificates and settings for TLS handshakes.
    pub(crate) fn tls(&self) -> Option<Arc<Downstream>> {
        self.tls.clone()
    }

    /// Returns the addresses, with the chosen ports in place of port 0.
    pub fn addresses(&self) -> impl Iterator<Item = String> {
        self.sockets.iter().map(Socket::address)
    }

    /// Makes two services serve these sockets, the second one those that speak TLS. Adds the addresses to the
    /// services, and returns the table in which they find the sockets.
    pub(crate) fn attach<A, B>(self, plain: &mut Service<A>, mut secure: Option<&mut Service<B>>) -> ListenFds {
        let mut descriptors = Fds::new();
        for socket in self.sockets {
            let (address, descriptor) = match (&socket, &mut secure) {
                (Socket::Tcp { is_tls: true, .. }, Some(secure)) => socket.into_parts(secure),
                (Socket::Tcp { is_tls: true, .. }, None) => continue,
                _ => socket.into_parts(plain),
            };
            descriptors.add(address, descriptor);
        }
        Arc::new(descriptors.into())
    }
}

impl Socket {
    fn address(&self) -> String {
        match self {
            Self::Tcp { address, is_tls, .. } => format!("{}{address}", if *is_tls { "tls:" } else { "" }),
            Self::Unix { path, .. } => format!("unix:{}", path.display()),
        }
    }

    fn into_parts<A>(self, service: &mut Service<A>) -> (String, RawFd) {
        match self {
            Self::Tcp { address, listener, is_tls } => {
                let read_ahead = if is_tls { READ_AHEAD_TLS_BYTES } else { READ_AHEAD_BYTES };
                service.add_listener(ListenerConfig::tcp(&address).l4_buffer(reading_ahead(read_ahead)));
                (address, listener.into_raw_fd())
            }
            Self::Unix { path, listener } => {
                let path = path.to_string_lossy().into_owned();
                let permissions = Permissions::from_mode(UNIX_SOCKET_MODE);
                let endpoint = ListenerConfig::uds(&path).permissions(permissions);
                service.add_listener(endpoint.l4_buffer(reading_ahead(READ_AHEAD_BYTES)));
                (path, listener.into_raw_fd())
            }
        }
    }
}

fn reading_ahead(bytes: usize) -> L4BufferSettings {
    L4BufferSettings::default().read(bytes)
}

fn unix(listener: UnixListener) -> io::Result<Socket> {
    listener.set_nonblocking(true)?;
    let path = listener.local_addr()?.as_pathname().map(Path::to_owned).unwrap_or_default();
    Ok(Socket::Unix { path, listener })
}

fn bind(listen: &Listen) -> Result<Socket, BindError> {
    let bind_tcp = |address: &String, is_tls| {
        bind_tcp(address, is_tls).map_err(|source| BindError { address: address.clone(), source })
    };
    match listen {
        Listen::Tcp(address) => bind_tcp(address, false),
        Listen::Tls(address) => bind_tcp(address, true),
        Listen::Unix(path) => {
            bind_unix(path).map_err(|source| BindError { address: format!("unix:{}", path.display()), source })
        }
    }
}

fn bind_tcp(address: &str, is_tls: bool) -> io::Result<Socket> {
    tcp(TcpListener::bind(address)?, is_tls)
}

fn tcp(listener: TcpListener, is_tls: bool) -> io::Result<Socket> {
    listener.set_nonblocking(true)?;
    // Its connections inherit it. A client whose machine has vanished closes nothing, and takes no byte either.
    SockRef::from(&listener).set_tcp_user_timeout(Some(WRITE_TIMEOUT))?;
    Ok(Socket::Tcp { address: listener.local_addr()?.to_string(), listener, is_tls })
}

fn bind_unix(path: &Path) -> io::Result<Socket> {
    remove_dead_socket(path)?;
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(UNIX_SOCKET_MODE))?;
    listener.set_nonblocking(true)?;
    Ok(Socket::Unix { path: path.to_owned(), listener })
}

/// Removes the file of a socket without a listener, as a killed process leaves it.
fn remove_dead_socket(path: &Path) -> io::Result<()> {
    if is_dead_socket(path) { fs::remove_file(path) } else { Ok(()) }
}

/// True if a path is the file of a socket without a listener.
pub(crate) fn is_dead_socket(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
    let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && UnixStream::connect(path).err().as_ref().is_some_and(refused)
}

#[path = "inherit.rs"]
mod inherit;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_an_error_at_once() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = taken.local_addr().expect("its address").to_string();
        let error = Listeners::bind(&[Listen::Tcp(address.clone())]).expect_err("the port is in use");
        assert_eq!(error.to_string(), format!("cannot listen on {address}"));
        assert_eq!(error.source.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn port_0_is_shown_as_the_port_that_was_chosen() {
        let listeners = Listeners::bind(&[Listen::Tcp("127.0.0.1:0".into())]).expect("a free port");
        let address = listeners.addresses().next().expect("one address");
        assert!(address.starts_with("127.0.0.1:") && !address.ends_with(":0"), "{address}");
    }

    #[test]
    fn a_connection_waits_for_a_client_that_has_vanished_no_longer_than_for_a_slow_one() {
        let listeners = Listeners::bind(&[Listen::Tcp("127.0.0.1:0".into())]).expect("a free port");
        let Some(Socket::Tcp { address, listener, .. }) = listeners.sockets.first() else { panic!("no socket") };
        let _client = std::net::TcpStream::connect(address).expect("somebody listens");
        listener.set_nonblocking(false).expect("an option");
        let (connection, _) = listener.accept().expect("a client");
        let timeout = SockRef::from(&connection).tcp_user_timeout().expect("an option");
        assert_eq!(timeout, Some(WRITE_TIMEOUT));
    }

    #[test]
    fn a_unix_socket_is_for_its_owner_and_group() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let _listeners = Listeners::bind(&[Listen::Unix(path.clone())]).expect("a new socket");
        let mode = fs::metadata(&path).expect("the socket").permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
    }

    #[test]
    fn a_dead_unix_socket_is_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        drop(UnixListener::bind(&path).expect("a socket, then dead"));
        Listeners::bind(&[Listen::Unix(path)]).expect("its file is replaced");
    }

    #[test]
    fn a_living_unix_socket_is_left_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let _living = UnixListener::bind(&path).expect("a socket");
        let error = Listeners::bind(&[Listen::Unix(path)]).expect_err("it is in use");
        assert_eq!(error.source.kind(), io::ErrorKind::AddrInUse);
    }
}
