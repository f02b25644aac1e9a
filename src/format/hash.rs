//! Hashes of names, on which directories and attributes are indexed. `xfs_da_hashname` (xfs_da_btree.c),
//! `xfs_ascii_ci_hashname`, `xfs_dir2_hashname` (xfs_dir2.c), `xfs_parent_hashval` (xfs_parent.c).

use super::Context;
use crate::units::Ino;

/// Hash of a name: each byte is mixed into the hash turned left by 7 bits. (The kernel takes four at a time; shifts
/// and turns agree because no bit of a byte is turned past the top within four steps.)
pub fn da_hash(name: &[u8]) -> u32 {
    name.iter().fold(0u32, |hash, &byte| hash.rotate_left(7) ^ u32::from(byte))
}

/// Hash of a name where directories ignore case: ASCII and Latin-1 capitals count as small letters.
pub fn ascii_ci_hash(name: &[u8]) -> u32 {
    name.iter().fold(0u32, |hash, &byte| hash.rotate_left(7) ^ u32::from(fold_case(byte)))
}

/// A byte as case-insensitive directories compare it (`xfs_ascii_ci_xfrm`).
pub fn fold_case(byte: u8) -> u8 {
    match byte {
        b'A'..=b'Z' | 0xc0..=0xd6 | 0xd8..=0xde => byte.wrapping_add(b'a' - b'A'),
        other => other,
    }
}

/// Hash of a directory entry on this file system.
pub fn entry_hash(context: &Context, name: &[u8]) -> u32 {
    if context.features.has_ascii_ci() { ascii_ci_hash(name) } else { da_hash(name) }
}

/// Hash of a parent pointer: the entry's, mixed with the inode of the directory.
pub fn parent_hash(context: &Context, name: &[u8], parent: Ino) -> u32 {
    let [high, low] = [parent.0 >> 32, parent.0 & 0xffff_ffff].map(|half| u32::try_from(half).unwrap_or(0));
    entry_hash(context, name) ^ high ^ low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_xfs_db_hashes() {
        // xfs_db 7.2: `hash NAME`.
        for (name, hash) in HASHES {
            assert_eq!(da_hash(name), *hash, "{}", String::from_utf8_lossy(name));
        }
        assert_eq!(da_hash(b""), 0);
    }

    const HASHES: &[(&[u8], u32)] = &[
        (b".", 0x2e),
        (b"..", 0x172e),
        (b"abc", 0x18_7163),
        (b"SGI_ACL_FILE", 0x275b_19c4),
        (b"a_rather_long_name_with_31_byte", 0x1524_e935),
    ];

    #[test]
    fn case_is_folded() {
        assert_eq!(ascii_ci_hash(b"FiLe"), da_hash(b"file"));
        assert_eq!((fold_case(0xc0), fold_case(0xd7), fold_case(0xde), fold_case(0xdf)), (0xe0, 0xd7, 0xfe, 0xdf));
    }
}
