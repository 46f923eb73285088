//! The reading of a request by a server.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::message::latin1;

/// One request as a server has read it; octets beyond ASCII appear as Latin-1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub method: String,
    pub target: String,
    /// In their order; under the names of CGI where the reader has those alone.
    pub fields: Vec<(String, String)>,
    pub body: String,
}

impl Reading {
    /// Returns the reading that a server reports.
    pub fn told(json: &[u8]) -> Self {
        let told: Value = serde_json::from_slice(json).unwrap_or_else(|error| panic!("{error}: {}", latin1(json)));
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let field = |pair: &Value| (text(&pair[0]), text(&pair[1]));
        let fields = told["fields"].as_array().expect("a list").iter().map(field).collect();
        Self { method: text(&told["method"]), target: text(&told["target"]), fields, body: text(&told["body"]) }
    }

    /// The same as an application behind CGI would get it (RFC 3875 section 4.1.18): lines of one name are one.
    ///
    /// Left out are fields whose names have other characters than letters, digits and hyphens, which both servers give no
    /// application; `Proxy`, which Apache gives none; and the framing, which is compared by the body.
    pub fn for_cgi(&self) -> Self {
        let mut variables = BTreeMap::<String, String>::new();
        for (name, value) in &self.fields {
            let is_plain = name.chars().all(|each| each.is_ascii_alphanumeric() || each == '-');
            let upper = name.to_ascii_uppercase().replace('-', "_");
            if is_plain && !matches!(&*upper, "PROXY" | "CONTENT_LENGTH" | "TRANSFER_ENCODING") {
                let variable = if upper == "CONTENT_TYPE" { upper } else { format!("HTTP_{upper}") };
                let list = variables.entry(variable).and_modify(|list| list.push_str(", ")).or_default();
                list.push_str(value);
            }
        }
        Self { fields: variables.into_iter().collect(), ..self.clone() }
    }

    /// Returns the reading of an application, in the form of [`Self::for_cgi`].
    pub fn of_cgi(self) -> Self {
        let is_field = |name: &str| name == "CONTENT_TYPE" || name.starts_with("HTTP_");
        let is_left_out = |name: &str| matches!(name, "HTTP_PROXY" | "HTTP_CONTENT_LENGTH" | "HTTP_TRANSFER_ENCODING");
        let mut variables = BTreeMap::<String, String>::new();
        for (name, value) in self.fields {
            if is_field(&name) && !is_left_out(&name) {
                // nginx gives it as any other field.
                let name = if name == "HTTP_CONTENT_TYPE" { "CONTENT_TYPE".to_owned() } else { name };
                let list = variables.entry(name).and_modify(|list| list.push_str(", ")).or_default();
                list.push_str(&value);
            }
        }
        Self { fields: variables.into_iter().collect(), ..self }
    }
}
