//! `show` of what belongs to a file: its inode by path, a block of its data or attribute fork.

use super::super::args::{ShowArgs, number};
use super::{Answer, guess};
use crate::error::{Error, Result};
use crate::format::Type;
use crate::format::dinode::{Fork, metatype};
use crate::format::dinode_view::Kind;
use crate::report::text::escaped;
use crate::units::{FileBlock, FsBlock, Ino, RtBlock};
use crate::volume::{Block, Volume};
use crate::walk::extents::{ForkMap, on_realtime};
use crate::walk::{Inode, InodeBlock, Walk, directory};

/// An inode by number or path.
fn inode(walk: &Walk<'_>, word: &str) -> Result<InodeBlock> {
    match number(word) {
        Ok(ino) if word.starts_with(|c: char| c.is_ascii_digit()) => walk.inode(Ino(ino)),
        _ => by_path(walk, word),
    }
}

fn by_path(walk: &Walk<'_>, path: &str) -> Result<InodeBlock> {
    let mut first = None;
    let root = walk.volume().superblock().rootino;
    let found = directory::resolve(walk, root, path.as_bytes(), &mut |error| {
        first.get_or_insert(error);
    });
    // Where the name is not found and a directory is damaged, the damage is the news.
    found.map_err(|error| first.unwrap_or(error))
}

/// `show TARGET /a/path`: the inode.
pub(super) fn path<'a>(volume: &Volume, path: &str, wanted: Option<Type>, fields: &'a [String]) -> Result<Answer<'a>> {
    let walk = Walk::new(volume);
    let ino = by_path(&walk, path)?.ino();
    Ok(Answer { kind: wanted.unwrap_or(Type::Inode), block: volume.inode(ino)?, fields })
}

/// `show TARGET dblock INO N`, `ablock INO N`: block N of a fork, counted in file system blocks.
pub(super) fn block<'a>(volume: &Volume, args: &'a ShowArgs, fork: Fork, wanted: Option<Type>) -> Result<Answer<'a>> {
    let name = if fork == Fork::Data { "dblock" } else { "ablock" };
    let usage = || Error::request(format!("show {name} needs an inode and a block: show TARGET {name} INO|PATH N"));
    let (Some(word), Some(at)) = (args.what.get(1), args.what.get(2)) else { return Err(usage()) };
    let at = FileBlock(number(at).map_err(|_| usage())?);
    let fields = args.what.get(3..).unwrap_or_default();
    let walk = Walk::new(volume);
    let owner = inode(&walk, word)?;
    let inode = owner.inode();
    let mut first = None;
    let map = ForkMap::read(&walk, inode, fork, &mut |error| {
        first.get_or_insert(error);
    });
    if map.find(at).is_none() {
        let text = format!("{name} {} {at}: a hole, no block there", escaped(word.as_bytes()));
        return Err(first.unwrap_or(Error::request(text)));
    }
    let usual = usual(volume, inode, fork);
    let size = wanted.or(usual).map_or(volume.context().block_size, |kind| kind.size(volume.context()));
    let count = size.div_ceil(volume.context().block_size);
    let what = format!("inode {} › {name} {at}", inode.ino);
    let mut block = read(&walk, inode, fork, &map, at, count, &what)?;
    let kind = wanted.or(usual).unwrap_or_else(|| guess::kind(volume, &block));
    block.bytes.truncate(usize::try_from(kind.size(volume.context())).unwrap_or(usize::MAX));
    block.place.length = u64::from(kind.size(volume.context())).min(block.place.length);
    Ok(Answer { kind, block, fields })
}

fn read(
    walk: &Walk<'_>,
    inode: Inode<'_>,
    fork: Fork,
    map: &ForkMap,
    at: FileBlock,
    count: u32,
    what: &str,
) -> Result<Block> {
    if on_realtime(inode, fork) {
        let block = map.block(at).unwrap_or(FsBlock::NULL);
        return walk.volume().rt_blocks(RtBlock(block.0), 1, what);
    }
    map.read_blocks(walk, at, count, what)
}

/// What the owner says the block is; `None` where only the block can tell.
fn usual(volume: &Volume, inode: Inode<'_>, fork: Fork) -> Option<Type> {
    let sb = volume.superblock();
    let features = volume.context().features;
    if fork == Fork::Attr {
        return Some(Type::Attr3);
    }
    match inode.kind() {
        Kind::Directory => return Some(Type::Dir3),
        Kind::Symlink => return Some(Type::Symlink),
        _ => {}
    }
    if let Some(kind) = inode.metatype() {
        return Some(match kind {
            metatype::USRQUOTA | metatype::GRPQUOTA | metatype::PRJQUOTA => Type::Dqblk,
            metatype::RTBITMAP => Type::Rgbitmap,
            metatype::RTSUMMARY => Type::Rgsummary,
            _ => return None,
        });
    }
    if features.has_metadir() {
        return Some(Type::Data);
    }
    if [sb.uquotino, sb.gquotino, sb.pquotino].contains(&inode.ino) {
        return Some(Type::Dqblk);
    }
    if inode.ino == sb.rbmino {
        return Some(Type::Rtbitmap);
    }
    Some(if inode.ino == sb.rsumino { Type::Rtsummary } else { Type::Data })
}
