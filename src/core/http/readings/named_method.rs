//! The method that a body names, as well as the proxy can tell.

use http::Method;

/// The method that a body names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NamedMethod {
    /// The body names no method.
    #[default]
    None,
    /// The body names this method.
    One(Method),
    /// The body names several methods, or none that can be read.
    Unclear,
}

impl NamedMethod {
    /// Adds another name in the body. Readers take a method in any letter case.
    pub(super) fn add(&mut self, token: &[u8]) {
        let token = token.trim_ascii().to_ascii_uppercase();
        let named = Method::from_bytes(&token).map_or(Self::Unclear, Self::One);
        self.join(named);
    }

    /// Joins the findings of two readers of one body.
    pub(super) fn join(&mut self, other: Self) {
        *self = match (std::mem::take(self), other) {
            (own, Self::None) => own,
            (Self::None, other) => other,
            (own, other) if own == other => own,
            _ => Self::Unclear,
        };
    }
}
