//! `map`: where a file lies.

use super::object;
use super::session::Session;
use super::target;
use crate::error::Result;
use crate::format::bmbt::Extent;
use crate::format::dinode::{Fork, fork_format};
use crate::report::bmap::{Layout, Piece, json, table};
use crate::units::{Device, FsBlock, RtBlock};
use crate::walk::extents::{extents, locate, nowhere, on_realtime};
use crate::walk::shared::Shared;
use crate::walk::{Inode, Walk};
use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `map`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The table is that of xfs_bmap -elpvv: all numbers in units of 512 bytes. In JSON they are bytes, and holes are left out.
The attribute fork lies on the data device, whatever the file's data does.

  xfsinspect map disk.img /var/log/journal
  xfsinspect map --attr --json disk.img 131")]
pub struct MapArgs {
    /// Image or block device
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,
    /// Files or directories, by path or inode number
    #[arg(required = true, value_name = "PATH|INO")]
    pub what: Vec<OsString>,
    /// The attribute fork instead of the data fork
    #[arg(long)]
    pub attr: bool,
}

/// Answers.
pub fn run(session: &mut Session, args: &MapArgs) -> Result<()> {
    let target = target::open(session, &args.target)?;
    session.warning_lines();
    let walk = Walk::new(&target.volume);
    let fork = if args.attr { Fork::Attr } else { Fork::Data };
    let shared = RefCell::new(session);
    let mut sharing = Shared::new(&walk);
    for object in object::open_all(&shared, &walk, &args.what) {
        let inode = object.block.inode();
        let as_json = shared.borrow().common.json;
        let name = if args.what.len() > 1 && !as_json { format!("{}:\n", object.shown()) } else { String::new() };
        shared.borrow_mut().print(&name);
        if let Some(note) = without_extents(inode, fork) {
            let text = format!("{}: {note}", object.shown());
            shared.borrow_mut().note(&text);
            continue;
        }
        let mut pieces: Vec<Piece> = Vec::new();
        let mut emit = |piece: Piece| match as_json {
            true => shared.borrow_mut().print(&json(inode.ino, fork, &piece).unwrap_or_default()),
            false => pieces.push(piece),
        };
        each_piece(&shared, &walk, &mut sharing, inode, fork, &mut emit);
        if !as_json {
            let text = table(&pieces, &layout(&walk, inode, fork));
            shared.borrow_mut().print(&text);
        }
        if shared.borrow().closed() {
            break;
        }
    }
    target.close(shared.into_inner());
    Ok(())
}

/// Why a fork has no extents at all.
fn without_extents(inode: Inode<'_>, fork: Fork) -> Option<&'static str> {
    if inode.fork(fork).is_none() {
        return Some("no attribute fork");
    }
    match inode.format(fork) {
        fork_format::LOCAL => Some("the content lies in the inode"),
        fork_format::DEV => Some("a device, pipe or socket has no extents"),
        fork_format::META_BTREE => Some("the fork holds a btree of its realtime group, no extents"),
        _ => None,
    }
}

fn layout(walk: &Walk<'_>, inode: Inode<'_>, fork: Fork) -> Layout {
    let realtime = on_realtime(inode, fork);
    let sb = walk.volume().superblock();
    let bytes = |blocks: u32| u64::from(blocks).saturating_mul(walk.geometry().block_size());
    let groups = walk.geometry().realtime.as_ref().is_some_and(|rt| rt.groups.is_some());
    Layout {
        realtime,
        groups: !realtime || groups,
        stripe: if realtime { (0, 0) } else { (bytes(sb.unit), bytes(sb.width)) },
    }
}

/// Group and byte within it.
fn group_of(walk: &Walk<'_>, realtime: bool, block: FsBlock) -> Option<(u32, u64)> {
    let bytes = |blocks: u64| blocks.checked_mul(walk.geometry().block_size());
    if realtime {
        let rt = walk.geometry().realtime.as_ref().filter(|rt| rt.groups.is_some())?;
        let (group, within) = rt.split(RtBlock(block.0))?;
        return Some((group.0, bytes(within)?));
    }
    let (ag, within) = walk.geometry().split(block)?;
    Some((ag.0, bytes(within.get())?))
}

/// The pieces of a fork, holes included, to the end of the file.
fn each_piece(
    session: &RefCell<&mut Session>,
    walk: &Walk<'_>,
    sharing: &mut Shared<'_>,
    inode: Inode<'_>,
    fork: Fork,
    emit: &mut dyn FnMut(Piece),
) {
    let size = walk.geometry().block_size();
    let bytes = |blocks: u64| blocks.saturating_mul(size);
    let hole = |from: u64, to: u64| Piece {
        offset: bytes(from),
        length: bytes(to.saturating_sub(from)),
        place: None,
        group: None,
        unwritten: false,
        shared: None,
    };
    let mut at = 0u64;
    let mut any = false;
    for extent in extents(walk, inode, fork) {
        let extent = match extent {
            Ok(extent) => extent,
            Err(error) => {
                session.borrow_mut().problem(&error);
                continue;
            }
        };
        if extent.startoff.0 > at {
            emit(hole(at, extent.startoff.0));
        }
        any = true;
        if let Err(error) = pieces_of(session, walk, sharing, (inode, fork), &extent, emit) {
            session.borrow_mut().problem(&error);
        }
        at = extent.startoff.0.saturating_add(u64::from(extent.blockcount));
        if session.borrow().closed() {
            return;
        }
    }
    let end = if fork == Fork::Data { u64::try_from(inode.size()).unwrap_or(0).div_ceil(size) } else { 0 };
    if end > at || !any {
        emit(hole(at, end));
    }
}

fn pieces_of(
    session: &RefCell<&mut Session>,
    walk: &Walk<'_>,
    sharing: &mut Shared<'_>,
    (inode, fork): (Inode<'_>, Fork),
    extent: &Extent,
    emit: &mut dyn FnMut(Piece),
) -> Result<()> {
    let size = walk.geometry().block_size();
    let realtime = on_realtime(inode, fork);
    let mut report = |error| session.borrow_mut().problem(&error);
    let (mut start, mut offset) = (extent.startblock, extent.startoff.0);
    locate(walk.geometry(), realtime, extent.startblock, extent.blockcount)
        .ok_or_else(|| nowhere(walk, inode, fork, extent))?;
    for (blocks, shared) in sharing.pieces(realtime, extent.startblock, extent.blockcount, &mut report) {
        let place = locate(walk.geometry(), realtime, start, blocks).map(|l| (l.device, l.byte.0));
        emit(Piece {
            offset: offset.saturating_mul(size),
            length: u64::from(blocks).saturating_mul(size),
            place: place.map(|(device, byte)| (if realtime { Device::Rt } else { device }, byte)),
            group: group_of(walk, realtime, start),
            unwritten: extent.unwritten,
            shared,
        });
        start = FsBlock(start.0.saturating_add(u64::from(blocks)));
        offset = offset.saturating_add(u64::from(blocks));
    }
    Ok(())
}
