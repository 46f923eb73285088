//! The end of a generation of the configuration, or of the process, for answers that would last.

use std::sync::Arc;

use crate::change_count::ChangeCount;

/// An end that comes once. A clone reports the same end.
#[derive(Clone, Debug)]
pub struct GenerationEnd(Arc<ChangeCount>);

impl Default for GenerationEnd {
    fn default() -> Self {
        Self(Arc::new(ChangeCount::from(0)))
    }
}

impl GenerationEnd {
    /// Makes it come.
    pub fn come(&self) {
        self.0.grow();
    }

    /// Waits until it comes, or has come.
    pub async fn wait(&self) {
        self.0.other_than(0).await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn waiting_and_later_tasks_learn_of_the_end() {
        let end = GenerationEnd::default();
        let other = end.clone();
        let waiting = other.wait();
        tokio::pin!(waiting);
        assert!(waiting.as_mut().now_or_never().is_none());
        end.come();
        waiting.await;
        other.wait().await;
    }
}
