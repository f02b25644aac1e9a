//! Reading the log block by block, in pieces that a slow disk likes.

use super::{Area, Unknown};
use crate::units::LogBlock;
use crate::volume::Volume;

/// Smallest piece.
pub(super) const SMALL: u64 = 64 * 1024;
/// Largest piece.
pub(super) const LARGE: u64 = 1 << 20;

/// Blocks of a log, with the piece read last.
pub(super) struct LogBlocks<'a> {
    volume: &'a Volume,
    pub(super) area: Area,
    first: u32,
    bytes: Vec<u8>,
}

impl<'a> LogBlocks<'a> {
    pub(super) fn new(volume: &'a Volume, area: Area) -> Self {
        Self { volume, area, first: 0, bytes: Vec::new() }
    }

    pub(super) fn volume(&self) -> &'a Volume {
        self.volume
    }

    fn kept(&self, block: u32) -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(block.checked_sub(self.first)?).ok()?.checked_mul(512)?;
        let end = start.checked_add(512)?;
        (end <= self.bytes.len()).then_some(start..end)
    }

    /// A block of the log, read with its neighbours: `span` bytes of the device, a power of two, that hold it.
    pub(super) fn get(&mut self, block: LogBlock, span: u64) -> Result<&[u8], Unknown> {
        if self.kept(block.0).is_none() {
            self.fetch(block, span)?;
        }
        let range = self.kept(block.0).unwrap_or_default();
        let short = || Unknown::Unreadable(format!("{} lies outside the log", self.area.place(block)));
        self.bytes.get(range).filter(|bytes| !bytes.is_empty()).ok_or_else(short)
    }

    fn fetch(&mut self, block: LogBlock, span: u64) -> Result<(), Unknown> {
        let area = self.area;
        let outside =
            || Unknown::Unreadable(format!("log block {block} lies outside the log ({} blocks)", area.blocks));
        let byte = area.byte(block).ok_or_else(outside)?;
        let log_end = area.start.0.saturating_add(u64::from(area.blocks).saturating_mul(512));
        let start = (byte.0 & !span.saturating_sub(1)).max(area.start.0);
        let end = (byte.0 | span.saturating_sub(1)).saturating_add(1).min(log_end);
        let length = u32::try_from(end.saturating_sub(start)).unwrap_or(512);
        let whole = self.volume.read(area.device, crate::units::ByteOffset(start), length, "log");
        let (start, read) = match whole {
            Ok(read) => (start, read),
            // One bad sector must not hide its neighbours.
            Err(_) => {
                let one = self.volume.read(area.device, byte, 512, format!("log block {block}"));
                (byte.0, one.map_err(|error| Unknown::Unreadable(error.to_string()))?)
            }
        };
        let first = start.saturating_sub(area.start.0).checked_div(512).and_then(|n| u32::try_from(n).ok());
        self.first = first.unwrap_or(0);
        self.bytes = read.bytes;
        Ok(())
    }

    /// `count` blocks from `from` on, around the end of the log. The caller bounds `count`.
    pub(super) fn run(&mut self, from: LogBlock, count: u32) -> Result<Vec<u8>, Unknown> {
        let mut bytes = Vec::new();
        for i in 0..count.min(self.area.blocks) {
            let at = self.area.after(from, i);
            bytes.extend_from_slice(self.get(at, LARGE)?);
        }
        Ok(bytes)
    }
}
