//! What recovery would write over: the places that the items of a dirty log name. What lies elsewhere stays as it is.

use super::{Fault, Log, Recovery, Unknown, items};
use crate::format::log_item::LogItem;
use crate::geometry::Geometry;
use crate::units::{ByteOffset, Device, Ino, LogBlock};
use crate::volume::Volume;
use std::collections::HashSet;
use std::ops::Range;

/// Places that are kept before they are put together.
const MOST: usize = 1 << 20;

/// Places on the data device that recovery may write, and inodes.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Bytes, in order, without overlap.
    ranges: Vec<Range<u64>>,
    inodes: HashSet<Ino>,
}

impl Changes {
    /// Reads the live records. Beside them: where recovery fails, if it does.
    ///
    /// # Errors
    /// A block that could not be read, or more changes than fit into memory.
    pub fn of(volume: &Volume, log: &Log, recovery: &Recovery) -> Result<(Self, Option<(LogBlock, Fault)>), Unknown> {
        let mut changes = Self::default();
        let mut limit = MOST;
        let mut full = false;
        let fails = items(volume, log, recovery, &mut |_, item| {
            if let LogItem::Inode { ino, .. } = item {
                full |= changes.inodes.len() >= MOST;
                if !full {
                    changes.inodes.insert(ino);
                }
            }
            if let Some(range) = bytes(volume.geometry(), &item)
                && !full
            {
                changes.ranges.push(range);
                if changes.ranges.len() >= limit {
                    changes.merge();
                    limit = changes.ranges.len().saturating_add(MOST);
                    full = changes.ranges.len() >= MOST;
                }
            }
        })?;
        if full {
            return Err(Unknown::Unreadable("more changes wait in the log than fit into memory".into()));
        }
        changes.merge();
        Ok((changes, fails))
    }

    fn merge(&mut self) {
        self.ranges.sort_unstable_by_key(|range| range.start);
        self.ranges.dedup_by(|next, range| {
            let touches = next.start <= range.end;
            if touches {
                range.end = range.end.max(next.end);
            }
            touches
        });
    }

    /// May recovery write any of these bytes?
    pub fn touch(&self, device: Device, byte: ByteOffset, length: u64) -> bool {
        let end = byte.0.saturating_add(length.max(1));
        let before = self.ranges.partition_point(|range| range.start < end);
        let last = before.checked_sub(1).and_then(|last| self.ranges.get(last));
        device != Device::Data || last.is_some_and(|range| range.end > byte.0)
    }

    /// May it write this inode?
    pub fn touch_inode(&self, geometry: &Geometry, ino: Ino) -> bool {
        let size = u64::from(geometry.context.inode_size);
        self.inodes.contains(&ino) || geometry.inode_byte(ino).is_none_or(|byte| self.touch(Device::Data, byte, size))
    }
}

/// Bytes of the data device that recovery may write because of an item; `None` where it names none, or more than there
/// can be.
fn bytes(geometry: &Geometry, item: &LogItem) -> Option<Range<u64>> {
    let (start, length) = match *item {
        LogItem::Buffer { daddr, sectors, .. } => (daddr.0.checked_mul(512)?, u64::from(sectors) << 9),
        // An inode alone: others of its block stay.
        LogItem::Inode { ino, .. } => (geometry.inode_byte(ino)?.0, u64::from(geometry.context.inode_size)),
        LogItem::Dquot { daddr, sectors, .. } => (daddr.0.checked_mul(512)?, u64::from(sectors) << 9),
        LogItem::NewInodes { ag, block, blocks } => {
            let length = u64::from(blocks).checked_mul(geometry.block_size())?;
            (geometry.ag_block_byte(ag, block)?.0, length)
        }
        LogItem::Intent(_) | LogItem::Unknown(_) => return None,
    };
    Some(start..start.checked_add(length)?)
}
