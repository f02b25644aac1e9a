//! One address in every unit, with the arithmetic. The units are those of xfs_db's `convert` and `rtconvert`.
//!
//! Every address is brought to a byte of its section, checked on the way, and taken apart again from there: an address
//! that does not exist is refused, not wrapped.

use crate::format::rtbitmap::words_per_block;
use crate::geometry::{Geometry, Realtime};
use crate::units::{AgBlock, AgIno, AgNumber, BASIC_BLOCK, ByteOffset, Daddr, Device, FsBlock, Ino, RgNumber, RtBlock};

macro_rules! kinds {
    ($( $(#[doc = $doc:literal])* $kind:ident, $name:literal $(, $alias:literal)* ; )*) => {
        /// The units.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $( $(#[doc = $doc])* $kind, )* }

        impl Kind {
            /// All units.
            pub const ALL: &'static [Self] = &[ $( Self::$kind, )* ];
            /// The unit of that name, as xfs_db calls it.
            pub fn by_name(name: &str) -> Option<Self> {
                match name { $( $name $( | $alias )* => Some(Self::$kind), )* _ => None }
            }
            /// xfs_db's first name.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$kind => $name, )* }
            }
            /// Meaning, a few words.
            pub const fn doc(self) -> &'static str {
                match self { $( Self::$kind => concat!($($doc),*).trim_ascii(), )* }
            }
        }
    };
}

kinds! {
    /// AG
    AgNumber, "agnumber", "agno";
    /// block of the AG
    AgBlock, "agblock", "agbno";
    /// inode of the AG
    AgIno, "agino", "aginode";
    /// block of the data section
    FsBlock, "fsblock", "fsb", "fsbno";
    /// inode
    Ino, "ino", "inode";
    /// realtime group
    RgNumber, "rgnumber", "rgno";
    /// block of the realtime group
    RgBlock, "rgblock", "rgbno";
    /// block of the realtime section
    RtBlock, "rtblock", "rtb", "rtbno";
    /// realtime extent, counted through all groups
    Rtx, "rtx", "rtextent";
    /// block of the realtime bitmap (of its group)
    RbmBlock, "rbmblock", "rbmb";
    /// word of that block
    RbmWord, "rbmword", "rbmw";
    /// level of the realtime summary
    RsumLog, "rsumlog", "rsml";
    /// block of the realtime summary (of its group)
    RsumBlock, "rsumblock", "rsmb";
    /// word of that block
    RsumInfo, "rsuminfo", "rsmi";
    /// 512-byte unit of the device
    Daddr, "daddr", "bb";
    /// byte of the device
    Byte, "byte", "fsbyte";
    /// inode of the block
    InoIdx, "inoidx", "offset";
    /// byte of the inode
    InoOff, "inooff", "inodeoff";
    /// byte of the block
    BlkOff, "blkoff", "fsboff", "agboff";
    /// byte of the 512-byte unit
    BbOff, "bboff", "daddroff";
}

impl Kind {
    /// Does it exist in the realtime section only?
    pub fn is_realtime(self) -> bool {
        use Kind::{RbmBlock, RbmWord, RgBlock, RgNumber, RsumBlock, RsumInfo, RsumLog, RtBlock, Rtx};
        matches!(self, RgNumber | RgBlock | RtBlock | Rtx | RbmBlock | RbmWord | RsumLog | RsumBlock | RsumInfo)
    }

    /// May it be given along with `other`?
    fn goes_with(self, other: Self) -> bool {
        use Kind::{AgBlock, AgIno, AgNumber, BbOff, BlkOff, Daddr, FsBlock, Ino, InoIdx, InoOff};
        use Kind::{RbmBlock, RbmWord, RgBlock, RgNumber, RsumBlock, RsumInfo, RsumLog, RtBlock};
        let pairs: &[(Self, &[Self])] = &[
            (AgNumber, &[AgBlock, AgIno, BbOff, BlkOff, InoIdx, InoOff]),
            (AgBlock, &[BbOff, BlkOff, InoIdx, InoOff]),
            (AgIno, &[InoOff]),
            (FsBlock, &[BbOff, BlkOff, InoIdx, InoOff]),
            (Ino, &[InoOff]),
            (Daddr, &[BbOff]),
            (InoIdx, &[InoOff]),
            (RgNumber, &[RgBlock, RbmBlock, RbmWord, RsumLog, RsumBlock, RsumInfo, BbOff, BlkOff]),
            (RgBlock, &[BbOff, BlkOff, RsumLog]),
            (RtBlock, &[BbOff, BlkOff, RsumLog]),
            (Kind::Rtx, &[BbOff, BlkOff, RsumLog]),
            (RbmBlock, &[RbmWord, RsumLog]),
            (RbmWord, &[RsumLog]),
            (RsumBlock, &[RsumInfo]),
        ];
        let listed = |a, b| pairs.iter().any(|(first, seconds)| *first == a && seconds.contains(&b));
        listed(self, other) || listed(other, self)
    }
}

/// A value in one unit, and how it comes about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The unit.
    pub kind: Kind,
    /// The value.
    pub value: u64,
    /// The arithmetic.
    pub how: String,
}

/// An address in every unit that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// Its device.
    pub device: Device,
    /// Its byte on that device.
    pub byte: ByteOffset,
    /// The units.
    pub units: Vec<Unit>,
    /// Units that were taken as 0 because they were not given.
    pub assumed: Vec<Kind>,
}

impl Converted {
    fn new(device: Device, byte: ByteOffset) -> Self {
        Self { device, byte, units: Vec::new(), assumed: Vec::new() }
    }

    fn put(&mut self, kind: Kind, value: u64, how: impl Into<String>) {
        self.units.push(Unit { kind, value, how: how.into() });
    }
}

/// The values that were given.
struct Given<'a> {
    pairs: &'a [(Kind, u64)],
}

impl Given<'_> {
    fn get(&self, kind: Kind) -> Option<u64> {
        self.pairs.iter().find(|(k, _)| *k == kind).map(|(_, value)| *value)
    }

    /// A value that must be below `limit`; 0 where it was not given.
    fn below(&self, kind: Kind, limit: u64, of: &str) -> Result<u64, String> {
        let value = self.get(kind).unwrap_or(0);
        if value < limit {
            return Ok(value);
        }
        let last = limit.checked_sub(1).map_or("there is none".to_owned(), |last| format!("0 to {last}"));
        Err(format!("{} {value} does not exist: {of} has {limit} ({last})", kind.name()))
    }
}

fn missing(kind: Kind, value: u64) -> String {
    format!("{} {value} does not exist in this file system", kind.name())
}

/// Converts an address given in one unit or in several that belong together (`agnumber 1 agblock 5`).
///
/// # Errors
/// What is wrong with it, in one sentence.
pub fn convert(geometry: &Geometry, pairs: &[(Kind, u64)], realtime: bool) -> Result<Converted, String> {
    for (i, (kind, _)) in pairs.iter().enumerate() {
        for (other, _) in pairs.iter().skip(i.saturating_add(1)) {
            if !kind.goes_with(*other) {
                return Err(format!("{} and {} cannot be given together", kind.name(), other.name()));
            }
        }
    }
    let given = Given { pairs };
    if realtime || pairs.iter().any(|(kind, _)| kind.is_realtime()) {
        let Some(rt) = &geometry.realtime else { return Err("there is no realtime section".to_owned()) };
        return from_realtime(geometry, rt, &given);
    }
    from_data(geometry, &given)
}

/// To the byte of the data section, and from there to all units.
fn from_data(geometry: &Geometry, given: &Given<'_>) -> Result<Converted, String> {
    use Kind::{AgBlock as AgBlk, AgIno as AgI, BbOff, BlkOff, InoIdx, InoOff};
    let (block_size, inode_size) = (geometry.block_size(), u64::from(geometry.context.inode_size));
    let per_block = 1u64 << geometry.inodes_per_block_log;
    let ag = given.below(Kind::AgNumber, u64::from(geometry.ag_count), "the file system")?;
    let ag = AgNumber(u32::try_from(ag).unwrap_or(u32::MAX));
    let mut assumed = Vec::new();
    let needs_ag = [AgBlk, AgI, BbOff, BlkOff, InoIdx, InoOff];
    let first =
        given.pairs.iter().map(|(kind, _)| *kind).find(|kind| !matches!(kind, BbOff | BlkOff | InoIdx | InoOff));
    if given.get(Kind::AgNumber).is_none() && first.is_none_or(|kind| needs_ag.contains(&kind)) {
        assumed.push(Kind::AgNumber);
    }
    let base = if let Some(byte) = given.get(Kind::Byte) {
        Some(ByteOffset(byte)).ok_or(Kind::Byte)
    } else if let Some(daddr) = given.get(Kind::Daddr) {
        geometry.daddr_byte(Daddr(daddr)).ok_or(Kind::Daddr)
    } else if let Some(block) = given.get(Kind::FsBlock) {
        geometry.block_byte(FsBlock(block)).ok_or(Kind::FsBlock)
    } else if let Some(ino) = given.get(Kind::Ino) {
        geometry.inode_byte(Ino(ino)).ok_or(Kind::Ino)
    } else if let Some(agino) = given.get(AgI) {
        let ino = u32::try_from(agino).ok().and_then(|agino| geometry.join_inode(ag, AgIno(agino)));
        ino.and_then(|ino| geometry.inode_byte(ino)).ok_or(AgI)
    } else {
        let block = given.get(AgBlk).unwrap_or(0);
        let block = u32::try_from(block).ok();
        block.and_then(|block| geometry.ag_block_byte(ag, AgBlock(block))).ok_or(AgBlk)
    };
    let base = base.map_err(|kind| missing(kind, given.get(kind).unwrap_or(0)))?;
    let within = given
        .below(BlkOff, block_size, "a block")?
        .saturating_add(given.below(BbOff, BASIC_BLOCK, "a 512-byte unit")?)
        .saturating_add(given.below(InoIdx, per_block, "a block")?.saturating_mul(inode_size))
        .saturating_add(given.below(InoOff, inode_size, "an inode")?);
    let byte = base.checked_add(within);
    let end = geometry.data_bytes().unwrap_or(u64::MAX);
    let byte = byte.filter(|byte| byte.0 < end).ok_or_else(|| {
        let text: Vec<String> = given.pairs.iter().map(|(kind, value)| format!("{} {value}", kind.name())).collect();
        format!("{} lies past the end: the data section has {end} bytes", text.join(" "))
    })?;
    let mut out = data(geometry, byte).ok_or_else(|| missing(Kind::Byte, byte.0))?;
    out.assumed = assumed;
    Ok(out)
}

/// A byte of the data section in all units.
fn data(geometry: &Geometry, byte: ByteOffset) -> Option<Converted> {
    let (block, within) = geometry.byte_block(byte)?;
    let (ag, agblock) = geometry.split(block)?;
    let (size, inode_size) = (geometry.block_size(), geometry.context.inode_size);
    let log = geometry.inodes_per_block_log;
    let index = within.checked_div(inode_size)?;
    let agino = AgIno(agblock.0.checked_shl(log)? | index);
    let ino = geometry.join_inode(ag, agino)?;
    let linear = byte.0.checked_div(size)?;
    let mut out = Converted::new(Device::Data, byte);
    out.put(Kind::AgNumber, ag.get(), format!("block {linear} from the start / agblocks {}", geometry.ag_blocks));
    out.put(Kind::AgBlock, agblock.get(), format!("block {linear} % agblocks {}", geometry.ag_blocks));
    out.put(Kind::AgIno, agino.get(), format!("{agblock} << {log} (inopblog) | {index}"));
    out.put(Kind::FsBlock, block.0, format!("{ag} << {} (agblklog) | {agblock}", geometry.ag_block_log));
    let shift = geometry.ag_block_log.saturating_add(log);
    out.put(Kind::Ino, ino.0, format!("{ag} << {shift} (agblklog + inopblog) | {agino}"));
    let ag_blocks = geometry.ag_blocks;
    out.put(Kind::Daddr, geometry.daddr(byte).0, format!("byte {byte} / 512"));
    out.put(Kind::Byte, byte.0, format!("({ag} x agblocks {ag_blocks} + {agblock}) x blocksize {size} + {within}"));
    out.put(Kind::InoIdx, u64::from(index), format!("blkoff {within} / inodesize {inode_size}"));
    out.put(
        Kind::InoOff,
        u64::from(within.checked_rem(inode_size)?),
        format!("blkoff {within} % inodesize {inode_size}"),
    );
    out.put(Kind::BlkOff, u64::from(within), format!("byte {byte} % blocksize {size}"));
    out.put(Kind::BbOff, byte.0 % BASIC_BLOCK, format!("byte {byte} % 512"));
    Some(out)
}

/// Extents that one block of the bitmap stands for; 0 where there is no bitmap.
fn per_bitmap_block(geometry: &Geometry) -> u64 {
    if geometry.context.features.has_zoned() {
        0
    } else {
        u64::from(words_per_block(&geometry.context)).saturating_mul(32)
    }
}

/// Extents of a whole group, or of the section.
fn group_extents(rt: &Realtime) -> u64 {
    rt.groups.as_ref().map_or(rt.extents, |groups| u64::from(groups.extents))
}

/// Blocks of the bitmap of a whole group, which is what the summary counts by.
fn bitmap_blocks(geometry: &Geometry, rt: &Realtime) -> u64 {
    match per_bitmap_block(geometry) {
        0 => 0,
        per => group_extents(rt).div_ceil(per),
    }
}

fn from_realtime(geometry: &Geometry, rt: &Realtime, given: &Given<'_>) -> Result<Converted, String> {
    use Kind::{BbOff, BlkOff, RbmBlock, RbmWord, RgBlock, RsumBlock, RsumInfo, RsumLog, Rtx};
    let size = geometry.block_size();
    let groups = rt.groups.as_ref().map_or(1, |groups| groups.count);
    let group = given.below(Kind::RgNumber, u64::from(groups), "the realtime section")?;
    let group = RgNumber(u32::try_from(group).unwrap_or(u32::MAX));
    let per_extent = u64::from(rt.extent_blocks);
    let words = u64::from(words_per_block(&geometry.context));
    let bitmap = bitmap_blocks(geometry, rt);
    let mut level = given.get(RsumLog);
    let mut assumed = Vec::new();
    let in_group = [RgBlock, RbmBlock, RbmWord, RsumBlock, RsumInfo];
    if rt.groups.is_some()
        && given.get(Kind::RgNumber).is_none()
        && in_group.iter().any(|kind| given.get(*kind).is_some())
    {
        assumed.push(Kind::RgNumber);
    }
    let at_group = |extent: u64, kind: Kind| {
        let block = extent.checked_mul(per_extent).and_then(|within| join(rt, group, within));
        block.ok_or_else(|| missing(kind, given.get(kind).unwrap_or(0)))
    };
    let block = if let Some(block) = given.get(Kind::RtBlock) {
        RtBlock(block)
    } else if let Some(extent) = given.get(Rtx) {
        let per_group = group_extents(rt).max(1);
        let group = RgNumber(u32::try_from(extent / per_group).unwrap_or(u32::MAX));
        let within = (extent % per_group).checked_mul(per_extent);
        within.and_then(|within| join(rt, group, within)).ok_or_else(|| missing(Rtx, extent))?
    } else if let Some(block) = given.get(RgBlock) {
        join(rt, group, block).ok_or_else(|| missing(RgBlock, block))?
    } else if given.get(RsumBlock).is_some() || given.get(RsumInfo).is_some() {
        let word = given.below(RsumInfo, words, "a block of the summary")?;
        let offset = given.get(RsumBlock).unwrap_or(0).checked_mul(words).and_then(|n| n.checked_add(word));
        let offset =
            offset.filter(|_| bitmap > 0).ok_or_else(|| missing(RsumBlock, given.get(RsumBlock).unwrap_or(0)))?;
        level = Some(offset / bitmap.max(1));
        at_group((offset % bitmap.max(1)).saturating_mul(per_bitmap_block(geometry)), RsumBlock)?
    } else if given.get(RbmBlock).is_some() || given.get(RbmWord).is_some() {
        let block = given.below(RbmBlock, bitmap, "the bitmap")?;
        let word = given.below(RbmWord, words, "a block of the bitmap")?;
        let extent = block.saturating_mul(words).saturating_add(word).saturating_mul(32);
        at_group(extent, if given.get(RbmWord).is_some() { RbmWord } else { RbmBlock })?
    } else if given.get(Kind::Byte).is_some() || given.get(Kind::Daddr).is_some() {
        let byte = match given.get(Kind::Daddr) {
            Some(daddr) => geometry.daddr_byte(Daddr(daddr)).ok_or_else(|| missing(Kind::Daddr, daddr))?,
            None => ByteOffset(given.get(Kind::Byte).unwrap_or(0)),
        };
        let kind = if given.get(Kind::Daddr).is_some() { Kind::Daddr } else { Kind::Byte };
        let byte = byte.checked_add(given.below(BbOff, BASIC_BLOCK, "a 512-byte unit")?).unwrap_or(byte);
        let found = geometry.byte_rt_block(byte);
        let (block, within) = found.ok_or_else(|| missing(kind, given.get(kind).unwrap_or(0)))?;
        let mut out = rt_units(geometry, rt, (block, u64::from(within)), level)?;
        out.assumed = assumed;
        return Ok(out);
    } else {
        join(rt, group, 0).ok_or_else(|| missing(Kind::RgNumber, group.get()))?
    };
    let within =
        given.below(BlkOff, size, "a block")?.saturating_add(given.below(BbOff, BASIC_BLOCK, "a 512-byte unit")?);
    let mut out = rt_units(geometry, rt, (block, within), level)?;
    out.assumed = assumed;
    Ok(out)
}

/// Block of the section from group and block within it.
fn join(rt: &Realtime, group: RgNumber, within: u64) -> Option<RtBlock> {
    let shift = rt.groups.as_ref().map_or(0, |groups| u32::from(groups.block_log));
    let block = RtBlock(u64::from(group.0).checked_shl(shift)?.checked_add(within)?);
    (rt.split(block)? == (group, within)).then_some(block)
}

/// A byte of a block of the realtime section in all units; of the summary, the word of `level`.
fn rt_units(
    geometry: &Geometry,
    rt: &Realtime,
    (block, within): (RtBlock, u64),
    level: Option<u64>,
) -> Result<Converted, String> {
    let lost = || missing(Kind::RtBlock, block.0);
    let size = geometry.block_size();
    let (group, in_group) = rt.split(block).ok_or_else(lost)?;
    let (device, start) = geometry.rt_block_byte(block).ok_or_else(lost)?;
    let byte = start.checked_add(within).ok_or_else(lost)?;
    let per_extent = u64::from(rt.extent_blocks).max(1);
    let extent = in_group / per_extent;
    let mut out = Converted::new(device, byte);
    if let Some(groups) = &rt.groups {
        out.put(Kind::RgNumber, group.get(), format!("rtblock {block} >> {} (rgblklog)", groups.block_log));
        out.put(
            Kind::RgBlock,
            in_group,
            format!("rtblock {block} & {:#x}", (1u64 << groups.block_log.min(63)).wrapping_sub(1)),
        );
        out.put(Kind::RtBlock, block.0, format!("{group} << {} (rgblklog) | {in_group}", groups.block_log));
        let all = u64::from(group.0).saturating_mul(u64::from(groups.extents)).saturating_add(extent);
        let how = format!("{group} x rgextents {} + rgblock {in_group} / rextsize {per_extent}", groups.extents);
        out.put(Kind::Rtx, all, how);
    } else {
        out.put(Kind::RtBlock, block.0, format!("(byte {byte} - {}) / blocksize {size}", rt.start_bytes));
        out.put(Kind::Rtx, extent, format!("rtblock {block} / rextsize {per_extent}"));
    }
    let words = u64::from(words_per_block(&geometry.context)).max(1);
    let bitmap = bitmap_blocks(geometry, rt);
    if bitmap > 0 {
        let (word, bit) = (extent / 32, extent % 32);
        let (in_block, rbmblock) = (word % words, word / words);
        let which = if rt.groups.is_some() { format!("extent {extent} of the group") } else { format!("rtx {extent}") };
        out.put(Kind::RbmBlock, rbmblock, format!("{which} / 32 / {words} words of a block"));
        out.put(Kind::RbmWord, in_block, format!("{which} / 32 % {words}; bit {bit} of the word"));
        if let Some(level) = level {
            let levels = u64::from(group_extents(rt).checked_ilog2().unwrap_or(0)).saturating_add(1);
            if level >= levels {
                return Err(format!(
                    "rsumlog {level} does not exist: the summary has {levels} levels (0 to {})",
                    levels - 1
                ));
            }
            let offset = level.saturating_mul(bitmap).saturating_add(rbmblock);
            out.put(Kind::RsumLog, level, "free runs of 2^rsumlog to 2^(rsumlog + 1) - 1 extents");
            let how = format!("(rsumlog {level} x rbmblocks {bitmap} + rbmblock {rbmblock})");
            out.put(Kind::RsumBlock, offset / words, format!("{how} / {words} words of a block"));
            out.put(Kind::RsumInfo, offset % words, format!("{how} % {words}"));
        }
    }
    out.put(Kind::Daddr, geometry.daddr(byte).0, format!("byte {byte} / 512"));
    let linear = rt.linear(block).ok_or_else(lost)?;
    let start = if rt.start_bytes > 0 { format!("rtstart {} + ", rt.start_bytes) } else { String::new() };
    out.put(Kind::Byte, byte.0, format!("{start}block {linear} from the start x blocksize {size} + {within}"));
    out.put(Kind::BlkOff, within, format!("byte {byte} % blocksize {size}"));
    out.put(Kind::BbOff, byte.0 % BASIC_BLOCK, format!("byte {byte} % 512"));
    Ok(out)
}
