//! The parameters of a query, by the names that a backend could read. They stand between `&` or `;`.

use std::borrow::Cow;

use percent_encoding::percent_decode;

use super::query_names::may_be_read_as;
use crate::core::http::request_target::{join_query, split_query};

/// True if the query of a target has a parameter that a backend could read under this name.
pub fn has(target: &[u8], meant: &str) -> bool {
    values(target, meant).next().is_some()
}

/// Returns the decoded value of each parameter that a backend could read under this name.
pub fn values<'a>(target: &'a [u8], meant: &'a str) -> impl Iterator<Item = Cow<'a, [u8]>> {
    let (_, query) = split_query(target);
    let named = query.into_iter().flat_map(parameters).map(cut).filter(|(name, _)| may_be_read_as(name, meant));
    named.map(|(_, value)| Cow::from(percent_decode(value)))
}

/// Returns the parameters of a query as sent.
pub fn parameters(query: &[u8]) -> impl Iterator<Item = &[u8]> {
    query.split(|octet| matches!(octet, b'&' | b';'))
}

/// True if a backend could read a parameter, as sent, under one of these names.
pub fn is_one_of<N: AsRef<str>>(parameter: &[u8], names: &[N]) -> bool {
    let name = name_of(parameter);
    names.iter().any(|meant| may_be_read_as(name, meant.as_ref()))
}

/// Returns a target without its unwanted parameters, each as sent.
pub fn without(target: &[u8], is_unwanted: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let (path, query) = split_query(target);
    let Some(query) = query.filter(|query| parameters(query).any(&is_unwanted)) else { return target.to_vec() };
    let kept = parameters(query).filter(|parameter| !is_unwanted(parameter)).collect::<Vec<_>>().join(&b'&');
    join_query(path, Some(&kept[..]).filter(|kept| !kept.is_empty()))
}

/// Returns the name of a parameter as sent, without its value.
pub fn name_of(parameter: &[u8]) -> &[u8] {
    cut(parameter).0
}

/// Cuts a parameter into its name and its value.
fn cut(parameter: &[u8]) -> (&[u8], &[u8]) {
    let mut halves = parameter.splitn(2, |&octet| octet == b'=');
    (halves.next().unwrap_or_default(), halves.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_all_spellings_are_returned() {
        let target = b"/delete?a=delete;D%45lete=1&b=2&delete&delete=%32";
        let found: Vec<_> = values(target, "delete").map(Cow::into_owned).collect();
        assert_eq!(found, [&b"1"[..], b"", b"2"]);
        assert!(!has(b"/delete=1", "delete"));
    }
}
