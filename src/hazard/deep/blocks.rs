//! What a look at single inodes decides: blocks of links and of attribute values that their maps lack (P6), and the
//! inodes without which nothing mounts.

use super::super::iget::{Mounted, Role};
use super::{Met, Reader, arithmetic};
use crate::check::Finding;
use crate::check::inobt::{Layout, RULES, Subject};
use crate::check::rt::{Section, Sink, devices};
use crate::error::{Error, Place};
use crate::format::Structure;
use crate::format::attr_remote;
use crate::format::dinode::{Fork, fork_format, metatype};
use crate::format::inobt::{self, INODES_PER_CHUNK};
use crate::format::symlink::{MAX_LENGTH, SymlinkHeader};
use crate::units::{AgIno, AgNumber, ByteOffset, Device, FileBlock, Ino};
use crate::walk::attributes::{self, VALUE_MAX};
use crate::walk::btree::{Blocks, Child, Root};
use crate::walk::extents::{self, ForkMap};
use crate::walk::metadir::{self, GroupFile};
use crate::walk::{Inode, corrupt, group, rt};
use std::ops::ControlFlow;

/// Realtime groups without a single file after which no more are looked for: the count of groups is what is wrong.
pub(super) const MOST_ABSENT: u32 = 8;
/// Rules of inode chunks that a lookup tests, too (`xfs_inobt_get_rec`).
const TESTED: [&str; 3] = ["inobt-chunk-outside", "inobt-bad-count", "inobt-bad-freecount"];

impl Reader<'_> {
    /// Blocks of a symbolic link that its map lacks (`xfs_readlink_bmap` looks them up all the same).
    pub(super) fn link_holes(&mut self, inode: Inode<'_>) {
        let size = u32::try_from(inode.size()).ok().filter(|&size| size > 0 && size <= MAX_LENGTH);
        let Some(size) = size.filter(|_| inode.format(Fork::Data) != fork_format::LOCAL) else { return };
        let context = self.walk.context();
        let header = if context.has_crc() { u32::try_from(SymlinkHeader::SIZE).unwrap_or(0) } else { 0 };
        let blocks = size.div_ceil(context.block_size.saturating_sub(header).max(1));
        // What is wrong with the map is told of where its extents are looked at.
        let map = ForkMap::read(self.walk, inode, Fork::Data, &mut |_| {});
        self.holes(inode, &map, (0, blocks), "core.size", || format!("target of {size} bytes"));
    }

    /// Blocks of attribute values that the map lacks (`xfs_attr_rmtval_get` looks them up all the same).
    pub(super) fn value_holes(&mut self, inode: Inode<'_>) {
        if inode.format(Fork::Attr) == fork_format::LOCAL {
            return;
        }
        let capacity = attr_remote::capacity(self.walk.context()).max(1);
        let mut values: Vec<(u32, u32, String)> = Vec::new();
        let mut errors = Vec::new();
        let _all = attributes::for_each(self.walk, inode, &mut |error| errors.push(error), |attribute| {
            if let Some(first) = attribute.remote_block().filter(|_| !attribute.is_incomplete()) {
                let name = String::from_utf8_lossy(attribute.name).into_owned();
                values.push((first, attribute.length.min(VALUE_MAX), name));
            }
            ControlFlow::Continue(())
        });
        errors.iter().for_each(|error| self.unread(error));
        if values.is_empty() {
            return;
        }
        let map = ForkMap::read(self.walk, inode, Fork::Attr, &mut |_| {});
        for (first, length, name) in values {
            self.holes(inode, &map, (first, length.div_ceil(capacity)), "valueblk", || {
                format!("value of attribute {name:?}, {length} bytes")
            });
        }
    }

    fn holes(
        &mut self,
        inode: Inode<'_>,
        map: &ForkMap,
        (first, blocks): (u32, u32),
        field: &'static str,
        what: impl FnOnce() -> String,
    ) {
        let all = (first..first.saturating_add(blocks)).map(|block| FileBlock(u64::from(block)));
        let mut missing = all.filter(|&block| map.find(block).is_none());
        let Some(hole) = missing.next() else { return };
        let count = missing.count().saturating_add(1);
        let volume = self.volume;
        let text = || {
            let (new, old) = (arithmetic(volume, u64::MAX - 1), arithmetic(volume, u64::MAX));
            format!(
                "{}: {count} of its {blocks} blocks have no extent, from block {hole} of the fork on; a hole is looked up \
                 as -2 on 3.2 and later: {new}; as -1 before: {old}",
                what()
            )
        };
        self.deep.metadata_hole.at(|| inode.place(volume).field(field), text);
    }

    /// The inodes that every mount loads: root directory, metadata directory, bitmap and summary or the files of the
    /// realtime groups (`xfs_mountfs`, `xfs_rtmount_inodes`, `xfs_rtginode_load`).
    pub(super) fn mount_inodes(&mut self) {
        let walk = self.walk;
        let sb = self.volume.superblock();
        let fs = Mounted::new(self.volume);
        let named = |ino: Ino| ino.0 != 0 && !ino.is_null() && walk.geometry().split_inode(ino).is_some();
        let mut wanted = vec![(sb.rootino, "root directory", Role::Root)];
        if walk.context().features.has_metadir() {
            wanted.push((sb.metadirino, "metadata directory", Role::Metadir));
        } else {
            // Without a section, too: it is a group of no extents.
            wanted.extend([(sb.rbmino, "realtime bitmap", Role::Map), (sb.rsumino, "realtime summary", Role::Map)]);
        }
        for (ino, name, role) in wanted {
            if named(ino) {
                self.loads(&fs, ino, name, role);
            } else if role == Role::Root {
                // The numbers of the others have rows of their own.
                let place = || Place::new(Device::Data, ByteOffset(56), 8, "sb 0").field("rootino");
                self.deep.mount_inode.at(place, || format!("rootino {ino} leads nowhere"));
            }
        }
        self.root_record(sb.rootino);
        if let Some(section) = self.section.clone().filter(|section| section.rt.groups.is_some()) {
            self.group_inodes(&fs, &section);
        }
    }

    /// The root is looked for in the inode btree first (`xfs_imap_lookup`).
    fn root_record(&mut self, ino: Ino) {
        let walk = self.walk;
        let Some((ag, agino)) = walk.geometry().split_inode(ino) else { return };
        let mut errors = Vec::new();
        let agi = group::agi(walk, ag, &mut |error| errors.push(error));
        let found = match (agi, errors.pop()) {
            (Err(error), _) | (_, Some(error)) => Err(error),
            (Ok(agi), None) => self.record_of(ag, agino, group::inobt(ag, &agi)),
        };
        let place = || {
            let byte = walk.geometry().ag_start(ag).unwrap_or_default();
            Place::new(Device::Data, byte, u64::from(walk.context().sector_size), format!("inobt of AG {ag}"))
        };
        match found {
            Ok(None) => self.deep.root_record.at(place, || format!("no record for the root, inode {ino}")),
            Ok(Some(false)) => self.deep.root_record.at(place, || format!("the root, inode {ino}, is marked free")),
            Ok(Some(true)) => {}
            Err(error) if matches!(error, Error::Exhausted { .. }) => self.unread(&error),
            Err(error) => self.deep.root_record.at(place, || error.to_string()),
        }
    }

    /// Does the inode btree say that the inode is in use? `None` without a record.
    fn record_of(&self, ag: AgNumber, agino: AgIno, root: Root<'static>) -> crate::error::Result<Option<bool>> {
        let walk = self.walk;
        let layout = Layout::of(self.volume);
        let inodes = layout.inodes(walk.geometry(), walk.geometry().ag_length(ag).unwrap_or(0));
        let wanted = |first: AgIno| agino.0.checked_sub(first.0).filter(|&n| n < INODES_PER_CHUNK);
        // Children that begin behind the inode, or end before it, are not entered.
        let enter = move |child: &Child<'_>| {
            let key = |bytes: &[u8]| crate::format::bits::be32(bytes, 0).unwrap_or(0);
            key(child.key) <= agino.0 && child.next_key.is_none_or(|next| agino.0 < key(next))
        };
        let mut blocks = Blocks::only(walk, &inobt::SHAPE, root, enter);
        while let Some(step) = blocks.advance() {
            step?;
            let Some(block) = blocks.current() else { continue };
            for record in block.records().filter_map(|bytes| inobt::Chunk::at(walk.context(), bytes, 0)) {
                if let Some(index) = wanted(record.startino) {
                    let subject = Subject { chunk: record, layout, inodes };
                    let broken = RULES.iter().find_map(|rule| Some((rule.info, (rule.test)(&subject)?)));
                    if let Some((rule, wrong)) = broken.filter(|(rule, _)| TESTED.contains(&rule.id)) {
                        return Err(corrupt(blocks.place(block.at), rule.summary, wrong.found, wrong.expected));
                    }
                    return Ok(Some(record.in_use(index)));
                }
            }
        }
        Ok(None)
    }

    /// The realtime superblock: whose device is this?
    pub(super) fn realtime_superblock(&mut self) {
        let mut found: Vec<Finding> = Vec::new();
        let mut keep = |finding: Finding| found.push(finding);
        devices::check(self.walk, &mut Sink::new(&mut keep));
        for finding in found.into_iter().filter(|finding| finding.rule.structure == "rtsb") {
            let Finding { rule, place, found, expected, .. } = finding;
            let text = || format!("{}: {} is {found}, expected {expected}", rule.summary, rule.field);
            self.deep.rt_superblock.at(|| place.field(rule.field), text);
        }
    }

    fn group_inodes(&mut self, fs: &Mounted<'_>, section: &Section<'_>) {
        let walk = self.walk;
        let files = [
            (GroupFile::Bitmap, section.has_bitmap(), metatype::RTBITMAP),
            (GroupFile::Summary, section.has_bitmap(), metatype::RTSUMMARY),
            (GroupFile::Rmap, section.has_rmap(), metatype::RTRMAP),
            (GroupFile::Refcount, section.has_reflink(), metatype::RTREFCOUNT),
        ];
        match metadir::open(walk, "rtgroups", &mut |_| {}) {
            Ok(directory) => self.loads(fs, directory.ino(), "directory rtgroups", Role::Metadir),
            Err(error) => return self.not_loaded(&error, "directory rtgroups"),
        }
        let mut absent = 0u32;
        for group in section.groups() {
            let mut found = false;
            for &(file, _, kind) in files.iter().filter(|(_, wanted, _)| *wanted) {
                let name = format!("{}.{}", group.number, file.name());
                let block = rt::inode(walk, group.number, file, &mut |_| {});
                found |= block.is_ok();
                match block {
                    Ok(block) => self.loads(fs, block.ino(), &name, Role::Group(kind, group.number.0)),
                    Err(error) => self.not_loaded(&error, &name),
                }
            }
            absent = if found { 0 } else { absent.saturating_add(1) };
            if absent >= MOST_ABSENT {
                return;
            }
        }
    }

    /// Loads an inode as a mount does: its cluster, then itself.
    fn loads(&mut self, fs: &Mounted<'_>, ino: Ino, name: &str, role: Role) {
        let geometry = self.walk.geometry();
        let Some((ag, agino)) = geometry.split_inode(ino) else { return };
        let layout = fs.layout();
        // Clusters begin at multiples of their size within a chunk.
        let first = agino.0.saturating_sub(agino.0.checked_rem(layout.per_cluster.max(1)).unwrap_or(0));
        let size = self.walk.context().inode_size;
        let start = geometry.join_inode(ag, AgIno(first)).and_then(|ino| geometry.inode_byte(ino));
        let Some(start) = start else { return };
        let what = format!("{name}: cluster of inode {ino}");
        let block = match self.volume.read(Device::Data, start, size.saturating_mul(layout.per_cluster), what) {
            Ok(block) => block,
            Err(error) => return self.not_loaded(&error, name),
        };
        let length = usize::try_from(size).unwrap_or(usize::MAX).max(1);
        for (number, bytes) in (first..).zip(block.bytes.chunks_exact(length)) {
            let Some(at) = geometry.join_inode(ag, AgIno(number)) else { continue };
            let inode = Inode::new(at, bytes);
            let mut failed = fs.cluster(inode, number == first);
            if at == ino {
                failed.extend(fs.loaded(inode, role));
                if inode.nlink() == 0 && inode.mode() != 0 {
                    let place = || inode.place(self.volume).field("core.nlink");
                    self.deep.unlinked.at(place, || format!("{name}: no links"));
                }
                if matches!(role, Role::Map | Role::Group(..)) && failed.is_empty() {
                    self.whole_map(inode, name);
                }
            }
            for failed in failed {
                let place = Place { structure: format!("{name}, inode {at}"), ..inode.place(self.volume) };
                self.deep.refused.push((failed, place));
            }
        }
    }

    /// Maps in btrees are read to their ends (`xfs_rtmount_iread_extents`).
    fn whole_map(&mut self, inode: Inode<'_>, name: &str) {
        for fork in [Fork::Data, Fork::Attr] {
            if inode.format(fork) != fork_format::BTREE || inode.fork(fork).is_none() {
                continue;
            }
            let place = || Place { structure: format!("{name}, inode {}", inode.ino), ..inode.place(self.volume) };
            let mut count = 0u64;
            for extent in extents::extents(self.walk, inode, fork) {
                match extent {
                    Ok(_) => count = count.saturating_add(1),
                    Err(error) if matches!(error, Error::Exhausted { .. }) => return self.unread(&error),
                    Err(error) => return self.deep.rt_map.at(place, || error.to_string()),
                }
            }
            let right = inode.extents(fork);
            if count != right {
                let text = || format!("the btree has {count} extents, the inode says {right}");
                self.deep.rt_map.at(place, text);
            }
        }
    }

    fn not_loaded(&mut self, error: &Error, name: &str) {
        if matches!(error, Error::Exhausted { .. }) {
            return self.unread(error);
        }
        let place = || match error {
            Error::Corrupt { place, .. } | Error::Io { place, .. } | Error::Unsupported { place, .. } => {
                let structure = format!("{name}: {}", place.structure);
                Place { structure, ..(**place).clone() }
            }
            _ => Place::new(Device::Data, ByteOffset(0), 512, name),
        };
        self.deep.mount_inode.at(place, || error.to_string());
    }
}

impl Met {
    /// Is it met at all?
    pub fn is_met(&self) -> bool {
        self.first.is_some()
    }
}
