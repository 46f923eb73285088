//! Findings about the removal of collections, from the answer to OPTIONS (`collections`).

use super::{finding::Finding, received::ReceivedAnswer};
use crate::core::http::readings::collection::{denies_webdav, speaks_webdav};

/// Judges whether ifmatch can find out what a DELETE would remove.
pub(super) fn judge(options: &ReceivedAnswer) -> Finding {
    const CHECK: &str = "collections";
    let status = options.status.as_u16();
    if speaks_webdav(&options.fields) {
        let sentence = "OPTIONS reports WebDAV: before a DELETE, ifmatch asks whether it would remove a collection.";
        return Finding::ok(CHECK, sentence);
    }
    if denies_webdav(options.status, &options.fields) {
        return Finding::ok(CHECK, format!("OPTIONS is answered {status}, and reports no WebDAV."));
    }
    Finding::note(
        CHECK,
        format!("OPTIONS is answered {status}, which does not tell whether a DELETE could remove a collection."),
        "If the route has guarded resources below its own, ifmatch asks this before each DELETE. An error of the server \
         then refuses the DELETE. Set collections = \"none\" if a DELETE removes its target alone, or \
         \"webdav\" if the backend speaks WebDAV.",
    )
}

#[cfg(test)]
mod tests {
    use super::{
        super::{finding::Severity, received::received},
        *,
    };

    #[test]
    fn what_options_tells_is_enough_or_a_key_is_named() {
        for (status, fields, severity, words) in [
            (200, &[("DAV", "1, 2")][..], Severity::Ok, "reports WebDAV"),
            (204, &[("Allow", "GET, PROPFIND")], Severity::Ok, "reports WebDAV"),
            (204, &[("Allow", "GET, PUT")], Severity::Ok, "no WebDAV"),
            (405, &[], Severity::Ok, "no WebDAV"),
            (501, &[], Severity::Ok, "no WebDAV"),
            (404, &[], Severity::Note, "does not tell"),
            (500, &[], Severity::Note, "does not tell"),
        ] {
            let found = judge(&received(status, fields, ""));
            assert_eq!(found.severity, severity, "{status} {fields:?}");
            assert!(found.sentence.contains(words), "{found:?}");
            assert!(found.remedy.is_none_or(|remedy| remedy.contains("collections = \"none\"")));
        }
    }
}
