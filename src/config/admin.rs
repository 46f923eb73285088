//! The `[admin]` table.

use std::path::PathBuf;

use http::uri::Authority;

use super::{
    Listen,
    check::Check,
    client_tls::File,
    kinds::List,
    listen::listener,
    table::{ValueKind, section},
    written::Text,
};

section! {
    /// The `[admin]` table: the listener for operators.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Admin of AdminKeys {
        /// The address for operators.
        listen: Listen = OperatorAddress(());
        /// Names of the listener beside those of this machine and its address, in lower case.
        hosts: Vec<String> = List(Vec::new(), host);
        /// The file of the token that requests must carry.
        token_file: Option<PathBuf> = File(());
        /// The variable of the environment with that token.
        token_env: Option<String> = Variable(());
    }
}

/// The address for operators. Without one, nothing reads the table.
pub(super) struct OperatorAddress;

impl ValueKind<Listen> for OperatorAddress {
    type Written = Option<Text>;
    type Terms = ();

    fn read(check: &mut Check<'_>, _key: &str, written: Option<&Text>, (): ()) -> Listen {
        let address = written.and_then(|text| listener(check, text));
        check.refuse(
            written,
            matches!(address, Some(Listen::Tls(_))),
            "the admin listener does not speak TLS",
            "listen on 127.0.0.1 or unix:/path, and put a route with TLS in front if it has to be reached from elsewhere",
        );
        // A wrong address is a problem, and the program does not start with its substitute.
        address.unwrap_or_else(|| Listen::Unix(PathBuf::new()))
    }
}

/// The name of a variable of the environment; an empty text means none.
pub(super) struct Variable;

impl ValueKind<Option<String>> for Variable {
    type Written = Option<Text>;
    type Terms = ();

    fn read(check: &mut Check<'_>, key: &str, written: Option<&Text>, (): ()) -> Option<String> {
        let name = written.map(Text::get_ref).filter(|name| !name.is_empty())?;
        if !name.chars().all(|each| each.is_ascii_alphanumeric() || each == '_') {
            // The value may be the token itself, which must not appear in a log.
            check.whole(
                &format!("{key} in [admin] is not the name of a variable"),
                "write the name of the variable that holds the token: \"IFMATCH_ADMIN_TOKEN\"",
            );
        }
        Some(name.clone())
    }
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
