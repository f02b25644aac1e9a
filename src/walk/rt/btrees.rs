//! From a realtime group to its reverse mappings and shared extents: the records of the btrees in its metadata files,
//! in order. `xfs_rtrmapbt_*`, `xfs_rtrefcountbt_*`.

use super::files::Owned;
use super::{Group, inode};
use crate::error::{Error, Place, Result};
use crate::format::btree_block::Shape;
use crate::format::dinode::{Fork, fork_format};
use crate::format::refcountbt::Shared;
use crate::format::rmapbt::{self, Mapping};
use crate::format::{rtrefcountbt, rtrmapbt};
use crate::units::{Ino, RgNumber};
use crate::walk::btree::{At, Blocks, Root};
use crate::walk::metadir::GroupFile;
use crate::walk::{InodeBlock, Walk, corrupt};

/// A record and where it stands.
#[derive(Clone, Debug)]
pub struct Found<T> {
    /// The record.
    pub record: T,
    /// The block that holds it.
    pub at: At,
    /// Its number in that block, from 1 on.
    pub number: u32,
}

/// A btree of a group, open for reading.
#[derive(Clone, Debug)]
pub struct Tree {
    block: InodeBlock,
    shape: &'static Shape,
}

impl Tree {
    /// The inode that holds the root.
    pub fn inode(&self) -> crate::walk::Inode<'_> {
        self.block.inode()
    }

    /// Where that inode lies.
    pub fn inode_place(&self) -> &Place {
        self.block.place()
    }

    /// The blocks.
    pub fn blocks<'a>(&'a self, walk: &'a Walk<'a>) -> Blocks<'a> {
        let inode = self.block.inode();
        let bytes = inode.fork(Fork::Data).unwrap_or_default();
        Blocks::new(walk, self.shape, Root::Fork { ino: inode.ino, bytes })
    }

    /// The place of a record.
    pub fn place<T>(&self, walk: &Walk<'_>, found: &Found<T>) -> Place {
        let mut place = self.blocks(walk).place(found.at);
        place.structure = format!("{} › recs[{}]", place.structure, found.number);
        place
    }
}

/// Opens a btree of a group.
///
/// # Errors
/// Whatever keeps the file from being found or read; [`Error::Corrupt`] where its fork holds no btree.
pub fn open(walk: &Walk<'_>, group: RgNumber, file: GroupFile, report: &mut dyn FnMut(Error)) -> Result<Tree> {
    let block = inode(walk, group, file, report)?;
    let format = block.inode().format(Fork::Data);
    if format != fork_format::META_BTREE {
        let place = block.place().field("core.format");
        return Err(corrupt(place, "format of the file", format, "5 (meta_btree)"));
    }
    let shape = if file == GroupFile::Refcount { &rtrefcountbt::SHAPE } else { &rtrmapbt::SHAPE };
    Ok(Tree { block, shape })
}

/// Goes over the records of a btree. `each` gets them in order, `report` what is wrong with blocks.
fn records<'a>(
    walk: &'a Walk<'a>,
    tree: &'a Tree,
    report: &mut dyn FnMut(Error),
    each: &mut dyn FnMut(&[u8], At, u32),
) -> bool {
    let mut complete = true;
    let mut blocks = tree.blocks(walk);
    while let Some(block) = blocks.next_block() {
        match block {
            Ok(block) => (1u32..).zip(block.records()).for_each(|(n, record)| each(record, block.at, n)),
            Err(error) => {
                complete = false;
                report(error);
            }
        }
    }
    complete
}

/// The reverse mappings of a group. False where some of them could not be read.
pub fn mappings<'a>(
    walk: &'a Walk<'a>,
    tree: &'a Tree,
    report: &mut dyn FnMut(Error),
    each: &mut dyn FnMut(Found<Mapping>),
) -> bool {
    records(walk, tree, report, &mut |bytes, at, number| {
        if let Some(record) = Mapping::at(bytes, 0) {
            each(Found { record, at, number });
        }
    })
}

/// The shared and staged extents of a group. False where some of them could not be read.
pub fn shared<'a>(
    walk: &'a Walk<'a>,
    tree: &'a Tree,
    report: &mut dyn FnMut(Error),
    each: &mut dyn FnMut(Found<Shared>),
) -> bool {
    records(walk, tree, report, &mut |bytes, at, number| {
        if let Some(record) = Shared::at(bytes, 0) {
            each(Found { record, at, number });
        }
    })
}

/// A reverse mapping as an extent of the section; `ino` is the owner as stored, whatever it is.
pub fn as_owned(group: &Group, mapping: &Mapping) -> Owned {
    let file = mapping.owner < rmapbt::owner::COW;
    Owned {
        start: group.first_block().saturating_add(mapping.startblock.get()),
        blocks: mapping.blockcount.get(),
        ino: mapping.owner,
        offset: if file { mapping.offset.blocks() } else { 0 },
        unwritten: mapping.offset.unwritten(),
    }
}

/// The owner as an inode number, where it is none of the special ones.
pub fn owner_inode(owner: u64) -> Option<Ino> {
    (owner < rmapbt::owner::COW).then_some(Ino(owner))
}
