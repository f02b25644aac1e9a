//! How much realtime space is free: for each power of two a row of words, one for each block of the bitmap, that
//! counts the free extents of that size class beginning there. Header and byte order as in the bitmap.
//! `union xfs_suminfo_raw`, `xfs_rtsumoffs`; `xfs_rtbuf_verify` (xfs_rtbitmap.c).

use super::node::table;
use super::on_disk::Format;
use super::rtbitmap::{self, RtBlockHeader};
use super::{Context, Node, Structure};

/// `SUMY`: block of the summary of a group.
pub const MAGIC: u32 = 0x5355_4d59;

/// Which word of the whole summary (not of a block) counts free extents of 2^`log` to 2^(`log`+1) - 1 realtime
/// extents that begin in block `block` of a bitmap of `bitmap_blocks` blocks (`xfs_rtsumoffs`).
pub fn word_index(log: u32, block: u64, bitmap_blocks: u64) -> Option<u64> {
    bitmap_blocks.checked_mul(u64::from(log))?.checked_add(block)
}

const DOC: &str = "Free extents, by size class and bitmap block.";

/// The nodes of a block without header: its words, in this machine's usual byte order (little-endian).
pub fn classic_layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    rtbitmap::words_nodes("suminfo", DOC, (0, Format::DecLittle), context, bytes)
}

/// The nodes of a block of a group: header and words.
pub fn group_layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    let mut nodes = table(RtBlockHeader::FIELDS, context, bytes, 0);
    nodes.extend(rtbitmap::words_nodes("suminfo", DOC, (48, Format::Dec), context, bytes));
    nodes
}
