//! What the program says, in sorted lines that can be compared.

use crate::images::{Image, bytes_of, lines, run};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Bytes as text that tells all of them apart.
pub fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// A regular file: a path, its inode, its length.
pub struct File {
    pub path: Vec<u8>,
    pub ino: String,
    pub size: u64,
}

/// The regular files of an image.
pub fn files(image: &Image) -> Vec<File> {
    lines(image, &["find", "--json", "--kind", "regular"], &[])
        .iter()
        .map(|line| File {
            path: bytes_of(line, "path").expect("path"),
            ino: line["ino"].to_string(),
            size: line["size_bytes"].as_u64().expect("size"),
        })
        .collect()
}

/// Path, inode, kind, mode, uid, gid, links, size, blocks, mtime, target: a line for every name.
pub fn tree(image: &Image) -> Vec<String> {
    let mut out: Vec<String> = lines(image, &["ls", "-R", "--json"], &[])
        .iter()
        .map(|line| {
            assert_eq!(line["type"], "entry", "{line}");
            let letter = match line["kind"].as_str().expect("kind") {
                "regular" => "f",
                "directory" => "d",
                "symlink" => "l",
                "char" => "c",
                "block" => "b",
                "fifo" => "p",
                "socket" => "s",
                other => panic!("{other}"),
            };
            let mode = u32::from_str_radix(line["mode_octal"].as_str().expect("mode"), 8).expect("octal");
            let mode = if mode & 0o7777 == 0 { "0".to_owned() } else { format!("0{:o}", mode & 0o7777) };
            let mut fields = vec![shown(&bytes_of(line, "path").expect("path"))];
            fields.extend([line["ino"].to_string(), letter.to_owned(), mode]);
            fields.extend(["uid", "gid", "nlink", "size_bytes", "blocks_512"].map(|name| line[name].to_string()));
            fields.push(format!("{}.{:09}0", line["mtime_sec"], line["mtime_nsec"].as_u64().expect("mtime")));
            fields.push(shown(&bytes_of(line, "target").unwrap_or_default()));
            fields.join("\t")
        })
        .collect();
    out.sort();
    out
}

/// Sum of the content and path of every file below 64 MiB.
pub fn sums(image: &Image) -> Vec<String> {
    let files: Vec<File> = files(image).into_iter().filter(|file| file.size <= 63 << 20).collect();
    let mut out = Vec::new();
    for part in files.chunks(500) {
        let numbers: Vec<OsString> = part.iter().map(|file| OsString::from(&file.ino)).collect();
        let printed = run(image, &["cat"], &numbers);
        assert_eq!(printed.status.code(), Some(0), "{}", String::from_utf8_lossy(&printed.stderr));
        let mut rest = printed.stdout.as_slice();
        for file in part {
            let (content, more) = rest.split_at(usize::try_from(file.size).expect("size").min(rest.len()));
            rest = more;
            let sum: String = Sha256::digest(content).iter().map(|b| format!("{b:02x}")).collect();
            out.push(format!("{}\t{sum}", shown(&file.path)));
        }
        assert!(rest.is_empty(), "more bytes than the files have");
    }
    out.sort();
    out
}

/// Path, name and value of every attribute.
pub fn attributes(image: &Image) -> Vec<String> {
    let mut out: Vec<String> = lines(image, &["xattr", "-R", "--json"], &[])
        .iter()
        .map(|line| {
            assert_eq!(line["type"], "xattr", "{line}");
            let path = shown(&bytes_of(line, "path").expect("path"));
            let name = shown(&bytes_of(line, "name").expect("name"));
            format!("{path}\t{name}\t{}", line["value_hex"].as_str().expect("value"))
        })
        .collect();
    out.sort();
    out
}

/// Offset, place, length, flags (0x800 unwritten, 0x2000 shared); what lies side by side and is alike is one.
pub type Extent = (u64, u64, u64, u64);

/// Adds an extent, to the last one where both are alike and side by side.
pub fn merge(list: &mut Vec<Extent>, next: Extent) {
    if let Some(last) = list.last_mut()
        && (last.0 + last.2, last.1 + last.2, last.3) == (next.0, next.1, next.3)
    {
        last.2 += next.2;
    } else {
        list.push(next);
    }
}

/// The extents of every file: offset:place:length:flags.
pub fn extents(image: &Image) -> Vec<String> {
    let files = files(image);
    // A file with several names is mapped once.
    let numbers: BTreeMap<&str, ()> = files.iter().map(|file| (file.ino.as_str(), ())).collect();
    let numbers: Vec<OsString> = numbers.into_keys().map(OsString::from).collect();
    let mut found: BTreeMap<String, Vec<Extent>> = BTreeMap::new();
    for part in numbers.chunks(1000) {
        for line in lines(image, &["map", "--json"], part) {
            assert_eq!((&line["type"], &line["fork"]), (&"extent".into(), &"data".into()));
            let number = |name: &str| line[name].as_u64().expect("a number");
            let unwritten = line["state"] == "unwritten";
            let shared = line["shared"].as_bool().expect("known");
            let flags = u64::from(unwritten) << 11 | u64::from(shared) << 13;
            let extent = (number("offset_bytes"), number("start_bytes"), number("length_bytes"), flags);
            merge(found.entry(line["ino"].to_string()).or_default(), extent);
        }
    }
    let line = |file: &File| extents_line(&file.path, found.get(&file.ino).map_or(&[][..], Vec::as_slice));
    let mut out: Vec<String> = files.iter().map(line).collect();
    out.sort();
    out
}

/// A path with its extents.
pub fn extents_line(path: &[u8], extents: &[Extent]) -> String {
    let list: Vec<String> = extents.iter().map(|e| format!("{}:{}:{}:{:x}", e.0, e.1, e.2, e.3)).collect();
    format!("{}\t{}", shown(path), list.join(" "))
}

/// The tables of xfs_bmap for the files of some directories, named by path: a line for every line of a table.
pub fn tables(image: &Image) -> Vec<String> {
    let files = files(image);
    let wanted = files.iter().filter(|file| file.path.starts_with(b"files/") || file.path.starts_with(b"rt/"));
    let mut out = Vec::new();
    for file in wanted {
        let path = String::from_utf8(file.path.clone()).expect("UTF-8");
        let printed = run(image, &["map"], &[OsString::from(format!("/{path}"))]);
        let text = String::from_utf8(printed.stdout).expect("UTF-8");
        out.extend(text.lines().enumerate().map(|(i, line)| format!("{path}\t{i:06}\t{line}")));
    }
    out.sort();
    out
}
