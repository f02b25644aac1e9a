//! Targets of symbolic links, in the inode or in blocks. `xfs_symlink_remote_read` (xfs_symlink_remote.c).

use super::{Inode, Walk, corrupt, extents};
use crate::error::{Error, Result};
use crate::format::dinode::{Fork, fork_format};
use crate::format::dinode_view::Kind;
use crate::format::symlink::{self, MAX_LENGTH};
use crate::format::{bits, checksum};

/// The target of a symbolic link: any bytes, not resolved.
///
/// # Errors
/// [`Error::Request`] for anything but a link; [`Error::Corrupt`] where the target is not whole; [`Error::Io`].
pub fn target(walk: &Walk<'_>, inode: Inode<'_>) -> Result<Vec<u8>> {
    if inode.kind() != Kind::Symlink {
        return Err(Error::request(format!("inode {}: a {}, not a symbolic link", inode.ino, inode.kind().name())));
    }
    let place = || inode.place(walk.volume()).field("core.size");
    let wanted = u32::try_from(inode.size()).ok().filter(|&size| size <= MAX_LENGTH);
    let Some(wanted) = wanted.map(super::index) else {
        let right = format!("0 to {MAX_LENGTH}");
        return Err(corrupt(place(), "length of the target", inode.size(), right));
    };
    if inode.format(Fork::Data) == fork_format::LOCAL {
        let fork = inode.fork(Fork::Data).unwrap_or_default();
        let target = fork.get(..wanted).map(<[u8]>::to_vec);
        return target.ok_or_else(|| corrupt(place(), "the target leaves the inode", wanted, fork.len()));
    }
    let context = walk.context();
    let mut target: Vec<u8> = Vec::new();
    for extent in extents::extents(walk, inode, Fork::Data) {
        let extent = extent?;
        if target.len() >= wanted {
            break;
        }
        // A target of 1024 bytes takes three blocks at most, of 512 bytes.
        let blocks = extent.blockcount.min(4);
        walk.step(u64::from(blocks))?;
        let name = format!("inode {} › symlink block {}", inode.ino, extent.startoff);
        let block = walk.volume().blocks(extent.startblock, blocks, name)?;
        if context.has_crc() {
            let magic = bits::be32(&block.bytes, 0).unwrap_or(0);
            if magic != symlink::MAGIC {
                let right = format!("{:#x}", symlink::MAGIC);
                return Err(corrupt(block.place.field("magic"), "no part of a target", format!("{magic:#x}"), right));
            }
            let owner = bits::be64(&block.bytes, 32).unwrap_or(0);
            if owner != inode.ino.0 {
                return Err(corrupt(
                    block.place.field("owner"),
                    "the block belongs to another inode",
                    owner,
                    inode.ino,
                ));
            }
            // The checksum covers the extent, or what of it the target needs.
            let whole = checksum::verify(&block.bytes, symlink::CRC_OFFSET);
            if let (checksum::CrcState::Bad { computed }, true) = (whole, blocks == extent.blockcount) {
                let stored = bits::array(&block.bytes, symlink::CRC_OFFSET).map_or(0, u32::from_le_bytes);
                let (stored, computed) =
                    (crate::format::Crc(stored).to_string(), crate::format::Crc(computed).to_string());
                return Err(corrupt(block.place.field("crc"), "the checksum is wrong", stored, computed));
            }
        }
        let payload = symlink::payload(context, &block.bytes).unwrap_or_default();
        let rest = wanted.saturating_sub(target.len()).min(payload.len());
        target.extend_from_slice(payload.get(..rest).unwrap_or_default());
    }
    if target.len() < wanted {
        return Err(corrupt(place(), "the blocks hold less than the target", wanted, target.len()));
    }
    Ok(target)
}
