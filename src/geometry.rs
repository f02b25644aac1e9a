//! A superblock turned into numbers that can be trusted: sizes, bounds, and every conversion of addresses.
//!
//! [`Geometry::new`] refuses a superblock with which arithmetic is impossible (block size, shifts, zero divisors);
//! that it also makes sense is for [`crate::check`] to say. Conversions check both ends and return `None` for an
//! address that does not exist; nothing wraps. Sources: `xfs_mount.h`, `xfs_format.h` (`XFS_FSB_TO_AGNO` and kin),
//! `xfs_rtgroup.h`.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::as_conversions))]

use crate::format::Context;
use crate::format::superblock::Superblock;
use crate::units::{
    AgBlock, AgIno, AgNumber, BASIC_BLOCK, Blocks, ByteOffset, Daddr, Device, FsBlock, Ino, RgBlock, RgNumber, RtBlock,
    RtExtent,
};

/// Largest and smallest file system block, in bytes (`XFS_MIN_BLOCKSIZE`, `XFS_MAX_BLOCKSIZE`).
pub const BLOCK_SIZES: std::ops::RangeInclusive<u32> = 512..=65536;
/// Sector sizes (`XFS_MIN_SECTORSIZE`, `XFS_MAX_SECTORSIZE`).
pub const SECTOR_SIZES: std::ops::RangeInclusive<u32> = 512..=32768;
/// Inode sizes (`XFS_DINODE_MIN_SIZE`, `XFS_DINODE_MAX_SIZE`).
pub const INODE_SIZES: std::ops::RangeInclusive<u32> = 256..=2048;

/// Why arithmetic with a superblock is impossible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impossible {
    /// Field with xfs_db's name.
    pub field: &'static str,
    /// Value on disk.
    pub found: u64,
    /// What it would have to be.
    pub expected: String,
}

impl std::fmt::Display for Impossible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is {}, expected {}", self.field, self.found, self.expected)
    }
}

/// How the realtime section is laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Realtime {
    /// Blocks.
    pub blocks: u64,
    /// Extents, as the superblock says.
    pub extents: u64,
    /// Blocks of an extent, not 0.
    pub extent_blocks: u32,
    /// Groups, where there are any (metadir).
    pub groups: Option<Groups>,
    /// First byte on its device: 0, or where the internal section begins.
    pub start_bytes: u64,
    /// Where it lies: its own device, or the data device (zoned, internal).
    pub device: Device,
}

/// Realtime groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Number of groups.
    pub count: u32,
    /// Extents of each but the last.
    pub extents: u32,
    /// Shift of the group number in a realtime block number.
    pub block_log: u8,
    /// Does each group begin at a power of two on the device (feature zone-gaps)?
    pub gaps: bool,
}

/// Trusted numbers of a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Sizes and features on which layouts depend.
    pub context: Context,
    /// log2 of the block size.
    pub block_log: u32,
    /// Blocks of the data section.
    pub data_blocks: u64,
    /// Blocks of each AG but the last; not 0.
    pub ag_blocks: u32,
    /// AGs; not 0.
    pub ag_count: u32,
    /// Shift of the AG number in a block number.
    pub ag_block_log: u32,
    /// log2 of the inodes in a block.
    pub inodes_per_block_log: u32,
    /// First block of the internal log; `None` with an external one.
    pub log_start: Option<FsBlock>,
    /// Blocks of the log.
    pub log_blocks: u32,
    /// The realtime section, where there is one.
    pub realtime: Option<Realtime>,
}

/// `value` must be a power of two within `range` whose log2 is `log`.
fn power(
    (field, value): (&'static str, u32),
    range: std::ops::RangeInclusive<u32>,
    (log_field, log): (&'static str, u8),
) -> Result<u32, Impossible> {
    if !range.contains(&value) || !value.is_power_of_two() {
        let expected = format!("a power of two from {} to {}", range.start(), range.end());
        return Err(Impossible { field, found: u64::from(value), expected });
    }
    let right = value.trailing_zeros();
    if u32::from(log) != right {
        let expected = format!("{right}, log2 of {field} {value}");
        return Err(Impossible { field: log_field, found: u64::from(log), expected });
    }
    Ok(right)
}

impl Geometry {
    /// Takes the numbers of a superblock. `zoned` is what [`crate::format::superblock::zoned_part`] gives.
    ///
    /// # Errors
    /// The first field with which nothing can be computed.
    pub fn new(sb: &Superblock, zoned: (u64, u64)) -> Result<Self, Impossible> {
        let features = sb.features();
        if !(4..=5).contains(&features.version()) {
            let expected = "version 4 or 5 in the low four bits".to_owned();
            return Err(Impossible { field: "versionnum", found: u64::from(sb.versionnum), expected });
        }
        let block_log = power(("blocksize", sb.blocksize), BLOCK_SIZES, ("blocklog", sb.blocklog))?;
        power(("sectsize", u32::from(sb.sectsize)), SECTOR_SIZES, ("sectlog", sb.sectlog))?;
        let inode_log = power(("inodesize", u32::from(sb.inodesize)), INODE_SIZES, ("inodelog", sb.inodelog))?;
        let too = |field, found: u64, expected: String| Err(Impossible { field, found, expected });
        if u32::from(sb.sectsize) > sb.blocksize {
            return too("sectsize", u64::from(sb.sectsize), format!("at most blocksize {}", sb.blocksize));
        }
        let inodes_per_block_log = block_log.saturating_sub(inode_log);
        if u32::from(sb.inodesize) > sb.blocksize || u32::from(sb.inopblog) != inodes_per_block_log {
            return too("inopblog", u64::from(sb.inopblog), format!("blocklog - inodelog = {inodes_per_block_log}"));
        }
        if sb.agblocks == 0 {
            return too("agblocks", 0, "more than 0".into());
        }
        if sb.agcount.0 == 0 {
            return too("agcount", 0, "more than 0".into());
        }
        let least = sb.agblocks.checked_next_power_of_two().map_or(32, u32::trailing_zeros);
        if u32::from(sb.agblklog) > 31 || u32::from(sb.agblklog) < least {
            return too("agblklog", u64::from(sb.agblklog), format!("{least}, log2 of agblocks {}", sb.agblocks));
        }
        let dir_log = block_log.saturating_add(u32::from(sb.dirblklog));
        if dir_log > 16 {
            let most = 16u32.saturating_sub(block_log);
            return too(
                "dirblklog",
                u64::from(sb.dirblklog),
                format!("at most {most}: directory blocks end at 64 KiB"),
            );
        }
        let context = Context {
            block_size: sb.blocksize,
            sector_size: u32::from(sb.sectsize),
            inode_size: u32::from(sb.inodesize),
            dir_block_size: 1u32.checked_shl(dir_log).unwrap_or(sb.blocksize),
            features,
        };
        Ok(Self {
            block_log,
            data_blocks: sb.dblocks.0,
            ag_blocks: sb.agblocks,
            ag_count: sb.agcount.0,
            ag_block_log: u32::from(sb.agblklog),
            inodes_per_block_log,
            log_start: (sb.logstart.0 != 0).then_some(sb.logstart),
            log_blocks: sb.logblocks.0,
            realtime: Self::realtime(sb, zoned, &context, block_log),
            context,
        })
    }

    fn realtime(sb: &Superblock, zoned: (u64, u64), context: &Context, block_log: u32) -> Option<Realtime> {
        if sb.rblocks.0 == 0 || sb.rextsize == 0 {
            return None;
        }
        let features = &context.features;
        let groups = features.has_metadir().then_some(Groups {
            count: sb.rgcount,
            extents: sb.rgextents,
            block_log: sb.rgblklog.min(63),
            gaps: features.has_zone_gaps(),
        });
        let internal = features.has_zoned() && zoned.0 != 0;
        let start = if internal { zoned.0 } else { 0 };
        Some(Realtime {
            blocks: sb.rblocks.0,
            extents: sb.rextents.0,
            extent_blocks: sb.rextsize,
            groups,
            start_bytes: start.checked_shl(block_log).filter(|b| b >> block_log == start)?,
            device: if internal { Device::Data } else { Device::Rt },
        })
    }

    /// Block size in bytes.
    pub fn block_size(&self) -> u64 {
        u64::from(self.context.block_size)
    }

    /// Bytes that a number of blocks takes; `None` past 2^64.
    pub fn bytes_of(&self, blocks: Blocks) -> Option<u64> {
        blocks.0.checked_mul(self.block_size())
    }

    /// Bytes of the data section; `None` past 2^64.
    pub fn data_bytes(&self) -> Option<u64> {
        self.bytes_of(Blocks(self.data_blocks))
    }

    /// Blocks of an AG: agblocks, or what is left for the last one. `None` where there is no such AG.
    pub fn ag_length(&self, ag: AgNumber) -> Option<u32> {
        let last = self.ag_count.checked_sub(1)?;
        if ag.0 < last {
            return Some(self.ag_blocks);
        }
        if ag.0 > last {
            return None;
        }
        let before = u64::from(last).checked_mul(u64::from(self.ag_blocks))?;
        let rest = self.data_blocks.saturating_sub(before).min(u64::from(self.ag_blocks));
        u32::try_from(rest).ok()
    }

    /// First byte of an AG on the data device.
    pub fn ag_start(&self, ag: AgNumber) -> Option<ByteOffset> {
        if ag.0 >= self.ag_count {
            return None;
        }
        let blocks = u64::from(ag.0).checked_mul(u64::from(self.ag_blocks))?;
        self.bytes_of(Blocks(blocks)).map(ByteOffset)
    }

    /// First byte of header sector `sector` (0 superblock, 1 AGF, 2 AGI, 3 AGFL) of an AG.
    pub fn ag_header(&self, ag: AgNumber, sector: u32) -> Option<ByteOffset> {
        let within = u64::from(sector).checked_mul(u64::from(self.context.sector_size))?;
        self.ag_start(ag)?.checked_add(within)
    }

    /// AG and block of a block number; `None` where no such block exists.
    pub fn split(&self, block: FsBlock) -> Option<(AgNumber, AgBlock)> {
        let ag = AgNumber(u32::try_from(block.0.checked_shr(self.ag_block_log)?).ok()?);
        let mask = 1u64.checked_shl(self.ag_block_log)?.checked_sub(1)?;
        let within = AgBlock(u32::try_from(block.0 & mask).ok()?);
        (within.0 < self.ag_length(ag)?).then_some((ag, within))
    }

    /// Block number of a block of an AG; `None` where no such block exists.
    pub fn join(&self, ag: AgNumber, block: AgBlock) -> Option<FsBlock> {
        if block.0 >= self.ag_length(ag)? {
            return None;
        }
        Some(FsBlock(u64::from(ag.0).checked_shl(self.ag_block_log)? | u64::from(block.0)))
    }

    /// First byte of a block of the data device.
    pub fn block_byte(&self, block: FsBlock) -> Option<ByteOffset> {
        let (ag, within) = self.split(block)?;
        self.ag_block_byte(ag, within)
    }

    /// First byte of a block of an AG.
    pub fn ag_block_byte(&self, ag: AgNumber, block: AgBlock) -> Option<ByteOffset> {
        if block.0 >= self.ag_length(ag)? {
            return None;
        }
        self.ag_start(ag)?.checked_add(u64::from(block.0).checked_mul(self.block_size())?)
    }

    /// The block that holds a byte of the data device, and the byte within it.
    pub fn byte_block(&self, byte: ByteOffset) -> Option<(FsBlock, u32)> {
        let linear = byte.0.checked_shr(self.block_log)?;
        if linear >= self.data_blocks {
            return None;
        }
        let ag = AgNumber(u32::try_from(linear.checked_div(u64::from(self.ag_blocks))?).ok()?);
        let within = AgBlock(u32::try_from(linear.checked_rem(u64::from(self.ag_blocks))?).ok()?);
        let offset = u32::try_from(byte.0 & self.block_size().checked_sub(1)?).ok()?;
        Some((self.join(ag, within)?, offset))
    }

    /// AG and inode within it; `None` where the number lies outside the AGs.
    pub fn split_inode(&self, ino: Ino) -> Option<(AgNumber, AgIno)> {
        let shift = self.ag_block_log.checked_add(self.inodes_per_block_log)?;
        let ag = AgNumber(u32::try_from(ino.0.checked_shr(shift)?).ok()?);
        let mask = 1u64.checked_shl(shift)?.checked_sub(1)?;
        let agino = AgIno(u32::try_from(ino.0 & mask).ok()?);
        let block = agino.0.checked_shr(self.inodes_per_block_log)?;
        (block < self.ag_length(ag)?).then_some((ag, agino))
    }

    /// Inode number of an inode of an AG.
    pub fn join_inode(&self, ag: AgNumber, agino: AgIno) -> Option<Ino> {
        let block = agino.0.checked_shr(self.inodes_per_block_log)?;
        if block >= self.ag_length(ag)? {
            return None;
        }
        let shift = self.ag_block_log.checked_add(self.inodes_per_block_log)?;
        Some(Ino(u64::from(ag.0).checked_shl(shift)? | u64::from(agino.0)))
    }

    /// Where an inode lies: block, and byte within the block.
    pub fn inode_place(&self, ino: Ino) -> Option<(FsBlock, u32)> {
        let (ag, agino) = self.split_inode(ino)?;
        let block = AgBlock(agino.0.checked_shr(self.inodes_per_block_log)?);
        let index = agino.0 & 1u32.checked_shl(self.inodes_per_block_log)?.checked_sub(1)?;
        Some((self.join(ag, block)?, index.checked_mul(self.context.inode_size)?))
    }

    /// First byte of an inode on the data device.
    pub fn inode_byte(&self, ino: Ino) -> Option<ByteOffset> {
        let (block, within) = self.inode_place(ino)?;
        self.block_byte(block)?.checked_add(u64::from(within))
    }

    /// 512-byte address of a byte.
    pub fn daddr(&self, byte: ByteOffset) -> Daddr {
        Daddr(byte.0.checked_div(BASIC_BLOCK).unwrap_or(0))
    }

    /// First byte of a 512-byte address; `None` past 2^64.
    pub fn daddr_byte(&self, daddr: Daddr) -> Option<ByteOffset> {
        daddr.0.checked_mul(BASIC_BLOCK).map(ByteOffset)
    }
}

impl Realtime {
    /// Blocks of a group: all extents, or what is left for the last. `None` where there is no such group.
    pub fn group_blocks(&self, group: RgNumber) -> Option<u64> {
        let groups = self.groups.as_ref()?;
        let last = groups.count.checked_sub(1)?;
        if group.0 > last {
            return None;
        }
        let whole = u64::from(groups.extents).checked_mul(u64::from(self.extent_blocks))?;
        if group.0 < last {
            return Some(whole);
        }
        let before = whole.checked_mul(u64::from(last))?;
        let usable = self.extents.checked_mul(u64::from(self.extent_blocks))?.min(self.blocks);
        Some(usable.saturating_sub(before).min(whole))
    }

    /// Group and block of a realtime block number; without groups all blocks are in group 0.
    /// `None` where no such block exists.
    pub fn split(&self, block: RtBlock) -> Option<(RgNumber, u64)> {
        let Some(groups) = &self.groups else {
            return (block.0 < self.blocks).then_some((RgNumber(0), block.0));
        };
        let shift = u32::from(groups.block_log);
        let group = RgNumber(u32::try_from(block.0.checked_shr(shift)?).ok()?);
        let within = block.0 & 1u64.checked_shl(shift)?.checked_sub(1)?;
        (within < self.group_blocks(group)?).then_some((group, within))
    }

    /// Realtime block number of a block of a group.
    pub fn join(&self, group: RgNumber, block: RgBlock) -> Option<RtBlock> {
        self.join_wide(group, u64::from(block.0))
    }

    /// [`Self::join`] for sections without groups, whose one "group" can be larger than 2^32 blocks.
    fn join_wide(&self, group: RgNumber, block: u64) -> Option<RtBlock> {
        let Some(groups) = &self.groups else {
            return (group.0 == 0 && block < self.blocks).then_some(RtBlock(block));
        };
        if block >= self.group_blocks(group)? {
            return None;
        }
        Some(RtBlock(u64::from(group.0).checked_shl(u32::from(groups.block_log))? | block))
    }

    /// Blocks from the start of the section to a block, groups laid end to end (with gaps where the device has them).
    pub fn linear(&self, block: RtBlock) -> Option<u64> {
        let (group, within) = self.split(block)?;
        let Some(groups) = &self.groups else { return Some(within) };
        if groups.gaps {
            return Some(block.0);
        }
        let whole = u64::from(groups.extents).checked_mul(u64::from(self.extent_blocks))?;
        u64::from(group.0).checked_mul(whole)?.checked_add(within)
    }

    /// Realtime extent that holds a block, counted over all groups.
    pub fn extent_of(&self, block: RtBlock) -> Option<RtExtent> {
        let (group, within) = self.split(block)?;
        let extent = within.checked_div(u64::from(self.extent_blocks))?;
        let before = match &self.groups {
            Some(groups) => u64::from(group.0).checked_mul(u64::from(groups.extents))?,
            None => 0,
        };
        before.checked_add(extent).map(RtExtent)
    }
}

impl Geometry {
    /// Device and first byte of a realtime block. The bytes of an internal section count from the start of the
    /// data device.
    pub fn rt_block_byte(&self, block: RtBlock) -> Option<(Device, ByteOffset)> {
        let rt = self.realtime.as_ref()?;
        let bytes = self.bytes_of(Blocks(rt.linear(block)?))?;
        Some((rt.device, ByteOffset(rt.start_bytes.checked_add(bytes)?)))
    }

    /// The realtime block that holds a byte of its device, and the byte within it.
    pub fn byte_rt_block(&self, byte: ByteOffset) -> Option<(RtBlock, u32)> {
        let rt = self.realtime.as_ref()?;
        let within = byte.0.checked_sub(rt.start_bytes)?;
        let linear = within.checked_shr(self.block_log)?;
        let offset = u32::try_from(within & self.block_size().checked_sub(1)?).ok()?;
        let (group, rest) = match &rt.groups {
            None => (0, linear),
            Some(groups) if groups.gaps => {
                let block = RtBlock(linear);
                rt.split(block)?;
                return Some((block, offset));
            }
            Some(groups) => {
                let whole = u64::from(groups.extents).checked_mul(u64::from(rt.extent_blocks))?;
                (linear.checked_div(whole)?, linear.checked_rem(whole)?)
            }
        };
        Some((rt.join_wide(RgNumber(u32::try_from(group).ok()?), rest)?, offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Structure;
    use proptest::prelude::*;

    /// A superblock with these sizes; everything else as mkfs writes it.
    fn superblock(block_log: u8, agblocks: u32, agcount: u32, last: u32, inode_log: u8) -> Superblock {
        let mut sb = Superblock::decode(&[0; 288]).expect("288 bytes");
        sb.magicnum = crate::format::superblock::MAGIC;
        sb.versionnum = 0xb4b5;
        sb.blocksize = 1 << block_log;
        sb.blocklog = block_log;
        sb.sectsize = 512;
        sb.sectlog = 9;
        sb.inodesize = 1 << inode_log;
        sb.inodelog = inode_log;
        sb.inopblog = block_log - inode_log;
        sb.agblocks = agblocks;
        sb.agcount = AgNumber(agcount);
        sb.agblklog = agblocks.next_power_of_two().trailing_zeros() as u8;
        sb.dblocks = Blocks(u64::from(agblocks) * u64::from(agcount - 1) + u64::from(last.clamp(1, agblocks)));
        sb.rextsize = 1;
        sb
    }

    #[test]
    fn the_recorder_of_the_report() {
        // 32 AGs of 7380047 blocks, 236161504 blocks: no runt AG, agblklog 23.
        let g = Geometry::new(&superblock(12, 7_380_047, 32, 7_380_047, 8), (0, 0)).expect("sane");
        assert_eq!(g.data_blocks, 236_161_504);
        assert_eq!(g.ag_block_log, 23);
        assert_eq!(g.ag_length(AgNumber(31)), Some(7_380_047));
        assert_eq!(g.ag_length(AgNumber(32)), None);
        assert_eq!(g.ag_start(AgNumber(1)), Some(ByteOffset(30_228_672_512)));
    }

    #[test]
    fn refuses_what_nothing_can_be_computed_with() {
        let good = superblock(12, 1000, 4, 500, 9);
        let refused = |change: fn(&mut Superblock)| {
            let mut sb = good.clone();
            change(&mut sb);
            Geometry::new(&sb, (0, 0)).expect_err("impossible").field
        };
        assert_eq!(refused(|sb| sb.blocklog = 255), "blocklog");
        assert_eq!(refused(|sb| sb.blocksize = 0), "blocksize");
        assert_eq!(refused(|sb| sb.sectlog = 63), "sectlog");
        assert_eq!(refused(|sb| sb.agblocks = 0), "agblocks");
        assert_eq!(refused(|sb| sb.agblocks = u32::MAX), "agblklog");
        assert_eq!(refused(|sb| sb.agblklog = 0), "agblklog");
        assert_eq!(refused(|sb| sb.agcount = AgNumber(0)), "agcount");
        assert_eq!(refused(|sb| sb.dirblklog = 200), "dirblklog");
        assert_eq!(refused(|sb| sb.versionnum = 0), "versionnum");
    }

    #[test]
    fn zoned_bytes_count_from_the_data_device() {
        // Test image v5-zoned: rtstart 40960, 22 groups of 4096 extents, rgblklog 12.
        let mut sb = superblock(12, 10_240, 4, 10_240, 9);
        sb.features_incompat = 0x3eb;
        (sb.rblocks, sb.rextents) = (Blocks(22 * 4096), RtExtent(22 * 4096));
        (sb.rgcount, sb.rgextents, sb.rgblklog) = (22, 4096, 12);
        let g = Geometry::new(&sb, (40_960, 0)).expect("sane");
        assert_eq!(g.rt_block_byte(RtBlock(4096)), Some((Device::Data, ByteOffset((40_960 + 4096) * 4096))));
        assert_eq!(g.rt_block_byte(RtBlock(22 << 12)), None);
    }

    prop_compose! {
        fn any_geometry()(
            block_log in 9u8..=16, agblocks in 16u32..=u32::MAX >> 1, agcount in 1u32..=u32::MAX,
            last in any::<u32>(), inode_log in 8u8..=11,
            groups in any::<bool>(), gaps in any::<bool>(), zoned in any::<bool>(),
            rgextents in 2u32..1 << 24, rextsize in 1u32..1 << 10, rgcount in 1u32..1 << 20, tail in 0u64..1 << 30,
        ) -> Geometry {
            let mut sb = superblock(block_log.max(inode_log), agblocks, agcount, last, inode_log);
            sb.rextsize = rextsize;
            let whole = u64::from(rgextents) * u64::from(rextsize);
            let blocks = whole * u64::from(rgcount - 1) + 1 + tail % whole;
            (sb.rblocks, sb.rextents) = (Blocks(blocks), RtExtent(blocks / u64::from(rextsize)));
            if groups {
                sb.features_incompat = 0x1eb | if zoned { 0x200 } else { 0 } | if gaps { 0x400 } else { 0 };
                (sb.rgcount, sb.rgextents) = (rgcount, rgextents);
                sb.rgblklog = whole.next_power_of_two().trailing_zeros() as u8;
            }
            Geometry::new(&sb, (if zoned { 1 << 40 } else { 0 }, 0)).expect("sane by construction")
        }
    }

    proptest! {
        #[test]
        fn blocks_round_trip_or_are_refused(g in any_geometry(), raw in any::<u64>(), pick in any::<u64>()) {
            for block in [FsBlock(raw), FsBlock(pick % (u64::from(g.ag_count) << g.ag_block_log))] {
                if let Some((ag, within)) = g.split(block) {
                    prop_assert_eq!(g.join(ag, within), Some(block));
                    if let Some(byte) = g.block_byte(block) {
                        prop_assert_eq!(g.byte_block(byte), Some((block, 0)));
                        prop_assert_eq!(g.daddr_byte(g.daddr(byte)), Some(byte));
                    }
                }
            }
        }

        #[test]
        fn inodes_round_trip_or_are_refused(g in any_geometry(), raw in any::<u64>(), pick in any::<u64>()) {
            let shift = g.ag_block_log + g.inodes_per_block_log;
            for ino in [Ino(raw), Ino(pick % (u64::from(g.ag_count) << shift.min(31)))] {
                if let Some((ag, agino)) = g.split_inode(ino) {
                    prop_assert_eq!(g.join_inode(ag, agino), Some(ino));
                    let (block, within) = g.inode_place(ino).expect("exists");
                    prop_assert!(within < g.context.block_size);
                    prop_assert!(g.split(block).is_some());
                }
            }
        }

        #[test]
        fn realtime_blocks_round_trip_or_are_refused(g in any_geometry(), raw in any::<u64>(), pick in any::<u64>()) {
            let rt = g.realtime.as_ref().expect("has one");
            let space = rt.groups.as_ref().map_or(rt.blocks, |x| u64::from(x.count) << x.block_log);
            for block in [RtBlock(raw), RtBlock(pick % space)] {
                if let Some((group, within)) = rt.split(block) {
                    let within = RgBlock(u32::try_from(within).unwrap_or(u32::MAX));
                    if within.0 != u32::MAX {
                        prop_assert_eq!(rt.join(group, within), Some(block));
                    }
                    if let Some((_, byte)) = g.rt_block_byte(block) {
                        prop_assert_eq!(g.byte_rt_block(byte), Some((block, 0)));
                    }
                }
            }
        }

        #[test]
        fn no_superblock_panics(bytes in proptest::collection::vec(any::<u8>(), 304)) {
            let sb = Superblock::decode(&bytes).expect("long enough");
            if let Ok(g) = Geometry::new(&sb, crate::format::superblock::zoned_part(&bytes)) {
                let _ = (g.data_bytes(), g.ag_length(AgNumber(g.ag_count - 1)), g.rt_block_byte(RtBlock(1)));
            }
        }
    }
}
