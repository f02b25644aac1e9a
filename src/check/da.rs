//! Blocks of directories and attributes: what each says of itself, and the tree of hashes over their leaves, level by
//! level from the root down. `xfs_da3_node_verify`, `xfs_da3_blkinfo_verify` (xfs_da_btree.c), `scrub/dabtree.c`;
//! `traverse_int_dablock`, `verify_da_path` (xfs_repair).
//!
//! Memory: 40 bytes for every block of a level.

use super::context::{Ctx, Spot};
use super::fork::{self, FrameRules, Reader};
use super::raised;
use crate::format::{bits, da_block, da_node};
use std::collections::HashSet;

raised! { RAISED, structure "da";
    /// There is no such block where a pointer, or the kind of the directory, leads: it was overwritten, or its write was
    /// lost. What only it holds is lost: names of a data block end in lost+found when xfs_repair rebuilds the directory.
    BAD_MAGIC: "da-bad-magic" corrupt "magic", "no such block of a directory or attribute fork",
        source "xfs_da_btree.c:xfs_da3_node_verify; xfs_dir2_data.c:xfs_dir3_data_verify", since "2.6";
    /// Bytes of the block changed after it was written: a bad disk, a stray write, or an edit. Its content is not
    /// believed, and the kernel gives EUCLEAN (Structure needs cleaning).
    BAD_CRC: "da-bad-crc" corrupt "crc", "checksum does not match",
        source "xfs_da_btree.c:xfs_da3_node_read_verify; xfs_dir2_data.c:xfs_dir3_data_read_verify", since "3.10";
    /// The block belongs to another file system, or to an earlier one on this device.
    BAD_UUID: "da-bad-uuid" corrupt "uuid", "block of another file system",
        source "xfs_da_btree.c:xfs_da3_blkinfo_verify; xfs_dir2_data.c:xfs_dir3_data_verify", since "3.10";
    /// The block says that it lies elsewhere: it was written to the wrong place, or copied.
    BAD_BLKNO: "da-bad-blkno" corrupt "blkno", "block says it lies elsewhere",
        source "xfs_da_btree.c:xfs_da3_blkinfo_verify; xfs_dir2_data.c:xfs_dir3_data_verify", since "3.10";
    /// The block belongs to another inode.
    BAD_OWNER: "da-bad-owner" corrupt "owner", "block belongs to another inode",
        source "xfs_da_btree.c:xfs_da3_header_check; xfs_dir2.c:xfs_dir3_data_header_check", since "3.10";
    /// The level that a node says it has must be one less than its parent's, and between 1 and 4: kernels walk along at
    /// most 5 blocks.
    BAD_LEVEL: "da-bad-level" corrupt "level", "level does not fit the parent",
        source "xfs_da_btree.c:xfs_da3_node_verify; scrub/dabtree.c:xchk_da_btree_block", since "3.10";
    /// A node has at least one child, and no more than fit into a block.
    BAD_COUNT: "da-bad-count" corrupt "count", "more entries than fit into the block, or none",
        source "xfs_da_btree.c:xfs_da3_node_verify; xfs_dir2_leaf.c:xfs_dir3_leaf_check_int", since "3.10";
    /// A pointer leads to a hole, out of the part of the fork where the tree lies, or where another one leads already.
    BAD_POINTER: "da-bad-pointer" corrupt "before", "pointer to what cannot be a block of the tree",
        source "xfs_da_btree.c:xfs_da3_node_lookup_int; repair/da_util.c:traverse_int_dablock", since "2.6";
    /// Hashes stand in ascending order, so that names can be found.
    DISORDER: "da-hashes-disordered" corrupt "hashval", "hashes out of order",
        source "scrub/dabtree.c:xchk_da_btree_hash; repair/da_util.c:verify_da_path", since "scrub";
    /// The hash that a node holds for a child is the greatest of the child. Names between the two are not found.
    KEY_MISMATCH: "da-hash-mismatch" corrupt "hashval", "hash is not the greatest of the child",
        source "scrub/dabtree.c:xchk_da_btree_hash; repair/da_util.c:verify_final_da_path", since "scrub";
    /// The next block of a level is another one by the parent's pointers. Lookups of equal hashes go astray here.
    BAD_FORW: "da-bad-forw" corrupt "forw", "next block is not the right neighbour",
        source "scrub/dabtree.c:xchk_da_btree_block_check_sibling; repair/da_util.c:verify_da_path", since "scrub";
    /// The block before is another one by the parent's pointers.
    BAD_BACK: "da-bad-back" corrupt "back", "block before is not the left neighbour",
        source "scrub/dabtree.c:xchk_da_btree_block_check_sibling; repair/da_util.c:verify_da_path", since "scrub";
    /// Bytes without a use are zero.
    BAD_PAD: "da-bad-pad" corrupt "pad", "unused bytes are not zero",
        source "scrub/dabtree.c:xchk_da_btree_block; scrub/dir.c:xchk_directory_leaf1_bestfree, xchk_directory_free_bestfree",
        since "scrub";
    /// Bytes of a node without a use are zero. Nothing depends on them.
    NODE_PAD: "da-bad-node-pad" preen "pad32", "unused bytes of a node are not zero",
        source "scrub/dabtree.c:xchk_da_btree_block", since "scrub";
    /// The fork has a block in the part of the tree to which no pointer leads.
    UNREACHED: "da-unreached-block" corrupt "before", "block of the fork to which nothing leads",
        source "repair/phase6.c:longform_dir2_check_node", since "none";
}

/// Rules about what a block says of itself.
pub const FRAME: FrameRules = FrameRules { crc: BAD_CRC, uuid: BAD_UUID, blkno: BAD_BLKNO, owner: BAD_OWNER };

/// Greatest level of a node: `XFS_DA_NODE_MAXDEPTH` blocks, the leaf among them.
const DEPTH: u16 = 4;

/// Where a tree lies.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// File block of its root; all others lie behind it.
    pub root: u64,
    /// First file block that cannot be part of it.
    pub end: u64,
    /// Magic of its leaves.
    pub leaf: u16,
}

/// What looks at a leaf: its last hash, where it could be told.
type LeafCheck<'c> = dyn FnMut(&Leaf<'_>, &dyn Fn() -> Spot) -> Option<u32> + 'c;

/// A leaf, in memory. Its header is believed.
#[derive(Debug)]
pub struct Leaf<'b> {
    /// The block.
    pub bytes: &'b [u8],
    /// File block.
    pub at: u64,
}

/// How it went.
#[derive(Clone, Debug, Default)]
pub struct Scanned {
    /// Blocks that were entered.
    pub blocks: u64,
    /// Was every block entered and believed?
    pub complete: bool,
    /// Hashes that nodes hold for leaves and that are not those of the leaves: where, found, expected. They are kept
    /// back, since the leaf may be wrong.
    pub leaf_keys: Vec<(Spot, u32, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Child {
    at: u64,
    hash: Option<u32>,
    parent: Option<(u64, usize)>,
    /// Does it stand for all children of a node that was not entered?
    unseen: bool,
}

/// What a block says of its neighbours; `None` for one that could not be entered.
type Links = Option<(u32, u32)>;

struct Scan<'s, 'r, 'c> {
    ctx: &'c Ctx<'c>,
    reader: &'s mut Reader<'r, 'c>,
    bounds: Bounds,
    result: Scanned,
    seen: HashSet<u64>,
    /// Node of which a bad pointer was reported.
    blamed: Option<u64>,
    next: Vec<Child>,
    /// A second child of the root.
    second: Option<u64>,
}

/// Goes through a tree. `leaf` is called for every leaf that is believed, in the order of hashes; it gives the greatest
/// hash, or `None` where the leaf turns out not to be sound.
pub fn scan<'c>(ctx: &'c Ctx<'c>, reader: &mut Reader<'_, 'c>, bounds: Bounds, leaf: &mut LeafCheck<'_>) -> Scanned {
    let result = Scanned { complete: true, ..Scanned::default() };
    let mut scan =
        Scan { ctx, reader, bounds, result, seen: HashSet::new(), blamed: None, next: Vec::new(), second: None };
    let mut children = vec![Child { at: bounds.root, hash: None, parent: None, unseen: false }];
    let mut level = None;
    // Levels below the root's: each at least one less.
    for _ in 0..=DEPTH {
        let mut links = Vec::new();
        for child in &children {
            let entered = if child.unseen { None } else { scan.block(child, &mut level, leaf) };
            if entered.is_none() {
                scan.result.complete = false;
                scan.next.push(Child { at: 0, hash: None, parent: None, unseen: true });
            }
            links.push(entered);
        }
        scan.siblings(&children, &links);
        children = std::mem::take(&mut scan.next);
        if scan.result.blocks == 1 {
            scan.second = children.get(1).filter(|child| !child.unseen).map(|child| child.at);
        }
        level = match level {
            Some(level) if level > 0 && !children.is_empty() => Some(level - 1),
            _ => break,
        };
    }
    if ctx.is_cancelled() || scan.reader.exhausted {
        scan.result.complete = false;
    }
    scan.result
}

/// Is this the size of a node or leaf of so many entries?
fn fits(bytes: &[u8], header: u32, count: u16) -> bool {
    usize::from(count).saturating_mul(8) <= bytes.len().saturating_sub(usize::try_from(header).unwrap_or(0))
}

impl Scan<'_, '_, '_> {
    fn parent_spot(&self, child: &Child) -> Spot {
        match child.parent {
            Some((at, index)) => self.reader.spot(at).part(format_args!("btree[{index}]")),
            None => fork::inode_spot(self.ctx, self.reader.ino),
        }
    }

    /// Is another child of the root than the one at `at` a leaf, if there is another one?
    fn second_is_leaf(&mut self, at: u64) -> bool {
        let leaf = self.bounds.leaf;
        match self.second.filter(|&second| second != at).map(|second| self.reader.read(second)) {
            None => true,
            Some(fork::Read::Block(bytes)) => da_block::info(bytes).is_some_and(|info| info.magic == leaf),
            Some(_) => false,
        }
    }

    fn block(&mut self, child: &Child, level: &mut Option<u16>, leaf: &mut LeafCheck<'_>) -> Links {
        let (ctx, at) = (self.ctx, child.at);
        let within =
            at >= self.bounds.root && at < self.bounds.end && (child.parent.is_none() || at != self.bounds.root);
        if self.reader.exhausted {
            return None;
        }
        let block = self.reader.place(at);
        if !within || block.is_none() || !self.seen.insert(at) {
            // Pointers behind the last one are garbage where the count is wrong: one finding for a node.
            let parent = child.parent.map(|(parent, _)| parent);
            if parent.is_none() || self.blamed != parent {
                ctx.raise(BAD_POINTER, &self.parent_spot(child), at, "another block of the tree");
            }
            self.blamed = parent;
            return None;
        }
        let (ino, size, what) = (self.reader.ino, self.reader.size(), self.reader.what());
        let spot = || fork::spot(ctx, ino, what, block, at, size);
        let bytes = self.reader.whole(at, BAD_POINTER)?;
        let info = da_block::info(bytes)?;
        let node_magic = da_node::magic_of(ctx.context());
        let is_node = info.magic == node_magic;
        let wanted = match level {
            Some(0) => info.magic == self.bounds.leaf,
            Some(_) => is_node,
            None => is_node || info.magic == self.bounds.leaf,
        };
        if !wanted {
            if info.magic == self.bounds.leaf && self.result.blocks == 1 && self.second_is_leaf(at) {
                // The root is wrong, not each of its children.
                let root = self.reader.spot(self.bounds.root);
                ctx.raise(BAD_LEVEL, &root, level.map_or(0, |level| level.saturating_add(1)), 1);
                self.seen.remove(&at);
                *level = Some(0);
                return self.block(child, level, leaf);
            }
            let right = if level.is_none_or(|level| level == 0) { self.bounds.leaf } else { node_magic };
            ctx.raise(BAD_MAGIC, &spot(), format_args!("{:#x}", info.magic), format_args!("{right:#x}"));
            return None;
        }
        if !fork::frame(ctx, (fork::DA, &FRAME), bytes, (block, ino), &spot) {
            return None;
        }
        if bits::be16(bytes, 10).unwrap_or(0) != 0 && ctx.context().has_crc() {
            ctx.raise(BAD_PAD, &spot(), format_args!("{:#x}", bits::be16(bytes, 10).unwrap_or(0)), 0);
        }
        self.result.blocks += 1;
        if !is_node {
            *level = level.or(Some(0));
            let Some(last) = leaf(&Leaf { bytes, at }, &spot) else {
                self.result.complete = false;
                return Some((info.forw, info.back));
            };
            if let Some(hash) = child.hash
                && hash != last
            {
                let spot = self.parent_spot(child);
                self.result.leaf_keys.push((spot, hash, last));
            }
            return Some((info.forw, info.back));
        }
        let header = da_node::header(ctx.context(), bytes)?;
        let said = level.unwrap_or(header.level);
        if header.level != said || said == 0 || said > DEPTH {
            let right = level.map_or_else(|| format!("1 to {DEPTH}"), |level| level.to_string());
            ctx.raise(BAD_LEVEL, &spot(), header.level, right);
            if level.is_none() {
                return None;
            }
        }
        *level = Some(said);
        if ctx.context().has_crc() && bits::be32(bytes, 60).unwrap_or(0) != 0 {
            ctx.raise(NODE_PAD, &spot(), format_args!("{:#x}", bits::be32(bytes, 60).unwrap_or(0)), 0);
        }
        if header.count == 0 || !fits(bytes, da_node::header_size(ctx.context()), header.count) {
            ctx.raise(BAD_COUNT, &spot(), header.count, "1 to what fits into the block");
            return None;
        }
        let (mut last, mut ordered, from) = (0, true, self.next.len());
        for (index, (hash, before)) in da_node::entries(ctx.context(), bytes).enumerate() {
            if hash < last && ordered {
                ordered = false;
                let part = spot().part(format_args!("btree[{index}]"));
                ctx.raise(DISORDER, &part, format_args!("{hash:#x}"), format_args!("at least {last:#x}"));
            }
            last = hash;
            let (at_child, parent) = (u64::from(before), Some((at, index)));
            self.next.push(Child { at: at_child, hash: Some(hash), parent, unseen: false });
        }
        if !ordered {
            // One of the hashes is wrong, as was said: comparing them with the children says it again.
            self.next.iter_mut().skip(from).for_each(|child| child.hash = None);
        } else if let Some(hash) = child.hash
            && hash != last
        {
            let spot = self.parent_spot(child);
            ctx.raise(KEY_MISMATCH, &spot, format_args!("{hash:#x}"), format_args!("{last:#x}"));
        }
        Some((info.forw, info.back))
    }

    fn siblings(&self, children: &[Child], links: &[Links]) {
        let number = |child: Option<&Child>| child.map_or(Some(0), |child| u32::try_from(child.at).ok());
        for (index, (child, entered)) in children.iter().zip(links).enumerate() {
            let Some((forw, back)) = *entered else { continue };
            let before = index.checked_sub(1);
            let after = index.saturating_add(1);
            let sides = [
                (BAD_BACK, back, before.and_then(|i| children.get(i)), before.and_then(|i| links.get(i))),
                (BAD_FORW, forw, children.get(after), links.get(after)),
            ];
            for (rule, found, neighbour, neighbour_links) in sides {
                // A wrong pointer was reported: the neighbour that it should lead to is not known.
                let known = neighbour_links.is_none_or(Option::is_some);
                if let Some(right) = number(neighbour).filter(|&right| known && right != found) {
                    self.ctx.raise(rule, &self.reader.spot(child.at), found, right);
                }
            }
        }
    }
}

/// Reports the hashes that were kept back.
pub fn report_keys(ctx: &Ctx<'_>, scanned: &Scanned) {
    for (spot, found, right) in &scanned.leaf_keys {
        ctx.raise(KEY_MISMATCH, spot, format_args!("{found:#x}"), format_args!("{right:#x}"));
    }
}

/// Blocks of the fork between two file blocks, counted in blocks of the tree.
pub fn mapped(reader: &Reader<'_, '_>, from: u64, to: u64) -> u64 {
    let sum = reader.map.extents().iter().fold(0u64, |sum, extent| {
        let start = extent.startoff.0.max(from);
        let end = extent.startoff.0.saturating_add(u64::from(extent.blockcount)).min(to);
        sum.saturating_add(end.saturating_sub(start))
    });
    sum.checked_div(u64::from(reader.width)).unwrap_or(0)
}
