//! Boxed futures that are built in place.

use std::pin::Pin;

/// Builds a future directly in its box. `Box::pin` would build it on the stack and copy all of it. The future of an
/// exchange takes more than ten kibibytes, because it has room for every state, but needs only a few words to begin.
pub(crate) fn box_future<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::into_pin(Box::write(Box::new_uninit(), make()))
}
