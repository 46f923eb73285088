//! The rules over several keys of the `[admin]` table.

use std::net::IpAddr;

use http::uri::Authority;

use super::{
    super::{Admin, Listen, admin::AdminKeys, section::Layers, table::Section as _},
    check::Check,
    secrets::warn_if_open,
};

pub(super) fn admin(check: &mut Check<'_>, keys: &AdminKeys) -> Option<Admin> {
    let Some(listen) = keys.listen.as_ref().filter(|listen| !listen.get_ref().is_empty()) else {
        refuse_without_listener(check, keys);
        return None;
    };
    let admin = Admin::read(check, "", Layers::only(keys), ());
    if let Some(file) = &keys.token_file {
        warn_if_open(check, "token_file", file);
    }
    let has_token = admin.token_file.is_some() || admin.token_env.is_some();
    if let (Some(_), Some(_), Some(variable)) = (&admin.token_file, &admin.token_env, &keys.token_env) {
        check.problem(variable.span(), "token_file and token_env both name the token");
    }
    if !has_token && !is_local(&admin.listen) {
        check.hinted(
            listen.span(),
            format!("admin listens on {:?}, which others can reach, without a token", listen.get_ref()),
            "set token_file or token_env, or listen on 127.0.0.1, [::1] or unix:/path",
        );
    }
    Some(admin)
}

/// Reports keys of an admin listener if there is none: their author meant to have one.
fn refuse_without_listener(check: &mut Check<'_>, keys: &AdminKeys) {
    const HINT: &str = "add listen = \"127.0.0.1:9901\"";
    for (key, text) in [("token_file", &keys.token_file), ("token_env", &keys.token_env)] {
        let is_said = text.as_ref().is_some_and(|text| !text.get_ref().is_empty());
        check.refuse(text.as_ref(), is_said, format!("{key} without listen"), HINT);
    }
    let has_hosts = keys.hosts.as_ref().is_some_and(|hosts| !hosts.get_ref().is_empty());
    check.refuse(keys.hosts.as_ref(), has_hosts, "hosts without listen", HINT);
}

/// Returns whether only this machine can connect.
fn is_local(listen: &Listen) -> bool {
    let Listen::Tcp(address) = listen else { return true };
    let Ok(authority) = address.parse::<Authority>() else { return false };
    let host = authority.host();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
