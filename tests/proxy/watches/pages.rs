//! `EventSource` of the real Chromium, from a page of another origin.

use super::setup;
use crate::support::{
    backend::{Answer, Backend, Request},
    chromium::Pages,
};

#[tokio::test]
async fn an_event_source_is_told_of_a_change_that_the_page_makes() {
    let (backend, pages) = (Backend::start().await, Pages::start().await);
    let setup = setup(&backend);
    let origin = pages.origin();
    let granted = move |answer: Answer| {
        answer
            .header("Access-Control-Allow-Origin", &origin)
            .header("Access-Control-Allow-Methods", "GET, PUT")
            .header("Access-Control-Allow-Headers", "If-Match, Content-Type")
            .header("Access-Control-Expose-Headers", "ETag")
    };
    backend.serve(move |request: &Request| {
        granted(match &*request.method {
            "GET" => Answer::status(200).body("one"),
            "PUT" => Answer::status(204).applied(),
            _ => Answer::status(204),
        })
    });
    let proxy = setup.start().await;
    let script = format!(
        "const source = new EventSource('http://{addr}/.watch/doc');
         const next = name => new Promise(found => source.addEventListener(name, event => found(event), {{ once: true }}));
         const state = JSON.parse((await next('state')).data);
         say('state', state.path, state.lease.state);
         const changed = next('changed');
         const answer = await fetch('http://{addr}/doc', {{
             method: 'PUT', headers: {{ 'If-Match': state.etag }}, body: 'two' }});
         say('saved', answer.ok);
         say('changed', JSON.parse((await changed).data).path);
         source.close();",
        addr = proxy.addr()
    );
    assert_eq!(pages.run(&script).await, ["state /doc available", "saved true", "changed /doc"]);
}
