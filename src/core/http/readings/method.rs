//! The methods that a backend could read in a request (DESIGN, section 4): its own, in any letter case, and those that
//! fields and the query name.
//!
//! # Design
//!
//! *Why is the strictest of them judged?* The proxy cannot know whether the backend honours a field, or the case of a
//! method (RFC 9110 section 9.1). A GET that names PUT may be a write, and a PUT that names GET is one if the backend
//! ignores the field.
//!
//! *Why does a lease need more than that method?* No method is the strictest for every lease: one guards reads, and
//! another only removals. So a lease is judged by the uses of all methods that may be read.

use std::borrow::Cow;

use http::{HeaderMap, Method};

use super::query;
use crate::core::{
    http::fields::METHOD_FIELDS,
    lease::{Usage, Usages},
    policy::{GuardRules, MethodClass, MethodOverride, Require},
    refusal::{Code, Refusal},
};

/// The parameters of a query or form in which frameworks look for a method that a form could not use. The second is
/// Salesforce's, and ASP.NET takes the name of the field.
const PARAMETERS: [&str; 5] =
    ["_method", "_HttpMethod", "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"];

/// The field in which `OData` names the method that a POST stands for, and the methods that it may name.
const WRAPPING_FIELD: &str = "x-http-method";
const WRAPPED_METHODS: [&[u8]; 4] = [b"MERGE", b"PUT", b"PATCH", b"DELETE"];

/// The methods that a backend could read in one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodReadings {
    /// The strictest of them, by which the request is judged.
    pub judged: Method,
    /// All others.
    pub others: Vec<Method>,
    /// The uses that the request makes of its resource, in all its readings together, as leases count them.
    pub usages: Usages,
}

impl MethodReadings {
    /// Returns the methods of a request for this target, on a route with these rules.
    ///
    /// # Errors
    ///
    /// The request names a method beside its own, and the route refuses that, or the names differ.
    pub fn of(guard: &GuardRules, own: &Method, headers: &HeaderMap, target: &[u8]) -> Result<Self, Refusal> {
        let named = if !is_named(headers, target) {
            None
        } else if guard.method_override == MethodOverride::Refuse && !is_wrapped(guard, own, headers, target) {
            return Err(refused(
                "send the request with the method itself; do not name it in a header field or in _method",
            ));
        } else {
            Some(named(headers, target)?)
        };
        Ok(Self::strictest_first(guard, own, named))
    }

    /// True if a backend could read one of these methods.
    pub fn may_be(&self, methods: &[Method]) -> bool {
        self.others.iter().chain([&self.judged]).any(|method| methods.contains(method))
    }

    /// Returns the same methods and those of another look at the same request.
    #[must_use]
    pub fn joined(mut self, other: &Self) -> Self {
        for method in other.others.iter().chain([&other.judged]) {
            if *method != self.judged && !self.others.contains(method) {
                self.others.push(method.clone());
            }
        }
        self.usages = self.usages.joined(other.usages);
        self
    }

    /// Returns these methods and another one, which the body names.
    #[must_use]
    pub fn naming(&self, guard: &GuardRules, named: Method) -> Self {
        Self::strictest_first(guard, &self.judged, self.others.iter().cloned().chain([named]))
    }

    /// True if all readings are one method, apart from its letter case.
    pub fn are_alike(&self) -> bool {
        self.others.iter().all(|other| other.as_str().eq_ignore_ascii_case(self.judged.as_str()))
    }

    fn strictest_first(guard: &GuardRules, own: &Method, named: impl IntoIterator<Item = Method>) -> Self {
        let mut judged = own.clone();
        let mut others = Vec::new();
        for method in of_any_case(guard, own).chain(named) {
            if method == judged || others.contains(&method) {
                continue;
            }
            others.push(if strictness(guard, &method) > strictness(guard, &judged) {
                std::mem::replace(&mut judged, method)
            } else {
                method
            });
        }
        let usages = others.iter().chain([&judged]).filter_map(|method| usage(guard, method)).collect();
        Self { judged, others, usages }
    }
}

/// True if a field, or the query of a target, names a method.
pub fn is_named(headers: &HeaderMap, target: &[u8]) -> bool {
    headers.keys().any(|name| METHOD_FIELDS.contains(name)) || in_query(target).next().is_some()
}

/// True if a parameter of a query names a method.
pub fn is_parameter(parameter: &[u8]) -> bool {
    query::is_one_of(parameter, &PARAMETERS)
}

/// True if the dialect of the route reads the request as a POST that wraps another write, and nothing else names a
/// method.
fn is_wrapped(guard: &GuardRules, own: &Method, headers: &HeaderMap, target: &[u8]) -> bool {
    let mut named = METHOD_FIELDS.iter().flat_map(|field| headers.get_all(field));
    let has_no_other = in_query(target).next().is_none() && named.nth(1).is_none();
    let wrapped = headers.get(WRAPPING_FIELD).is_some_and(|method| WRAPPED_METHODS.contains(&method.as_bytes()));
    guard.quirks.wraps_methods && *own == Method::POST && wrapped && has_no_other
}

/// Returns the other methods that a reader without regard to case takes this one for: the one in capitals, and those
/// that the route knows.
fn of_any_case(guard: &GuardRules, own: &Method) -> impl Iterator<Item = Method> {
    let has_lower_case = own.as_str().bytes().any(|octet| octet.is_ascii_lowercase());
    let upper = has_lower_case.then(|| Method::from_bytes(own.as_str().to_ascii_uppercase().as_bytes()).ok()).flatten();
    let known = [&guard.require_methods, &guard.safe_methods, &guard.append_methods].into_iter().flatten();
    let alike = known.filter(|known| known.as_str().eq_ignore_ascii_case(own.as_str())).cloned();
    upper.into_iter().chain(alike)
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

fn in_query(target: &[u8]) -> impl Iterator<Item = Cow<'_, [u8]>> {
    PARAMETERS.into_iter().flat_map(|meant| query::values(target, meant))
}

fn refused(detail: &'static str) -> Refusal {
    Refusal::new(Code::MethodOverride, detail)
}

/// How much is demanded of a method. An append that needs a precondition is judged like any other write.
fn strictness(guard: &GuardRules, method: &Method) -> u8 {
    let is_required = guard.demand(method) != Require::Never;
    match guard.class_of(method) {
        MethodClass::Unjudged => 0,
        MethodClass::Read => 1,
        MethodClass::Write | MethodClass::UnclaimedWrite if is_required => 4,
        MethodClass::UnclaimedWrite => 2,
        MethodClass::Write => 3,
        MethodClass::TwoResources => 5,
        MethodClass::NotAllowed => 6,
    }
}

/// Returns the use that a method makes of its resource, as leases count it. A MOVE removes the resource, and a COPY
/// reads it.
fn usage(guard: &GuardRules, method: &Method) -> Option<Usage> {
    match guard.class_of(method) {
        MethodClass::Unjudged => None,
        MethodClass::Read => Some(Usage::Read),
        MethodClass::TwoResources if method.as_str() == "COPY" => Some(Usage::Read),
        MethodClass::TwoResources => Some(Usage::Delete),
        _ if *method == Method::DELETE => Some(Usage::Delete),
        _ => Some(Usage::Write),
    }
}

#[cfg(test)]
#[path = "method_tests.rs"]
mod tests;
