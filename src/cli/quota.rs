//! `quota`: limits and usage on disk, beside usage counted anew.

use super::damage::Damage;
use super::session::{Outcome, Session};
use super::target::{self, Target};
use crate::error::{Error, Result};
use crate::format::Structure;
use crate::format::dquot::DiskDquot;
use crate::report::json::SCHEMA;
use crate::walk::quota::{self, Kind, Record, Recount, State, Usage};
use crate::walk::{Walk, parallel};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// Arguments of `quota`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Blocks and inodes of each user, group and project that has limits or uses something: what the quota records on disk say,
and what a count over all inodes gives. Blocks are file system blocks; 0 is no limit.

  xfsinspect quota disk.img
  xfsinspect quota disk.img --kind project --id 42")]
pub struct QuotaArgs {
    /// Image or block device
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,
    /// Only this kind
    #[arg(short, long, value_enum)]
    pub kind: Option<QuotaKind>,
    /// Only these users, groups or projects
    #[arg(short, long, value_name = "N", value_delimiter = ',')]
    pub id: Vec<u32>,
}

/// Kind of quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum QuotaKind {
    /// Users.
    User,
    /// Groups.
    Group,
    /// Projects.
    Project,
}

impl QuotaKind {
    fn kind(self) -> Kind {
        match self {
            Self::User => Kind::User,
            Self::Group => Kind::Group,
            Self::Project => Kind::Project,
        }
    }
}

/// A kind of quota with its records.
struct Kept {
    state: State,
    ino: u64,
    records: BTreeMap<u32, DiskDquot>,
    /// Ids whose records are lost, as first and last.
    lost: Vec<(u64, u64)>,
}

impl Kept {
    /// Is the record of this owner lost, so that its limits are not known?
    fn is_lost(&self, id: u32) -> bool {
        let id = u64::from(id);
        let within = |(first, last): &(u64, u64)| (*first..=*last).contains(&id);
        u32::try_from(id).is_ok_and(|id| !self.records.contains_key(&id)) && self.lost.iter().any(within)
    }
}

/// Answers.
pub fn run(session: &mut Session, args: &QuotaArgs) -> Result<()> {
    let target = target::open(session, &args.target)?;
    let result = answer(session, &target, args);
    target.close(session);
    result
}

fn answer(session: &mut Session, target: &Target, args: &QuotaArgs) -> Result<()> {
    let walk = Walk::new(&target.volume);
    let mut damage = Damage::default();
    let wanted = args.kind.map(QuotaKind::kind);
    let mut kept = Vec::new();
    for state in quota::states(target.volume.superblock()) {
        if wanted.is_some_and(|kind| kind != state.kind) {
            continue;
        }
        let Some(file) = quota::file(&walk, &state, &mut |error| damage.add(error)) else { continue };
        let (mut records, mut lost): (BTreeMap<u32, DiskDquot>, Vec<(u64, u64)>) = Default::default();
        quota::records(&walk, &file, &mut |error| damage.add(error), |record| {
            let record = match record {
                Record::Good(record) => record,
                Record::Lost { first, last } => {
                    match lost.last_mut() {
                        Some((_, end)) if end.checked_add(1) == Some(first) => *end = last,
                        _ => lost.push((first, last)),
                    }
                    return;
                }
            };
            // Records of nobody: every block of the file is full of them.
            let limits = record.blk_hardlimit | record.blk_softlimit | record.ino_hardlimit | record.ino_softlimit;
            let usage = record.bcount | record.icount | record.rtbcount;
            let any = limits | usage | record.rtb_hardlimit | record.rtb_softlimit;
            if any != 0 || record.id == 0 {
                records.entry(record.id).or_insert(record);
            }
        });
        kept.push(Kept { state, ino: file.ino().0, records, lost });
    }
    if kept.is_empty() {
        damage.tell(session);
        let kind = wanted.map_or(String::new(), |kind| format!("{} ", kind.name()));
        return Err(Error::request(format!("{}: there are no {kind}quotas here", target.name)));
    }
    let threads = session.common.threads.unwrap_or_else(parallel::default_threads);
    let parts = parallel::per_ag(&walk, threads, |ag| {
        let mut damage = Damage::default();
        let count = quota::recount(&walk, ag, &mut |error| damage.add(error));
        (count, damage)
    });
    let mut recount = Recount::default();
    // A recount of which a part is missing is compared with nothing.
    let mut whole = true;
    for (count, errors) in parts {
        recount.merge(count);
        whole &= errors.is_empty();
        damage.merge(errors);
    }
    damage.tell(session);
    for kept in &kept {
        tell(session, target, args, kept, (&recount, whole));
    }
    // With a metadata directory the flags stay whatever the mount options are.
    if !session.common.json && !target.volume.context().features.has_metadir() {
        session.note(
            "a mount without the quota options clears the quota flags; the next with them counts everything anew",
        );
    }
    Ok(())
}

fn usage_of(record: &DiskDquot) -> Usage {
    Usage { blocks: record.bcount, inodes: record.icount, rt_blocks: record.rtbcount }
}

/// `5`, `4980 to 5009`, `from 30 on`.
fn ids_of(first: u64, last: u64) -> String {
    match (first == last, last > u64::from(u32::MAX)) {
        (true, _) => first.to_string(),
        (_, true) => format!("from {first} on"),
        _ => format!("{first} to {last}"),
    }
}

/// An owner.
struct Row<'r> {
    id: u32,
    /// Its record; `None` where that is lost.
    record: Option<&'r DiskDquot>,
    count: Usage,
    /// Were all inodes counted?
    whole: bool,
}

impl Row<'_> {
    /// Are usage on disk and recount equal, where both are known?
    fn agrees(&self) -> Option<bool> {
        self.record.filter(|_| self.whole).map(|record| usage_of(record) == self.count)
    }
}

/// One kind of quota: a head, and a row for everybody.
fn tell(session: &mut Session, target: &Target, args: &QuotaArgs, kept: &Kept, (recount, whole): (&Recount, bool)) {
    let State { kind, accounting, enforced, checked, .. } = kept.state;
    let mut ids: Vec<u32> = recount.owners(kind);
    ids.extend(kept.records.keys());
    ids.sort_unstable();
    ids.dedup();
    ids.retain(|id| args.id.is_empty() || args.id.contains(id));
    let Some(nobody) = DiskDquot::decode(&[0; DiskDquot::SIZE]) else { return };
    let rows: Vec<Row<'_>> = ids
        .iter()
        .map(|id| Row {
            id: *id,
            record: if kept.is_lost(*id) { None } else { Some(kept.records.get(id).unwrap_or(&nobody)) },
            count: recount.of(kind, *id),
            whole,
        })
        .collect();
    let defaults = kept.records.get(&0).unwrap_or(&nobody);
    if session.common.json {
        session.print_json(head(target, kept, defaults));
        for each in &rows {
            session.print_json(row(target, kind, each));
        }
    } else {
        let word = |is: bool, word: &'static str| if is { word } else { "" };
        let words = [word(accounting, "accounting"), word(enforced, "enforced"), word(checked, "checked")];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let words = if words.is_empty() { "off".to_owned() } else { words.join(", ") };
        let mut out = format!("{} quota: inode {}, {words}\n", kind.name(), kept.ino);
        table(&mut out, &rows);
        out.push('\n');
        session.print(&out);
    }
    if !kept.lost.is_empty() {
        let list: Vec<String> = kept.lost.iter().take(8).map(|(first, last)| ids_of(*first, *last)).collect();
        let more = if kept.lost.len() > 8 { " …" } else { "" };
        let text = format!(
            "{}: {} quota: the records of ids {}{more} are lost: their limits are not known (shown as ?), not none. xfs_repair \
             writes empty records, after which limits must be set again",
            target.name,
            kind.name(),
            list.join(", ")
        );
        session.warn("quota-records-lost", text, Outcome::Incomplete);
    }
    if !whole {
        session.note(&format!(
            "{} quota: not all inodes could be counted, so usage is compared with nothing",
            kind.name()
        ));
    }
    let wrong: Vec<String> =
        rows.iter().filter(|row| row.agrees() == Some(false)).map(|row| row.id.to_string()).collect();
    if wrong.is_empty() || !accounting {
        return;
    }
    let list = wrong.get(..8).unwrap_or(&wrong).join(", ");
    let more = if wrong.len() > 8 { format!(" and {} more", wrong.len().saturating_sub(8)) } else { String::new() };
    let name = kind.name();
    let clean = target.log.as_ref().and_then(|log| log.is_dirty()) == Some(false);
    let (why, outcome) = match (checked, clean) {
        (false, _) => ("the flag \"checked\" is not set: the next mount with quotas counts them anew", Outcome::Clean),
        (true, false) => ("the log is dirty or not known: recovery may make them right", Outcome::Clean),
        (true, true) => ("the file system says that they were checked", Outcome::Findings),
    };
    let text = format!(
        "{}: {name} quota: usage on disk is not what the inodes add up to for {name} {list}{more}; {why}",
        target.name
    );
    session.warn("quota-usage-mismatch", text, outcome);
}

fn table(out: &mut String, rows: &[Row<'_>]) {
    let mut lines = vec![
        ["id", "blocks", "recount", "soft", "hard", "inodes", "recount", "soft", "hard"].map(str::to_owned).to_vec(),
    ];
    let of_record = |r: &DiskDquot| (r.rtbcount | r.rtb_hardlimit | r.rtb_softlimit) != 0;
    let realtime = rows.iter().any(|row| row.record.is_some_and(of_record) || row.count.rt_blocks != 0);
    if realtime && let Some(first) = lines.first_mut() {
        first.extend(["rtblocks", "recount", "soft", "hard"].map(str::to_owned));
    }
    for Row { id, record, count, .. } in rows {
        let known = |of: fn(&DiskDquot) -> u64| record.map_or("?".to_owned(), |record| of(record).to_string());
        let mut line = vec![
            id.to_string(),
            known(|r| r.bcount),
            count.blocks.to_string(),
            known(|r| r.blk_softlimit),
            known(|r| r.blk_hardlimit),
            known(|r| r.icount),
            count.inodes.to_string(),
            known(|r| r.ino_softlimit),
            known(|r| r.ino_hardlimit),
        ];
        if realtime {
            line.push(known(|r| r.rtbcount));
            line.push(count.rt_blocks.to_string());
            line.extend([known(|r| r.rtb_softlimit), known(|r| r.rtb_hardlimit)]);
        }
        lines.push(line);
    }
    let columns = lines.first().map_or(0, Vec::len);
    let widths: Vec<usize> =
        (0..columns).map(|c| lines.iter().filter_map(|line| line.get(c)).map(String::len).max().unwrap_or(0)).collect();
    for line in &lines {
        for (cell, width) in line.iter().zip(&widths) {
            let _ = write!(out, "{cell:>width$}  ");
        }
        while out.ends_with(' ') {
            out.pop();
        }
        out.push('\n');
    }
}

fn head(target: &Target, kept: &Kept, defaults: &DiskDquot) -> Map<String, Json> {
    let State { kind, accounting, enforced, checked, .. } = kept.state;
    let mut object = Map::new();
    object.insert("type".into(), "quota_file".into());
    object.insert("schema".into(), SCHEMA.into());
    object.insert("target".into(), target.name.clone().into());
    object.insert("kind".into(), kind.name().into());
    object.insert("ino".into(), kept.ino.into());
    object.insert("accounting".into(), accounting.into());
    object.insert("enforced".into(), enforced.into());
    object.insert("checked".into(), checked.into());
    let grace = json!({
        "blocks_sec": defaults.btimer, "inodes_sec": defaults.itimer, "rt_blocks_sec": defaults.rtbtimer,
    });
    object.insert("default_grace".into(), grace);
    object
}

fn row(target: &Target, kind: Kind, row: &Row<'_>) -> Map<String, Json> {
    let size = target.volume.geometry().block_size();
    let (id, record, count) = (row.id, row.record, row.count);
    let part = |recount: u64, of: fn(&DiskDquot) -> (u64, u64, u64, u32)| {
        let Some(record) = record else {
            return json!({ "used": null, "recount": recount, "soft": null, "hard": null, "grace_until_sec": null });
        };
        let (used, soft, hard, timer) = of(record);
        // In record 0 the timers are the default grace times.
        let until = if id == 0 || timer == 0 { Json::Null } else { record.timer(timer).into() };
        json!({ "used": used, "recount": recount, "soft": soft, "hard": hard, "grace_until_sec": until })
    };
    let mut object = Map::new();
    object.insert("type".into(), "quota".into());
    object.insert("kind".into(), kind.name().into());
    object.insert("id".into(), id.into());
    object.insert("used_bytes".into(), record.and_then(|record| record.bcount.checked_mul(size)).into());
    object.insert("blocks".into(), part(count.blocks, |r| (r.bcount, r.blk_softlimit, r.blk_hardlimit, r.btimer)));
    object.insert("inodes".into(), part(count.inodes, |r| (r.icount, r.ino_softlimit, r.ino_hardlimit, r.itimer)));
    let rt = part(count.rt_blocks, |r| (r.rtbcount, r.rtb_softlimit, r.rtb_hardlimit, r.rtbtimer));
    object.insert("rt_blocks".into(), rt);
    object.insert("agrees".into(), row.agrees().into());
    object.insert("lost".into(), record.is_none().into());
    object
}
