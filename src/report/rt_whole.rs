//! The report about the whole realtime section: geometry, use, files.

use super::rt::{Scale, level_range, order_name};
use super::text::size;
use crate::check::rt::{Order, Report};
use crate::format::rtbitmap::ByteOrder;
use crate::format::superblock::Superblock;
use serde_json::{Map, Value as Json, json};
use std::fmt::Write;

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
            "unknown_extents": t.unknown, "free_extents_in_superblock": report.free_in_superblock,
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
///
/// `dirty`: does the log hold changes that are not in place yet?
pub fn report_text(
    (name, dirty): (&str, bool),
    scale: &Scale<'_>,
    sb: &Superblock,
    zoned: (u64, u64),
    report: &Report,
) -> String {
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
    let many = if extent == 1 { "" } else { "s" };
    row("extents", format!("{} of {extent} block{many} = {} each", rt.extents, size(scale.bytes(extent))));
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
        let many = if sizes.bitmap_blocks == 1 { "" } else { "s" };
        row("bitmap", format!("{} block{many}{of}{present}, a bit for each extent, 1 is free", sizes.bitmap_blocks));
        let levels = u64::from(sb.rextslog).saturating_add(1);
        let stated = if rt.groups.is_some() { String::new() } else { fits(levels, u64::from(sizes.levels)) };
        row(
            "summary",
            format!(
                "{} levels{stated} x {} word{many} in {} block{}{of}",
                sizes.levels,
                sizes.bitmap_blocks,
                sizes.summary_blocks,
                if sizes.summary_blocks == 1 { "" } else { "s" }
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
                "{} extents = {} in {} run{}; {}",
                t.free,
                size(scale.extent_bytes(t.free)),
                t.runs,
                if t.runs == 1 { "" } else { "s" },
                report.free_in_superblock.map_or_else(
                    || "the superblock's count is lost: copies have none".to_owned(),
                    |told| format!("the superblock says {told}")
                )
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
                    0 if t.unknown > 0 => "nobody knows how".to_owned(),
                    0 => "with a used extent".to_owned(),
                    1 => "with 1 free extent".to_owned(),
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
        let with = u128::from(f.files.saturating_sub(f.empty).max(1));
        let tenths = (u128::from(f.extents) * 10 + with / 2) / with;
        let per = format!("{}.{}", tenths / 10, tenths % 10);
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
            row("", format!("{} extents, {per} per file that has any{most}", f.extents));
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
            let range = level_range(level);
            let free = u128::from(t.free.max(1));
            let share = (u128::from(extents) * 1000 + free / 2) / free;
            let _ = writeln!(out, "{range:>33} {runs:>10} {extents:>14} {:>4}.{}", share / 10, share % 10);
        }
    }
    let before = if dirty { ", before the log is recovered: what follows may be out of date" } else { "" };
    format!("{name}: realtime section{before}\n{out}")
}
