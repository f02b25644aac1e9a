//! `owner`: who owns a byte, sector or block.

use super::address;
use super::fsmap::row;
use super::object::path_bytes;
use super::session::{Outcome, Session};
use super::target;
use crate::error::{Error, Result};
use crate::format::dinode::Fork;
use crate::format::dinode_view::Kind;
use crate::geometry::Geometry;
use crate::report::entry::shown_path;
use crate::report::fsmap::{fields, owner_text};
use crate::report::json::hex;
use crate::report::line::Line;
use crate::units::{AgNumber, BASIC_BLOCK, ByteOffset, Device, Ino};
use crate::walk::Walk;
use crate::walk::fsmap::{Owner, Range};
use crate::walk::owner::{self, Answer, Detail, FilePart, Options, Role, Spot};
use crate::walk::paths::{self, PathOf};
use serde_json::{Map, Value as Json, json};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// Arguments of `owner`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = address::FORMS)]
pub struct OwnerArgs {
    /// Image or block device
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,
    /// Addresses
    #[arg(required = true, value_name = "ADDR")]
    pub addresses: Vec<String>,
    /// Do not use the reverse mapping btrees: read all inodes, and name everybody who claims the block
    #[arg(long)]
    pub no_rmap: bool,
    /// Do not look for the paths of inodes
    #[arg(long)]
    pub no_paths: bool,
}

/// Errors that are remembered, so as not to say them twice.
const SAID: usize = 4096;

type Paths = HashMap<Ino, Vec<PathOf>>;

/// Answers.
pub fn run(session: &mut Session, args: &OwnerArgs) -> Result<()> {
    let target = target::open(session, &args.target)?;
    let geometry = target.volume.geometry();
    let walk = Walk::new(&target.volume);
    let mut wanted: Vec<(&str, (Device, ByteOffset))> = Vec::new();
    for text in &args.addresses {
        match address::parse(geometry, text).and_then(|place| within(geometry, text, place)) {
            Ok(place) => wanted.push((text, place)),
            Err(error) => session.error(&error),
        }
    }
    let places: Vec<(Device, ByteOffset)> = wanted.iter().map(|(_, place)| *place).collect();
    let shared = RefCell::new(session);
    // Addresses of one AG come to the same headers: what is wrong with them is said once.
    let mut said = HashSet::new();
    let mut report = |error: Error| {
        if said.len() > SAID || said.insert(error.to_string()) {
            shared.borrow_mut().problem(&error);
        }
    };
    let answers = owner::of(&walk, &places, Options { rmap: !args.no_rmap }, &mut report);
    let inos = if args.no_paths { Vec::new() } else { named(&answers) };
    let found = if inos.is_empty() { Paths::new() } else { paths::of_many(&walk, &inos, &mut report) };
    let session = shared.into_inner();
    for ((text, _), answer) in wanted.iter().zip(&answers) {
        if answer.owners.iter().any(|(range, detail)| range.owner == Owner::Unknown && *detail == Detail::None) {
            session.outcome(Outcome::Incomplete);
        }
        if session.common.json {
            let object = object(session, geometry, text, answer, &found);
            session.print_json(object);
        } else {
            session.print(&text_of(geometry, text, answer, &found));
        }
    }
    target.close(session);
    Ok(())
}

/// The place, if it lies in the file system.
fn within(geometry: &Geometry, text: &str, (device, byte): (Device, ByteOffset)) -> Result<(Device, ByteOffset)> {
    if owner::spot(geometry, device, byte).is_some() {
        return Ok((device, byte));
    }
    let (name, end) = match device {
        Device::Data => ("data section", geometry.data_bytes()),
        Device::Log if geometry.log_start.is_some() => {
            return Err(Error::request(format!("{text}: the log lies on the data device, there is no external one")));
        }
        Device::Log => ("log", u64::from(geometry.log_blocks).checked_mul(geometry.block_size())),
        Device::Rt => match &geometry.realtime {
            None => return Err(Error::request(format!("{text}: there is no realtime section"))),
            Some(rt) => {
                let end = rt.blocks.checked_mul(geometry.block_size()).and_then(|n| n.checked_add(rt.start_bytes));
                ("realtime section", end)
            }
        },
    };
    let end = end.map_or_else(|| "an end beyond 2^64".to_owned(), |end| format!("byte {end}"));
    Err(Error::request(format!("{text}: byte {byte} lies outside the {name}, which goes to {end}")))
}

/// Inodes whose paths are part of the answers.
fn named(answers: &[Answer]) -> Vec<Ino> {
    let mut inos: Vec<Ino> = answers.iter().flat_map(|answer| &answer.owners).filter_map(ino_with_path).collect();
    inos.sort_unstable();
    inos.dedup();
    inos
}

/// The inode that has paths to tell: not one that is deleted, nor one that only the superblock names.
fn ino_with_path((range, detail): &(Range, Detail)) -> Option<Ino> {
    match (range.owner, detail) {
        (Owner::File(mapped), Detail::File(part)) => {
            let hidden = matches!(part.role, Role::Quota(_) | Role::Bitmap | Role::Summary);
            (!hidden && part.nlink.is_some_and(|nlink| nlink > 0)).then_some(mapped.ino)
        }
        (_, Detail::Inode { ino, in_use: Some(true) }) => Some(*ino),
        _ => None,
    }
}

/// Everybody's name in JSON.
fn structure(detail: &Detail) -> Option<&'static str> {
    Some(match detail {
        Detail::None => return None,
        Detail::Header(header) => header.name(),
        Detail::Padding => "padding",
        Detail::RealtimeSuperblock => "rtsb",
        Detail::Log { .. } => "log",
        Detail::FreeList { .. } => "free-list",
        Detail::Btree { kind, .. } => kind.name(),
        Detail::Inode { .. } => "inode",
        Detail::File(part) => match part.role {
            Role::Content => "content",
            Role::DirectoryData(_) => "directory-data",
            Role::DirectoryLeaf => "directory-leaf",
            Role::DirectoryFree => "directory-free",
            Role::Attributes(_) => "attributes",
            Role::LinkTarget => "symlink-target",
            Role::ExtentMap(_) => "extent-map",
            Role::RealtimeBtree(kind, _) => kind.name(),
            Role::Bitmap => "rtbitmap",
            Role::Summary => "rtsummary",
            Role::Quota(_) => "quota",
        },
    })
}

fn level(detail: &Detail) -> Option<u16> {
    match detail {
        Detail::Btree { level, .. } => Some(*level),
        Detail::File(FilePart { role: Role::ExtentMap(level) | Role::RealtimeBtree(_, level), .. }) => *level,
        _ => None,
    }
}

/// Names of the places of an address in JSON.
const PLACES: [&str; 8] =
    ["ag", "ag_block", "fsblock", "rt_group", "rt_group_block", "rtblock", "rt_extent", "log_block"];

fn object(session: &mut Session, geometry: &Geometry, text: &str, answer: &Answer, found: &Paths) -> Map<String, Json> {
    let mut place = [None; 8];
    match answer.spot {
        Spot::Data { ag, ag_block, block } => {
            place = [Some(ag.get()), Some(ag_block.get()), Some(block.0), None, None, None, None, None];
        }
        Spot::Realtime { group, group_block, block, extent } => {
            let (number, within) = (group.map(|group| group.get()), group.map(|_| group_block));
            place = [None, None, None, number, within, Some(block.0), Some(extent.0), None];
        }
        Spot::Log { block } => {
            if let Some(last) = place.last_mut() {
                *last = Some(block);
            }
        }
    }
    let owners: Vec<Json> = answer.owners.iter().map(|owner| owner_object(geometry, owner, found)).collect();
    let mut object = Map::new();
    object.insert("type".into(), "owner".into());
    object.insert("address".into(), text.into());
    object.insert("device".into(), answer.device.name().into());
    object.insert("byte".into(), answer.byte.0.into());
    object.insert("daddr".into(), geometry.daddr(answer.byte).0.into());
    object.extend(PLACES.into_iter().zip(place).map(|(name, value)| (name.to_owned(), value.into())));
    object.insert("within_block_bytes".into(), answer.within.into());
    object.insert("owners".into(), owners.into());
    object.insert("warnings".into(), session.take_warnings());
    object
}

/// The fields of `range`, and what exactly lies there.
fn owner_object(geometry: &Geometry, owner @ (range, detail): &(Range, Detail), found: &Paths) -> Json {
    let line = fields(Line::new("range"), &row(geometry, range)).finish();
    let mut object: Map<String, Json> = serde_json::from_str(&line).unwrap_or_default();
    let part = match detail {
        Detail::File(part) => Some(part),
        _ => None,
    };
    let mut set = |name: &str, value: Json| object.insert(name.into(), value);
    if let Detail::Inode { ino, .. } = detail {
        set("ino", ino.0.into());
    }
    set("structure", structure(detail).into());
    set("level", level(detail).into());
    set("kind", part.and_then(|part| part.kind).map(Kind::name).into());
    set("byte_in_fork", part.filter(|part| !is_map(part)).map(|part| part.offset).into());
    set("beyond_end", part.map(|part| part.beyond_end).into());
    set("in_use", if let Detail::Inode { in_use, .. } = detail { (*in_use).into() } else { Json::Null });
    set("slot", if let Detail::FreeList { slot } = detail { (*slot).into() } else { Json::Null });
    set("log_daddr", if let Detail::Log { block } = detail { (*block).into() } else { Json::Null });
    let directory_block = match part.map(|part| part.role) {
        Some(Role::DirectoryData(block)) => Some(block),
        _ => None,
    };
    set("directory_block", directory_block.into());
    let bytes: Option<Vec<Vec<u8>>> =
        ino_with_path(owner).and_then(|ino| found.get(&ino)).map(|paths| paths.iter().map(path_bytes).collect());
    let lossy = bytes.as_ref().map(|all| all.iter().map(|path| String::from_utf8_lossy(path)).collect::<Vec<_>>());
    if let Some(all) = bytes.as_ref().filter(|all| all.iter().any(|path| std::str::from_utf8(path).is_err())) {
        set("paths_hex", all.iter().map(|path| hex(path)).collect::<Vec<_>>().into());
    }
    set("paths", lossy.map_or(Json::Null, |lossy| json!(lossy)));
    object.into()
}

fn is_map(part: &FilePart) -> bool {
    matches!(part.role, Role::ExtentMap(_) | Role::RealtimeBtree(..))
}

fn text_of(geometry: &Geometry, text: &str, answer: &Answer, found: &Paths) -> String {
    let byte = answer.byte;
    let daddr = byte.0 / BASIC_BLOCK;
    let place = match answer.spot {
        Spot::Data { ag, ag_block, block } => format!("AG {ag} block {ag_block}, fsblock {block}"),
        Spot::Realtime { group: Some(group), group_block, block, extent } => {
            format!("realtime group {group} block {group_block}, rtblock {block}, extent {extent}")
        }
        Spot::Realtime { block, extent, .. } => format!("rtblock {block}, extent {extent}"),
        Spot::Log { block } => format!("block {block}"),
    };
    let name = if answer.device == Device::Rt { "realtime section" } else { "device" };
    let device = if answer.device == Device::Rt { "" } else { answer.device.name() };
    let mut out = format!("{text}: byte {byte} of the {device}{}{name}", if device.is_empty() { "" } else { " " });
    out.push_str(&format!(", daddr {daddr}: {place}, {} bytes into the block\n", answer.within));
    for owner @ (range, detail) in &answer.owners {
        out.push_str(&format!("  {}\n", describe(geometry, answer, range, detail)));
        if let Some(ino) = ino_with_path(owner) {
            match found.get(&ino) {
                Some(paths) if paths.is_empty() => out.push_str("    no directory names it\n"),
                Some(paths) => {
                    for path in paths {
                        out.push_str(&format!("    {}\n", shown_path(&path_bytes(path))));
                    }
                }
                None => {}
            }
        }
    }
    out
}

/// What lies there and whose it is, in a line.
fn describe(geometry: &Geometry, answer: &Answer, range: &Range, detail: &Detail) -> String {
    let last = range.start.0.saturating_add(range.length).saturating_sub(1);
    let bytes = format!("bytes {} to {last}", range.start);
    let kind_of_owner = owner_text(range.owner.name());
    let ag = match answer.spot {
        Spot::Data { ag, .. } => ag,
        _ => AgNumber(0),
    };
    let node = |level: u16| if level == 0 { "leaf".to_owned() } else { format!("node of level {level}") };
    let what = match detail {
        Detail::None => return format!("{kind_of_owner}: {bytes}"),
        Detail::Header(header) => format!("{} {ag}", header.name()),
        Detail::Padding if range.owner == Owner::Unknown => "behind the last whole extent, unused".to_owned(),
        Detail::Padding => "behind the headers, unused".to_owned(),
        Detail::RealtimeSuperblock => "realtime superblock".to_owned(),
        Detail::Log { block } => format!("log block {block} (512 bytes each)"),
        Detail::FreeList { slot } => format!("on the free list of AG {ag}, slot {slot} of agfl {ag}"),
        Detail::Btree { kind, level } => format!("{} of AG {ag}, {}", kind.name(), node(*level)),
        Detail::Inode { ino, in_use } => {
            let state = match in_use {
                Some(true) => "in use",
                Some(false) => "free",
                None => "not in the inode btree",
            };
            format!("inode {ino}, {state}")
        }
        Detail::File(part) => return describe_part(geometry, range, part, &bytes),
    };
    format!("{what}; {kind_of_owner}: {bytes}")
}

fn describe_part(geometry: &Geometry, range: &Range, part: &FilePart, bytes: &str) -> String {
    let Owner::File(mapped) = range.owner else { return String::new() };
    let fork = if mapped.fork == Fork::Data { "data" } else { "attribute" };
    let kind = part.kind.map_or("not readable", Kind::name);
    let level = |level: Option<u16>| match level {
        Some(0) => ", leaf".to_owned(),
        Some(level) => format!(", node of level {level}"),
        None => ", its header cannot be read".to_owned(),
    };
    let mut out = format!("inode {} ({kind}", mapped.ino);
    if part.nlink == Some(0) {
        out.push_str(", deleted but still open");
    }
    out.push_str("), ");
    out.push_str(&match part.role {
        Role::ExtentMap(n) => format!("extent map of the {fork} fork{}", level(n)),
        Role::RealtimeBtree(kind, n) => format!("{}{}", kind.name(), level(n)),
        role => {
            let what = match role {
                Role::DirectoryData(block) => format!(", directory block {block}"),
                Role::DirectoryLeaf => ", hashes of the directory".to_owned(),
                Role::DirectoryFree => ", free space index of the directory".to_owned(),
                Role::Attributes(block) => format!(", attribute block {block}"),
                Role::LinkTarget => ", target of the link".to_owned(),
                Role::Bitmap => ", realtime bitmap".to_owned(),
                Role::Summary => ", realtime summary".to_owned(),
                Role::Quota(whose) => format!(", {whose} quotas"),
                _ if part.beyond_end => ", behind the end of the file".to_owned(),
                _ => String::new(),
            };
            let state = if mapped.unwritten { "unwritten" } else { "written" };
            let shared = if range.shared { ", shared" } else { "" };
            format!("byte {} of the {fork} fork{what}, {state}{shared}", part.offset)
        }
    });
    out.push_str(&format!("; {bytes}"));
    if !mapped.bmbt {
        out.push_str(&format!(", from byte {} of the fork on", mapped.offset.saturating_mul(geometry.block_size())));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_inodes_have_no_path() {
        let mapped =
            crate::walk::fsmap::Mapped { ino: Ino(129), fork: Fork::Data, bmbt: false, offset: 0, unwritten: false };
        let range = Range {
            device: Device::Data,
            start: ByteOffset(0),
            length: 4096,
            group: None,
            owner: Owner::File(mapped),
            shared: false,
        };
        let part =
            FilePart { kind: Some(Kind::Regular), nlink: Some(1), offset: 0, role: Role::Content, beyond_end: false };
        let path = |part| ino_with_path(&(range, Detail::File(part)));
        assert_eq!(path(part), Some(Ino(129)));
        assert_eq!(path(FilePart { role: Role::Bitmap, ..part }), None);
        assert_eq!(path(FilePart { nlink: Some(0), ..part }), None);
    }
}
