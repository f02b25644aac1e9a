//! Extent maps: as `xfs_bmap -elpvv` writes them, in 512-byte units, and the JSON line `extent`.

use super::line::Line;
use crate::format::dinode::Fork;
use crate::units::{BASIC_BLOCK, Device, Ino};
use std::fmt::Write;

/// A part of a fork that is equal throughout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First byte within the fork.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Where it lies: device and first byte; `None` for a hole.
    pub place: Option<(Device, u64)>,
    /// Group (AG or realtime group) and byte within it.
    pub group: Option<(u32, u64)>,
    /// Allocated but not written?
    pub unwritten: bool,
    /// Shared with another file; `None` where that is not known.
    pub shared: Option<bool>,
}

/// What the table needs to know besides the pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    /// Does the fork lie in the realtime section?
    pub realtime: bool,
    /// Are there groups? AGs, or realtime groups.
    pub groups: bool,
    /// Stripe unit and width in bytes; zeros without stripes.
    pub stripe: (u64, u64),
}

/// The JSON line `extent`; holes have none.
pub fn json(ino: Ino, fork: Fork, piece: &Piece) -> Option<String> {
    let (device, start) = piece.place?;
    let line = Line::new("extent")
        .number("ino", ino.0)
        .plain("fork", if fork == Fork::Data { "data" } else { "attr" })
        .number("offset_bytes", piece.offset)
        .number("length_bytes", piece.length)
        .plain("device", device.name())
        .number("start_bytes", start)
        .plain("state", if piece.unwritten { "unwritten" } else { "written" })
        .truth("shared", piece.shared);
    Some(line.finish())
}

/// A range of 512-byte units: `0..7`.
fn range(start: u64, length: u64) -> String {
    let (start, length) = (start / BASIC_BLOCK, length / BASIC_BLOCK);
    let last = i128::from(start) + i128::from(length) - 1;
    format!("{start}..{last}")
}

/// The flags column: shared, unwritten, and where the ends do not fall on stripes.
fn flags(piece: &Piece, start: u64, layout: &Layout) -> String {
    let end = start.saturating_add(piece.length);
    let off = |at: u64, unit: u64| unit != 0 && !at.is_multiple_of(unit);
    let (unit, width) = layout.stripe;
    let bits = [
        piece.shared == Some(true),
        piece.unwritten,
        off(start, unit),
        off(end, unit),
        off(start, width),
        off(end, width),
    ];
    bits.map(|bit| if bit { '1' } else { '0' }).iter().collect()
}

/// What the digits of the flags column mean.
const LEGEND: &str = " FLAG Values:
    0100000 Shared extent
    0010000 Unwritten preallocated extent
    0001000 Doesn't begin on stripe unit
    0000100 Doesn't end   on stripe unit
    0000010 Doesn't begin on stripe width
    0000001 Doesn't end   on stripe width
";

/// The table, holes included, with the meaning of the flags below it.
pub fn table(pieces: &[Piece], layout: &Layout) -> String {
    let place = |p: &Piece| p.place.map_or_else(|| "hole".to_owned(), |(_, start)| range(start, p.length));
    let within = |p: &Piece| match p.group {
        Some((_, byte)) => format!("({})", range(byte, p.length)),
        None => String::new(),
    };
    let offset = |p: &Piece| format!("[{}]:", range(p.offset, p.length));
    let total = |p: &Piece| (p.length / BASIC_BLOCK).to_string();
    let widest = |least: usize, text: &dyn Fn(&Piece) -> String| {
        pieces.iter().map(|p| text(p).len()).max().unwrap_or(0).max(least)
    };
    let (offset_width, place_width) = (widest(16, &offset), widest(16, &place));
    let (within_width, total_width) = (widest(16, &within), widest(5, &total));
    let group_width = widest(2, &|p| p.group.map_or_else(String::new, |(group, _)| group.to_string()));
    let (place_name, group_name, within_name) = match layout.realtime {
        true => ("RT-BLOCK-RANGE", "RG", "RG-OFFSET"),
        false => ("BLOCK-RANGE", "AG", "AG-OFFSET"),
    };
    let columns = |out: &mut String, group: &str, within: &str| {
        if layout.groups {
            let _ = write!(out, " {group:>group_width$} {within:<within_width$}");
        }
    };
    // Without groups the columns of the group are empty, but their spaces stay; xfs_bmap narrows the second one only
    // when it comes to an extent.
    let mapped = pieces.iter().any(|piece| piece.place.is_some());
    let gap = " ".repeat(match (layout.groups, mapped) {
        (true, _) => 0,
        (false, true) => 2,
        (false, false) => 18,
    });
    let mut out = String::new();
    let _ = write!(out, "{:>4}: {:<offset_width$} {place_name:<place_width$}", "EXT", "FILE-OFFSET");
    columns(&mut out, group_name, within_name);
    let _ = writeln!(out, "{gap} {:>total_width$} FLAGS", "TOTAL");
    for (i, piece) in pieces.iter().enumerate() {
        let _ = write!(out, "{i:>4}: {:<offset_width$} {:<place_width$}", offset(piece), place(piece));
        let group = piece.group.map_or_else(String::new, |(group, _)| group.to_string());
        columns(&mut out, &group, &within(piece));
        let _ = write!(out, "{gap} {:>total_width$}", total(piece));
        if let Some((_, start)) = piece.place {
            let _ = write!(out, " {}", flags(piece, start, layout));
        }
        out.push('\n');
    }
    out.push_str(LEGEND);
    out
}
