//! Inodes that have to do with the realtime section: flags, hints, and the extents of realtime files, each by itself.

use super::{Part, Section, Sink, rules};
use crate::check::finding::Object;
use crate::error::{Error, Place};
use crate::format::bmbt::Extent;
use crate::format::checksum::CrcState;
use crate::format::dinode::{Fork, flags, flags2};
use crate::format::dinode_view::Kind;
use crate::walk::rt::files::{Visitor, is_realtime_file, window};
use crate::walk::{Inode, Walk};

/// Figures about realtime files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Realtime files.
    pub files: u64,
    /// Of them, those without an extent.
    pub empty: u64,
    /// Bytes by their sizes.
    pub size_bytes: u64,
    /// Blocks that they own.
    pub blocks: u64,
    /// Extents.
    pub extents: u64,
    /// Extents that are allocated but not written.
    pub unwritten: u64,
    /// Blocks in them.
    pub unwritten_blocks: u64,
    /// Extents that end or begin within a realtime extent: splits between written and unwritten.
    pub split: u64,
    /// The file with the most extents, and how many it has.
    pub most_extents: Option<(u64, u64)>,
    /// Directories that hand the realtime flag down.
    pub inherit_directories: u64,
    /// Could all inodes and maps be read?
    pub complete: bool,
}

/// Applies the rules about single inodes on the way.
pub struct Look<'l, 's, 'a> {
    walk: &'a Walk<'a>,
    section: Option<&'l Section<'a>>,
    sink: &'l mut Sink<'s>,
    /// What was counted.
    pub totals: Totals,
    /// The extent before, of the file at hand.
    before: Option<Extent>,
    here: u64,
    /// Is the inode at hand known to be damaged?
    damaged: bool,
    /// Findings before the inode at hand.
    raised: u64,
}

/// Extents of a file whose map is looked at by itself: 24 MiB.
const MOST_WHOLE: u64 = 1 << 20;

impl<'l, 's, 'a> Look<'l, 's, 'a> {
    /// Nothing seen yet.
    pub fn new(walk: &'a Walk<'a>, section: Option<&'l Section<'a>>, sink: &'l mut Sink<'s>) -> Self {
        let totals = Totals { complete: true, ..Totals::default() };
        Self { walk, section, sink, totals, before: None, here: 0, damaged: false, raised: 0 }
    }

    fn extent_blocks(&self) -> u64 {
        u64::from(self.walk.volume().superblock().rextsize).max(1)
    }

    fn flag_rules(&mut self, inode: Inode<'_>) {
        let (bits, kind) = (inode.flags(), inode.kind());
        let place = || inode.place(self.walk.volume());
        let features = &self.walk.context().features;
        let metadata = inode.flags2() & flags2::METADATA != 0;
        if bits & flags::REALTIME != 0 {
            if self.section.is_none() {
                let blocks = inode.nblocks();
                let found = format!("realtime flag set, {blocks} blocks");
                self.sink.raise(rules::FLAG_WITHOUT_SECTION, place(), found, "no flag: rblocks is 0");
            }
            if kind != Kind::Regular {
                self.sink.raise(rules::FLAG_NOT_REGULAR, place(), kind.name(), "a regular file");
            }
            if bits & flags::FILESTREAM != 0 {
                self.sink.raise(rules::FLAG_FILESTREAM, place(), "realtime and filestream", "one of them");
            }
            let shares = self.section.is_some_and(Section::has_reflink);
            if inode.flags2() & flags2::REFLINK != 0 && !shares {
                self.sink.raise(rules::SHARED_FLAG, place(), "reflink flag set", "not set");
            }
        }
        if bits & flags::RTINHERIT != 0 && kind != Kind::Directory {
            self.sink.raise(rules::INHERIT_NOT_DIRECTORY, place(), kind.name(), "a directory");
        }
        if bits & flags::RTINHERIT != 0 && kind == Kind::Directory {
            self.totals.inherit_directories = self.totals.inherit_directories.saturating_add(1);
            // Zoned file systems set the flag on the root although the section may be internal: that is a section, too.
            if self.section.is_none() {
                self.sink.raise(rules::INHERIT_WITHOUT_SECTION, place(), "rtinherit flag set", "not set: rblocks is 0");
            }
        }
        let unit = self.extent_blocks();
        let misfit = |blocks: u32| u64::from(blocks).checked_rem(unit).unwrap_or(0) != 0;
        let expected = format!("a multiple of {unit} blocks");
        let inherits = flags::RTINHERIT | flags::EXTSZINHERIT;
        if kind == Kind::Directory && bits & inherits == inherits && misfit(inode.extsize()) && self.section.is_some() {
            self.sink.raise(rules::INHERIT_EXTSIZE, place(), inode.extsize(), &expected);
        }
        if bits & flags::REALTIME != 0 && misfit(inode.extsize()) {
            self.sink.raise(rules::EXTSIZE, place(), inode.extsize(), &expected);
        }
        let counts_zone = metadata && features.has_zoned();
        if bits & flags::REALTIME != 0 && !counts_zone && misfit(inode.cowextsize()) {
            self.sink.raise(rules::COWEXTSIZE, place(), inode.cowextsize(), &expected);
        }
    }

    fn extent_rules(&mut self, inode: Inode<'_>, extent: &Extent) {
        let Some(section) = self.section else { return };
        let Extent { startoff, startblock, blockcount, unwritten } = *extent;
        let record = format!("[{startoff},{startblock},{blockcount},{}]", u8::from(unwritten));
        let place = |number: u64| {
            let mut place = inode.place(self.walk.volume());
            place.structure = format!("{} › bmx[{number}]", place.structure);
            place
        };
        let number = self.here;
        if let Some(before) = self.before {
            let end = before.startoff.0.saturating_add(u64::from(before.blockcount));
            if startoff.0 < end {
                self.sink.raise(rules::ORDER, place(number), &record, format_args!("startoff {end} or more"));
            }
        }
        if blockcount == 0 {
            self.sink.raise(rules::EMPTY, place(number), &record, "1 block or more");
            return;
        }
        let split = |block: u64| section.rt.split(crate::units::RtBlock(block));
        let last = startblock.0.saturating_add(u64::from(blockcount)).saturating_sub(1);
        let ends = (split(startblock.0), split(last));
        let unit = u64::from(section.rt.extent_blocks).max(1);
        let rest = |n: u64| n.checked_rem(unit).unwrap_or(0);
        match ends {
            (Some((group, first)), Some((last_group, last))) if group == last_group => {
                // Blocks behind the last whole extent exist on the device, but not for the allocator.
                let whole = crate::walk::rt::group(section.rt, group).map_or(0, |group| group.blocks());
                if last >= whole {
                    let right = format!("blocks below {whole} of the group");
                    self.sink.raise(rules::OUTSIDE, place(number), &record, right);
                } else if rest(first) != rest(startoff.0) {
                    let right = format!("startblock and startoff alike, modulo {unit}");
                    self.sink.raise(rules::UNALIGNED, place(number), &record, right);
                }
                let end = last.saturating_add(1);
                if rest(first) != 0 || rest(end) != 0 {
                    self.totals.split = self.totals.split.saturating_add(1);
                }
            }
            _ => {
                let blocks = section.rt.blocks;
                let right = match section.rt.groups {
                    None => format!("blocks below {blocks}"),
                    Some(_) => "blocks of one realtime group".to_owned(),
                };
                self.sink.raise(rules::OUTSIDE, place(number), &record, right);
            }
        }
    }
}

impl Visitor for Look<'_, '_, '_> {
    fn inode(&mut self, inode: Inode<'_>) {
        self.sink.about(Object::Inode(inode.ino));
        self.damaged = self.sink.is_damaged(inode.ino);
        if self.damaged {
            // It may own realtime blocks, whatever it says it is; directories cannot.
            self.totals.complete &= inode.kind() == Kind::Directory;
        } else {
            self.raised = self.sink.raised();
            self.flag_rules(inode);
        }
        (self.before, self.here) = (None, 0);
        if is_realtime_file(inode) {
            let t = &mut self.totals;
            t.files = t.files.saturating_add(1);
            t.size_bytes = t.size_bytes.saturating_add(u64::try_from(inode.size()).unwrap_or(0));
            t.empty = t.empty.saturating_add(u64::from(inode.extents(Fork::Data) == 0));
        }
    }

    fn extent(&mut self, inode: Inode<'_>, extent: &Extent) {
        if !self.damaged {
            self.extent_rules(inode, extent);
        }
        let t = &mut self.totals;
        let blocks = u64::from(extent.blockcount);
        t.extents = t.extents.saturating_add(1);
        t.blocks = t.blocks.saturating_add(blocks);
        if extent.unwritten {
            t.unwritten = t.unwritten.saturating_add(1);
            t.unwritten_blocks = t.unwritten_blocks.saturating_add(blocks);
        }
        self.here = self.here.saturating_add(1);
        self.before = Some(*extent);
    }

    fn end(&mut self, inode: Inode<'_>) {
        // What is wrong with a file by itself is most often what was said already.
        let sound = !matches!(inode.crc(), CrcState::Bad { .. });
        if !self.damaged && sound && self.sink.raised() == self.raised {
            let part = if inode.extents(Fork::Data) > MOST_WHOLE { Part::Fields } else { Part::Whole };
            self.sink.verify(inode, part);
        }
        if self.totals.most_extents.is_none_or(|(_, most)| self.here > most) && self.here > 0 {
            self.totals.most_extents = Some((inode.ino.0, self.here));
        }
    }

    fn error(&mut self, error: Error) {
        self.totals.complete = false;
        self.sink.error(rules::DAMAGED, rules::UNREADABLE, &error);
    }
}

/// Looks for inodes that speak of a realtime section where there is none.
pub fn without_section(walk: &Walk<'_>, sink: &mut Sink<'_>) {
    let mut look = Look::new(walk, None, sink);
    window(walk, u64::MAX, 1, &mut look);
}

/// The place of a file in findings.
pub(super) fn inode_place(section: &Section<'_>, ino: u64) -> Place {
    let ino = crate::units::Ino(ino);
    let byte = section.walk.geometry().inode_byte(ino).unwrap_or_default();
    let size = u64::from(section.walk.context().inode_size);
    Place::new(crate::units::Device::Data, byte, size, format!("inode {ino}"))
}
