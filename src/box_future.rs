//! Futures in boxes, made where they stay.

use std::pin::Pin;

/// A future in a box. `Box::pin` makes it on the stack and copies all of it, and the future of an exchange has room for
/// all that may happen on its way: more than ten kibibytes, of which it needs some words to begin.
pub(crate) fn box_future<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::into_pin(Box::write(Box::new_uninit(), make()))
}
