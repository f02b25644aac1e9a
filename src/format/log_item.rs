//! Log items: what a transaction in the log changes. The first region of an item says what it is; it is in the byte
//! order of the machine that wrote it (`struct xfs_buf_log_format`, `xfs_inode_log_format`, `xfs_dq_logformat`,
//! `xfs_icreate_log` in xfs_log_format.h).

use super::bits;
use crate::units::{AgBlock, AgNumber, Daddr, Ino};

/// First word of a transaction (`XFS_TRANS_HEADER_MAGIC`).
pub const TRANS_MAGIC: u32 = 0x5452_414e;
/// Bytes of the header of a transaction (`struct xfs_trans_header`).
pub const TRANS_HEADER: u32 = 16;
/// Regions that an item may have at most (`XLOG_MAX_REGIONS_IN_ITEM`).
pub const MAX_REGIONS: u16 = 257;
/// Bytes of a first region that say what the item is.
pub const FIRST_REGION: usize = 56;

/// Buffer flag: the block was freed, older items of it are not replayed (`XFS_BLF_CANCEL`).
const CANCEL: u16 = 1 << 1;

/// Byte order of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Little-endian Linux.
    Little,
    /// Big-endian.
    Big,
}

impl Order {
    /// By the `fmt` of a record; `None` for what no Linux writes.
    pub fn of(fmt: u32) -> Option<Self> {
        match fmt {
            1 => Some(Self::Little),
            2 => Some(Self::Big),
            _ => None,
        }
    }

    /// 16 bits at `at`.
    pub fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        bits::array(bytes, at).map(if self == Self::Little { u16::from_le_bytes } else { u16::from_be_bytes })
    }

    /// 32 bits at `at`.
    pub fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        bits::array(bytes, at).map(if self == Self::Little { u32::from_le_bytes } else { u32::from_be_bytes })
    }

    /// 64 bits at `at`.
    pub fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        bits::array(bytes, at).map(if self == Self::Little { u64::from_le_bytes } else { u64::from_be_bytes })
    }
}

/// What an item changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogItem {
    /// Parts of a block of metadata (`XFS_LI_BUF`).
    Buffer {
        /// First sector of 512 bytes.
        daddr: Daddr,
        /// Sectors.
        sectors: u16,
        /// Is it only said that the block was freed?
        cancelled: bool,
    },
    /// An inode (`XFS_LI_INODE`).
    Inode {
        /// Which.
        ino: Ino,
        /// First sector of the block of inodes that holds it.
        daddr: Daddr,
        /// Sectors of that block.
        sectors: u32,
    },
    /// A quota record (`XFS_LI_DQUOT`).
    Dquot {
        /// User, group or project.
        id: u32,
        /// First sector of its block.
        daddr: Daddr,
        /// Sectors of that block.
        sectors: u32,
    },
    /// New inodes: their blocks are written from nothing (`XFS_LI_ICREATE`).
    NewInodes {
        /// AG.
        ag: AgNumber,
        /// First block.
        block: AgBlock,
        /// Blocks.
        blocks: u32,
    },
    /// A change that was planned, or one that was done (extents freed, reverse mappings, reference counts, …): recovery
    /// does what was planned and not done.
    Intent(u16),
    /// A type that Linux 7.2 does not know: recovery fails.
    Unknown(u16),
}

impl LogItem {
    /// From its first region. `None` where that is too short for its type: recovery fails.
    pub fn decode(bytes: &[u8], length: u64, order: Order) -> Option<Self> {
        let kind = order.u16(bytes, 0)?;
        let daddr = |at| order.u64(bytes, at).map(Daddr);
        let sectors = |at| order.u32(bytes, at);
        Some(match kind {
            0x123c => Self::Buffer {
                daddr: daddr(8)?,
                sectors: order.u16(bytes, 6)?,
                cancelled: order.u16(bytes, 4)? & CANCEL != 0,
            },
            // Without padding on 32-bit machines of old.
            0x123b if length == 52 => {
                Self::Inode { ino: Ino(order.u64(bytes, 12)?), daddr: daddr(36)?, sectors: sectors(44)? }
            }
            0x123b => Self::Inode { ino: Ino(order.u64(bytes, 16)?), daddr: daddr(40)?, sectors: sectors(48)? },
            0x123d => Self::Dquot { id: order.u32(bytes, 4)?, daddr: daddr(8)?, sectors: sectors(16)? },
            0x123f => Self::NewInodes {
                ag: AgNumber(bits::be32(bytes, 4)?),
                block: AgBlock(bits::be32(bytes, 8)?),
                blocks: bits::be32(bytes, 20)?,
            },
            0x1236 | 0x1237 | 0x1238 | 0x123e | 0x1240..=0x124f => Self::Intent(kind),
            other => Self::Unknown(other),
        })
    }
}

/// Bytes of a chunk, of which the bitmap of a buffer has a bit each (`XFS_BLF_CHUNK`).
const CHUNK: usize = 128;

/// Where the further regions of a buffer belong: byte in the buffer and length, one for each run of bits in
/// `blf_data_map`, as far as `first`, its first region, goes.
pub fn chunks(first: &[u8], order: Order) -> Vec<(usize, usize)> {
    let words = order.u32(first, 16).unwrap_or(0);
    let words = (0..words).map_while(|i| {
        let at = usize::try_from(i).ok()?.checked_mul(4)?.checked_add(20)?;
        order.u32(first, at)
    });
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut at = 0usize;
    for word in words {
        for bit in 0..32 {
            if word >> bit & 1 != 0 {
                match runs.last_mut() {
                    Some((start, length)) if start.saturating_add(*length) == at => {
                        *length = length.saturating_add(CHUNK);
                    }
                    _ => runs.push((at, CHUNK)),
                }
            }
            at = at.saturating_add(CHUNK);
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first regions of a buffer and an inode as Linux 6.1 wrote them on x86-64.
    #[test]
    fn first_regions() {
        let mut buffer = vec![0x3c, 0x12, 2, 0, 0, 0x28, 8, 0];
        buffer.extend([0x18, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
        let item = LogItem::decode(&buffer, 24, Order::Little);
        assert_eq!(item, Some(LogItem::Buffer { daddr: Daddr(24), sectors: 8, cancelled: false }));
        assert_eq!(LogItem::decode(&buffer[..12], 12, Order::Little), None);
        assert_eq!(chunks(&buffer, Order::Little), []);
        buffer.extend([0b1011, 0, 0, 0]);
        assert_eq!(chunks(&buffer, Order::Little), [(0, 256), (384, 128)]);
        assert_eq!(LogItem::decode(&buffer, 24, Order::Big), Some(LogItem::Unknown(0x3c12)));
        let mut inode = vec![0u8; 56];
        inode[..4].copy_from_slice(&[0x3b, 0x12, 3, 0]);
        (inode[16], inode[40], inode[48]) = (131, 0x80, 32);
        let expected = LogItem::Inode { ino: Ino(131), daddr: Daddr(128), sectors: 32 };
        assert_eq!(LogItem::decode(&inode, 56, Order::Little), Some(expected));
        inode.drain(12..16);
        assert_eq!(LogItem::decode(&inode, 52, Order::Little), Some(expected));
    }
}
