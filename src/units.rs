//! Addresses and lengths of XFS as types, so that an AG block can never pass for a file block.
//!
//! None of them converts into another by itself: [`crate::geometry::Geometry`] does that, checked.
//! The values come straight from disk and may be anything; "null" (all ones) is a method, not a magic number.

use binrw::BinRead;
use std::fmt;

macro_rules! unit {
    ($( $(#[doc = $doc:literal])* $name:ident($inner:ty); )*) => { $(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, BinRead)]
        pub struct $name(pub $inner);

        impl $name {
            /// The all-ones value, which XFS uses for "none" (`NULLAGBLOCK`, `NULLFSBLOCK`, `NULLFSINO` …).
            pub const NULL: Self = Self(<$inner>::MAX);
            /// Is this the "none" value?
            pub const fn is_null(self) -> bool {
                self.0 == <$inner>::MAX
            }
            /// The bare number, widened.
            pub fn get(self) -> u64 {
                u64::from(self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )* };
}

unit! {
    /// Allocation group number (`xfs_agnumber_t`), counted from 0.
    AgNumber(u32);
    /// Block within an allocation group (`xfs_agblock_t`), in file system blocks from the start of the group.
    AgBlock(u32);
    /// Inode number within an allocation group (`xfs_agino_t`).
    AgIno(u32);
    /// Block of the data device, AG number in the high bits (`xfs_fsblock_t`): sparse, not a linear count.
    FsBlock(u64);
    /// Inode number (`xfs_ino_t`), AG number in the high bits.
    Ino(u64);
    /// Block within a file (`xfs_fileoff_t`), in file system blocks.
    FileBlock(u64);
    /// Realtime group number (`xfs_rgnumber_t`).
    RgNumber(u32);
    /// Block within a realtime group (`xfs_rgblock_t`).
    RgBlock(u32);
    /// Block of the realtime section (`xfs_rtblock_t`); with realtime groups the group number is in the high bits.
    RtBlock(u64);
    /// Realtime extent number (`xfs_rtxnum_t`): rtextsize blocks each.
    RtExtent(u64);
    /// 512-byte unit of a device (`xfs_daddr_t`, "basic block"), whatever its sector size.
    Daddr(u64);
    /// 512-byte block of the log, counted from its start.
    LogBlock(u32);
    /// Log sequence number (`xfs_lsn_t`): cycle of the log in the high, block in the low 32 bits.
    Lsn(u64);
    /// Byte of a device.
    ByteOffset(u64);
    /// Length in file system blocks within a group (`xfs_extlen_t`).
    ExtLen(u32);
    /// Length in file system blocks (`xfs_rfsblock_t`, `xfs_filblks_t`).
    Blocks(u64);
}

impl Lsn {
    /// Puts one together.
    pub fn new(cycle: u32, block: LogBlock) -> Self {
        Self((u64::from(cycle) << 32) | u64::from(block.0))
    }
    /// Round of the log (`CYCLE_LSN`).
    pub fn cycle(self) -> u32 {
        u32::try_from(self.0 >> 32).unwrap_or(u32::MAX)
    }
    /// Block within the round (`BLOCK_LSN`).
    pub fn block(self) -> LogBlock {
        LogBlock(u32::try_from(self.0 & 0xffff_ffff).unwrap_or(u32::MAX))
    }
}

impl ByteOffset {
    /// This offset moved up by `n` bytes; `None` past 2^64.
    pub fn checked_add(self, n: u64) -> Option<Self> {
        self.0.checked_add(n).map(Self)
    }
}

/// Size of a basic block, the unit of [`Daddr`]: 512 bytes (`BBSIZE`).
pub const BASIC_BLOCK: u64 = 512;

/// The devices of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Device {
    /// Data section; also the internal log and an internal (zoned) realtime section.
    Data,
    /// External log.
    Log,
    /// Realtime section.
    Rt,
}

impl Device {
    /// The name used in JSON and messages: `data`, `log` or `rt`.
    pub const fn name(self) -> &'static str {
        match self {
            Device::Data => "data",
            Device::Log => "log",
            Device::Rt => "rt",
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
