//! Waiting with a limit.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use tokio::time::{error::Elapsed, timeout};

/// The output of a future that comes within `limit`. A future that is ready at once costs neither a timer nor a look at
/// the clock.
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Result<T, Elapsed> {
    let mut future = pin!(future);
    match poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => timeout(limit, future).await,
    }
}
