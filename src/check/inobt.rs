//! Inode chunks: records of the inode btree. `xfs_inobt_check_irec` (xfs_ialloc.c), `xchk_iallocbt_rec`
//! (scrub/ialloc.c), `scan_single_ino_chunk` (xfs_repair).

use super::btree::{of_ag, scan};
use super::chunks::Chunks;
use super::context::Ctx;
use super::finding::Mismatch;
use super::group::Group;
use super::known::Known;
use super::owners::{Local, Owner};
use super::{apply, raised, rules};
use crate::format::agi::Agi;
use crate::format::inobt::{self, Chunk, INODES_PER_CHUNK, INODES_PER_HOLE, InobtRec};
use crate::geometry::Geometry;
use crate::units::{AgBlock, AgNumber};
use crate::volume::Volume;

/// How inode chunks lie (`struct xfs_ino_geometry`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Inodes per block.
    pub per_block: u32,
    /// Chunks begin at multiples of this many inodes (`cluster_align_inodes`).
    pub align: u32,
    /// Chunks begin at multiples of this many blocks.
    pub align_blocks: u32,
    /// Inodes that are read and written together (`inodes_per_cluster`).
    pub per_cluster: u32,
    /// Sparse chunks?
    pub sparse: bool,
}

impl Layout {
    /// From the superblock (`xfs_ialloc_setup_geometry`).
    pub fn of(volume: &Volume) -> Self {
        let (sb, geometry) = (volume.superblock(), volume.geometry());
        let block = geometry.context.block_size;
        let per_block = 1u32.checked_shl(geometry.inodes_per_block_log).unwrap_or(1).max(1);
        let mut cluster = 8192u32;
        if geometry.context.has_crc() {
            let larger = cluster.saturating_mul(geometry.context.inode_size / 256);
            if sb.inoalignmt.0 >= larger.checked_div(block).unwrap_or(0) {
                cluster = larger;
            }
        }
        let cluster_blocks = cluster.checked_div(block).unwrap_or(1).max(1);
        let aligned = geometry.context.features.has_align() && sb.inoalignmt.0 >= cluster_blocks;
        let align_blocks = if aligned { sb.inoalignmt.0.max(1) } else { 1 };
        let align = align_blocks.saturating_mul(per_block);
        let per_cluster = per_block.saturating_mul(cluster_blocks);
        Self { per_block, align, align_blocks, per_cluster, sparse: geometry.context.features.has_sparse() }
    }

    /// Numbers that inodes of an AG can have (`xfs_agino_range`).
    pub fn inodes(&self, geometry: &Geometry, length: u32) -> std::ops::Range<u32> {
        let headers = geometry.context.sector_size.saturating_mul(4).div_ceil(geometry.context.block_size);
        let first = headers.checked_next_multiple_of(self.align_blocks).unwrap_or(u32::MAX);
        let end = length.saturating_sub(length.checked_rem(self.align_blocks).unwrap_or(0));
        first.saturating_mul(self.per_block)..end.saturating_mul(self.per_block)
    }
}

/// A record and what it must fit.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The record.
    pub chunk: Chunk,
    /// How chunks lie.
    pub layout: Layout,
    /// Numbers that inodes of the AG can have.
    pub inodes: std::ops::Range<u32>,
}

/// Inodes of the chunk without space, a bit for each.
pub fn holes(chunk: &Chunk) -> u64 {
    (0..16).filter(|bit| chunk.holemask >> bit & 1 != 0).fold(0, |mask, bit| mask | 0xf << (bit * 4))
}

impl Subject {
    fn free(&self) -> u32 {
        (self.chunk.free & !holes(&self.chunk)).count_ones()
    }

    fn space(&self) -> u32 {
        INODES_PER_CHUNK.saturating_sub(self.chunk.holemask.count_ones().saturating_mul(INODES_PER_HOLE))
    }
}

rules! { structure "inobt", subject Subject, fields InobtRec;
    /// All 64 inodes of a chunk lie in the AG, behind its headers.
    "inobt-chunk-outside" corrupt startino, "inode chunk lies outside the AG",
        source "xfs_ialloc.c:xfs_inobt_check_irec; repair/scan.c:verify_single_ino_chunk_align", since "2.6",
        |s| {
            let last = s.chunk.startino.0.checked_add(INODES_PER_CHUNK - 1);
            let within = s.inodes.contains(&s.chunk.startino.0) && last.is_some_and(|last| s.inodes.contains(&last));
            let bound = s.inodes.end.saturating_sub(1);
            Mismatch::unless(within, s.chunk.startino, format_args!("64 inodes from {} to {bound}", s.inodes.start))
        };
    /// Chunks begin at multiples of the alignment that the superblock gives (inoalignmt), and of a block.
    "inobt-chunk-misaligned" corrupt startino, "inode chunk is not aligned",
        source "scrub/ialloc.c:xchk_iallocbt_rec_alignment; repair/scan.c:verify_single_ino_chunk_align", since "scrub",
        |s| {
            let within_block = s.layout.per_block.min(INODES_PER_CHUNK);
            let start = s.chunk.startino.0;
            let unit = if s.layout.align_blocks > 1 { s.layout.align } else { within_block };
            Mismatch::unless(start.checked_rem(unit) == Some(0), start, format_args!("a multiple of {unit}"))
        };
    /// A chunk has space for 4 to 64 inodes, and for those that the hole mask leaves.
    "inobt-bad-count" corrupt freecount, "number of inodes does not fit the hole mask",
        source "xfs_ialloc.c:xfs_inobt_check_irec; scrub/ialloc.c:xchk_iallocbt_rec; repair/scan.c:scan_single_ino_chunk",
        since "4.18",
        |s| {
            let right = s.space();
            let fits = u32::from(s.chunk.count) == right && right > 0;
            Mismatch::unless(fits, format_args!("count {}, holemask {:#x}", s.chunk.count, s.chunk.holemask), format_args!("count {right}"))
        };
    /// Inodes without space are marked as free in the mask, so that nobody takes them for files.
    "inobt-hole-in-use" corrupt free, "inode without space is marked as in use",
        source "scrub/ialloc.c:xchk_iallocbt_rec; repair/scan.c:import_single_ino_chunk", since "scrub",
        |s| {
            let holes = holes(&s.chunk);
            Mismatch::unless(s.chunk.free & holes == holes, format_args!("{:#x}", s.chunk.free), format_args!("with {holes:#x}"))
        };
    /// The number of free inodes is that of the bits in the mask.
    "inobt-bad-freecount" corrupt freecount, "number of free inodes does not fit the mask",
        source "xfs_ialloc.c:xfs_inobt_check_irec; repair/scan.c:scan_single_ino_chunk", since "6.4",
        |s| Mismatch::unless(s.chunk.freecount == s.free(), s.chunk.freecount, s.free());
    /// Inodes are read and written in clusters of 8 KiB and more: a cluster has space as a whole, or not at all.
    "inobt-hole-splits-cluster" corrupt startino, "hole mask splits a cluster of inodes",
        source "scrub/ialloc.c:xchk_iallocbt_check_cluster", since "scrub",
        |s| {
            let right = splits_no_cluster(s.chunk.holemask, s.layout.per_cluster);
            let expected = format!("clusters of {} inodes, whole", s.layout.per_cluster);
            Mismatch::unless(right, format!("holemask {:#x}", s.chunk.holemask), expected)
        };
}

/// Is each cluster wholly a hole, or not at all?
fn splits_no_cluster(holemask: u16, per_cluster: u32) -> bool {
    let bits = per_cluster.checked_div(INODES_PER_HOLE).unwrap_or(0).clamp(1, 16);
    let cluster = (1u32 << bits).saturating_sub(1);
    (0..16 / bits).all(|i| {
        let holes = u32::from(holemask) >> i.saturating_mul(bits) & cluster;
        holes == 0 || holes == cluster
    })
}

raised! { RAISED, structure "inobt", fields InobtRec;
    /// Blocks that hold more than one chunk are allocated whole, with a record for each chunk. Without it the blocks'
    /// other inodes do not exist.
    PARTLY: "inobt-block-partly-known" corrupt startino, "block of inodes without a record for each of its chunks",
        source "scrub/ialloc.c:xchk_iallocbt_rec_alignment", since "scrub";
    /// The record says that the inode is in use, the inode that it is free (its mode is 0).
    FREE_INODE: "inobt-free-inode-in-use" xcorrupt free, "record says in use, the inode is free",
        source "scrub/ialloc.c:xchk_iallocbt_check_cluster_ifree; repair/dino_chunks.c:process_inode_chunk", since "scrub";
    /// The record says that the inode is free, the inode that it is in use (its mode is not 0). The kernel would give it
    /// away again: with xfs_repair its file comes back, or is lost.
    USED_INODE: "inobt-used-inode-free" xcorrupt free, "record says free, the inode is in use",
        source "scrub/ialloc.c:xchk_iallocbt_check_cluster_ifree; repair/dino_chunks.c:process_inode_chunk", since "scrub";
    /// Nothing in the whole chunk is an inode: the record is wrong, or all of it was overwritten.
    NO_INODES: "inobt-chunk-without-inodes" xcorrupt startino, "no inode where the record says",
        source "repair/dino_chunks.c:check_aginode_block, process_inode_chunk", since "2.6";
    /// A whole block of the chunk is zeros: a write that was lost, not bits that rotted. Inodes that were there are gone,
    /// names that lead to them lead nowhere; xfs_repair clears them and the names.
    ZEROED: "inobt-inode-block-zeroed" corrupt startino, "block of inodes is all zeros",
        source "repair/dino_chunks.c:process_inode_chunk; xfs_inode_buf.c:xfs_inode_buf_verify", since "2.6";
}

/// The inode btree of an AG. Chunks go to the group; their blocks to `owners` once inodes were seen there.
pub fn check(ctx: &Ctx<'_>, group: &mut Group, agi: &Agi, owners: &mut Local<'_>) {
    let layout = Layout::of(ctx.volume());
    let inodes = layout.inodes(ctx.geometry(), group.length);
    let tree = of_ag(&inobt::SHAPE, group.ag, agi.root, agi.level, Owner::INOBT);
    let mut chunks = Vec::new();
    let mut doubtful = Vec::new();
    group.inobt = scan(ctx, &tree, owners, &mut |leaf| {
        let mut right = true;
        for (i, record) in leaf.records().enumerate() {
            let Some(chunk) = Chunk::at(ctx.context(), record, 0) else { continue };
            let subject = Subject { chunk, layout, inodes: inodes.clone() };
            let (mut place_known, mut first) = (true, true);
            let sound = apply(RULES, INFOS, &subject, |rule, mismatch| {
                place_known &= !matches!(rule.id, "inobt-chunk-outside" | "inobt-chunk-misaligned");
                // A record breaks one rule after the other, and a wrong count makes many wrong records.
                if leaf.believed && first && right {
                    ctx.raise(rule, &leaf.spot(i), mismatch.found, mismatch.expected);
                }
                first = false;
            });
            right &= sound;
            if place_known {
                chunks.push(chunk);
            }
            if !sound || !leaf.believed {
                doubtful.push(chunk.startino);
            }
        }
        right
    });
    if !group.inobt.is_witness() {
        ctx.owners_unknown();
    }
    chunks.sort_unstable_by_key(|chunk| chunk.startino);
    // Of records that overlap one at least is wrong: the order was said to be. The first stands in for both.
    chunks.dedup_by(|chunk, before| {
        let overlaps = chunk.startino.0 < before.startino.0.saturating_add(INODES_PER_CHUNK);
        if overlaps {
            doubtful.push(before.startino);
        }
        overlaps
    });
    doubtful.sort_unstable();
    group.doubtful = doubtful;
    let chunks = Chunks::new(chunks);
    if group.inobt.is_witness() {
        partly_known(ctx, group, &chunks, layout);
    }
    let (mut inodes, mut free) = (0u64, 0u64);
    for chunk in chunks.iter() {
        let space = INODES_PER_CHUNK.saturating_sub(chunk.holemask.count_ones().saturating_mul(INODES_PER_HOLE));
        inodes = inodes.saturating_add(u64::from(space));
        free = free.saturating_add(u64::from(chunk.freecount));
    }
    let witness = group.inobt.is_witness();
    (group.inodes, group.free_inodes) = (Known::when(witness, inodes), Known::when(witness, free));
    group.chunks = chunks;
}

/// Where blocks hold several chunks, each of them must have its record.
fn partly_known(ctx: &Ctx<'_>, group: &Group, chunks: &[Chunk], layout: Layout) {
    if layout.per_block <= INODES_PER_CHUNK {
        return;
    }
    let block_of = |chunk: &Chunk| chunk.startino.0.checked_div(layout.per_block);
    let wanted = usize::try_from(layout.per_block.checked_div(INODES_PER_CHUNK).unwrap_or(1)).unwrap_or(1);
    for block in chunks.chunk_by(|a, b| block_of(a) == block_of(b)).filter(|block| block.len() != wanted) {
        let Some(first) = block.first() else { continue };
        let spot = super::agi::spot(ctx, group.ag).part(format_args!("inobt chunk {}", first.startino));
        ctx.raise(PARTLY, &spot, format_args!("{} records for the block", block.len()), wanted);
    }
}

/// The blocks of a chunk that have inodes go to `owners`.
pub fn own(ag: AgNumber, chunk: &Chunk, layout: Layout, owners: &mut Local<'_>) {
    let first = chunk.startino.0.checked_div(layout.per_block).unwrap_or(0);
    let blocks = INODES_PER_CHUNK.checked_div(layout.per_block).unwrap_or(0);
    if blocks == 0 {
        // Blocks with several chunks: the first of them owns it.
        if chunk.startino.0.checked_rem(layout.per_block) == Some(0) {
            owners.blocks(ag, AgBlock(first), 1, Owner::INODES);
        }
        return;
    }
    for i in 0..blocks {
        if chunk.has_space(i.saturating_mul(layout.per_block)) {
            owners.blocks(ag, AgBlock(first.saturating_add(i)), 1, Owner::INODES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::AgIno;

    fn ids(chunk: Chunk) -> Vec<&'static str> {
        let layout = Layout { per_block: 8, align: 64, align_blocks: 8, per_cluster: 32, sparse: true };
        let mut ids = Vec::new();
        apply(RULES, INFOS, &Subject { chunk, layout, inodes: 64..8192 }, |rule, _| ids.push(rule.id));
        ids
    }

    #[test]
    fn records_alone() {
        let good =
            Chunk { startino: AgIno(128), holemask: 0xff00, count: 32, freecount: 1, free: 0xffff_ffff_0000_0002 };
        assert_eq!(holes(&good), 0xffff_ffff_0000_0000);
        assert_eq!(ids(good), [""; 0]);
        assert_eq!(ids(Chunk { startino: AgIno(136), ..good }), ["inobt-chunk-misaligned"]);
        assert_eq!(ids(Chunk { startino: AgIno(0), ..good }), ["inobt-chunk-outside"]);
        assert_eq!(ids(Chunk { startino: AgIno(u32::MAX - 63), ..good }), ["inobt-chunk-outside"]);
        assert_eq!(ids(Chunk { count: 33, ..good }), ["inobt-bad-count"]);
        assert_eq!(ids(Chunk { freecount: 33, ..good }), ["inobt-bad-freecount"]);
        assert_eq!(ids(Chunk { free: 2, ..good }), ["inobt-hole-in-use"]);
    }

    /// Inodes of 512 bytes in blocks of 4096: clusters of 16 KiB have 32.
    #[test]
    fn clusters_are_whole() {
        for mask in [0, 0x00ff, 0xff00, 0xffff] {
            assert!(splits_no_cluster(mask, 32), "{mask:#x}");
        }
        assert!(!splits_no_cluster(0x000f, 32) && splits_no_cluster(0x000f, 16));
        assert!(!splits_no_cluster(0x00ff, 64) && splits_no_cluster(0x0001, 4) && splits_no_cluster(0x0001, 2));
    }
}
