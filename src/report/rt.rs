//! The realtime section as text and as JSON lines.

use super::line::Line;
use super::text::size;
use crate::check::rt::group::{File, Report as Group};
use crate::check::rt::space::{Owner, Piece};
use crate::check::rt::{self, Cell, Order, Report};
use crate::format::rtbitmap::ByteOrder;
use crate::format::superblock::Superblock;
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

fn order_name(order: Order) -> &'static str {
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
        let low = 1u64.checked_shl(level).unwrap_or(0);
        let range = format!("{low} to {}", low.saturating_mul(2).saturating_sub(1));
        let mark = if *runs == disk { "" } else { "  differ" };
        let _ = writeln!(out, "{level:>5} {range:>32} {disk:>12} {runs:>12} {extents:>14}{mark}");
    }
    out
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
    let name = if g.shift.is_some() { format!("group {}", g.number) } else { "section without groups".to_owned() };
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
            "  bitmap      {}: {} free in {} runs, longest {}",
            file(bitmap),
            report.count.free,
            report.count.runs,
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
                "  {name:<11} inode {} at byte {}: {} records, {} level{}{partial}",
                tree.ino,
                tree.place.byte,
                tree.records,
                tree.levels,
                if tree.levels == 1 { "" } else { "s" }
            );
        }
    }
    if let Some(zone) = &report.zone {
        let _ = writeln!(
            out,
            "  zone        {}: {} blocks in use ({} by its mappings), nothing in use behind block {}; the write pointer is in the device",
            zone.state(),
            zone.used_stored,
            zone.used,
            zone.written
        );
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

/// The report as one JSON object, without findings.
pub fn report_json(scale: &Scale<'_>, sb: &Superblock, zoned: (u64, u64), report: &Report) -> Map<String, Json> {
    let rt = scale.rt;
    let t = &report.totals;
    let bitmaps = report.sizes.bitmap_blocks > 0;
    let mut object = Map::new();
    object.insert("type".into(), "rt".into());
    object.insert("schema".into(), super::json::SCHEMA.into());
    object.insert(
        "geometry".into(),
        json!({
            "device": rt.device.name(), "start_bytes": rt.start_bytes, "blocks": rt.blocks,
            "length_bytes": scale.bytes(rt.blocks), "extents": rt.extents, "extent_size_blocks": rt.extent_blocks,
            "extent_size_bytes": scale.bytes(u64::from(rt.extent_blocks)),
            "bitmap_blocks": sb.rbmblocks.0, "bitmap_blocks_needed": report.sizes.bitmap_blocks,
            "summary_levels": u32::from(sb.rextslog).saturating_add(1), "summary_levels_needed": report.sizes.levels,
            "summary_blocks_needed": report.sizes.summary_blocks,
            "summary_bytes_needed": scale.bytes(report.sizes.summary_blocks),
            "groups": rt.groups.as_ref().map(|g| g.count), "group_extents": rt.groups.as_ref().map(|g| g.extents),
            "group_block_log": rt.groups.as_ref().map(|g| g.block_log),
            "zoned": zoned.0 != 0 || sb.features().has_zoned(), "reserved_blocks": zoned.1,
            "word_order": bitmaps.then(|| order_name(report.order)),
            "word_order_known": bitmaps.then_some(!matches!(report.order, Order::Assumed(_))),
        }),
    );
    let histogram: Vec<Json> = (0u32..)
        .zip(t.histogram.runs.iter().zip(t.histogram.extents))
        .take_while(|(level, _)| *level < t.histogram.used())
        .map(|(level, (runs, extents))| json!({ "level": level, "runs": runs, "extents": extents }))
        .collect();
    let zones = sb.features().has_zoned().then_some(t.zones);
    object.insert(
        "use".into(),
        json!({
            "free_extents": bitmaps.then_some(t.free), "free_bytes": bitmaps.then(|| scale.extent_bytes(t.free)),
            "used_extents": bitmaps.then(|| t.extents.saturating_sub(t.free).saturating_sub(t.unknown)),
            "unknown_extents": t.unknown, "free_extents_in_superblock": sb.frextents,
            "free_runs": bitmaps.then_some(t.runs), "longest_free_extents": bitmaps.then_some(t.longest),
            "longest_free_bytes": bitmaps.then(|| scale.extent_bytes(t.longest)),
            "free_run_at_the_end_extents": bitmaps.then_some(t.last_run),
            "zones_empty": zones.map(|[n, _, _]| n), "zones_open": zones.map(|[_, n, _]| n), "zones_full": zones.map(|[_, _, n]| n),
            "zone_blocks_used": zones.map(|_| t.zone_blocks),
            "summary_words_differ": (bitmaps && t.complete).then_some(t.differ), "histogram": histogram,
        }),
    );
    let files = report.files.map(|f| {
        json!({
            "files": f.files, "empty": f.empty, "size_bytes": f.size_bytes, "blocks": f.blocks,
            "allocated_bytes": scale.bytes(f.blocks), "extents": f.extents, "unwritten_extents": f.unwritten,
            "unwritten_bytes": scale.bytes(f.unwritten_blocks), "extents_split_within_realtime_extents": f.split,
            "most_extents": f.most_extents.map(|(_, n)| n), "most_extents_ino": f.most_extents.map(|(ino, _)| ino),
            "rtinherit_directories": f.inherit_directories, "complete": f.complete,
        })
    });
    object.insert("files".into(), files.into());
    object
}

/// The report as text, without findings.
pub fn report_text(name: &str, scale: &Scale<'_>, sb: &Superblock, zoned: (u64, u64), report: &Report) -> String {
    let rt = scale.rt;
    let (t, sizes) = (&report.totals, &report.sizes);
    let mut out = String::new();
    let mut row = |name: &str, text: String| {
        let _ = writeln!(out, "{name:>10}: {text}");
    };
    let extent = u64::from(rt.extent_blocks);
    let length = size(scale.bytes(rt.blocks));
    let place = if rt.start_bytes > 0 {
        format!(", internal, from byte {} of the data device on", rt.start_bytes)
    } else {
        String::new()
    };
    row("section", format!("{length}, {} blocks of {}{place}", rt.blocks, size(scale.geometry.block_size())));
    row("extents", format!("{} of {extent} blocks = {}", rt.extents, size(scale.bytes(extent))));
    if let Some(groups) = &rt.groups {
        let kind = if sb.features().has_zoned() { "zones" } else { "groups" };
        let each = scale.extent_bytes(u64::from(groups.extents));
        let kept =
            if zoned.1 > 0 { format!("; {} blocks kept back for garbage collection", zoned.1) } else { String::new() };
        row("groups", format!("{} {kind} of {} extents = {}{kept}", groups.count, groups.extents, size(each)));
    }
    if sizes.bitmap_blocks > 0 {
        let of = if rt.groups.is_some() { " in each group" } else { "" };
        let fits = |found: u64, right: u64| {
            if found == right { String::new() } else { format!(" (the superblock says {found})") }
        };
        let present = fits(u64::from(sb.rbmblocks.0), sizes.bitmap_blocks);
        row("bitmap", format!("{} blocks{of}{present}, a bit for each extent, 1 is free", sizes.bitmap_blocks));
        let levels = u64::from(sb.rextslog).saturating_add(1);
        let stated = if rt.groups.is_some() { String::new() } else { fits(levels, u64::from(sizes.levels)) };
        row(
            "summary",
            format!(
                "{} levels{stated} x {} words in {} blocks{of}",
                sizes.levels, sizes.bitmap_blocks, sizes.summary_blocks
            ),
        );
        let order = order_name(report.order);
        let why = match report.order {
            Order::Groups => "as always with realtime groups",
            Order::Agrees(ByteOrder::Big) => {
                "a big-endian machine wrote them: bitmap and summary agree in this order only"
            }
            Order::Agrees(ByteOrder::Little) => "bitmap and summary agree in this order",
            Order::Assumed(_) => "the usual order; bitmap and summary do not tell",
        };
        row("words", format!("{order}-endian ({why})"));
        let used = t.extents.saturating_sub(t.free).saturating_sub(t.unknown);
        row("used", format!("{used} extents = {}", size(scale.extent_bytes(used))));
        row(
            "free",
            format!(
                "{} extents = {} in {} runs; the superblock says {}",
                t.free,
                size(scale.extent_bytes(t.free)),
                t.runs,
                sb.frextents
            ),
        );
        if t.unknown > 0 {
            row("not known", format!("{} extents: parts of the bitmap are missing", t.unknown));
        }
        row(
            "longest",
            format!(
                "{} extents = {}; the section ends {}",
                t.longest,
                size(scale.extent_bytes(t.longest)),
                match t.last_run {
                    0 => "with a used extent".to_owned(),
                    n => format!("with {n} free extents"),
                }
            ),
        );
        let state = match (t.complete, t.differ) {
            (false, _) => "was not compared with all of the bitmap: parts are missing".to_owned(),
            (true, 0) => "agrees with the bitmap".to_owned(),
            (true, n) => format!("differs from the bitmap in {n} words"),
        };
        row("", format!("the summary {state}"));
    }
    if sb.features().has_zoned() {
        let [empty, open, full] = t.zones;
        let free = scale.bytes(rt.blocks).saturating_sub(scale.bytes(t.zone_blocks));
        row(
            "zones",
            format!("{empty} empty, {open} open, {full} full; write pointers are in the device, not on the disk"),
        );
        row(
            "used",
            format!("{} blocks = {}; {} not in use", t.zone_blocks, size(scale.bytes(t.zone_blocks)), size(free)),
        );
    }
    if let Some(f) = report.files {
        let per = f.extents.checked_div(f.files.saturating_sub(f.empty)).unwrap_or(0);
        if f.files == 0 {
            row("files", "no realtime files".to_owned());
        } else {
            let (sizes, allocated) = (size(f.size_bytes), size(scale.bytes(f.blocks)));
            row(
                "files",
                format!(
                    "{} realtime files ({} empty), {sizes} by their sizes, {allocated} allocated",
                    f.files, f.empty
                ),
            );
        }
        if f.extents > 0 {
            let most = f.most_extents.map_or(String::new(), |(ino, n)| format!(", most: inode {ino} with {n}"));
            row("", format!("{} extents, {per} per file{most}", f.extents));
            row(
                "",
                format!(
                    "{} unwritten = {}; {} end or begin within a realtime extent",
                    f.unwritten,
                    size(scale.bytes(f.unwritten_blocks)),
                    f.split
                ),
            );
        }
        row(
            "",
            match f.inherit_directories {
                0 => "no directory hands the realtime flag down: new files go to the data section".to_owned(),
                1 => "1 directory hands the realtime flag down to new files".to_owned(),
                n => format!("{n} directories hand the realtime flag down to new files"),
            },
        );
    }
    if sizes.bitmap_blocks > 0 && t.histogram.used() > 0 {
        let _ = writeln!(out, "\n{:>33} {:>10} {:>14} {:>6}", "free runs of so many extents", "runs", "extents", "%");
        for (level, (runs, extents)) in
            (0u32..).zip(t.histogram.runs.iter().zip(t.histogram.extents)).filter(|(_, (runs, _))| **runs > 0)
        {
            let low = 1u64.checked_shl(level).unwrap_or(0);
            let range = format!("{low} to {}", low.saturating_mul(2).saturating_sub(1));
            let share = u128::from(extents) * 1000 / u128::from(t.free.max(1));
            let _ = writeln!(out, "{range:>33} {runs:>10} {extents:>14} {:>4}.{}", share / 10, share % 10);
        }
    }
    format!("{name}: realtime section\n{out}")
}
