//! Numbers out of bytes: by byte offset for walks, by bit range for printing. Nothing here can fail on short
//! input: what is not there is `None`.

/// `N` bytes at `at`.
pub fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Big-endian 16 bits at byte `at`.
pub fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

/// Big-endian 32 bits at byte `at`.
pub fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

/// Big-endian 64 bits at byte `at`.
pub fn be64(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_be_bytes)
}

/// Up to 64 bits from bit `bit` on, most significant first: bit 0 is the top bit of byte 0, as in xfs_db.
pub fn bit_range(bytes: &[u8], bit: u64, len: u32) -> Option<u64> {
    if len == 0 || len > 64 {
        return None;
    }
    let first = usize::try_from(bit.checked_div(8)?).ok()?;
    let skip = u32::try_from(bit.checked_rem(8)?).ok()?;
    let span = skip.checked_add(len)?;
    let count = usize::try_from(span.div_ceil(8)).ok()?;
    let part = bytes.get(first..first.checked_add(count)?)?;
    let mut word = 0u128;
    for &byte in part {
        word = (word << 8) | u128::from(byte);
    }
    let total = u32::try_from(count).ok()?.checked_mul(8)?;
    let down = total.checked_sub(span)?;
    let mask = u128::MAX.checked_shr(128u32.checked_sub(len)?)?;
    u64::try_from((word >> down) & mask).ok()
}

/// The same bits, read as a little-endian number: whole bytes only (CRC fields).
pub fn little_endian(bytes: &[u8], bit: u64, len: u32) -> Option<u64> {
    let value = bit_range(bytes, bit, len)?;
    let down = 64u32.checked_sub(len)?;
    Some(value.swap_bytes() >> down)
}

/// `value` of `len` bits as a signed number.
pub fn signed(value: u64, len: u32) -> i64 {
    let up = 64u32.saturating_sub(len).min(63);
    value.wrapping_shl(up).cast_signed() >> up
}

/// Position of the highest set bit, or `None` for zero (`xfs_highbit32`, `xfs_highbit64`).
pub fn high_bit(value: u64) -> Option<u32> {
    value.checked_ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_ranges_as_xfs_db_counts_them() {
        // The bmbt record of v4-default inode 131... is tested beside the table; here only the counting.
        let bytes = [0b1010_0000, 0xff, 0x01, 0x80];
        assert_eq!(bit_range(&bytes, 0, 1), Some(1));
        assert_eq!(bit_range(&bytes, 1, 2), Some(0b01));
        assert_eq!(bit_range(&bytes, 8, 16), Some(0xff01));
        assert_eq!(bit_range(&bytes, 12, 8), Some(0xf0));
        assert_eq!(bit_range(&bytes, 31, 2), None);
        assert_eq!(bit_range(&bytes, 0, 65), None);
        assert_eq!(bit_range(&[0xff; 9], 1, 64), Some(u64::MAX));
        assert_eq!(little_endian(&[1, 2, 3, 4], 0, 32), Some(0x0403_0201));
        assert_eq!(signed(0xff, 8), -1);
        assert_eq!(signed(0x7f, 8), 127);
        assert_eq!(signed(u64::MAX, 64), -1);
    }
}
