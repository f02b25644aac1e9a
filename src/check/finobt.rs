//! Chunks with free inodes: the free inode btree holds exactly those records of the inode btree that have some.
//! `xchk_finobt_xref_inobt`, `xchk_inobt_xref_finobt` (scrub/ialloc.c), `scan_single_finobt_chunk` (xfs_repair).

use super::btree::{of_ag, scan};
use super::context::Ctx;
use super::group::Group;
use super::owners::{Local, Owner};
use super::raised;
use crate::format::agi::Agi;
use crate::format::finobt;
use crate::format::inobt::{Chunk, InobtRec};

raised! { RAISED, structure "finobt", fields InobtRec;
    /// The inode btree has no chunk that begins there: an inode allocated from this record would lie in blocks that belong
    /// to something else.
    UNKNOWN: "finobt-chunk-unknown" xcorrupt startino, "chunk is not in the inode btree",
        source "scrub/ialloc.c:xchk_finobt_chunk_xref_inobt; repair/scan.c:scan_single_finobt_chunk", since "scrub";
    /// Both btrees must say the same of a chunk. An inode that one calls free and the other does not would be given away
    /// twice.
    DIFFERENT: "finobt-record-differs" xcorrupt free, "record is not that of the inode btree",
        source "scrub/ialloc.c:xchk_finobt_xref_inobt; repair/scan.c:scan_single_finobt_chunk", since "scrub";
    /// Only chunks with free inodes stand in this btree.
    NONE_FREE: "finobt-chunk-full" corrupt freecount, "chunk has no free inode",
        source "repair/scan.c:scan_single_finobt_chunk", since "none";
    /// A chunk with free inodes is missing: its free inodes are never used again.
    MISSING: "finobt-chunk-missing" xcorrupt startino, "chunk with free inodes is missing",
        source "scrub/ialloc.c:xchk_inobt_chunk_xref_finobt; repair/scan.c:validate_agi", since "scrub";
}

fn text(chunk: &Chunk) -> String {
    let Chunk { startino, holemask, count, freecount, free } = chunk;
    format!("[{startino}, holemask {holemask:#x}, count {count}, freecount {freecount}, free {free:#x}]")
}

/// The free inode btree of an AG, against the inode btree in the group.
pub fn check(ctx: &Ctx<'_>, group: &mut Group, agi: &Agi, owners: &mut Local<'_>) {
    let tree = of_ag(&finobt::SHAPE, group.ag, agi.free_root, agi.free_level, Owner::FINOBT);
    let witness = group.inobt.is_witness();
    let mut seen = vec![false; group.chunks.len()];
    let scanned = scan(ctx, &tree, owners, &mut |leaf| {
        if !leaf.believed {
            return true;
        }
        let mut sound = true;
        for (i, record) in leaf.records().enumerate() {
            let Some(chunk) = Chunk::at(ctx.context(), record, 0) else { continue };
            // A wrong count makes many wrong records: the first says it.
            let mut raise = |rule, found: String, expected: String| {
                if sound {
                    ctx.raise(rule, &leaf.spot(i), found, expected);
                }
                sound = false;
            };
            let at = group.chunks.binary_search_by_key(&chunk.startino, |chunk| chunk.startino);
            let other = at.ok().and_then(|at| group.chunks.get(at));
            if let Some(slot) = at.ok().and_then(|at| seen.get_mut(at)) {
                *slot = true;
            }
            match other {
                None if witness => {
                    raise(UNKNOWN, text(&chunk), "a chunk of the inode btree".to_owned());
                }
                Some(other) if witness && *other != chunk => raise(DIFFERENT, text(&chunk), text(other)),
                _ if chunk.freecount == 0 || chunk.free == 0 => {
                    raise(NONE_FREE, text(&chunk), "free inodes".to_owned())
                }
                _ => {}
            }
        }
        sound
    });
    group.finobt = scanned;
    // A record that differs is a finding of its own; the btree is still all there to look for what misses.
    if !witness || !scanned.is_witness() {
        if !witness {
            ctx.not_compared(group.ag, "inobt", "inobt with finobt");
        }
        return;
    }
    let missing = group.chunks.iter().zip(&seen).filter(|(chunk, seen)| chunk.freecount > 0 && !**seen);
    let mut missing = missing.map(|(chunk, _)| chunk);
    if let Some(chunk) = missing.next() {
        let spot = super::agi::spot(ctx, group.ag).part("finobt");
        let more = match missing.count() {
            0 => String::new(),
            n => format!(", and {n} more"),
        };
        ctx.raise(MISSING, &spot, format_args!("no record{more}"), text(chunk));
    }
}
