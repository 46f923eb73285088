//! The method that a request is judged by (DESIGN, section 4): its own, or a stricter one that a field or the query
//! names.
//!
//! # Design
//!
//! *Why the stricter of the two?* The proxy cannot know whether the backend honours the field. A GET that names PUT
//! may be a write, and a PUT that names GET is one if the backend ignores the field.

use std::borrow::Cow;

use http::{HeaderMap, Method};
use percent_encoding::percent_decode;

use crate::core::{
    policy::{GuardRules, MethodClass, MethodOverride},
    refusal::{Code, Refusal},
    target::split_query,
};

pub use crate::core::fields::METHOD_FIELDS;

/// The query parameter in which frameworks look for a method that a form could not use.
const PARAMETER: &[u8] = b"_method";

/// Whether a field, or the query of a target, names a method.
pub fn is_named(headers: &HeaderMap, target: &[u8]) -> bool {
    headers.keys().any(|name| METHOD_FIELDS.contains(name)) || in_query(target).next().is_some()
}

/// The method that a request for this target is judged by on this route.
pub fn effective(guard: &GuardRules, own: &Method, headers: &HeaderMap, target: &[u8]) -> Result<Method, Refusal> {
    // Methods are case-sensitive (RFC 9110 section 9.1), but not to every backend.
    let has_lower_case = own.as_str().bytes().any(|byte| byte.is_ascii_lowercase());
    let upper = has_lower_case.then(|| Method::from_bytes(own.as_str().to_ascii_uppercase().as_bytes()).ok()).flatten();
    let own = upper.as_ref().filter(|upper| strictness(guard, upper) > strictness(guard, own)).unwrap_or(own);
    if !is_named(headers, target) {
        return Ok(own.clone());
    }
    if guard.method_override == MethodOverride::Refuse {
        return Err(refused("send the request with the method itself; do not name it in a header field or in _method"));
    }
    let named = named(headers, target)?;
    Ok(if strictness(guard, &named) > strictness(guard, own) { named } else { own.clone() })
}

/// The one method that the fields and the query name. Backends read it in any letter case.
fn named(headers: &HeaderMap, target: &[u8]) -> Result<Method, Refusal> {
    let in_fields = METHOD_FIELDS.iter().flat_map(|field| headers.get_all(field)).map(|value| value.as_bytes().into());
    let mut values = in_fields.chain(in_query(target)).map(|value: Cow<'_, [u8]>| {
        let token = value.trim_ascii().to_ascii_uppercase();
        Method::from_bytes(&token).ok()
    });
    let Some(Some(first)) = values.next() else { return Err(refused("name one method, as it is registered")) };
    if values.all(|other| other.as_ref() == Some(&first)) {
        return Ok(first);
    }
    Err(refused("name the same method wherever the request names one"))
}

/// The values of `_method` in the query of a target, in every spelling that a framework may take for it.
fn in_query(target: &[u8]) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let (_, query) = split_query(target);
    let parameters = query.into_iter().flat_map(|query| query.split(|octet| matches!(octet, b'&' | b';')));
    parameters.filter_map(|parameter| {
        let end = parameter.iter().position(|octet| *octet == b'=').unwrap_or(parameter.len());
        let (name, value) = parameter.split_at_checked(end)?;
        let name = Cow::from(percent_decode(name));
        let is_method = name.len() == PARAMETER.len() && name.iter().zip(PARAMETER).all(is_read_as);
        is_method.then(|| Cow::from(percent_decode(value.strip_prefix(b"=").unwrap_or_default())))
    })
}

/// Whether an octet of a parameter's name is read as the one that is meant. Letters count in any case, and PHP reads
/// each of these octets as an underscore.
fn is_read_as((octet, meant): (&u8, &u8)) -> bool {
    octet.eq_ignore_ascii_case(meant) || *meant == b'_' && matches!(octet, b'.' | b'+' | b' ' | b'[')
}

fn refused(detail: &'static str) -> Refusal {
    Refusal::new(Code::MethodOverride, detail)
}

/// How much is demanded of a method: the class first, then whether it needs a precondition.
fn strictness(guard: &GuardRules, method: &Method) -> (u8, bool) {
    let class = match guard.class_of(method) {
        MethodClass::Unjudged => 0,
        MethodClass::Read => 1,
        MethodClass::UnclaimedWrite => 2,
        MethodClass::Write => 3,
        MethodClass::NotSupported => 4,
        MethodClass::NotAllowed => 5,
    };
    (class, guard.require_methods.contains(method))
}
