//! Futures in boxes.

use std::pin::Pin;

/// A boxed future that waits for the other side of a seam.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Builds a future directly in its box. `Box::pin` would build it on the stack and copy all of it. The future of an
/// exchange takes more than ten kibibytes, because it has room for every state, but needs only a few words to begin.
pub(crate) fn box_future<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::into_pin(Box::write(Box::new_uninit(), make()))
}
