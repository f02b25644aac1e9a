//! The journal: is it clean, where are its head and tail, which records wait for recovery?
//!
//! [`state`] finds head and tail by the cycle numbers, as `xlog_find_head` and `xlog_find_tail` (xfs_log_recover.c)
//! and all tools do; it reads a few MiB of the log, not all of it. [`probe`] is content with an unmount record. [`verify`] reads the live records, too, and says
//! what recovery would make of them; [`items`] says what it would change. Nothing that a record says about lengths is trusted.

mod blocks;
mod changes;
mod ends;
mod items;
mod records;
#[cfg(test)]
mod tests;

pub use changes::Changes;
pub use ends::{probe, state};
pub use items::{Replayed, items, replay};
pub use records::{Fault, Record, Records, Recovery, verify};

use crate::error::Place;
use crate::format::log::MAX_LOG_BYTES;
use crate::format::on_disk::Uuid;
use crate::units::{ByteOffset, Device, LogBlock, Lsn};
use crate::volume::Volume;
use std::fmt;

/// Where the log lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// The data device, or a log device.
    pub device: Device,
    /// First byte on that device.
    pub start: ByteOffset,
    /// Blocks of 512 bytes.
    pub blocks: u32,
    /// Version 2 (records of up to 256 KiB, stripe unit)?
    pub v2: bool,
}

impl Area {
    /// Where the log of a file system lies.
    ///
    /// # Errors
    /// Why it cannot be looked at: its device was not given or is too short, or its size or place is impossible.
    pub fn of(volume: &Volume) -> Result<Self, Unknown> {
        let geometry = volume.geometry();
        let impossible = |field, found: u64, expected: String| Unknown::Impossible { field, found, expected };
        let bytes = u64::from(geometry.log_blocks).saturating_mul(geometry.block_size());
        // XFS_MIN_LOG_BLOCKS: fewer would not even hold the records that can be under way at once.
        if geometry.log_blocks < 512 || bytes > MAX_LOG_BYTES {
            let expected = format!("512 to {} (2 GiB)", MAX_LOG_BYTES.checked_div(geometry.block_size()).unwrap_or(0));
            return Err(impossible("logblocks", u64::from(geometry.log_blocks), expected));
        }
        let (device, start) = match geometry.log_start {
            None => (Device::Log, ByteOffset(0)),
            Some(first) => {
                let place = geometry.split(first).filter(|&(ag, within)| {
                    let end = within.0.checked_add(geometry.log_blocks);
                    end.is_some_and(|end| geometry.ag_length(ag).is_some_and(|length| end <= length))
                });
                let start = place.and_then(|(ag, within)| geometry.ag_block_byte(ag, within));
                let Some(start) = start else {
                    let expected = format!("{} blocks within one AG", geometry.log_blocks);
                    return Err(impossible("logstart", first.0, expected));
                };
                (Device::Data, start)
            }
        };
        let Some(source) = volume.devices().get(device) else { return Err(Unknown::NotGiven { needed: bytes }) };
        let needed = start.0.saturating_add(bytes);
        if source.len() < needed {
            return Err(Unknown::TooShort { device, needed, present: source.len() });
        }
        let blocks = bytes.checked_div(512).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        Ok(Self { device, start, blocks, v2: geometry.context.features.has_logv2() })
    }

    /// First byte of a log block; `None` where there is no such block.
    pub fn byte(&self, block: LogBlock) -> Option<ByteOffset> {
        if block.0 >= self.blocks {
            return None;
        }
        self.start.checked_add(u64::from(block.0).checked_mul(512)?)
    }

    /// A block as a place for messages.
    pub fn place(&self, block: LogBlock) -> Place {
        Place::new(self.device, self.byte(block).unwrap_or_default(), 512, format!("log block {block}"))
    }

    /// Blocks from `from` on to `to`, around the end.
    pub fn distance(&self, from: LogBlock, to: LogBlock) -> u32 {
        to.0.checked_sub(from.0).unwrap_or_else(|| self.blocks.saturating_sub(from.0).saturating_add(to.0))
    }

    /// The block `n` blocks after `from`, around the end.
    pub fn after(&self, from: LogBlock, n: u32) -> LogBlock {
        let sum = u64::from(from.0).saturating_add(u64::from(n));
        let block = sum.checked_rem(u64::from(self.blocks)).and_then(|n| u32::try_from(n).ok());
        LogBlock(block.unwrap_or(0))
    }
}

/// Head and tail of a log with records in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Where the next record would go.
    pub head: LogBlock,
    /// The oldest record that recovery needs; the head itself in a clean log.
    pub tail: LogBlock,
    /// Header of the last whole record.
    pub last: LogBlock,
    /// Cycle and block of the head: no metadata on disk may carry a greater log sequence number.
    pub current: Lsn,
    /// Log sequence number of the tail, as the last record says it.
    pub tail_lsn: Lsn,
    /// Where blocks of the newest cycle end, when that is past the head: what lies between was not written whole.
    pub partial: Option<LogBlock>,
}

/// What the log is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing to replay. `unmounted` is false where head and tail meet without an unmount record.
    Clean {
        /// Does the log end with an unmount record?
        unmounted: bool,
        /// Head and tail.
        ends: Ends,
    },
    /// No record: the first block was never written, or was wiped. Kernels take it for empty.
    Zeroed {
        /// A block further on that is not zero, where one was seen: then the log was not empty.
        traces: Option<LogBlock>,
    },
    /// Records wait for recovery; metadata on disk is of the time before.
    Dirty(Ends),
    /// It could not be found out.
    Unknown(Unknown),
}

/// Why the state of a log is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// It lies on a device that was not given.
    NotGiven {
        /// Bytes that device must have.
        needed: u64,
    },
    /// Its device ends before it.
    TooShort {
        /// The device.
        device: Device,
        /// Bytes that the device must have.
        needed: u64,
        /// Bytes it has.
        present: u64,
    },
    /// A block could not be read.
    Unreadable(String),
    /// A number that says where it lies, or where its tail is, cannot be.
    Impossible {
        /// Field of the superblock or the last record's header.
        field: &'static str,
        /// Its value.
        found: u64,
        /// What it would have to be.
        expected: String,
    },
    /// No record header where the cycle numbers say that the last record must be.
    NoHeader {
        /// Blocks that were looked at: from here …
        from: LogBlock,
        /// … to before this one.
        to: LogBlock,
    },
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGiven { needed } => {
                write!(f, "the log is external and its device was not given (--logdev; {needed} bytes or more)")
            }
            Self::TooShort { device, needed, present } => {
                write!(f, "the log ends at byte {needed} of the {device} device, which has only {present} bytes")
            }
            Self::Unreadable(why) => f.write_str(why),
            Self::Impossible { field, found, expected } => write!(f, "{field} is {found}, expected {expected}"),
            Self::NoHeader { from, to } => write!(f, "no record header in log blocks {from} to {to}"),
        }
    }
}

/// A log as [`state`] found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Where it lies, when that is known.
    pub area: Option<Area>,
    /// What it is like.
    pub state: State,
    /// Identity in its last record, where it is not that of the file system: it is another one's log.
    pub foreign: Option<Uuid>,
    /// Byte order field of the last record, where it is not Linux on a little-endian machine.
    pub foreign_fmt: Option<u32>,
}

impl Log {
    /// Do records wait for recovery? `None` where that is not known.
    pub fn is_dirty(&self) -> Option<bool> {
        match self.state {
            State::Clean { .. } | State::Zeroed { .. } => Some(false),
            State::Dirty(_) => Some(true),
            State::Unknown(_) => None,
        }
    }

    /// Head and tail, where there are records.
    pub fn ends(&self) -> Option<&Ends> {
        match &self.state {
            State::Clean { ends, .. } | State::Dirty(ends) => Some(ends),
            State::Zeroed { .. } | State::Unknown(_) => None,
        }
    }

    /// One word for scripts: `clean`, `zeroed`, `dirty`, `unknown`.
    pub fn name(&self) -> &'static str {
        match self.state {
            State::Clean { .. } => "clean",
            State::Zeroed { .. } => "zeroed",
            State::Dirty(_) => "dirty",
            State::Unknown(_) => "unknown",
        }
    }

    /// May metadata carry this log sequence number? Not if it is ahead of the log (`xlog_valid_lsn`): then records to
    /// come would look older than what is on disk. `None` where the log tells nothing.
    pub fn allows(&self, lsn: Lsn) -> Option<bool> {
        match &self.state {
            // An empty log begins with cycle 1, block 0 (xlog_alloc_log).
            State::Zeroed { .. } => Some(lsn <= Lsn::new(1, LogBlock(0))),
            _ => self.ends().map(|ends| lsn <= ends.current),
        }
    }
}
