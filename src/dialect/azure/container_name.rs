//! The names that containers can have.

use crate::core::refusal::{Code, Refusal};

/// The containers with a purpose of their own.
const SPECIAL: [&[u8]; 3] = [b"$root", b"$logs", b"$web"];

/// Checks the name of a new container: 3 to 63 lowercase letters, digits and single hyphens, which neither begin nor
/// end it. Azure's documentation of naming containers has these rules.
///
/// # Errors
///
/// Azure would refuse the name.
pub(super) fn check(name: &[u8]) -> Result<(), Refusal> {
    if SPECIAL.contains(&name) {
        return Ok(());
    }
    if !(3..=63).contains(&name.len()) {
        let detail = "The specified resource name length is not within the permissible limits. The name of a container \
                      has 3 to 63 characters.";
        return Err(bad_name("OutOfRangeInput", detail));
    }
    let is_word =
        |word: &[u8]| !word.is_empty() && word.iter().all(|octet| octet.is_ascii_lowercase() || octet.is_ascii_digit());
    if name.split(|&octet| octet == b'-').all(is_word) {
        return Ok(());
    }
    let detail = "The specified resource name contains invalid characters. The name of a container has lowercase letters, \
                  digits and hyphens. Each hyphen stands between a letter or digit and another.";
    Err(bad_name("InvalidResourceName", detail))
}

fn bad_name(code: &'static str, detail: &'static str) -> Refusal {
    Refusal::new(Code::MalformedRequest, detail).called(400, code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_containers_have_azures_form() {
        let longest = "a".repeat(63);
        for name in ["abc", "a-b", "2026-logs-a", "$root", "$web", "$logs", longest.as_str()] {
            assert!(check(name.as_bytes()).is_ok(), "{name}");
        }
        let code = |name: &str| check(name.as_bytes()).unwrap_err().service.unwrap().code;
        let too_long = "a".repeat(64);
        for name in ["", "a", "ab", too_long.as_str()] {
            assert_eq!(code(name), "OutOfRangeInput", "{name}");
        }
        for name in ["A_B", "x--y", "-abc", "abc-", "abc.d", "Abc", "a%62c", "$other"] {
            assert_eq!(code(name), "InvalidResourceName", "{name}");
        }
    }
}
