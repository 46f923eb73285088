//! The checksums of an upload and of a part: the fields that name them, and the refusal of a body that differs from them.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::{
    BLOB_MD5, CONTENT_CRC64, RANGE, RANGE_CRC64, RANGE_MD5,
    fields::single,
    refusals::{bad_field, invalid},
};
use crate::{
    core::{
        refusal::{Code, Refusal},
        tags::checksum::{Checksum, ChecksumKind},
    },
    dialect::PartChecksum,
};

/// The largest part with a checksum, in bytes.
const PART_MAX_BYTES: usize = 4 * 1024 * 1024;

const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");

/// Returns the checksums that a body should have.
///
/// # Errors
///
/// A value is no checksum, or MD5 and CRC64 come together.
pub(super) fn of_body(headers: &HeaderMap) -> Result<Vec<Checksum>, Refusal> {
    let mut checksums: Vec<_> = md5(headers, &CONTENT_MD5)?.into_iter().collect();
    if let Some(value) = single(headers, &CONTENT_CRC64)? {
        let bytes = octets(value.as_bytes()).ok_or_else(|| bad_field(CONTENT_CRC64.as_str(), "64 bits in Base64"))?;
        if headers.contains_key(&CONTENT_MD5) {
            let detail = "A body has one checksum: x-ms-content-crc64 or Content-MD5.";
            return Err(invalid("BothCrc64AndMd5HeaderPresent", detail));
        }
        checksums.push(Checksum::Crc64(u64::from_le_bytes(bytes)));
    }
    Ok(checksums)
}

/// Returns the checksum that a blob should have.
///
/// # Errors
///
/// The value is no checksum.
pub(super) fn of_blob(headers: &HeaderMap) -> Result<Vec<Checksum>, Refusal> {
    Ok(md5(headers, &BLOB_MD5)?.into_iter().collect())
}

/// Returns the checksum that a read wants with a part of a blob.
///
/// # Errors
///
/// The read wants no part, or two checksums.
pub(super) fn of_part(headers: &HeaderMap) -> Result<Option<PartChecksum>, Refusal> {
    let (kind, field) = match (is_true(headers, &RANGE_MD5)?, is_true(headers, &RANGE_CRC64)?) {
        (false, false) => return Ok(None),
        (true, true) => return Err(bad_field(RANGE_CRC64.as_str(), "used beside the MD5, but instead of it")),
        (true, false) => (ChecksumKind::Md5, CONTENT_MD5),
        (false, true) => (ChecksumKind::Crc64, CONTENT_CRC64),
    };
    if !headers.contains_key(RANGE) && !headers.contains_key(header::RANGE) {
        return Err(bad_field(RANGE_MD5.as_str(), "used without a range"));
    }
    let too_large = || bad_field(RANGE.as_str(), "a range of at most 4 MiB, which the checksum of a range needs");
    Ok(Some(PartChecksum { kind, field, max_bytes: PART_MAX_BYTES, too_large }))
}

fn is_true(headers: &HeaderMap, name: &HeaderName) -> Result<bool, Refusal> {
    match single(headers, name)?.map(HeaderValue::as_bytes) {
        None => Ok(false),
        Some(value) if value.eq_ignore_ascii_case(b"true") => Ok(true),
        Some(value) if value.eq_ignore_ascii_case(b"false") => Ok(false),
        Some(_) => Err(bad_field(name.as_str(), "true or false")),
    }
}

/// Returns the MD5 in a field.
///
/// # Errors
///
/// The value is no MD5.
pub(super) fn md5(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Checksum>, Refusal> {
    let Some(value) = single(headers, name)? else { return Ok(None) };
    let bytes = octets(value.as_bytes()).ok_or_else(|| {
        let detail = format!("The value of {name} is not an MD5 hash of 128 bits in Base64.");
        Refusal::new(Code::MalformedRequest, detail).called(400, "InvalidMd5")
    })?;
    Ok(Some(Checksum::Md5(bytes)))
}

fn octets<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    BASE64_STANDARD.decode(text).ok()?.try_into().ok()
}

/// Refuses a body that does not have this checksum.
pub(super) fn mismatch(checksum: Checksum) -> Refusal {
    let (name, code) = match checksum {
        Checksum::Md5(_) => ("MD5", "Md5Mismatch"),
        Checksum::Crc64(_) => ("CRC64", "Crc64Mismatch"),
        Checksum::Sha256(_) => ("SHA-256", "InvalidHeaderValue"),
    };
    let detail = format!("The body that arrived has another {name} than the request says; nothing was written.");
    Refusal::new(Code::MalformedRequest, detail).called(400, code)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC_MD5: &str = "kAFQmDzST7DWlj99KOF/cg==";

    fn of(fields: &[(&'static str, &str)]) -> Result<Vec<Checksum>, &'static str> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_str(value).expect("a value"));
        }
        let all = of_body(&headers).and_then(|body| Ok([body, of_blob(&headers)?].concat()));
        all.map_err(|refusal| refusal.service.expect("Azure has a name for it").code)
    }

    #[test]
    fn each_field_is_a_checksum() {
        let md5 = Checksum::Md5(0x9001_5098_3cd2_4fb0_d696_3f7d_28e1_7f72_u128.to_be_bytes());
        assert_eq!(of(&[]), Ok(vec![]));
        assert_eq!(of(&[("content-md5", ABC_MD5)]), Ok(vec![md5]));
        assert_eq!(of(&[("content-md5", ABC_MD5), ("x-ms-blob-content-md5", ABC_MD5)]), Ok(vec![md5, md5]));
        assert_eq!(of(&[("x-ms-content-crc64", "AQAAAAAAAAA=")]), Ok(vec![Checksum::Crc64(1)]));
    }

    #[test]
    fn a_read_of_a_part_may_want_one_checksum() {
        let wanted = |fields: &[(&'static str, &'static str)]| {
            let field = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            let wanted = of_part(&fields.iter().map(field).collect());
            let wanted = wanted.map_err(|refusal| refusal.service.expect("Azure has a name for it").code);
            wanted.map(|wanted| wanted.map(|wanted| (wanted.kind, wanted.field.to_string())))
        };
        let (md5, crc64) = (("x-ms-range-get-content-md5", "true"), ("x-ms-range-get-content-crc64", "True"));
        let (range, own_range) = (("range", "bytes=0-1"), ("x-ms-range", "bytes=0-1"));
        assert_eq!(wanted(&[md5, range]), Ok(Some((ChecksumKind::Md5, "content-md5".to_owned()))));
        assert_eq!(wanted(&[crc64, own_range]), Ok(Some((ChecksumKind::Crc64, "x-ms-content-crc64".to_owned()))));
        assert_eq!(wanted(&[("x-ms-range-get-content-md5", "false")]), Ok(None));
        for fields in [&[md5][..], &[md5, crc64, range], &[("x-ms-range-get-content-md5", "yes"), range]] {
            assert_eq!(wanted(fields), Err("InvalidHeaderValue"), "{fields:?}");
        }
    }

    #[test]
    fn what_is_no_checksum_is_refused() {
        for value in ["", "x", "AQAAAAAAAAA=", "kAFQmDzST7DWlj99KOF/cg"] {
            assert_eq!(of(&[("content-md5", value)]), Err("InvalidMd5"), "{value}");
            assert_eq!(of(&[("x-ms-blob-content-md5", value)]), Err("InvalidMd5"), "{value}");
        }
        assert_eq!(of(&[("x-ms-content-crc64", ABC_MD5)]), Err("InvalidHeaderValue"));
        assert_eq!(of(&[("content-md5", ABC_MD5), ("content-md5", ABC_MD5)]), Err("InvalidHeaderValue"));
        let both = [("content-md5", ABC_MD5), ("x-ms-content-crc64", "AQAAAAAAAAA=")];
        assert_eq!(of(&both), Err("BothCrc64AndMd5HeaderPresent"));
    }
}
