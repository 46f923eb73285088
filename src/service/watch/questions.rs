//! The questions to the backend about the resources that one request watches.
//!
//! # Design
//!
//! *Why is each question a task?* A client that reads slowly stops its stream. A question that stopped with it would hold a
//! connection to a server, and the other clients that wait for the same answer.

use std::{
    collections::VecDeque,
    future::poll_fn,
    panic::resume_unwind,
    task::{Context, Poll},
};

use tokio::task::JoinSet;

use crate::box_future::BoxFuture;

/// How many questions of one request are asked at once.
pub(super) const ASKED_AT_ONCE: usize = 8;

/// Questions with answers of this type. They end when this is dropped.
///
/// `None` if nothing is asked, as at most times: then it takes no memory.
pub(super) struct Questions<T>(Option<Box<OpenQuestions<T>>>);

struct OpenQuestions<T> {
    waiting: VecDeque<BoxFuture<'static, T>>,
    asked: JoinSet<T>,
}

impl<T: Send + 'static> Questions<T> {
    /// No questions.
    pub(super) const fn none() -> Self {
        Self(None)
    }

    /// Asks a question when the earlier ones leave room.
    pub(super) fn ask(&mut self, question: BoxFuture<'static, T>) {
        let none = || Box::new(OpenQuestions { waiting: VecDeque::new(), asked: JoinSet::new() });
        let open = self.0.get_or_insert_with(none);
        open.waiting.push_back(question);
        open.begin();
    }

    /// Waits for the next answer. May be dropped and called again.
    pub(super) fn answered(&mut self) -> impl Future<Output = T> {
        poll_fn(|context| self.poll_answered(context))
    }

    fn poll_answered(&mut self, context: &mut Context<'_>) -> Poll<T> {
        let Some(open) = &mut self.0 else { return Poll::Pending };
        match open.asked.poll_join_next(context) {
            Poll::Ready(Some(Ok(answer))) => {
                open.begin();
                if open.asked.is_empty() {
                    self.0 = None;
                }
                Poll::Ready(answer)
            }
            Poll::Ready(Some(Err(error))) if error.is_panic() => resume_unwind(error.into_panic()),
            // The process is about to end.
            Poll::Ready(Some(Err(_)) | None) | Poll::Pending => Poll::Pending,
        }
    }
}

impl<T: Send + 'static> OpenQuestions<T> {
    fn begin(&mut self) {
        while self.asked.len() < ASKED_AT_ONCE
            && let Some(question) = self.waiting.pop_front()
        {
            self.asked.spawn(question);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    /// Rule 13: one request does not ask a backend for a hundred resources at once.
    #[tokio::test]
    async fn few_questions_are_asked_at_once() {
        let mut questions = Questions::none();
        let (begun, mut begins) = unbounded_channel();
        let mut ends = Vec::new();
        let mut question = |number: usize| {
            let (end, ended) = tokio::sync::oneshot::channel::<()>();
            ends.push(Some(end));
            let begun = begun.clone();
            let question: BoxFuture<'static, usize> = Box::pin(async move {
                begun.send(number).expect("the test listens");
                let _ = ended.await;
                number
            });
            question
        };
        for number in 0..ASKED_AT_ONCE + 2 {
            questions.ask(question(number));
        }
        for number in 0..ASKED_AT_ONCE {
            assert_eq!(begins.recv().await, Some(number));
        }
        tokio::task::yield_now().await;
        assert!(begins.try_recv().is_err(), "there is no room");
        ends[3] = None;
        assert_eq!((questions.answered().await, begins.recv().await), (3, Some(ASKED_AT_ONCE)));
        ends[0] = None;
        assert_eq!((questions.answered().await, begins.recv().await), (0, Some(ASKED_AT_ONCE + 1)));
    }
}
