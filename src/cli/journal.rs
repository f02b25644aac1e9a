//! What every command says of the log: dirty, foreign, not to be found out.

use super::session::{Outcome, Session};
use super::target::Target;
use crate::report::text::size;
use crate::units::{LogBlock, Lsn};
use crate::walk::log::{self, Ends, Log, State, Unknown};
use serde_json::{Map, Value as Json, json};

/// Blocks of live records (16 MiB) up to which every command reads them to say what recovery would do.
const READ_LIVE: u32 = 32 * 1024;

/// Flags whatever is to be said of the log. A dirty one does not change the exit status here: the commands whose
/// verdict depends on it call [`verdict`].
pub fn mark(session: &mut Session, target: &Target, log: &Log) {
    let name = &target.name;
    if let Some(uuid) = log.foreign {
        let text = format!(
            "{name}: the log belongs to another file system: its records carry uuid {uuid}, this one is {}. No kernel \
             replays it or mounts read-write with it; do not let a repair write a new one before the right log is found",
            target.volume.superblock().uuid
        );
        session.warn("log-foreign", text, Outcome::Findings);
    }
    match &log.state {
        State::Clean { .. } => {}
        State::Zeroed { traces } => zeroed(session, name, *traces),
        State::Dirty(ends) => dirty(session, target, log, ends),
        State::Unknown(why) => unknown(session, name, why),
    }
    let lsn = Lsn(target.volume.superblock().lsn);
    if target.volume.context().has_crc() && log.allows(lsn) == Some(false) && log.foreign.is_none() {
        let log_at = log.ends().map_or("nowhere (no record)".to_owned(), |ends| at(ends.current));
        let text = format!(
            "{name}: metadata is ahead of the log: the superblock was last written at {}, the log has only come to \
             {log_at}. It was wiped or rolled back; kernels refuse to mount read-write",
            at(lsn)
        );
        session.warn("log-behind-metadata", text, Outcome::Findings);
    }
}

/// Takes a dirty log into account of a verdict: exit status 3; an unknown one: 2.
pub fn verdict(session: &mut Session, target: &Target) {
    match target.log.as_ref().and_then(Log::is_dirty) {
        Some(false) => {}
        Some(true) => session.outcome(Outcome::DirtyLog),
        None => session.outcome(Outcome::Incomplete),
    }
}

/// `cycle 1, block 9301`.
fn at(lsn: Lsn) -> String {
    format!("cycle {}, block {}", lsn.cycle(), lsn.block())
}

fn zeroed(session: &mut Session, name: &str, traces: Option<LogBlock>) {
    match traces {
        None => session.warn(
            "log-zeroed",
            format!("{name}: the log is all zeros: no record was ever written to it, or it was wiped"),
            Outcome::Clean,
        ),
        Some(block) => session.warn(
            "log-start-zeroed",
            format!(
                "{name}: the first block of the log is zero, but block {block} is not: its start was wiped, and whether \
                 it was dirty cannot be told. Kernels take such a log for empty"
            ),
            Outcome::Findings,
        ),
    }
}

fn unknown(session: &mut Session, name: &str, why: &Unknown) {
    let outcome = match why {
        Unknown::NotGiven { .. } => Outcome::Clean,
        Unknown::TooShort { .. } | Unknown::Unreadable(_) => Outcome::Incomplete,
        Unknown::Impossible { .. } | Unknown::NoHeader { .. } => Outcome::Findings,
    };
    session.warn("log-unknown", format!("{name}: the state of the log is not known: {why}"), outcome);
}

fn dirty(session: &mut Session, target: &Target, log: &Log, ends: &Ends) {
    let name = &target.name;
    let Some(area) = log.area else { return };
    let live = area.distance(ends.tail, ends.head);
    let recovery = if live <= READ_LIVE { log::verify(&target.volume, log) } else { Ok(None) };
    let (recovery, unread) = match recovery {
        Ok(recovery) => (recovery, None),
        Err(why) => (None, Some(why)),
    };
    let count = recovery
        .as_ref()
        .filter(|r| r.records > 0)
        .map_or(String::new(), |r| format!(", {} record{}", r.records, if r.records == 1 { "" } else { "s" }));
    let torn = recovery.as_ref().and_then(|r| r.torn.as_ref()).map_or(String::new(), |(block, why)| {
        format!(". The record at block {block} was not written whole ({why}) and will be dropped, as usual after a power failure")
    });
    let text = format!(
        "{name}: the log is dirty: tail at block {}, head at block {} ({}{count}). What is on disk is of the state before \
         recovery; a mount replays the log (also a read-only one, unless with norecovery), xfs_repair -L would throw it \
         away{torn}",
        ends.tail,
        ends.head,
        size(u64::from(live).saturating_mul(512)),
    );
    session.warn("log-dirty", text, Outcome::Clean);
    if let Some((block, why)) = recovery.as_ref().and_then(|r| r.fails.as_ref()) {
        let text = format!(
            "{name}: recovery of the log would fail at the record in log block {block}: {why}; kernels refuse to mount"
        );
        session.warn("log-recovery-fails", text, Outcome::Findings);
    }
    if let Some(why) = unread {
        session.warn(
            "log-unreadable",
            format!("{name}: not all live records of the log can be read: {why}"),
            Outcome::Incomplete,
        );
    }
    if recovery.is_some_and(|r| r.fails.is_some() || r.torn.is_some()) {
        faults(session, target, log);
    }
}

/// Names what is wrong with the records of a log that recovery will not take as they are.
fn faults(session: &mut Session, target: &Target, log: &Log) {
    let Some(records) = log::Records::live(&target.volume, log) else { return };
    for record in records.flatten().filter(|record| !record.faults.is_empty()).take(8) {
        let list: Vec<String> = record.faults.iter().map(|fault| format!("h_{fault}")).collect();
        let text = format!("{}: record in log block {}: {}", target.name, record.at, list.join("; "));
        session.warn("log-record-damaged", text, Outcome::Clean);
    }
}

/// The state of a log as an object of JSON.
pub fn object(log: Option<&Log>) -> Json {
    let Some(log) = log else { return json!({ "state": "unknown" }) };
    let mut object = Map::new();
    object.insert("state".into(), log.name().into());
    if let Some(ends) = log.ends() {
        object.insert("head_block_512".into(), ends.head.0.into());
        object.insert("tail_block_512".into(), ends.tail.0.into());
        object.insert("current_lsn".into(), ends.current.0.into());
        object.insert("cycle".into(), ends.current.cycle().into());
    }
    if let State::Unknown(why) = &log.state {
        object.insert("reason".into(), why.to_string().into());
    }
    object.insert("foreign_uuid".into(), log.foreign.map(|uuid| uuid.to_string()).into());
    object.into()
}
