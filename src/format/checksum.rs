//! The metadata checksum: CRC32c of the whole structure with the CRC field taken as zero, stored little-endian
//! (`xfs_start_cksum_safe`, `xfs_end_cksum`).

use super::bits::array;

/// What a structure's checksum says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrcState {
    /// The structure or the file system has no checksums (V4).
    Unchecked,
    /// Stored and computed agree.
    Correct,
    /// They do not.
    Bad {
        /// Value that would be right.
        computed: u32,
    },
}

/// CRC32c of `bytes` with the four bytes at `at` taken as zero; `None` when they lie outside.
pub fn compute(bytes: &[u8], at: usize) -> Option<u32> {
    let head = bytes.get(..at)?;
    let tail = bytes.get(at.checked_add(4)?..)?;
    let crc = crc32c::crc32c_append(crc32c::crc32c(head), &[0; 4]);
    Some(crc32c::crc32c_append(crc, tail))
}

/// Compares the checksum stored at byte `at` with the computed one. Bytes too short count as unchecked.
pub fn verify(bytes: &[u8], at: usize) -> CrcState {
    match (compute(bytes, at), array(bytes, at).map(u32::from_le_bytes)) {
        (Some(computed), Some(stored)) if computed == stored => CrcState::Correct,
        (Some(computed), Some(_)) => CrcState::Bad { computed },
        _ => CrcState::Unchecked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_and_computed() {
        let mut bytes = b"123456789....".to_vec();
        let crc = compute(&bytes, 9).expect("within");
        assert_eq!(crc, crc32c::crc32c(b"123456789\0\0\0\0"));
        bytes.splice(9.., crc.to_le_bytes());
        assert_eq!(verify(&bytes, 9), CrcState::Correct);
        bytes[0] = b'0';
        assert!(matches!(verify(&bytes, 9), CrcState::Bad { .. }));
        assert_eq!(verify(&bytes, 12), CrcState::Unchecked);
    }
}
