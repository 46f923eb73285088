//! Waiting with a time limit.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use tokio::time::{error::Elapsed, timeout};

/// Returns the output of a future if it is ready within `limit`. A future that is ready at once costs neither a timer
/// nor a clock reading.
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Result<T, Elapsed> {
    let mut future = pin!(future);
    match poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => timeout(limit, future).await,
    }
}
