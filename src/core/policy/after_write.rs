//! The words of `on_write` and `etag_after_write`.

/// How the new tag is learned after an applied write when its response carries none (`on_write`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnWrite {
    /// The proxy reads the resource again before it releases the claim.
    Probe,
    /// The tag is not learned.
    Omit,
}

/// When the answer to a write carries a derived tag (`etag_after_write`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagAfterWrite {
    /// Only if the bytes read back are the bytes sent (RFC 9110 section 9.3.4).
    Verbatim,
    /// Always.
    Always,
}
