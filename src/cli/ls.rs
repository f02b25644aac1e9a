//! `ls`: names of directories, with what their inodes say.

use super::object;
use super::session::Session;
use super::target;
use crate::error::Result;
use crate::format::dinode_view::Kind;
use crate::report::entry::{Entry, json, line, shown_path};
use crate::walk::tree::{self, Event, Item, Options};
use crate::walk::{Walk, symlink};
use std::cell::RefCell;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Arguments of `ls`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
A PATH is given from the root of the file system, with or without a slash before it; a number is an inode.
Symbolic links are not followed. Times are UTC.

  xfsinspect ls disk.img /var/log
  xfsinspect ls -R --json disk.img")]
pub struct LsArgs {
    /// Image or block device
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,
    /// Directories or files, by path or inode number (default: the root)
    #[arg(value_name = "PATH|INO")]
    pub what: Vec<OsString>,
    /// Mode, links, owner, size and time, too
    #[arg(short)]
    pub long: bool,
    /// Everything below, too
    #[arg(short = 'R', long)]
    pub recursive: bool,
}

/// Answers.
pub fn run(session: &mut Session, args: &LsArgs) -> Result<()> {
    let target = target::open(session, &args.target)?;
    session.warning_lines();
    let walk = Walk::new(&target.volume);
    let shared = RefCell::new(session);
    for object in object::open_all(&shared, &walk, &args.what) {
        let path = object.path(&walk);
        list(&shared, &walk, args, (&object, &path));
    }
    target.close(shared.into_inner());
    Ok(())
}

fn list(session: &RefCell<&mut Session>, walk: &Walk<'_>, args: &LsArgs, (object, path): (&object::Object, &[u8])) {
    let is_directory = object.block.inode().kind() == Kind::Directory;
    let as_json = session.borrow().common.json;
    let options = Options { inodes: args.long || as_json, sorted: true, shallow: !args.recursive };
    let mut report = |error| session.borrow_mut().problem(&error);
    let mut first = true;
    let start = (object.block.ino(), path);
    let _ = tree::for_each(walk, start, options, &mut report, &mut |event| {
        match event {
            Event::Enter(item) if args.recursive && !as_json => {
                let gap = if first { "" } else { "\n" };
                session.borrow_mut().print(&format!("{gap}{}:\n", shown_path(item.path)));
                first = false;
            }
            Event::Enter(_) => {}
            // The start itself: in JSON with -R, and where it is no directory.
            Event::Name(item) if item.parent.is_none() => {
                if !is_directory || (args.recursive && as_json) {
                    print(session, walk, &item, item.path, args.long);
                }
            }
            Event::Name(item) => print(session, walk, &item, item.name, args.long),
        }
        if session.borrow().closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
}

fn print(session: &RefCell<&mut Session>, walk: &Walk<'_>, item: &Item<'_>, name: &[u8], long: bool) {
    let target = target_of(session, walk, item);
    let entry = entry_of(walk, item, target.as_deref());
    let text = if session.borrow().common.json { json(&entry) } else { line(&entry, name, long) };
    session.borrow_mut().print(&text);
}

/// A name of the tree as an entry.
pub fn entry_of<'a>(walk: &Walk<'_>, item: &Item<'a>, target: Option<&'a [u8]>) -> Entry<'a> {
    Entry {
        path: Some(item.path),
        ino: item.ino,
        kind: item.entry_kind,
        inode: item.inode.map(|inode| inode.view()),
        target,
        block_size: walk.geometry().block_size(),
    }
}

/// Target of a symbolic link, if it is one.
pub fn target_of(session: &RefCell<&mut Session>, walk: &Walk<'_>, item: &Item<'_>) -> Option<Vec<u8>> {
    let inode = item.inode.filter(|inode| inode.kind() == Kind::Symlink)?;
    symlink::target(walk, inode).map_err(|error| session.borrow_mut().problem(&error)).ok()
}
