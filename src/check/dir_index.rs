//! Directories in blocks: data blocks, the hash index over them (in the single block, in one leaf, in a tree of leaves),
//! and the names that stand twice. The index of free space: [`dir_free`](super::dir_free).
//!
//! `xfs_dir3_block_verify`, `xfs_dir3_leaf_check_int` (xfs_dir2_leaf.c), `scrub/dir.c`; `check_dir2_*` and `longform_dir2_check_*` (xfs_repair, phase6.c).
//!
//! Memory: 20 bytes for each entry of the directory at hand, up to [`MOST`] of them.

use super::context::Spot;
use super::da::{self, Bounds, FRAME};
use super::dir::{self, Names};
use super::dir_data::{self, Filled};
use super::dir_free::{self, Listed, Longest};
use super::fork::{self, Buffers, Read, Reader};
use super::names::mix;
use super::raised;
use crate::format::dinode::Fork;
use crate::format::dir_data::{header_size, leaf_start, magic};
use crate::format::{bits, dir_leaf, hash};
use crate::units::FileBlock;
use crate::walk::Inode;
use crate::walk::directory::{FREE_BYTE, LEAF_BYTE};

raised! { RAISED, structure "dir.index";
    /// The size of a directory is that of its data blocks, holes included. Kernels tell the kinds of directories apart by
    /// it.
    BAD_SIZE: "dir-bad-size" corrupt "size", "size is not that of the data blocks",
        source "xfs_dir2.c:xfs_dir2_format; scrub/dir.c:xchk_directory_leaf1_bestfree", since "2.6";
    /// A block of the directory is missing: its first one, or a part of one.
    HOLE: "dir-missing-block" corrupt "bmx", "a block of the directory is missing",
        source "scrub/dir.c:xchk_directory_blocks; repair/dir2.c:process_leaf_node_dir2", since "scrub";
    /// The number of index entries at the end of a block: more than fit.
    TAIL_COUNT: "dirblock-bad-count" corrupt "count", "more index entries than fit into the block",
        source "xfs_dir2_data.c:__xfs_dir3_data_check; repair/dir2.c:process_block_dir2", since "3.10";
    /// The header of a leaf counts more entries than fit.
    LEAF_COUNT: "dirleaf-bad-count" corrupt "count", "more index entries than fit into the block",
        source "xfs_dir2_leaf.c:xfs_dir3_leaf_check_int; repair/dir2.c:process_leaf_node_dir2", since "3.10";
    /// How many index entries are stale: kept for later, they name nothing.
    STALE: "dirindex-bad-stale" corrupt "stale", "not the number of stale entries",
        source "xfs_dir2_leaf.c:xfs_dir3_leaf_check_int; repair/phase6.c:check_dir3_header", since "3.10";
    /// An index entry leads to a byte where no entry begins. The name that it stands for is not found.
    ADDRESS: "dirindex-bad-address" corrupt "address", "index entry leads to no entry",
        source "scrub/dir.c:xchk_dir_rec; repair/phase6.c:dir_hash_see_all", since "scrub";
    /// The hash is not that of the name: lookups do not find it.
    HASH: "dirindex-bad-hash" corrupt "hashval", "hash is not that of the name",
        source "scrub/dir.c:xchk_dir_rec; repair/phase6.c:dir_hash_see", since "scrub";
    /// A name that the index does not know: a listing shows it, opening it fails.
    MISSING: "dirindex-missing-entry" corrupt "address", "the index has no entry for a name",
        source "scrub/dir.c:xchk_dir_actor; repair/phase6.c:dir_hash_check", since "scrub";
    /// Two index entries lead to one name.
    TWICE: "dirindex-entry-twice" corrupt "address", "two index entries for one name",
        source "repair/phase6.c:dir_hash_see", since "none";
    /// Many index entries are wrong or missing, or the directory is too large to say which: names that a listing shows
    /// cannot be opened.
    DISAGREE: "dirindex-disagrees" corrupt "address", "index and names disagree",
        source "repair/phase6.c:dir_hash_check", since "none";
}

/// Entries of a directory up to which the index can be compared one by one.
pub const MOST: usize = 1 << 23;
/// Findings about one directory's index.
pub(super) const NAMED: usize = 8;

/// The names and the index of a directory, as hash and address. Kept from one directory to the next.
#[derive(Debug, Default)]
pub struct Index {
    names: Vec<u64>,
    /// A print of each name: those of one name are equal.
    prints: Vec<u32>,
    index: Vec<u64>,
    sums: (u64, u64),
    counts: (u64, u64),
    last: u32,
    disorder: Option<(Spot, u32, u32)>,
    /// Longest free space of each data block, by number; `None` where that is not known.
    longest: Vec<Longest>,
}

fn pack(hash: u32, address: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(address)
}

fn address_of(pair: u64) -> u64 {
    pair & 0xffff_ffff
}

impl Index {
    fn begin(&mut self) {
        self.names.clear();
        self.prints.clear();
        self.index.clear();
        self.longest.clear();
        (self.sums, self.counts, self.last, self.disorder) = ((0, 0), (0, 0), 0, None);
    }

    fn name(&mut self, pair: u64, print: u32) {
        self.sums.0 = self.sums.0.wrapping_add(mix(pair));
        self.counts.0 += 1;
        if self.names.len() < MOST {
            self.names.push(pair);
            self.prints.push(print);
        }
    }

    /// The print of the name at an address; the names were added in the order of their addresses.
    fn print(&self, address: u64) -> Option<u32> {
        let at = self.names.binary_search_by_key(&address, |pair| address_of(*pair)).ok()?;
        self.prints.get(at).copied()
    }

    /// May two of these index entries stand for one name?
    fn may_be_twice(&self, group: &[u64]) -> bool {
        let prints: Option<Vec<u32>> = group.iter().map(|pair| self.print(address_of(*pair))).collect();
        let Some(mut prints) = prints else { return true };
        prints.sort_unstable();
        prints.iter().zip(prints.iter().skip(1)).any(|(a, b)| a == b)
    }

    /// An index entry, in order. True for a stale one.
    fn add(&mut self, hash: u32, address: u32, spot: impl FnOnce() -> Spot) -> bool {
        if hash < self.last && self.disorder.is_none() {
            self.disorder = Some((spot(), hash, self.last));
        }
        self.last = hash;
        if address == 0 {
            return true;
        }
        let pair = pack(hash, address);
        self.sums.1 = self.sums.1.wrapping_add(mix(pair));
        self.counts.1 += 1;
        if self.index.len() < MOST {
            self.index.push(pair);
        }
        false
    }

    fn agrees(&self) -> bool {
        self.sums.0 == self.sums.1 && self.counts.0 == self.counts.1
    }
}

/// A number that is the same for two names that are one to the file system, and seldom for others.
fn print_of(fold: bool, name: &[u8]) -> u32 {
    let mut print = u64::try_from(name.len()).unwrap_or(0);
    for part in name.chunks(8) {
        let mut word = [0u8; 8];
        for (to, &byte) in word.iter_mut().zip(part) {
            *to = if fold { hash::fold_case(byte) } else { byte };
        }
        print = mix(print ^ u64::from_le_bytes(word));
    }
    u32::try_from(print >> 32).unwrap_or(0)
}

/// What kind of directory it is, by its extents (`xfs_dir2_format`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Block,
    Leaf,
    Node,
}

/// Checks a directory in blocks.
pub(super) fn check<'c>(names: &mut Names<'_, 'c>, inode: Inode<'_>, buffers: &mut Buffers, index: &mut Index) {
    let ctx = names.ctx;
    let mut reader = Reader::new(ctx, inode, Fork::Data, "directory block", buffers);
    let width = u64::from(reader.width);
    let shift = ctx.geometry().block_log;
    let leaf_at = LEAF_BYTE.checked_shr(shift).unwrap_or(0);
    let free_at = FREE_BYTE.checked_shr(shift).unwrap_or(0);
    let ends = reader.map.extents().iter().map(|extent| extent.startoff.0.saturating_add(u64::from(extent.blockcount)));
    let end = ends.max().unwrap_or(0);
    // A directory of one block without an index: what is mapped behind it is not its own, as is said of the size.
    let lone = end > width && end <= leaf_at && inode.size() == i64::from(ctx.context().dir_block_size);
    let form = if end == width || lone {
        Form::Block
    } else if end == leaf_at.saturating_add(width) {
        Form::Leaf
    } else {
        Form::Node
    };
    if !reader.complete || reader.map.extents().is_empty() {
        names.complete = false;
        return;
    }
    index.begin();
    data(names, &mut reader, index, form, leaf_at);
    if ctx.is_cancelled() || reader.exhausted {
        // Blocks that were not come to are not missing.
        names.complete = false;
        return;
    }
    if names.complete && !names.dotdot {
        ctx.raise(dir::NO_DOTDOT, &fork::inode_spot(ctx, inode.ino), "none", "`..` as the second entry");
    }
    size(names, inode, index);
    let Some(keys) = (match form {
        Form::Block => Some(da::Scanned::default()),
        Form::Leaf => leaf1(names, &mut reader, index, leaf_at),
        Form::Node => node(names, &mut reader, index, leaf_at, free_at),
    }) else {
        return;
    };
    if !names.complete {
        return;
    }
    if index.agrees() {
        if let Some((spot, found, before)) = index.disorder.take() {
            ctx.raise(da::DISORDER, &spot, format_args!("{found:#x}"), format_args!("at least {before:#x}"));
        }
        da::report_keys(ctx, &keys);
        twice(names, &mut reader, index);
    } else {
        disagree(names, &mut reader, index);
    }
}

/// The number of the data block at a file block.
pub(super) fn number(at: u64, width: u64) -> u64 {
    at.checked_div(width).unwrap_or(0)
}

/// All data blocks, in order.
fn data(names: &mut Names<'_, '_>, reader: &mut Reader<'_, '_>, index: &mut Index, form: Form, leaf_at: u64) {
    let ctx = names.ctx;
    let width = u64::from(reader.width);
    let mut next = 0u64;
    let mut i = 0usize;
    if reader.place(0).is_none() {
        names.complete = false;
        ctx.raise(HOLE, &fork::inode_spot(ctx, reader.ino), "no block 0", "the block with `.` and `..`");
    }
    while let Some(extent) = reader.map.extents().get(i) {
        let (start, count) = (extent.startoff.0, u64::from(extent.blockcount));
        i += 1;
        let end = start.saturating_add(count).min(leaf_at);
        let stop = if form == Form::Block { end.min(width) } else { end };
        let mut at = start.max(next);
        while at < stop {
            if ctx.is_cancelled() || reader.exhausted {
                names.complete = false;
                return;
            }
            let first = at.saturating_sub(at.checked_rem(width).unwrap_or(0));
            next = first.saturating_add(width);
            let filled = one_block(names, reader, index, form, first);
            let longest = filled.and_then(|filled| filled.longest);
            index.longest.push((number(first, width), longest));
            names.complete &= filled.is_some_and(|filled| filled.complete);
            at = next;
        }
        if end > stop {
            names.complete = false;
            index.longest.push((number(end.saturating_sub(1), width), None));
        }
    }
}

/// One data block; the single one with its index.
fn one_block(
    names: &mut Names<'_, '_>,
    reader: &mut Reader<'_, '_>,
    index: &mut Index,
    form: Form,
    at: u64,
) -> Option<Filled> {
    let ctx = names.ctx;
    let context = ctx.context();
    let (ino, size, what, block) = (reader.ino, reader.size(), reader.what(), reader.place(at));
    let spot = || fork::spot(ctx, ino, what, block, at, size);
    let bytes = reader.whole(at, HOLE)?;
    let right = match (form, context.has_crc()) {
        (Form::Block, true) => magic::BLOCK_V5,
        (Form::Block, false) => magic::BLOCK_V4,
        (_, true) => magic::DATA_V5,
        (_, false) => magic::DATA_V4,
    };
    let found = bits::be32(bytes, 0).unwrap_or(0);
    if found != right {
        ctx.raise(da::BAD_MAGIC, &spot(), format_args!("{found:#x}"), format_args!("{right:#x}"));
        return None;
    }
    if !fork::frame(ctx, (fork::DIR, &FRAME), bytes, (block, ino), &spot) {
        return None;
    }
    let first = header_size(context);
    let mut end = bytes.len();
    if form == Form::Block {
        let tail = bytes.len().saturating_sub(8);
        let count = bits::be32(bytes, tail).unwrap_or(0);
        match leaf_start(bytes).filter(|&start| start >= first) {
            Some(start) if count > 0 => end = start,
            _ => {
                ctx.raise(TAIL_COUNT, &spot(), count, "1 to what fits into the block");
                return None;
            }
        }
        tail_entries(names, bytes, end, index, &spot);
    }
    // Byte of the block within the directory, in units of 8 bytes as the index has them.
    let base = at.checked_shl(ctx.geometry().block_log).unwrap_or(0) >> 3;
    let dots = if at == 0 { first } else { usize::MAX };
    let mut dotdot_at = None;
    Some(dir_data::fill(ctx, bytes, end, &spot, &mut |entry| {
        let part = || spot().part(format_args!("offset {:#x}", entry.offset));
        let address = base.saturating_add(u64::try_from(entry.offset).unwrap_or(0) >> 3);
        let address = u32::try_from(address).unwrap_or(u32::MAX);
        let print = print_of(context.features.has_ascii_ci(), entry.name);
        index.name(pack(hash::entry_hash(context, entry.name), address), print);
        if entry.offset == dots {
            dotdot_at = Some(entry.offset.saturating_add(16));
            if entry.name == b"." {
                names.dot(entry.ino, entry.ftype, &part);
            } else {
                ctx.raise(dir::BAD_DOT, &part(), dir::shown(entry.name), "\".\"");
            }
        } else if dotdot_at == Some(entry.offset) && entry.name == b".." {
            names.dotdot(entry.ino, entry.ftype, &part);
        } else {
            names.entry(entry.name, entry.ino, entry.ftype, &part);
        }
    }))
}

/// The index of a single block.
fn tail_entries(names: &Names<'_, '_>, bytes: &[u8], start: usize, index: &mut Index, spot: &dyn Fn() -> Spot) {
    let tail = bytes.len().saturating_sub(8);
    let mut stale = 0u32;
    let entries = bytes.get(start..tail).unwrap_or_default().chunks_exact(8);
    for (i, entry) in entries.enumerate() {
        let (hash, address) = (bits::be32(entry, 0).unwrap_or(0), bits::be32(entry, 4).unwrap_or(0));
        stale += u32::from(index.add(hash, address, || spot().part(format_args!("bleaf[{i}]"))));
    }
    let found = bits::be32(bytes, tail.saturating_add(4)).unwrap_or(0);
    if found != stale {
        names.ctx.raise(STALE, &spot(), found, stale);
    }
}

/// The size of the directory against its data blocks.
fn size(names: &Names<'_, '_>, inode: Inode<'_>, index: &Index) {
    let last = index.longest.last().map_or(0, |(number, _)| number.saturating_add(1));
    let right = last.saturating_mul(u64::from(names.ctx.context().dir_block_size));
    if u64::try_from(inode.size()).ok() != Some(right) {
        names.ctx.raise(BAD_SIZE, &fork::inode_spot(names.ctx, inode.ino), inode.size(), right);
    }
}

/// Entries of a leaf go to the index; gives its greatest hash.
fn leaf_entries(
    names: &Names<'_, '_>,
    bytes: &[u8],
    index: &mut Index,
    room: usize,
    spot: &dyn Fn() -> Spot,
) -> Option<u32> {
    let (ctx, context) = (names.ctx, names.ctx.context());
    let header = dir_leaf::header(context, bytes)?;
    let most = room.saturating_sub(usize::try_from(dir_leaf::header_size(context)).unwrap_or(0)) / 8;
    if usize::from(header.count) > most {
        ctx.raise(LEAF_COUNT, &spot(), header.count, format_args!("at most {most}"));
        return None;
    }
    let mut stale = 0u16;
    let mut last = 0;
    for (i, (hash, address)) in dir_leaf::entries(context, bytes).enumerate() {
        last = hash;
        stale += u16::from(index.add(hash, address, || spot().part(format_args!("lents[{i}]"))));
    }
    if header.stale != stale {
        ctx.raise(STALE, &spot(), header.stale, stale);
    }
    Some(last)
}

/// A single leaf.
fn leaf1(names: &Names<'_, '_>, reader: &mut Reader<'_, '_>, index: &mut Index, at: u64) -> Option<da::Scanned> {
    let ctx = names.ctx;
    let context = ctx.context();
    let (ino, size, what, block) = (reader.ino, reader.size(), reader.what(), reader.place(at));
    let spot = || fork::spot(ctx, ino, what, block, at, size);
    let bytes = reader.whole(at, HOLE)?;
    let header = dir_leaf::header(context, bytes)?;
    let right = if context.has_crc() { dir_leaf::magic::LEAF1_V5 } else { dir_leaf::magic::LEAF1_V4 };
    if header.info.magic != right {
        ctx.raise(da::BAD_MAGIC, &spot(), format_args!("{:#x}", header.info.magic), format_args!("{right:#x}"));
        return None;
    }
    if !fork::frame(ctx, (fork::DA, &FRAME), bytes, (block, ino), &spot) {
        return None;
    }
    let pads = u32::from(bits::be16(bytes, 10).unwrap_or(0)) | bits::be32(bytes, 60).unwrap_or(0);
    if context.has_crc() && pads != 0 {
        ctx.raise(da::BAD_PAD, &spot(), format_args!("{pads:#x}"), 0);
    }
    for (rule, found) in [(da::BAD_FORW, header.info.forw), (da::BAD_BACK, header.info.back)] {
        if found != 0 {
            ctx.raise(rule, &spot(), found, 0);
        }
    }
    let blocks = index.longest.last().map_or(0, |(number, _)| number.saturating_add(1));
    let tail = bytes.len().saturating_sub(4);
    let count = bits::be32(bytes, tail).unwrap_or(0);
    let mut room = tail.saturating_sub(usize::try_from(blocks).unwrap_or(usize::MAX).saturating_mul(2));
    if u64::from(count) == blocks {
        let listed = Listed { blocks: &index.longest, first: 0, spot: &spot };
        dir_free::list(names, &listed, dir_leaf::bests(bytes));
    } else {
        ctx.raise(dir_free::BESTCOUNT, &spot(), count, blocks);
        room = tail;
    }
    leaf_entries(names, bytes, index, room, &spot)?;
    Some(da::Scanned::default())
}

/// A tree of leaves, and the index of free space.
fn node<'c>(
    names: &Names<'_, 'c>,
    reader: &mut Reader<'_, 'c>,
    index: &mut Index,
    leaf_at: u64,
    free_at: u64,
) -> Option<da::Scanned> {
    let ctx = names.ctx;
    let leaf = if ctx.context().has_crc() { dir_leaf::magic::LEAFN_V5 } else { dir_leaf::magic::LEAFN_V4 };
    let bounds = Bounds { root: leaf_at, end: free_at, leaf };
    let scanned =
        da::scan(ctx, reader, bounds, &mut |leaf, spot| leaf_entries(names, leaf.bytes, index, leaf.bytes.len(), spot));
    dir_free::check(names, reader, &index.longest, free_at);
    if !scanned.complete {
        return None;
    }
    let there = da::mapped(reader, leaf_at, free_at);
    if there != scanned.blocks {
        let found = format!("{there} blocks, {} in the tree", scanned.blocks);
        ctx.raise(da::UNREACHED, &fork::inode_spot(ctx, reader.ino), found, "all in the tree");
        return None;
    }
    Some(scanned)
}

/// Names that stand twice: neighbours in the index have the same hash.
fn twice(names: &Names<'_, '_>, reader: &mut Reader<'_, '_>, index: &Index) {
    let same = |a: &u64, b: &u64| a >> 32 == b >> 32;
    let groups = index.index.chunk_by(same).filter(|group| group.len() > 1);
    // Reading the names again would take longer than all the rest: only where their prints do not tell them apart.
    for group in groups.filter(|group| index.may_be_twice(group)) {
        let mut seen: Vec<Vec<u8>> = Vec::new();
        // A longer run of one hash is made, not met; comparing all of it would take its square.
        for &pair in group.iter().take(1000) {
            let Some((at, offset)) = place_of(names, reader, address_of(pair)) else { continue };
            let Read::Block(bytes) = reader.read(at) else { continue };
            let Some(entry) = dir_data::entry_at(names.ctx, bytes, offset) else { continue };
            let name = entry.name.to_vec();
            if seen.iter().any(|before| dir::same_name(names.ctx, before, &name)) {
                let part = reader.spot(at).part(format_args!("offset {offset:#x}"));
                names.ctx.raise(dir::NAME_TWICE, &part, dir::shown(&name), "another name");
            }
            seen.push(name);
        }
    }
}

/// File block of a directory block, and byte within it, of an address.
fn place_of(names: &Names<'_, '_>, reader: &Reader<'_, '_>, address: u64) -> Option<(u64, usize)> {
    let size = u64::from(names.ctx.context().dir_block_size);
    let byte = address.checked_mul(8)?;
    let at = byte.checked_div(size)?.checked_mul(u64::from(reader.width))?;
    reader.map.block(FileBlock(at))?;
    Some((at, usize::try_from(byte.checked_rem(size)?).ok()?))
}

/// Says where index and names disagree.
fn disagree(names: &Names<'_, '_>, reader: &mut Reader<'_, '_>, index: &mut Index) {
    let ctx = names.ctx;
    let whole = fork::inode_spot(ctx, reader.ino);
    if index.names.len() >= MOST || index.index.len() >= MOST {
        ctx.raise(
            DISAGREE,
            &whole,
            format_args!("{} index entries", index.counts.1),
            format_args!("{}", index.counts.0),
        );
        return;
    }
    let by_address = |pair: &u64| (address_of(*pair), *pair);
    index.names.sort_unstable_by_key(by_address);
    index.index.sort_unstable_by_key(by_address);
    let (mut unnamed, mut unindexed) = (Vec::new(), Vec::new());
    let mut said = 0usize;
    let spot = |reader: &Reader<'_, '_>, pair: u64| match place_of(names, reader, address_of(pair)) {
        Some((at, offset)) => reader.spot(at).part(format_args!("offset {offset:#x}")),
        None => whole.clone(),
    };
    let mut left = index.names.iter().copied().peekable();
    let mut before = None;
    for &pair in &index.index {
        while let Some(name) = left.next_if(|name| address_of(*name) < address_of(pair)) {
            unindexed.push(name);
        }
        if before == Some(address_of(pair)) {
            ctx.raise(TWICE, &spot(reader, pair), format_args!("{:#x}", address_of(pair)), "one index entry");
            said += 1;
        } else if let Some(name) = left.next_if(|name| address_of(*name) == address_of(pair)) {
            if name != pair {
                ctx.raise(
                    HASH,
                    &spot(reader, pair),
                    format_args!("{:#x}", pair >> 32),
                    format_args!("{:#x}", name >> 32),
                );
                said += 1;
            }
        } else {
            unnamed.push(pair);
        }
        before = Some(address_of(pair));
        if said > NAMED {
            return;
        }
    }
    unindexed.extend(left);
    if unnamed.len().max(unindexed.len()) > NAMED / 2 {
        // A wrong count cuts off entries, or takes what lies behind them for some.
        let found = format!("{} entries lead nowhere, {} are missing", unnamed.len(), unindexed.len());
        ctx.raise(DISAGREE, &whole, found, "one for each name");
        return;
    }
    for pair in unnamed.into_iter().take(NAMED) {
        let same = unindexed.iter().position(|name| name >> 32 == pair >> 32);
        let right = same.map(|at| unindexed.swap_remove(at));
        let right = right.map_or_else(|| "the place of a name".to_owned(), |name| format!("{:#x}", address_of(name)));
        ctx.raise(ADDRESS, &whole, format_args!("{:#x}", address_of(pair)), right);
    }
    for name in unindexed.into_iter().take(NAMED) {
        ctx.raise(MISSING, &spot(reader, name), "no index entry", format_args!("hash {:#x}", name >> 32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_tell_names_apart() {
        let mut index = Index::default();
        for (address, name) in [(2, "one name"), (5, "ONE name"), (9, "one name")] {
            index.name(pack(7, address), print_of(false, name.as_bytes()));
        }
        let may_be_twice = |addresses: [u32; 2]| index.may_be_twice(&addresses.map(|address| pack(7, address)));
        assert!(!may_be_twice([2, 5]) && may_be_twice([2, 9]) && !may_be_twice([5, 9]));
        // No name is known there: it must be looked at.
        assert!(may_be_twice([2, 6]));
        assert_eq!(print_of(true, b"ONE name"), print_of(true, b"one Name"));
        assert_ne!(print_of(false, b"a"), print_of(false, b"a\0"));
    }
}
