//! The `[admin]` table.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};

use http::uri::Authority;

use super::{
    super::{Admin, Listen, TokenSource, listen::listener, raw, raw::Text},
    check::Check,
    secrets::warn_if_open,
};

pub(super) fn admin(check: &mut Check<'_>, raw: &raw::Admin) -> Option<Admin> {
    let Some(listen) = raw.listen.as_ref().filter(|listen| !listen.get_ref().is_empty()) else {
        refuse_without_listener(check, raw);
        return None;
    };
    let hosts = raw.hosts.as_ref().map(|hosts| check.each(hosts, host)).unwrap_or_default();
    let token = token(check, raw);
    let address = listener(check, listen)?;
    if matches!(address, Listen::Tls(_)) {
        check.hinted(
            listen.span(),
            "the admin listener does not speak TLS",
            "listen on 127.0.0.1 or unix:/path, and put a route with TLS in front if it has to be reached from elsewhere",
        );
    }
    if token.is_none() && !is_local(&address) {
        check.hinted(
            listen.span(),
            format!("admin listens on {:?}, which others can reach, without a token", listen.get_ref()),
            "set token_file or token_env, or listen on 127.0.0.1, [::1] or unix:/path",
        );
    }
    Some(Admin { listen: address, hosts, token })
}

/// Reports keys of an admin listener if there is none: their author meant to have one.
fn refuse_without_listener(check: &mut Check<'_>, raw: &raw::Admin) {
    const HINT: &str = "add listen = \"127.0.0.1:9901\"";
    for (key, text) in [("token_file", &raw.token_file), ("token_env", &raw.token_env)] {
        let is_said = text.as_ref().is_some_and(|text| !text.get_ref().is_empty());
        check.refuse(text.as_ref(), is_said, format!("{key} without listen"), HINT);
    }
    let has_hosts = raw.hosts.as_ref().is_some_and(|hosts| !hosts.get_ref().is_empty());
    check.refuse(raw.hosts.as_ref(), has_hosts, "hosts without listen", HINT);
}

fn token(check: &mut Check<'_>, raw: &raw::Admin) -> Option<TokenSource> {
    let is_said = |text: &&Text| !text.get_ref().is_empty();
    let (file, variable) = (raw.token_file.as_ref().filter(is_said), raw.token_env.as_ref().filter(is_said));
    if let (Some(_), Some(variable)) = (file, variable) {
        check.problem(variable.span(), "token_file and token_env both name the token");
    }
    if let Some(file) = file {
        if !Path::new(file.get_ref()).is_absolute() {
            check.problem(file.span(), format!("token_file is {:?}, which is no absolute path", file.get_ref()));
        }
        warn_if_open(check, "token_file", file);
        return Some(TokenSource::File(PathBuf::from(file.get_ref())));
    }
    let variable = variable?;
    let name = variable.get_ref();
    if !name.chars().all(|each| each.is_ascii_alphanumeric() || each == '_') {
        // The value may be the token itself, which must not appear in a log.
        check.whole(
            "token_env in [admin] is not the name of a variable",
            "write the name of the variable that holds the token: \"IFMATCH_ADMIN_TOKEN\"",
        );
    }
    Some(TokenSource::Environment(name.clone()))
}

/// Reads a host name that admin requests may carry, without a port.
fn host(check: &mut Check<'_>, text: &Text) -> Option<String> {
    let name = text.get_ref().to_ascii_lowercase();
    let authority = name.parse::<Authority>().ok().filter(|authority| authority.host() == name);
    if authority.is_none() {
        let message = format!("hosts: {:?} is not a host name", text.get_ref());
        check.hinted(text.span(), message, "write it without a port: \"admin.example.com\"");
    }
    authority.map(|_| name)
}

/// Returns whether only this machine can connect.
fn is_local(listen: &Listen) -> bool {
    let Listen::Tcp(address) = listen else { return true };
    let Ok(authority) = address.parse::<Authority>() else { return false };
    let host = authority.host();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
