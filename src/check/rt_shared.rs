//! Shared extents of realtime groups, as their refcount btrees have them: for the reflink flag of realtime files. What
//! the btrees themselves are worth is for [`rt`](super::rt). `xfs_reflink_inode_has_shared_extents` (xfs_reflink.c).
//!
//! Memory: 8 bytes for each shared realtime extent.

use super::context::Ctx;
use crate::units::{AgNumber, RgNumber};
use crate::walk::metadir::GroupFile;
use crate::walk::rt::btrees;
use std::sync::OnceLock;

/// Shared extents of each group, as first block and length, in order.
type Groups = Vec<Vec<(u32, u32)>>;

/// Shared extents of the realtime section, read when they are first asked for.
#[derive(Debug, Default)]
pub struct RtShared(OnceLock<Option<Groups>>);

impl RtShared {
    /// Is a block of this extent shared? `None` where that is not known, or nothing can be.
    pub fn overlaps(&self, ctx: &Ctx<'_>, group: AgNumber, start: u32, blocks: u32) -> Option<bool> {
        let groups = self.0.get_or_init(|| read(ctx)).as_ref()?;
        let shared = groups.get(usize::try_from(group.0).ok()?)?;
        let before = shared.partition_point(|&(first, _)| first < start.saturating_add(blocks));
        let near = before.checked_sub(1).and_then(|i| shared.get(i));
        Some(near.is_some_and(|&(first, length)| first.saturating_add(length) > start))
    }
}

/// All groups; `None` where one could not be read, or holds what cannot be: it is no witness then.
fn read(ctx: &Ctx<'_>) -> Option<Groups> {
    let features = ctx.context().features;
    let realtime = ctx.geometry().realtime.as_ref()?;
    if !features.has_reflink() || !features.has_rmapbt() || realtime.groups.is_none() {
        return None;
    }
    let count = crate::walk::rt::count(realtime);
    let mut groups = Groups::new();
    for number in 0..count {
        let tree = btrees::open(ctx.walk, RgNumber(number), GroupFile::Refcount, &mut |_| {}).ok()?;
        let (mut list, mut sound, mut last) = (Vec::new(), true, 0u32);
        sound &= btrees::shared(ctx.walk, &tree, &mut |_| {}, &mut |found| {
            let shared = &found.record;
            if shared.cow {
                return;
            }
            let (start, blocks) = (shared.startblock.0, shared.blockcount.0);
            let ordered = start >= last && blocks > 0 && shared.refcount > 1;
            match start.checked_add(blocks).filter(|_| ordered) {
                Some(end) => {
                    last = end;
                    list.push((start, blocks));
                }
                None => last = u32::MAX,
            }
        });
        if !sound || last == u32::MAX {
            return None;
        }
        groups.push(list);
    }
    Some(groups)
}
