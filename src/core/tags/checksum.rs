//! Checksums that clients send beside a body, or ask for.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use crc::{CRC_64_NVME, Crc, Digest};
use md5::{Digest as _, Md5};
use sha2::Sha256;

static CRC_64: Crc<u64> = Crc::<u64>::new(&CRC_64_NVME);

/// The checksum that a body should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// MD5 (RFC 1321).
    Md5([u8; 16]),
    /// CRC-64/NVME, which Azure Storage calls CRC64.
    Crc64(u64),
    /// SHA-256 (FIPS 180-4).
    Sha256([u8; 32]),
}

/// A kind of checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumKind {
    /// MD5 (RFC 1321).
    Md5,
    /// CRC-64/NVME.
    Crc64,
    /// SHA-256.
    Sha256,
}

impl ChecksumKind {
    /// Begins a checksum of this kind.
    pub fn begin(self) -> RunningChecksum {
        match self {
            Self::Md5 => RunningChecksum::Md5(Md5::new()),
            Self::Crc64 => RunningChecksum::Crc64(CRC_64.digest()),
            Self::Sha256 => RunningChecksum::Sha256(Sha256::new()),
        }
    }
}

/// The checksum of the part of a body that has been read.
pub enum RunningChecksum {
    /// MD5.
    Md5(Md5),
    /// CRC-64/NVME.
    Crc64(Digest<'static, u64>),
    /// SHA-256.
    Sha256(Sha256),
}

impl Checksum {
    /// Begins a checksum of the same kind.
    pub fn begin(self) -> RunningChecksum {
        match self {
            Self::Md5(_) => ChecksumKind::Md5,
            Self::Crc64(_) => ChecksumKind::Crc64,
            Self::Sha256(_) => ChecksumKind::Sha256,
        }
        .begin()
    }

    /// Returns its bytes in Base64, as fields have them: those of a CRC begin with the lowest.
    pub fn to_base64(self) -> String {
        match self {
            Self::Md5(bytes) => BASE64_STANDARD.encode(bytes),
            Self::Crc64(number) => BASE64_STANDARD.encode(number.to_le_bytes()),
            Self::Sha256(bytes) => BASE64_STANDARD.encode(bytes),
        }
    }
}

impl RunningChecksum {
    /// Adds the next part of the body.
    pub fn add(&mut self, part: &[u8]) {
        match self {
            Self::Md5(running) => running.update(part),
            Self::Crc64(running) => running.update(part),
            Self::Sha256(running) => running.update(part),
        }
    }

    /// Returns the checksum of all parts.
    pub fn end(self) -> Checksum {
        match self {
            Self::Md5(running) => Checksum::Md5(running.finalize().into()),
            Self::Crc64(running) => Checksum::Crc64(running.finalize()),
            Self::Sha256(running) => Checksum::Sha256(running.finalize().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(parts: &[&[u8]], like: Checksum) -> Checksum {
        let mut running = like.begin();
        for part in parts {
            running.add(part);
        }
        running.end()
    }

    /// The vectors of RFC 1321, appendix A.5, of the catalogue of CRC algorithms, and of FIPS 180-2, appendix B.1.
    #[test]
    fn checksums_are_those_of_their_definitions() {
        let (md5, crc64) = (Checksum::Md5([0; 16]), Checksum::Crc64(0));
        let empty = 0xd41d_8cd9_8f00_b204_e980_0998_ecf8_427e_u128;
        let abc = 0x9001_5098_3cd2_4fb0_d696_3f7d_28e1_7f72_u128;
        assert_eq!(of(&[], md5), Checksum::Md5(empty.to_be_bytes()));
        assert_eq!(of(&[b"a", b"bc"], md5), Checksum::Md5(abc.to_be_bytes()));
        assert_eq!(of(&[], crc64), Checksum::Crc64(0));
        assert_eq!(of(&[b"1234", b"56789"], crc64), Checksum::Crc64(0xae8b_1486_0a79_9888));
        let sha256 = of(&[b"a", b"bc"], Checksum::Sha256([0; 32]));
        assert_eq!(sha256.to_base64(), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
        assert_eq!(of(&[b"abc"], md5).to_base64(), "kAFQmDzST7DWlj99KOF/cg==");
        assert_eq!(Checksum::Crc64(1).to_base64(), "AQAAAAAAAAA=");
    }
}
