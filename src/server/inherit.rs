//! Listening sockets that a supervisor has opened and that outlive the process.

use std::{
    io,
    time::{Duration, Instant},
};

use listenfd::ListenFd;
use thiserror::Error;

use super::{BindError, Listeners, Socket, bind, tcp, unix};
use crate::{config::Listen, core::address::Address, names::of_this_system};

/// How long the address of a listener may take to be found.
const LOOK_UP_MAX: Duration = Duration::from_secs(10);

/// The reason why sockets that a supervisor has opened cannot be served.
#[derive(Debug, Error)]
pub enum InheritError {
    /// An address has no inherited socket, and the process cannot listen on it.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A file descriptor is not a listening socket.
    #[error("a file descriptor of LISTEN_FDS is not a listening socket")]
    NoListener(#[source] Option<io::Error>),
    /// The configuration does not name the socket.
    #[error("LISTEN_FDS has a socket on {0}, which server.listen does not name")]
    NotNamed(String),
}

impl Listeners {
    /// Takes over the sockets that a supervisor has opened (`LISTEN_FDS`), each for its address in the configuration,
    /// and listens on the other addresses itself. A socket that outlives the process loses no connection when one
    /// process replaces another.
    pub fn inherit_or_bind(listen: &[Listen]) -> Result<Self, InheritError> {
        let mut inherited = inherited()?;
        let is_inherited = !inherited.is_empty();
        let mut sockets = Vec::with_capacity(listen.len());
        for listen in listen {
            let place = inherited.iter().position(|socket| listens_on(socket, listen));
            sockets.push(match place {
                Some(place) => served_as(inherited.swap_remove(place), listen),
                None => bind(listen)?,
            });
        }
        match inherited.first() {
            Some(socket) => Err(InheritError::NotNamed(socket.address())),
            None => Ok(Self { sockets, inherited: is_inherited, tls: None }),
        }
    }
}

fn inherited() -> Result<Vec<Socket>, InheritError> {
    let no_listener = |error| InheritError::NoListener(Some(error));
    let mut descriptors = ListenFd::from_env();
    let mut sockets = Vec::with_capacity(descriptors.len());
    for index in 0..descriptors.len() {
        sockets.push(match descriptors.take_tcp_listener(index) {
            Ok(Some(listener)) => tcp(listener, false).map_err(no_listener)?,
            _ => match descriptors.take_unix_listener(index).map_err(no_listener)? {
                Some(listener) => unix(listener).map_err(no_listener)?,
                None => return Err(InheritError::NoListener(None)),
            },
        });
    }
    Ok(sockets)
}

fn listens_on(socket: &Socket, listen: &Listen) -> bool {
    match (socket, listen) {
        (Socket::Tcp { listener, .. }, Listen::Tcp(address) | Listen::Tls(address)) => {
            let named = first_of(address);
            listener.local_addr().is_ok_and(|own| Some(Address::Tcp(own)) == named)
        }
        (Socket::Unix { path, .. }, Listen::Unix(named)) => path == named,
        _ => false,
    }
}

/// Returns the first address of `host:port`.
fn first_of(address: &str) -> Option<Address> {
    match address.parse() {
        Ok(address) => Some(Address::Tcp(address)),
        Err(_) => of_this_system().addresses_by(address, Instant::now() + LOOK_UP_MAX).ok()?.first().cloned(),
    }
}

/// Returns the socket with the protocol that the configuration sets.
fn served_as(socket: Socket, listen: &Listen) -> Socket {
    match socket {
        Socket::Tcp { address, listener, .. } => {
            Socket::Tcp { address, listener, is_tls: matches!(listen, Listen::Tls(_)) }
        }
        Socket::Unix { .. } => socket,
    }
}
