//! The secret that requests must carry if the configuration names one.

use std::{env, fs, io, path::PathBuf};

use http::{HeaderMap, header};
use subtle::ConstantTimeEq as _;

use crate::config::Admin;

/// The shortest token, in characters: a shorter one would be worth guessing.
const LENGTH_MIN: usize = 16;

/// A token; only its hash is kept.
pub struct Token(blake3::Hash);

/// The reason why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum NoToken {
    /// The file cannot be read.
    #[error("the token of the admin listener cannot be read from {}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        error: io::Error,
    },
    /// The variable is not set.
    #[error("the token of the admin listener belongs in the environment variable {0}, which is not set")]
    NotSet(String),
    /// The token is too short, or cannot stand in a header field.
    #[error("the token of the admin listener has fewer than {LENGTH_MIN} characters, or is not visible ASCII")]
    Unfit,
}

impl Token {
    /// Reads the token from the place that the configuration names, if it names one.
    pub fn read(admin: &Admin) -> Result<Option<Self>, NoToken> {
        let text = match (&admin.token_file, &admin.token_env) {
            (Some(path), _) => fs::read_to_string(path).map_err(|error| NoToken::File { path: path.clone(), error })?,
            (None, Some(name)) => env::var(name).map_err(|_error| NoToken::NotSet(name.clone()))?,
            (None, None) => return Ok(None),
        };
        Self::of(text.trim_end_matches(['\r', '\n'])).map(Some)
    }

    fn of(text: &str) -> Result<Self, NoToken> {
        let is_fit = text.len() >= LENGTH_MIN && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_fit.then(|| Self(blake3::hash(text.as_bytes()))).ok_or(NoToken::Unfit)
    }

    /// True if a request carries the token (RFC 6750 section 2.1). The time this takes reveals nothing about the token:
    /// the function compares hashes, in constant time.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let mut fields = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(field), None) = (fields.next(), fields.next()) else { return false };
        let Some((scheme, token)) = field.as_bytes().split_at_checked("bearer ".len()) else { return false };
        scheme.eq_ignore_ascii_case(b"bearer ")
            && bool::from(blake3::hash(token.trim_ascii()).as_bytes().ct_eq(self.0.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const SECRET: &str = "0123456789abcdef";

    fn accepts(fields: &[&'static str]) -> bool {
        let field = |value: &&'static str| (header::AUTHORIZATION, HeaderValue::from_static(value));
        Token::of(SECRET).expect("it is long enough").is_in(&fields.iter().map(field).collect())
    }

    #[test]
    fn a_request_must_carry_the_token_and_nothing_else() {
        assert!(accepts(&["Bearer 0123456789abcdef"]));
        assert!(accepts(&["bearer  0123456789abcdef"]));
        for fields in [
            &[][..],
            &["0123456789abcdef"],
            &["Basic 0123456789abcdef"],
            &["Bearer"],
            &["Bearer 0123456789abcde"],
            &["Bearer 0123456789abcdeF"],
            &["Bearer 0123456789abcdef0"],
            &["Bearer 0123456789abcdef", "Bearer 0123456789abcdef"],
        ] {
            assert!(!accepts(fields), "{fields:?}");
        }
    }

    #[test]
    fn a_token_that_could_be_guessed_or_sent_is_none() {
        for text in ["", "0123456789abcde", "0123456789 abcdef", "0123456789abcdeü"] {
            assert!(matches!(Token::of(text), Err(NoToken::Unfit)), "{text:?}");
        }
    }
}
