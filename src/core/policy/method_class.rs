//! The effect of a method on a resource.

use http::Method;

use super::GuardRules;

/// How a request acts on a resource (DESIGN, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodClass {
    /// The method changes nothing.
    Read,
    /// The method replaces, changes or removes the resource.
    Write,
    /// The method appends, and runs beside other writes.
    UnclaimedWrite,
    /// The method is forwarded unjudged (OPTIONS).
    Unjudged,
    /// The method is refused with 405 (TRACE, CONNECT).
    NotAllowed,
    /// The method changes a second resource, which `Destination` names (COPY, MOVE).
    TwoResources,
}

impl GuardRules {
    /// The class of a method on this route.
    pub fn class_of(&self, method: &Method) -> MethodClass {
        match method.as_str() {
            "GET" | "HEAD" => MethodClass::Read,
            "OPTIONS" => MethodClass::Unjudged,
            "TRACE" | "CONNECT" => MethodClass::NotAllowed,
            "COPY" | "MOVE" => MethodClass::TwoResources,
            "PROPFIND" | "REPORT" if self.quirks.has_locks => MethodClass::Read,
            _ if self.safe_methods.contains(method) => MethodClass::Read,
            _ if self.append_methods.contains(method) => MethodClass::UnclaimedWrite,
            _ => MethodClass::Write,
        }
    }
}
