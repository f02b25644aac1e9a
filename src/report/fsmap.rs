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

/// A range of 512-byte units: `0..7`.
pub fn sectors(start: u64, length: u64) -> String {
    let (start, length) = (start / BASIC_BLOCK, length / BASIC_BLOCK);
    let last = i128::from(start) + i128::from(length) - 1;
    format!("{start}..{last}")
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
    rows: Vec<[String; 7]>,
    widths: [usize; 7],
    written: u64,
    flags: bool,
    /// Width of the column of numbers.
    number_width: usize,
}

/// Rows that are held.
const PIECE: usize = 4096;
/// Headings of the columns. Those of AG and TOTAL stand on the right.
const HEADINGS: [&str; 7] = ["DEV", "BLOCK-RANGE", "OWNER", "FILE-OFFSET", "AG", "AG-OFFSET", "TOTAL"];
const LEAST: [usize; 7] = [4, 16, 18, 16, 2, 16, 5];

impl Table {
    /// An empty table.
    pub fn new(stripe: (u64, u64)) -> Self {
        Self { stripe, rows: Vec::new(), widths: LEAST, written: 0, flags: false, number_width: 4 }
    }

    /// Adds a row; gives text when there is enough of it.
    pub fn add(&mut self, row: &Row) -> Option<String> {
        // As xfs_io: blocks of an extent map have no flags, except, here, that of their fork.
        let flags = match row.part {
            Some(part) if part.bmbt && part.fork == Fork::Data => String::new(),
            Some(part) if part.bmbt => "1000000".to_owned(),
            _ => self.flags_of(row),
        };
        self.flags |= !flags.is_empty();
        let owner = match &row.part {
            Some(part) => part.ino.to_string(),
            None => owner_text(row.owner).to_owned(),
        };
        let offset = match &row.part {
            Some(part) if part.bmbt => "extent map".to_owned(),
            Some(part) => sectors(part.offset, row.length),
            None => String::new(),
        };
        let (group, within) = match row.group {
            Some((group, byte)) => (group.to_string(), format!("({})", sectors(byte, row.length))),
            None => (String::new(), String::new()),
        };
        let mut total = (row.length / BASIC_BLOCK).to_string();
        if !flags.is_empty() {
            total.push(' ');
            total.push_str(&flags);
        }
        let place = format!("[{}]:", sectors(row.start, row.length));
        self.rows.push([row.device.name().to_owned(), place, owner, offset, group, within, total]);
        (self.rows.len() >= PIECE).then(|| self.text())
    }

    /// Attribute fork, shared, unwritten, and where the ends do not fall on stripes; empty where none holds.
    fn flags_of(&self, row: &Row) -> String {
        let end = row.start.saturating_add(row.length);
        let (unit, width) = if row.device == Device::Data { self.stripe } else { (0, 0) };
        let off = |at: u64, unit: u64| unit != 0 && !at.is_multiple_of(unit);
        let bits = [
            row.part.is_some_and(|part| part.fork == Fork::Attr),
            row.shared,
            row.part.is_some_and(|part| part.unwritten),
            off(row.start, unit),
            off(end, unit),
            off(row.start, width),
            off(end, width),
        ];
        if bits.contains(&true) { bits.map(|bit| if bit { '1' } else { '0' }).iter().collect() } else { String::new() }
    }

    /// The rows that were not written yet, below the heading where they are the first.
    fn text(&mut self) -> String {
        let total = |text: &str| text.split(' ').next().unwrap_or_default().len();
        for row in &self.rows {
            for (i, (width, cell)) in self.widths.iter_mut().zip(row).enumerate() {
                *width = (*width).max(if i == 6 { total(cell) } else { cell.len() });
            }
        }
        let last = self.written.saturating_add(u64::try_from(self.rows.len()).unwrap_or(u64::MAX)).saturating_sub(1);
        self.number_width = self.number_width.max(last.to_string().len());
        let mut out = String::new();
        if self.written == 0 {
            let _ = write!(out, "{:>1$}: ", "EXT", self.number_width);
            line(&mut out, &HEADINGS, &self.widths);
            out.push_str(" FLAGS\n");
        }
        for row in &self.rows {
            let _ = write!(out, "{:>1$}: ", self.written, self.number_width);
            let from = out.len();
            line(&mut out, &row.each_ref().map(String::as_str), &self.widths);
            out.truncate(from + out.get(from..).unwrap_or_default().trim_end().len());
            out.push('\n');
            self.written = self.written.saturating_add(1);
        }
        self.rows.clear();
        out
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

/// Cells side by side. AG and TOTAL stand on the right of their columns; behind TOTAL follow the flags.
fn line(out: &mut String, cells: &[&str; 7], widths: &[usize; 7]) {
    for (i, (cell, &width)) in cells.iter().zip(widths).enumerate() {
        let gap = if i == 0 { "" } else { " " };
        let _ = match (i, cell.split_once(' ')) {
            (4, _) => write!(out, "{gap}{cell:>width$}"),
            (6, Some((total, flags))) => write!(out, "{gap}{total:>width$} {flags}"),
            (6, None) => write!(out, "{gap}{cell:>width$}"),
            _ => write!(out, "{gap}{cell:<width$}"),
        };
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
