//! `stat`: one object in full.

use super::object::{self, Object};
use super::session::Session;
use super::target;
use crate::error::Result;
use crate::format::checksum::CrcState;
use crate::format::dinode::{Fork, METATYPE_NAMES, fork_format};
use crate::format::dinode_view::{Kind, Time};
use crate::report::entry::{blocks_512, mode_text, shown_path, time_text};
use crate::report::text::escaped;
use crate::report::{json, value};
use crate::walk::{Walk, paths, symlink};
use serde_json::{Map, Value as Json};
use std::cell::RefCell;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;

/// Arguments of `stat`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
All paths of an object that has several links are shown; without parent pointers that takes a pass over the directories.

  xfsinspect stat disk.img /etc/passwd
  xfsinspect stat --json disk.img 131")]
pub struct StatArgs {
    /// Image or block device
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,
    /// Objects, by path or inode number (default: the root)
    #[arg(value_name = "PATH|INO")]
    pub what: Vec<OsString>,
}

/// Answers.
pub fn run(session: &mut Session, args: &StatArgs) -> Result<()> {
    let target = target::open(session, &args.target)?;
    session.warning_lines();
    let walk = Walk::new(&target.volume);
    let shared = RefCell::new(session);
    let mut first = true;
    for object in object::open_all(&shared, &walk, &args.what) {
        let fields = fields(&shared, &walk, &object);
        let mut session = shared.borrow_mut();
        if session.common.json {
            session.print_json(fields);
        } else {
            let gap = if std::mem::take(&mut first) { "" } else { "\n" };
            let text = format!("{gap}{}", text(&fields, &object));
            session.print(&text);
        }
    }
    target.close(shared.into_inner());
    Ok(())
}

fn put_time(object: &mut Map<String, Json>, name: &str, time: Option<Time>) {
    object.insert(format!("{name}_sec"), time.map(|t| t.sec).into());
    object.insert(format!("{name}_nsec"), time.map(|t| t.nsec).into());
}

fn format_name(format: u8) -> Json {
    fork_format::NAMES.get(usize::from(format)).map_or_else(|| format.into(), |name| (*name).into())
}

/// Everything about an object, in the order it is shown.
fn fields(session: &RefCell<&mut Session>, walk: &Walk<'_>, object: &Object) -> Map<String, Json> {
    let inode = object.block.inode();
    let place = object.block.place();
    let mut report = |error| session.borrow_mut().problem(&error);
    let mut all = paths_of(walk, object, &mut report);
    all.sort();
    let mut out = Map::new();
    out.insert("type".into(), "stat".into());
    match object.path.as_ref().or(all.first()) {
        Some(path) => json::put_bytes(&mut out, "path", path),
        None => drop(out.insert("path".into(), Json::Null)),
    }
    let others = all.iter().map(|path| {
        let mut one = Map::new();
        json::put_bytes(&mut one, "path", path);
        Json::from(one)
    });
    out.insert("paths".into(), others.collect::<Vec<_>>().into());
    out.insert("ino".into(), inode.ino.0.into());
    let ag = walk.geometry().split_inode(inode.ino);
    out.insert("ag".into(), ag.map(|(ag, _)| ag.0).into());
    out.insert("agino".into(), ag.map(|(_, agino)| agino.0).into());
    out.insert("device".into(), place.device.name().into());
    out.insert("start_bytes".into(), place.byte.0.into());
    out.insert("fsblock".into(), walk.geometry().inode_place(inode.ino).map(|(block, _)| block.0).into());
    out.insert("kind".into(), inode.kind().name().into());
    out.insert("mode_octal".into(), format!("{:o}", inode.mode()).into());
    for (name, number) in
        [("uid", inode.uid()), ("gid", inode.gid()), ("projid", inode.projid()), ("nlink", inode.nlink())]
    {
        out.insert(name.into(), number.into());
    }
    out.insert("size_bytes".into(), inode.size().into());
    out.insert("blocks_512".into(), blocks_512(inode.nblocks(), walk.geometry().block_size()).into());
    let times = [("atime", Some(inode.atime())), ("mtime", Some(inode.mtime())), ("ctime", Some(inode.ctime()))];
    for (name, time) in times.into_iter().chain([("crtime", inode.crtime())]) {
        put_time(&mut out, name, time);
    }
    out.insert("flags".into(), inode.flag_names().collect::<Vec<_>>().into());
    out.insert("data_format".into(), format_name(inode.format(Fork::Data)));
    out.insert("data_extents".into(), inode.extents(Fork::Data).into());
    let attr = inode.fork(Fork::Attr).is_some();
    out.insert("attr_format".into(), if attr { format_name(inode.format(Fork::Attr)) } else { Json::Null });
    out.insert("attr_extents".into(), if attr { inode.extents(Fork::Attr).into() } else { Json::Null });
    let size = u64::from(walk.context().block_size);
    out.insert("extsize_bytes".into(), u64::from(inode.extsize()).saturating_mul(size).into());
    out.insert("cowextsize_bytes".into(), u64::from(inode.cowextsize()).saturating_mul(size).into());
    let metatype = inode.metatype().and_then(|n| METATYPE_NAMES.get(usize::from(n)));
    out.insert("metatype".into(), metatype.copied().into());
    let device = matches!(inode.kind(), Kind::Char | Kind::Block).then(|| inode.device_number()).flatten();
    out.insert("device_major".into(), device.map(|(major, _)| major).into());
    out.insert("device_minor".into(), device.map(|(_, minor)| minor).into());
    let target = (inode.kind() == Kind::Symlink).then(|| symlink::target(walk, inode));
    match target {
        Some(Ok(target)) => json::put_bytes(&mut out, "target", &target),
        Some(Err(error)) => {
            session.borrow_mut().problem(&error);
            out.insert("target".into(), Json::Null);
        }
        None => drop(out.insert("target".into(), Json::Null)),
    }
    out.insert("version".into(), inode.version().into());
    out.insert("gen".into(), inode.generation().into());
    out.insert("crc_state".into(), value::state_name(inode.crc()).into());
    out
}

/// The paths of the object; where it was named by its only one, no search is needed.
fn paths_of(walk: &Walk<'_>, object: &Object, report: &mut dyn FnMut(crate::error::Error)) -> Vec<Vec<u8>> {
    let inode = object.block.inode();
    match &object.path {
        Some(path) if inode.nlink() <= 1 || inode.kind() == Kind::Directory => vec![path.clone()],
        _ => paths::of(walk, inode.ino, report).iter().map(object::path_bytes).collect(),
    }
}

fn text(fields: &Map<String, Json>, object: &Object) -> String {
    let inode = object.block.inode();
    let mut out = String::new();
    let mut row = |name: &str, text: String| {
        let _ = writeln!(out, "{name:>12}: {text}");
    };
    let get = |name: &str| fields.get(name).filter(|value| !value.is_null());
    let plain = |name: &str| match get(name) {
        Some(Json::String(text)) => escaped(text.as_bytes()),
        Some(other) => other.to_string(),
        None => "-".to_owned(),
    };
    let shown: Vec<String> = fields
        .get("paths")
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .filter_map(|one| {
            one.get("path_hex")
                .and_then(Json::as_str)
                .map(unhex)
                .or_else(|| Some(one.get("path")?.as_str()?.as_bytes().to_vec()))
        })
        .map(|path| shown_path(&path))
        .collect();
    match shown.split_first() {
        None => row("path", "none: no directory names it".to_owned()),
        Some((first, more)) => {
            row("path", first.clone());
            more.iter().for_each(|path| row("also", path.clone()));
        }
    }
    row(
        "inode",
        format!(
            "{} (AG {}, inode {} of it; byte {} of the data device)",
            plain("ino"),
            plain("ag"),
            plain("agino"),
            plain("start_bytes")
        ),
    );
    row(
        "kind",
        match get("metatype") {
            Some(_) => format!("{}, metadata: {}", plain("kind"), plain("metatype")),
            None => plain("kind"),
        },
    );
    row("mode", format!("{:04o} {}", inode.mode() & 0o7777, mode_text(inode.mode())));
    row("owner", format!("uid {} gid {} project {}", plain("uid"), plain("gid"), plain("projid")));
    row("links", plain("nlink"));
    row("size", format!("{} bytes, {} blocks of 512 bytes in use", plain("size_bytes"), plain("blocks_512")));
    for (name, time) in [("access", inode.atime()), ("modify", inode.mtime()), ("change", inode.ctime())] {
        row(name, format!("{}.{:09} UTC", time_text(time), time.nsec));
    }
    if let Some(time) = inode.crtime() {
        row("birth", format!("{}.{:09} UTC", time_text(time), time.nsec));
    }
    row(
        "flags",
        match inode.flag_names().collect::<Vec<_>>() {
            names if names.is_empty() => "none".to_owned(),
            names => names.join(" "),
        },
    );
    row("data fork", format!("{}, {} extents", plain("data_format"), plain("data_extents")));
    if get("attr_format").is_some() {
        row("attr fork", format!("{}, {} extents", plain("attr_format"), plain("attr_extents")));
    }
    if inode.extsize() != 0 || inode.cowextsize() != 0 {
        row(
            "size hints",
            format!("extent {} bytes, copy on write {} bytes", plain("extsize_bytes"), plain("cowextsize_bytes")),
        );
    }
    if get("device_major").is_some() {
        row("device", format!("{}, {}", plain("device_major"), plain("device_minor")));
    }
    if get("target").is_some() {
        let exact = fields.get("target_hex").and_then(Json::as_str).map(unhex);
        row("target", exact.map_or_else(|| plain("target"), |bytes| escaped(&bytes)));
    }
    row("version", format!("{}, generation {}", plain("version"), plain("gen")));
    if inode.crc() != CrcState::Unchecked {
        row("checksum", plain("crc_state"));
    }
    out
}

/// Bytes out of lower-case hex that was written here.
fn unhex(text: &str) -> Vec<u8> {
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok()).unwrap_or(0);
    text.as_bytes()
        .chunks_exact(2)
        .map(|pair| match pair {
            [high, low] => digit(*high) << 4 | digit(*low),
            _ => 0,
        })
        .collect()
}
