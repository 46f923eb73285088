//! The words of `method_override`.

/// The treatment of a request that names its method in a header field (`method_override`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodOverride {
    /// The request is refused with 400.
    Refuse,
    /// The method named in the field is the one that is judged.
    Judge,
}
