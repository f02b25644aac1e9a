//! Everything that the commands show of a file system, as text and as JSON, and what must hold of it whatever lies on
//! disk: for the fuzz target `print` and tests/patches.rs. Nothing is printed, all is looked at.

use crate::checked::printable;
use crate::patches::Damaged;
use std::ops::ControlFlow;
use xfsinspect::check::rt::{self, Depth, Observer, Run, Section, Sink, Told, group as rt_group, space};
use xfsinspect::error::Error;
use xfsinspect::format::dinode::Fork;
use xfsinspect::format::dinode_view::Kind;
use xfsinspect::format::{Context, STRUCTURES, Type, acl, layout};
use xfsinspect::hazard::enable::enable;
use xfsinspect::hazard::stream::{Workload, advise};
use xfsinspect::hazard::{Asked, Deep, Evaluation, Facts, KERNELS, Kernel, LogState};
use xfsinspect::report::histogram::{Buckets, Histogram};
use xfsinspect::report::line::Line;
use xfsinspect::report::print::{Style, print};
use xfsinspect::report::rt::{self as rt_report, Scale, Strip};
use xfsinspect::report::value::View;
use xfsinspect::report::{bmap, convert, entry, fsmap as ranges, hexdump, info, json, preflight, preflight_json};
use xfsinspect::report::{select, stream, text, xfs_db};
use xfsinspect::units::{ByteOffset, Device, FsBlock, Ino};
use xfsinspect::volume::Volume;
use xfsinspect::walk::free::{self, Order};
use xfsinspect::walk::fsmap::{self, Owner, Query};
use xfsinspect::walk::shared::Shared;
use xfsinspect::walk::tree::{self, Event, Item, Options};
use xfsinspect::walk::{
    Inode, Visited, Walk, attributes, extents, file, frag, group, log, owner, paths, quota, symlink,
};

/// What is shown, in parts that take about as long as each other.
const PARTS: &[&[fn(&Volume)]] = &[
    &[names],
    &[|volume| owners(volume, true), free_space],
    &[|volume| owners(volume, false), forks],
    &[geometry, realtime, journal, quotas],
    &[hazards],
];

/// How many parts there are.
pub const COUNT: usize = PARTS.len();

/// Shows the blocks that were patched, and a part of what there is to show.
pub fn run(damaged: &Damaged) {
    let context = damaged.volume.as_ref().map(Volume::context);
    for (kind, bytes) in damaged.blocks.iter().take(3) {
        structures(*kind, bytes, context);
    }
    if let Some(volume) = &damaged.volume {
        PARTS[damaged.part % COUNT].iter().for_each(|show| show(volume));
    }
}

/// What is wrong is told as text and as JSON.
fn problem(error: &Error) {
    printable(&text::escaped(error.to_string().as_bytes()));
    object(json::error(error));
}

fn object(object: serde_json::Map<String, serde_json::Value>) {
    printable(&json::text(object));
}

/// A line that was put together by hand must be JSON, too. Short ones are parsed: the long ones differ by a value.
fn line(text: &str) {
    printable(text);
    if text.len() > 600 {
        return;
    }
    let parsed: Result<serde_json::Value, _> = serde_json::from_str(text);
    assert!(parsed.is_ok_and(|value| value.get("type").is_some()), "{text:?}");
}

/// `show`: the block as what it is and as everything else.
fn structures(own: Type, bytes: &[u8], context: Option<&Context>) {
    let assumed = Context::assumed(true);
    let context = context.unwrap_or(&assumed);
    let view = View { bytes, context };
    for row in STRUCTURES {
        let nodes = layout(row.kind, context, bytes);
        let mut out = String::new();
        if row.kind == own {
            print(&mut out, view, &nodes, Style { verbose: true });
            object(json::nodes(view, &nodes));
            for path in ["core.size", "u3.bmx[0-3].startblock", "recs[1-2].startoff", "bu[0].name", "unlinked[5]"] {
                let _ = select::select(&nodes, path, context, bytes);
            }
        }
        xfs_db::print_all(&mut out, row.kind, view, nodes, Style { verbose: false });
        printable(&out);
        // What is shown is bounded by what is there.
        assert!(out.len() <= 65536 + bytes.len() * 2048, "{} bytes of text from {}", out.len(), bytes.len());
    }
    printable(&hexdump::hexdump(bytes, 0));
}

/// `info`, `convert`.
fn geometry(volume: &Volume) {
    let (sb, zoned) = (volume.superblock(), volume.zoned());
    printable(&info::report(sb, zoned, info::DeviceNames::default(), true));
    object(json::geometry(sb, zoned, volume.geometry()));
    let _ = volume.shortfall();
    for (kind, value) in [(convert::Kind::FsBlock, sb.logstart.0), (convert::Kind::Ino, sb.rootino.0)] {
        let _ = convert::convert(volume.geometry(), &[(kind, value)], false);
    }
    let _ = convert::convert(volume.geometry(), &[(convert::Kind::Rtx, 3)], true);
}

/// `ls -lR`, `xattr -R --all`, `map`, `cat`.
fn names(volume: &Volume) {
    let walk = Walk::new(volume);
    let mut shared = Shared::new(&walk);
    // Inodes of which more than the name was shown: the images have files with a hundred names.
    let mut seen = Visited::default();
    let options = Options { inodes: true, sorted: true, shallow: false };
    let start = (volume.superblock().rootino, &b""[..]);
    let _ = tree::for_each(&walk, start, options, &mut |error| problem(&error), &mut |event| {
        let Event::Name(item) = event else { return ControlFlow::Continue(()) };
        name(&walk, &item);
        if let Some(inode) = item.inode.filter(|_| seen.first_time(item.ino.0)) {
            xattr(&walk, inode, item.path);
            for fork in [Fork::Data, Fork::Attr] {
                map(&walk, &mut shared, inode, fork);
            }
            if let Ok(mut content) = file::content(&walk, inode) {
                for _ in 0..2 {
                    let _ = content.next_piece();
                }
            }
        }
        ControlFlow::Continue(())
    });
}

fn name(walk: &Walk<'_>, item: &Item<'_>) {
    let link = item.inode.filter(|inode| inode.kind() == Kind::Symlink);
    let target = link.and_then(|inode| symlink::target(walk, inode).map_err(|error| problem(&error)).ok());
    let entry = entry::Entry {
        path: Some(item.path),
        ino: item.ino,
        kind: item.entry_kind,
        inode: item.inode.map(|inode| inode.view()),
        target: target.as_deref(),
        block_size: walk.geometry().block_size(),
    };
    printable(&entry::line(&entry, item.name, true));
    line(&entry::json(&entry));
}

fn xattr(walk: &Walk<'_>, inode: Inode<'_>, path: &[u8]) {
    let _ = attributes::for_each(walk, inode, &mut |error| problem(&error), |attribute| {
        let _ = (attribute.namespace(), attribute.parent(), attribute.is_incomplete());
        match attribute.value() {
            Ok(value) => {
                let _ = acl::to_xattr(&value);
                let value = &value[..value.len().min(64)];
                let shown = Line::new("xattr").bytes("path", Some(path)).bytes("name", Some(attribute.name));
                line(&shown.hex("value_hex", value).finish());
                printable(&text::escaped(value));
            }
            Err(error) => problem(&error),
        }
        ControlFlow::Continue(())
    });
}

fn map(walk: &Walk<'_>, shared: &mut Shared<'_>, inode: Inode<'_>, fork: Fork) {
    let size = walk.geometry().block_size();
    let realtime = extents::on_realtime(inode, fork);
    let mut pieces = Vec::new();
    for extent in extents::extents(walk, inode, fork).take(300) {
        let extent = match extent {
            Ok(extent) => extent,
            Err(error) => {
                problem(&error);
                continue;
            }
        };
        let (mut start, mut offset) = (extent.startblock, extent.startoff.0);
        if extents::locate(walk.geometry(), realtime, start, extent.blockcount).is_none() {
            problem(&extents::nowhere(walk, inode, fork, &extent));
            continue;
        }
        for (blocks, is_shared) in shared.pieces(realtime, start, extent.blockcount, &mut |error| problem(&error)) {
            let place = extents::locate(walk.geometry(), realtime, start, blocks);
            let piece = bmap::Piece {
                offset: offset.saturating_mul(size),
                length: u64::from(blocks).saturating_mul(size),
                place: place.map(|place| (place.device, place.byte.0)),
                group: walk.geometry().split(start).map(|(ag, within)| (ag.0, u64::from(within.0) * size)),
                unwritten: extent.unwritten,
                shared: is_shared,
            };
            if let Some(text) = bmap::json(inode.ino, fork, &piece) {
                line(&text);
            }
            pieces.push(piece);
            start = FsBlock(start.0.saturating_add(u64::from(blocks)));
            offset = offset.saturating_add(u64::from(blocks));
        }
    }
    printable(&bmap::table(&pieces, &bmap::Layout { realtime, groups: true, stripe: (0, 0) }));
}

/// `frag --worst`, `stat` and `paths` of some inodes.
fn forks(volume: &Volume) {
    let walk = Walk::new(volume);
    let mut all = frag::Fragmentation::default();
    for ag in group::numbers(&walk).take(8) {
        all.merge(frag::of_ag(&walk, ag, frag::What::ALL, 4, &mut |error| problem(&error)), 4);
    }
    let inos: Vec<Ino> = all.worst().iter().map(|(ino, _)| *ino).collect();
    let found = paths::of_many(&walk, &inos, &mut |error| problem(&error));
    for path in found.values().flatten() {
        printable(&entry::shown_path(&path.path));
    }
}

/// `free`, of both sections.
fn free_space(volume: &Volume) {
    let walk = Walk::new(volume);
    let largest = u64::from(volume.geometry().ag_blocks);
    for kind in [Buckets::Powers(2), Buckets::Equal(1 << 10)] {
        let mut histogram = Histogram::new(&kind, largest);
        for ag in group::numbers(&walk).take(8) {
            free::on_list(&walk, ag, &mut |error| problem(&error), |_| histogram.add(1));
            for order in [Order::Block, Order::Size] {
                free::extents(&walk, ag, order, &mut |error| problem(&error), |extent| {
                    histogram.add(u64::from(extent.blockcount.0));
                });
            }
        }
        printable(&histogram.text());
        printable(&histogram.summary());
    }
    let mut histogram = Histogram::new(&Buckets::Powers(2), 1 << 40);
    free::realtime(&walk, &mut |error| problem(&error), &mut |run| histogram.add(run.length));
    printable(&histogram.text());
}

/// `fsmap` with and without reverse mappings, `find --byte`.
fn owners(volume: &Volume, rmap: bool) {
    let size = volume.geometry().block_size();
    let mut table = ranges::Table::new((16 * size, 64 * size));
    let mut count = 0;
    let query = Query { rmap, ..Query::default() };
    let _ = fsmap::for_each(volume, &query, &mut |error| problem(&error), &mut |range| {
        let part = match range.owner {
            Owner::File(mapped) => Some(ranges::Part {
                ino: mapped.ino,
                fork: mapped.fork,
                bmbt: mapped.bmbt,
                offset: mapped.offset.saturating_mul(size),
                unwritten: mapped.unwritten,
            }),
            _ => None,
        };
        let row = ranges::Row {
            device: range.device,
            start: range.start.0,
            length: range.length,
            group: range.group,
            owner: range.owner.name(),
            part,
            shared: range.shared,
        };
        assert!(range.length > 0, "{range:?}");
        line(&ranges::json(&row));
        if let Some(text) = table.add(&row) {
            printable(&text);
        }
        count += 1;
        // A superblock may promise a billion of AGs.
        if count < 20_000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    printable(&table.finish());
    let walk = Walk::new(volume);
    let bytes = [0, 4096, 70_000, 1 << 20, 33 << 20].map(ByteOffset);
    let bytes: Vec<_> = bytes.iter().flat_map(|&byte| [(Device::Data, byte), (Device::Rt, byte)]).collect();
    let answers = owner::of(&walk, &bytes, owner::Options { rmap }, &mut |error| problem(&error));
    assert!(answers.iter().all(|answer| !answer.owners.is_empty()));
}

/// Writes what `rt` does.
struct Printer<'p, 'a> {
    section: &'p Section<'a>,
    scale: Scale<'a>,
    strip: Strip,
    /// Lines so far: the first ones stand for the rest.
    lines: u32,
}

impl Printer<'_, '_> {
    fn more(&mut self) -> bool {
        self.lines += 1;
        self.lines < 5000
    }
}

impl Observer for Printer<'_, '_> {
    fn run(&mut self, group: &rt::Group, run: Run) {
        let (start, extents, state) = match run {
            Run::Free { start, extents } => (start, extents, "free"),
            Run::Unknown { start, extents } => (start, extents, "unknown"),
        };
        self.strip.add(group.before.saturating_add(start), extents, state == "free");
        if self.more() {
            printable(&rt_report::run_text(&self.scale, group, state, start, extents));
            line(&rt_report::run_line(&self.scale, group, state, start, extents));
        }
    }

    fn summary(&mut self, group: &rt::Group, told: &Told) {
        if let Told::Differs(cell) | Told::Same(cell) = told
            && self.more()
        {
            line(&rt_report::cell_line(group, cell));
        }
    }

    fn group(&mut self, found: &rt_group::Report) {
        let superblock = self.section.has_superblock();
        printable(&rt_report::group_text(&self.scale, found, superblock));
        object(rt_report::group_json(&self.scale, found, superblock));
        printable(&rt_report::levels_text(found, self.section.sizes.levels));
    }

    fn piece(&mut self, group: &rt::Group, piece: &space::Piece) {
        if self.more() {
            printable(&rt_report::piece_text(&self.scale, group, piece, None));
            line(&rt_report::piece_line(&self.scale, group, piece, Some(true)));
        }
    }
}

/// `rt`.
fn realtime(volume: &Volume) {
    let walk = Walk::new(volume);
    let Some(section) = Section::new(&walk) else { return };
    let scale = Scale { geometry: volume.geometry(), rt: section.rt };
    let strip = Strip::new(section.rt.extents);
    let mut printer = Printer { section: &section, scale, strip, lines: 0 };
    let mut keep = |_| {};
    let mut sink = Sink::new(&mut keep);
    if let Some(found) = rt::check(&walk, Depth::Everything, &mut printer, &mut sink) {
        let (sb, zoned) = (volume.superblock(), volume.zoned());
        printable(&rt_report::report_text(("target", false), &scale, sb, zoned, &found));
        object(rt_report::report_json(&scale, sb, zoned, &found));
    }
    printable(&printer.strip.text(&scale));
}

/// `log`.
fn journal(volume: &Volume) {
    let state = log::state(volume);
    let _ = (log::probe(volume), log::verify(volume, &state));
    if let Some(area) = state.area {
        let ends = state.ends().map_or((Default::default(), Default::default()), |ends| (ends.tail, ends.head));
        let records = log::Records::new(volume, area, ends.0, ends.1);
        for record in records.take(2000).flatten() {
            for fault in &record.faults {
                printable(&format!("{} {} {}", fault.field, fault.found, fault.expected));
            }
        }
    }
}

/// `quota --recount`.
fn quotas(volume: &Volume) {
    let walk = Walk::new(volume);
    for state in quota::states(volume.superblock()) {
        if let Some(file) = quota::file(&walk, &state, &mut |error| problem(&error)) {
            quota::records(&walk, &file, &mut |error| problem(&error), |_| {});
        }
    }
    let mut all = quota::Recount::default();
    for ag in group::numbers(&walk).take(8) {
        all.merge(quota::recount(&walk, ag, &mut |error| problem(&error)));
    }
    for kind in quota::Kind::ALL {
        for id in all.owners(kind) {
            let _ = all.of(kind, id);
        }
    }
}

/// `preflight`, with `--stream` and `--enable-rt`.
fn hazards(volume: &Volume) {
    let asked = Asked { logical_sector: Some(512), log: LogState::Unknown, headers: true };
    let mut facts = Facts::new(volume, asked);
    facts.deep = Some(Deep::read(volume));
    let kernels: Vec<Kernel> = KERNELS.iter().step_by(5).map(|version| Kernel::upstream(*version)).collect();
    let evaluation = Evaluation::new(&facts);
    printable(&preflight::text("target", &evaluation, &kernels, false));
    printable(&preflight::text("target", &evaluation, &kernels[..1], true));
    for line in preflight_json::lines("target", &evaluation, &kernels, serde_json::Value::Null) {
        object(line);
    }
    let workload = Workload { frame: 25_165_824, millifps: 180_000, streams: 3, deadline_ms: None };
    let advice = advise(&facts, workload);
    printable(&stream::advice_text("target", &advice));
    object(stream::advice_json("target", &advice));
    for (bytes, extent) in [(1 << 40, None), (48 << 20, Some(28 << 10))] {
        let enabled = enable(&facts, bytes, extent);
        printable(&stream::enable_text("target", &enabled));
        object(stream::enable_json("target", &enabled));
    }
}
