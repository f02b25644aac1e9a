//! Leaves of attributes, the tree over them, and large values in blocks of their own.
//!
//! `xfs_attr3_leaf_verify` (xfs_attr_leaf.c), `xfs_attr3_rmt_verify` (xfs_attr_remote.c), `xchk_xattr_block`
//! (scrub/attr.c); `process_leaf_attr_block`, `rmtval_get` (xfs_repair, attr_repair.c).

use super::attr::{self, Attribute};
use super::context::{Ctx, Spot};
use super::da::{self, Bounds, FRAME};
use super::fork::{self, Buffers, Read, Reader};
use super::raised;
use crate::format::attr_leaf::{self, Content, Entry, Header};
use crate::format::attr_shortform::{flags, parent_of};
use crate::format::dinode::Fork;
use crate::format::{Structure, attr_remote, bits, da_block, hash};
use crate::walk::Inode;
use crate::walk::attributes::VALUE_MAX;

raised! { RAISED, structure "attr.leaf";
    /// The entries of a leaf, 8 bytes each, end before its names and values.
    COUNT: "attrleaf-bad-count" corrupt "count", "entries run into names and values",
        source "xfs_attr_leaf.c:xfs_attr3_leaf_verify; repair/attr_repair.c:process_leaf_attr_block", since "3.10";
    /// A leaf without attributes, left over; only the first block of the fork may be one.
    EMPTY: "attrleaf-empty" corrupt "count", "leaf without attributes",
        source "scrub/attr.c:xchk_xattr_block; repair/attr_repair.c:process_leaf_attr_block", since "scrub";
    /// A leaf without attributes as the only block: left over from a crash while the first attribute was made.
    EMPTY_FIRST: "attrleaf-empty-first" preen "count", "no attributes in the only leaf",
        source "scrub/attr.c:xchk_xattr_block; repair/attr_repair.c:process_leaf_attr_block", since "scrub";
    /// Blocks of the fork that belong neither to the tree nor to a value: space that is lost until the file is deleted.
    UNREACHED: "attr-unreached-block" warning "before", "block of the attribute fork to which nothing leads",
        source "none: neither scrub nor xfs_repair looks", since "none";
    /// Names and values lie from here to the end of the block: none begins before it, and unless the block has holes the
    /// first begins here.
    FIRSTUSED: "attrleaf-bad-firstused" corrupt "firstused", "not where names and values begin",
        source "xfs_attr_leaf.c:xfs_attr3_leaf_verify; repair/attr_repair.c:process_leaf_attr_block", since "3.10";
    /// Bytes of names and values, as the header counts them.
    USEDBYTES: "attrleaf-bad-usedbytes" corrupt "usedbytes", "not the bytes of names and values",
        source "scrub/attr.c:xchk_xattr_block; repair/attr_repair.c:process_leaf_attr_block", since "scrub";
    /// Up to three free spaces that the header lists: within the block, whole units of 4 bytes, and nothing in them.
    FREEMAP: "attrleaf-bad-freemap" corrupt "freemap", "listed free space is not free",
        source "xfs_attr_leaf.c:xfs_attr3_leaf_verify; scrub/attr.c:xchk_xattr_block; repair/attr_repair.c:process_leaf_attr_block",
        since "3.10";
    /// Name and value of an attribute lie within the block, and have a name.
    NAMEIDX: "attrleaf-bad-nameidx" corrupt "nameidx", "name or value leaves the block",
        source "xfs_attr_leaf.c:xfs_attr3_leaf_verify_entry; repair/attr_repair.c:process_leaf_attr_local", since "4.20";
    /// Names and values of two attributes share bytes.
    OVERLAP: "attrleaf-overlap" corrupt "nameidx", "two attributes share bytes",
        source "scrub/attr.c:xchk_xattr_entry; repair/attr_repair.c:process_leaf_attr_block", since "scrub";
    /// The hash is not that of the name: lookups do not find the attribute.
    HASH: "attrleaf-bad-hash" corrupt "hashval", "hash is not that of the name",
        source "scrub/attr.c:xchk_xattr_rec; repair/attr_repair.c:process_leaf_attr_local", since "scrub";
    /// Bytes without a use are zero.
    PAD: "attrleaf-bad-pad" corrupt "pad", "unused bytes are not zero",
        source "scrub/attr.c:xchk_xattr_block, xchk_xattr_entry", since "scrub";
    /// A large value lies in blocks of the fork: a first block, at most 65536 bytes, no holes.
    VALUE: "attrremote-bad-value" corrupt "valueblk", "large value has no such blocks, or is longer than any can be",
        source "xfs_attr_remote.c:xfs_attr_rmtval_get; repair/attr_repair.c:process_leaf_attr_remote", since "2.6";
    /// Which part of the value a block holds.
    OFFSET: "attrremote-bad-offset" corrupt "offset", "block holds another part of the value",
        source "xfs_attr_remote.c:xfs_attr3_rmt_hdr_ok, xfs_attr3_rmt_verify", since "3.10";
    /// How many bytes of the value a block holds.
    BYTES: "attrremote-bad-bytes" corrupt "bytes", "block does not hold its share of the value",
        source "xfs_attr_remote.c:xfs_attr3_rmt_hdr_ok, xfs_attr3_rmt_verify", since "3.10";
}

/// Attributes of one hash that are compared with each other.
const SAME: usize = 64;

/// The value of an attribute, where it lies beside the name.
fn local<'b>(entry: &Entry<'b>) -> Option<&'b [u8]> {
    match entry.content {
        Content::Local { value, .. } => Some(value),
        _ => None,
    }
}

/// Bits for each four bytes of a leaf.
#[derive(Debug)]
struct Used([u64; 256]);

impl Used {
    /// Notes bytes as used; false where some are already.
    fn take(&mut self, start: usize, length: usize) -> bool {
        let (first, last) = (start / 4, start.saturating_add(length).div_ceil(4));
        let mut free = true;
        for unit in first..last.min(256 * 64) {
            if let Some(word) = self.0.get_mut(unit / 64) {
                free &= *word >> (unit % 64) & 1 == 0;
                *word |= 1 << (unit % 64);
            }
        }
        free
    }
}

/// A value in blocks, to be looked at once the leaves were.
#[derive(Debug)]
struct Remote {
    block: u32,
    length: u32,
    list: Option<Vec<u8>>,
    /// Left over from a change: its blocks may be gone.
    incomplete: bool,
    spot: Spot,
}

/// Checks attributes in blocks. False: not all could be read.
pub(super) fn check(ctx: &Ctx<'_>, inode: Inode<'_>, buffers: &mut Buffers) -> bool {
    let mut reader = Reader::new(ctx, inode, Fork::Attr, "attribute block", buffers);
    if !reader.complete || reader.map.extents().is_empty() {
        return false;
    }
    let bounds = Bounds { root: 0, end: 1 << 32, leaf: attr_leaf::magic_of(ctx.context()) };
    let mut remotes = Vec::new();
    let mut last = 0;
    let mut sound = true;
    let scanned = da::scan(ctx, &mut reader, bounds, &mut |leaf, spot| {
        let mut this = Leaf { ctx, inode, bytes: leaf.bytes, spot, remotes: &mut remotes, last: &mut last };
        let greatest = this.check(leaf.at);
        sound &= greatest.is_some();
        greatest
    });
    da::report_keys(ctx, &scanned);
    if scanned.complete && sound {
        unreached(ctx, &reader, scanned.blocks, &remotes);
    }
    for remote in remotes.iter().filter(|remote| !remote.incomplete) {
        value(ctx, &mut reader, remote);
    }
    scanned.complete && sound
}

/// Are there more blocks in the fork than the tree and the values have?
fn unreached(ctx: &Ctx<'_>, reader: &Reader<'_, '_>, tree: u64, remotes: &[Remote]) {
    if remotes.iter().any(|remote| remote.incomplete || remote.length > VALUE_MAX) {
        return;
    }
    let capacity = attr_remote::capacity(ctx.context()).max(1);
    let values = remotes.iter().fold(0u64, |sum, remote| sum.saturating_add(remote.length.div_ceil(capacity).into()));
    let (there, reached) = (da::mapped(reader, 0, u64::MAX), tree.saturating_add(values));
    if there > reached {
        let found = format!("{there} blocks, {reached} of the tree and of values");
        ctx.raise(UNREACHED, &fork::inode_spot(ctx, reader.ino), found, "all reached");
    }
}

struct Leaf<'l, 'b> {
    ctx: &'l Ctx<'l>,
    inode: Inode<'l>,
    bytes: &'b [u8],
    spot: &'l dyn Fn() -> Spot,
    remotes: &'l mut Vec<Remote>,
    /// Hash of the entry before, in the leaf before as well.
    last: &'l mut u32,
}

impl Leaf<'_, '_> {
    /// Gives the greatest hash; `None` where not all entries could be read.
    fn check(&mut self, at: u64) -> Option<u32> {
        let (ctx, bytes, spot) = (self.ctx, self.bytes, self.spot);
        let context = ctx.context();
        let header = attr_leaf::header(context, bytes)?;
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let start = attr_leaf::header_size(context);
        let end = start.saturating_add(u32::from(header.count).saturating_mul(8));
        if header.firstused > size || header.firstused < start {
            ctx.raise(FIRSTUSED, &spot(), header.firstused, format_args!("{start} to {size}"));
            return None;
        }
        if end > header.firstused {
            ctx.raise(
                COUNT,
                &spot(),
                header.count,
                format_args!("at most {}", header.firstused.saturating_sub(start) / 8),
            );
            return None;
        }
        if header.count == 0 {
            ctx.raise(if at == 0 { EMPTY_FIRST } else { EMPTY }, &spot(), 0, "at least 1");
        }
        let mut pads = u32::from(*bytes.get(da_block::size(context).saturating_add(7))?);
        if context.has_crc() {
            pads |= bits::be32(bytes, 76).unwrap_or(0);
        } else {
            pads |= u32::from(bits::be16(bytes, 10).unwrap_or(0));
        }
        if pads != 0 {
            ctx.raise(PAD, &spot(), format_args!("{pads:#x}"), 0);
        }
        let mut used = Used([0; 256]);
        used.take(0, usize::try_from(end).unwrap_or(0));
        let mut sound = true;
        let (mut total, mut first, mut greatest) = (0usize, size, 0);
        let (mut disorder, mut wrong) = (None, false);
        let mut same: Vec<Attribute<'_>> = Vec::new();
        for (i, entry) in attr_leaf::entries(context, bytes).enumerate() {
            if entry.hashval < *self.last && disorder.is_none() {
                disorder = Some((i, entry.hashval, *self.last));
            }
            let before = std::mem::replace(self.last, entry.hashval);
            greatest = entry.hashval;
            let part = || spot().part(format_args!("entries[{i}]"));
            let length = attr_leaf::size_of(&entry.content).unwrap_or(0);
            let name_at = usize::from(entry.nameidx);
            let inside = name_at.saturating_add(length) <= bytes.len() && u32::from(entry.nameidx) >= end;
            if length == 0 || entry.name().is_empty() || !inside {
                let right = format!("a name from byte {end} on that ends within the block");
                ctx.raise(NAMEIDX, &part(), entry.nameidx, right);
                sound = false;
                continue;
            }
            if !used.take(name_at, length) {
                ctx.raise(OVERLAP, &part(), entry.nameidx, "bytes of its own");
                sound = false;
            }
            let attribute = Attribute { flags: entry.flags, name: entry.name(), value: local(&entry) };
            if entry.hashval != before {
                same.clear();
            } else if same.iter().any(|other| attribute.is_same(other)) {
                ctx.raise(attr::NAME_TWICE, &part(), super::dir::shown(attribute.name), "another name");
            }
            // A long run of one hash is made, not met.
            if same.len() < SAME {
                same.push(attribute);
            }
            total = total.saturating_add(length);
            first = first.min(u32::from(entry.nameidx));
            wrong |= self.entry(&entry, &part, i);
        }
        if let Some((i, found, before)) = disorder.filter(|_| !wrong && sound) {
            let part = spot().part(format_args!("entries[{i}]"));
            ctx.raise(da::DISORDER, &part, format_args!("{found:#x}"), format_args!("at least {before:#x}"));
        }
        if sound && !wrong {
            self.sums(&header, (total, first), &used);
        }
        sound.then_some(greatest)
    }

    /// One entry whose bytes lie within the block. True where its hash is wrong.
    fn entry(&mut self, entry: &Entry<'_>, part: &dyn Fn() -> Spot, index: usize) -> bool {
        let (ctx, context) = (self.ctx, self.ctx.context());
        let known = flags::NAMESPACES | flags::LOCAL | flags::INCOMPLETE;
        if entry.flags & !known != 0 {
            ctx.raise(attr::BAD_FLAGS, &part(), format_args!("{:#x}", entry.flags), "known bits");
            return false;
        }
        let at = usize::try_from(attr_leaf::header_size(context)).unwrap_or(0);
        let pad = self.bytes.get(at.saturating_add(index.saturating_mul(8)).saturating_add(7)).copied().unwrap_or(0);
        if pad != 0 {
            ctx.raise(PAD, &part(), format_args!("{pad:#x}"), 0);
        }
        let name = entry.name();
        let value = local(entry);
        let parent = value.filter(|_| entry.flags & flags::NAMESPACES == flags::PARENT).and_then(parent_of);
        let right = match parent {
            Some((parent, _)) => hash::parent_hash(context, name, parent),
            None => hash::da_hash(name),
        };
        let wrong = right != entry.hashval;
        if wrong {
            ctx.raise(HASH, &part(), format_args!("{:#x}", entry.hashval), format_args!("{right:#x}"));
        }
        if let Content::Remote { valueblk, valuelen, .. } = entry.content {
            let incomplete = entry.flags & flags::INCOMPLETE != 0;
            let list = attr::is_list(entry.flags, name).then(|| name.to_vec());
            self.remotes.push(Remote { block: valueblk, length: valuelen, list, incomplete, spot: part() });
        }
        attr::judge(ctx, self.inode, &Attribute { flags: entry.flags, name, value }, part);
        wrong
    }

    /// What the header says of the whole block.
    fn sums(&self, header: &Header, (total, first): (usize, u32), used: &Used) {
        let (ctx, spot) = (self.ctx, self.spot);
        let size = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        // With holes, it may be lower than needed.
        if header.firstused > first || (header.holes == 0 && header.count > 0 && header.firstused != first) {
            ctx.raise(FIRSTUSED, &spot(), header.firstused, first);
        }
        if usize::from(header.usedbytes) != total {
            ctx.raise(USEDBYTES, &spot(), header.usedbytes, total);
        }
        let mut taken = Used(used.0);
        for (i, (base, length)) in header.freemap.iter().enumerate() {
            let end = u32::from(*base).saturating_add(u32::from(*length));
            let whole = base & 3 == 0 && length & 3 == 0 && end <= size;
            if !whole || !taken.take(usize::from(*base), usize::from(*length)) {
                let part = spot().part(format_args!("freemap[{i}]"));
                ctx.raise(FREEMAP, &part, format_args!("{base}+{length}"), "free bytes, in units of 4");
            }
        }
    }
}

/// A value in blocks.
fn value(ctx: &Ctx<'_>, reader: &mut Reader<'_, '_>, remote: &Remote) {
    let context = ctx.context();
    if remote.block == 0 || remote.length > VALUE_MAX {
        let found = format!("block {}, {} bytes", remote.block, remote.length);
        ctx.raise(VALUE, &remote.spot, found, format_args!("a block that is not 0, at most {VALUE_MAX} bytes"));
        return;
    }
    let capacity = attr_remote::capacity(context).max(1);
    let mut gathered = Vec::new();
    let mut offset = 0u32;
    let mut at = u64::from(remote.block);
    while offset < remote.length {
        let share = capacity.min(remote.length.saturating_sub(offset));
        let (ino, size, what, block) = (reader.ino, reader.size(), reader.what(), reader.place(at));
        let spot = || fork::spot(ctx, ino, what, block, at, size);
        let bytes = match reader.read(at) {
            Read::Block(bytes) => bytes,
            Read::Failed => return,
            Read::Hole => {
                ctx.raise(VALUE, &remote.spot, format_args!("no block {at}"), "a block of the fork");
                return;
            }
        };
        if context.has_crc() {
            let magic = bits::be32(bytes, 0).unwrap_or(0);
            if magic != attr_remote::MAGIC {
                let right = format!("{:#x}", attr_remote::MAGIC);
                ctx.raise(da::BAD_MAGIC, &spot(), format_args!("{magic:#x}"), right);
                return;
            }
            if !fork::frame(ctx, (fork::REMOTE, &FRAME), bytes, (block, ino), &spot) {
                return;
            }
            for (rule, byte, right) in [(OFFSET, 4, offset), (BYTES, 8, share)] {
                let found = bits::be32(bytes, byte).unwrap_or(0);
                if found != right {
                    ctx.raise(rule, &spot(), found, right);
                }
            }
        }
        if remote.list.is_some() {
            let start = if context.has_crc() { attr_remote::AttrRemoteHeader::SIZE } else { 0 };
            let length = usize::try_from(share).unwrap_or(0);
            gathered.extend_from_slice(bytes.get(start..start.saturating_add(length)).unwrap_or_default());
        }
        offset = offset.saturating_add(share);
        at = at.saturating_add(1);
    }
    if let Some(name) = &remote.list {
        attr::list(ctx, name, &gathered, &|| remote.spot.clone());
    }
}
