//! Advice for a recording workload, and what adding a realtime section would do: as text and as JSON.

use super::preflight::ranges;
use super::text::size;
use super::wrap::wrapped;
use crate::hazard::enable::Enabled;
use crate::hazard::stream::{Advice, Milli, PerHour, Touched};
use crate::hazard::{KERNELS, Kernel};
use serde_json::{Map, Value as Json, json};
use std::fmt::Write;

/// Columns of text.
const WIDTH: usize = 110;

fn object(value: Json) -> Map<String, Json> {
    match value {
        Json::Object(map) => map,
        _ => Map::new(),
    }
}

fn touched_json(touched: Option<Touched>) -> Json {
    touched.map_or(
        Json::Null,
        |t| json!({ "unit_bytes": t.unit, "least": t.least, "most": t.most, "remainder_bytes": t.rest }),
    )
}

fn per_hour_json(p: PerHour) -> Json {
    json!({ "least": p.least, "most": p.most })
}

/// The advice as a JSON object.
pub fn advice_json(name: &str, a: &Advice) -> Map<String, Json> {
    let w = &a.workload;
    let relations: Vec<Json> = a
        .relations
        .iter()
        .map(|r| json!({ "of": r.of.0, "of_bytes": r.of.1, "unit": r.unit.0, "unit_bytes": r.unit.1, "multiple": r.rest() == 0, "remainder_bytes": r.rest() }))
        .collect();
    let options: Vec<Json> = a.options.iter().map(|o| json!({ "option": o.option, "reason": o.reason })).collect();
    let [unit, width] = a.stripes;
    object(json!({
        "type": "stream_advice", "target": name, "section": if a.realtime { "realtime" } else { "data" },
        "frame_bytes": w.frame, "frames_per_1000_seconds": w.millifps, "streams": w.streams,
        "deadline_ms": w.deadline_us() / 1000, "deadline_us": w.deadline_us(),
        "bytes_per_second": w.bytes_per_second(), "bytes_per_1000_seconds": w.bytes_per_kilosecond(),
        "bytes_per_hour_and_stream": w.bytes_per_hour(),
        "deadline_bytes_per_second": a.deadline_rate,
        "allocation_bytes": a.allocation, "extents_touched": touched_json(a.extents),
        "stripe_units_touched": touched_json(unit), "stripe_widths_touched": touched_json(width),
        "frames_per_1000_extents": a.frames_per_extent.0, "allocations_per_1000_seconds": a.allocations.0, "better_extent_bytes": a.best,
        "relations": relations, "section_bytes": a.room.0, "free_bytes": a.room.1,
        "seconds_until_full": a.seconds.0, "seconds_until_free_is_full": a.seconds.1,
        "extents_per_hour_and_stream": per_hour_json(a.per_hour), "hint_bytes": a.hint,
        "extents_per_hour_and_stream_with_hint": per_hour_json(a.per_hour_hint),
        "options": options, "notes": a.notes,
    }))
}

fn time(seconds: u64) -> String {
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match hours {
        0 if seconds == 0 => "less than a second".to_owned(),
        0 => format!("{minutes} min {} s", seconds % 60),
        1..=47 => format!("{hours} h {minutes} min"),
        _ => format!("{} days {} h", hours / 24, hours % 24),
    }
}

fn times(t: &Touched) -> String {
    let count = if t.least == t.most { t.least.to_string() } else { format!("{} or {}", t.least, t.most) };
    let count = if t.most > t.least.saturating_add(1) { format!("{} to {}", t.least, t.most) } else { count };
    format!("{count} of {}", size(t.unit))
}

/// The advice as text.
pub fn advice_text(name: &str, a: &Advice) -> String {
    let w = &a.workload;
    let mut out = String::new();
    let streams = if w.streams == 1 { "1 stream".to_owned() } else { format!("{} streams", w.streams) };
    let fps = Milli(w.millifps);
    let _ = writeln!(
        out,
        "{name}: recording {streams} of {} bytes a frame, {fps} frame{} a second each",
        w.frame,
        if w.millifps == 1000 { "" } else { "s" }
    );
    let mut row = |name: &str, text: String| {
        let indent = " ".repeat(22);
        let text = wrapped(&text, WIDTH, &indent, &indent);
        let _ = write!(out, "{name:>20}: {}", text.trim_start());
    };
    let section = if a.realtime { "realtime section" } else { "data section (there is no realtime section)" };
    row("section", format!("{section}, {}, {} free", size(a.room.0), size(a.room.1)));
    let rate = match w.bytes_per_second() {
        0 => format!("{} bytes a second", Milli(w.bytes_per_kilosecond())),
        bytes => format!("{bytes} bytes a second = {}/s", size(bytes)),
    };
    row("rate", rate);
    row(
        "deadline",
        format!(
            "{} ms: if all frames come at once, {}/s while they are written; whether a single write keeps it, the disk does not tell",
            Milli(w.deadline_us()),
            size(a.deadline_rate)
        ),
    );
    row("full after", format!("{} from empty, {} with what is free now", time(a.seconds.0), time(a.seconds.1)));
    let kind = if a.realtime { "realtime extents" } else { "blocks" };
    if let Some(t) = &a.extents {
        row("a frame touches", format!("{kind}: {}", times(t)));
    }
    for (name, touched) in ["stripe units", "stripe widths"].iter().zip(&a.stripes) {
        if let Some(t) = touched {
            row("", format!("{name}: {}", times(t)));
        }
    }
    let frames =
        if a.frames_per_extent.0 == 0 { "less than 0.001".to_owned() } else { a.frames_per_extent.to_string() };
    row("an extent holds", format!("{frames} frames"));
    let often = if a.allocations.0 == 0 { "less than 0.001".to_owned() } else { a.allocations.to_string() };
    row("allocations", format!("{often} a second without a hint"));
    let hour = |p: &PerHour| if p.least == p.most { p.least.to_string() } else { format!("{} to {}", p.least, p.most) };
    row(
        "extents an hour",
        format!(
            "and stream: {} without a hint, {} with an extent size hint of {}",
            hour(&a.per_hour),
            hour(&a.per_hour_hint),
            size(a.hint)
        ),
    );
    for relation in &a.relations {
        let (of, unit) = (relation.of, relation.unit);
        let fits = match relation.rest() {
            0 => "a multiple".to_owned(),
            rest => format!("no multiple, {rest} bytes over"),
        };
        row("multiples", format!("{} {} of {} {}: {fits}", of.0, size(of.1), unit.0, size(unit.1)));
    }
    let _ = writeln!(out, "\nmkfs.xfs options that would fit better:");
    for option in &a.options {
        out.push_str(&wrapped(&format!("{}: {}", option.option, option.reason), WIDTH, "  ", "    "));
    }
    for note in &a.notes {
        out.push_str(&wrapped(&format!("note: {note}"), WIDTH, "  ", "    "));
    }
    out
}

/// Kernels of the usual table, runs of neighbours as ranges.
fn kernels(some: &[String]) -> String {
    let names: Vec<String> = KERNELS.iter().map(|version| Kernel::upstream(*version).name).collect();
    let on: Vec<bool> = names.iter().map(|name| some.contains(name)).collect();
    ranges(&names.iter().map(String::as_str).collect::<Vec<_>>(), &on)
}

/// What a realtime section would do, as a JSON object.
pub fn enable_json(name: &str, e: &Enabled) -> Map<String, Json> {
    let reasons: Vec<Json> = e.reasons.iter().map(|r| json!({ "forbids": r.forbids, "text": r.text })).collect();
    let brought: Vec<Json> = e
        .brought
        .iter()
        .map(|b| json!({ "id": b.row.id, "severity": b.severity.name(), "title": b.row.title, "evidence": b.text, "kernels": b.kernels }))
        .collect();
    let geometry = e.geometry.map_or(Json::Null, |g| {
        json!({
            "blocks": g.blocks, "extent_size_blocks": g.extent_blocks, "extents": g.extents,
            "bitmap_blocks": g.bitmap_blocks, "summary_levels": g.levels, "summary_blocks": g.summary_blocks,
            "groups": g.groups,
        })
    });
    object(json!({
        "type": "enable_rt", "target": name, "possible": e.possible(), "size_bytes": e.bytes,
        "extent_size_bytes": e.extent_bytes, "geometry": geometry, "reasons": reasons, "hazards": brought,
        "safe_size_bytes": e.safe.map(|s| s.0), "safe_extent_size_bytes": e.safe.map(|s| s.1),
    }))
}

/// The same as text.
pub fn enable_text(name: &str, e: &Enabled) -> String {
    let mut out = String::new();
    let verdict = if e.possible() { "possible" } else { "NOT POSSIBLE" };
    let given = if e.extent_is_given { " (the extent size that the superblock has)" } else { "" };
    let _ = writeln!(
        out,
        "{name}: adding a realtime section of {} with extents of {}{given}: {verdict}",
        size(e.bytes),
        size(e.extent_bytes)
    );
    for reason in &e.reasons {
        let mark = if reason.forbids { "no: " } else { "" };
        out.push_str(&wrapped(&format!("{mark}{}", reason.text), WIDTH, "  ", "    "));
    }
    if let Some(g) = &e.geometry {
        let of = match g.groups {
            None => String::new(),
            Some(1) => ", in one group".to_owned(),
            Some(n) => format!(" in each of {n} groups"),
        };
        let many = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let blocks = |n: u64| many(n, "block");
        let text = format!(
            "it would have {}, {} of {}, a bitmap of {} and a summary of {} in {}{of}",
            blocks(g.blocks),
            many(g.extents, "extent"),
            blocks(g.extent_blocks),
            blocks(g.bitmap_blocks),
            many(g.levels.into(), "level"),
            blocks(g.summary_blocks)
        );
        out.push_str(&wrapped(&text, WIDTH, "  ", "    "));
    }
    if !e.brought.is_empty() {
        let _ = writeln!(out, "  it would bring:");
    }
    for one in &e.brought {
        let text = format!(
            "{} {}: {} ({}; kernels {})",
            one.severity,
            one.row.id,
            one.row.title,
            one.text,
            kernels(&one.kernels)
        );
        out.push_str(&wrapped(&text, WIDTH, "    ", "      "));
    }
    match e.safe {
        Some((bytes, extent)) if (bytes, extent) != (e.bytes, e.extent_bytes) => {
            let text =
                format!("safe instead: {bytes} bytes with extents of {extent} (option SIZE:EXTSZ {bytes}:{extent})");
            out.push_str(&wrapped(&text, WIDTH, "  ", "    "));
        }
        Some(_) if e.brought.iter().any(|one| one.row.id == "rt-uninitialised-nmap") => {
            out.push_str("  size and extent size are safe, but for rt-uninitialised-nmap, which no size avoids\n");
        }
        Some(_) => out.push_str("  size and extent size are safe\n"),
        None if e.possible() => out.push_str("  no size up to that is safe\n"),
        None => {}
    }
    out
}
