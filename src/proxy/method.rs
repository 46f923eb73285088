//! The method that a request is judged by (DESIGN, section 4): its own, or a stricter one that a field names.
//!
//! # Design
//!
//! *Why the stricter of the two?* Whether the backend honours such a field cannot be known. A GET that names PUT may be
//! a write, and a PUT that names GET is one if the backend ignores the field.

use http::{HeaderMap, HeaderName, Method};

use crate::core::{
    policy::{Guard, MethodClass, MethodOverride},
    refusal::{Code, Refusal},
};

/// The fields in which backends look for another method.
pub static METHOD_FIELDS: [HeaderName; 3] = [
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-method-override"),
];

/// Whether a field names a method.
pub(super) fn is_named(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| METHOD_FIELDS.contains(name))
}

/// The method that a request on this route is judged by.
pub(super) fn effective(guard: &Guard, own: &Method, headers: &HeaderMap) -> Result<Method, Refusal> {
    // Methods are case-sensitive (RFC 9110 section 9.1), but not to every backend.
    let has_lower_case = own.as_str().bytes().any(|byte| byte.is_ascii_lowercase());
    let upper = has_lower_case.then(|| Method::from_bytes(own.as_str().to_ascii_uppercase().as_bytes()).ok()).flatten();
    let own = upper.as_ref().filter(|upper| strictness(guard, upper) > strictness(guard, own)).unwrap_or(own);
    if !is_named(headers) {
        return Ok(own.clone());
    }
    if guard.method_override == MethodOverride::Refuse {
        return Err(refused("send the request with the method itself, not in a header field"));
    }
    let named = named(headers)?;
    Ok(if strictness(guard, &named) > strictness(guard, own) { named } else { own.clone() })
}

/// The one method that the fields name. Backends read it in any case.
fn named(headers: &HeaderMap) -> Result<Method, Refusal> {
    let mut values = METHOD_FIELDS.iter().flat_map(|field| headers.get_all(field)).map(|value| {
        let token = value.as_bytes().trim_ascii().to_ascii_uppercase();
        Method::from_bytes(&token).ok()
    });
    let Some(Some(first)) = values.next() else { return Err(refused("name one method, as it is registered")) };
    if values.all(|other| other.as_ref() == Some(&first)) {
        return Ok(first);
    }
    Err(refused("name the same method in every header field that names one"))
}

fn refused(detail: &'static str) -> Refusal {
    Refusal::new(Code::MethodOverride, detail)
}

/// How much is demanded of a method: the class first, then whether it needs a precondition.
fn strictness(guard: &Guard, method: &Method) -> (u8, bool) {
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
