//! docs/tutorial/guard-an-api.md.

use crate::lesson::Lesson;

#[tokio::test]
async fn the_tutorial_of_an_api_does_what_it_says() {
    Lesson::of("docs/tutorial/guard-an-api.md").await;
}
