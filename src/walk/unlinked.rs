//! Inodes that are unlinked but still open: 64 lists per AG, chained through the inodes. `xfs_iunlink` (xfs_inode.c).

use super::{Visited, Walk, corrupt};
use crate::error::{Error, Result};
use crate::format::agi::Agi;
use crate::units::{AgIno, AgNumber, Ino};
use std::collections::VecDeque;

/// The inodes on the unlinked lists of an AG, with the number of their list (0 to 63). An error ends that list; the
/// iterator goes on with the next, then ends.
#[derive(Debug)]
pub struct Unlinked<'a> {
    walk: &'a Walk<'a>,
    ag: AgNumber,
    heads: VecDeque<(u32, AgIno)>,
    visited: Visited,
}

/// The lists of the AG whose header is `agi`.
pub fn unlinked<'a>(walk: &'a Walk<'a>, ag: AgNumber, agi: &Agi) -> Unlinked<'a> {
    let heads = (0u32..).zip(agi.unlinked).filter(|(_, head)| !head.is_null()).collect();
    Unlinked { walk, ag, heads, visited: Visited::default() }
}

impl Unlinked<'_> {
    fn next_of(&mut self, bucket: u32, agino: AgIno) -> Result<Ino> {
        let header = || {
            let byte = self.walk.geometry().ag_header(self.ag, 2).unwrap_or_default();
            let size = u64::from(self.walk.context().sector_size);
            let name = format!("agi {} › unlinked[{bucket}]", self.ag);
            crate::error::Place::new(crate::units::Device::Data, byte, size, name)
        };
        let Some(ino) = self.walk.geometry().join_inode(self.ag, agino) else {
            return Err(corrupt(header(), "unlinked inode outside the AG", agino, "an inode of the AG"));
        };
        if !self.visited.first_time(u64::from(agino.0)) {
            return Err(corrupt(header(), "the list comes to an inode twice", ino, "each inode once"));
        }
        let block = self.walk.inode(ino)?;
        let next = block.inode().next_unlinked();
        if !next.is_null() {
            self.heads.push_front((bucket, next));
        }
        Ok(ino)
    }
}

impl Iterator for Unlinked<'_> {
    type Item = Result<(u32, Ino)>;

    fn next(&mut self) -> Option<Self::Item> {
        let (bucket, agino) = self.heads.pop_front()?;
        let item = self.next_of(bucket, agino);
        if let Err(Error::Exhausted { .. }) = item {
            self.heads.clear();
        }
        Some(item.map(|ino| (bucket, ino)))
    }
}
