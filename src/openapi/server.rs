//! The server of a document: where it is, and what its paths begin with.

use serde_json::Value;

/// The first server of a list, as a configuration names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ApiServer {
    /// `host:port` or `https://host:port`; `None` if the document names no host.
    pub(super) address: Option<String>,
    /// The path before those of the document: `/api/v3`, or nothing.
    pub(super) base: String,
}

impl ApiServer {
    /// Reads `servers` of a document, a path or an operation. `None` if there is none.
    pub(super) fn of(owner: &Value) -> Option<Self> {
        let server = owner.get("servers")?.get(0)?;
        let url = with_variables(server.get("url")?.as_str()?, server.get("variables"));
        Some(Self::of_url(&url))
    }

    fn of_url(url: &str) -> Self {
        // A URL without a host is one below the place of the document.
        let Some((scheme, rest)) = url.split_once("://") else { return Self { address: None, base: base(url) } };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        Self { address: address(scheme, authority), base: base(path) }
    }

    /// The address without its scheme: that of the URL of the document.
    pub(super) fn origin(&self) -> String {
        match &self.address {
            Some(address) if address.starts_with("https://") => address.trim_end_matches(":443").to_owned(),
            Some(address) => format!("http://{}", address.trim_end_matches(":80")),
            None => String::new(),
        }
    }
}

/// Puts the default of each variable into a URL.
fn with_variables(url: &str, variables: Option<&Value>) -> String {
    let Some(variables) = variables.and_then(Value::as_object) else { return url.to_owned() };
    variables.iter().fold(url.to_owned(), |url, (name, variable)| {
        let value = variable.get("default").and_then(Value::as_str).unwrap_or_default();
        url.replace(&format!("{{{name}}}"), value)
    })
}

/// The address of a host that a configuration can name.
fn address(scheme: &str, authority: &str) -> Option<String> {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_ascii_lowercase();
    let is_plain = |each: char| each.is_ascii_alphanumeric() || "-._:[]".contains(each);
    let (https, default_port) = match scheme.to_ascii_lowercase().as_str() {
        "https" => (true, 443),
        "http" => (false, 80),
        _ => return None,
    };
    if host.is_empty() || !host.chars().all(is_plain) {
        return None;
    }
    let after_brackets = host.rsplit(']').next().unwrap_or_default();
    let has_port =
        after_brackets.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0));
    if !has_port && after_brackets.contains(':') {
        return None;
    }
    let host = if has_port { host } else { format!("{host}:{default_port}") };
    Some(if https { format!("https://{host}") } else { host })
}

/// The path of a URL without its end.
fn base(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let segments = path.split('/').filter(|segment| !matches!(*segment, "" | "." | ".."));
    segments.flat_map(|segment| ["/", segment]).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_has_an_address_and_a_base() {
        for (url, address, base, origin) in [
            (
                "https://petstore.example.com/api/v3",
                Some("https://petstore.example.com:443"),
                "/api/v3",
                "https://petstore.example.com",
            ),
            ("http://localhost:9000/", Some("localhost:9000"), "", "http://localhost:9000"),
            ("http://a.example", Some("a.example:80"), "", "http://a.example"),
            ("http://[::1]", Some("[::1]:80"), "", "http://[::1]"),
            ("http://[::1]:8080/x", Some("[::1]:8080"), "/x", "http://[::1]:8080"),
            ("HTTPS://A.example/v1/?a=b", Some("https://a.example:443"), "/v1", "https://a.example"),
            ("/api//v3/", None, "/api/v3", ""),
            ("./v3", None, "/v3", ""),
            ("", None, "", ""),
            ("wss://a.example/socket", None, "/socket", ""),
            ("https://{region}.example/v1", None, "/v1", ""),
            ("http://user:pass@a.example/", Some("a.example:80"), "", "http://a.example"),
            ("http://a:b:c/", None, "", ""),
            ("http://a:0/", None, "", ""),
        ] {
            let server = ApiServer::of_url(url);
            assert_eq!((server.address.as_deref(), server.base.as_str()), (address, base), "{url}");
            assert_eq!(server.origin(), origin, "{url}");
        }
    }

    #[test]
    fn variables_have_their_defaults() {
        let variables = json!({"region": {"default": "eu"}, "version": {"default": "v2"}});
        let server = json!({"servers": [{"url": "https://{region}.example/{version}", "variables": variables}]});
        let expected = ApiServer { address: Some("https://eu.example:443".to_owned()), base: "/v2".to_owned() };
        assert_eq!(ApiServer::of(&server), Some(expected));
        assert_eq!(ApiServer::of(&json!({"servers": []})), None);
    }
}
