//! Names of paths whose requests name in their body what they change: batches, and calls of procedures.

/// The names, without the sign that some begin with.
const NAMES: [&str; 9] = ["batch", "bulk", "graphql", "jsonrpc", "json-rpc", "rpc", "soap", "xmlrpc", "xml-rpc"];

/// Whether a segment of a path names a batch, as in `$batch`, `_bulk`, `notes:batch` and `xmlrpc.php`.
pub fn is_batch(segment: &str) -> bool {
    let mut parts = segment.split(['.', ':']).map(|part| part.trim_start_matches(['$', '_']));
    parts.any(|part| NAMES.iter().any(|name| part.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use super::is_batch;

    #[test]
    fn batches_are_known_by_their_names() {
        for name in ["batch", "GraphQL", "$batch", "_bulk", "notes:batch", "xmlrpc.php", "json-rpc", "soap"] {
            assert!(is_batch(name), "{name}");
        }
        for name in ["", "batches", "bulkhead", "batch-17", "notes:batches", "rpcs", "$"] {
            assert!(!is_batch(name), "{name}");
        }
    }
}
