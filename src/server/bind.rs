//! Listening sockets, bound before anything is served: a port in use is found out at once.

use std::{
    fs::{self, Permissions},
    io,
    net::{TcpListener, ToSocketAddrs as _},
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

use listenfd::ListenFd;
use pingora::{
    server::{Fds, ListenFds},
    services::listening::Service,
};
use thiserror::Error;

use crate::config::Listen;

/// Who may connect to a Unix socket: its owner and group.
const UNIX_SOCKET_MODE: u32 = 0o660;

/// An address that cannot be listened on.
#[derive(Debug, Error)]
#[error("cannot listen on {address}")]
pub struct BindError {
    address: String,
    #[source]
    source: io::Error,
}

/// Sockets that a supervisor has opened, and that cannot be served.
#[derive(Debug, Error)]
pub enum InheritError {
    /// An address has none, and cannot be listened on.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// One of them is no socket that listens.
    #[error("a file descriptor of LISTEN_FDS cannot be listened on")]
    NoListener(#[source] Option<io::Error>),
    /// The configuration does not speak of it.
    #[error("LISTEN_FDS has a socket on {0}, which server.listen does not name")]
    NotNamed(String),
}

/// Sockets that listen, not yet served.
///
/// The file of a Unix socket stays when the process ends, and the next one replaces it: to remove it could take away
/// the socket of a successor.
#[derive(Debug)]
pub struct Listeners {
    sockets: Vec<Socket>,
    inherited: bool,
}

#[derive(Debug)]
enum Socket {
    Tcp { address: String, listener: TcpListener },
    Unix { path: PathBuf, listener: UnixListener },
}

impl Listeners {
    /// Listens on each address, or on none of them.
    pub fn bind(listen: &[Listen]) -> Result<Self, BindError> {
        let sockets = listen.iter().map(bind).collect::<Result<_, _>>()?;
        Ok(Self { sockets, inherited: false })
    }

    /// Takes over the sockets that a supervisor has opened (`LISTEN_FDS`), each for the address of the configuration
    /// that it listens on, and listens on the other addresses itself. A socket that outlives the process loses no
    /// connection when one process takes the place of another.
    pub fn inherit_or_bind(listen: &[Listen]) -> Result<Self, InheritError> {
        let mut inherited = inherited()?;
        let is_inherited = !inherited.is_empty();
        let mut sockets = Vec::with_capacity(listen.len());
        for listen in listen {
            let place = inherited.iter().position(|socket| socket.address() == address(listen));
            sockets.push(match place {
                Some(place) => inherited.swap_remove(place),
                None => bind(listen)?,
            });
        }
        match inherited.first() {
            Some(socket) => Err(InheritError::NotNamed(socket.address())),
            None => Ok(Self { sockets, inherited: is_inherited }),
        }
    }

    /// Whether a supervisor has opened some of them, so that another process may serve them too.
    pub fn are_inherited(&self) -> bool {
        self.inherited
    }

    /// The addresses, with the ports that were chosen where the configuration says port 0.
    pub fn addresses(&self) -> impl Iterator<Item = String> {
        self.sockets.iter().map(Socket::address)
    }

    /// Makes a service serve these sockets: adds their addresses to it, and returns the table in which it finds them.
    pub(crate) fn attach<A>(self, service: &mut Service<A>) -> ListenFds {
        let mut descriptors = Fds::new();
        for socket in self.sockets {
            let (address, descriptor) = socket.into_parts(service);
            descriptors.add(address, descriptor);
        }
        Arc::new(descriptors.into())
    }
}

impl Socket {
    fn address(&self) -> String {
        match self {
            Self::Tcp { address, .. } => address.clone(),
            Self::Unix { path, .. } => format!("unix:{}", path.display()),
        }
    }

    fn into_parts<A>(self, service: &mut Service<A>) -> (String, RawFd) {
        match self {
            Self::Tcp { address, listener } => {
                service.add_tcp(&address);
                (address, listener.into_raw_fd())
            }
            Self::Unix { path, listener } => {
                let path = path.to_string_lossy().into_owned();
                service.add_uds(&path, Some(Permissions::from_mode(UNIX_SOCKET_MODE)));
                (path, listener.into_raw_fd())
            }
        }
    }
}

fn inherited() -> Result<Vec<Socket>, InheritError> {
    let no_listener = |error| InheritError::NoListener(Some(error));
    let mut descriptors = ListenFd::from_env();
    let mut sockets = Vec::with_capacity(descriptors.len());
    for index in 0..descriptors.len() {
        sockets.push(match descriptors.take_tcp_listener(index) {
            Ok(Some(listener)) => tcp(listener).map_err(no_listener)?,
            _ => match descriptors.take_unix_listener(index).map_err(no_listener)? {
                Some(listener) => unix(listener).map_err(no_listener)?,
                None => return Err(InheritError::NoListener(None)),
            },
        });
    }
    Ok(sockets)
}

fn unix(listener: UnixListener) -> io::Result<Socket> {
    listener.set_nonblocking(true)?;
    let path = listener.local_addr()?.as_pathname().map(Path::to_owned).unwrap_or_default();
    Ok(Socket::Unix { path, listener })
}

/// An address of the configuration as [`Socket::address`] spells it.
fn address(listen: &Listen) -> String {
    match listen {
        Listen::Tcp(address) => match address.to_socket_addrs().ok().and_then(|mut addresses| addresses.next()) {
            Some(resolved) => resolved.to_string(),
            None => address.clone(),
        },
        Listen::Unix(path) => format!("unix:{}", path.display()),
    }
}

fn bind(listen: &Listen) -> Result<Socket, BindError> {
    match listen {
        Listen::Tcp(address) => bind_tcp(address).map_err(|source| BindError { address: address.clone(), source }),
        Listen::Unix(path) => {
            bind_unix(path).map_err(|source| BindError { address: format!("unix:{}", path.display()), source })
        }
    }
}

fn bind_tcp(address: &str) -> io::Result<Socket> {
    tcp(TcpListener::bind(address)?)
}

fn tcp(listener: TcpListener) -> io::Result<Socket> {
    listener.set_nonblocking(true)?;
    Ok(Socket::Tcp { address: listener.local_addr()?.to_string(), listener })
}

fn bind_unix(path: &Path) -> io::Result<Socket> {
    remove_dead_socket(path)?;
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(UNIX_SOCKET_MODE))?;
    listener.set_nonblocking(true)?;
    Ok(Socket::Unix { path: path.to_owned(), listener })
}

/// Removes the file of a socket that nobody listens on any more; it is what a process leaves that was killed.
fn remove_dead_socket(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
    let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if is_socket && UnixStream::connect(path).err().as_ref().is_some_and(refused) {
        fs::remove_file(path)?;
    }
    Ok(())
}

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
