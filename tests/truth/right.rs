//! What a kernel said, in the same lines: from the files of a folder `truth/`.
//!
//! `tree`: NUL-terminated records of find(1): path, inode, kind, mode, uid, gid, links, size, blocks, mtime, target,
//! between tabs. `sha256`: of sha256sum -z. `xattr`: of getfattr -R -d -m - -e hex. `fiemap`: a line per file, its name
//! as a Python literal and the number of extents, then a line per extent. `bmap`: `== path`, then xfs_bmap -elpvv.

use crate::ours::{Extent, extents_line, merge, shown};
use std::path::Path;

fn read(folder: &Path, name: &str) -> Option<Vec<u8>> {
    std::fs::read(folder.join(name)).ok()
}

pub fn tree(folder: &Path) -> Option<Vec<String>> {
    let bytes = read(folder, "tree")?;
    let mut out = Vec::new();
    for record in bytes.split(|&b| b == 0).filter(|r| !r.is_empty()) {
        // The path may hold tabs: ten fields from the right, whatever is left is the path.
        let mut fields: Vec<String> = record.rsplitn(11, |&b| b == b'\t').map(shown).collect();
        fields.reverse();
        out.push(fields.join("\t"));
    }
    out.sort();
    Some(out)
}

pub fn sums(folder: &Path) -> Option<Vec<String>> {
    let bytes = read(folder, "sha256")?;
    let records = bytes.split(|&b| b == 0).filter(|r| !r.is_empty());
    // 64 digits, two spaces, "./", the path.
    let mut out: Vec<String> = records.map(|r| format!("{}\t{}", shown(&r[68..]), shown(&r[..64]))).collect();
    out.sort();
    Some(out)
}

/// Undoes the escapes of getfattr: `\ooo`.
fn unescape_octal(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let code = text.get(at + 1..at + 4).filter(|_| text[at] == b'\\');
        match code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 4;
            }
            None => {
                out.push(text[at]);
                at += 1;
            }
        }
    }
    out
}

pub fn attributes(folder: &Path) -> Option<Vec<String>> {
    let bytes = read(folder, "xattr")?;
    let mut out = Vec::new();
    let mut file = Vec::new();
    for line in bytes.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix(b"# file: ") {
            file = unescape_octal(name);
            if file == b"." {
                file.clear();
            }
            continue;
        }
        let at = line.iter().position(|&b| b == b'=').unwrap_or(line.len());
        let name = unescape_octal(&line[..at]);
        // The kernel also lists ACLs in their disk form; the program does with --all.
        if name.starts_with(b"trusted.SGI_ACL_") {
            continue;
        }
        let value = line.get(at + 1..).unwrap_or_default();
        let value = shown(value.strip_prefix(b"0x").unwrap_or(value));
        out.push(format!("{}\t{}\t{}", shown(&file), shown(&name), value.trim_matches('"')));
    }
    out.sort();
    Some(out)
}

/// A string as Python's repr writes it, as bytes.
fn python_literal(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut chars = text[1..text.len() - 1].chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.extend(c.to_string().bytes());
            continue;
        }
        let kind = chars.next().expect("an escape");
        let mut code = |n: usize| {
            let digits: String = chars.by_ref().take(n).collect();
            u32::from_str_radix(&digits, 16).expect("hex")
        };
        let c = match kind {
            'n' => u32::from(b'\n'),
            't' => u32::from(b'\t'),
            'r' => u32::from(b'\r'),
            'x' => code(2),
            'u' => code(4),
            'U' => code(8),
            other => u32::from(other),
        };
        match c {
            // Bytes that are no UTF-8 stand as lone surrogates.
            0xdc80..=0xdcff => out.push(u8::try_from(c - 0xdc00).expect("a byte")),
            c => out.extend(char::from_u32(c).expect("a character").to_string().bytes()),
        }
    }
    out
}

pub fn extents(folder: &Path) -> Option<Vec<String>> {
    let text = String::from_utf8(read(folder, "fiemap")?).expect("UTF-8");
    let mut out = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let (name, count) = line.rsplit_once('\t').expect("name and count");
        let mut list: Vec<Extent> = Vec::new();
        for _ in 0..count.parse::<usize>().expect("count") {
            let words: Vec<&str> = lines.next().expect("an extent").split(' ').collect();
            let number = |at: usize| words[at].parse::<u64>().expect("a number");
            let flags = u64::from_str_radix(words[3], 16).expect("flags") & 0x2800;
            merge(&mut list, (number(0), number(1), number(2), flags));
        }
        out.push(extents_line(&python_literal(name), &list));
    }
    out.sort();
    Some(out)
}

pub fn tables(folder: &Path) -> Option<Vec<String>> {
    let text = String::from_utf8(read(folder, "bmap")?).expect("UTF-8");
    let (mut out, mut name, mut count) = (Vec::new(), "", 0);
    for line in text.lines() {
        match line.strip_prefix("== ") {
            Some(next) => (name, count) = (next, 0),
            None => {
                out.push(format!("{name}\t{count:06}\t{line}"));
                count += 1;
            }
        }
    }
    out.sort();
    Some(out)
}
