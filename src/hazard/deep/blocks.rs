//! What a look at single inodes decides: blocks of links and of attribute values that their maps lack (P6), and the
//! inodes without which nothing mounts.

use super::{Met, Reader, arithmetic};
use crate::check::rt::{Section, Sink, devices};
use crate::check::{Finding, alone};
use crate::error::{Error, Place};
use crate::format::Structure;
use crate::format::attr_remote;
use crate::format::checksum::CrcState;
use crate::format::dinode::{Fork, fork_format, metatype, mode};
use crate::format::dinode_view::Kind;
use crate::format::symlink::{MAX_LENGTH, SymlinkHeader};
use crate::units::{ByteOffset, Device, FileBlock, Ino};
use crate::walk::attributes::{self, VALUE_MAX};
use crate::walk::extents::ForkMap;
use crate::walk::metadir::{self, GroupFile};
use crate::walk::{Inode, InodeBlock, Walk, rt};
use std::ops::ControlFlow;

/// Realtime groups without a single file after which no more are looked for: the count of groups is what is wrong.
pub(super) const MOST_ABSENT: u32 = 8;

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
        let named = |ino: Ino| ino.0 != 0 && !ino.is_null() && walk.geometry().split_inode(ino).is_some();
        let mut wanted = vec![(sb.rootino, "root directory", true)];
        if walk.context().features.has_metadir() {
            wanted.push((sb.metadirino, "metadata directory", true));
        } else {
            // Without a section, too: it is a group of no extents.
            wanted.extend([(sb.rbmino, "realtime bitmap", false), (sb.rsumino, "realtime summary", false)]);
        }
        for (ino, name, directory) in wanted {
            // Numbers that lead nowhere have rows of their own.
            if named(ino) {
                let as_what = if directory { Wanted::Directory } else { Wanted::Map };
                self.loads(walk.inode(ino), name, as_what);
            }
        }
        if let Some(section) = self.section.clone().filter(|section| section.rt.groups.is_some()) {
            self.group_inodes(&section);
        }
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

    fn group_inodes(&mut self, section: &Section<'_>) {
        let walk = self.walk;
        let files = [
            (GroupFile::Bitmap, section.has_bitmap(), metatype::RTBITMAP),
            (GroupFile::Summary, section.has_bitmap(), metatype::RTSUMMARY),
            (GroupFile::Rmap, section.has_rmap(), metatype::RTRMAP),
            (GroupFile::Refcount, section.has_reflink(), metatype::RTREFCOUNT),
        ];
        if let Err(error) = metadir::open(walk, "rtgroups", &mut |_| {}) {
            self.not_loaded(&error, "directory rtgroups");
            return;
        }
        let mut absent = 0u32;
        for group in section.groups() {
            let mut found = false;
            for &(file, _, kind) in files.iter().filter(|(_, wanted, _)| *wanted) {
                let name = format!("{}.{}", group.number, file.name());
                let block = rt::inode(walk, group.number, file, &mut |_| {});
                found |= block.is_ok();
                self.loads(block, &name, Wanted::Group { file, kind, number: group.number.0 });
            }
            absent = if found { 0 } else { absent.saturating_add(1) };
            if absent >= MOST_ABSENT {
                return;
            }
        }
    }

    fn loads(&mut self, block: crate::error::Result<InodeBlock>, name: &str, wanted: Wanted) {
        let block = match block {
            Ok(block) => block,
            Err(error) => return self.not_loaded(&error, name),
        };
        let inode = block.inode();
        let wrong = if let CrcState::Bad { computed } = inode.crc() {
            Some(("crc", format!("the checksum does not match, {} is right", crate::format::Crc(computed))))
        } else if inode.mode() == 0 {
            Some(("core.mode", "mode is 0: a free inode".to_owned()))
        } else {
            wanted.fault(inode)
        };
        let place = || Place { structure: format!("{name}, inode {}", inode.ino), ..block.place().clone() };
        if let Some((field, text)) = wrong {
            self.deep.mount_inode.at(|| place().field(field), || text);
        } else if let Some(fault) = invalid(self.walk, inode) {
            let Finding { rule, found, expected, .. } = fault;
            let text = || format!("{}: {} is {found}, expected {expected}", rule.summary, rule.field);
            self.deep.mount_inode_invalid.at(|| place().field(rule.field), text);
        } else if let Some((field, text)) = wanted.foreign(inode) {
            self.deep.mount_inode_foreign.at(|| place().field(field), || text);
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

/// Fields that the kernel's verifier refuses (`xfs_dinode_verify`).
fn invalid(walk: &Walk<'_>, inode: Inode<'_>) -> Option<Finding> {
    let findings = alone::with(walk, |alone| alone.fields(inode));
    findings.into_iter().find(|finding| finding.rule.source.starts_with("xfs_inode_buf.c:"))
}

/// What a mount wants an inode to be.
#[derive(Clone, Copy)]
enum Wanted {
    Directory,
    /// Bitmap or summary without realtime groups.
    Map,
    Group {
        file: GroupFile,
        kind: u16,
        number: u32,
    },
}

impl Wanted {
    /// What only kernels that know the metadata directory look at (`xfs_trans_metafile_iget`, `xfs_rtginode_load`).
    fn foreign(self, inode: Inode<'_>) -> Option<(&'static str, String)> {
        match self {
            Self::Directory => None,
            _ if inode.nlink() == 0 => Some(("core.nlink", "no links, expected 1".to_owned())),
            _ if inode.kind() != Kind::Regular => {
                Some(("core.mode", format!("a {}, expected a regular file", inode.kind().name())))
            }
            Self::Map if inode.projid() != 0 => {
                Some(("core.projid", format!("projid is {}, expected 0", inode.projid())))
            }
            _ => None,
        }
    }

    /// The field that is wrong, and what it says.
    fn fault(self, inode: Inode<'_>) -> Option<(&'static str, String)> {
        let format = inode.format(Fork::Data);
        let map = matches!(format, fork_format::EXTENTS | fork_format::BTREE);
        let bad_format = || Some(("core.format", format!("format is {format}, which this file cannot have")));
        match self {
            Self::Directory if inode.mode() & mode::TYPE != mode::DIRECTORY => {
                Some(("core.mode", format!("a {}, expected a directory", inode.kind().name())))
            }
            Self::Map if !map => bad_format(),
            Self::Group { kind, .. } if inode.metatype() != Some(kind) => {
                let found = inode.metatype().map_or("no metadata file".to_owned(), |n| n.to_string());
                Some(("core.metatype", format!("metatype is {found}, expected {kind}")))
            }
            Self::Group { number, .. } if inode.projid() != number => {
                Some(("core.projid", format!("belongs to group {}, expected {number}", inode.projid())))
            }
            Self::Group { file: GroupFile::Bitmap | GroupFile::Summary, .. } if !map => bad_format(),
            Self::Group { file: GroupFile::Rmap | GroupFile::Refcount, .. } if format != fork_format::META_BTREE => {
                bad_format()
            }
            _ => None,
        }
    }
}

impl Met {
    /// Is it met at all?
    pub fn is_met(&self) -> bool {
        self.first.is_some()
    }
}
