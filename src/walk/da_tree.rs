//! The hash trees of directories and attributes: from the root down to the leaves, through file blocks.
//! `struct xfs_da_intnode`; `xfs_da3_node_lookup_int` (xfs_da_btree.c).

use super::extents::ForkMap;
use super::{Visited, Walk, corrupt};
use crate::error::{Error, Place, Result};
use crate::format::checksum::{self, CrcState};
use crate::format::{bits, da_block, da_node};
use crate::units::{FileBlock, Ino};
use crate::volume::Block;
use std::collections::VecDeque;

/// Most levels of nodes (`XFS_DA_NODE_MAXDEPTH`).
const MAX_DEPTH: u16 = 5;

/// A block of a hash tree, with its own bytes.
#[derive(Clone, Debug)]
pub struct DaBlock {
    /// Its file block.
    pub at: FileBlock,
    /// 0 for leaves.
    pub level: u16,
    /// The bytes and their place.
    pub block: Block,
}

/// What makes one tree differ from another.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Structure in messages: `attribute block`, `directory block`.
    pub name: &'static str,
    /// File system blocks per block.
    pub width: u32,
    /// May a leaf have this magic?
    pub is_leaf: fn(u16) -> bool,
}

/// The blocks of a hash tree, nodes before what is below them. An error is about one block; the iterator goes on with
/// the others and then ends.
pub struct DaBlocks<'a> {
    walk: &'a Walk<'a>,
    map: &'a ForkMap,
    ino: Ino,
    shape: Shape,
    /// Children to come: level, the rest of them.
    frames: Vec<(u16, VecDeque<u32>)>,
    start: Option<FileBlock>,
    visited: Visited,
    errors: VecDeque<Error>,
    queued: Option<DaBlock>,
}

/// The blocks of the tree whose root is the file block `start` of the fork behind `map`.
pub fn blocks<'a>(walk: &'a Walk<'a>, map: &'a ForkMap, ino: Ino, shape: Shape, start: FileBlock) -> DaBlocks<'a> {
    DaBlocks {
        walk,
        map,
        ino,
        shape,
        frames: Vec::new(),
        start: Some(start),
        visited: Visited::default(),
        errors: VecDeque::new(),
        queued: None,
    }
}

impl DaBlocks<'_> {
    fn refuse(&mut self, place: Place, what: &str, found: impl std::fmt::Display, right: impl std::fmt::Display) {
        self.errors.push_back(corrupt(place, what, found, right));
    }

    /// Enters a block that should have `level`; the root may have any.
    fn enter(&mut self, at: FileBlock, level: Option<u16>) {
        let name = format!("inode {} › {} {at}", self.ino, self.shape.name);
        if let Err(error) = self.walk.step(1) {
            self.errors.push_back(error);
            self.frames.clear();
            return;
        }
        let again = !self.visited.first_time(at.0);
        let block = match self.map.read_blocks(self.walk, at, self.shape.width, &name) {
            Ok(block) => block,
            Err(error) => return self.errors.push_back(error),
        };
        if again {
            return self.refuse(block.place, "the block is reached twice", at, "each block once");
        }
        let context = self.walk.context();
        let Some(info) = da_block::info(&block.bytes) else { return };
        let node = info.magic == da_node::magic_of(context);
        let leaf = (self.shape.is_leaf)(info.magic);
        if !node && !leaf {
            let magic = format!("{:#x}", info.magic);
            return self.refuse(block.place.field("magic"), "no block of this tree", magic, "a node or leaf");
        }
        let found = if node { da_node::header(context, &block.bytes).map_or(0, |header| header.level) } else { 0 };
        if level.is_some_and(|level| level != found) || (node && found == 0) || found > MAX_DEPTH {
            let right = level.map_or_else(|| format!("1 to {MAX_DEPTH}"), |level| level.to_string());
            return self.refuse(block.place.field("level"), "level of the block", found, right);
        }
        if context.has_crc() {
            if let CrcState::Bad { computed } = checksum::verify(&block.bytes, da_block::CRC_OFFSET) {
                let stored = bits::array(&block.bytes, da_block::CRC_OFFSET).map_or(0, u32::from_le_bytes);
                let (stored, computed) =
                    (crate::format::Crc(stored).to_string(), crate::format::Crc(computed).to_string());
                self.refuse(block.place.field("crc"), "the checksum is wrong", stored, computed);
            }
            let owner = bits::be64(&block.bytes, 48).unwrap_or(0);
            if owner != self.ino.0 {
                self.refuse(block.place.field("owner"), "the block belongs to another inode", owner, self.ino);
            }
        }
        if let Some(below) = found.checked_sub(1) {
            let children = da_node::entries(context, &block.bytes).map(|(_, before)| before).collect();
            self.frames.push((below, children));
        }
        self.queued = Some(DaBlock { at, level: found, block });
    }
}

impl Iterator for DaBlocks<'_> {
    type Item = Result<DaBlock>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(error) = self.errors.pop_front() {
                return Some(Err(error));
            }
            if let Some(block) = self.queued.take() {
                return Some(Ok(block));
            }
            if let Some(start) = self.start.take() {
                self.enter(start, None);
                continue;
            }
            let (level, children) = self.frames.last_mut()?;
            let level = *level;
            match children.pop_front() {
                Some(child) => self.enter(FileBlock(u64::from(child)), Some(level)),
                None => {
                    self.frames.pop();
                }
            }
        }
    }
}
