//! From records to ranges: bytes instead of blocks, and the gaps between them. `xfs_getfsmap_helper` (xfs_fsmap.c).

use super::{Each, Group, Owner, Query, Range, Record};
use crate::geometry::Geometry;
use crate::units::{ByteOffset, Device};
use std::ops::ControlFlow;

/// Whose it is what no record names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// Free.
    Free,
    /// Not known.
    Unknown,
    /// Free where these ranges of bytes (start, end; in order) say so, else not known.
    Listed(Vec<(u64, u64)>),
}

/// Makes ranges of one device.
pub(super) struct Emitter<'a, 'e> {
    geometry: &'a Geometry,
    device: Device,
    asked: std::ops::Range<u64>,
    each: &'a mut Each<'e>,
    missing: Missing,
    /// First byte that nothing was said of.
    next: u64,
}

impl<'a, 'e> Emitter<'a, 'e> {
    /// Begins with the first byte of a device; what no record names is free.
    pub(super) fn new(geometry: &'a Geometry, device: Device, query: &Query, each: &'a mut Each<'e>) -> Self {
        Self { geometry, device, asked: query.bytes.clone(), each, missing: Missing::Free, next: 0 }
    }

    /// From byte `from` on (default: from the last record on), what no record names is `missing`.
    pub(super) fn missing(&mut self, missing: Missing, from: Option<u64>) -> ControlFlow<()> {
        if self.missing != missing {
            self.gap(from.unwrap_or(0))?;
            self.missing = missing;
        }
        ControlFlow::Continue(())
    }

    /// A record of a group.
    pub(super) fn record(&mut self, group: &Group, record: &Record, shared: bool) -> ControlFlow<()> {
        let size = self.geometry.block_size();
        let start = group.byte.saturating_add(record.start.saturating_mul(size));
        let length = record.length.saturating_mul(size);
        self.gap(start)?;
        if let Some(owner) = record.owner() {
            self.range(start, length, owner, shared)?;
            self.next = self.next.max(start.saturating_add(length));
        }
        ControlFlow::Continue(())
    }

    /// A range that no record is needed for.
    pub(super) fn fixed(&mut self, start: u64, length: u64, owner: Owner) -> ControlFlow<()> {
        self.gap(start)?;
        self.range(start, length, owner, false)?;
        self.next = self.next.max(start.saturating_add(length));
        ControlFlow::Continue(())
    }

    /// There is no record before byte `to`.
    pub(super) fn gap(&mut self, to: u64) -> ControlFlow<()> {
        let from = self.next.max(self.asked.start);
        self.next = self.next.max(to);
        let to = to.min(self.asked.end);
        if from >= to {
            return ControlFlow::Continue(());
        }
        let free = match &self.missing {
            Missing::Free => vec![(from, to)],
            Missing::Unknown => Vec::new(),
            Missing::Listed(free) => {
                let skip = free.partition_point(|&(_, end)| end <= from);
                free.iter().skip(skip).take_while(|&&(start, _)| start < to).copied().collect()
            }
        };
        let mut at = from;
        for (start, end) in free {
            let (start, end) = (start.max(at), end.min(to));
            if start > at {
                self.range(at, start.saturating_sub(at), Owner::Unknown, false)?;
            }
            if end > start {
                self.range(start, end.saturating_sub(start), Owner::Free, false)?;
            }
            at = end.max(start);
        }
        if at < to {
            self.range(at, to.saturating_sub(at), Owner::Unknown, false)?;
        }
        ControlFlow::Continue(())
    }

    fn range(&mut self, start: u64, length: u64, owner: Owner, shared: bool) -> ControlFlow<()> {
        if start >= self.asked.end || start.saturating_add(length) <= self.asked.start || length == 0 {
            return ControlFlow::Continue(());
        }
        let start = ByteOffset(start);
        let group = super::groups::group_of(self.geometry, self.device, start);
        (self.each)(&Range { device: self.device, start, length, group, owner, shared })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_cut_and_told_apart() {
        let geometry = crate::walk::fsmap::tests::geometry();
        let mut seen = Vec::new();
        let mut each = |range: &Range| {
            seen.push((range.start.0, range.length, range.owner.name()));
            ControlFlow::Continue(())
        };
        let query = Query { bytes: 100..1000, ..Query::default() };
        let mut out = Emitter::new(&geometry, Device::Data, &query, &mut each);
        let mut all = || {
            out.fixed(50, 100, Owner::Log)?;
            out.missing(Missing::Unknown, Some(200))?;
            out.missing(Missing::Listed(vec![(0, 260), (300, 310), (350, 2000)]), Some(250))?;
            out.fixed(400, 10, Owner::Ag)?;
            out.gap(5000)
        };
        assert!(all().is_continue());
        let right = [
            (50, 100, "log"),
            (150, 50, "free"),
            (200, 50, "unknown"),
            (250, 10, "free"),
            (260, 40, "unknown"),
            (300, 10, "free"),
            (310, 40, "unknown"),
            (350, 50, "free"),
            (400, 10, "ag"),
            (410, 590, "free"),
        ];
        assert_eq!(seen, right);
    }
}
