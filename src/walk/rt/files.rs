//! From the inodes to the extents of realtime files, sorted by place. A file system may have more of them than memory:
//! they come in windows of the section, each as large as [`MOST`] extents allow, and the inodes are gone over again for
//! each. Nearly always one window is all.

use super::Group;
use crate::error::Error;
use crate::format::bmbt::Extent;
use crate::format::dinode::{Fork, fork_format};
use crate::format::dinode_view::Kind;
use crate::units::Ino;
use crate::walk::{Inode, Walk, extents, group, inodes};

/// Extents that are held at once: 40 bytes each.
pub const MOST: usize = 1 << 20;

/// An extent of a realtime file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owned {
    /// First realtime block (`xfs_rtblock_t`).
    pub start: u64,
    /// Length in blocks.
    pub blocks: u64,
    /// The file.
    pub ino: u64,
    /// First block within the file.
    pub offset: u64,
    /// Allocated but not written?
    pub unwritten: bool,
}

impl Owned {
    /// The block behind its last.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.blocks)
    }

    /// What a file's blocks are ahead of its offsets: extents of a file that share a realtime extent have the same.
    pub fn delta(&self) -> u64 {
        self.start.wrapping_sub(self.offset)
    }

    /// The part of it within `range`.
    pub fn within(&self, range: &std::ops::Range<u64>) -> Option<Self> {
        let (start, end) = (self.start.max(range.start), self.end().min(range.end));
        let blocks = end.checked_sub(start).filter(|&n| n > 0)?;
        let skipped = start.saturating_sub(self.start);
        Some(Self { start, blocks, offset: self.offset.saturating_add(skipped), ..*self })
    }
}

/// A window: part of the section, and the extents in it.
#[derive(Clone, Debug)]
pub struct Window {
    /// The realtime blocks that it covers.
    pub range: std::ops::Range<u64>,
    /// The extents in it, cut at its ends, by place.
    pub owned: Vec<Owned>,
    /// Could every inode and every extent map be read?
    pub complete: bool,
}

impl Window {
    /// The extents of a group in this window, cut to it.
    pub fn of_group(&self, group: &Group) -> impl Iterator<Item = Owned> + '_ {
        let range = group.range();
        let first = self.owned.partition_point(|owned| owned.end() <= range.start);
        let rest = self.owned.get(first..).unwrap_or_default().iter();
        let end = range.end;
        rest.take_while(move |owned| owned.start < end).filter_map(move |owned| owned.within(&range))
    }
}

/// What the first pass over the inodes sees.
pub trait Visitor {
    /// An inode in use, whatever it is.
    fn inode(&mut self, inode: Inode<'_>);
    /// An extent of a realtime file, in the order of its map.
    fn extent(&mut self, inode: Inode<'_>, extent: &Extent);
    /// The end of a realtime file.
    fn end(&mut self, inode: Inode<'_>);
    /// Something that could not be read or makes no sense.
    fn error(&mut self, error: Error);
}

/// Does nothing: for the windows behind the first.
#[derive(Debug)]
pub struct Nothing;

impl Visitor for Nothing {
    fn inode(&mut self, _: Inode<'_>) {}
    fn extent(&mut self, _: Inode<'_>, _: &Extent) {}
    fn end(&mut self, _: Inode<'_>) {}
    fn error(&mut self, _: Error) {}
}

/// Is the data of this inode in the realtime section?
pub fn is_realtime_file(inode: Inode<'_>) -> bool {
    let format = inode.format(Fork::Data);
    inode.is_realtime() && inode.kind() == Kind::Regular && matches!(format, fork_format::EXTENTS | fork_format::BTREE)
}

/// The extents of realtime files from realtime block `from` on, as many as `most` allow.
pub fn window(walk: &Walk<'_>, from: u64, most: usize, visitor: &mut dyn Visitor) -> Window {
    let mut range = from..u64::MAX;
    let mut owned: Vec<Owned> = Vec::new();
    let mut complete = true;
    let most = most.max(1);
    for ag in group::numbers(walk) {
        let mut chunks = inodes::chunks(walk, ag);
        while let Some(chunk) = chunks.next_chunk() {
            let chunk = match chunk {
                Ok(chunk) => chunk,
                Err(error) => {
                    complete = false;
                    visitor.error(error);
                    continue;
                }
            };
            let mut errors = Vec::new();
            let mut each = |inode: Inode<'_>| {
                visitor.inode(inode);
                if !is_realtime_file(inode) {
                    return;
                }
                for extent in extents::extents(walk, inode, Fork::Data) {
                    match extent {
                        Ok(extent) => {
                            visitor.extent(inode, &extent);
                            let found = of(inode.ino, &extent);
                            owned.extend(found.within(&range));
                        }
                        Err(error) => {
                            complete = false;
                            visitor.error(error);
                        }
                    }
                    if owned.len() >= most.saturating_mul(2) {
                        shrink(&mut owned, &mut range, most);
                        if owned.len() >= most.saturating_mul(2) {
                            // All in one place: no sound file system has that, and there is no end to it.
                            owned.truncate(most);
                            complete = false;
                        }
                    }
                }
                visitor.end(inode);
            };
            chunk.used(&mut |error| errors.push(error), &mut each);
            for error in errors {
                // A wrong checksum leaves the inode readable, but then it is no witness.
                complete = false;
                visitor.error(error);
            }
        }
    }
    if owned.len() > most {
        shrink(&mut owned, &mut range, most);
    }
    owned.sort_unstable();
    Window { range, owned, complete }
}

fn of(ino: Ino, extent: &Extent) -> Owned {
    Owned {
        start: extent.startblock.0,
        blocks: u64::from(extent.blockcount),
        ino: ino.0,
        offset: extent.startoff.0,
        unwritten: extent.unwritten,
    }
}

/// Keeps the first `most` extents, by place, and ends the window where the next one begins. The window always keeps
/// something: it ends behind the first place that has extents at all.
fn shrink(owned: &mut Vec<Owned>, range: &mut std::ops::Range<u64>, most: usize) {
    let at = most.min(owned.len().saturating_sub(1));
    let (_, pivot, _) = owned.select_nth_unstable(at);
    let end = pivot.start.max(range.start.saturating_add(1));
    range.end = range.end.min(end);
    let range = range.clone();
    owned.retain_mut(|one| match one.within(&range) {
        Some(part) => {
            *one = part;
            true
        }
        None => false,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(start: u64, blocks: u64) -> Owned {
        Owned { start, blocks, ino: 1, offset: start, unwritten: false }
    }

    #[test]
    fn a_window_keeps_the_first_and_says_where_it_ends() {
        let mut list: Vec<Owned> = (0..10).rev().map(|i| owned(i * 10, 15)).collect();
        let mut range = 0..u64::MAX;
        shrink(&mut list, &mut range, 4);
        list.sort_unstable();
        assert_eq!(range, 0..40);
        let ends: Vec<u64> = list.iter().map(Owned::end).collect();
        assert_eq!(ends, [15, 25, 35, 40]);
        // Everything in one place: the window still moves on.
        let mut list = vec![owned(7, 3); 8];
        let mut range = 7..u64::MAX;
        shrink(&mut list, &mut range, 4);
        assert_eq!((range, list.len()), (7..8, 8));
    }
}
