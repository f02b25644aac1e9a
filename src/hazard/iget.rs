//! What a kernel tests before it takes an inode: rows of data, each with the moment and the releases.
//!
//! A mount loads a few inodes ([`super::deep`]), and fails where one of them fails its tests. A [`Test`] is the kernel's
//! own condition, no more and no less, as read in the sources of 5.10, 6.1, 6.12 and 7.2 (`xfs_inode_buf_verify`,
//! `xfs_dinode_verify`, `xfs_iformat_data_fork`, `xfs_iformat_attr_fork`, `xfs_ifork_verify_local_data`,
//! `xfs_trans_metafile_iget`) and in those of older releases where a test of 2.6.36 to 4.19 is named. `check` asks for more
//! than any kernel: what scrub and xfs_repair ask for, too.
//!
//! Where stable releases of 5.10 or 6.1 differ from their first one, the row speaks of the stable one (5.10.223, 6.1.176).

use super::kernel::{ALWAYS, NEVER, Version, v};
use crate::check::finding::{Mismatch, RuleInfo};
use crate::check::inobt::Layout;
use crate::check::{attr, dinode as fields, dir, forks, inode as identity, metafile, rt};
use crate::format::bits;
use crate::format::bmbt::Extent;
use crate::format::checksum::CrcState;
use crate::format::dinode::{Fork, flags, flags2, fork_format, metatype, mode};
use crate::format::dinode_view::Kind;
use crate::format::on_disk::Uuid;
use crate::units::{AgIno, AgNumber, FsBlock, Ino, RtBlock};
use crate::volume::Volume;
use crate::walk::Inode;
use std::ops::Range;

/// The moment of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// When any inode of the cluster is read or written.
    Cluster,
    /// When the inode is read.
    Read,
    /// When a mount takes the inode for what the superblock says it is.
    Mount,
}

impl At {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cluster => "when any inode of its cluster is read or written",
            Self::Read => "when the inode is read",
            Self::Mount => "at mount",
        }
    }
}

/// What a mount loads an inode as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Root directory.
    Root,
    /// A directory of the metadata directory, its root among them.
    Metadir,
    /// Bitmap or summary without realtime groups.
    Map,
    /// A file of a realtime group: its kind and its group.
    Group(u16, u32),
}

/// A test of kernels.
#[derive(Debug)]
pub struct Test {
    /// What it is about, in a few words.
    pub what: &'static str,
    /// The field that decides.
    pub field: &'static str,
    /// The rule of the check that says the same.
    pub rule: &'static RuleInfo,
    /// When it is made.
    pub at: At,
    /// By which releases.
    pub kernels: &'static [Range<Version>],
    /// Kernel file and function.
    pub source: &'static str,
    /// The condition.
    test: fn(&Subject<'_>) -> Option<Mismatch>,
}

impl Test {
    /// Its releases in words.
    pub fn releases(&self) -> String {
        releases(self.kernels)
    }
}

/// The tests that say the same as a rule of the check.
pub fn tests_of(rule: &RuleInfo) -> impl Iterator<Item = &'static Test> + use<'_> {
    TESTS.iter().filter(move |test| test.rule.id == rule.id)
}

/// Ranges of releases in words.
fn releases(ranges: &[Range<Version>]) -> String {
    let name = |range: &Range<Version>| match (range.start == ALWAYS, range.end == NEVER) {
        (true, true) => "all releases".to_owned(),
        (true, false) => format!("before {}", range.end),
        (false, true) => format!("{} and later", range.start),
        (false, false) => format!("{} to before {}", range.start, range.end),
    };
    ranges.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// A test that an inode fails.
#[derive(Clone, Debug)]
pub struct Failed {
    /// Which.
    pub test: &'static Test,
    /// With which numbers.
    pub mismatch: Mismatch,
    /// By which releases.
    pub kernels: Vec<Range<Version>>,
}

impl Failed {
    /// Does that release refuse the inode for it?
    pub fn covers(&self, version: Version) -> bool {
        self.kernels.iter().any(|range| range.contains(&version))
    }

    /// The releases in words.
    pub fn releases(&self) -> String {
        releases(&self.kernels)
    }
}

/// From here on the flag nrext64 says where the extent counts stand; before, it is not known.
const LARGE_COUNTS: Version = v(5, 19);

/// From here on the levels of an extent btree are bounded by what the file system can hold, before, by 9.
const COMPUTED_LEVELS: Version = v(5, 16);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    Old,
    New,
}

/// The file system as the tests see it.
#[derive(Debug)]
pub struct Mounted<'v> {
    volume: &'v Volume,
    layout: Layout,
    uuid: Uuid,
}

impl<'v> Mounted<'v> {
    /// From its superblock.
    pub fn new(volume: &'v Volume) -> Self {
        Self { volume, layout: Layout::of(volume), uuid: volume.superblock().metadata_uuid() }
    }

    /// How inodes lie.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Tests that another inode of the cluster fails: none of the cluster can be read then. `first`: it begins the cluster.
    pub fn cluster(&self, inode: Inode<'_>, first: bool) -> Vec<Failed> {
        self.failed(inode, None, move |test| {
            test.at == At::Cluster && (first || !test.kernels.iter().all(|range| range.end <= v(3, 8)))
        })
    }

    /// Tests that an inode fails which is loaded as `role`.
    pub fn loaded(&self, inode: Inode<'_>, role: Role) -> Vec<Failed> {
        self.failed(inode, Some(role), |test| test.at != At::Cluster)
    }

    fn failed(&self, inode: Inode<'_>, role: Option<Role>, which: impl Fn(&Test) -> bool) -> Vec<Failed> {
        let old = Subject { fs: self, inode, counts: Counts::Old, role };
        let new = Subject { counts: Counts::New, ..old };
        let (mut list, oldest) = (Vec::new(), self.oldest());
        for test in TESTS.iter().filter(|test| which(test)) {
            let before = if oldest >= LARGE_COUNTS { None } else { (test.test)(&old) };
            let since = (test.test)(&new);
            let span = match (&before, &since) {
                (None, None) => continue,
                (Some(_), None) => ALWAYS..LARGE_COUNTS,
                (None, Some(_)) => LARGE_COUNTS..NEVER,
                (Some(_), Some(_)) => ALWAYS..NEVER,
            };
            let cut = |range: &Range<Version>| range.start.max(span.start).max(oldest)..range.end.min(span.end);
            let kernels: Vec<_> = test.kernels.iter().map(cut).filter(|range| !range.is_empty()).collect();
            if let (Some(mismatch), false) = (since.or(before), kernels.is_empty()) {
                list.push(Failed { test, mismatch, kernels });
            }
        }
        list
    }

    /// The oldest release that knows the format: before it nothing is mounted, so nothing is tested.
    fn oldest(&self) -> Version {
        let f = &self.volume.context().features;
        let known = [
            (f.has_zoned(), v(6, 15)),
            (f.has_metadir(), v(6, 13)),
            (f.has_parent() || f.has_exchange(), v(6, 10)),
            (f.has_nrext64(), LARGE_COUNTS),
            (f.has_bigtime(), v(5, 10)),
            (f.is_v5(), v(3, 10)),
        ];
        known.into_iter().find_map(|(has, version)| has.then_some(version)).unwrap_or(ALWAYS)
    }

    /// Numbers that inodes of an AG can have (`xfs_agino_range`).
    fn aginos(&self, ag: AgNumber) -> Range<u32> {
        let length = self.volume.geometry().ag_length(ag).unwrap_or(0);
        self.layout.inodes(self.volume.geometry(), length)
    }

    /// May a directory name it (`xfs_verify_dir_ino`)?
    fn is_file(&self, ino: u64) -> bool {
        let (sb, features) = (self.volume.superblock(), &self.volume.context().features);
        let quota = features.has_quota() && [sb.uquotino, sb.gquotino, sb.pquotino].contains(&Ino(ino));
        if quota || sb.rbmino.0 == ino || sb.rsumino.0 == ino {
            return false;
        }
        let split = self.volume.geometry().split_inode(Ino(ino));
        split.is_some_and(|(ag, agino)| self.aginos(ag).contains(&agino.0))
    }
}

/// An inode, and how a kernel looks at it.
#[derive(Clone, Copy)]
struct Subject<'s> {
    fs: &'s Mounted<'s>,
    inode: Inode<'s>,
    counts: Counts,
    role: Option<Role>,
}

impl Subject<'_> {
    fn features(&self) -> &crate::format::features::Features {
        &self.fs.volume.context().features
    }
    fn kind(&self) -> u16 {
        self.inode.mode() & mode::TYPE
    }
    fn used(&self) -> bool {
        self.inode.mode() != 0
    }
    fn is(&self, kinds: &[u16]) -> bool {
        kinds.contains(&self.kind())
    }
    fn has_forks(&self) -> bool {
        self.is(&[mode::REGULAR, mode::SYMLINK, mode::DIRECTORY])
    }
    fn flag(&self, bit: u16) -> bool {
        self.inode.flags() & bit != 0
    }
    fn flag2(&self, bit: u64) -> bool {
        self.inode.flags2() & bit != 0
    }
    fn large(&self) -> bool {
        self.counts == Counts::New && self.flag2(flags2::NREXT64)
    }
    fn count(&self, fork: Fork) -> u64 {
        let bytes = self.inode.bytes();
        match self.counts {
            Counts::New => self.inode.extents(fork),
            Counts::Old if fork == Fork::Data => bits::be32(bytes, 76).unwrap_or(0).into(),
            Counts::Old => bits::be16(bytes, 80).unwrap_or(0).into(),
        }
    }
    fn both(&self) -> u64 {
        self.count(Fork::Data).saturating_add(self.count(Fork::Attr))
    }
    fn literal(&self) -> u64 {
        let header = if self.fs.volume.context().has_crc() { 176 } else { 100 };
        u64::from(self.fs.volume.context().inode_size).saturating_sub(header)
    }
    /// Bytes of a fork (`XFS_DFORK_SIZE`).
    fn room(&self, fork: Fork) -> u64 {
        let split = u64::from(self.inode.forkoff()).saturating_mul(8);
        match fork {
            Fork::Data if split != 0 => split,
            Fork::Data => self.literal(),
            Fork::Attr if split != 0 => self.literal().saturating_sub(split),
            Fork::Attr => 0,
        }
    }
    fn format(&self, fork: Fork) -> u8 {
        self.inode.format(fork)
    }
    /// Is the fork looked at at all, and in this form?
    fn formed(&self, fork: Fork, format: u8) -> bool {
        let there = if fork == Fork::Data { self.has_forks() } else { self.used() && self.inode.forkoff() != 0 };
        there && self.format(fork) == format
    }
    fn bytes(&self, fork: Fork) -> &[u8] {
        let start = self.literal_start().saturating_add(if fork == Fork::Attr { self.room(Fork::Data) } else { 0 });
        let bytes = self.inode.bytes();
        let start = usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len());
        let length = usize::try_from(self.room(fork)).unwrap_or(usize::MAX);
        let rest = bytes.get(start..).unwrap_or(&[]);
        rest.get(..length.min(rest.len())).unwrap_or(&[])
    }
    fn literal_start(&self) -> u64 {
        u64::from(self.fs.volume.context().inode_size).saturating_sub(self.literal())
    }
    fn size(&self) -> u64 {
        self.inode.size().cast_unsigned()
    }
    fn half_ag(&self) -> u32 {
        self.fs.volume.geometry().ag_blocks / 2
    }
    /// Blocks in bytes as the kernel multiplies them, in 32 bits; is `hint` a multiple of the unit?
    fn misfits(&self, hint: u32, realtime: bool) -> bool {
        let block = self.fs.volume.context().block_size;
        let unit = if realtime { block.wrapping_mul(self.fs.volume.superblock().rextsize) } else { block };
        hint.wrapping_mul(block).checked_rem(unit).is_some_and(|rest| rest != 0)
    }
    fn extents(&self, fork: Fork) -> Vec<Extent> {
        let most = self.room(fork) / 16;
        let count = usize::try_from(self.count(fork).min(most)).unwrap_or(0);
        let bytes = self.bytes(fork);
        (0..count).filter_map(|i| Extent::at(bytes, i.checked_mul(16)?)).collect()
    }
    /// Can there be such an extent (`xfs_bmap_validate_extent`)?
    fn bad_extent(&self, fork: Fork) -> Option<Mismatch> {
        if !self.formed(fork, fork_format::EXTENTS) {
            return None;
        }
        let (geometry, context) = (self.fs.volume.geometry(), self.fs.volume.context());
        let headers = 3u32.saturating_mul(context.sector_size).checked_div(context.block_size).unwrap_or(0);
        self.extents(fork).into_iter().find_map(|extent| {
            let Extent { startoff, startblock, blockcount, unwritten, .. } = extent;
            let last = startblock.0.checked_add(u64::from(blockcount).saturating_sub(1))?;
            let end = startoff.0.saturating_add(u64::from(blockcount)).saturating_sub(1);
            let lies = if self.flag(flags::REALTIME) && fork == Fork::Data {
                let rt = geometry.realtime.as_ref();
                let ends = [startblock.0, last].map(|block| rt.and_then(|rt| rt.split(RtBlock(block))));
                matches!(ends, [Some((first, _)), Some((second, _))] if first == second)
            } else {
                let ends = [startblock.0, last].map(|block| geometry.split(FsBlock(block)));
                matches!(ends, [Some((first, from)), Some((second, _))] if first == second && from.0 > headers)
            };
            let right = blockcount != 0 && lies && end <= MOST_OFFSET && (fork == Fork::Data || !unwritten);
            Mismatch::unless(
                right,
                format_args!("[{startoff},{startblock},{blockcount}]"),
                "an extent within one AG, behind its headers",
            )
        })
    }
    fn bad_root(&self, fork: Fork, most: u64) -> Option<Mismatch> {
        if !self.formed(fork, fork_format::BTREE) {
            return None;
        }
        let bytes = self.bytes(fork);
        let (level, records) = (bits::be16(bytes, 0).unwrap_or(0), bits::be16(bytes, 2).unwrap_or(0));
        let (count, room) = (self.count(fork), self.room(fork));
        if count <= room / 16 {
            Some(Mismatch::new(
                format_args!("{count} extents"),
                format_args!("more than {}, as there is a btree", room / 16),
            ))
        } else if records == 0 || u64::from(records).saturating_mul(16).saturating_add(4) > room {
            Some(Mismatch::new(format_args!("{records} records"), format_args!("1 to {}", room.saturating_sub(4) / 16)))
        } else if level == 0 || u64::from(level) > most {
            Some(Mismatch::new(format_args!("level {level}"), format_args!("1 to {most}")))
        } else {
            None
        }
    }
    /// Levels that the map of a file can have (`xfs_bmap_compute_maxlevels`).
    fn levels(&self, fork: Fork) -> u64 {
        let context = self.fs.volume.context();
        let header = if context.has_crc() { 72 } else { 24 };
        let least = u64::from(context.block_size.saturating_sub(header) / 16 / 2).max(2);
        let (most, root) = match (fork, context.features.has_nrext64()) {
            (Fork::Data, large) => (most_extents(fork, large), 3),
            (Fork::Attr, large) => (most_extents(fork, large), 2),
        };
        let (mut blocks, mut level) = (most.div_ceil(least), 1u64);
        while blocks > 1 {
            blocks = if blocks <= root { 1 } else { blocks.div_ceil(least) };
            level = level.saturating_add(1);
        }
        level
    }
}

/// Longest extent (`XFS_MAX_BMBT_EXTLEN`).
const LONGEST: u32 = (1 << 21) - 1;
/// Last block that a file can have (`XFS_MAX_FILEOFF`).
const MOST_OFFSET: u64 = ((1 << 54) - 1) + ((1 << 21) - 1);

/// Most extents of a fork (`xfs_iext_max_nextents`).
const fn most_extents(fork: Fork, large: bool) -> u64 {
    match (fork, large) {
        (Fork::Data, true) => (1 << 48) - 1,
        (Fork::Data, false) => (1 << 31) - 1,
        (Fork::Attr, true) => (1 << 32) - 1,
        (Fork::Attr, false) => (1 << 15) - 1,
    }
}

/// Is the directory in the inode none that can be (`xfs_dir2_sf_verify`)?
fn short_directory(s: &Subject<'_>) -> Option<Mismatch> {
    if !s.formed(Fork::Data, fork_format::LOCAL) || s.kind() != mode::DIRECTORY {
        return None;
    }
    let says = |found: String, expected: &str| Some(Mismatch::new(found, expected));
    let size = usize::try_from(s.size()).unwrap_or(usize::MAX);
    let Some(bytes) = s.bytes(Fork::Data).get(..size) else {
        return says(format!("{size} bytes"), "what fits into the inode");
    };
    let (count, large) = (bytes.first().copied().unwrap_or(0), bytes.get(1).copied().unwrap_or(0));
    let wide = if large > 0 { 8usize } else { 4 };
    let header = 2usize.saturating_add(wide);
    if size < header {
        return says(format!("{size} bytes"), "a header");
    }
    let number = |at: usize| match wide {
        8 => bits::be64(bytes, at).map(|n| n & ((1 << 56) - 1)),
        _ => bits::be32(bytes, at).map(u64::from),
    };
    let parent = number(2).unwrap_or(0);
    if !s.fs.is_file(parent) {
        return says(format!("parent {parent}"), "an inode of the file system");
    }
    let ftype = s.features().has_ftype();
    // Length of an entry in a block of its own (`xfs_dir2_data_entsize`).
    let room = |name: usize| name.saturating_add(if ftype { 12 } else { 11 }).next_multiple_of(8);
    let begin = if s.features().is_v5() { 64usize } else { 16 };
    let mut offset = begin.saturating_add(room(1)).saturating_add(room(2));
    let mut wide_numbers = usize::from(parent > u64::from(u32::MAX));
    let mut at = header;
    for n in 0..count {
        let name = usize::from(bytes.get(at).copied().unwrap_or(0));
        let place = usize::from(bits::be16(bytes, at.saturating_add(1)).unwrap_or(0));
        // An unknown file type counts as none.
        let number_at = at.saturating_add(3).saturating_add(name).saturating_add(usize::from(ftype));
        let next = number_at.saturating_add(wide);
        if at.saturating_add(3) >= size || name == 0 || next > size {
            return says(format!("entry {n} at byte {at}"), "an entry with a name, within the directory");
        }
        let ino = number(number_at).unwrap_or(0);
        if place < offset {
            return says(format!("entry {n} with offset {place:#x}"), "offsets that ascend");
        }
        if !s.fs.is_file(ino) {
            return says(format!("entry {n} with inode {ino}"), "an inode of the file system");
        }
        wide_numbers = wide_numbers.saturating_add(usize::from(ino > u64::from(u32::MAX)));
        offset = place.saturating_add(room(name));
        at = next;
    }
    let tail = usize::from(count).saturating_add(2).saturating_mul(8).saturating_add(8);
    let block = usize::try_from(s.fs.volume.context().dir_block_size).unwrap_or(usize::MAX);
    if wide_numbers != usize::from(large) {
        says(format!("i8count {large}"), "the number of entries above 32 bits")
    } else if at != size {
        says(format!("entries that end at byte {at} of {size}"), "entries that end with the directory")
    } else if offset.saturating_add(tail) > block {
        says(format!("{count} entries"), "what fits into a block")
    } else {
        None
    }
}

/// Are the attributes in the inode none that can be (`xfs_attr_shortform_verify`)? `spaces` are the known name spaces.
fn short_attributes(s: &Subject<'_>, spaces: u8) -> Option<Mismatch> {
    if !s.formed(Fork::Attr, fork_format::LOCAL) {
        return None;
    }
    let all = s.bytes(Fork::Attr);
    let size = usize::from(bits::be16(all, 0).unwrap_or(0));
    let Some(bytes) = all.get(..size).filter(|_| size >= 4) else {
        return Some(Mismatch::new(format_args!("{size} bytes"), format_args!("4 to {}", all.len())));
    };
    let mut at = 4usize;
    for n in 0..bytes.get(2).copied().unwrap_or(0) {
        let field = |i: usize| bytes.get(at.saturating_add(i)).copied().unwrap_or(0);
        let (name, value, flag) = (usize::from(field(0)), usize::from(field(1)), field(2));
        let next = at.saturating_add(3).saturating_add(name).saturating_add(value);
        let right =
            at.saturating_add(3) < size && name != 0 && next <= size && flag & !spaces == 0 && flag.count_ones() < 2;
        if !right {
            return Some(Mismatch::new(
                format_args!("attribute {n} at byte {at}"),
                "a name, one name space, within the list",
            ));
        }
        at = next;
    }
    Mismatch::unless(
        at == size,
        format_args!("attributes that end at byte {at} of {size}"),
        "attributes that end with the list",
    )
}

fn hint_flags(s: &Subject<'_>) -> Option<Mismatch> {
    let says = |expected: &str| Some(Mismatch::new(format_args!("{:#x}", s.inode.flags()), expected));
    if s.flag(flags::EXTSIZE) && s.kind() != mode::REGULAR {
        says("extsize on regular files alone")
    } else if s.flag(flags::EXTSZINHERIT) && s.kind() != mode::DIRECTORY {
        says("extszinherit on directories alone")
    } else {
        None
    }
}

fn extsize(s: &Subject<'_>) -> Option<Mismatch> {
    let hint = s.inode.extsize();
    let (flag, realtime) = (s.flag(flags::EXTSIZE | flags::EXTSZINHERIT), s.flag(flags::REALTIME));
    let says = |expected: &str| Some(Mismatch::new(format_args!("{hint} with flags {:#x}", s.inode.flags()), expected));
    if flag && hint == 0 {
        says("a hint, as the flag says")
    } else if s.used() && !flag && hint != 0 {
        says("0 without a flag")
    } else if s.misfits(hint, realtime) {
        says("a multiple of the realtime extent")
    } else if hint > LONGEST || (!realtime && hint > s.half_ag()) {
        says("at most half an AG, and what an extent can have")
    } else {
        None
    }
}

fn cowextsize(s: &Subject<'_>, realtime_too: bool) -> Option<Mismatch> {
    let hint = s.inode.cowextsize();
    let used_blocks = s.features().has_zoned() && bits::be16(s.inode.bytes(), 6) == Some(metatype::RTRMAP);
    if s.inode.version() < 3 || (realtime_too && used_blocks) {
        return None;
    }
    let (flag, realtime) = (s.flag2(flags2::COWEXTSIZE), s.flag(flags::REALTIME));
    let says =
        |expected: &str| Some(Mismatch::new(format_args!("{hint} with flags2 {:#x}", s.inode.flags2()), expected));
    if flag && !s.is(&[mode::DIRECTORY, mode::REGULAR]) {
        says("flag cowextsize on files and directories alone")
    } else if flag && hint == 0 {
        says("a hint, as the flag says")
    } else if s.used() && !flag && hint != 0 {
        says("0 without the flag")
    } else if flag && realtime && !realtime_too {
        says("no such flag on a realtime file")
    } else if realtime && realtime_too && s.misfits(hint, true) {
        says("a multiple of the realtime extent")
    } else if hint > LONGEST || ((!realtime || !realtime_too) && hint > s.half_ag()) {
        says("at most half an AG, and what an extent can have")
    } else {
        None
    }
}

/// `xfs_dinode_verify_metadir`
fn metadata_file(s: &Subject<'_>) -> Option<Mismatch> {
    if !s.flag2(flags2::METADATA) {
        return None;
    }
    let bytes = s.inode.bytes();
    let kind = bits::be16(bytes, 6).unwrap_or(0);
    let says = |found: String, expected: &str| Some(Mismatch::new(found, expected));
    let file = flags::IMMUTABLE | flags::SYNC | flags::NOATIME | flags::NODUMP | flags::NODEFRAG;
    let must = if s.kind() == mode::DIRECTORY { file | flags::NOSYMLINKS } else { file };
    let flush = bits::be16(bytes, 30).unwrap_or(0);
    let dmapi = bits::be32(bytes, 84).unwrap_or(0) != 0 || bits::be16(bytes, 88).unwrap_or(0) != 0;
    if !s.features().has_metadir() {
        says("flag metadata".into(), "no such flag without the feature metadir")
    } else if kind > metatype::RTREFCOUNT {
        says(format!("metatype {kind}"), "a known one")
    } else if !s.flag2(flags2::NREXT64) && flush != 0 {
        says(format!("flushiter {flush}"), "0")
    } else if !s.is(&[mode::DIRECTORY, mode::REGULAR]) || s.inode.mode() & 0o777 != 0 {
        says(format!("mode {:#o}", s.inode.mode()), "a file or directory without permissions")
    } else if dmapi {
        says("DMAPI state".into(), "none")
    } else if s.inode.uid() != 0 || s.inode.gid() != 0 {
        says(format!("owner {}, group {}", s.inode.uid(), s.inode.gid()), "0 and 0")
    } else if s.inode.flags() & must != must {
        says(format!("flags {:#x}", s.inode.flags()), "those of metadata files")
    } else if s.flag2(flags2::DAX) {
        says("flag dax".into(), "no such flag")
    } else {
        None
    }
}

fn meta_btree(s: &Subject<'_>) -> bool {
    let features = s.features();
    let known = match s.inode.metatype() {
        Some(metatype::RTRMAP) => features.has_rmapbt(),
        Some(metatype::RTREFCOUNT) => features.has_reflink(),
        _ => false,
    };
    s.format(Fork::Data) == fork_format::META_BTREE && features.has_metadir() && known
}

fn bad_version(s: &Subject<'_>) -> Option<Mismatch> {
    let (version, v5) = (s.inode.version(), s.fs.volume.context().has_crc());
    let right = if v5 { version == 3 } else { version == 1 || version == 2 };
    Mismatch::unless(right, version, if v5 { "3" } else { "1 or 2" })
}
fn bad_magic(s: &Subject<'_>) -> Option<Mismatch> {
    let magic = bits::be16(s.inode.bytes(), 0).unwrap_or(0);
    Mismatch::unless(s.inode.has_magic(), format_args!("{magic:#x}"), "0x494e")
}
fn crowded(s: &Subject<'_>, fork: Fork) -> Option<Mismatch> {
    let (count, room) = (s.count(fork), s.room(fork) / 16);
    let wrong = s.formed(fork, fork_format::EXTENTS) && count > room;
    Mismatch::unless(!wrong, count, format_args!("at most {room} in the inode"))
}
fn beyond(s: &Subject<'_>, fork: Fork) -> Option<Mismatch> {
    let (count, most) = (s.count(fork), most_extents(fork, s.large()));
    Mismatch::unless(!(s.formed(fork, fork_format::BTREE) && count > most), count, format_args!("at most {most}"))
}
fn counted(s: &Subject<'_>, fork: Fork) -> Option<Mismatch> {
    let count = s.count(fork);
    Mismatch::unless(!(s.formed(fork, fork_format::LOCAL) && count != 0), count, "0 with content in the inode")
}
fn small(s: &Subject<'_>, kind: u16, formats: &[u8]) -> Option<Mismatch> {
    let (size, room, format) = (s.size(), s.room(Fork::Data), s.format(Fork::Data));
    let wrong = s.kind() == kind && size != 0 && size <= room && !formats.contains(&format);
    Mismatch::unless(
        !wrong,
        format_args!("{size} in format {format}"),
        format_args!("more than {room} bytes, or format 1 (local)"),
    )
}
fn empty(s: &Subject<'_>, linked: bool) -> Option<Mismatch> {
    let wrong = s.is(&[mode::SYMLINK, mode::DIRECTORY]) && s.size() == 0 && (s.inode.nlink() != 0) == linked;
    Mismatch::unless(!wrong, 0, "a directory or link has content")
}
fn blocks_without_extents(s: &Subject<'_>, v5: bool) -> Option<Mismatch> {
    let (blocks, format) = (s.inode.nblocks().0, s.format(Fork::Data));
    let wrong = blocks != 0 && s.both() == 0 && format != fork_format::META_BTREE && (s.inode.version() >= 3) == v5;
    Mismatch::unless(!wrong, blocks, "0 without extents")
}
fn shares(s: &Subject<'_>) -> bool {
    s.flag2(flags2::REFLINK)
}

const fn test(
    what: &'static str,
    field: &'static str,
    rule: &'static RuleInfo,
    at: At,
    kernels: &'static [Range<Version>],
    source: &'static str,
    test: fn(&Subject<'_>) -> Option<Mismatch>,
) -> Test {
    Test { what, field, rule, at, kernels, source, test }
}

const ALL: &[Range<Version>] = &[ALWAYS..NEVER];
const BUF: &str = "xfs_inode_buf.c:xfs_inode_buf_verify";
const VERIFY: &str = "xfs_inode_buf.c:xfs_dinode_verify";
const FORK: &str = "xfs_inode_buf.c:xfs_dinode_verify_fork";
const FORMAT: &str = "xfs_inode_fork.c:xfs_iformat_data_fork, xfs_iformat_attr_fork";
const TAKE: &str = "xfs_icache.c:xfs_trans_metafile_iget, xfs_rtgroup.c:xfs_rtginode_load";

/// Every test, in the order of the kernel.
pub const TESTS: &[Test] = &[
    test("magic number", "core.magic", identity::BAD_MAGIC, At::Cluster, &[v(3, 8)..NEVER], BUF, bad_magic),
    test(
        "magic number of the first inode of the cluster",
        "core.magic",
        identity::BAD_MAGIC,
        At::Cluster,
        &[ALWAYS..v(3, 8)],
        "xfs_inode.c:xfs_imap_to_bp",
        bad_magic,
    ),
    test("version", "core.version", identity::BAD_VERSION, At::Cluster, &[v(3, 10)..NEVER], BUF, bad_version),
    test("unlinked list", "next_unlinked", fields::BAD_UNLINKED, At::Cluster, &[v(4, 20)..NEVER], BUF, |s| {
        let next = s.inode.next_unlinked();
        let ag = s.fs.volume.geometry().split_inode(s.inode.ino).map_or(AgNumber(0), |(ag, _)| ag);
        let range = s.fs.aginos(ag);
        let last = range.end.saturating_sub(1);
        Mismatch::unless(
            next == AgIno::NULL || range.contains(&next.0),
            next,
            format_args!("null, or {} to {last}", range.start),
        )
    }),
    test("magic number", "core.magic", identity::BAD_MAGIC, At::Read, ALL, VERIFY, bad_magic),
    test("version", "core.version", identity::BAD_VERSION, At::Read, ALL, VERIFY, |s| {
        let version = s.inode.version();
        Mismatch::unless(
            (1..=3).contains(&version) && (version < 3 || s.fs.volume.context().has_crc()),
            version,
            "1 to 3, 3 on V5 alone",
        )
    }),
    test("checksum", "v3.crc", identity::BAD_CRC, At::Read, &[v(3, 10)..NEVER], VERIFY, |s| match s.inode.crc() {
        CrcState::Bad { computed } => Some(Mismatch::new("another", crate::format::Crc(computed))),
        _ => None,
    }),
    test("own number", "v3.inumber", identity::BAD_NUMBER, At::Read, &[v(3, 10)..NEVER], VERIFY, |s| {
        let own = s.inode.own_number()?;
        Mismatch::unless(own == s.inode.ino, own, s.inode.ino)
    }),
    test("uuid", "v3.uuid", identity::BAD_UUID, At::Read, &[v(3, 10)..NEVER], VERIFY, |s| {
        let uuid = bits::array(s.inode.bytes(), 160).map(Uuid).unwrap_or_default();
        Mismatch::unless(s.inode.version() < 3 || uuid == s.fs.uuid, uuid, s.fs.uuid)
    }),
    test("old link count", "core.onlink", fields::BAD_ONLINK, At::Read, &[v(6, 10)..NEVER], VERIFY, |s| {
        let old = bits::be16(s.inode.bytes(), 6).unwrap_or(0);
        let typed = s.flag2(flags2::METADATA) && s.features().has_metadir();
        Mismatch::unless(s.inode.version() < 2 || typed || old == 0, old, 0)
    }),
    test(
        "new link count of a version 1 inode",
        "core.nlinkv2",
        fields::BAD_ONLINK,
        At::Read,
        &[v(6, 10)..v(6, 11)],
        VERIFY,
        |s| {
            let links = bits::be32(s.inode.bytes(), 16).unwrap_or(0);
            Mismatch::unless(s.inode.version() != 1 || links == 0, links, 0)
        },
    ),
    test("negative size", "core.size", fields::BAD_SIZE, At::Read, &[v(3, 14)..NEVER], VERIFY, |s| {
        Mismatch::unless(s.inode.size() >= 0, s.inode.size(), "no negative size")
    }),
    test("kind of file", "core.mode", fields::BAD_MODE, At::Read, ALL, VERIFY, |s| {
        let known = !s.used() || s.inode.kind() != Kind::Unknown;
        Mismatch::unless(known, format_args!("{:#o}", s.inode.mode()), "a kind of file")
    }),
    test("empty directory or link", "core.size", fields::BAD_SIZE, At::Read, &[v(4, 11)..NEVER], VERIFY, |s| {
        empty(s, true)
    }),
    test(
        "empty directory or link without links",
        "core.size",
        fields::BAD_SIZE,
        At::Read,
        &[v(4, 11)..v(6, 1), v(6, 2)..v(6, 10)],
        VERIFY,
        |s| empty(s, false),
    ),
    test(
        "large extent counts without the feature",
        "v3.nrext64",
        fields::BAD_FLAGS2,
        At::Read,
        &[LARGE_COUNTS..NEVER],
        "xfs_inode_buf.c:xfs_dinode_verify_nrext64",
        |s| {
            Mismatch::unless(
                !s.flag2(flags2::NREXT64) || s.features().has_nrext64(),
                "set",
                "not set without the feature nrext64",
            )
        },
    ),
    test(
        "padding of the extent counts",
        "core.nextents",
        fields::BAD_PADDING,
        At::Read,
        &[LARGE_COUNTS..NEVER],
        "xfs_inode_buf.c:xfs_dinode_verify_nrext64",
        |s| {
            let bytes = s.inode.bytes();
            let pad = if s.inode.version() < 3 {
                0
            } else if s.flag2(flags2::NREXT64) {
                bits::be16(bytes, 80).unwrap_or(0).into()
            } else {
                bits::be64(bytes, 24).unwrap_or(0)
            };
            Mismatch::unless(pad == 0, format_args!("{pad:#x}"), 0)
        },
    ),
    test("more extents than blocks", "core.nblocks", fields::BAD_NBLOCKS, At::Read, ALL, VERIFY, |s| {
        let (all, blocks) = (s.both(), s.inode.nblocks());
        Mismatch::unless(!s.used() || all <= blocks.0, blocks, format_args!("at least {all}, as many as extents"))
    }),
    test(
        "extents of a directory",
        "core.nextents",
        fields::BAD_NEXTENTS,
        At::Read,
        &[LARGE_COUNTS..NEVER],
        VERIFY,
        |s| {
            let most = (3u64 << 35).checked_div(u64::from(s.fs.volume.context().block_size)).unwrap_or(0);
            let count = s.count(Fork::Data);
            Mismatch::unless(s.kind() != mode::DIRECTORY || count <= most, count, format_args!("at most {most}"))
        },
    ),
    test(
        "realtime flag without a realtime device",
        "core.realtime",
        rt::rules::FLAG_WITHOUT_SECTION,
        At::Read,
        ALL,
        VERIFY,
        |s| {
            let wrong = s.used() && s.flag(flags::REALTIME) && s.fs.volume.superblock().rblocks.0 == 0;
            Mismatch::unless(!wrong, "set", "not set: rblocks is 0")
        },
    ),
    test(
        "begin of the attribute fork",
        "core.forkoff",
        fields::BAD_FORKOFF,
        At::Read,
        &[v(4, 18)..NEVER],
        "xfs_inode_buf.c:xfs_dinode_verify_forkoff",
        |s| {
            let (forkoff, most) = (u64::from(s.inode.forkoff()), s.literal() / 8);
            let right = match s.format(Fork::Data) {
                _ if forkoff == 0 => true,
                fork_format::DEV => forkoff == 1,
                fork_format::META_BTREE => s.features().has_metadir() && s.features().has_parent() && forkoff < most,
                fork_format::LOCAL | fork_format::EXTENTS | fork_format::BTREE => forkoff < most,
                _ => false,
            };
            Mismatch::unless(right, forkoff, format_args!("less than {most}"))
        },
    ),
    test("format of the data fork", "core.format", fields::BAD_FORMAT, At::Read, ALL, FORK, |s| {
        let format = s.format(Fork::Data);
        let right = match s.kind() {
            _ if !s.used() => true,
            mode::REGULAR => matches!(format, fork_format::EXTENTS | fork_format::BTREE) || meta_btree(s),
            mode::DIRECTORY | mode::SYMLINK => {
                matches!(format, fork_format::LOCAL | fork_format::EXTENTS | fork_format::BTREE) || meta_btree(s)
            }
            _ => format == fork_format::DEV,
        };
        Mismatch::unless(right, format, format_args!("one of a {}", s.inode.kind().name()))
    }),
    test(
        "small directory outside the inode",
        "core.size",
        fields::SIZE_AND_FORMAT,
        At::Read,
        &[v(5, 10)..v(5, 11), LARGE_COUNTS..NEVER],
        FORK,
        |s| small(s, mode::DIRECTORY, &[fork_format::LOCAL]),
    ),
    test(
        "small link outside the inode",
        "core.size",
        fields::SIZE_AND_FORMAT,
        At::Read,
        &[v(5, 10)..v(5, 11), LARGE_COUNTS..v(6, 1), v(6, 2)..v(6, 10)],
        FORK,
        |s| small(s, mode::SYMLINK, &[fork_format::LOCAL]),
    ),
    test(
        "small link in a btree",
        "core.size",
        fields::SIZE_AND_FORMAT,
        At::Read,
        &[v(6, 1)..v(6, 2), v(6, 10)..NEVER],
        FORK,
        |s| small(s, mode::SYMLINK, &[fork_format::LOCAL, fork_format::EXTENTS]),
    ),
    test("content that does not fit into the inode", "core.size", fields::SIZE_AND_FORMAT, At::Read, ALL, FORK, |s| {
        let (size, room) = (s.size(), s.room(Fork::Data));
        Mismatch::unless(
            !s.formed(Fork::Data, fork_format::LOCAL) || size <= room,
            size,
            format_args!("at most {room}"),
        )
    }),
    test(
        "extents beside content in the inode",
        "core.nextents",
        fields::BAD_NEXTENTS,
        At::Read,
        &[v(4, 18)..NEVER],
        FORK,
        |s| counted(s, Fork::Data),
    ),
    test("extents that do not fit into the inode", "core.nextents", fields::BAD_NEXTENTS, At::Read, ALL, FORK, |s| {
        crowded(s, Fork::Data)
    }),
    test("number of extents", "core.nextents", fields::BAD_NEXTENTS, At::Read, &[v(4, 18)..NEVER], FORK, |s| {
        beyond(s, Fork::Data)
    }),
    test("format of the attribute fork", "core.aformat", fields::BAD_AFORMAT, At::Read, ALL, FORK, |s| {
        let format = s.format(Fork::Attr);
        let right = !s.used()
            || s.inode.forkoff() == 0
            || matches!(format, fork_format::LOCAL | fork_format::EXTENTS | fork_format::BTREE);
        Mismatch::unless(right, format, "1 (local), 2 (extents) or 3 (btree)")
    }),
    test(
        "format of an attribute fork that is not there",
        "core.aformat",
        fields::BAD_AFORMAT,
        At::Read,
        &[v(4, 18)..NEVER],
        VERIFY,
        |s| {
            let format = s.format(Fork::Attr);
            Mismatch::unless(
                s.inode.forkoff() != 0 || matches!(format, 0 | fork_format::EXTENTS),
                format,
                "2 (extents) without a fork",
            )
        },
    ),
    test(
        "extents of an attribute fork that is not there",
        "core.naextents",
        fields::BAD_ANEXTENTS,
        At::Read,
        &[v(4, 18)..NEVER],
        VERIFY,
        |s| {
            let count = s.count(Fork::Attr);
            Mismatch::unless(s.inode.forkoff() != 0 || count == 0, count, "0 without a fork")
        },
    ),
    test(
        "extents beside attributes in the inode",
        "core.naextents",
        fields::BAD_ANEXTENTS,
        At::Read,
        &[v(4, 18)..NEVER],
        FORK,
        |s| counted(s, Fork::Attr),
    ),
    test(
        "attribute extents that do not fit into the inode",
        "core.naextents",
        fields::BAD_ANEXTENTS,
        At::Read,
        ALL,
        FORK,
        |s| crowded(s, Fork::Attr),
    ),
    test(
        "number of attribute extents",
        "core.naextents",
        fields::BAD_ANEXTENTS,
        At::Read,
        &[v(4, 18)..NEVER],
        FORK,
        |s| beyond(s, Fork::Attr),
    ),
    test(
        "kind of file of an extent size hint",
        "core.flags",
        fields::BAD_FLAGS,
        At::Read,
        &[v(4, 18)..NEVER],
        "xfs_inode_buf.c:xfs_inode_validate_extsize",
        hint_flags,
    ),
    test(
        "extent size hint",
        "core.extsize",
        fields::BAD_EXTSIZE,
        At::Read,
        &[v(4, 18)..NEVER],
        "xfs_inode_buf.c:xfs_inode_validate_extsize",
        extsize,
    ),
    test(
        "shared extents without the feature",
        "v3.flags2",
        fields::BAD_FLAGS2,
        At::Read,
        &[v(4, 9)..NEVER],
        VERIFY,
        |s| {
            let wrong = s.flag2(flags2::REFLINK | flags2::COWEXTSIZE) && !s.features().has_reflink();
            Mismatch::unless(
                !wrong,
                format_args!("{:#x}", s.inode.flags2()),
                "no reflink, no cowextsize without the feature reflink",
            )
        },
    ),
    test(
        "shared extents of what is no file",
        "v3.reflink",
        fields::BAD_FLAGS2,
        At::Read,
        &[v(4, 11)..NEVER],
        VERIFY,
        |s| Mismatch::unless(!shares(s) || s.kind() == mode::REGULAR, "set", "set on regular files alone"),
    ),
    test(
        "shared extents of a realtime file",
        "v3.reflink",
        rt::rules::SHARED_FLAG,
        At::Read,
        &[v(4, 11)..v(6, 14)],
        VERIFY,
        |s| Mismatch::unless(!(shares(s) && s.flag(flags::REALTIME)), "set", "not set on realtime files"),
    ),
    test(
        "shared extents of a realtime file without realtime groups",
        "v3.reflink",
        rt::rules::SHARED_FLAG,
        At::Read,
        &[v(6, 14)..NEVER],
        VERIFY,
        |s| {
            let shared =
                s.features().has_metadir() && s.features().has_reflink() && s.fs.volume.superblock().rblocks.0 != 0;
            Mismatch::unless(!(shares(s) && s.flag(flags::REALTIME)) || shared, "set", "not set on such realtime files")
        },
    ),
    test(
        "shared extents and direct access",
        "v3.dax",
        fields::BAD_FLAGS2,
        At::Read,
        &[v(4, 11)..v(6, 0)],
        VERIFY,
        |s| Mismatch::unless(!(shares(s) && s.flag2(flags2::DAX)), "reflink and dax", "one of them"),
    ),
    test(
        "hint for copies on write",
        "v3.cowextsize",
        fields::BAD_COWEXTSIZE,
        At::Read,
        &[v(4, 18)..v(6, 14)],
        "xfs_inode_buf.c:xfs_inode_validate_cowextsize",
        |s| cowextsize(s, false),
    ),
    test(
        "hint for copies on write",
        "v3.cowextsize",
        fields::BAD_COWEXTSIZE,
        At::Read,
        &[v(6, 14)..NEVER],
        "xfs_inode_buf.c:xfs_inode_validate_cowextsize",
        |s| cowextsize(s, true),
    ),
    test(
        "blocks in use of a zone",
        "v3.used_blocks",
        fields::BAD_USED_BLOCKS,
        At::Read,
        &[v(6, 15)..NEVER],
        VERIFY,
        |s| {
            let zone = s.features().has_zoned()
                && s.inode.version() >= 3
                && bits::be16(s.inode.bytes(), 6) == Some(metatype::RTRMAP);
            let (used, most) = (s.inode.cowextsize(), s.fs.volume.superblock().rgextents);
            Mismatch::unless(!zone || used <= most, used, format_args!("at most {most}"))
        },
    ),
    test(
        "large times without the feature",
        "v3.bigtime",
        fields::BAD_FLAGS2,
        At::Read,
        &[v(5, 10)..NEVER],
        VERIFY,
        |s| {
            Mismatch::unless(
                !s.flag2(flags2::BIGTIME) || s.features().has_bigtime(),
                "set",
                "not set without the feature bigtime",
            )
        },
    ),
    test(
        "metadata file",
        "v3.metadata",
        fields::BAD_METADATA,
        At::Read,
        &[v(6, 13)..NEVER],
        "xfs_inode_buf.c:xfs_dinode_verify_metadir",
        metadata_file,
    ),
    test(
        "blocks without extents",
        "core.nblocks",
        fields::BAD_NBLOCKS,
        At::Read,
        &[LARGE_COUNTS..NEVER],
        VERIFY,
        |s| blocks_without_extents(s, true),
    ),
    test(
        "blocks without extents",
        "core.nblocks",
        fields::BAD_NBLOCKS,
        At::Read,
        &[LARGE_COUNTS..v(6, 14)],
        VERIFY,
        |s| blocks_without_extents(s, false),
    ),
    test(
        "root of the extent btree",
        "u3.bmbt",
        forks::BAD_ROOT_LEVEL,
        At::Read,
        &[ALWAYS..COMPUTED_LEVELS],
        FORMAT,
        |s| s.bad_root(Fork::Data, 9),
    ),
    test(
        "root of the attribute btree",
        "a.bmbt",
        forks::BAD_ROOT_LEVEL,
        At::Read,
        &[ALWAYS..COMPUTED_LEVELS],
        FORMAT,
        |s| s.bad_root(Fork::Attr, 9),
    ),
    test(
        "root of the extent btree",
        "u3.bmbt",
        forks::BAD_ROOT_LEVEL,
        At::Read,
        &[COMPUTED_LEVELS..NEVER],
        FORMAT,
        |s| s.bad_root(Fork::Data, s.levels(Fork::Data)),
    ),
    test(
        "root of the attribute btree",
        "a.bmbt",
        forks::BAD_ROOT_LEVEL,
        At::Read,
        &[COMPUTED_LEVELS..NEVER],
        FORMAT,
        |s| s.bad_root(Fork::Attr, s.levels(Fork::Attr)),
    ),
    test(
        "extent",
        "u3.bmx",
        forks::OUTSIDE,
        At::Read,
        &[v(4, 17)..NEVER],
        "xfs_bmap.c:xfs_bmap_validate_extent",
        |s| s.bad_extent(Fork::Data),
    ),
    test(
        "extent of the attribute fork",
        "a.bmx",
        forks::OUTSIDE,
        At::Read,
        &[v(4, 17)..NEVER],
        "xfs_bmap.c:xfs_bmap_validate_extent",
        |s| s.bad_extent(Fork::Attr),
    ),
    test(
        "directory in the inode",
        "u3.sfdir3",
        dir::SF_SIZE,
        At::Read,
        &[v(4, 11)..NEVER],
        "xfs_dir2_sf.c:xfs_dir2_sf_verify",
        short_directory,
    ),
    test(
        "attributes in the inode",
        "a.sfattr",
        attr::SF_SIZE,
        At::Read,
        &[v(4, 16)..v(6, 10)],
        "xfs_attr_leaf.c:xfs_attr_shortform_verify",
        |s| short_attributes(s, 6),
    ),
    test(
        "attributes in the inode",
        "a.sfattr",
        attr::SF_SIZE,
        At::Read,
        &[v(6, 10)..NEVER],
        "xfs_attr_leaf.c:xfs_attr_shortform_verify",
        |s| short_attributes(s, 14),
    ),
    test(
        "free inode",
        "core.mode",
        metafile::BAD_KIND,
        At::Mount,
        ALL,
        "xfs_icache.c:xfs_iget_check_free_state",
        |s| Mismatch::unless(s.used(), "0, a free inode", "an inode in use"),
    ),
    test(
        "root directory that is none",
        "core.mode",
        metafile::BAD_KIND,
        At::Mount,
        ALL,
        "xfs_mount.c:xfs_mountfs",
        |s| {
            Mismatch::unless(
                s.role != Some(Role::Root) || s.kind() == mode::DIRECTORY,
                s.inode.kind().name(),
                "a directory",
            )
        },
    ),
    test("metadata file without links", "core.nlink", metafile::BAD_KIND, At::Mount, &[v(6, 13)..NEVER], TAKE, |s| {
        Mismatch::unless(s.role == Some(Role::Root) || s.inode.nlink() != 0, 0, "a link")
    }),
    test("kind of a metadata file", "core.mode", metafile::BAD_KIND, At::Mount, &[v(6, 13)..NEVER], TAKE, |s| {
        let right = match s.role {
            Some(Role::Root) | None => true,
            Some(Role::Metadir) => s.kind() == mode::DIRECTORY,
            Some(Role::Map | Role::Group(..)) => s.kind() == mode::REGULAR,
        };
        Mismatch::unless(right, s.inode.kind().name(), "what the superblock says it is")
    }),
    test("type of a metadata file", "core.metatype", metafile::OTHER_TYPE, At::Mount, &[v(6, 13)..NEVER], TAKE, |s| {
        let wanted = match s.role? {
            Role::Metadir => metatype::DIR,
            Role::Group(kind, _) => kind,
            Role::Root | Role::Map => return None,
        };
        let found = s.inode.metatype().map_or("no metadata file".to_owned(), |kind| kind.to_string());
        Mismatch::unless(s.inode.metatype() == Some(wanted), found, wanted)
    }),
    test(
        "format of a file of the realtime section",
        "core.format",
        rt::rules::GROUP_FILE,
        At::Mount,
        &[v(6, 13)..NEVER],
        TAKE,
        |s| {
            let format = s.format(Fork::Data);
            let right = match s.role? {
                Role::Group(metatype::RTRMAP | metatype::RTREFCOUNT, _) => format == fork_format::META_BTREE,
                Role::Map | Role::Group(..) => matches!(format, fork_format::EXTENTS | fork_format::BTREE),
                Role::Root | Role::Metadir => true,
            };
            Mismatch::unless(right, format, "one of such a file")
        },
    ),
    test(
        "group of a file of the realtime section",
        "core.projid",
        rt::rules::GROUP_NUMBER,
        At::Mount,
        &[v(6, 13)..NEVER],
        TAKE,
        |s| {
            let group = match s.role? {
                Role::Map => 0,
                Role::Group(_, group) => group,
                Role::Root | Role::Metadir => return None,
            };
            Mismatch::unless(s.inode.projid() == group, s.inode.projid(), group)
        },
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::CATALOGUE;

    /// What `explain` and docs/checks.md say of a rule is what its tests say.
    #[test]
    fn rules_of_inodes_say_what_their_tests_say() {
        let mut wrong = Vec::new();
        for rule in CATALOGUE.iter().flat_map(|rules| rules.iter()) {
            let first = tests_of(rule).flat_map(|test| test.kernels).map(|range| range.start).min();
            let since = first.map(|first| if first == ALWAYS { "2.6".to_owned() } else { first.to_string() });
            match since {
                Some(since) if since != rule.since => {
                    wrong.push(format!("{}: since {}, tests {since}", rule.id, rule.since))
                }
                None if rule.structure == "inode" && rule.source.contains("xfs_inode_buf.c") => {
                    wrong.push(format!("{}: {}: no test", rule.id, rule.source));
                }
                _ => {}
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn ranges_ascend() {
        for test in TESTS {
            assert!(test.kernels.iter().all(|range| range.start < range.end), "{}", test.what);
            assert!(test.kernels.windows(2).all(|pair| pair[0].end <= pair[1].start), "{}", test.what);
        }
    }
}
