//! Access control lists: on disk an attribute `SGI_ACL_FILE` or `SGI_ACL_DEFAULT` of namespace trusted, to programs
//! `system.posix_acl_access` and `system.posix_acl_default` in another encoding.
//! `struct xfs_acl` (xfs_format.h); `xfs_acl_from_disk` (xfs_acl.c), `posix_acl_to_xattr` (posix_acl.c).

use super::bits;

/// Names on disk and names to programs.
pub const NAMES: [(&[u8], &str); 2] =
    [(b"SGI_ACL_FILE", "system.posix_acl_access"), (b"SGI_ACL_DEFAULT", "system.posix_acl_default")];

/// Bytes of an entry on disk: tag, id, permissions, padding.
const ENTRY: usize = 12;
/// Tags with an id: a named user, a named group.
const NAMED: [u32; 2] = [0x02, 0x08];

/// The list as programs see it; `None` where the bytes are no list.
pub fn to_xattr(disk: &[u8]) -> Option<Vec<u8>> {
    let count = usize::try_from(bits::be32(disk, 0)?).ok()?;
    let entries = disk.get(4..)?;
    if entries.len() != count.checked_mul(ENTRY)? {
        return None;
    }
    let mut out = 2u32.to_le_bytes().to_vec();
    for entry in entries.chunks_exact(ENTRY) {
        let (tag, id, perm) = (bits::be32(entry, 0)?, bits::be32(entry, 4)?, bits::be16(entry, 8)?);
        out.extend_from_slice(&u16::try_from(tag).ok()?.to_le_bytes());
        out.extend_from_slice(&perm.to_le_bytes());
        let id = if NAMED.contains(&tag) { id } else { u32::MAX };
        out.extend_from_slice(&id.to_le_bytes());
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_kernel_converts() {
        // user::rw-, user:1000:r--, in disk form; expected bytes are those of getfattr.
        let disk = [0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 2, 0, 0, 3, 0xe8, 0, 4, 0, 0];
        let xattr = [2, 0, 0, 0, 1, 0, 6, 0, 0xff, 0xff, 0xff, 0xff, 2, 0, 4, 0, 0xe8, 3, 0, 0];
        assert_eq!(to_xattr(&disk).as_deref(), Some(&xattr[..]));
        assert_eq!(to_xattr(&disk[..27]), None);
        assert_eq!(to_xattr(&[0xff; 8]), None);
    }
}
