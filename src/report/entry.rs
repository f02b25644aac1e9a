//! Names and inodes in lists: the line of `ls -l`, the JSON line `entry`.

use super::line::Line;
use super::text::escaped;
use crate::format::dinode_view::{Dinode, Kind, Time};
use crate::units::{Blocks, Ino};
use std::fmt::Write;

/// A name and what it leads to.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Path without leading slash; `None` for an inode without a name.
    pub path: Option<&'a [u8]>,
    /// Inode.
    pub ino: Ino,
    /// What it is, where only the directory tells.
    pub kind: Option<Kind>,
    /// The inode, where it could be read.
    pub inode: Option<Dinode<'a>>,
    /// Target of a symbolic link, where it could be read.
    pub target: Option<&'a [u8]>,
    /// Bytes of a block.
    pub block_size: u64,
}

/// A path in text: escaped, `/` for the root.
pub fn shown_path(path: &[u8]) -> String {
    if path.is_empty() { "/".to_owned() } else { escaped(path) }
}

/// The JSON line `entry`.
pub fn json(entry: &Entry<'_>) -> String {
    let inode = entry.inode.as_ref();
    let kind = inode.map(|inode| inode.kind()).or(entry.kind);
    let mut line = Line::new("entry").bytes("path", entry.path).number("ino", entry.ino);
    line = match kind {
        Some(kind) => line.plain("kind", kind.name()),
        None => line.bytes("kind", None),
    };
    line = match inode {
        Some(inode) => line.plain("mode_octal", format_args!("{:o}", inode.mode())),
        None => line.bytes("mode_octal", None),
    };
    line.maybe("uid", inode.map(|i| i.uid()))
        .maybe("gid", inode.map(|i| i.gid()))
        .maybe("nlink", inode.map(|i| i.nlink()))
        .maybe("size_bytes", inode.map(|i| i.size()))
        .maybe("blocks_512", inode.map(|i| blocks_512(i.nblocks(), entry.block_size)))
        .maybe("mtime_sec", inode.map(|i| i.mtime().sec))
        .maybe("mtime_nsec", inode.map(|i| i.mtime().nsec))
        .bytes("target", entry.target)
        .finish()
}

/// Blocks in units of 512 bytes; as many as 64 bits hold where the disk says more.
pub fn blocks_512(blocks: Blocks, block_size: u64) -> u64 {
    blocks.0.saturating_mul(block_size / 512)
}

/// Type and permissions as `ls -l` writes them: `-rw-r--r--`, `drwxrwxrwt`.
pub fn mode_text(mode: u16) -> String {
    let mut out = String::with_capacity(10);
    out.push(Kind::of_mode(mode).letter());
    for (shift, special, letter) in [(6u16, 0o4000u16, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = mode >> shift;
        out.push(if bits & 4 != 0 { 'r' } else { '-' });
        out.push(if bits & 2 != 0 { 'w' } else { '-' });
        out.push(match (mode & special != 0, bits & 1 != 0) {
            (true, true) => letter,
            (true, false) => letter.to_ascii_uppercase(),
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    out
}

/// A time in UTC: `2026-11-30 08:56:25`; the seconds where no calendar goes.
pub fn time_text(time: Time) -> String {
    match jiff::Timestamp::from_second(time.sec) {
        Ok(at) => at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => format!("@{}", time.sec),
    }
}

/// A line of text: the name, and before it what the inode tells where `long`.
pub fn line(entry: &Entry<'_>, name: &[u8], long: bool) -> String {
    let mut out = String::new();
    if long {
        match &entry.inode {
            Some(inode) => {
                let _ = write!(
                    out,
                    "{} {:>3} {:>5} {:>5} ",
                    mode_text(inode.mode()),
                    inode.nlink(),
                    inode.uid(),
                    inode.gid()
                );
                let _ = match (inode.kind(), inode.device_number()) {
                    (Kind::Char | Kind::Block, Some((major, minor))) => {
                        write!(out, "{:>12}", format!("{major}, {minor}"))
                    }
                    _ => write!(out, "{:>12}", inode.size()),
                };
                let _ = write!(out, " {} ", time_text(inode.mtime()));
            }
            None => {
                let letter = entry.kind.map_or('?', Kind::letter);
                let _ = write!(out, "{letter}?????????   ?     ?     ?            ? {:<19} ", "?");
            }
        }
    }
    out.push_str(&shown_path(name));
    if let (true, Some(target)) = (long, entry.target) {
        out.push_str(" -> ");
        out.push_str(&escaped(target));
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_as_ls_writes_them() {
        assert_eq!(mode_text(0o100_644), "-rw-r--r--");
        assert_eq!(mode_text(0o041_777), "drwxrwxrwt");
        assert_eq!(mode_text(0o104_711), "-rws--x--x");
        assert_eq!(mode_text(0o102_640), "-rw-r-S---");
        assert_eq!(mode_text(0o120_777), "lrwxrwxrwx");
    }

    #[test]
    fn times() {
        assert_eq!(time_text(Time { sec: 2_214_131_696, nsec: 0 }), "2040-02-29 12:34:56");
        assert_eq!(time_text(Time { sec: i64::MIN, nsec: 0 }), format!("@{}", i64::MIN));
    }
}
