//! Directories: names and where they lead, `.` and `..`, and directories that lie in their inode. Data blocks:
//! [`dir_data`](super::dir_data), the hash index: [`dir_index`](super::dir_index), the tree as a whole:
//! [`tree`](super::tree).
//!
//! `xfs_dir2_sf_verify` (xfs_dir2_sf.c), `scrub/dir.c`, `scrub/parent.c`; `process_dir2` (xfs_repair, dir2.c),
//! `shortform_dir2_entry_check`, `longform_dir2_entry_check` (phase6.c).

use super::context::{Ctx, InodeSlot, Spot};
use super::dir_index::{self, Index};
use super::finding::{Object, RuleInfo};
use super::fork::{self, Buffers};
use super::names::{self, Pair, Target};
use super::raised;
use crate::format::dinode::{Fork, fork_format};
use crate::format::dir_data::{entry_size, header_size};
use crate::format::{dir_shortform, hash};
use crate::units::Ino;
use crate::walk::Inode;

raised! { RAISED, structure "dir";
    /// Names have 1 to 255 bytes, neither slash nor zero among them. Such a file cannot be opened by name. xfs_repair
    /// removes the entry, and the file ends in lost+found unless it has another name.
    BAD_NAME: "dir-bad-name" corrupt "name", "name that no file can have",
        source "xfs_dir2.c:xfs_dir2_namecheck; scrub/dir.c:xchk_dir_actor; repair/dir2.c:process_dir2_data", since "4.17";
    /// The entry leads to a number that is no inode, or one that only the superblock may name. xfs_repair removes it.
    NO_INODE: "dir-entry-without-inode" corrupt "inumber", "entry names what is no inode",
        source "xfs_dir2.c:xfs_dir_ino_validate; repair/dir2.c:process_dir2_data", since "2.6";
    /// The entry leads to a free inode: the file is lost, or the number is wrong. xfs_repair removes the entry.
    FREE_INODE: "dir-entry-of-free-inode" xcorrupt "inumber", "entry names a free inode",
        source "scrub/dir.c:xchk_dir_actor; repair/phase6.c:longform_dir2_entry_check_data", since "scrub";
    /// Entries keep the type of the file beside its number. Programs that trust it (find, rm -r) go astray. xfs_repair
    /// puts the inode's type there.
    BAD_FTYPE: "dir-bad-filetype" xcorrupt "filetype", "file type is not that of the inode",
        source "scrub/dir.c:xchk_dir_check_ftype; repair/phase6.c:longform_dir2_entry_check_data", since "scrub";
    /// Files of the metadata directory have names there alone, and other files never.
    METADATA: "dir-entry-across-trees" xcorrupt "inumber", "entry leads out of, or into, the metadata directory",
        source "scrub/dir.c:xchk_dir_actor; repair/phase6.c:longform_dir2_entry_check_data", since "scrub";
    /// xfs_repair puts what has no name into a directory of this name, and removes the entry of anything else, whose file
    /// then ends there.
    LOST_FOUND: "dir-lost-found-no-directory" xcorrupt "inumber", "lost+found is no directory",
        source "repair/phase6.c:longform_dir2_entry_check_data, shortform_dir2_entry_check", since "none";
    /// The first entry is `.`, and names the directory itself.
    BAD_DOT: "dir-bad-dot" corrupt "inumber", "no `.` that names the directory itself",
        source "scrub/dir.c:xchk_dir_actor; repair/dir2.c:process_dir2_data", since "scrub";
    /// The second entry is `..`.
    NO_DOTDOT: "dir-no-dotdot" corrupt "name", "no `..` as the second entry",
        source "scrub/parent.c:xchk_parent; repair/dir2.c:process_dir2_data", since "scrub";
    /// `.` and `..` stand once each, at the beginning.
    DOTS_AGAIN: "dir-dots-again" corrupt "name", "`.` or `..` among the names",
        source "scrub/dir.c:xchk_dir_actor; repair/dir2.c:process_dir2_data", since "scrub";
    /// Two entries have the same name; only the first is found. xfs_repair removes the second.
    NAME_TWICE: "dir-name-twice" corrupt "name", "two entries with the same name",
        source "repair/phase6.c:dir_hash_add", since "none";
    /// A directory in its inode: the entries must end where its size says.
    SF_SIZE: "dirsf-entries-do-not-fit" corrupt "count", "entries do not end with the directory",
        source "xfs_dir2_sf.c:xfs_dir2_sf_verify; repair/dir2.c:process_sf_dir2", since "4.11";
    /// Each entry has the place that it would have in a directory block: places ascend by at least the entry's size, and
    /// the last leaves room for the index.
    SF_OFFSET: "dirsf-bad-offset" corrupt "offset", "place lies within the entry before, or behind the end of a block",
        source "xfs_dir2_sf.c:xfs_dir2_sf_verify; repair/dir2.c:verify_sf_dir2_offsets", since "4.12";
    /// How many numbers need 8 bytes: where it is not 0, all numbers take 8.
    SF_I8COUNT: "dirsf-bad-i8count" corrupt "i8count", "not the number of entries that need 8 bytes",
        source "xfs_dir2_sf.c:xfs_dir2_sf_verify; repair/dir2.c:process_sf_dir2", since "4.12";
    /// More entries than would fit into a directory block: it should have blocks.
    SF_TOO_BIG: "dirsf-too-big" corrupt "count", "more entries than fit into a block",
        source "xfs_dir2_sf.c:xfs_dir2_sf_verify; repair/dir2.c:verify_sf_dir2_offsets", since "4.12";
}

/// What a thread keeps while it goes over directories.
#[derive(Debug)]
pub struct Worker<'c> {
    /// The run.
    pub ctx: &'c Ctx<'c>,
    pub(super) buffers: Buffers,
    pub(super) index: Index,
    entries: Vec<Pair>,
    dotdots: Vec<Pair>,
}

impl<'c> Worker<'c> {
    /// For a thread.
    pub fn new(ctx: &'c Ctx<'c>) -> Self {
        Self { ctx, buffers: Buffers::default(), index: Index::default(), entries: Vec::new(), dotdots: Vec::new() }
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        self.ctx.names.gather(&mut self.entries, &mut self.dotdots);
    }
}

/// A directory while its names are gone over.
#[derive(Debug)]
pub(super) struct Names<'w, 'c> {
    pub ctx: &'c Ctx<'c>,
    pub ino: Ino,
    slot: Option<InodeSlot>,
    generation: u32,
    metadata: bool,
    parents: bool,
    pub complete: bool,
    entries: &'w mut Vec<Pair>,
    dotdots: &'w mut Vec<Pair>,
    pub dotdot: bool,
}

/// Bytes that a name cannot have.
fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && !name.iter().any(|&byte| byte == b'/' || byte == 0)
}

/// Inodes that the superblock alone may name.
fn is_internal(ctx: &Ctx<'_>, ino: Ino) -> bool {
    let sb = ctx.volume().superblock();
    if ctx.context().features.has_metadir() {
        return false;
    }
    [sb.rbmino, sb.rsumino, sb.uquotino, sb.gquotino].contains(&ino) || (ctx.context().has_crc() && sb.pquotino == ino)
}

impl Names<'_, '_> {
    fn raise(&self, rule: &'static RuleInfo, spot: Spot, found: impl std::fmt::Display, right: impl std::fmt::Display) {
        self.ctx.raise(rule, &spot, found, right);
    }

    /// Looks at what an entry leads to. False: nowhere, as was reported.
    fn leads(&self, (ino, slot): (Ino, Option<InodeSlot>), ftype: Option<u8>, spot: &dyn Fn() -> Spot) -> Option<u8> {
        if is_internal(self.ctx, ino) {
            self.raise(NO_INODE, spot(), ino, "an inode that may have a name");
            return None;
        }
        match self.ctx.names.target_at(self.ctx, ino, slot) {
            Target::Absent => {
                self.ctx.raise_of(NO_INODE, &spot(), Object::Inode(ino), ino, "an inode");
                None
            }
            Target::Free => {
                self.raise(FREE_INODE, spot(), ino, "an inode in use");
                None
            }
            Target::Unknown | Target::Damaged => ftype.or(Some(0)),
            Target::Inode { ftype: right, metadata, .. } => {
                // A damaged inode is no witness of the tree that it is in.
                let ctx = self.ctx;
                if metadata != self.metadata && !ctx.is_damaged(self.ino) && !ctx.is_damaged(ino) {
                    let right = if self.metadata { "a metadata file" } else { "no metadata file" };
                    self.raise(METADATA, spot(), ino, right);
                }
                if let Some(found) = ftype.filter(|&found| found != right) {
                    self.raise(BAD_FTYPE, spot(), found, right);
                }
                Some(right)
            }
        }
    }

    /// `.` as it stands in blocks.
    pub fn dot(&self, ino: Ino, ftype: Option<u8>, spot: &dyn Fn() -> Spot) {
        if ino != self.ino {
            self.raise(BAD_DOT, spot(), ino, self.ino);
        } else if let Some(found) = ftype.filter(|&found| found != 2) {
            self.raise(BAD_FTYPE, spot(), found, 2);
        }
    }

    /// `..`, wherever it stands.
    pub fn dotdot(&mut self, ino: Ino, ftype: Option<u8>, spot: &dyn Fn() -> Spot) {
        self.dotdot = true;
        if let Some(found) = ftype.filter(|&found| found != 2) {
            self.raise(BAD_FTYPE, spot(), found, 2);
        }
        self.dotdots.push((self.ino, ino));
    }

    /// An entry that is neither. Gives the hash of its name.
    pub fn entry(&mut self, name: &[u8], ino: Ino, ftype: Option<u8>, spot: &dyn Fn() -> Spot) {
        if !is_name(name) {
            self.raise(BAD_NAME, spot(), shown(name), "1 to 255 bytes without / and zero");
        } else if name == b"." || name == b".." {
            self.raise(DOTS_AGAIN, spot(), shown(name), "another name");
            return;
        }
        let slot = self.ctx.slot(ino);
        let Some(kind) = self.leads((ino, slot), ftype, spot) else { return };
        if name == b"lost+found" && kind != 2 && kind != 0 && self.ino == self.ctx.volume().superblock().rootino {
            self.raise(LOST_FOUND, spot(), format_args!("file type {kind}"), "a directory, or no such name");
        }
        self.ctx.links.entry(slot);
        if kind == 2 {
            self.ctx.links.entry(self.slot);
            self.entries.push((ino, self.ino));
        }
        if self.parents {
            self.ctx.names.balance(slot, names::entry_number(self.ino, self.generation, name), false);
        }
    }
}

/// Checks a directory.
pub fn check(worker: &mut Worker<'_>, inode: Inode<'_>) {
    let ctx = worker.ctx;
    let sb = ctx.volume().superblock();
    let features = ctx.context().features;
    let metadata = inode.metatype().is_some();
    let slot = ctx.slot(inode.ino);
    ctx.links.entry(slot);
    if inode.ino == sb.rootino || (features.has_metadir() && inode.ino == sb.metadirino) {
        ctx.links.entry(slot);
    }
    let mut names = Names {
        ctx,
        ino: inode.ino,
        slot,
        generation: inode.generation(),
        metadata,
        parents: features.has_parent(),
        complete: true,
        entries: &mut worker.entries,
        dotdots: &mut worker.dotdots,
        dotdot: false,
    };
    match inode.format(Fork::Data) {
        fork_format::LOCAL => shortform(&mut names, inode),
        fork_format::EXTENTS | fork_format::BTREE => {
            dir_index::check(&mut names, inode, &mut worker.buffers, &mut worker.index);
        }
        // What is wrong with the inode is said elsewhere.
        _ => names.complete = false,
    }
    if !names.complete {
        ctx.names.names_unknown(inode.ino);
    }
    if worker.entries.len() > 4096 {
        ctx.names.gather(&mut worker.entries, &mut worker.dotdots);
    }
}

/// Byte behind the last entry of a directory in its inode, if each has a name.
fn end_of(ctx: &Ctx<'_>, fork: &[u8], count: u8, wide: bool) -> Option<usize> {
    let number = if wide { 8 } else { 4 };
    let rest = number + if ctx.context().features.has_ftype() { 4 } else { 3 };
    let mut at: usize = 2 + number;
    for _ in 0..count {
        let namelen = usize::from(*fork.get(at)?);
        if namelen == 0 {
            return None;
        }
        at = at.checked_add(namelen)?.checked_add(rest)?;
    }
    (at <= fork.len()).then_some(at)
}

/// A directory in its inode.
fn shortform(names: &mut Names<'_, '_>, inode: Inode<'_>) {
    let ctx = names.ctx;
    let spot = || fork::inode_spot(ctx, inode.ino);
    let fork = inode.fork(Fork::Data).unwrap_or_default();
    let size = usize::try_from(inode.size()).unwrap_or(usize::MAX);
    let Some(header) = dir_shortform::header(fork) else {
        names.complete = false;
        ctx.raise(SF_SIZE, &spot(), fork.len(), "room for the header");
        return;
    };
    let wide = header.i8count > 0;
    let end = end_of(ctx, fork, header.count, wide);
    if end != Some(size) {
        names.complete = false;
        if end_of(ctx, fork, header.count, !wide) == Some(size) {
            let right = if wide { "0, by the entries' sizes" } else { "not 0, by the entries' sizes" };
            ctx.raise(SF_I8COUNT, &spot(), header.i8count, right);
            return;
        }
        let found =
            end.map_or_else(|| "entries leave the inode".to_owned(), |end| format!("entries end at byte {end}"));
        ctx.raise(SF_SIZE, &spot(), found, format_args!("byte {size}"));
        return;
    }
    names.dotdot(header.parent, None, &spot);
    let mut big = u32::from(header.parent.0 > 0xffff_ffff);
    let mut offset = header_size(ctx.context());
    for dots in [1u8, 2] {
        offset += entry_size(ctx.context(), dots);
    }
    let index = usize::from(header.count).saturating_add(2).saturating_mul(8).saturating_add(8);
    let block = usize::try_from(ctx.context().dir_block_size).unwrap_or(0);
    let most = block.saturating_sub(index);
    let mut ordered = true;
    let mut hashes = [0u32; 255];
    for (i, entry) in dir_shortform::entries(ctx.context(), fork).enumerate() {
        let part = || spot().part(format_args!("list[{i}]"));
        big += u32::from(entry.ino.0 > 0xffff_ffff);
        let namelen = u8::try_from(entry.name.len()).unwrap_or(u8::MAX);
        let found = usize::from(entry.offset);
        let size = entry_size(ctx.context(), namelen);
        if found < offset && ordered {
            ordered = false;
            ctx.raise(SF_OFFSET, &part(), format_args!("{found:#x}"), format_args!("at least {offset:#x}"));
        } else if found > offset && found.saturating_add(size) > most && ordered {
            ordered = false;
            let expected = format!("{offset:#x} to {:#x}", most.saturating_sub(size));
            ctx.raise(SF_OFFSET, &part(), format_args!("{found:#x}"), expected);
        } else if ordered {
            offset = found;
        }
        offset = offset.saturating_add(size);
        names.entry(entry.name, entry.ino, entry.ftype, &part);
        let hash = hash::entry_hash(ctx.context(), entry.name);
        if hashes.iter().take(i).any(|&before| before == hash) && is_twice(ctx, fork, i, entry.name) {
            ctx.raise(NAME_TWICE, &part(), shown(entry.name), "another name");
        }
        if let Some(slot) = hashes.get_mut(i) {
            *slot = hash;
        }
    }
    if big != u32::from(header.i8count) {
        ctx.raise(SF_I8COUNT, &spot(), header.i8count, big);
    }
    if offset > most && ordered {
        let needed = offset.saturating_add(index);
        ctx.raise(SF_TOO_BIG, &spot(), format_args!("{needed} bytes"), format_args!("at most {block}"));
    }
}

/// Has one of the first `count` entries this name?
fn is_twice(ctx: &Ctx<'_>, fork: &[u8], count: usize, name: &[u8]) -> bool {
    dir_shortform::entries(ctx.context(), fork).take(count).any(|entry| same_name(ctx, entry.name, name))
}

/// Are these one name to the file system?
pub(super) fn same_name(ctx: &Ctx<'_>, a: &[u8], b: &[u8]) -> bool {
    if ctx.context().features.has_ascii_ci() {
        return a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| hash::fold_case(a) == hash::fold_case(b));
    }
    a == b
}

/// A name as a finding shows it.
pub(super) fn shown(name: &[u8]) -> String {
    format!("\"{}\"", name.escape_ascii())
}
