//! From an inode to its extended attributes: in the inode, in leaf blocks, with large values in blocks of their own.
//! `xfs_attr_list` (xfs_attr_list.c), `xfs_attr_rmtval_get` (xfs_attr_remote.c).

use super::da_tree::{self, Shape};
use super::extents::ForkMap;
use super::{Inode, Walk, corrupt};
use crate::error::{Error, Result};
use crate::format::attr_leaf::{self, Content};
use crate::format::attr_shortform::{self, flags};
use crate::format::checksum::{self, CrcState};
use crate::format::dinode::{Fork, fork_format};
use crate::format::{attr_remote, bits};
use crate::units::{FileBlock, Ino};
use std::borrow::Cow;
use std::ops::ControlFlow;

/// Longest value (`XFS_XATTR_SIZE_MAX`).
pub const VALUE_MAX: u32 = 65536;

/// An attribute, in memory.
#[derive(Clone, Copy, Debug)]
pub struct Attribute<'a> {
    /// Namespace and state: see [`attr_shortform::flags`].
    pub flags: u8,
    /// Name without namespace: any bytes.
    pub name: &'a [u8],
    /// Bytes of the value, as stored.
    pub length: u32,
    source: Source<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Here(&'a [u8]),
    Remote { walk: &'a Walk<'a>, map: &'a ForkMap, inode: Inode<'a>, block: u32 },
}

impl<'a> Attribute<'a> {
    /// Prefix of the name, as the kernel shows it: `user.`, `trusted.`, `security.`; `None` for parent pointers and
    /// for bits that exclude each other.
    pub const fn namespace(&self) -> Option<&'static str> {
        match self.flags & flags::NAMESPACES {
            0 => Some("user."),
            flags::ROOT => Some("trusted."),
            flags::SECURE => Some("security."),
            _ => None,
        }
    }

    /// Is it a parent pointer?
    pub const fn is_parent(&self) -> bool {
        self.flags & flags::NAMESPACES == flags::PARENT
    }

    /// Is it being changed, and not visible?
    pub const fn is_incomplete(&self) -> bool {
        self.flags & flags::INCOMPLETE != 0
    }

    /// The directory that a parent pointer names, and its generation.
    pub fn parent(&self) -> Option<(Ino, u32)> {
        match self.source {
            Source::Here(value) if self.is_parent() => attr_shortform::parent_of(value),
            _ => None,
        }
    }

    /// First block within the attribute fork of a value that has blocks of its own; `None` where it lies with the name.
    pub const fn remote_block(&self) -> Option<u32> {
        match self.source {
            Source::Here(_) => None,
            Source::Remote { block, .. } => Some(block),
        }
    }

    /// The value. A large one is read from its blocks.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] where a block is missing, is none of a value, or belongs elsewhere, and where
    /// the value is longer than any can be.
    pub fn value(&self) -> Result<Cow<'a, [u8]>> {
        match self.source {
            Source::Here(value) => Ok(Cow::Borrowed(value)),
            Source::Remote { walk, map, inode, block } => {
                remote_value(walk, map, inode, block, self.length).map(Cow::Owned)
            }
        }
    }
}

fn remote_value(walk: &Walk<'_>, map: &ForkMap, inode: Inode<'_>, first: u32, length: u32) -> Result<Vec<u8>> {
    if length > VALUE_MAX {
        let place = inode.place(walk.volume());
        return Err(corrupt(place.field("valuelen"), "a value longer than any can be", length, VALUE_MAX));
    }
    let context = walk.context();
    let wanted = super::index(length);
    let mut value: Vec<u8> = Vec::new();
    let mut at = FileBlock(u64::from(first));
    while value.len() < wanted {
        walk.step(1)?;
        let name = format!("inode {} › attribute block {at}", inode.ino);
        let block = map.read_blocks(walk, at, 1, &name)?;
        if context.has_crc() {
            check_remote(inode.ino, &block, u32::try_from(value.len()).unwrap_or(u32::MAX))?;
        }
        let payload = attr_remote::payload(context, &block.bytes).unwrap_or_default();
        if payload.is_empty() {
            return Err(corrupt(block.place.field("bytes"), "the block holds nothing of the value", 0, "some bytes"));
        }
        let rest = wanted.saturating_sub(value.len()).min(payload.len());
        value.extend_from_slice(payload.get(..rest).unwrap_or_default());
        at = FileBlock(at.0.saturating_add(1));
    }
    Ok(value)
}

fn check_remote(ino: Ino, block: &crate::volume::Block, offset: u32) -> Result<()> {
    let bytes = &block.bytes;
    let place = |field| block.place.field(field);
    let magic = bits::be32(bytes, 0).unwrap_or(0);
    if magic != attr_remote::MAGIC {
        let right = format!("{:#x}", attr_remote::MAGIC);
        return Err(corrupt(place("magic"), "no block of a value", format!("{magic:#x}"), right));
    }
    let found = bits::be32(bytes, 4).unwrap_or(0);
    if found != offset {
        return Err(corrupt(place("offset"), "another part of the value", found, offset));
    }
    let owner = bits::be64(bytes, 32).unwrap_or(0);
    if owner != ino.0 {
        return Err(corrupt(place("owner"), "the block belongs to another inode", owner, ino));
    }
    if let CrcState::Bad { computed } = checksum::verify(bytes, attr_remote::CRC_OFFSET) {
        let stored = bits::array(bytes, attr_remote::CRC_OFFSET).map_or(0, u32::from_le_bytes);
        let (stored, computed) = (crate::format::Crc(stored).to_string(), crate::format::Crc(computed).to_string());
        return Err(corrupt(place("crc"), "the checksum is wrong", stored, computed));
    }
    Ok(())
}

/// Gives each attribute of an inode to `each`: parent pointers and incomplete ones, too, in disk order. Whatever is
/// wrong goes to `report`, and the rest follows.
pub fn for_each(
    walk: &Walk<'_>,
    inode: Inode<'_>,
    report: &mut dyn FnMut(Error),
    mut each: impl FnMut(Attribute<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Some(fork) = inode.fork(Fork::Attr) else { return ControlFlow::Continue(()) };
    match inode.format(Fork::Attr) {
        fork_format::LOCAL => {
            let mut left = attr_shortform::header(fork).map_or(0, |header| header.count);
            for entry in attr_shortform::entries(fork) {
                left = left.saturating_sub(1);
                let length = u32::try_from(entry.value.len()).unwrap_or(0);
                let source = Source::Here(entry.value);
                each(Attribute { flags: entry.flags, name: entry.name, length, source })?;
            }
            if left > 0 {
                let place = inode.place(walk.volume()).field("a.sfattr.hdr.count");
                report(corrupt(place, "attributes leave the inode", format!("{left} more"), "none"));
            }
            ControlFlow::Continue(())
        }
        fork_format::EXTENTS if inode.extents(Fork::Attr) == 0 => ControlFlow::Continue(()),
        _ => in_blocks(walk, inode, report, &mut each),
    }
}

fn in_blocks(
    walk: &Walk<'_>,
    inode: Inode<'_>,
    report: &mut dyn FnMut(Error),
    each: &mut dyn FnMut(Attribute<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let map = ForkMap::read(walk, inode, Fork::Attr, report);
    if map.extents().is_empty() {
        return ControlFlow::Continue(());
    }
    let is_leaf: fn(u16) -> bool = match walk.context().has_crc() {
        true => |magic| magic == attr_leaf::magic::V5,
        false => |magic| magic == attr_leaf::magic::V4,
    };
    let shape = Shape { name: "attribute block", width: 1, is_leaf };
    for block in da_tree::blocks(walk, &map, inode.ino, shape, FileBlock(0)) {
        let block = match block {
            Ok(block) if block.level == 0 => block.block,
            Ok(_) => continue,
            Err(error) => {
                report(error);
                continue;
            }
        };
        let said = attr_leaf::header(walk.context(), &block.bytes).map_or(0, |header| header.count);
        let mut found = 0u16;
        for entry in attr_leaf::entries(walk.context(), &block.bytes) {
            found = found.saturating_add(1);
            let (name, length, source) = match entry.content {
                Content::Local { name, value } => (name, u32::try_from(value.len()).unwrap_or(0), Source::Here(value)),
                Content::Remote { name, valueblk, valuelen } => {
                    (name, valuelen, Source::Remote { walk, map: &map, inode, block: valueblk })
                }
                Content::Outside => {
                    let place = block.place.field("nameidx");
                    report(corrupt(place, "an attribute leaves the block", entry.nameidx, "a place within the block"));
                    continue;
                }
            };
            each(Attribute { flags: entry.flags, name, length, source })?;
        }
        if found < said {
            report(corrupt(block.place.field("count"), "more than the block can hold", said, found));
        }
    }
    ControlFlow::Continue(())
}
