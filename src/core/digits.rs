//! Numbers as digits, without the formatter: it takes as long as all the rest of a tag or of a log line. And digits as
//! numbers, without the signs that the parser of the standard library takes.

/// Adds the bytes, each as two hexadecimal digits in lower case.
pub fn push_hexadecimal(text: &mut Vec<u8>, bytes: &[u8]) {
    let start = text.len();
    text.resize(start + 2 * bytes.len(), 0);
    let (places, _) = text.get_mut(start..).unwrap_or_default().as_chunks_mut();
    for (place, byte) in places.iter_mut().zip(bytes) {
        *place = [byte >> 4, byte & 15].map(hexadecimal_digit);
    }
}

/// Returns the bytes as hexadecimal digits in lower case.
pub fn hexadecimal_text(bytes: &[u8]) -> String {
    let mut text = Vec::with_capacity(2 * bytes.len());
    push_hexadecimal(&mut text, bytes);
    // Digits are always text.
    String::from_utf8(text).unwrap_or_default()
}

/// Adds a number of any integer type.
pub fn push_decimal(text: &mut Vec<u8>, number: impl itoa::Integer) {
    text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Adds a number of at most three digits.
pub fn push_octet(text: &mut Vec<u8>, number: u8) {
    if number >= 100 {
        text.push(b'0' + number / 100);
    }
    if number >= 10 {
        text.push(b'0' + number / 10 % 10);
    }
    text.push(b'0' + number % 10);
}

/// Adds the last `DIGITS` digits of a number, with zeros in front of a shorter one.
pub fn push_padded<const DIGITS: usize>(text: &mut Vec<u8>, number: u64) {
    let (mut digits, mut left) = ([0; DIGITS], number);
    for digit in digits.iter_mut().rev() {
        *digit = last_digit(left);
        left /= 10;
    }
    text.extend_from_slice(&digits);
}

/// Returns the number that decimal digits are. `None` if there is another octet, no octet, or too large a number.
pub fn decimal_number(digits: &[u8]) -> Option<u64> {
    let digit = |octet: &u8| octet.is_ascii_digit().then(|| u64::from(octet - b'0'));
    let read = |number: u64, octet| number.checked_mul(10)?.checked_add(digit(octet)?);
    digits.iter().try_fold(0, read).filter(|_| !digits.is_empty())
}

const fn last_digit(number: u64) -> u8 {
    let [.., digit] = (number % 10).to_be_bytes();
    b'0' + digit
}

fn hexadecimal_digit(digit: u8) -> u8 {
    b"0123456789abcdef".get(usize::from(digit)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut text = b"=".to_vec();
        push(&mut text);
        String::from_utf8(text).expect("digits are text")
    }

    #[test]
    fn numbers_are_as_the_formatter_writes_them() {
        for number in [0, 7, 9, 10, 99, 100, 123_456, u64::MAX] {
            assert_eq!(text(|text| push_decimal(text, number)), format!("={number}"));
            assert_eq!(text(|text| push_padded::<20>(text, number)), format!("={number:020}"));
            assert_eq!(text(|text| push_hexadecimal(text, &number.to_be_bytes())), format!("={number:016x}"));
            assert_eq!(hexadecimal_text(&number.to_be_bytes()), format!("{number:016x}"));
        }
        for octet in 0..=u8::MAX {
            assert_eq!(text(|text| push_octet(text, octet)), format!("={octet}"));
        }
        assert_eq!(text(|text| push_padded::<3>(text, 12_345)), "=345");
    }
    #[test]
    fn a_number_has_digits_alone() {
        for (digits, expected) in [
            ("0", Some(0)),
            ("007", Some(7)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("", None),
            ("+4", None),
            ("-4", None),
            ("4 ", None),
            ("0x4", None),
            ("\u{664}", None),
        ] {
            assert_eq!(decimal_number(digits.as_bytes()), expected, "{digits:?}");
        }
    }
}
