//! `find`: objects by what they are, and the paths of an inode number.

use super::args::number;
use super::ls::{entry_of, target_of};
use super::object;
use super::session::Session;
use super::target;
use crate::error::Result;
use crate::format::dinode::Fork;
use crate::format::dinode_view::{FLAG_NAMES, FLAG2_NAMES, Kind, Time};
use crate::report::entry::{Entry, json, shown_path};
use crate::units::Ino;
use crate::walk::tree::{self, Event, Item, Options};
use crate::walk::{Inode, Walk, group, paths, symlink, unlinked};
use std::cell::RefCell;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Arguments of `find`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Everything that is asked for must hold. A number stands for itself, +N for more, -N for less. A time is a date
(2026-11-30, 2026-11-30T08:56:25Z) or seconds since 1970 with a leading @; +TIME is later, -TIME earlier.

  xfsinspect find disk.img --kind regular --flag realtime --extents +100
  xfsinspect find disk.img /home --name '*.mp4' --size +1g
  xfsinspect find disk.img --ino 131          # the paths of an inode
  xfsinspect find disk.img --unlinked         # deleted but still open when the system stopped")]
pub struct FindArgs {
    /// Image or block device
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,
    /// Where to begin, by path or inode number (default: the root)
    #[arg(value_name = "PATH|INO")]
    pub what: Vec<OsString>,
    /// Last part of the path matches: * any bytes, ? one, [a-z] one of these, \ takes the meaning away
    #[arg(long, value_name = "GLOB")]
    pub name: Option<OsString>,
    /// regular, directory, symlink, char, block, fifo or socket; or the letter of find(1)
    #[arg(long, value_name = "KIND", value_parser = kind)]
    pub kind: Option<Kind>,
    /// Length in bytes, with s (512), k, m, g or t
    #[arg(long, value_name = "[+-]N", value_parser = range, allow_hyphen_values = true)]
    pub size: Option<Range>,
    /// Owner
    #[arg(long, value_name = "[+-]N", value_parser = range, allow_hyphen_values = true)]
    pub uid: Option<Range>,
    /// Group
    #[arg(long, value_name = "[+-]N", value_parser = range, allow_hyphen_values = true)]
    pub gid: Option<Range>,
    /// Project
    #[arg(long, value_name = "[+-]N", value_parser = range, allow_hyphen_values = true)]
    pub projid: Option<Range>,
    /// Links
    #[arg(long, value_name = "[+-]N", value_parser = range, allow_hyphen_values = true)]
    pub nlink: Option<Range>,
    /// Extents of the data fork
    #[arg(long, value_name = "[+-]N", value_parser = range, allow_hyphen_values = true)]
    pub extents: Option<Range>,
    /// This flag is set (realtime, reflink, immutable, append, nodump, …); may be given several times
    #[arg(long, value_name = "FLAG", value_parser = flag)]
    pub flag: Vec<String>,
    /// Last access
    #[arg(long, value_name = "[+-]TIME", value_parser = moment, allow_hyphen_values = true)]
    pub atime: Option<Moment>,
    /// Last change of the content
    #[arg(long, value_name = "[+-]TIME", value_parser = moment, allow_hyphen_values = true)]
    pub mtime: Option<Moment>,
    /// Last change of the inode
    #[arg(long, value_name = "[+-]TIME", value_parser = moment, allow_hyphen_values = true)]
    pub ctime: Option<Moment>,
    /// When it was made
    #[arg(long, value_name = "[+-]TIME", value_parser = moment, allow_hyphen_values = true)]
    pub crtime: Option<Moment>,
    /// This inode: all its paths
    #[arg(long, value_name = "INO", value_parser = number)]
    pub ino: Option<u64>,
    /// Inodes that are unlinked but were still open: they have no path
    #[arg(long, conflicts_with_all = ["name", "ino", "what"])]
    pub unlinked: bool,
}

/// Exactly, more, or less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Than {
    Equal,
    More,
    Less,
}

/// Numbers that will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    than: Than,
    value: u64,
}

/// Times that will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    than: Than,
    sec: i64,
}

fn sign(text: &str) -> (Than, &str) {
    match text.split_at_checked(1) {
        Some(("+", rest)) => (Than::More, rest),
        Some(("-", rest)) => (Than::Less, rest),
        _ => (Than::Equal, text),
    }
}

fn range(text: &str) -> std::result::Result<Range, String> {
    let (than, rest) = sign(text);
    Ok(Range { than, value: number(rest)? })
}

fn moment(text: &str) -> std::result::Result<Moment, String> {
    let (than, rest) = sign(text);
    let sec = match rest.strip_prefix('@') {
        Some(seconds) => seconds.parse().ok(),
        None => rest.parse::<jiff::Timestamp>().ok().map(|at| at.as_second()).or_else(|| {
            let at: jiff::civil::DateTime = rest.parse().ok()?;
            Some(at.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second())
        }),
    };
    let sec = sec.ok_or_else(|| format!("{rest:?} is no time: give 2026-11-30, 2026-11-30T08:56:25Z or @SECONDS"))?;
    Ok(Moment { than, sec })
}

fn kind(text: &str) -> std::result::Result<Kind, String> {
    Ok(match text {
        "regular" | "file" | "f" => Kind::Regular,
        "directory" | "dir" | "d" => Kind::Directory,
        "symlink" | "link" | "l" => Kind::Symlink,
        "char" | "c" => Kind::Char,
        "block" | "b" => Kind::Block,
        "fifo" | "p" => Kind::Fifo,
        "socket" | "s" => Kind::Socket,
        _ => return Err("one of regular, directory, symlink, char, block, fifo, socket".to_owned()),
    })
}

fn flag(text: &str) -> std::result::Result<String, String> {
    let names = || FLAG_NAMES.iter().map(|(_, n)| *n).chain(FLAG2_NAMES.iter().map(|(_, n)| *n));
    if names().any(|name| name == text) {
        return Ok(text.to_owned());
    }
    Err(format!("one of {}", names().collect::<Vec<_>>().join(", ")))
}

fn fits<T: Ord>(than: Than, found: &T, wanted: &T) -> bool {
    match than {
        Than::Equal => found == wanted,
        Than::More => found > wanted,
        Than::Less => found < wanted,
    }
}

impl Range {
    fn holds(self, found: impl Into<i128>) -> bool {
        fits(self.than, &found.into(), &i128::from(self.value))
    }
}

impl Moment {
    fn holds(self, found: Time) -> bool {
        fits(self.than, &found.sec, &self.sec)
    }
}

impl FindArgs {
    /// Does all that is asked of the inode hold?
    fn holds(&self, inode: Inode<'_>) -> bool {
        let number = |range: Option<Range>, found: i128| range.is_none_or(|range| range.holds(found));
        let time = |moment: Option<Moment>, found: Option<Time>| {
            moment.is_none_or(|moment| found.is_some_and(|found| moment.holds(found)))
        };
        self.kind.is_none_or(|kind| kind == inode.kind())
            && number(self.size, inode.size().into())
            && number(self.uid, inode.uid().into())
            && number(self.gid, inode.gid().into())
            && number(self.projid, inode.projid().into())
            && number(self.nlink, inode.nlink().into())
            && number(self.extents, inode.extents(Fork::Data).into())
            && self.flag.iter().all(|flag| inode.flag_names().any(|name| name == flag))
            && time(self.atime, Some(inode.atime()))
            && time(self.mtime, Some(inode.mtime()))
            && time(self.ctime, Some(inode.ctime()))
            && time(self.crtime, inode.crtime())
    }

    /// Is nothing asked but names and kinds, which directories tell?
    fn needs_inodes(&self) -> bool {
        let numbers = [self.size, self.uid, self.gid, self.projid, self.nlink, self.extents];
        let times = [self.atime, self.mtime, self.ctime, self.crtime];
        numbers.iter().any(Option::is_some) || times.iter().any(Option::is_some) || !self.flag.is_empty()
    }

    fn matches(&self, item: &Item<'_>) -> bool {
        if self.name.as_ref().is_some_and(|glob| !glob_matches(glob.as_bytes(), item.name)) {
            return false;
        }
        match item.inode {
            Some(inode) => self.holds(inode),
            None => !self.needs_inodes() && self.kind.is_none_or(|kind| item.entry_kind == Some(kind)),
        }
    }
}

/// Does a name match a pattern of `*`, `?`, `[a-z]`, `[!a-z]` and `\`? Time grows with the product of the lengths.
pub fn glob_matches(glob: &[u8], name: &[u8]) -> bool {
    let (mut rest, mut left) = (glob, name);
    let mut again: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', after @ ..] = rest {
            again = Some((after, left));
            rest = after;
            continue;
        }
        let one = left.split_first().and_then(|(&byte, more)| Some((glob_one(rest, byte)?, more)));
        match one {
            Some((after, more)) => (rest, left) = (after, more),
            None if rest.is_empty() && left.is_empty() => return true,
            None => {
                // Let the last star take one more byte.
                let Some((after, from)) = again else { return false };
                let Some((_, from)) = from.split_first() else { return false };
                again = Some((after, from));
                (rest, left) = (after, from);
            }
        }
    }
}

/// The rest of the pattern when its first part takes this byte.
fn glob_one(glob: &[u8], byte: u8) -> Option<&[u8]> {
    match glob {
        [b'?', rest @ ..] => Some(rest),
        [b'\\', literal, rest @ ..] => (*literal == byte).then_some(rest),
        [b'[', rest @ ..] => {
            let (not, set) = match rest {
                [b'!' | b'^', set @ ..] => (true, set),
                set => (false, set),
            };
            // A bracket right at the start belongs to the set.
            let Some(end) = set.iter().skip(1).position(|&b| b == b']').and_then(|at| at.checked_add(1)) else {
                return (byte == b'[').then_some(rest);
            };
            let (set, after) = set.split_at_checked(end)?;
            let mut found = false;
            let mut at = set;
            while let Some((&low, more)) = at.split_first() {
                at = more;
                let mut high = low;
                if let [b'-', to, more @ ..] = more {
                    (high, at) = (*to, more);
                }
                found |= (low..=high).contains(&byte);
            }
            (found != not).then(|| after.get(1..).unwrap_or_default())
        }
        [literal, rest @ ..] => (*literal == byte).then_some(rest),
        [] => None,
    }
}

/// Answers.
pub fn run(session: &mut Session, args: &FindArgs) -> Result<()> {
    let target = target::open(session, &args.target)?;
    session.warning_lines();
    let walk = Walk::new(&target.volume);
    let shared = RefCell::new(session);
    if let Some(ino) = args.ino {
        of_inode(&shared, &walk, args, Ino(ino));
    } else if args.unlinked {
        all_unlinked(&shared, &walk, args);
    } else {
        below(&shared, &walk, args);
    }
    target.close(shared.into_inner());
    Ok(())
}

fn print(session: &RefCell<&mut Session>, entry: &Entry<'_>) {
    let text = match (session.borrow().common.json, entry.path) {
        (true, _) => json(entry),
        (false, Some(path)) => format!("{}\n", shown_path(path)),
        (false, None) => format!("inode {} (unlinked)\n", entry.ino),
    };
    session.borrow_mut().print(&text);
}

/// Everything below the starts that matches.
fn below(session: &RefCell<&mut Session>, walk: &Walk<'_>, args: &FindArgs) {
    let as_json = session.borrow().common.json;
    let options = Options { inodes: as_json || args.needs_inodes(), sorted: true, shallow: false };
    for object in object::open_all(session, walk, &args.what) {
        let path = object.path(walk);
        let mut report = |error| session.borrow_mut().problem(&error);
        let _ = tree::for_each(walk, (object.block.ino(), &path), options, &mut report, &mut |event| {
            if let Event::Name(item) = event
                && args.matches(&item)
            {
                let target = if as_json { target_of(session, walk, &item) } else { None };
                print(session, &entry_of(walk, &item, target.as_deref()));
            }
            if session.borrow().closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
}

/// The paths of an inode, if it matches.
fn of_inode(session: &RefCell<&mut Session>, walk: &Walk<'_>, args: &FindArgs, ino: Ino) {
    let what = OsString::from_vec(ino.0.to_string().into_bytes());
    let object = match object::open(session, walk, &what) {
        Ok(object) => object,
        Err(error) => return session.borrow_mut().problem(&error),
    };
    let inode = object.block.inode();
    if !args.holds(inode) {
        return;
    }
    let found = paths::of(walk, ino, &mut |error| session.borrow_mut().problem(&error));
    let target = (inode.kind() == Kind::Symlink).then(|| symlink::target(walk, inode).ok()).flatten();
    for path in &found {
        let path = object::path_bytes(path);
        let name = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
        if args.name.as_ref().is_none_or(|glob| glob_matches(glob.as_bytes(), name)) {
            let (inode, block_size) = (Some(inode.view()), walk.geometry().block_size());
            print(session, &Entry { path: Some(&path), ino, kind: None, inode, target: target.as_deref(), block_size });
        }
    }
    if found.is_empty() {
        let text = format!("inode {ino}: no directory names it ({} links)", inode.nlink());
        session.borrow().note(&text);
    }
}

/// Unlinked inodes that match.
fn all_unlinked(session: &RefCell<&mut Session>, walk: &Walk<'_>, args: &FindArgs) {
    for ag in group::numbers(walk) {
        let mut report = |error| session.borrow_mut().problem(&error);
        let agi = match group::agi(walk, ag, &mut report) {
            Ok(agi) => agi,
            Err(error) => {
                report(error);
                continue;
            }
        };
        for item in unlinked::unlinked(walk, ag, &agi) {
            let block = match item.and_then(|(_, ino)| walk.inode(ino)) {
                Ok(block) => block,
                Err(error) => {
                    session.borrow_mut().problem(&error);
                    continue;
                }
            };
            let inode = block.inode();
            if args.holds(inode) {
                let (view, block_size) = (Some(inode.view()), walk.geometry().block_size());
                let target = (inode.kind() == Kind::Symlink).then(|| symlink::target(walk, inode).ok()).flatten();
                let entry = Entry {
                    path: None,
                    ino: inode.ino,
                    kind: None,
                    inode: view,
                    target: target.as_deref(),
                    block_size,
                };
                print(session, &entry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (glob, name) in [
            ("*", ""),
            ("*", "abc"),
            ("a*c", "abbbc"),
            ("?b?", "abc"),
            ("[a-c]x", "bx"),
            ("[!a]x", "bx"),
            ("*.mp4", "a.b.mp4"),
            ("a\\*", "a*"),
            ("[]]", "]"),
            ("[", "["),
            ("*a*b*", "xxaxxbxx"),
            ("[a-]", "-"),
        ] {
            assert!(glob_matches(glob.as_bytes(), name.as_bytes()), "{glob} {name}");
        }
        for (glob, name) in
            [("", "a"), ("?", ""), ("a*c", "abd"), ("[a-c]x", "dx"), ("[!a]x", "ax"), ("*.mp4", "mp4"), ("a\\*", "ab")]
        {
            assert!(!glob_matches(glob.as_bytes(), name.as_bytes()), "{glob} {name}");
        }
        // Many stars against a name that fits almost: must not take forever.
        assert!(!glob_matches("*a".repeat(60).as_bytes(), &[b'a'; 59]));
    }

    #[test]
    fn numbers_and_times() {
        assert_eq!(range("+1k"), Ok(Range { than: Than::More, value: 1024 }));
        assert!(range("-2").is_ok_and(|r| r.holds(1) && !r.holds(2)));
        assert!(range("x").is_err());
        assert_eq!(moment("2026-11-30").map(|m| m.sec), Ok(1_795_996_800));
        assert_eq!(moment("+@5"), Ok(Moment { than: Than::More, sec: 5 }));
        assert_eq!(moment("-1969-12-31T23:59:59Z"), Ok(Moment { than: Than::Less, sec: -1 }));
        assert!(moment("yesterday").is_err());
    }
}
