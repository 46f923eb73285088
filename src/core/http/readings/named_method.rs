//! The method that a body names, as far as one can be told from it.

use http::Method;

/// What a body says of the method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NamedMethod {
    /// Nothing.
    #[default]
    None,
    /// It names this method.
    One(Method),
    /// It names several, or none that can be read.
    Unclear,
}

impl NamedMethod {
    /// Adds what a body also says. Readers take a method in any letter case.
    pub(super) fn add(&mut self, token: &[u8]) {
        let token = token.trim_ascii().to_ascii_uppercase();
        let named = Method::from_bytes(&token).map_or(Self::Unclear, Self::One);
        self.join(named);
    }

    /// Joins what two readers find in one body.
    pub(super) fn join(&mut self, other: Self) {
        *self = match (std::mem::take(self), other) {
            (own, Self::None) => own,
            (Self::None, other) => other,
            (own, other) if own == other => own,
            _ => Self::Unclear,
        };
    }
}
