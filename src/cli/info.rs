//! `info`: the report of xfs_info.

use super::args::InfoArgs;
use super::journal;
use super::preflight::log_state;
use super::session::{Outcome, Session};
use super::target::{self, Target};
use crate::error::Result;
use crate::hazard::{Asked, Evaluation, Facts, Severity};
use crate::report::info::{DeviceNames, report};
use crate::report::{json, preflight, value};
use crate::volume::Origin;
use serde_json::{Map, Value as Json, json};

/// Answers for each target; an error with one does not keep the others from being answered.
pub fn run(session: &mut Session, args: &InfoArgs) -> Result<()> {
    for path in &args.targets {
        match target::open(session, path) {
            Ok(target) => {
                dangers(session, &target);
                answer(session, &target);
                target.close(session);
            }
            Err(error) => session.error(&error),
        }
    }
    Ok(())
}

fn answer(session: &mut Session, target: &Target) {
    let volume = &target.volume;
    if session.common.json {
        let object = object(session, target);
        session.print_json(object);
        return;
    }
    let names = DeviceNames { data: &target.name, log: target.log_name.as_deref(), rt: target.rt_name.as_deref() };
    session.print(&report(volume.superblock(), volume.zoned(), names, target.is_complete()));
}

/// Warns of what the running kernel would refuse or be endangered by. The superblock alone is looked at; the exit
/// status stays as it is.
fn dangers(session: &mut Session, target: &Target) {
    let Ok(kernel) = super::preflight::running() else { return };
    let asked = Asked { logical_sector: target.logical_sector, log: log_state(target), headers: false };
    let facts = Facts::new(&target.volume, asked);
    if !target.is_complete() || facts.copy {
        return;
    }
    let evaluation = Evaluation::new(&facts);
    let verdict = evaluation.verdict(&kernel);
    for applied in &verdict.reasons {
        let applies = match applied.effect.severity {
            Severity::Danger => true,
            // Where it is mounted, the kernel has taken it, whatever its number says.
            Severity::Refuse => !target.mounted,
            Severity::Ro | Severity::Note => false,
        };
        if applies {
            session.warn(
                applied.row.id,
                format!("{}: {}", target.name, preflight::warning(&kernel, applied)),
                Outcome::Clean,
            );
        }
    }
}

fn object(session: &mut Session, target: &Target) -> Map<String, Json> {
    let volume = &target.volume;
    let mut object = Map::new();
    object.insert("type".into(), "info".into());
    object.insert("schema".into(), json::SCHEMA.into());
    object.insert("target".into(), target.name.clone().into());
    object.insert("logdev".into(), target.log_name.clone().into());
    object.insert("rtdev".into(), target.rt_name.clone().into());
    object.insert("superblock".into(), origin(target));
    object.extend(json::geometry(volume.superblock(), volume.zoned(), volume.geometry()));
    if let (Some(Json::Object(log)), Json::Object(state)) =
        (object.get_mut("log"), journal::object(target.log.as_ref()))
    {
        log.extend(state);
    }
    if let Origin::Inferred { inferred, .. } = volume.origin() {
        let known: Vec<&str> = inferred.known.iter().map(|(field, _)| *field).collect();
        object.insert("inferred".into(), json!({ "known": known, "unknown": inferred.unknown }));
        blank_unknown(&mut object);
    }
    let shortfall = volume.shortfall().map(|s| {
        json!({ "needed_bytes": s.needed, "present_bytes": s.present,
            "missing_bytes": s.needed.saturating_sub(s.present), "first_cut_ag": s.first_cut.0,
            "first_cut_ag_present_bytes": s.first_cut_present })
    });
    object.insert("shortfall".into(), shortfall.into());
    object.insert("warnings".into(), session.take_warnings());
    object
}

/// Figures of an inferred superblock that nothing on disk tells must not look like figures.
fn blank_unknown(object: &mut Map<String, Json>) {
    for name in ["log", "realtime", "quota", "label", "naming", "feature_words", "meta_uuid"] {
        object.insert(name.into(), Json::Null);
    }
    let keep = |object: Option<&mut Json>, known: &[&str]| {
        let entries = object.and_then(Json::as_object_mut).into_iter().flatten();
        entries.filter(|(name, _)| !known.contains(&name.as_str())).for_each(|(_, value)| *value = Json::Null);
    };
    keep(object.get_mut("features"), &["crc", "finobt", "rmapbt", "reflink", "inobtcount"]);
    let data = [
        "block_size_bytes",
        "sector_size_bytes",
        "blocks",
        "length_bytes",
        "ag_count",
        "ag_blocks",
        "ag_bytes",
        "last_ag_blocks",
        "root_ino",
    ];
    keep(object.get_mut("data"), &data);
    keep(object.get_mut("inodes"), &["size_bytes", "per_block"]);
    keep(object.get_mut("counters"), &["inodes_allocated", "inodes_free", "free_blocks", "free_bytes"]);
}

fn origin(target: &Target) -> Json {
    let (name, reason) = match target.volume.origin() {
        Origin::Primary => ("primary", None),
        Origin::Chosen { .. } => ("chosen", None),
        Origin::Copy { reason, .. } => ("copy", Some(reason.to_string())),
        Origin::Inferred { reason, .. } => ("inferred", Some(reason.to_string())),
    };
    let copies: Option<Vec<Json>> = match target.volume.origin() {
        Origin::Copy { found, .. } => {
            Some(found.iter().map(|c| json!({ "ag": c.ag.0, "device": "data", "byte": c.byte.0 })).collect())
        }
        _ => None,
    };
    let place = target.superblock_place();
    json!({
        "origin": name, "device": "data", "byte": place.byte.0,
        "crc_state": value::state_name(target.superblock_crc()),
        "primary_unusable": reason, "copies": copies,
    })
}
