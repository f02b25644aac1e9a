//! What exactly lies at a byte whose owner is known: which header, which btree, which inode, which part of a file.

use super::{Answer, Spot};
use crate::error::Error;
use crate::format::btree_block::{Shape, head};
use crate::format::checksum::{self, CrcState};
use crate::format::dinode::{Fork, fork_format};
use crate::format::dinode_view::Kind;
use crate::format::inobt::{self, Chunk};
use crate::format::{
    Type, agf, agfl, agi, bits, bmbt, bnobt, cntbt, finobt, refcountbt, rmapbt, rtrefcountbt, rtrmapbt, superblock,
};
use crate::units::{AgNumber, BASIC_BLOCK, FsBlock, Ino};
use crate::volume::AgHeader;
use crate::walk::btree::Blocks;
use crate::walk::fsmap::{Mapped, Owner, Range, metadata};
use crate::walk::{Inode, Walk, corrupt, group};

/// What lies at a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Nothing more is known than whose it is.
    None,
    /// A header sector of the AG.
    Header(AgHeader),
    /// The rest of the blocks with the headers of the AG, of the extent with the realtime superblock, or of a realtime
    /// section behind its last whole extent.
    Padding,
    /// The realtime superblock.
    RealtimeSuperblock,
    /// A basic block of the log.
    Log {
        /// Number from the start of the log, in units of 512 bytes.
        block: u64,
    },
    /// A block that stands on the free list of the AG.
    FreeList {
        /// Its slot there.
        slot: u32,
    },
    /// A block of a btree.
    Btree {
        /// Which.
        kind: Type,
        /// 0 for leaves.
        level: u16,
    },
    /// An inode.
    Inode {
        /// Its number.
        ino: Ino,
        /// Does the inode btree say that it is in use? `None` where it does not say.
        in_use: Option<bool>,
    },
    /// A part of a file.
    File(FilePart),
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePart {
    /// What the inode is, where it can be read.
    pub kind: Option<Kind>,
    /// Links to it, where it can be read: 0 for one that is deleted but still open.
    pub nlink: Option<u32>,
    /// The byte within the fork; the byte within the block for an extent map.
    pub offset: u64,
    /// What the content is.
    pub role: Role,
    /// Behind the end of the file?
    pub beyond_end: bool,
}

/// What the content of a part of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Content of a file.
    Content,
    /// Names of a directory: number of the directory block.
    DirectoryData(u64),
    /// Hashes of a directory.
    DirectoryLeaf,
    /// Free space index of a directory.
    DirectoryFree,
    /// Attributes: file block of the attribute fork.
    Attributes(u64),
    /// Target of a symbolic link.
    LinkTarget,
    /// A block of the extent map of the fork, where its header can be read with its level.
    ExtentMap(Option<u16>),
    /// A block of a btree of a realtime group.
    RealtimeBtree(Type, Option<u16>),
    /// Bitmap of the realtime section or of a group.
    Bitmap,
    /// Summary of the realtime section or of a group.
    Summary,
    /// Quotas: of users, groups or projects.
    Quota(&'static str),
}

/// What lies at the byte of an answer, as far as its owner goes.
pub(super) fn of(walk: &Walk<'_>, answer: &Answer, range: &Range, report: &mut dyn FnMut(Error)) -> Detail {
    match (range.owner, answer.spot) {
        (Owner::Fs, Spot::Data { ag, .. }) => header(walk, answer, ag, report),
        (Owner::Fs, Spot::Realtime { group_block: 0, .. }) => Detail::RealtimeSuperblock,
        (Owner::Fs, _) => Detail::Padding,
        (Owner::Unknown, Spot::Realtime { group: None, group_block, .. }) => {
            let rt = walk.geometry().realtime.as_ref();
            let whole = rt.and_then(|rt| rt.extents.checked_mul(u64::from(rt.extent_blocks)));
            if whole.is_some_and(|whole| group_block >= whole) { Detail::Padding } else { Detail::None }
        }
        (Owner::Log, _) => {
            let from = answer.byte.0.saturating_sub(range.start.0);
            Detail::Log { block: from.checked_div(BASIC_BLOCK).unwrap_or(0) }
        }
        (Owner::Ag, Spot::Data { ag, ag_block, block }) => {
            let slots = group::agf(walk, ag, &mut |_| {}).and_then(|agf| metadata::free_list(walk, ag, &agf));
            let slot = slots.unwrap_or_default().into_iter().find(|&(_, listed)| listed == ag_block);
            match slot {
                Some((slot, _)) => Detail::FreeList { slot },
                None => btree(walk, block, &[&bnobt::SHAPE, &cntbt::SHAPE, &rmapbt::SHAPE], report),
            }
        }
        (Owner::Inobt, Spot::Data { block, .. }) => btree(walk, block, &[&inobt::SHAPE, &finobt::SHAPE], report),
        (Owner::Refcount, Spot::Data { block, .. }) => btree(walk, block, &[&refcountbt::SHAPE], report),
        (Owner::Inodes, Spot::Data { ag, block, .. }) => inode(walk, answer, ag, block, report),
        (Owner::File(mapped), spot) => Detail::File(file(walk, (answer, spot), range, &mapped, report)),
        _ => Detail::None,
    }
}

/// The header at a byte. A wrong checksum goes to `report`.
fn header(walk: &Walk<'_>, answer: &Answer, ag: AgNumber, report: &mut dyn FnMut(Error)) -> Detail {
    let start = walk.geometry().ag_start(ag).unwrap_or_default();
    let sector = answer.byte.0.saturating_sub(start.0).checked_div(u64::from(walk.context().sector_size));
    let (header, crc) = match sector {
        Some(0) => (AgHeader::Superblock, superblock::CRC_OFFSET),
        Some(1) => (AgHeader::Agf, agf::CRC_OFFSET),
        Some(2) => (AgHeader::Agi, agi::CRC_OFFSET),
        Some(3) => (AgHeader::Agfl, agfl::CRC_OFFSET),
        _ => return Detail::Padding,
    };
    match walk.volume().ag_header(ag, header) {
        Ok(block) if walk.context().has_crc() => {
            if let CrcState::Bad { computed } = checksum::verify(&block.bytes, crc) {
                let stored = bits::array(&block.bytes, crc).map_or(0, u32::from_le_bytes);
                let (stored, computed) =
                    (crate::format::Crc(stored).to_string(), crate::format::Crc(computed).to_string());
                report(corrupt(block.place.field("crc"), "the checksum is wrong", stored, computed));
            }
        }
        Ok(_) => {}
        Err(error) => report(error),
    }
    Detail::Header(header)
}

/// Which of these btrees a block belongs to, by its magic number.
fn btree(walk: &Walk<'_>, block: FsBlock, shapes: &[&'static Shape], report: &mut dyn FnMut(Error)) -> Detail {
    match which(walk, block, shapes) {
        Ok(Some((kind, level))) => Detail::Btree { kind, level },
        Ok(None) => {
            let names: Vec<&str> = shapes.iter().map(|shape| shape.kind.name()).collect();
            let place = walk.place(block, format!("block {block}")).field("magic");
            report(corrupt(place, "magic number of a block of a btree", "another one", names.join(" or ")));
            Detail::None
        }
        Err(error) => {
            report(error);
            Detail::None
        }
    }
}

fn which(walk: &Walk<'_>, block: FsBlock, shapes: &[&'static Shape]) -> Result<Option<(Type, u16)>, Error> {
    let bytes = walk.volume().blocks(block, 1, format!("block {block}"))?.bytes;
    let Some(head) = head(&bytes) else { return Ok(None) };
    let magic = |shape: &Shape| shape.magic_of(walk.context());
    let shape = shapes.iter().find(|shape| magic(shape) != 0 && magic(shape) == head.magic);
    Ok(shape.map(|shape| (shape.kind, head.level)))
}

fn inode(walk: &Walk<'_>, answer: &Answer, ag: AgNumber, block: FsBlock, report: &mut dyn FnMut(Error)) -> Detail {
    let geometry = walk.geometry();
    let index = answer.within.checked_div(u64::from(walk.context().inode_size)).unwrap_or(0);
    let ino = block.0.checked_shl(geometry.inodes_per_block_log).unwrap_or(0).saturating_add(index);
    let Some((_, agino)) = geometry.split_inode(Ino(ino)) else { return Detail::None };
    let mut in_use = None;
    match group::agi(walk, ag, report) {
        Ok(agi) => {
            // The record of a chunk begins at its first inode, so the last one that is not behind it holds it.
            let start = |key: &[u8]| bits::be32(key, 0).unwrap_or(0);
            let mut blocks = Blocks::only(walk, &inobt::SHAPE, group::inobt(ag, &agi), move |child| {
                start(child.key) <= agino.0 && child.next_key.is_none_or(|next| start(next) > agino.0)
            });
            while let Some(leaf) = blocks.next_block() {
                match leaf {
                    Ok(leaf) => {
                        for chunk in leaf.records().filter_map(|bytes| Chunk::at(walk.context(), bytes, 0)) {
                            let index = agino.0.checked_sub(chunk.startino.0);
                            if let Some(index) = index.filter(|&index| index < inobt::INODES_PER_CHUNK) {
                                in_use = Some(chunk.in_use(index));
                            }
                        }
                    }
                    Err(error) => report(error),
                }
            }
        }
        Err(error) => report(error),
    }
    // In use, but is there one?
    if in_use == Some(true) {
        match walk.inode(Ino(ino)) {
            Ok(block) => block.inode().crc_error(walk.volume()).into_iter().for_each(report),
            Err(error) => report(error),
        }
    }
    Detail::Inode { ino: Ino(ino), in_use }
}

fn file(
    walk: &Walk<'_>,
    (answer, spot): (&Answer, Spot),
    range: &Range,
    mapped: &Mapped,
    report: &mut dyn FnMut(Error),
) -> FilePart {
    let size = walk.geometry().block_size();
    let first = mapped.offset.saturating_mul(size);
    let from_start = answer.byte.0.saturating_sub(range.start.0);
    let offset = if mapped.bmbt { answer.within } else { first.saturating_add(from_start) };
    let block = match walk.inode(mapped.ino) {
        Ok(block) => block,
        Err(error) => {
            report(error);
            let role = if mapped.bmbt { Role::ExtentMap(None) } else { Role::Content };
            return FilePart { kind: None, nlink: None, offset, role, beyond_end: false };
        }
    };
    let inode = block.inode();
    inode.crc_error(walk.volume()).into_iter().for_each(report);
    let level = |shape: &'static Shape| match spot {
        Spot::Data { block, .. } => which(walk, block, &[shape]).ok().flatten().map(|(_, level)| level),
        _ => None,
    };
    let role = match (mapped.bmbt, mapped.fork) {
        (true, _) if inode.format(mapped.fork) == fork_format::META_BTREE => {
            let shape = if inode.metatype() == Some(8) { &rtrefcountbt::SHAPE } else { &rtrmapbt::SHAPE };
            Role::RealtimeBtree(shape.kind, level(shape))
        }
        (true, _) => Role::ExtentMap(level(&bmbt::SHAPE)),
        (false, Fork::Attr) => Role::Attributes(offset.checked_div(size).unwrap_or(0)),
        (false, Fork::Data) => role(walk, inode, offset),
    };
    let beyond_end = role == Role::Content && u64::try_from(inode.size()).is_ok_and(|end| offset >= end);
    FilePart { kind: Some(inode.kind()), nlink: Some(inode.nlink()), offset, role, beyond_end }
}

/// File byte from which on a directory holds hashes, and another one from which on it indexes free space
/// (`XFS_DIR2_LEAF_OFFSET`, `XFS_DIR2_FREE_OFFSET`).
const LEAF: u64 = 1 << 35;
const FREE: u64 = 2 << 35;

fn role(walk: &Walk<'_>, inode: Inode<'_>, offset: u64) -> Role {
    let sb = walk.volume().superblock();
    match (inode.kind(), inode.metatype()) {
        (_, Some(2)) => return Role::Quota("user"),
        (_, Some(3)) => return Role::Quota("group"),
        (_, Some(4)) => return Role::Quota("project"),
        (_, Some(5)) => return Role::Bitmap,
        (_, Some(6)) => return Role::Summary,
        (Kind::Directory, _) if offset >= FREE => return Role::DirectoryFree,
        (Kind::Directory, _) if offset >= LEAF => return Role::DirectoryLeaf,
        (Kind::Directory, _) => {
            return Role::DirectoryData(offset.checked_div(u64::from(walk.context().dir_block_size)).unwrap_or(0));
        }
        (Kind::Symlink, _) => return Role::LinkTarget,
        _ => {}
    }
    if walk.context().features.has_metadir() {
        return Role::Content;
    }
    match inode.ino {
        ino if ino == sb.rbmino => Role::Bitmap,
        ino if ino == sb.rsumino => Role::Summary,
        ino if ino.0 == 0 || ino.is_null() => Role::Content,
        ino if ino == sb.uquotino => Role::Quota("user"),
        ino if ino == sb.gquotino => Role::Quota("group"),
        ino if ino == sb.pquotino => Role::Quota("project"),
        _ => Role::Content,
    }
}
