//! Which realtime extents are free: a bit each, set for free, in words of 32 bits that begin with the lowest bit.
//! Without realtime groups the words are in the byte order of the machine that wrote them and fill the blocks of one
//! file; with groups each has a file of its own, whose blocks begin with a header, and words are big-endian.
//! `union xfs_rtword_raw`, `struct xfs_rtbuf_blkinfo`; `xfs_rtbuf_verify` (xfs_rtbitmap.c).

use super::node::table;
use super::on_disk::{Crc, Format, Null, Uuid, on_disk};
use super::{Context, Node, Structure, bits};
use crate::units::Ino;

/// `BMPZ`: block of the bitmap of a group.
pub const MAGIC: u32 = 0x424d_505a;
/// Byte of the checksum, where there is a header.
pub const CRC_OFFSET: usize = 4;

on_disk! {
    /// Header of bitmap and summary blocks of realtime groups (`struct xfs_rtbuf_blkinfo`).
    pub struct RtBlockHeader, size 48 {
        /// `BMPZ` for the bitmap, `SUMY` for the summary.
        0 magicnum: u32 [.hex()],
        /// Checksum of the block.
        4 crc: Crc,
        /// Inode it belongs to.
        8 owner: Ino,
        /// Address of this block in 512-byte units.
        16 blkno: u64 [.named("bno").null(Null::Named)],
        /// Log sequence number of the last write.
        24 lsn: u64 [.hex()],
        /// Identity of the file system.
        32 uuid: Uuid,
    }
}

/// Byte order of the words of bitmap and summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// As x86, ARM and most others write without realtime groups.
    Little,
    /// With realtime groups, and as big-endian machines write without.
    Big,
}

/// Do blocks of bitmap and summary have a header here?
pub fn has_header(context: &Context) -> bool {
    context.features.has_metadir()
}

/// Byte of the first word of a block (`xfs_rtbitmap_wordptr`).
pub fn first_word(context: &Context) -> usize {
    if has_header(context) { RtBlockHeader::SIZE } else { 0 }
}

/// Words that a block holds (`m_blockwsize`).
pub fn words_per_block(context: &Context) -> u32 {
    let header = if has_header(context) { 48 } else { 0 };
    context.block_size.saturating_sub(header) >> 2
}

/// Word `index` of a block of bitmap or summary; `None` past its end.
pub fn word(context: &Context, bytes: &[u8], index: u32, order: ByteOrder) -> Option<u32> {
    let at = usize::try_from(index).ok()?.checked_mul(4)?.checked_add(first_word(context))?;
    let raw = bits::array(bytes, at)?;
    Some(match order {
        ByteOrder::Little => u32::from_le_bytes(raw),
        ByteOrder::Big => u32::from_be_bytes(raw),
    })
}

/// The words of a block of bitmap or summary, in place. Bit `b` of word `w` of block `n` of the bitmap stands for
/// extent `(n * words_per_block + w) * 32 + b`; 1 means free.
pub fn words<'a>(context: &Context, bytes: &'a [u8], order: ByteOrder) -> impl Iterator<Item = u32> + 'a {
    let body = bytes.get(first_word(context)..).unwrap_or_default();
    let (words, _) = body.as_chunks::<4>();
    words.iter().map(move |&raw| match order {
        ByteOrder::Little => u32::from_le_bytes(raw),
        ByteOrder::Big => u32::from_be_bytes(raw),
    })
}

/// The nodes of a block without header: its words, in this machine's usual byte order (little-endian).
pub fn classic_layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    words_nodes("rtwords", BITMAP_DOC, (0, Format::HexLittle), context, bytes)
}

/// The nodes of a block of a group: header and words.
pub fn group_layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    let mut nodes = table(RtBlockHeader::FIELDS, context, bytes, 0);
    nodes.extend(words_nodes("rtwords", BITMAP_DOC, (48, Format::Hex), context, bytes));
    nodes
}

const BITMAP_DOC: &str = "A bit for each realtime extent, the lowest first, 1 for free.";

/// The words of a block of bitmap or summary, from byte `first` on.
pub(crate) fn words_nodes(
    name: &'static str,
    doc: &'static str,
    (first, format): (u32, Format),
    context: &Context,
    bytes: &[u8],
) -> Vec<Node> {
    let count = context.block_size.saturating_sub(first) >> 2;
    vec![Node::array(name, doc, u64::from(first).saturating_mul(8), (32, count, 0), format, bytes)]
}
