//! `xattr`: extended attributes as programs see them, or as they lie on disk.

use super::object;
use super::session::Session;
use super::target;
use crate::error::Result;
use crate::format::acl;
use crate::report::entry::shown_path;
use crate::report::json::hex;
use crate::report::line::Line;
use crate::report::text::escaped;
use crate::walk::attributes::{self, Attribute};
use crate::walk::tree::{self, Event, Options};
use crate::walk::{Inode, Walk};
use std::cell::RefCell;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Arguments of `xattr`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Access control lists are shown as system.posix_acl_access and system.posix_acl_default. With --all their disk form
(trusted.SGI_ACL_FILE and trusted.SGI_ACL_DEFAULT), parent pointers and attributes that were being changed are shown, too.

  xfsinspect xattr disk.img /srv/share
  xfsinspect xattr -R --json disk.img")]
pub struct XattrArgs {
    /// Image or block device
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,
    /// Objects, by path or inode number (default: the root)
    #[arg(value_name = "PATH|INO")]
    pub what: Vec<OsString>,
    /// Everything below, too
    #[arg(short = 'R', long)]
    pub recursive: bool,
    /// Also what programs do not see
    #[arg(long)]
    pub all: bool,
}

/// Answers.
pub fn run(session: &mut Session, args: &XattrArgs) -> Result<()> {
    let target = target::open(session, &args.target)?;
    session.warning_lines();
    let walk = Walk::new(&target.volume);
    let shared = RefCell::new(session);
    for object in object::open_all(&shared, &walk, &args.what) {
        let path = object.path(&walk);
        if !args.recursive {
            show(&shared, &walk, args, object.block.inode(), &path);
            continue;
        }
        let options = Options { inodes: true, sorted: true, shallow: false };
        let mut report = |error| shared.borrow_mut().problem(&error);
        let _ = tree::for_each(&walk, (object.block.ino(), &path), options, &mut report, &mut |event| {
            if let Event::Name(item) = event
                && let Some(inode) = item.inode
            {
                show(&shared, &walk, args, inode, item.path);
            }
            if shared.borrow().closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
    target.close(shared.into_inner());
    Ok(())
}

/// An attribute as it is shown.
struct Shown<'a> {
    name: Vec<u8>,
    value: std::borrow::Cow<'a, [u8]>,
    parent: Option<(crate::units::Ino, u32)>,
    incomplete: bool,
}

fn show(session: &RefCell<&mut Session>, walk: &Walk<'_>, args: &XattrArgs, inode: Inode<'_>, path: &[u8]) {
    let mut first = true;
    let mut report = |error| session.borrow_mut().problem(&error);
    let _ = attributes::for_each(walk, inode, &mut report, |attribute| {
        let list = match forms(&attribute, args.all) {
            Ok(list) => list,
            Err(error) => {
                session.borrow_mut().problem(&error);
                return ControlFlow::Continue(());
            }
        };
        for shown in list {
            let mut session = session.borrow_mut();
            if session.common.json {
                session.print(&json(&shown, inode, path, args.all));
            } else {
                if std::mem::take(&mut first) {
                    session.print(&format!("# file: {}\n", shown_path(path)));
                }
                session.print(&text(&shown));
            }
        }
        ControlFlow::Continue(())
    });
    if !first {
        session.borrow_mut().print("\n");
    }
}

/// How an attribute is shown: once, twice (an ACL with --all), or not at all.
fn forms<'a>(attribute: &Attribute<'a>, all: bool) -> Result<Vec<Shown<'a>>> {
    let incomplete = attribute.is_incomplete();
    let parent = attribute.parent();
    if attribute.is_parent() || incomplete || attribute.namespace().is_none() {
        if !all {
            return Ok(Vec::new());
        }
        let prefix = match attribute.namespace() {
            _ if attribute.is_parent() => "parent.".to_owned(),
            Some(prefix) => prefix.to_owned(),
            None => format!("flags_{:#x}.", attribute.flags),
        };
        let name = [prefix.as_bytes(), attribute.name].concat();
        return Ok(vec![Shown { name, value: attribute.value()?, parent, incomplete }]);
    }
    let prefix = attribute.namespace().unwrap_or_default();
    let value = attribute.value()?;
    let plain = [prefix.as_bytes(), attribute.name].concat();
    let list = acl::NAMES.iter().find(|(name, _)| prefix == "trusted." && *name == attribute.name);
    let mut shown = Vec::new();
    if let Some(converted) = list.and_then(|(_, name)| Some((name, acl::to_xattr(&value)?))) {
        let (name, value) = converted;
        shown.push(Shown { name: name.as_bytes().to_vec(), value: value.into(), parent, incomplete });
    }
    if list.is_none() || all || shown.is_empty() {
        shown.push(Shown { name: plain, value, parent, incomplete });
    }
    Ok(shown)
}

fn json(shown: &Shown<'_>, inode: Inode<'_>, path: &[u8], all: bool) -> String {
    let mut line = Line::new("xattr")
        .bytes("path", Some(path))
        .number("ino", inode.ino.0)
        .bytes("name", Some(&shown.name))
        .hex("value_hex", &shown.value);
    if all {
        line = line
            .truth("incomplete", Some(shown.incomplete))
            .maybe("parent_ino", shown.parent.map(|(ino, _)| ino))
            .maybe("parent_gen", shown.parent.map(|(_, generation)| generation));
    }
    line.finish()
}

fn text(shown: &Shown<'_>) -> String {
    let name = escaped(&shown.name);
    let mark = if shown.incomplete { " (being changed)" } else { "" };
    if let Some((ino, generation)) = shown.parent {
        return format!("{name} -> directory inode {ino} generation {generation}{mark}\n");
    }
    let is_text = std::str::from_utf8(&shown.value).is_ok_and(|text| !text.chars().any(|c| c.is_control()));
    if is_text {
        format!("{name}=\"{}\"{mark}\n", escaped(&shown.value).replace('"', "\\\""))
    } else {
        format!("{name}=0x{}{mark}\n", hex(&shown.value))
    }
}
