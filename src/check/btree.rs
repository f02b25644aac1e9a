//! Blocks of any btree: header, order, keys against children, siblings, level by level from the root down. What the
//! records mean is for the file of each index.
//!
//! A level is a list of pointers, so that each block's neighbours are known before it is read: a damaged block hides
//! neither its siblings nor their links. `scrub/btree.c`; `scan_sbtree`, `scan_lbtree` (xfs_repair).
//!
//! Memory: 64 bytes for every block of a level, and 1 MiB of blocks.

use super::btree_keys::{
    Key, in_order, is_unwritten, key_text, keys_in_order, node_keys, record_high, record_key, record_text,
};
use super::context::{Ctx, Spot};
use super::finding::Object;
use super::known::Known;
use super::owners::{Entry, Local, Owner, Within};
use super::raised;
use crate::format::btree_block::{BtreeHead, Parts, Shape, ShortHeader, head};
use crate::format::checksum::{self, CrcState};
use crate::format::{Type, bits};
use crate::units::{AgBlock, AgNumber, BASIC_BLOCK, FsBlock};
use crate::walk::batch::Batch;
use crate::walk::btree::Root;
use std::collections::HashSet;

raised! { HEAD, structure "btree", fields BtreeHead;
    /// A pointer leads to a block that is not of this btree: the pointer is wrong, or the block was overwritten. What
    /// lies below cannot be reached. xfs_repair builds the btrees of an AG anew from what inodes and extents say.
    BAD_MAGIC: "btree-bad-magic" corrupt magic, "no block of this btree",
        source "xfs_*_btree.c:xfs_*bt_verify; repair/scan.c:scan_allocbt, scan_inobt, scan_rmapbt, scan_refcbt", since "2.6";
    /// The level that a block says it has must be one less than its parent's, and that of the root what the header says.
    BAD_LEVEL: "btree-bad-level" corrupt level, "level does not fit the parent",
        source "scrub/btree.c:xchk_btree_block; repair/scan.c:scan_allocbt", since "2.6";
    /// More records than a block can hold: what lies behind them is read as records, too.
    TOO_MANY: "btree-too-many-records" corrupt numrecs, "more records than fit into a block",
        source "xfs_btree.c:xfs_btree_agblock_verify, xfs_btree_fsblock_verify; repair/scan.c:scan_allocbt", since "3.10";
    /// All blocks but the root are kept at least half full.
    TOO_FEW: "btree-too-few-records" corrupt numrecs, "fewer records than half a block",
        source "scrub/btree.c:xchk_btree_check_minrecs; repair/scan.c:scan_allocbt", since "scrub";
}

raised! { HEADER, structure "btree", fields ShortHeader;
    /// Bytes of the block changed after it was written: a bad disk, a stray write, or an edit. Its records are not
    /// believed.
    BAD_CRC: "btree-bad-crc" corrupt crc, "checksum does not match",
        source "xfs_btree.c:xfs_btree_agblock_verify_crc, xfs_btree_fsblock_verify_crc", since "3.10";
    /// The block belongs to another file system, or to an earlier one on this device.
    BAD_UUID: "btree-bad-uuid" corrupt uuid, "block of another file system",
        source "xfs_btree.c:xfs_btree_agblock_v5hdr_verify, xfs_btree_fsblock_v5hdr_verify", since "3.10";
    /// The block says that it lies elsewhere: it was written to the wrong place, or copied.
    BAD_BLKNO: "btree-bad-blkno" corrupt blkno, "block says it lies elsewhere",
        source "xfs_btree.c:xfs_btree_agblock_v5hdr_verify, xfs_btree_fsblock_v5hdr_verify", since "3.10";
    /// The block belongs to another AG or inode.
    BAD_OWNER: "btree-bad-owner" corrupt owner, "block belongs to another owner",
        source "xfs_btree.c:xfs_btree_agblock_v5hdr_verify; scrub/btree.c:xchk_btree_block_check_owner", since "3.10";
    /// The left neighbour by the parent's pointers is another one. Walks along the leaves go astray here.
    BAD_LEFT: "btree-bad-leftsib" corrupt leftsib, "left sibling is not the left neighbour",
        source "scrub/btree.c:xchk_btree_block_check_sibling; repair/scan.c (roots only)", since "scrub";
    /// The right neighbour by the parent's pointers is another one. Walks along the leaves go astray here.
    BAD_RIGHT: "btree-bad-rightsib" corrupt rightsib, "right sibling is not the right neighbour",
        source "scrub/btree.c:xchk_btree_block_check_sibling; repair/scan.c (roots only)", since "scrub";
}

raised! { RAISED, structure "btree";
    /// A pointer leads out of the AG or device, or into the headers.
    BAD_POINTER: "btree-bad-pointer" corrupt "ptrs", "pointer to a block that cannot be part of a btree",
        source "xfs_btree.c:xfs_btree_check_ptr; repair/scan.c:scan_allocbt", since "2.6";
    /// Two pointers of a btree lead to the same block.
    TWICE: "btree-block-twice" corrupt "ptrs", "two pointers to one block",
        source "repair/scan.c:scan_allocbt (bad space usage)", since "none";
    /// Records stand in the order of their keys, so that they can be found. Allocation out of a disordered free space
    /// btree can hand out blocks that are in use.
    DISORDER: "btree-records-disordered" corrupt "recs", "records out of order or overlapping",
        source "scrub/btree.c:xchk_btree_rec; repair/scan.c:scan_allocbt", since "scrub";
    /// Keys of a node stand in ascending order.
    KEY_DISORDER: "btree-keys-disordered" corrupt "keys", "keys out of order",
        source "scrub/btree.c:xchk_btree_key", since "scrub";
    /// The key of a child is that of its first record. Lookups miss records between the two.
    KEY_MISMATCH: "btree-key-mismatch" corrupt "keys", "key is not that of the child's first record",
        source "scrub/btree.c:xchk_btree_block_check_keys", since "scrub";
    /// The high key of a child is the greatest end of what lies below it. Queries by range miss records otherwise.
    HIGH_KEY_MISMATCH: "btree-high-key-mismatch" corrupt "keys", "high key is not the end of what lies below",
        source "scrub/btree.c:xchk_btree_block_check_keys; repair/scan.c:scan_rmapbt", since "scrub";
    /// Old kernels copied the mark of unwritten extents into keys, where it means nothing.
    KEY_UNWRITTEN: "rmapbt-unwritten-in-key" preen "keys", "key has the mark of unwritten extents",
        source "scrub/rmap.c:xchk_rmapbt_check_unwritten_in_keyflags; repair/scan.c:warn_rmap_unwritten_key", since "scrub";
}

/// A btree to look through.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    /// Its kind.
    pub shape: &'static Shape,
    /// Where it begins.
    pub root: Root<'a>,
    /// Attribute fork? Only for btrees in inodes.
    pub attr: bool,
    /// May the children of a root in an inode have few records? So they may where an attribute fork takes room from the
    /// root (`xchk_btree_check_iroot_minrecs`).
    pub lenient: bool,
    /// What findings are about.
    pub object: Object,
    /// Owner of its blocks.
    pub owner: Owner,
}

/// How it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    blocks: u64,
    /// Nothing was found wrong with any block.
    pub sound: bool,
    /// Every block could be entered: the records are all there.
    pub complete: bool,
}

impl Scanned {
    /// May other structures be compared with its records?
    pub fn is_witness(self) -> bool {
        self.sound && self.complete
    }

    /// All of its blocks, where every one could be entered.
    pub fn all_blocks(self) -> Known<u64> {
        Known::when(self.complete, self.blocks)
    }

    /// The same, where nothing is wrong with any.
    pub fn sound_blocks(self) -> Known<u64> {
        Known::when(self.is_witness(), self.blocks)
    }
}

/// What looks at the records of a leaf: true where each of them alone is right.
pub type LeafFn<'f> = &'f mut dyn FnMut(&Leaf<'_>) -> bool;

/// A leaf, in memory.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'a> {
    /// The block.
    pub block: FsBlock,
    /// May its records be believed? If not, something was reported already.
    pub believed: bool,
    bytes: &'a [u8],
    tree: &'a Tree<'a>,
    ctx: &'a Ctx<'a>,
}

impl<'a> Leaf<'a> {
    /// Its records.
    pub fn records(&self) -> Parts<'a> {
        self.tree.shape.records(self.ctx.context(), self.bytes)
    }

    /// Record `index` as a spot.
    pub fn spot(&self, index: usize) -> Spot {
        self.tree.spot(self.ctx, self.block).part(format_args!("recs[{}]", index.saturating_add(1)))
    }
}

/// Left and right sibling of a block, as it names them.
type Links = (Option<u64>, Option<u64>);

/// A pointer of a node.
#[derive(Clone, Copy, Debug)]
struct Child {
    /// Is its node believed?
    believed: bool,
    /// Does it stand for all children of a node that was not entered? The blocks on both sides are no neighbours then.
    unseen: bool,
    pointer: u64,
    block: Option<FsBlock>,
    key: Option<Key>,
    high: Option<Key>,
    parent: Option<(FsBlock, u16)>,
}

impl Tree<'_> {
    /// Whose it is: `agf 0` or `inode 131`.
    fn holder(&self) -> String {
        match self.root {
            Root::Fork { ino, .. } => format!("inode {ino}"),
            Root::Ag { ag, .. } => match self.shape.kind {
                Type::Inobt | Type::Finobt => format!("agi {ag}"),
                _ => format!("agf {ag}"),
            },
        }
    }

    /// A block of it as a spot.
    pub fn spot(&self, ctx: &Ctx<'_>, block: FsBlock) -> Spot {
        let within = match self.root {
            Root::Ag { .. } => ctx.geometry().split(block).map_or(block.0, |(_, within)| within.get()),
            Root::Fork { .. } => block.0,
        };
        ctx.block(block, format!("{} › {} block {within}", self.holder(), self.shape.kind.name()), self.object)
    }

    /// The root in the inode, or the header that names the root, as a spot.
    fn root_spot(&self, ctx: &Ctx<'_>) -> Spot {
        let place = match self.root {
            Root::Fork { ino, .. } => {
                let byte = ctx.geometry().inode_byte(ino).unwrap_or_default();
                let size = u64::from(ctx.context().inode_size);
                crate::error::Place::new(crate::units::Device::Data, byte, size, self.holder())
            }
            Root::Ag { ag, .. } => {
                let sector = if matches!(self.shape.kind, Type::Inobt | Type::Finobt) { 2 } else { 1 };
                let byte = ctx.geometry().ag_header(ag, sector).unwrap_or_default();
                let size = u64::from(ctx.context().sector_size);
                crate::error::Place::new(crate::units::Device::Data, byte, size, self.holder())
            }
        };
        Spot { place, object: self.object }.part(format_args!("{} root", self.shape.kind.name()))
    }

    fn parent_spot(&self, ctx: &Ctx<'_>, parent: Option<(FsBlock, u16)>) -> Spot {
        match parent {
            Some((block, index)) => self.spot(ctx, block).part(format_args!("child {}", index.saturating_add(1))),
            None => self.root_spot(ctx),
        }
    }

    /// The block that a pointer means; `None` where there is none that can be part of a btree.
    fn target(&self, ctx: &Ctx<'_>, pointer: u64) -> Option<FsBlock> {
        match self.root {
            Root::Ag { ag, .. } => {
                let block = AgBlock(u32::try_from(pointer).ok()?);
                (block.0 >= header_blocks(ctx)).then(|| ctx.geometry().join(ag, block)).flatten()
            }
            Root::Fork { .. } => {
                let (_, within) = ctx.geometry().split(FsBlock(pointer))?;
                (within.0 >= header_blocks(ctx)).then_some(FsBlock(pointer))
            }
        }
    }
}

/// Blocks at the start of an AG that its headers take.
pub fn header_blocks(ctx: &Ctx<'_>) -> u32 {
    ctx.context().sector_size.saturating_mul(4).div_ceil(ctx.context().block_size)
}

/// Looks through a btree: header and place of every block, order, keys. `leaf` gets the leaves in the order of their
/// keys, and tells whether each of their records alone is right: if not, it has said so, and order and keys of the leaf
/// are not judged. The blocks go to `owners`.
pub fn scan(ctx: &Ctx<'_>, tree: &Tree<'_>, owners: &mut Local<'_>, leaf: LeafFn<'_>) -> Scanned {
    let mut scan = Scan {
        ctx,
        tree,
        result: Scanned { blocks: 0, sound: true, complete: true },
        last: None,
        next: Vec::new(),
        narrow_root: None,
        pointed: None,
        short: None,
        above: Vec::new(),
        held: Vec::new(),
    };
    let mut batch = Batch::default();
    let Some((mut level, mut children)) = scan.root() else {
        scan.result.complete = false;
        return scan.result;
    };
    loop {
        scan.level(level, &children, &mut batch, owners, leaf);
        scan.raise_above();
        children = std::mem::take(&mut scan.next);
        let Some(below) = level.checked_sub(1) else { return scan.result };
        level = below;
        if children.is_empty() {
            scan.result.complete = false;
            scan.raise_above();
            return scan.result;
        }
    }
}

struct Scan<'c> {
    ctx: &'c Ctx<'c>,
    tree: &'c Tree<'c>,
    result: Scanned,
    /// The last record of the leaf before, with its length.
    last: Option<[u8; 24]>,
    next: Vec<Child>,
    /// Children that a root in an inode could hold, where it has only one.
    narrow_root: Option<u32>,
    /// The last block with too few records: its keys are not those of all that was there.
    short: Option<FsBlock>,
    /// The node about whose pointers something was said last.
    pointed: Option<Option<FsBlock>>,
    /// Keys that are not those of a node of the level above, until its children tell whether the node is what is wrong.
    above: Vec<Held>,
    /// The same of this level.
    held: Vec<Held>,
}

/// A key that is not that of a node.
#[derive(Clone, Copy, Debug)]
struct Held {
    rule: &'static super::RuleInfo,
    node: FsBlock,
    parent: Option<(FsBlock, u16)>,
    found: Key,
    right: Key,
}

impl Scan<'_> {
    fn raise(
        &mut self,
        rule: &'static super::RuleInfo,
        spot: &Spot,
        found: impl std::fmt::Display,
        expected: impl std::fmt::Display,
    ) {
        self.result.sound = false;
        self.ctx.raise(rule, spot, found, expected);
    }

    /// Reports the keys that were kept back, and goes on to the next level.
    fn raise_above(&mut self) {
        let kind = self.tree.shape.kind;
        let held = std::mem::take(&mut self.held);
        for Held { rule, parent, found, right, .. } in std::mem::replace(&mut self.above, held) {
            let spot = self.tree.parent_spot(self.ctx, parent);
            self.raise(rule, &spot, key_text(kind, found), key_text(kind, right));
        }
    }

    fn child(&self, pointer: u64, keys: Option<(Key, Option<Key>)>, parent: Option<(FsBlock, u16)>) -> Child {
        let block = self.tree.target(self.ctx, pointer);
        let (believed, unseen) = (true, false);
        Child { believed, unseen, pointer, block, key: keys.map(|k| k.0), high: keys.and_then(|k| k.1), parent }
    }

    /// Level and pointers that the header or the fork gives.
    fn root(&mut self) -> Option<(u16, Vec<Child>)> {
        match self.tree.root {
            Root::Ag { block, levels, .. } => {
                // What is wrong with these two was said of the header.
                let level = levels.checked_sub(1).filter(|&level| level < 16).and_then(|n| u16::try_from(n).ok())?;
                let child = self.child(block.get(), None, None);
                child.block.map(|_| (level, vec![child]))
            }
            Root::Fork { bytes, .. } => {
                let root = self.tree.shape.root(bytes)?;
                let below = root.level.checked_sub(1).filter(|&level| level < 16)?;
                if root.numrecs == 1 {
                    self.narrow_root = Some(root.max_keys);
                }
                let kind = self.tree.shape.kind;
                let children: Vec<Child> = root
                    .children()
                    .map(|(key, pointer)| self.child(pointer, Some(node_keys(kind, key)), None))
                    .collect();
                let spot = self.tree.root_spot(self.ctx);
                self.node_order(&children, &spot);
                Some((below, children))
            }
        }
    }

    fn node_order(&mut self, children: &[Child], spot: &Spot) -> bool {
        let kind = self.tree.shape.kind;
        let pairs = (1u32..).zip(children.iter().zip(children.iter().skip(1)));
        for (i, (a, b)) in pairs {
            if let (Some(low), Some(next)) = (a.key, b.key)
                && !keys_in_order(kind, low, next)
            {
                let part = spot.part(format_args!("keys[{}]", i.saturating_add(1)));
                self.raise(KEY_DISORDER, &part, key_text(kind, next), format_args!("after {}", key_text(kind, low)));
                return false;
            }
        }
        true
    }

    fn level(&mut self, level: u16, children: &[Child], batch: &mut Batch, owners: &mut Local<'_>, leaf: LeafFn<'_>) {
        let size = usize::try_from(self.ctx.context().block_size).unwrap_or(usize::MAX);
        let window = (1usize << 20).checked_div(size).unwrap_or(1).max(1);
        let mut blocks: Vec<FsBlock> = children.iter().filter_map(|child| child.block).collect();
        blocks.sort_unstable();
        let mut wanted = Vec::new();
        let mut seen = HashSet::new();
        let mut doubled: Vec<FsBlock> =
            blocks.iter().zip(blocks.iter().skip(1)).filter(|(a, b)| a == b).map(|(a, _)| *a).collect();
        doubled.dedup();
        let mut found: Vec<Option<Links>> = Vec::with_capacity(children.len());
        let mut rest = children;
        while !rest.is_empty() {
            let (now, later) = rest.split_at_checked(window).unwrap_or((rest, &[]));
            wanted.clear();
            wanted.extend(now.iter().filter_map(|child| child.block));
            batch.load(self.ctx.volume(), &mut wanted);
            for child in now {
                let before = self.next.len();
                let mut links = None;
                if !child.unseen
                    && self.enter(level, child, &doubled, &mut seen, &mut links, batch, owners, leaf).is_none()
                {
                    return;
                }
                found.push(links);
                if level > 0 && self.next.len() == before {
                    let (block, key, high) = (None, None, None);
                    let parent = child.block.map(|block| (block, 0));
                    self.next.push(Child { believed: false, unseen: true, pointer: 0, block, key, high, parent });
                }
            }
            rest = later;
        }
        self.siblings(children, &found);
    }

    /// Comes to a block. `None` at the end of the budget.
    #[allow(clippy::too_many_arguments)] // what is known of a block before it is looked at
    fn enter(
        &mut self,
        level: u16,
        child: &Child,
        doubled: &[FsBlock],
        seen: &mut HashSet<FsBlock>,
        links: &mut Option<Links>,
        batch: &Batch,
        owners: &mut Local<'_>,
        leaf: LeafFn<'_>,
    ) -> Option<()> {
        let Some(block) = child.block else {
            // One damage, one finding: a wrong count makes many wrong pointers.
            let parent = child.parent.map(|(block, _)| block);
            if child.believed && self.pointed != Some(parent) {
                self.pointed = Some(parent);
                let spot = self.tree.parent_spot(self.ctx, child.parent);
                self.raise(BAD_POINTER, &spot, child.pointer, "a block of the AG behind its headers");
            }
            (self.result.complete, self.result.sound) = (false, false);
            return Some(());
        };
        if doubled.binary_search(&block).is_ok() && !seen.insert(block) {
            if child.believed {
                let spot = self.tree.parent_spot(self.ctx, child.parent);
                self.raise(TWICE, &spot, child.pointer, "each block once");
            }
            self.result.complete = false;
            return Some(());
        }
        if let Err(error) = self.ctx.walk.step(1) {
            self.ctx.unreadable(&error, self.tree.object);
            self.result.complete = false;
            return None;
        }
        let size = usize::try_from(self.ctx.context().block_size).unwrap_or(usize::MAX);
        let Some(bytes) = batch.get(block, size) else {
            let spot = self.tree.spot(self.ctx, block);
            if let Err(error) = self.ctx.volume().blocks(block, 1, spot.place.structure) {
                self.ctx.unreadable(&error, self.tree.object);
            }
            self.result.complete = false;
            return Some(());
        };
        self.block(level, child, block, links, bytes, owners, leaf);
        Some(())
    }

    #[allow(clippy::too_many_arguments)] // what is known of a block before it is looked at
    fn block(
        &mut self,
        level: u16,
        child: &Child,
        block: FsBlock,
        links: &mut Option<Links>,
        bytes: &[u8],
        owners: &mut Local<'_>,
        leaf: LeafFn<'_>,
    ) {
        let (ctx, tree) = (self.ctx, self.tree);
        let spot = || tree.spot(ctx, block);
        let Some(head) = head(bytes) else { return };
        let right = tree.shape.magic_of(ctx.context());
        if head.magic != right {
            let reached = self.reached(child);
            self.raise(BAD_MAGIC, &spot(), format_args!("{:#x}{reached}", head.magic), format_args!("{right:#x}"));
            self.result.complete = false;
            return;
        }
        let Some(believed) = self.header(block, bytes) else {
            self.result.complete = false;
            return;
        };
        if head.level != level {
            if believed {
                let reached = self.reached(child);
                self.raise(BAD_LEVEL, &spot(), format_args!("{}{reached}", head.level), level);
            }
            self.result.complete = false;
            return;
        }
        self.result.blocks = self.result.blocks.saturating_add(1);
        if let Some((ag, within)) = ctx.geometry().split(block) {
            let place = if tree.owner.inode().is_some() { Within::tree(tree.attr) } else { Within(0) };
            owners.add(ag, Entry { start: within.0, blocks: 1, owner: tree.owner, within: place });
        }
        *links = believed.then(|| tree.shape.siblings(bytes));
        let believed = believed && self.count(level, child, block, head.numrecs);
        if level == 0 {
            let right = leaf(&Leaf { block, believed, bytes, tree, ctx });
            self.result.sound &= right;
            if !child.believed {
                // What the node says of the order of its children means nothing.
                self.last = None;
            }
            self.records(child, block, bytes, believed && right);
        } else {
            self.node(child, block, bytes, believed);
        }
    }

    /// How a block was reached, where that may be what is wrong.
    fn reached(&self, child: &Child) -> String {
        match (child.parent, self.tree.root) {
            (None, Root::Ag { .. }) => " (the header names it as the root)".to_owned(),
            _ => String::new(),
        }
    }

    /// Checksum and identity. Some(false): the content is not to be believed; `None`: it is that of another place. One
    /// wrong field is damage, more are a block that belongs elsewhere.
    fn header(&mut self, block: FsBlock, bytes: &[u8]) -> Option<bool> {
        let (ctx, tree) = (self.ctx, self.tree);
        if !ctx.context().has_crc() {
            return Some(true);
        }
        let spot = || tree.spot(ctx, block);
        let at = tree.shape.crc_offset();
        if let CrcState::Bad { computed } = checksum::verify(bytes, at) {
            let stored = bits::array(bytes, at).map_or(0, u32::from_le_bytes);
            self.raise(BAD_CRC, &spot(), crate::format::Crc(stored), crate::format::Crc(computed));
            return Some(false);
        }
        let (blkno, lsn, uuid, owner) = if tree.shape.long { (24, 32, 40, 56) } else { (16, 24, 32, 48) };
        let mut foreign = 0u8;
        let right = ctx.volume().superblock().metadata_uuid();
        let found = bits::array(bytes, uuid).map(crate::format::Uuid).unwrap_or_default();
        if found != right {
            foreign = foreign.saturating_add(1);
            self.raise(BAD_UUID, &spot(), found, right);
        }
        let right = ctx.geometry().block_byte(block).and_then(|byte| byte.0.checked_div(BASIC_BLOCK)).unwrap_or(0);
        let found = bits::be64(bytes, blkno).unwrap_or(0);
        if found != right {
            foreign = foreign.saturating_add(1);
            self.raise(BAD_BLKNO, &spot(), found, right);
        }
        let (found, right) = match tree.root {
            Root::Ag { ag, .. } => (bits::be32(bytes, owner).map(u64::from), ag.get()),
            Root::Fork { ino, .. } => (bits::be64(bytes, owner), ino.0),
        };
        let found = found.unwrap_or(0);
        if found != right {
            foreign = foreign.saturating_add(1);
            self.raise(BAD_OWNER, &spot(), found, right);
        }
        ctx.lsn(bits::be64(bytes, lsn).unwrap_or(0), spot);
        (foreign < 2).then_some(true)
    }

    /// Links between the blocks of a level, where both ends could be entered.
    fn siblings(&mut self, children: &[Child], found: &[Option<Links>]) {
        let text = |sibling: Option<u64>| sibling.map_or("null".to_owned(), |block| block.to_string());
        for (i, child) in children.iter().enumerate() {
            let (Some(links), Some(block)) = (found.get(i).copied().flatten(), child.block) else { continue };
            if !child.believed {
                continue;
            }
            let neighbour = |at: Option<usize>| match at.and_then(|at| children.get(at).zip(found.get(at))) {
                None => Some(None),
                Some((neighbour, Some(_))) if neighbour.believed => Some(Some(neighbour.pointer)),
                Some(_) => None,
            };
            let (left, right) = (neighbour(i.checked_sub(1)), neighbour(i.checked_add(1)));
            for (rule, found, expected) in [(BAD_LEFT, links.0, left), (BAD_RIGHT, links.1, right)] {
                if let Some(expected) = expected.filter(|&expected| expected != found) {
                    let spot = self.tree.spot(self.ctx, block);
                    self.raise(rule, &spot, text(found), text(expected));
                }
            }
        }
    }

    /// The number of records. False: more than there can be.
    fn count(&mut self, level: u16, child: &Child, block: FsBlock, numrecs: u16) -> bool {
        let (shape, context) = (self.tree.shape, self.ctx.context());
        let most = if level == 0 { shape.max_records(context) } else { shape.max_keys(context) };
        let numrecs = u32::from(numrecs);
        if numrecs > most {
            let spot = self.tree.spot(self.ctx, block);
            self.raise(TOO_MANY, &spot, numrecs, format_args!("at most {most}"));
            return false;
        }
        let is_root = child.parent.is_none() && matches!(self.tree.root, Root::Ag { .. });
        let least = match self.narrow_root {
            _ if self.tree.lenient && child.parent.is_none() => 0,
            // The only child of a root in an inode stays, as long as it does not fit into the inode.
            Some(room) if child.parent.is_none() => room.saturating_add(1).min(most / 2),
            _ if is_root => u32::from(level > 0),
            _ => most / 2,
        };
        if numrecs < least {
            let spot = self.tree.spot(self.ctx, block);
            self.raise(TOO_FEW, &spot, numrecs, format_args!("at least {least}"));
            self.short = Some(block);
        }
        true
    }

    /// Order of the records, and the keys above them.
    fn records(&mut self, child: &Child, block: FsBlock, bytes: &[u8], believed: bool) {
        let (ctx, tree, kind) = (self.ctx, self.tree, self.tree.shape.kind);
        if !believed {
            // The next leaf cannot be compared with this one.
            self.last = None;
            return;
        }
        let mut last = self.last;
        let mut first = None;
        let mut high: Option<Key> = None;
        let mut ordered = true;
        for (i, record) in tree.shape.records(ctx.context(), bytes).enumerate() {
            if i == 0 {
                first = Some(record_key(kind, record));
            }
            if child.high.is_some() {
                high = high.max(Some(record_high(record)));
            }
            if let Some(before) = &last
                && ordered
                && !in_order(kind, before, record)
            {
                ordered = false;
                let spot = tree.spot(ctx, block).part(format_args!("recs[{}]", i.saturating_add(1)));
                let (found, expected) = (record_text(kind, record), format!("behind {}", record_text(kind, before)));
                self.raise(DISORDER, &spot, found, expected);
            }
            let mut copy = [0; 24];
            copy.iter_mut().zip(record).for_each(|(to, from)| *to = *from);
            last = Some(copy);
        }
        self.last = last;
        self.keys(child, first, high, None);
    }

    /// The keys that the parent holds, against those of the block.
    fn keys(&mut self, child: &Child, first: Option<Key>, high: Option<Key>, node: Option<FsBlock>) {
        let kind = self.tree.shape.kind;
        if child.block == self.short {
            return;
        }
        for (rule, found, right) in [(KEY_MISMATCH, child.key, first), (HIGH_KEY_MISMATCH, child.high, high)] {
            if let (Some(found), Some(right)) = (found, right)
                && found != right
            {
                // A wrong key in a node is not what its child says, and not what its parent says: one of the two is enough.
                self.above.retain(|held| {
                    let of_parent = child.parent.is_some_and(|(parent, _)| parent == held.node);
                    !(of_parent && held.rule == rule && (held.found, held.right) == (right, found))
                });
                match node {
                    Some(node) => {
                        self.result.sound = false;
                        self.held.push(Held { rule, node, parent: child.parent, found, right });
                    }
                    None => {
                        let spot = self.tree.parent_spot(self.ctx, child.parent);
                        self.raise(rule, &spot, key_text(kind, found), key_text(kind, right));
                    }
                }
            }
        }
    }

    fn node(&mut self, child: &Child, block: FsBlock, bytes: &[u8], believed: bool) {
        let (ctx, tree, kind) = (self.ctx, self.tree, self.tree.shape.kind);
        let from = self.next.len();
        let mut high = None;
        let mut unwritten = false;
        for ((key, pointer), index) in tree.shape.children(ctx.context(), bytes).zip(0u16..) {
            unwritten |= kind == Type::Rmapbt && is_unwritten(key);
            let keys = believed.then(|| node_keys(kind, key));
            high = high.max(keys.and_then(|keys| keys.1));
            let child = self.child(pointer, keys, Some((block, index)));
            self.next.push(Child { believed, ..child });
        }
        if !believed {
            return;
        }
        if unwritten {
            ctx.raise(KEY_UNWRITTEN, &tree.spot(ctx, block), "set", "not set");
        }
        let children: Vec<Child> = self.next.get(from..).unwrap_or_default().to_vec();
        self.keys(child, children.first().and_then(|child| child.key), high, Some(block));
        if !self.node_order(&children, &tree.spot(ctx, block)) {
            // One damage, one finding: a key out of order is not that of its child, either.
            self.next.iter_mut().skip(from).for_each(|child| child.key = None);
        }
    }
}

/// The root of a btree that an AG header names, as a tree to look through.
pub fn of_ag(shape: &'static Shape, ag: AgNumber, block: AgBlock, levels: u32, owner: Owner) -> Tree<'static> {
    let object = Object::Ag(ag, shape.kind);
    Tree { shape, root: Root::Ag { ag, block, levels }, attr: false, lenient: false, object, owner }
}
