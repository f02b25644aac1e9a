//! One AG: its headers, the btrees they head, and what is learnt from them for later.
//!
//! Memory: 32 bytes for each chunk of 64 inodes, 16 for each shared extent, 4 for each unlinked inode, until the end of
//! the run; free extents while
//! the AG is looked at.

use super::btree::{Scanned, header_blocks};
use super::chunks::Chunks;
use super::context::{Ctx, Spot};
use super::finding::{Mismatch, Object, RuleInfo};
use super::known::Known;
use super::owners::Owner;
use super::{Rule, agf, agfl, agi, bnobt, finobt, inobt, refcntbt};
use crate::error::Place;
use crate::format::agf::Agf;
use crate::format::agi::Agi;
use crate::format::checksum::{self, CrcState};
use crate::format::features::Features;
use crate::format::inobt::Chunk;
use crate::format::refcountbt::Shared;
use crate::format::{Structure, Type, refcountbt, rmapbt};
use crate::geometry::Geometry;
use crate::units::{AgBlock, AgIno, AgNumber, Device};
use crate::volume::AgHeader;
use std::sync::OnceLock;

/// What was learnt of an AG.
#[derive(Debug)]
pub struct Group {
    /// Its number.
    pub ag: AgNumber,
    /// Its blocks, by the superblock.
    pub length: u32,
    /// Its free space header, where there is one, believed or not.
    pub agf: Option<Agf>,
    /// May the numbers in the AGF be compared with others?
    pub agf_believed: bool,
    /// Its inode header, where there is one, believed or not.
    pub agi: Option<Agi>,
    /// May the numbers in the AGI be compared with others?
    pub agi_believed: bool,
    /// Fields of the headers about which something was reported: what follows from that is not reported again.
    pub reported: Vec<&'static str>,
    /// The btree by block.
    pub bnobt: Scanned,
    /// The btree by size.
    pub cntbt: Scanned,
    /// The inode btree.
    pub inobt: Scanned,
    /// The free inode btree.
    pub finobt: Scanned,
    /// The refcount btree.
    pub refcntbt: Scanned,
    /// Do the free space btrees disagree? Then counts of free space say nothing more.
    pub disputed: bool,
    /// First inodes of chunks whose records are damaged, in order.
    pub doubtful: Vec<AgIno>,
    /// Blocks of the rmapbt, once it was walked.
    pub rmapbt_blocks: OnceLock<Known<u64>>,
    /// Is it known which blocks are free?
    pub free_known: bool,
    /// Free blocks by the bnobt.
    pub free_blocks: Known<u64>,
    /// Longest free extent by the cntbt.
    pub longest: Known<u64>,
    /// Blocks on the free list, where it is believed.
    pub free_list: Known<u32>,
    /// Inodes with space, by the inobt.
    pub inodes: Known<u64>,
    /// Free inodes, by the inobt.
    pub free_inodes: Known<u64>,
    /// Inodes on the lists of unlinked ones, in order; not known where the lists could not be followed.
    pub unlinked: Known<Vec<AgIno>>,
    /// Are they there for no reason: on sound lists, which should be empty?
    pub left_over: bool,
    /// Inode chunks: those whose place can be.
    pub chunks: Chunks,
    /// Shared extents, in order.
    pub shared: Vec<Shared>,
}

impl Group {
    fn new(ag: AgNumber, length: u32) -> Self {
        Self {
            ag,
            length,
            agf: None,
            agf_believed: false,
            agi: None,
            agi_believed: false,
            reported: Vec::new(),
            bnobt: Scanned::default(),
            cntbt: Scanned::default(),
            inobt: Scanned::default(),
            finobt: Scanned::default(),
            refcntbt: Scanned::default(),
            disputed: false,
            doubtful: Vec::new(),
            rmapbt_blocks: OnceLock::new(),
            free_known: true,
            free_blocks: Known::UNKNOWN,
            longest: Known::UNKNOWN,
            free_list: Known::UNKNOWN,
            inodes: Known::UNKNOWN,
            free_inodes: Known::UNKNOWN,
            unlinked: Known::UNKNOWN,
            left_over: false,
            chunks: Chunks::default(),
            shared: Vec::new(),
        }
    }

    /// Do all btrees of the AG but the rmapbt satisfy `test`?
    fn all_trees(&self, features: &Features, test: fn(Scanned) -> bool) -> bool {
        let trees = [
            (true, self.bnobt),
            (true, self.cntbt),
            (true, self.inobt),
            (features.has_finobt(), self.finobt),
            (features.has_reflink(), self.refcntbt),
        ];
        trees.into_iter().all(|(exists, scanned)| !exists || test(scanned))
    }

    /// Were headers and btrees sound?
    pub fn is_sound(&self, features: &Features) -> bool {
        let headers = self.agf_believed && self.agi_believed && self.reported.is_empty() && self.free_list.is_known();
        headers && !self.disputed && self.all_trees(features, Scanned::is_witness)
    }

    /// Is it known of all blocks of the AG which header, btree or free space they belong to?
    pub fn space_known(&self, features: &Features) -> bool {
        self.free_known && self.free_list.is_known() && self.all_trees(features, |scanned| scanned.complete)
    }

    /// Is an inode of this AG in use, by the inode btree?
    pub fn in_use(&self, agino: AgIno) -> Known<bool> {
        let chunk = self.chunk_of(agino.0);
        let in_use = chunk.is_some_and(|chunk| chunk.in_use(agino.0.saturating_sub(chunk.startino.0)));
        Known::when(self.inobt.is_witness(), in_use)
    }

    /// The chunk that holds an inode of this AG.
    pub fn chunk_of(&self, agino: u32) -> Option<&Chunk> {
        self.chunks.find(agino).and_then(|(at, _)| self.chunks.get(at))
    }
}

/// Levels that btrees can have (`m_alloc_maxlevels` and its kin).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Free space btrees.
    pub alloc: u32,
    /// Inode btrees.
    pub inobt: u32,
    /// Reverse mapping btree.
    pub rmap: u32,
    /// Refcount btree.
    pub refcount: u32,
}

/// Levels for `records`, all blocks half full (`xfs_btree_compute_maxlevels`).
fn levels((leaf, node): (u64, u64), records: u64) -> u32 {
    let mut blocks = records.div_ceil(leaf.max(1));
    let mut height = 1u32;
    while blocks > 1 && height < 64 {
        blocks = blocks.div_ceil(node.max(2));
        height = height.saturating_add(1);
    }
    height
}

/// Levels of a btree that fills `blocks`; its root may have as few as two children (`xfs_btree_space_to_height`).
fn space_to_height(node: u64, blocks: u64) -> u32 {
    let (mut row, mut left, mut height) = (2u64, blocks.saturating_sub(1), 1u32);
    while row < left && height < 64 {
        left = left.saturating_sub(row);
        row = row.saturating_mul(node.max(2));
        height = height.saturating_add(1);
    }
    height
}

impl Limits {
    /// From the geometry.
    pub fn of(geometry: &Geometry) -> Self {
        use crate::format::{bnobt, inobt};
        let context = &geometry.context;
        let least = |shape: &crate::format::btree_block::Shape| {
            (u64::from(shape.max_records(context) / 2), u64::from(shape.max_keys(context) / 2))
        };
        let blocks = u64::from(geometry.ag_blocks);
        let agino_bits = geometry.ag_block_log.saturating_add(geometry.inodes_per_block_log);
        let chunks = 1u64.checked_shl(agino_bits).unwrap_or(u64::MAX) >> 6;
        let rmap = least(&rmapbt::SHAPE);
        Self {
            alloc: levels(least(&bnobt::SHAPE), blocks.saturating_add(1) / 2),
            inobt: levels(least(&inobt::SHAPE), chunks),
            rmap: if context.features.has_reflink() { space_to_height(rmap.1, blocks) } else { levels(rmap, blocks) },
            refcount: levels(least(&refcountbt::SHAPE), blocks),
        }
    }
}

/// A header of an AG as a spot.
pub fn header_spot(ctx: &Ctx<'_>, ag: AgNumber, header: AgHeader) -> Spot {
    let (sector, kind) = match header {
        AgHeader::Superblock => (0, Type::Sb),
        AgHeader::Agf => (1, Type::Agf),
        AgHeader::Agi => (2, Type::Agi),
        AgHeader::Agfl => (3, Type::Agfl),
    };
    let byte = ctx.geometry().ag_header(ag, sector).unwrap_or_default();
    let length = u64::from(ctx.context().sector_size);
    let object = if kind == Type::Sb { Object::Superblock(ag) } else { Object::Ag(ag, kind) };
    Spot { place: Place::new(Device::Data, byte, length, format!("{} {ag}", header.name())), object }
}

/// Applies rules in their order; after a wrong magic or checksum, which come first, the rest is not believed and not
/// looked at. True where magic and checksum are right.
pub fn apply_until_unreadable<S: 'static>(
    rules: &'static [Rule<S>],
    infos: &'static [RuleInfo],
    subject: &S,
    mut found: impl FnMut(&'static RuleInfo, Mismatch),
) -> bool {
    for (rule, info) in rules.iter().zip(infos) {
        if let Some(mismatch) = (rule.test)(subject) {
            found(info, mismatch);
            if info.id.ends_with("-bad-magic") || info.id.ends_with("-bad-crc") {
                return false;
            }
        }
    }
    true
}

/// The AGs to look at: those that were asked for, as far as the device goes. The first that is not there is reported.
pub fn wanted(ctx: &Ctx<'_>) -> Vec<AgNumber> {
    let there = crate::walk::group::numbers(ctx.walk);
    let present = there.clone().count();
    if u32::try_from(present).is_ok_and(|present| present < ctx.geometry().ag_count) {
        let ag = AgNumber(u32::try_from(present).unwrap_or(u32::MAX));
        if let Err(error) = ctx.volume().ag_header(ag, AgHeader::Superblock) {
            ctx.owners_unknown();
            ctx.unreadable(&error, Object::Superblock(ag));
        }
    }
    there.filter(|ag| ctx.wants(*ag)).collect()
}

/// Looks at an AG: headers, free list, btrees of free space, inodes and shared extents.
pub fn check(ctx: &Ctx<'_>, ag: AgNumber) -> Group {
    let length = ctx.geometry().ag_length(ag).unwrap_or(0);
    let mut group = Group::new(ag, length);
    let mut owners = ctx.owners.local();
    owners.blocks(ag, AgBlock(0), header_blocks(ctx), Owner::HEADERS);
    log(ctx, ag, &mut owners);
    free_space(ctx, &mut group, &mut owners);
    inodes(ctx, &mut group, &mut owners);
    group.unlinked = agi::against_btrees(ctx, &mut group);
    group
}

/// The internal log, where it lies in this AG.
fn log(ctx: &Ctx<'_>, ag: AgNumber, owners: &mut super::owners::Local<'_>) {
    let geometry = ctx.geometry();
    if let Some((log_ag, within)) = geometry.log_start.and_then(|start| geometry.split(start))
        && log_ag == ag
    {
        owners.blocks(ag, within, geometry.log_blocks, Owner::LOG);
    }
}

fn read(ctx: &Ctx<'_>, ag: AgNumber, header: AgHeader) -> Option<Vec<u8>> {
    match ctx.volume().ag_header(ag, header) {
        Ok(block) => Some(block.bytes),
        Err(error) => {
            ctx.unreadable(&error, header_spot(ctx, ag, header).object);
            None
        }
    }
}

fn crc(ctx: &Ctx<'_>, bytes: &[u8], at: usize) -> CrcState {
    if ctx.context().has_crc() { checksum::verify(bytes, at) } else { CrcState::Unchecked }
}

fn free_space(ctx: &Ctx<'_>, group: &mut Group, owners: &mut super::owners::Local<'_>) {
    let (ag, context) = (group.ag, ctx.context());
    let sector = read(ctx, ag, AgHeader::Agf);
    let Some(agf) = sector.as_deref().and_then(Agf::decode) else {
        group.free_known = false;
        return;
    };
    let spot = header_spot(ctx, ag, AgHeader::Agf);
    let list = read(ctx, ag, AgHeader::Agfl);
    let old_layout = list.as_deref().is_some_and(|list| agfl::has_old_layout(ctx, group, &agf, list));
    let crc = crc(ctx, sector.as_deref().unwrap_or_default(), crate::format::agf::CRC_OFFSET);
    let subject = agf::Subject {
        agf: agf.clone(),
        ag,
        length: group.length,
        first: header_blocks(ctx),
        slots: crate::format::agfl::slots(context),
        limits: Limits::of(ctx.geometry()),
        features: context.features,
        uuid: ctx.volume().superblock().metadata_uuid(),
        crc,
        old_layout,
    };
    let mut mismatches: Vec<(&'static RuleInfo, Mismatch)> = Vec::new();
    group.agf_believed = apply_until_unreadable(agf::RULES, agf::INFOS, &subject, |rule, mismatch| {
        group.reported.push(rule.field);
        if rule.field == agf::FREEBLKS.field {
            mismatches.push((rule, mismatch));
        } else {
            ctx.raise(rule, &spot, mismatch.found, mismatch.expected);
        }
    });
    if agf.magicnum != crate::format::agf::MAGIC {
        group.free_known = false;
        return;
    }
    if group.agf_believed && context.has_crc() {
        ctx.lsn(agf.lsn, || spot.clone());
    }
    group.agf = Some(agf.clone());
    if let Some(sector) = list {
        let list = agfl::check(ctx, group, &sector, owners);
        group.free_list = Known::when(list.is_some(), list.unwrap_or(0));
    }
    bnobt::check(ctx, group, &agf, owners);
    for (rule, Mismatch { found, mut expected }) in mismatches {
        if let Some(right) = group.free_blocks.get() {
            expected = format!("{right}, which the btrees hold ({expected})");
        }
        ctx.raise(rule, &spot, found, expected);
    }
    if context.features.has_reflink() {
        refcntbt::check(ctx, group, &agf, owners);
    }
}

fn inodes(ctx: &Ctx<'_>, group: &mut Group, owners: &mut super::owners::Local<'_>) {
    let (ag, context) = (group.ag, ctx.context());
    let sector = read(ctx, ag, AgHeader::Agi);
    let Some(agi) = sector.as_deref().and_then(Agi::decode) else {
        ctx.owners_unknown();
        return;
    };
    let spot = header_spot(ctx, ag, AgHeader::Agi);
    let crc = crc(ctx, sector.as_deref().unwrap_or_default(), crate::format::agi::CRC_OFFSET);
    let subject = agi::Subject {
        agi: agi.clone(),
        ag,
        length: group.length,
        first: header_blocks(ctx),
        inodes: inobt::Layout::of(ctx.volume()).inodes(ctx.geometry(), group.length),
        limits: Limits::of(ctx.geometry()),
        features: context.features,
        uuid: ctx.volume().superblock().metadata_uuid(),
        crc,
    };
    group.agi_believed = apply_until_unreadable(agi::RULES, agi::INFOS, &subject, |rule, mismatch| {
        group.reported.push(rule.field);
        ctx.raise(rule, &spot, mismatch.found, mismatch.expected);
    });
    if agi.magicnum != crate::format::agi::MAGIC {
        ctx.owners_unknown();
        return;
    }
    if group.agi_believed && context.has_crc() {
        ctx.lsn(agi.lsn, || spot);
    }
    inobt::check(ctx, group, &agi, owners);
    if context.features.has_finobt() {
        finobt::check(ctx, group, &agi, owners);
    }
    group.agi = Some(agi);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, after the kernel's functions: 2^27 free extents, 252 to a half full leaf of 4 KiB and 168 to a node, take
    /// 532610, 3171, 19 and 1 blocks. With 45 children to a node, 3 blocks are a root and its 2; 93 hold 90 more.
    #[test]
    fn levels_of_a_full_ag() {
        // 2^27 records, 252 and 168 to a half full block: 532610 leaves, then 3171, 19 and 1 nodes.
        assert_eq!(levels((252, 168), 1 << 27), 4);
        assert_eq!(levels((252, 168), 1), 1);
        assert_eq!([1, 3, 4, 93, 94].map(|blocks| space_to_height(45, blocks)), [1, 1, 2, 2, 3]);
    }
}
