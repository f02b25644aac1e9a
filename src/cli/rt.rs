//! `rt`: the realtime section.

use super::journal;
use super::session::{Outcome, Session};
use super::target::{self, Target};
use crate::check::recovery::LogFacts;
use crate::check::rt::space::{Owner, Piece};
use crate::check::rt::{self, Depth, Group, Observer, Owned, Part, Run, Section, Sink, Told, group};
use crate::check::{self, Class, Finding, alone, copies};
use crate::error::Result;
use crate::report::json;
use crate::report::rt::{self as report, Scale, Strip};
use crate::report::text::escaped;
use crate::units::FsBlock;
use crate::volume::{Origin, Volume};
use crate::walk::shared::Shared;
use crate::walk::{Inode, Walk};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Arguments of `rt`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Without WHAT: geometry, use, files, and whatever is wrong. Bitmap and summary without realtime groups lie on the data
device, so the realtime device is needed only for its superblock and its size. Extents count from the start of their
group, or of the section where there are no groups.

  xfsinspect rt /dev/md2 --rtdev /dev/md3
  xfsinspect rt disk.img bitmap --map
  xfsinspect rt disk.img free --json")]
pub struct RtArgs {
    /// Image or block device
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,
    /// What to show of it
    #[arg(value_enum, value_name = "WHAT")]
    pub what: Option<What>,
    /// Draw the section as a strip of cells
    #[arg(long)]
    pub map: bool,
}

/// What to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum What {
    /// Free and used runs
    Bitmap,
    /// The summary on disk against the bitmap
    Summary,
    /// Groups (or zones) with their metadata files
    Groups,
    /// Free runs
    Free,
    /// Who owns every extent
    Map,
}

/// Prints as the section is gone through.
struct Printer<'p, 's, 'a> {
    session: &'p RefCell<&'s mut Session>,
    section: &'p Section<'a>,
    scale: Scale<'a>,
    what: Option<What>,
    json: bool,
    strip: Option<Strip>,
    shared: Shared<'a>,
    /// Where the last run ended: what lies between runs is used.
    at: u64,
    /// The zone at hand.
    zone: Option<Group>,
}

impl Printer<'_, '_, '_> {
    fn print(&self, text: &str) {
        self.session.borrow_mut().print(text);
    }

    /// What lies behind the last free run of a zone is used.
    fn end_zone(&mut self) {
        if let Some(zone) = self.zone.take() {
            let at = self.at;
            self.stretch(&zone, "used", at, zone.extents.saturating_sub(at));
        }
        self.at = 0;
    }

    fn stretch(&mut self, group: &Group, state: &str, start: u64, extents: u64) {
        if extents == 0 {
            return;
        }
        if let Some(strip) = self.strip.as_mut().filter(|_| state != "free") {
            strip.add(group.before.saturating_add(start), extents, state == "used");
        }
        let wanted = match self.what {
            Some(What::Bitmap) => self.strip.is_none(),
            Some(What::Free) => state == "free",
            _ => false,
        };
        if wanted {
            let write = if self.json { report::run_line } else { report::run_text };
            self.print(&write(&self.scale, group, state, start, extents));
        }
    }

    fn owned(&mut self, group: &Group, piece: &Piece) {
        let write = if self.json { report::piece_line } else { report::piece_text };
        let Owner::File(one) = piece.owner else {
            self.print(&write(&self.scale, group, piece, Some(false)));
            return;
        };
        let mut start = piece.start;
        let mut left = piece.blocks;
        while left > 0 {
            let blocks = u32::try_from(left).unwrap_or(u32::MAX);
            for (blocks, shared) in self.shared.pieces(true, FsBlock(start), blocks, &mut |_| {}) {
                let offset = one.offset.saturating_add(start.saturating_sub(one.start));
                let part = Owned { start, blocks: u64::from(blocks), offset, ..one };
                let part = Piece { start, blocks: u64::from(blocks), owner: Owner::File(part) };
                self.print(&write(&self.scale, group, &part, shared));
                start = start.saturating_add(u64::from(blocks));
            }
            left = left.saturating_sub(u64::from(blocks));
        }
    }
}

impl Observer for Printer<'_, '_, '_> {
    fn run(&mut self, group: &Group, run: Run) {
        let (start, extents, state) = match run {
            Run::Free { start, extents } => (start, extents, "free"),
            Run::Unknown { start, extents } => (start, extents, "unknown"),
        };
        let at = self.at;
        self.stretch(group, "used", at, start.saturating_sub(at));
        self.stretch(group, state, start, extents);
        self.at = start.saturating_add(extents);
    }

    fn summary(&mut self, group: &Group, told: &Told) {
        if self.what == Some(What::Summary)
            && self.json
            && let Told::Differs(cell) | Told::Same(cell) = told
        {
            self.print(&report::cell_line(group, cell));
        }
    }

    fn group(&mut self, found: &group::Report) {
        if found.bitmap.is_some() {
            let at = self.at;
            self.stretch(&found.group, "used", at, found.group.extents.saturating_sub(at));
        }
        self.at = 0;
        let superblock = self.section.has_superblock();
        match self.what {
            Some(What::Groups) if self.json => {
                let object = report::group_json(&self.scale, found, superblock);
                self.session.borrow_mut().print_json(object);
            }
            Some(What::Groups) => self.print(&report::group_text(&self.scale, found, superblock)),
            Some(What::Summary) if !self.json && found.summary.is_some() => {
                self.print(&report::levels_text(found, self.section.sizes.levels));
            }
            _ => {}
        }
    }

    fn piece(&mut self, group: &Group, piece: &Piece) {
        match self.what {
            Some(What::Map) => self.owned(group, piece),
            // Zones have no bitmap: what no mapping covers is free.
            Some(What::Free | What::Bitmap) if !self.section.has_bitmap() => {
                if self.zone.is_none_or(|zone| zone.number != group.number) {
                    self.end_zone();
                    self.zone = Some(*group);
                }
                if piece.owner == Owner::Free {
                    let unit = group.extent_blocks.max(1);
                    let extent = |block: u64| block.saturating_sub(group.first_block()).checked_div(unit).unwrap_or(0);
                    let (start, at) = (extent(piece.start), self.at);
                    let extents = extent(piece.start.saturating_add(piece.blocks)).saturating_sub(start);
                    self.stretch(group, "used", at, start.saturating_sub(at));
                    self.stretch(group, "free", start, extents);
                    self.at = start.saturating_add(extents);
                }
            }
            _ => {}
        }
    }
}

/// Findings of one rule that text shows without `-v`.
const SHOWN: u64 = 10;

/// Answers.
pub fn run(session: &mut Session, args: &RtArgs) -> Result<()> {
    session.judge_section();
    let target = target::open(session, &args.target)?;
    journal::verdict(session, &target);
    let dirty = target.log.as_ref().and_then(crate::walk::log::Log::is_dirty) == Some(true);
    let log = if dirty { check::journal::facts(&target.volume).1 } else { LogFacts::default() };
    // A superblock that waits in the log may be behind its copies.
    let better = if log.superblock_waits() { None } else { better(session, &target) };
    let volume = better.as_ref().unwrap_or(&target.volume);
    let explains = |finding: &Finding| log.explains(volume, finding);
    let walk = Walk::new(volume);
    let Some(section) = Section::new(&walk) else {
        without_section(session, &target, &walk, args, &explains);
        target.close(session);
        return Ok(());
    };
    if what_is_missing(session, &target, &section, args) {
        target.close(session);
        return Ok(());
    }
    if volume.devices().get(section.rt.device).is_none() {
        let needed = if section.has_superblock() { "its superblock and size" } else { "the bytes on it" };
        let text = format!(
            "{}: the realtime device was not given (--rtdev): {needed} were not looked at; all else lies on the data device",
            target.name
        );
        session.note(&text);
    }
    let scale = Scale { geometry: volume.geometry(), rt: section.rt };
    let (json, what) = (session.common.json, args.what);
    let zoned_runs = matches!(what, Some(What::Bitmap | What::Free)) && !section.has_bitmap();
    let depth = match what {
        None | Some(What::Map) => Depth::Everything,
        Some(_) if zoned_runs => Depth::Everything,
        Some(_) => Depth::Bitmaps,
    };
    let strip = args.map.then(|| Strip::new(section.rt.extents));
    head(session, &section, what, strip.is_some());
    let shared = RefCell::new(session);
    let mut printer = Printer {
        session: &shared,
        section: &section,
        scale,
        what,
        json,
        strip,
        shared: Shared::new(&walk),
        at: 0,
        zone: None,
    };
    let mut findings: Vec<Finding> = Vec::new();
    let mut keep = |finding: Finding| findings.push(finding);
    let (found, explained, more) = alone::with(&walk, |alone| {
        let alone = RefCell::new(alone);
        let verify = |inode: Inode<'_>, part: Part| match part {
            Part::Fields => alone.borrow().fields(inode),
            Part::Whole => alone.borrow_mut().whole(inode),
        };
        let mut sink = Sink::new(&mut keep).with_log(&explains).verifying(&verify);
        let found = rt::check(&walk, depth, &mut printer, &mut sink);
        (found, sink.explained, sink.suppressed().collect::<Vec<_>>())
    });
    printer.end_zone();
    let strip = printer.strip.take();
    let session = shared.into_inner();
    if let Some(found) = found {
        let (sb, zoned) = (volume.superblock(), volume.zoned());
        if what.is_none() && !json {
            session.print(&report::report_text((&target.name, dirty), &scale, sb, zoned, &found));
        }
        if let Some(strip) = strip.filter(|_| !json) {
            session.print(&strip.text(&scale));
        }
        if what.is_none() && json {
            let mut object = report::report_json(&scale, sb, zoned, &found);
            object.insert("log_dirty".into(), target.log.as_ref().and_then(crate::walk::log::Log::is_dirty).into());
            object.insert("explained_by_recovery".into(), explained.into());
            object.insert("findings".into(), findings.len().into());
            object.insert("warnings".into(), session.take_warnings());
            session.print_json(object);
        }
    }
    tell(session, &findings, &more, explained, what.is_none());
    target.close(session);
    Ok(())
}

/// The file system through the copy that most agree with, where the primary superblock contradicts itself or them: by wrong
/// figures everything would look wrong. What is wrong with the primary was said when it was opened.
fn better(session: &mut Session, target: &Target) -> Option<Volume> {
    let better = copies::better_volume(&target.volume)?;
    let Origin::Chosen { ag, byte } = better.origin() else { return None };
    let text = format!(
        "{}: the primary superblock differs from its copies: the section is measured by the copy in AG {ag} at byte {byte}, and \
         by nothing else (check compares them)",
        target.name
    );
    session.warn("sb-primary-differs", text, Outcome::Findings);
    Some(better)
}

/// Zones have no summary: that is an error, not an empty answer.
fn what_is_missing(session: &mut Session, target: &Target, section: &Section<'_>, args: &RtArgs) -> bool {
    let missing = args.what == Some(What::Summary) && !section.has_bitmap();
    if missing {
        let text = format!("{}: there is no realtime summary to show: zones have none", target.name);
        session.error(&crate::error::Error::request(text));
    }
    missing
}

/// The head of a table.
fn head(session: &mut Session, section: &Section<'_>, what: Option<What>, strip: bool) {
    let groups = section.rt.groups.is_some();
    if session.common.json || strip {
        return;
    }
    match what {
        Some(What::Bitmap | What::Free) => session.print(&report::run_head(groups)),
        Some(What::Map) => session.print(&report::piece_head(groups)),
        _ => {}
    }
}

/// Findings: on stdout with the report and in JSON, on stderr with anything else.
fn tell(session: &mut Session, findings: &[Finding], more: &[(&str, u64)], explained: u64, with_report: bool) {
    let mut shown: BTreeMap<&str, u64> = BTreeMap::new();
    let most = if session.common.json || session.common.verbose { u64::MAX } else { SHOWN };
    for finding in findings {
        match finding.rule.class {
            Class::Corrupt | Class::XCorrupt => session.outcome(Outcome::Findings),
            Class::XFailed | Class::Incomplete => session.outcome(Outcome::Incomplete),
            Class::Preen | Class::Warning => {}
        }
        let count = shown.entry(finding.rule.id).or_insert(0);
        *count = count.saturating_add(1);
        if *count > most {
            continue;
        }
        let line = format!("{}[{}]: {}", finding.rule.class, finding.rule.id, sentence(finding));
        if session.common.json {
            session.print_json(json::finding(finding));
        } else if with_report {
            session.print(&format!(
                "{}{line}\n",
                if std::ptr::eq(finding, findings.first().unwrap_or(finding)) { "\n" } else { "" }
            ));
        } else {
            session.tell(&line);
        }
    }
    let mut hidden: BTreeMap<&str, u64> = shown.into_iter().filter(|(_, n)| *n > most).collect();
    hidden.values_mut().for_each(|n| *n = n.saturating_sub(most));
    for (id, count) in more {
        let count_of = hidden.entry(*id).or_insert(0);
        *count_of = count_of.saturating_add(*count);
    }
    for (id, count) in hidden {
        session.note(&format!("{count} more findings of {id} are not shown"));
    }
    if with_report && !session.common.json && !findings.is_empty() {
        session.note("xfsinspect explain ID says what a finding means and what to do");
    }
    if explained > 0 {
        session.note(&format!("{explained} disagreements that recovery of the log may explain are no findings"));
    }
}

fn sentence(finding: &Finding) -> String {
    let Finding { rule, place, found, expected, .. } = finding;
    let field = place.field.unwrap_or(rule.field);
    let text = format!(
        "{}: {field} {found}, expected {expected} ({} at byte {} of the {} device)",
        rule.summary, place.structure, place.byte, place.device
    );
    escaped(text.as_bytes())
}

/// There is no realtime section: that is the answer, unless inodes speak of one.
fn without_section(
    session: &mut Session,
    target: &Target,
    walk: &Walk<'_>,
    args: &RtArgs,
    explains: &dyn Fn(&Finding) -> bool,
) {
    let mut findings: Vec<Finding> = Vec::new();
    let mut keep = |finding: Finding| findings.push(finding);
    let mut sink = Sink::new(&mut keep).with_log(explains);
    rt::check(walk, Depth::Everything, &mut rt::Unobserved, &mut sink);
    let (explained, more): (u64, Vec<(&str, u64)>) = (sink.explained, sink.suppressed().collect());
    let sb = walk.volume().superblock();
    if session.common.json {
        let mut object = serde_json::Map::new();
        object.insert("type".into(), "rt".into());
        object.insert("schema".into(), json::SCHEMA.into());
        object.insert("geometry".into(), serde_json::Value::Null);
        object.insert("extent_size_blocks".into(), sb.rextsize.into());
        object.insert("findings".into(), findings.len().into());
        object.insert("warnings".into(), session.take_warnings());
        session.print_json(object);
    } else {
        let why = if sb.rblocks.0 == 0 { "rblocks is 0" } else { "the superblock describes none that can be used" };
        session.print(&format!("{}: no realtime section ({why})\n", target.name));
    }
    if let Some(what) = args.what {
        let text = format!("{}: there is no realtime {} to show", target.name, format!("{what:?}").to_lowercase());
        session.error(&crate::error::Error::request(text));
    }
    tell(session, &findings, &more, explained, true);
}
