//! Ranges with their owners: as `xfs_io -c 'fsmap -v'` writes them, in 512-byte units, and the JSON line `range`.

use super::line::Line;
use crate::format::dinode::Fork;
use crate::units::{BASIC_BLOCK, Device, Ino};
use std::fmt::Write;

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The file.
    pub ino: Ino,
    /// Its fork.
    pub fork: Fork,
    /// A block of the extent map of that fork?
    pub bmbt: bool,
    /// First byte within the fork; without meaning for the extent map.
    pub offset: u64,
    /// Allocated but not written?
    pub unwritten: bool,
}

/// A range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The device.
    pub device: Device,
    /// First byte.
    pub start: u64,
    /// Length in bytes.
    pub length: u64,
    /// AG or realtime group, and first byte within it.
    pub group: Option<(u32, u64)>,
    /// The kernel's name for the owner: one of [`OWNERS`].
    pub owner: &'static str,
    /// The part of the file where the owner is `inode`.
    pub part: Option<Part>,
    /// Shared with another file?
    pub shared: bool,
}

/// Names of owners in JSON, and in text as xfs_io has them.
pub const OWNERS: &[(&str, &str)] = &[
    ("free", "free space"),
    ("unknown", "unknown"),
    ("fs", "static fs metadata"),
    ("log", "journalling log"),
    ("ag", "per-AG metadata"),
    ("inobt", "inode btree"),
    ("inodes", "inodes"),
    ("refcount", "refcount btree"),
    ("cow", "cow reservation"),
];

/// The text for an owner.
pub fn owner_text(owner: &str) -> &str {
    OWNERS.iter().find(|(name, _)| *name == owner).map_or(owner, |(_, text)| text)
}

/// The fields of a range, added to a JSON line.
#[must_use]
pub fn fields(line: Line, row: &Row) -> Line {
    let part = row.part.as_ref();
    let content = part.filter(|part| !part.bmbt);
    let mut line = line
        .plain("device", row.device.name())
        .number("start_bytes", i128::from(row.start))
        .number("length_bytes", i128::from(row.length))
        .plain("owner", row.owner)
        .maybe("ino", part.map(|part| i128::from(part.ino.0)));
    line = match part {
        Some(part) => line.plain("fork", if part.fork == Fork::Data { "data" } else { "attr" }),
        None => line.bytes("fork", None),
    };
    line = line.maybe("offset_bytes", content.map(|part| i128::from(part.offset)));
    line = match content {
        Some(part) => line.plain("state", if part.unwritten { "unwritten" } else { "written" }),
        None => line.bytes("state", None),
    };
    line.truth("bmbt", Some(part.is_some_and(|part| part.bmbt))).truth("shared", Some(row.shared))
}

/// The JSON line `range`.
pub fn json(row: &Row) -> String {
    fields(Line::new("range"), row).finish()
}

/// What the digits of the flags column mean.
pub const LEGEND: &str = " FLAG Values:
    1000000 Attribute fork
    0100000 Shared extent
    0010000 Unwritten preallocated extent
    0001000 Doesn't begin on stripe unit
    0000100 Doesn't end   on stripe unit
    0000010 Doesn't begin on stripe width
    0000001 Doesn't end   on stripe width
";

/// A table that is written piece by piece, each with columns as wide as what is in it and before it.
#[derive(Debug)]
pub struct Table {
    /// Stripe unit and width of the data device in bytes; zeros without stripes.
    stripe: (u64, u64),
    rows: Vec<Row>,
    widths: Widths,
    written: u64,
    flags: bool,
}

/// Rows that are held.
const PIECE: usize = 4096;

/// Widths of the columns.
#[derive(Clone, Copy, Debug)]
struct Widths {
    number: usize,
    place: usize,
    owner: usize,
    offset: usize,
    group: usize,
    within: usize,
    total: usize,
}

/// Digits of a number.
fn digits(n: u64) -> usize {
    n.checked_ilog10().and_then(|log| usize::try_from(log).ok()).map_or(1, |log| log.saturating_add(1))
}

/// Letters of `0..7`.
fn range_width(start: u64, length: u64) -> usize {
    let last = (start / BASIC_BLOCK).saturating_add(length / BASIC_BLOCK).saturating_sub(1);
    digits(start / BASIC_BLOCK).saturating_add(digits(last)).saturating_add(2)
}

impl Widths {
    fn fit(&mut self, row: &Row) {
        let part = row.part.as_ref();
        let owner = part.map_or(0, |part| digits(part.ino.0));
        let offset = part.filter(|part| !part.bmbt).map_or(0, |part| range_width(part.offset, row.length));
        let group = row.group.map_or(0, |(group, _)| digits(u64::from(group)));
        let within = row.group.map_or(0, |(_, byte)| range_width(byte, row.length).saturating_add(2));
        self.place = self.place.max(range_width(row.start, row.length).saturating_add(3));
        self.owner = self.owner.max(owner);
        self.offset = self.offset.max(offset);
        self.group = self.group.max(group);
        self.within = self.within.max(within);
        self.total = self.total.max(digits(row.length / BASIC_BLOCK));
    }
}

/// Fills a column up: what was written from `from` on is the cell.
fn pad(out: &mut String, from: usize, width: usize) {
    let filled = out.len().saturating_sub(from);
    out.extend(std::iter::repeat_n(' ', width.saturating_sub(filled)));
}

impl Table {
    /// An empty table.
    pub fn new(stripe: (u64, u64)) -> Self {
        let widths = Widths { number: 4, place: 16, owner: 18, offset: 16, group: 2, within: 16, total: 5 };
        Self { stripe, rows: Vec::new(), widths, written: 0, flags: false }
    }

    /// Adds a row; gives text when there is enough of it.
    pub fn add(&mut self, row: &Row) -> Option<String> {
        self.widths.fit(row);
        self.rows.push(*row);
        (self.rows.len() >= PIECE).then(|| self.text())
    }

    /// Attribute fork, shared, unwritten, and where the ends do not fall on stripes.
    fn flags_of(&self, row: &Row) -> [bool; 7] {
        let attribute = row.part.is_some_and(|part| part.fork == Fork::Attr);
        // As xfs_io: blocks of an extent map have no flags, except, here, that of their fork.
        if row.part.is_some_and(|part| part.bmbt) {
            return [attribute, false, false, false, false, false, false];
        }
        let end = row.start.saturating_add(row.length);
        let (unit, width) = if row.device == Device::Data { self.stripe } else { (0, 0) };
        let off = |at: u64, unit: u64| unit != 0 && !at.is_multiple_of(unit);
        let unwritten = row.part.is_some_and(|part| part.unwritten);
        let (begin, tail) = ((off(row.start, unit), off(row.start, width)), (off(end, unit), off(end, width)));
        [attribute, row.shared, unwritten, begin.0, tail.0, begin.1, tail.1]
    }

    /// The rows that were not written yet, below the heading where they are the first.
    fn text(&mut self) -> String {
        let held = u64::try_from(self.rows.len()).unwrap_or(u64::MAX);
        self.widths.number = self.widths.number.max(digits(self.written.saturating_add(held).saturating_sub(1)));
        let w = self.widths;
        let mut out = String::with_capacity(self.rows.len().saturating_mul(128));
        if self.written == 0 {
            let _ = writeln!(
                out,
                "{:>1$}: DEV  {2:<3$} {4:<5$} {6:<7$} {8:>9$} {10:<11$} {12:>13$} FLAGS",
                "EXT",
                w.number,
                "BLOCK-RANGE",
                w.place,
                "OWNER",
                w.owner,
                "FILE-OFFSET",
                w.offset,
                "AG",
                w.group,
                "AG-OFFSET",
                w.within,
                "TOTAL",
                w.total
            );
        }
        let rows = std::mem::take(&mut self.rows);
        for row in &rows {
            self.line(&mut out, row);
            self.written = self.written.saturating_add(1);
        }
        self.rows = rows;
        self.rows.clear();
        out
    }

    fn line(&mut self, out: &mut String, row: &Row) {
        let w = self.widths;
        let sectors = |out: &mut String, start: u64| {
            let start = start / BASIC_BLOCK;
            let last = i128::from(start) + i128::from(row.length / BASIC_BLOCK) - 1;
            let _ = write!(out, "{start}..{last}");
        };
        let _ = write!(out, "{:>1$}: {2:<4} [", self.written, w.number, row.device);
        let from = out.len().saturating_sub(1);
        sectors(out, row.start);
        out.push_str("]:");
        pad(out, from, w.place.saturating_add(1));
        let from = out.len();
        match &row.part {
            Some(part) => {
                let _ = write!(out, "{}", part.ino);
            }
            None => out.push_str(owner_text(row.owner)),
        }
        pad(out, from, w.owner.saturating_add(1));
        let from = out.len();
        match &row.part {
            Some(part) if part.bmbt => out.push_str("extent map"),
            Some(part) => sectors(out, part.offset),
            None => {}
        }
        pad(out, from, w.offset.saturating_add(1));
        let from = out.len();
        if let Some((group, byte)) = row.group {
            let _ = write!(out, "{group:>0$} (", w.group);
            sectors(out, byte);
            out.push(')');
        }
        pad(out, from, w.group.saturating_add(w.within).saturating_add(2));
        let _ = write!(out, "{:>1$}", row.length / BASIC_BLOCK, w.total);
        let flags = self.flags_of(row);
        if flags.contains(&true) {
            self.flags = true;
            out.push(' ');
            out.extend(flags.map(|flag| if flag { '1' } else { '0' }));
        }
        out.push('\n');
    }

    /// The rest of the table, and what the flags mean where there are any.
    pub fn finish(mut self) -> String {
        let mut out = self.text();
        if self.flags {
            out.push_str(LEGEND);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(start: u64, length: u64, owner: &'static str) -> Row {
        let group = Some((0, start));
        Row { device: Device::Data, start, length, group, owner, part: None, shared: false }
    }

    #[test]
    fn columns_line_up() {
        // Rows 0, 12 and 14 of xfs_io's fsmap -v of v5-stripe.
        let mut table = Table::new((65536, 196_608));
        assert_eq!(table.add(&row(0, 4096, "fs")), None);
        let part = Part { ino: Ino(198), fork: Fork::Data, bmbt: false, offset: 0, unwritten: true };
        table.add(&Row { part: Some(part), ..row(196_608, 262_144, "inode") });
        let part = Part { offset: 270_336, ..part };
        table.add(&Row { part: Some(part), ..row(466_944, 778_240, "inode") });
        let right = " EXT: DEV  BLOCK-RANGE      OWNER              FILE-OFFSET      AG AG-OFFSET        TOTAL FLAGS
   0: data [0..7]:          static fs metadata                   0 (0..7)               8 0000101
   1: data [384..895]:      198                0..511            0 (384..895)         512 0010001
   2: data [912..2431]:     198                528..2047         0 (912..2431)       1520 0011011
";
        assert_eq!(table.finish(), format!("{right}{LEGEND}"));
    }

    #[test]
    fn lines_of_json() {
        let right = "{\"type\":\"range\",\"device\":\"data\",\"start_bytes\":0,\"length_bytes\":4096,\"owner\":\"fs\",\
                     \"ino\":null,\"fork\":null,\"offset_bytes\":null,\"state\":null,\"bmbt\":false,\"shared\":false}\n";
        assert_eq!(json(&row(0, 4096, "fs")), right);
        let part = Part { ino: Ino(131), fork: Fork::Attr, bmbt: true, offset: 0, unwritten: false };
        let right = "{\"type\":\"range\",\"device\":\"data\",\"start_bytes\":4096,\"length_bytes\":512,\
                     \"owner\":\"inode\",\"ino\":131,\"fork\":\"attr\",\"offset_bytes\":null,\"state\":null,\
                     \"bmbt\":true,\"shared\":false}\n";
        assert_eq!(json(&Row { part: Some(part), ..row(4096, 512, "inode") }), right);
    }
}
