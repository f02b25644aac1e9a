//! What lies behind the superblock and decides hazards: the inodes of bitmap and summary, the end of the bitmap, every
//! inode with its flags, hints and extents, every block of every btree.
//!
//! Only `preflight` asks for it: it takes a pass over all inodes and btrees. What could not be read is kept as the reason
//! why a condition that was not met is open.

mod blocks;
mod journal;
mod maps;

use super::facts::{Facts, Fault};
use super::iget::Failed;
use super::nullderef::{Lookup, lookup};
use super::{Answer, Evidence};
use crate::check::rt::Section;
use crate::error::{Error, Place};
use crate::format::bmbt::Extent;
use crate::format::btree_block::{Shape, head};
use crate::format::dinode::{Fork, flags, flags2, fork_format, metatype};
use crate::format::dinode_view::Kind;
use crate::format::{bmbt, bnobt, cntbt, finobt, inobt, refcountbt, rmapbt};
use crate::units::{AgNumber, FsBlock, RtBlock};
use crate::volume::Volume;
use crate::walk::btree::{At, Blocks, Root};
use crate::walk::rt::files::is_realtime_file;
use crate::walk::rt::{self};
use crate::walk::{Inode, Walk, extents, group, inodes};

/// Where a condition is met.
#[derive(Clone, Debug, Default)]
pub struct Met {
    /// How often.
    pub count: u64,
    /// The first time.
    pub first: Option<Fault>,
}

impl Met {
    fn at(&mut self, place: impl FnOnce() -> Place, text: impl FnOnce() -> String) {
        self.count = self.count.saturating_add(1);
        if self.first.is_none() {
            self.first = Some(Fault { place: place(), text: text() });
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Deep {
    /// P1: extents of the free run that ends the section; `None` where the end of the bitmap is not known.
    pub tail: Option<u64>,
    /// P2: a block of bitmap or summary without a written extent.
    pub rt_hole: Met,
    /// P3: a block of bitmap or summary outside the AGs.
    pub rt_outside: Met,
    /// RT-14: bitmap or summary file too short, or not of whole blocks.
    pub rt_size: Met,
    /// RT-26: the bitmap inode whose access time is a sequence number.
    pub sequence: Met,
    /// P5: an extent of a realtime file beyond the section.
    pub file_outside: Met,
    /// P0: an unlinked realtime file, which recovery frees.
    pub orphan: Met,
    /// A realtime file of two or more extents.
    pub pieces: Met,
    /// P6: a directory, attribute, symlink or quota extent outside the AGs.
    pub metadata_outside: Met,
    /// P6: a block of a symbolic link or of an attribute value that its map lacks.
    pub metadata_hole: Met,
    /// C51: an inode that every mount loads is damaged, or not there.
    pub mount_inode: Met,
    /// Tests that an inode fails which every mount loads, or one of its cluster, with its place.
    pub refused: Vec<(Failed, Place)>,
    /// An inode that every mount loads has no links: it is freed when it is let go.
    pub unlinked: Met,
    /// The map of a file of the realtime section cannot be read to its end.
    pub rt_map: Met,
    /// A block of the bitmap that its file lacks or that cannot be read: free extents cannot be counted.
    pub uncounted: Met,
    /// The root is not in the inode btree, or marked free there, or cannot be looked up.
    pub root_record: Met,
    /// The realtime superblock on the device that was given: not this file system's, or damaged.
    pub rt_superblock: Met,
    /// P7: a pointer of a btree outside its AG, or outside all AGs.
    pub pointer_outside: Met,
    /// RT-06: realtime flag without a section.
    pub flag_without_section: Met,
    /// RT-05: directory that hands the flag down without a section.
    pub inherit_without_section: Met,
    /// RT-18: hint handed down that does not fit.
    pub inherit_extsize: Met,
    /// RT-19: hint of a realtime file that does not fit.
    pub file_extsize: Met,
    /// RT-20: shared flag on a realtime file.
    pub shared_flag: Met,
    /// RT-27: extent of a realtime file that does not fit the realtime extents.
    pub unaligned: Met,
    /// P8: a change that waits in the log, of a block outside the AGs.
    pub log_outside: Met,
    /// Why not all of the log was looked at.
    pub log_unread: Option<String>,
    /// Why not everything was looked at.
    pub unread: Option<String>,
}

impl Facts {
    /// The answer of a condition on inodes, extents and btrees; `why` is said where they were not looked at.
    pub(super) fn deep(&self, why: &str, which: impl FnOnce(&Deep) -> &Met) -> Answer {
        let Some(deep) = &self.deep else { return Answer::Unknown(why.to_owned()) };
        which(deep).answer(deep.unread.as_deref())
    }
}

impl Met {
    /// The answer; `unread` says why not everything was looked at.
    pub(super) fn answer(&self, unread: Option<&str>) -> Answer {
        match (&self.first, unread) {
            (Some(fault), _) => {
                let more = match self.count.saturating_sub(1) {
                    0 => String::new(),
                    n => format!(" (and {n} more)"),
                };
                let text = format!("{}: {}{more}", fault.place.structure, fault.text);
                Answer::Yes(Evidence { text, place: Some(fault.place.clone()) })
            }
            (None, Some(why)) => Answer::Unknown(format!("not all could be looked at: {why}")),
            (None, None) => Answer::No,
        }
    }
}

/// What a kernel of 2.6.37 to 3.7 does with a block number, with the numbers filled in.
pub fn arithmetic(volume: &Volume, fsb: u64) -> String {
    let sb = volume.superblock();
    let (log, agblocks, agcount) = (sb.agblklog, sb.agblocks, sb.agcount.0);
    let Some(Lookup { agno, agbno, agno_effective, oops }) = lookup(fsb, log, agblocks, agcount) else {
        return format!("block {fsb}: agblklog {log} allows no lookup");
    };
    let linear = u64::from(agno).saturating_mul(u64::from(agblocks)).saturating_add(agbno);
    let what = if oops {
        format!("no such AG, there are {agcount}: null pointer oops on 2.6.37 to 3.7")
    } else if linear >= sb.dblocks.0 {
        format!("past the {} blocks of the data section: EIO on 2.6.37 to 3.7", sb.dblocks)
    } else {
        "a block of another AG: foreign bytes on 2.6.37 to 3.7".to_owned()
    };
    format!(
        "block {fsb} >> {log} = AG {agno}, block {agbno} of it; {agno} * {agblocks} + {agbno} = {linear}, / {agblocks} = AG {agno_effective}: {what}"
    )
}

/// Looks at everything.
struct Reader<'r> {
    volume: &'r Volume,
    walk: &'r Walk<'r>,
    section: Option<Section<'r>>,
    deep: Deep,
    quota: [u64; 3],
}

impl Deep {
    /// Looks at the inodes, extents and btrees of a volume.
    pub fn read(volume: &Volume) -> Self {
        let walk = Walk::new(volume);
        let sb = volume.superblock();
        let quota = [sb.uquotino.0, sb.gquotino.0, sb.pquotino.0];
        let mut reader = Reader { volume, walk: &walk, section: Section::new(&walk), deep: Self::default(), quota };
        reader.journal();
        reader.mount_inodes();
        reader.realtime_superblock();
        reader.realtime_inodes();
        for ag in group::numbers(&walk) {
            reader.ag_btrees(ag);
            reader.inodes(ag);
        }
        reader.deep
    }
}

impl Reader<'_> {
    fn unread(&mut self, error: &Error) {
        if self.deep.unread.is_none() {
            self.deep.unread = Some(error.to_string());
        }
    }

    /// Errors of btree walks that are pointers to nowhere are found by themselves; others hide what is behind them.
    fn walk_error(&mut self, error: &Error) {
        self.unread(error);
    }

    /// Notes an extent of the data device that does not lie within one AG.
    fn extent_within_ags(
        &mut self,
        extent: &Extent,
        place: &dyn Fn() -> Place,
        which: impl FnOnce(&mut Deep) -> &mut Met,
    ) {
        let geometry = self.walk.geometry();
        if extents::locate(geometry, false, extent.startblock, extent.blockcount.max(1)).is_some() {
            return;
        }
        let last = extent.startblock.0.saturating_add(u64::from(extent.blockcount.saturating_sub(1)));
        // The block that a kernel stumbles over: the first that does not exist.
        let block = if geometry.split(extent.startblock).is_none() { extent.startblock.0 } else { last };
        let volume = self.volume;
        let text = || {
            let record = format!("[{},{},{}]", extent.startoff, extent.startblock, extent.blockcount);
            format!("extent {record}; {}", arithmetic(volume, block))
        };
        which(&mut self.deep).at(|| place().field("bmx.startblock"), text);
    }

    fn inodes(&mut self, ag: AgNumber) {
        let mut chunks = inodes::chunks(self.walk, ag);
        while let Some(chunk) = chunks.next_chunk() {
            let chunk = match chunk {
                Ok(chunk) => chunk,
                Err(error) => {
                    self.walk_error(&error);
                    continue;
                }
            };
            let mut errors = Vec::new();
            chunk.used(&mut |error| errors.push(error), |inode| self.inode(inode));
            errors.iter().for_each(|error| self.unread(error));
        }
    }

    fn inode(&mut self, inode: Inode<'_>) {
        self.flags(inode);
        let quota = self.quota.contains(&inode.ino.0)
            || matches!(inode.metatype(), Some(metatype::USRQUOTA | metatype::GRPQUOTA | metatype::PRJQUOTA));
        let metadata = quota || matches!(inode.kind(), Kind::Directory | Kind::Symlink);
        if metadata {
            self.fork(inode, Fork::Data);
        } else if inode.format(Fork::Data) == fork_format::BTREE {
            self.bmbt(inode, Fork::Data);
        }
        if inode.kind() == Kind::Symlink {
            self.link_holes(inode);
        }
        if inode.fork(Fork::Attr).is_some() {
            self.fork(inode, Fork::Attr);
            self.value_holes(inode);
        }
        if is_realtime_file(inode) {
            self.realtime_file(inode);
        }
    }

    /// Every extent of a fork of metadata, and the blocks of its map.
    fn fork(&mut self, inode: Inode<'_>, fork: Fork) {
        let volume = self.volume;
        let place = || inode.place(volume);
        if inode.format(fork) == fork_format::BTREE {
            self.bmbt(inode, fork);
        }
        for extent in extents::extents(self.walk, inode, fork) {
            match extent {
                Ok(extent) => self.extent_within_ags(&extent, &place, |deep| &mut deep.metadata_outside),
                Err(error) => self.walk_error(&error),
            }
        }
    }

    fn flags(&mut self, inode: Inode<'_>) {
        let volume = self.volume;
        let place = || inode.place(volume);
        let (bits, kind) = (inode.flags(), inode.kind());
        let unit = u64::from(volume.superblock().rextsize).max(1);
        let misfit = u64::from(inode.extsize()).checked_rem(unit).unwrap_or(0) != 0;
        let hint = || format!("extsize is {} blocks, the realtime extent has {unit}", inode.extsize());
        let no_section = volume.superblock().rblocks.0 == 0;
        let deep = &mut self.deep;
        if bits & flags::REALTIME != 0 {
            if no_section {
                deep.flag_without_section
                    .at(|| place().field("core.realtime"), || "realtime is set, rblocks is 0".into());
            }
            if misfit {
                deep.file_extsize.at(|| place().field("core.extsize"), hint);
            }
            if inode.flags2() & flags2::REFLINK != 0 && !self.section.as_ref().is_some_and(Section::has_reflink) {
                deep.shared_flag.at(|| place().field("v3.reflink"), || "realtime and reflink are set".into());
            }
        }
        if bits & flags::RTINHERIT != 0 && kind == Kind::Directory {
            if no_section {
                deep.inherit_without_section
                    .at(|| place().field("core.rtinherit"), || "rtinherit is set, rblocks is 0".into());
            } else if bits & flags::EXTSZINHERIT != 0 && misfit {
                deep.inherit_extsize.at(|| place().field("core.extsize"), hint);
            }
        }
    }

    fn realtime_file(&mut self, inode: Inode<'_>) {
        let Some(section) = self.section.clone() else { return };
        let volume = self.volume;
        let sb = volume.superblock();
        let unit = u64::from(section.rt.extent_blocks).max(1);
        let place = || inode.place(volume);
        if inode.extents(Fork::Data) > 1 {
            let text = || format!("a realtime file of {} extents", inode.extents(Fork::Data));
            self.deep.pieces.at(|| place().field("core.nextents"), text);
        }
        for extent in extents::extents(self.walk, inode, Fork::Data) {
            let extent = match extent {
                Ok(extent) => extent,
                Err(error) => {
                    self.walk_error(&error);
                    continue;
                }
            };
            let record = || format!("[{},{},{}]", extent.startoff, extent.startblock, extent.blockcount);
            let last = extent.startblock.0.saturating_add(u64::from(extent.blockcount)).saturating_sub(1);
            let ends = (section.rt.split(RtBlock(extent.startblock.0)), section.rt.split(RtBlock(last)));
            match ends {
                (Some((first, within)), Some((end, end_within))) if first == end => {
                    let whole = rt::group(section.rt, first).map_or(0, |group| group.blocks());
                    if end_within >= whole {
                        let text =
                            || format!("extent {} ends behind the last realtime extent, at block {whole}", record());
                        self.deep.file_outside.at(|| inode.place(volume).field("u3.bmx"), text);
                    } else if within.checked_rem(unit) != extent.startoff.0.checked_rem(unit) {
                        let text = || format!("extent {}: startblock and startoff differ modulo {unit}", record());
                        self.deep.unaligned.at(|| inode.place(volume).field("u3.bmx"), text);
                    }
                }
                _ => {
                    let bits = section.sizes.extents_per_block().max(1);
                    let block = last.checked_div(unit).unwrap_or(0).checked_div(bits).unwrap_or(0);
                    let past = if section.rt.groups.is_none() && block >= section.sizes.bitmap_blocks {
                        format!(
                            "; freeing it needs bitmap block {last} / {unit} / {bits} = {block} of {}, which does not exist",
                            section.sizes.bitmap_blocks
                        )
                    } else {
                        String::new()
                    };
                    let text = || format!("extent {} ends at block {last}, rblocks is {}{past}", record(), sb.rblocks);
                    self.deep.file_outside.at(|| inode.place(volume).field("u3.bmx"), text);
                }
            }
        }
    }

    /// Unlinked inodes that recovery frees, where they are realtime files, or stand in the log alone.
    fn unlinked(&mut self, ag: AgNumber, agi: &crate::format::agi::Agi) {
        for &agino in agi.unlinked.iter().filter(|agino| **agino != crate::units::AgIno::NULL) {
            let Some(ino) = self.walk.geometry().join_inode(ag, agino) else { continue };
            let Ok(block) = self.walk.inode(ino) else { continue };
            let inode = block.inode();
            if inode.mode() == 0 {
                let text = || "an unlinked inode whose content waits in the log: it may be a realtime file".into();
                self.deep.orphan.at(|| inode.place(self.volume).field("core.mode"), text);
            } else if inode.is_realtime() {
                self.deep
                    .orphan
                    .at(|| inode.place(self.volume).field("core.realtime"), || "an unlinked realtime file".into());
            }
        }
    }

    fn ag_btrees(&mut self, ag: AgNumber) {
        let walk = self.walk;
        let features = &walk.context().features;
        let mut errors = Vec::new();
        let agf = group::agf(walk, ag, &mut |error| errors.push(error));
        let agi = group::agi(walk, ag, &mut |error| errors.push(error));
        errors.iter().for_each(|error| self.unread(error));
        let mut roots: Vec<(&'static Shape, Root<'static>)> = Vec::new();
        match &agf {
            Ok(agf) => {
                roots.extend([(&bnobt::SHAPE, group::bnobt(ag, agf)), (&cntbt::SHAPE, group::cntbt(ag, agf))]);
                if features.has_rmapbt() {
                    roots.push((&rmapbt::SHAPE, group::rmapbt(ag, agf)));
                }
                if features.has_reflink() {
                    roots.push((&refcountbt::SHAPE, group::refcountbt(ag, agf)));
                }
            }
            Err(error) => self.unread(error),
        }
        match &agi {
            Ok(agi) => {
                self.unlinked(ag, agi);
                roots.push((&inobt::SHAPE, group::inobt(ag, agi)));
                if features.has_finobt() {
                    roots.push((&finobt::SHAPE, group::finobt(ag, agi)));
                }
            }
            Err(error) => self.unread(error),
        }
        for (shape, root) in roots {
            if let Root::Ag { block, .. } = root {
                let name = format!("headers of AG {ag} › root of the {}", shape.kind.name());
                let volume = self.volume;
                let place = || {
                    let byte = volume.geometry().ag_start(ag).unwrap_or_default();
                    Place::new(crate::units::Device::Data, byte, 4 * u64::from(volume.context().sector_size), name)
                };
                self.short_pointer(ag, block.get(), place);
            }
            self.blocks(shape, root);
        }
    }

    fn bmbt(&mut self, inode: Inode<'_>, fork: Fork) {
        let Some(bytes) = inode.fork(fork) else { return };
        let shape = if fork == Fork::Data { &bmbt::SHAPE } else { &bmbt::ATTR_SHAPE };
        self.blocks(shape, Root::Fork { ino: inode.ino, bytes });
    }

    /// Every pointer of a btree: to children, and to neighbours.
    fn blocks(&mut self, shape: &'static Shape, root: Root<'_>) {
        let walk = self.walk;
        let mut blocks = Blocks::new(walk, shape, root);
        let mut pointers: Vec<(u64, &'static str)> = Vec::new();
        while let Some(step) = blocks.advance() {
            if let Err(error) = step {
                self.walk_error(&error);
                continue;
            }
            let Some(block) = blocks.current() else { continue };
            pointers.clear();
            pointers.extend(block.children().into_iter().flatten().map(|(_, pointer)| (pointer, "child")));
            if matches!(block.at, At::Block(_)) && head(block.bytes).is_some() {
                let (left, right) = shape.siblings(block.bytes);
                pointers.extend(left.map(|pointer| (pointer, "left neighbour")));
                pointers.extend(right.map(|pointer| (pointer, "right neighbour")));
            }
            let at = block.at;
            for &(pointer, what) in &pointers {
                let place = || {
                    let mut place = blocks.place(at);
                    place.structure = format!("{} › {what}", place.structure);
                    place
                };
                match root {
                    Root::Ag { ag, .. } => self.short_pointer(ag, pointer, place),
                    Root::Fork { .. } => self.long_pointer(pointer, place),
                }
            }
        }
    }

    fn short_pointer(&mut self, ag: AgNumber, pointer: u64, place: impl FnOnce() -> Place) {
        let length = self.walk.geometry().ag_length(ag).unwrap_or(0);
        if pointer < u64::from(length) {
            return;
        }
        let (agblocks, agcount) = (u64::from(self.walk.geometry().ag_blocks), self.walk.geometry().ag_count);
        let text = || {
            let linear = u64::from(ag.0).saturating_mul(agblocks).saturating_add(pointer);
            let effective = linear.checked_div(agblocks).unwrap_or(0);
            let what = if effective >= u64::from(agcount) {
                format!("no such AG, there are {agcount}: null pointer oops on 2.6.37 to 3.7")
            } else {
                "no block of this AG".to_owned()
            };
            format!(
                "block {pointer} of AG {ag}, which has {length}; {ag} * {agblocks} + {pointer} = {linear}, / {agblocks} = AG {effective}: {what}"
            )
        };
        self.deep.pointer_outside.at(place, text);
    }

    fn long_pointer(&mut self, pointer: u64, place: impl FnOnce() -> Place) {
        if self.walk.geometry().split(FsBlock(pointer)).is_some() {
            return;
        }
        let volume = self.volume;
        self.deep.pointer_outside.at(place, || arithmetic(volume, pointer));
    }
}
