//! `free`: free space of the data or realtime section.

use super::damage::Damage;
use super::session::Session;
use super::target::{self, Target};
use crate::error::{Error, Result};
use crate::report::histogram::{Buckets, Histogram};
use crate::report::json::SCHEMA;
use crate::units::{AgBlock, AgNumber, Device, RtBlock};
use crate::walk::free::{self, Order, RtRun};
use crate::walk::{Walk, parallel};
use serde_json::{Map, Value as Json, json};
use std::fmt::Write;
use std::path::PathBuf;

/// Free space of one AG or realtime group.
struct Part {
    number: u32,
    histogram: Histogram,
    on_list: u64,
    lines: String,
    damage: Damage,
}

/// Arguments of `free`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Sizes are in file system blocks. The blocks on the AGs' free lists count as extents of one block, as in xfs_db's freesp;
--usable leaves them out, as xfs_spaceman does. Columns: from, to, extents, blocks, per cent of all free blocks; blkcdf and
extcdf: per cent of blocks and extents in this and all larger rows.

  xfsinspect free disk.img -s
  xfsinspect free disk.img --realtime --per-ag
  xfsinspect free disk.img --from 1,16,256 --ag 0,1")]
pub struct FreeArgs {
    /// Image or block device
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,
    /// Only these AGs (with --realtime: realtime groups)
    #[arg(short, long, value_name = "N", value_delimiter = ',')]
    pub ag: Vec<u32>,
    /// The realtime section instead of the data section
    #[arg(short, long)]
    pub realtime: bool,
    /// Only what files can be given: without the AGs' free lists
    #[arg(short, long)]
    pub usable: bool,
    /// Total and average, too
    #[arg(short, long)]
    pub summary: bool,
    /// A line for each AG (realtime group): extents, blocks, the longest
    #[arg(short, long)]
    pub per_ag: bool,
    /// Each free extent instead of the histogram
    #[arg(short, long)]
    pub dump: bool,
    /// Read the btrees by size instead of those by block
    #[arg(short = 'c', long)]
    pub by_size: bool,
    /// Only extents that begin at a multiple of N blocks
    #[arg(short = 'A', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub align: Option<u64>,
    /// Buckets grow by powers of two (the default)
    #[arg(short, long)]
    pub binary: bool,
    /// Buckets grow by powers of N
    #[arg(short, long, value_name = "N", conflicts_with_all = ["equal", "from", "binary"], value_parser = clap::value_parser!(u64).range(2..))]
    pub multiple: Option<u64>,
    /// Buckets of N sizes each
    #[arg(short, long, value_name = "N", conflicts_with_all = ["from", "binary"], value_parser = clap::value_parser!(u64).range(1..))]
    pub equal: Option<u64>,
    /// Buckets that begin at these sizes
    #[arg(short, long, value_name = "N", value_delimiter = ',', conflicts_with = "binary")]
    pub from: Vec<u64>,
}

/// Answers.
pub fn run(session: &mut Session, args: &FreeArgs) -> Result<()> {
    let target = target::open(session, &args.target)?;
    let result = answer(session, &target, args);
    target.close(session);
    result
}

fn buckets(args: &FreeArgs) -> Buckets {
    match (args.multiple, args.equal) {
        (Some(n), _) => Buckets::Powers(n),
        (None, Some(n)) => Buckets::Equal(n),
        (None, None) if !args.from.is_empty() => Buckets::From(args.from.clone()),
        (None, None) => Buckets::Powers(2),
    }
}

fn answer(session: &mut Session, target: &Target, args: &FreeArgs) -> Result<()> {
    let walk = Walk::new(&target.volume);
    let geometry = target.volume.geometry();
    let groups = if args.realtime {
        let Some(rt) = &geometry.realtime else {
            return Err(Error::request(format!("{}: there is no realtime section", target.name)));
        };
        if geometry.context.features.has_zoned() {
            let text = format!("{}: a zoned realtime section keeps no bitmap of what is free", target.name);
            return Err(Error::request(text));
        }
        rt.groups.as_ref().map_or(1, |groups| groups.count)
    } else {
        geometry.ag_count
    };
    if let Some(bad) = args.ag.iter().find(|&&ag| ag >= groups) {
        let what = if args.realtime { "realtime group" } else { "AG" };
        let last = groups.saturating_sub(1);
        return Err(Error::request(format!("--ag {bad}: no such {what}, there are {groups} (0 to {last})")));
    }
    let parts = if args.realtime { realtime(&walk, args, session.common.json) } else { data(session, &walk, args) };
    let largest = if args.realtime { rt_largest(&walk) } else { u64::from(geometry.ag_blocks) };
    let mut all = Histogram::new(&buckets(args), largest);
    let mut damage = Damage::default();
    let mut shown = Vec::new();
    if args.dump && !session.common.json {
        session.print(&match args.realtime {
            true => format!("{:>8} {:>12} {:>12}\n", "rtgroup", "rtblock", "len"),
            false => format!("{:>8} {:>8} {:>8}\n", "agno", "agbno", "len"),
        });
    }
    for part in parts {
        all.merge(&part.histogram);
        damage.merge(part.damage);
        shown.push((part.number, part.histogram, part.on_list));
        if args.dump {
            session.print(&part.lines);
        }
    }
    damage.tell(session);
    if args.dump {
        return Ok(());
    }
    if session.common.json {
        let object = object(session, target, args, &all, &shown);
        session.print_json(object);
        return Ok(());
    }
    let mut text = all.text();
    if args.summary {
        text.push_str(&all.summary());
    }
    if args.per_ag {
        text.push_str(&per_ag(args, &shown));
    }
    session.print(&text);
    Ok(())
}

/// Most blocks that a free extent of the realtime section can have: a whole group, or all of it.
fn rt_largest(walk: &Walk<'_>) -> u64 {
    let Some(rt) = &walk.geometry().realtime else { return 0 };
    match &rt.groups {
        Some(groups) => u64::from(groups.extents).saturating_mul(u64::from(rt.extent_blocks)),
        None => rt.blocks,
    }
}

fn data(session: &Session, walk: &Walk<'_>, args: &FreeArgs) -> Vec<Part> {
    let threads = session.common.threads.unwrap_or_else(parallel::default_threads);
    let largest = u64::from(walk.geometry().ag_blocks);
    let order = if args.by_size { Order::Size } else { Order::Block };
    let json = session.common.json;
    let parts = parallel::per_ag(walk, threads, |ag| {
        if !args.ag.is_empty() && !args.ag.contains(&ag.0) {
            return None;
        }
        let mut histogram = Histogram::new(&buckets(args), largest);
        let (mut on_list, mut lines, mut damage) = (0u64, String::new(), Damage::default());
        let mut add = |block: AgBlock, length: u64, listed: bool| {
            let start = walk.geometry().join(ag, block);
            let aligned = args.align.is_none_or(|n| start.is_some_and(|start| start.0 % n == 0));
            if !aligned {
                return;
            }
            histogram.add(length);
            if args.dump {
                lines.push_str(&line(walk, (ag, block, length, listed), json));
            }
        };
        if !args.usable {
            free::on_list(walk, ag, &mut |error| damage.add(error), |block| {
                on_list = on_list.saturating_add(1);
                add(block, 1, true);
            });
        }
        free::extents(walk, ag, order, &mut |error| damage.add(error), |extent| {
            add(extent.startblock, u64::from(extent.blockcount.0), false);
        });
        Some(Part { number: ag.0, histogram, on_list, lines, damage })
    });
    parts.into_iter().flatten().collect()
}

/// A free extent of the data section as a line.
fn line(walk: &Walk<'_>, (ag, block, length, listed): (AgNumber, AgBlock, u64, bool), as_json: bool) -> String {
    if !as_json {
        return format!("{ag:>8} {block:>8} {length:>8}\n");
    }
    let geometry = walk.geometry();
    let object = json!({
        "type": "free_extent", "device": Device::Data.name(),
        "start_bytes": geometry.ag_block_byte(ag, block).map(|byte| byte.0),
        "length_bytes": length.checked_mul(geometry.block_size()),
        "ag": ag.0, "agblock": block.0, "fsblock": geometry.join(ag, block).map(|block| block.0),
        "length_blocks": length, "on_free_list": listed,
    });
    format!("{object}\n")
}

/// A free run of the realtime section as a line.
fn rt_line(walk: &Walk<'_>, run: RtRun, (block, length): (u64, u64), as_json: bool) -> String {
    if !as_json {
        return format!("{:>8} {block:>12} {length:>12}\n", run.group);
    }
    let place = walk.geometry().rt_block_byte(RtBlock(block));
    let object = json!({
        "type": "free_extent", "device": place.map(|(device, _)| device.name()),
        "start_bytes": place.map(|(_, byte)| byte.0),
        "length_bytes": length.checked_mul(walk.geometry().block_size()),
        "rtgroup": run.group.0, "rtx": run.start, "rtblock": block, "length_blocks": length,
    });
    format!("{object}\n")
}

fn realtime(walk: &Walk<'_>, args: &FreeArgs, json: bool) -> Vec<Part> {
    let Some(rt) = &walk.geometry().realtime else { return Vec::new() };
    let largest = rt_largest(walk);
    let mut damage = Damage::default();
    let mut parts: Vec<Part> = Vec::new();
    free::realtime(walk, &mut |error| damage.add(error), &mut |run: RtRun| {
        if !args.ag.is_empty() && !args.ag.contains(&run.group.0) {
            return;
        }
        let per_extent = u64::from(rt.extent_blocks);
        let (start, length) = (run.start.saturating_mul(per_extent), run.length.saturating_mul(per_extent));
        let shift = rt.groups.as_ref().map_or(0, |groups| u32::from(groups.block_log));
        let block = u64::from(run.group.0).checked_shl(shift).unwrap_or(0) | start;
        if args.align.is_some_and(|n| block % n != 0) {
            return;
        }
        if parts.last().is_none_or(|part| part.number != run.group.0) {
            parts.push(Part {
                number: run.group.0,
                histogram: Histogram::new(&buckets(args), largest),
                on_list: 0,
                lines: String::new(),
                damage: Damage::default(),
            });
        }
        let Some(part) = parts.last_mut() else { return };
        part.histogram.add(length);
        if args.dump {
            part.lines.push_str(&rt_line(walk, run, (block, length), json));
        }
    });
    match parts.first_mut() {
        Some(part) => part.damage = damage,
        None => parts.push(Part {
            number: 0,
            histogram: Histogram::new(&buckets(args), largest),
            on_list: 0,
            lines: String::new(),
            damage,
        }),
    }
    parts
}

fn per_ag(args: &FreeArgs, parts: &[(u32, Histogram, u64)]) -> String {
    let what = if args.realtime { "rtgroup" } else { "ag" };
    let mut out = format!("{what:>7} {:>9} {:>10} {:>10} {:>9}\n", "extents", "blocks", "longest", "on-list");
    for (number, histogram, on_list) in parts {
        let Histogram { extents, blocks, longest, .. } = histogram;
        let _ = writeln!(out, "{number:>7} {extents:>9} {blocks:>10} {longest:>10} {on_list:>9}");
    }
    out
}

fn object(
    session: &mut Session,
    target: &Target,
    args: &FreeArgs,
    all: &Histogram,
    parts: &[(u32, Histogram, u64)],
) -> Map<String, Json> {
    let geometry = target.volume.geometry();
    let size = geometry.block_size();
    let bytes = |blocks: u64| blocks.checked_mul(size);
    let device = match (&geometry.realtime, args.realtime) {
        (Some(rt), true) => rt.device,
        _ => Device::Data,
    };
    let number = if args.realtime { "rtgroup" } else { "ag" };
    let list: Vec<Json> = parts
        .iter()
        .map(|(n, h, on_list)| {
            let (free, longest) = (bytes(h.blocks), bytes(h.longest));
            json!({
                number: n, "extents": h.extents, "blocks": h.blocks, "bytes": free,
                "longest_blocks": h.longest, "longest_bytes": longest,
                "on_free_list": if args.realtime { Json::Null } else { (*on_list).into() },
            })
        })
        .collect();
    let rows: Vec<Json> = all
        .filled()
        .map(|b| json!({ "from_blocks": b.low, "to_blocks": b.high, "extents": b.extents, "blocks": b.blocks }))
        .collect();
    let mut object = Map::new();
    object.insert("type".into(), "free".into());
    object.insert("schema".into(), SCHEMA.into());
    object.insert("target".into(), target.name.clone().into());
    object.insert("section".into(), if args.realtime { "realtime" } else { "data" }.into());
    object.insert("device".into(), device.name().into());
    object.insert("block_size_bytes".into(), size.into());
    object.insert("extents".into(), all.extents.into());
    object.insert("blocks".into(), all.blocks.into());
    object.insert("bytes".into(), bytes(all.blocks).into());
    object.insert("longest_blocks".into(), all.longest.into());
    object.insert("longest_bytes".into(), bytes(all.longest).into());
    object.insert("histogram".into(), rows.into());
    object.insert(if args.realtime { "rtgroups" } else { "ags" }.into(), list.into());
    object.insert("warnings".into(), session.take_warnings());
    object
}
