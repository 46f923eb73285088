//! The second reading of an encoded slash: many servers decode `%2F` before they look for segments (DESIGN, section 3,
//! rule 18).

/// True if a path as received holds an encoded slash.
pub fn holds_encoded_slash(raw_path: &[u8]) -> bool {
    raw_path.split(|&octet| octet == b'%').skip(1).any(is_slash)
}

/// The path as a server reads it that decodes slashes first. Nothing else is decoded.
pub fn decode_slashes(raw_path: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(raw_path.len());
    let mut pieces = raw_path.split(|&octet| octet == b'%');
    decoded.extend_from_slice(pieces.next().unwrap_or_default());
    for piece in pieces {
        match piece.split_at_checked(2) {
            Some((_, rest)) if is_slash(piece) => {
                decoded.push(b'/');
                decoded.extend_from_slice(rest);
            }
            _ => {
                decoded.push(b'%');
                decoded.extend_from_slice(piece);
            }
        }
    }
    decoded
}

/// True if what follows a percent sign makes it an encoded slash.
fn is_slash(following: &[u8]) -> bool {
    matches!(following, [b'2', b'F' | b'f', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slashes_are_decoded() {
        for (path, decoded) in [
            ("/a%2Fb%2fc", "/a/b/c"),
            ("/%2F", "//"),
            ("/a%252Fb", "/a%252Fb"),
            ("/a%2", "/a%2"),
            ("/a%20b%61%", "/a%20b%61%"),
            ("/..%2F%2e%2e", "/../%2e%2e"),
        ] {
            assert_eq!(decode_slashes(path.as_bytes()), decoded.as_bytes(), "{path}");
            assert_eq!(holds_encoded_slash(path.as_bytes()), path != decoded, "{path}");
        }
    }
}
