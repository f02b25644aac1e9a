//! The realtime section as text and as JSON lines.

use super::line::Line;
pub use super::rt_whole::{report_json, report_text};
use super::text::size;
use crate::check::rt::group::{File, Report as Group};
use crate::check::rt::space::{Owner, Piece};
use crate::check::rt::{self, Cell, Order};
use crate::format::rtbitmap::ByteOrder;
use crate::geometry::{Geometry, Realtime};
use crate::units::{Device, RtBlock};
use serde_json::{Map, Value as Json, json};
use std::fmt::Write;

/// Where realtime blocks lie: device and byte.
#[derive(Clone, Copy, Debug)]
pub struct Scale<'a> {
    /// The file system.
    pub geometry: &'a Geometry,
    /// Its realtime section.
    pub rt: &'a Realtime,
}

impl Scale<'_> {
    /// Bytes of blocks.
    pub fn bytes(&self, blocks: u64) -> u64 {
        blocks.saturating_mul(self.geometry.block_size())
    }

    /// Bytes of realtime extents.
    pub fn extent_bytes(&self, extents: u64) -> u64 {
        self.bytes(extents.saturating_mul(u64::from(self.rt.extent_blocks)))
    }

    /// Device and first byte of a realtime block. Also for blocks that are no part of the section.
    pub fn place(&self, block: u64) -> (Device, Option<u64>) {
        match self.geometry.rt_block_byte(RtBlock(block)) {
            Some((device, byte)) => (device, Some(byte.0)),
            None => (self.rt.device, None),
        }
    }
}

pub(super) fn order_name(order: Order) -> &'static str {
    match order.order() {
        ByteOrder::Little => "little",
        ByteOrder::Big => "big",
    }
}

/// A run of free, used or unknown extents, as a JSON line.
pub fn run_line(scale: &Scale<'_>, group: &rt::Group, state: &str, start: u64, extents: u64) -> String {
    let block = group.first_block().saturating_add(start.saturating_mul(group.extent_blocks));
    let (device, byte) = scale.place(block);
    Line::new("rt_run")
        .plain("state", state)
        .maybe("group", group.shift.map(|_| group.number.0))
        .number("start_extent", start)
        .number("extents", extents)
        .number("start_rtblock", block)
        .plain("device", device.name())
        .maybe("start_bytes", byte)
        .number("length_bytes", scale.extent_bytes(extents))
        .finish()
}

/// The same as text: extents, then bytes.
pub fn run_text(scale: &Scale<'_>, group: &rt::Group, state: &str, start: u64, extents: u64) -> String {
    let block = group.first_block().saturating_add(start.saturating_mul(group.extent_blocks));
    let byte = scale.place(block).1.map_or("-".to_owned(), |byte| byte.to_string());
    let last = start.saturating_add(extents).saturating_sub(1);
    let number = if group.shift.is_some() { format!("{:>5} ", group.number) } else { String::new() };
    format!(
        "{number}{start:>12} {last:>12} {extents:>12} {byte:>16} {:>10}  {state}\n",
        size(scale.extent_bytes(extents))
    )
}

/// Head of the table of runs.
pub fn run_head(groups: bool) -> String {
    let number = if groups { "group " } else { "" };
    format!("{number}{:>12} {:>12} {:>12} {:>16} {:>10}\n", "first extent", "last", "extents", "at byte", "length")
}

/// A word of a summary, as a JSON line.
pub fn cell_line(group: &rt::Group, cell: &Cell) -> String {
    Line::new("rt_summary")
        .maybe("group", group.shift.map(|_| group.number.0))
        .number("level", cell.level)
        .number("bitmap_block", cell.block)
        .number("disk", cell.disk)
        .number("computed", cell.computed)
        .truth("same", Some(cell.disk == cell.computed))
        .finish()
}

/// The levels of a group's summary, on disk against the bitmap.
pub fn levels_text(report: &Group, levels: u32) -> String {
    let mut out = String::new();
    if report.group.shift.is_some() {
        let _ = writeln!(out, "group {}", report.group.number);
    }
    let _ = writeln!(
        out,
        "{:>5} {:>32} {:>12} {:>12} {:>14}",
        "level", "runs of so many extents", "on disk", "in bitmap", "extents"
    );
    let computed = report.histogram.runs.iter().zip(report.histogram.extents);
    let rows = (0u32..).zip(computed.zip(report.disk_levels));
    for (level, ((runs, extents), disk)) in rows.take_while(|(level, _)| *level < levels.max(report.histogram.used())) {
        let range = level_range(level);
        let mark = if *runs == disk { "" } else { "  differ" };
        let _ = writeln!(out, "{level:>5} {range:>32} {disk:>12} {runs:>12} {extents:>14}{mark}");
    }
    out
}

/// The runs that a level of the summary counts.
pub(super) fn level_range(level: u32) -> String {
    let low = 1u64.checked_shl(level).unwrap_or(0);
    match low {
        1 => "1".to_owned(),
        _ => format!("{low} to {}", low.saturating_mul(2).saturating_sub(1)),
    }
}

fn file_json(file: &Option<File>) -> Json {
    file.as_ref().map_or(Json::Null, |file| {
        json!({
            "ino": file.ino, "device": "data", "inode_byte": file.place.byte.0, "size_bytes": file.size,
            "extents": file.extents, "first_byte": file.first_byte,
        })
    })
}

fn tree_json(tree: &Option<rt::btrees::TreeReport>) -> Json {
    tree.as_ref().map_or(Json::Null, |tree| {
        json!({ "ino": tree.ino, "device": "data", "inode_byte": tree.place.byte.0, "levels": tree.levels,
            "records": tree.records, "complete": tree.complete })
    })
}

/// A group, as a JSON object.
pub fn group_json(scale: &Scale<'_>, report: &Group, has_superblock: bool) -> Map<String, Json> {
    let g = &report.group;
    let (device, byte) = scale.place(g.first_block());
    let bitmap = report.bitmap.is_some();
    let mut object = Map::new();
    object.insert("type".into(), "rt_group".into());
    object.insert("group".into(), g.shift.map(|_| g.number.0).into());
    object.insert("first_rtblock".into(), g.first_block().into());
    object.insert("device".into(), device.name().into());
    object.insert("start_bytes".into(), byte.into());
    object.insert("length_bytes".into(), scale.bytes(g.blocks()).into());
    object.insert("blocks".into(), g.blocks().into());
    object.insert("extents".into(), g.extents.into());
    object.insert("free_extents".into(), bitmap.then_some(report.count.free).into());
    object.insert("free_runs".into(), bitmap.then_some(report.count.runs).into());
    object.insert("longest_free_extents".into(), bitmap.then_some(report.count.longest).into());
    object.insert("unknown_extents".into(), report.count.unknown.into());
    object.insert("superblock".into(), (has_superblock && g.number.0 == 0).into());
    object.insert("bitmap".into(), file_json(&report.bitmap));
    object.insert("summary".into(), file_json(&report.summary));
    object.insert(
        "summary_words_differ".into(),
        (report.bitmap.is_some() && report.summary.is_some()).then_some(report.differ).into(),
    );
    object.insert("rmap".into(), tree_json(&report.rmap));
    object.insert("refcount".into(), tree_json(&report.refcount));
    let zone = report.zone.map(|zone| {
        json!({ "state": zone.state(), "used_blocks": zone.used_stored, "used_blocks_by_rmap": zone.used,
            "written_blocks": zone.written, "write_pointer": Json::Null })
    });
    object.insert("zone".into(), zone.into());
    object
}

/// A group, as text.
pub fn group_text(scale: &Scale<'_>, report: &Group, has_superblock: bool) -> String {
    let g = &report.group;
    let (device, byte) = scale.place(g.first_block());
    let mut out = String::new();
    let kind = if report.zone.is_some() { "zone" } else { "group" };
    let name = if g.shift.is_some() { format!("{kind} {}", g.number) } else { "section without groups".to_owned() };
    let _ = write!(out, "{name}: {} blocks, {} extents", g.blocks(), g.extents);
    match byte {
        Some(byte) => {
            let _ = writeln!(out, ", {} from byte {byte} of the {device} device on", size(scale.bytes(g.blocks())));
        }
        None => out.push('\n'),
    }
    if has_superblock && g.number.0 == 0 {
        let _ = writeln!(out, "  superblock  block 0, takes the first extent");
    }
    let file = |file: &File| {
        format!(
            "inode {} at byte {}, {} bytes in {} extent{}",
            file.ino,
            file.place.byte,
            file.size,
            file.extents,
            if file.extents == 1 { "" } else { "s" }
        )
    };
    if let Some(bitmap) = &report.bitmap {
        let _ = writeln!(
            out,
            "  bitmap      {}: {} extents free in {} run{}, longest {}",
            file(bitmap),
            report.count.free,
            report.count.runs,
            if report.count.runs == 1 { "" } else { "s" },
            report.count.longest
        );
    }
    if let Some(summary) = &report.summary {
        let state = match report.differ {
            0 if report.complete => "as the bitmap".to_owned(),
            0 => "not compared".to_owned(),
            n => format!("{n} words differ from the bitmap"),
        };
        let _ = writeln!(out, "  summary     {}: {state}", file(summary));
    }
    for (name, tree) in [("rmap", &report.rmap), ("refcount", &report.refcount)] {
        if let Some(tree) = tree {
            let partial = if tree.complete { "" } else { ", not all of it readable" };
            let _ = writeln!(
                out,
                "  {name:<11} inode {} at byte {}: {} record{}, {} level{}{partial}",
                tree.ino,
                tree.place.byte,
                tree.records,
                if tree.records == 1 { "" } else { "s" },
                tree.levels,
                if tree.levels == 1 { "" } else { "s" }
            );
        }
    }
    if let Some(zone) = &report.zone {
        let counts = match zone.used_stored == zone.used {
            true => format!("{} blocks in use", zone.used),
            false => format!("{} blocks in use by its inode, {} by its mappings", zone.used_stored, zone.used),
        };
        let last = match zone.written {
            0 => String::new(),
            n => format!(", the last of them block {}", n.saturating_sub(1)),
        };
        let _ = writeln!(out, "  state       {}: {counts}{last}", zone.state());
    }
    out
}

/// A piece with its owner, as a JSON line; named as those of `fsmap` are.
pub fn piece_line(scale: &Scale<'_>, group: &rt::Group, piece: &Piece, shared: Option<bool>) -> String {
    let (device, byte) = scale.place(piece.start);
    let (owner, file) = match &piece.owner {
        Owner::Free => ("free", None),
        Owner::Lost => ("lost", None),
        Owner::Unknown => ("unknown", None),
        Owner::Superblock => ("fs", None),
        Owner::Staging => ("cow", None),
        Owner::File(one) => ("inode", Some(one)),
    };
    let offset = file.map(|one| scale.bytes(one.offset));
    let line = Line::new("rt_range")
        .plain("device", device.name())
        .maybe("start_bytes", byte)
        .number("length_bytes", scale.bytes(piece.blocks))
        .maybe("group", group.shift.map(|_| group.number.0))
        .number("start_rtblock", piece.start)
        .number("blocks", piece.blocks)
        .plain("owner", owner)
        .maybe("ino", file.map(|one| one.ino))
        .maybe("offset_bytes", offset);
    let line = match file {
        Some(one) => line.plain("state", if one.unwritten { "unwritten" } else { "written" }),
        None => line.truth("state", None),
    };
    line.truth("shared", shared).finish()
}

/// The same as text.
pub fn piece_text(scale: &Scale<'_>, group: &rt::Group, piece: &Piece, shared: Option<bool>) -> String {
    let number = if group.shift.is_some() { format!("{:>5} ", group.number) } else { String::new() };
    let within = piece.start.saturating_sub(group.first_block());
    let last = within.saturating_add(piece.blocks).saturating_sub(1);
    let byte = scale.place(piece.start).1.map_or("-".to_owned(), |byte| byte.to_string());
    let owner = match &piece.owner {
        Owner::Free => "free".to_owned(),
        Owner::Lost => "used, but nothing owns it".to_owned(),
        Owner::Unknown => "bitmap not readable".to_owned(),
        Owner::Superblock => "realtime superblock".to_owned(),
        Owner::Staging => "staging of a copy on write".to_owned(),
        Owner::File(one) => {
            let state = if one.unwritten { ", unwritten" } else { "" };
            let shared = if shared == Some(true) { ", shared" } else { "" };
            format!("inode {} at file block {}{state}{shared}", one.ino, one.offset)
        }
    };
    format!("{number}{within:>12} {last:>12} {:>12} {byte:>16}  {owner}\n", piece.blocks)
}

/// Head of the table of owners.
pub fn piece_head(groups: bool) -> String {
    let number = if groups { "group " } else { "" };
    format!("{number}{:>12} {:>12} {:>12} {:>16}  owner\n", "first block", "last", "blocks", "at byte")
}

/// The section drawn as a strip of cells, each a piece of it as full as its shade.
#[derive(Clone, Debug)]
pub struct Strip {
    extents: u64,
    used: Vec<u64>,
    unknown: Vec<bool>,
}

/// Cells of a row.
const ROW: usize = 64;
/// Rows.
const ROWS: usize = 8;

impl Strip {
    /// A strip for so many extents: no more cells than extents.
    pub fn new(extents: u64) -> Self {
        let cells = usize::try_from(extents).unwrap_or(usize::MAX).min(ROW * ROWS);
        Self { extents, used: vec![0; cells], unknown: vec![false; cells] }
    }

    /// Takes in extents that are used, or unknown.
    pub fn add(&mut self, start: u64, extents: u64, known: bool) {
        let cells = u128::try_from(self.used.len()).unwrap_or(0);
        let all = u128::from(self.extents.max(1));
        let end = start.saturating_add(extents).min(self.extents);
        let mut at = start;
        while at < end && cells > 0 {
            let cell = u128::from(at) * cells / all;
            // First extent of the next cell.
            let next =
                u64::try_from(((cell + 1) * all).div_ceil(cells)).unwrap_or(end).min(end).max(at.saturating_add(1));
            let cell = usize::try_from(cell).unwrap_or(usize::MAX);
            if let Some(used) = self.used.get_mut(cell).filter(|_| known) {
                *used = used.saturating_add(next.saturating_sub(at));
            }
            if let Some(unknown) = self.unknown.get_mut(cell).filter(|_| !known) {
                *unknown = true;
            }
            at = next;
        }
    }

    /// Draws it.
    pub fn text(&self, scale: &Scale<'_>) -> String {
        const SHADES: [char; 6] = ['.', '\u{2591}', '\u{2592}', '\u{2593}', '\u{2588}', '?'];
        let mut out = String::new();
        let cells = u64::try_from(self.used.len()).unwrap_or(0).max(1);
        let bounds = |cell: usize| u128::try_from(cell).unwrap_or(0) * u128::from(self.extents);
        for (row, cells_of_row) in self.used.chunks(ROW).enumerate() {
            let first = row.saturating_mul(ROW);
            let start = bounds(first).div_ceil(u128::from(cells));
            let byte = scale.extent_bytes(u64::try_from(start).unwrap_or(0));
            let _ = write!(out, "{:>10} ", size(byte));
            for (i, used) in cells_of_row.iter().enumerate() {
                let cell = first.saturating_add(i);
                let from = bounds(cell).div_ceil(u128::from(cells));
                let to = bounds(cell.saturating_add(1)).div_ceil(u128::from(cells));
                let whole = u64::try_from(to.saturating_sub(from)).unwrap_or(0).max(1);
                let shade = match *used {
                    _ if self.unknown.get(cell) == Some(&true) => 5,
                    0 => 0,
                    used if used >= whole => 4,
                    used => usize::try_from(1 + used.saturating_mul(3).saturating_sub(1) / whole).unwrap_or(1).min(3),
                };
                out.push(SHADES.get(shade).copied().unwrap_or('?'));
            }
            out.push('\n');
        }
        let each = self.extents.div_ceil(cells);
        let _ = writeln!(
            out,
            "{:>10} one cell: {} ({each} extents); . free, \u{2591}\u{2592}\u{2593} partly used, \u{2588} used, ? not known",
            "",
            size(scale.extent_bytes(each))
        );
        out
    }
}
