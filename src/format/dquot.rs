//! Quota records: limits and usage of a user, group or project, side by side in the blocks of a quota inode, by id.
//! `struct xfs_dqblk`, `struct xfs_disk_dquot`; `xfs_dquot_buf_verify`, `xfs_dquot_verify` (xfs_dquot_buf.c).

use super::btree_block::Parts;
use super::node::table;
use super::on_disk::{Crc, Format, Uuid, on_disk};
use super::{Context, Node, Structure};

/// `DQ`.
pub const MAGIC: u16 = 0x4451;
/// Byte of the checksum within a record (V5).
pub const CRC_OFFSET: usize = 108;
/// Bytes of a record.
pub const SIZE: usize = 136;

/// Bits of `d_type`.
pub mod kind {
    /// User.
    pub const USER: u8 = 1;
    /// Project.
    pub const PROJECT: u8 = 2;
    /// Group.
    pub const GROUP: u8 = 4;
    /// Mask of the three.
    pub const MASK: u8 = 7;
    /// Timers in bigtime form: units of four seconds.
    pub const BIGTIME: u8 = 0x80;
}

on_disk! {
    /// Limits and usage (`struct xfs_disk_dquot`).
    pub struct DiskDquot, size 104 {
        /// `DQ` (0x4451).
        0 magic: u16 [.hex()],
        /// Always 1.
        2 version: u8 [.hex()],
        /// User, project or group; and the form of the timers.
        3 type_: u8 [.named("type").hex()] {
            /// Timers in units of four seconds.
            bigtime: 0 + 1 [.hidden()],
        },
        /// User, group or project.
        4 id: u32 [.fmt(Format::Signed)],
        /// Blocks that are never exceeded; 0 for no limit.
        8 blk_hardlimit: u64,
        /// Blocks that may be exceeded for a while; 0 for no limit.
        16 blk_softlimit: u64,
        /// Inodes that are never exceeded.
        24 ino_hardlimit: u64,
        /// Inodes that may be exceeded for a while.
        32 ino_softlimit: u64,
        /// Blocks in use.
        40 bcount: u64,
        /// Inodes in use.
        48 icount: u64,
        /// When the grace time for inodes ends; in record 0 its default length in seconds.
        56 itimer: u32 [.fmt(Format::QuotaTimer)],
        /// When the grace time for blocks ends.
        60 btimer: u32 [.fmt(Format::QuotaTimer)],
        /// Warnings about inodes.
        64 iwarns: u16,
        /// Warnings about blocks.
        66 bwarns: u16,
        /// Zeros.
        68 pad0: u32 [.hex().hidden()],
        /// Realtime blocks that are never exceeded.
        72 rtb_hardlimit: u64,
        /// Realtime blocks that may be exceeded for a while.
        80 rtb_softlimit: u64,
        /// Realtime blocks in use.
        88 rtbcount: u64,
        /// When the grace time for realtime blocks ends.
        96 rtbtimer: u32 [.fmt(Format::QuotaTimer)],
        /// Warnings about realtime blocks.
        100 rtbwarns: u16,
        /// Zeros.
        102 pad: u16 [.hex().hidden()],
    }

    /// What follows on disk (`struct xfs_dqblk` from dd_fill on); unused on V4.
    pub struct DqblkTail, size 32 {
        /// Filling.
        0 fill: [u8; 4] [.hex().hidden()],
        /// Checksum of the record.
        4 crc: Crc,
        /// Log sequence number of the last write.
        8 lsn: u64 [.hex()],
        /// Identity of the file system.
        16 uuid: Uuid,
    }
}

/// The records of a block, each as its bytes and decoded.
pub fn records(bytes: &[u8]) -> impl Iterator<Item = (&[u8], DiskDquot)> {
    let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    Parts::new(bytes, 0, 136, count).filter_map(|record| Some((record, DiskDquot::decode(record)?)))
}

impl DiskDquot {
    /// A timer of this record in seconds since 1970 (`xfs_dquot_from_disk_ts`); 0 where none runs. In record 0 it is
    /// the default length of the grace time in seconds, which has one form only.
    pub fn timer(&self, raw: u32) -> u64 {
        let bigtime = self.type_ & kind::BIGTIME != 0 && self.id != 0;
        if bigtime { u64::from(raw).saturating_mul(4) } else { u64::from(raw) }
    }
}

/// The nodes of the first record in `bytes`, as xfs_db shows a block of them.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    let mut nodes = vec![Node::group("diskdq", 0, table(DiskDquot::FIELDS, context, bytes, 0))];
    nodes.extend(table(DqblkTail::FIELDS, context, bytes, 104 * 8));
    nodes
}
