//! The refusal as a page, for a browser that opens an address or sends a form.
//!
//! # Design
//!
//! *Why not by `Accept` alone?* Some programs name `text/html` first without meaning it (Java's `HttpURLConnection`), and
//! read problem documents. Browsers say what they do: by `Sec-Fetch-Mode`, and over plain HTTP by an `Accept` with XHTML.

use std::fmt::Write as _;

use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{ACCEPT, CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS},
};
use quick_xml::escape::escape;

use super::problem;
use crate::{
    core::refusal::{Code, Refusal},
    dialect::{ErrorDocument, Incoming},
};

const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
/// The media type that browsers accept for a page, and nothing else does.
const XHTML: &[u8] = b"application/xhtml+xml";
/// The page runs and loads nothing.
const POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'");
const STYLE: &str = "body{max-width:38em;margin:4em auto;padding:0 1em;font:1.1em/1.5 system-ui,sans-serif;\
                     color-scheme:light dark}small{opacity:.75}";

/// Returns a page for a browser that shows the answer as it is, else the problem document.
pub fn page_or_problem(request: Incoming<'_>, refusal: &Refusal) -> ErrorDocument {
    let document = problem(refusal);
    if !shows_answer(request.headers) {
        return document;
    }
    ErrorDocument {
        content_type: "text/html; charset=utf-8",
        fields: vec![(CONTENT_SECURITY_POLICY, POLICY), (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))],
        body: page(request.method, refusal),
        ..document
    }
}

/// True if a browser shows the answer to a request as a page, and no script reads it.
fn shows_answer(headers: &HeaderMap) -> bool {
    match headers.get(SEC_FETCH_MODE) {
        Some(mode) => mode == "navigate",
        None => headers.get_all(ACCEPT).iter().any(|accept| accept.as_bytes().windows(XHTML.len()).any(|t| t == XHTML)),
    }
}

fn page(method: &Method, refusal: &Refusal) -> String {
    let (title, advice) = for_people(refusal);
    let mut page = format!("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>");
    // Writing to a string cannot fail.
    let _ =
        write!(page, "<meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style><h1>{title}</h1>");
    if let Some(holder) = refusal.shown_holder() {
        let _ = write!(page, "<p>It is in use by {}.</p>", escape(holder));
    }
    let _ = write!(page, "<p>{advice}</p>");
    if !method.is_safe() {
        page.push_str("<p>The back button of the browser shows what you have entered.</p>");
    }
    let _ = write!(page, "<p><small>{}: {}", refusal.code.as_str(), escape(&*refusal.detail));
    if let Some(id) = refusal.request_id {
        let _ = write!(page, " (request {id})");
    }
    page.push_str("</small></p></html>\n");
    page
}

/// Returns a title and an advice for a person who uses a page of the backend, and knows nothing of HTTP.
fn for_people(refusal: &Refusal) -> (&'static str, &'static str) {
    if refusal.in_doubt {
        return (
            "It is not known whether this was saved",
            "The server did not answer. Open the page again after a minute, and look before you send your change once more.",
        );
    }
    match refusal.code {
        Code::PreconditionFailed => (
            "This was changed in the meantime",
            "Another user has saved a new version since you opened the page. Your change was not saved, and theirs is safe. \
             Open the page again, and make your change to what it shows.",
        ),
        Code::PreconditionRequired => (
            "This was not saved",
            "The page does not say which version you have changed, so it could overwrite the work of another user. Tell \
             the owner of this site.",
        ),
        Code::LeaseHeld | Code::LeaseIdMissing | Code::SharingViolation | Code::LeaseIdMismatchOnUse => (
            "This is locked",
            "Only the holder of the edit lock can change this. Your change was not saved. Try again later.",
        ),
        Code::LeaseLost | Code::LeaseNotPresentOnUse => (
            "Your edit lock has ended",
            "Your change was not saved. Open the page again: another user may have changed it since.",
        ),
        Code::WriteInFlight | Code::DeletePending | Code::IdempotencyInFlight => {
            ("Another change is being saved", "Yours was not saved. Try again in a minute.")
        }
        Code::NoRoute => ("There is nothing here", "Check the address."),
        code if code.status().is_server_error() => (
            "The server cannot answer at the moment",
            "Try again in a minute. If it stays so, tell the owner of this site.",
        ),
        _ => ("The server does not accept this request", "Tell the owner of this site."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fields;

    const STALE: &str = "send the <new> tag";

    fn told(method: &Method, lines: &[(&'static str, &'static str)], refusal: &Refusal) -> ErrorDocument {
        let headers = fields(lines);
        page_or_problem(Incoming { method, other_methods: &[], target: b"/notes/1", headers: &headers }, refusal)
    }

    #[test]
    fn only_a_browser_that_shows_the_answer_gets_a_page() {
        const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        for (lines, is_page) in [
            (&[("accept", BROWSER)][..], true),
            (&[("sec-fetch-mode", "navigate"), ("accept", BROWSER)], true),
            (&[("sec-fetch-mode", "navigate")], true),
            // `fetch` in a page, with any `Accept`.
            (&[("sec-fetch-mode", "cors"), ("accept", BROWSER)], false),
            (&[("sec-fetch-mode", "same-origin"), ("accept", "text/html")], false),
            (&[("accept", "*/*")], false),
            (&[("accept", "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2")], false),
            (&[], false),
        ] {
            let document = told(&Method::POST, lines, &Refusal::new(Code::PreconditionFailed, STALE));
            let kind = if is_page { "text/html; charset=utf-8" } else { "application/problem+json" };
            assert_eq!(document.content_type, kind, "{lines:?}");
            assert_eq!((document.status.as_u16(), document.code), (412, "precondition-failed"));
            assert_eq!(document.fields.len(), if is_page { 2 } else { 0 }, "{lines:?}");
        }
    }

    #[test]
    fn nothing_that_others_have_written_is_markup_in_a_page() {
        let refusal = Refusal::new(Code::LeaseHeld, STALE).held_by("<script>alert('\"&')</script>");
        let page = page(&Method::POST, &refusal);
        assert!(page.contains("&lt;script&gt;alert(&apos;&quot;&amp;&apos;)&lt;/script&gt;"), "{page}");
        assert!(page.contains("lease-held: send the &lt;new&gt; tag"), "{page}");
        assert!(!page.contains("<script"), "{page}");
    }

    #[test]
    fn a_page_says_what_became_of_the_change_and_of_its_text() {
        let text_is_kept = "The back button";
        for (refusal, title) in [
            (Refusal::new(Code::PreconditionFailed, STALE), "This was changed in the meantime"),
            (Refusal::new(Code::PreconditionRequired, STALE), "This was not saved"),
            (Refusal::new(Code::LeaseIdMissing, STALE), "This is locked"),
            (Refusal::new(Code::LeaseLost, STALE), "Your edit lock has ended"),
            (Refusal::new(Code::WriteInFlight, STALE), "Another change is being saved"),
            (Refusal::new(Code::NoRoute, STALE), "There is nothing here"),
            (Refusal::new(Code::StoreUnavailable, STALE), "The server cannot answer at the moment"),
            (Refusal::new(Code::UpstreamTimeout, STALE).in_doubt(), "It is not known whether this was saved"),
            (Refusal::new(Code::BodyTooLarge, STALE), "The server does not accept this request"),
        ] {
            let (read, written) = (page(&Method::GET, &refusal), page(&Method::POST, &refusal));
            assert!(written.contains(&format!("<h1>{title}</h1>")), "{written}");
            assert!(written.contains(text_is_kept) && !read.contains(text_is_kept), "{written}");
            assert!(written.contains(&format!("{}: send", refusal.code.as_str())), "{written}");
        }
    }
}
