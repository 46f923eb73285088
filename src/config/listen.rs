//! Listening addresses.

use std::path::PathBuf;

use http::uri::Authority;
use serde_json::Value;

use super::{
    check::Check,
    table::{InWords, ValueKind},
    written::{Text, Texts},
};

/// The address for clients if the file names none.
const DEFAULT: &str = "127.0.0.1:8080";

/// One listening address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// `host:port`.
    Tcp(String),
    /// `tls:host:port`.
    Tls(String),
    /// `unix:/path`.
    Unix(PathBuf),
}

impl InWords for Listen {
    fn shown(&self) -> Value {
        match self {
            Self::Tcp(address) => address.as_str().into(),
            Self::Tls(address) => format!("tls:{address}").into(),
            Self::Unix(path) => format!("unix:{}", path.display()).into(),
        }
    }
}

/// A list of listening addresses.
pub(super) struct ListenAddresses;

impl ValueKind<Vec<Listen>> for ListenAddresses {
    type Written = Option<Texts>;
    type Terms = ();

    fn read(check: &mut Check<'_>, key: &str, written: Option<&Texts>, (): ()) -> Vec<Listen> {
        let Some(list) = written else { return vec![Listen::Tcp(DEFAULT.to_owned())] };
        if list.get_ref().is_empty() {
            check.hinted(list.span(), format!("{key} is empty"), format!("leave it out for {DEFAULT:?}"));
        }
        check.each(list, listener)
    }
}

/// Reads one listening address.
pub(super) fn listener(check: &mut Check<'_>, text: &Text) -> Option<Listen> {
    const HINT: &str =
        r#"write "127.0.0.1:8080", "0.0.0.0:80", "[::]:80", "tls:0.0.0.0:443" or "unix:/run/ifmatch.sock""#;
    let address = text.get_ref();
    if let Some(path) = address.strip_prefix("unix:") {
        let path = PathBuf::from(path);
        if !path.is_absolute() {
            check.hinted(text.span(), format!("listen address {address:?} has no absolute path"), HINT);
        }
        return Some(Listen::Unix(path));
    }
    let over_tls = address.strip_prefix("tls:");
    match host_and_port(over_tls.unwrap_or(address)) {
        Ok(_) => Some(over_tls.map_or_else(
            || Listen::Tcp(address.to_ascii_lowercase()),
            |address| Listen::Tls(address.to_ascii_lowercase()),
        )),
        Err(what) => {
            check.hinted(text.span(), format!("listen address {address:?} {what}"), HINT);
            None
        }
    }
}

/// Returns the port of a `host:port`, or the problem with it.
pub(super) fn host_and_port(address: &str) -> Result<u16, &'static str> {
    if address.contains('@') {
        return Err("holds a user or a password");
    }
    if address.contains("://") {
        return Err("is a URL, not host:port");
    }
    let authority = address.parse::<Authority>().ok();
    let authority = authority.filter(|authority| !authority.host().is_empty());
    let authority = authority.as_ref().ok_or("is not host:port")?;
    let without = if authority.host() == address { "has no port" } else { "has no port from 0 to 65535" };
    authority.port_u16().ok_or(without)
}
