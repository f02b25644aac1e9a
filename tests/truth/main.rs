//! What the program says of images against what a kernel said of them when they were mounted.
//!
//! A folder with such images has, per image, `NAME/data.img.zst` (`rt.img.zst`, `log.img.zst`) and `NAME/truth/` with
//! `tree`, `sha256`, `xattr`, `fiemap` and `bmap`. `testimages/` is looked through, and the folder that the environment
//! variable XFSINSPECT_CORPUS names.

mod images;

use images::{Image, bytes_of, images, run};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Differences of one kind of answer, at most a few of them shown.
struct Differences {
    what: String,
    list: Vec<String>,
    count: usize,
}

impl Differences {
    fn new(image: &Image, what: &str) -> Self {
        Self { what: format!("{} {what}", image.name), list: Vec::new(), count: 0 }
    }
    fn add(&mut self, text: String) {
        self.count += 1;
        if self.list.len() < 8 {
            self.list.push(text);
        }
    }
    fn compare<T: PartialEq + std::fmt::Debug>(&mut self, key: &str, ours: Option<&T>, truth: Option<&T>) {
        if ours != truth {
            self.add(format!("{key}\n     ours {ours:?}\n    truth {truth:?}"));
        }
    }
    fn end(self, compared: usize) -> usize {
        println!("{}: {compared} compared, {} differ", self.what, self.count);
        for line in &self.list {
            println!("  {line}");
        }
        self.count
    }
}

/// Runs a comparison on every image that has such a truth.
fn each_image(truth: &str, compare: impl Fn(&Image, Vec<u8>) -> usize) {
    let mut wrong = 0;
    for image in images() {
        if let Ok(bytes) = std::fs::read(image.truth.join(truth)) {
            wrong += compare(&image, bytes);
        }
    }
    assert_eq!(wrong, 0, "answers that differ from the kernel's");
}

fn json_lines(output: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(output).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON object per line")).collect()
}

/// The objects of truth/tree: path to its fields, as written there.
fn tree(truth: &[u8]) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for record in truth.split(|&b| b == 0).filter(|r| !r.is_empty()) {
        // The path may hold tabs: ten fields from the right, whatever is left is the path.
        let mut fields: Vec<Vec<u8>> = record.rsplitn(11, |&b| b == b'\t').map(<[u8]>::to_vec).collect();
        let path = fields.pop().expect("path");
        fields.reverse();
        found.insert(path, fields);
    }
    found
}

/// The inode number of a path, as a word for the command line.
fn number_of(tree: &BTreeMap<Vec<u8>, Vec<Vec<u8>>>, path: &[u8]) -> OsString {
    OsString::from_vec(tree[path][0].clone())
}

#[test]
fn ls_equals_the_tree() {
    each_image("tree", |image, truth| {
        let truth = tree(&truth);
        let out = run(image, &["ls", "-R", "--json"], &[]);
        let mut differences = Differences::new(image, "tree");
        let mut ours = BTreeMap::new();
        for line in json_lines(&out.stdout) {
            assert_eq!(line["type"], "entry", "{line}");
            let number = |name: &str| line[name].to_string().into_bytes();
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
            let mode = match mode & 0o7777 {
                0 => "0".to_owned(),
                mode => format!("0{mode:o}"),
            };
            let mtime = format!("{}.{:09}0", line["mtime_sec"], line["mtime_nsec"].as_u64().expect("mtime"));
            let fields = vec![
                number("ino"),
                letter.as_bytes().to_vec(),
                mode.into_bytes(),
                number("uid"),
                number("gid"),
                number("nlink"),
                number("size_bytes"),
                number("blocks_512"),
                mtime.into_bytes(),
                bytes_of(&line, "target").unwrap_or_default(),
            ];
            let before = ours.insert(bytes_of(&line, "path").expect("path"), fields);
            assert!(before.is_none(), "a path comes twice: {line}");
        }
        let text = |fields: Option<&Vec<Vec<u8>>>| {
            fields.map(|f| f.iter().map(|f| String::from_utf8_lossy(f).into_owned()).collect::<Vec<_>>())
        };
        let all: BTreeSet<_> = ours.keys().chain(truth.keys()).cloned().collect();
        for path in &all {
            let shown = String::from_utf8_lossy(path);
            differences.compare(&shown, text(ours.get(path)).as_ref(), text(truth.get(path)).as_ref());
        }
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        differences.end(all.len())
    });
}

#[test]
fn cat_has_the_sums() {
    each_image("sha256", |image, truth| {
        let sizes = tree(&std::fs::read(image.truth.join("tree")).expect("tree"));
        let mut differences = Differences::new(image, "sha256");
        let records: Vec<(String, Vec<u8>)> = truth
            .split(|&b| b == 0)
            .filter(|record| !record.is_empty())
            .map(|record| (String::from_utf8_lossy(&record[..64]).into_owned(), record[68..].to_vec()))
            .collect();
        for part in records.chunks(500) {
            let numbers: Vec<OsString> = part.iter().map(|(_, path)| number_of(&sizes, path)).collect();
            let out = run(image, &["cat"], &numbers);
            let mut rest = out.stdout.as_slice();
            for (sum, path) in part {
                let size: usize = String::from_utf8_lossy(&sizes[path][6]).parse().expect("size");
                let (content, more) = rest.split_at(size.min(rest.len()));
                rest = more;
                let ours: String = Sha256::digest(content).iter().map(|b| format!("{b:02x}")).collect();
                differences.compare(&String::from_utf8_lossy(path), Some(&ours), Some(sum));
            }
            assert!(rest.is_empty(), "more bytes than the files have");
            assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        }
        differences.end(records.len())
    });
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

#[test]
fn xattr_equals_getfattr() {
    each_image("xattr", |image, truth| {
        let mut right = BTreeSet::new();
        let mut file = Vec::new();
        for line in truth.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
            if let Some(name) = line.strip_prefix(b"# file: ") {
                file = unescape_octal(name);
                if file == b"." {
                    file.clear();
                }
                continue;
            }
            let at = line.iter().position(|&b| b == b'=').unwrap_or(line.len());
            let name = String::from_utf8_lossy(&unescape_octal(&line[..at])).into_owned();
            // The kernel also lists ACLs in their disk form: --all shows that.
            if name.starts_with("trusted.SGI_ACL_") {
                continue;
            }
            let value = line.get(at + 1..).unwrap_or_default();
            let value = String::from_utf8_lossy(value.strip_prefix(b"0x").unwrap_or(value)).into_owned();
            right.insert((file.clone(), name, value.trim_matches('"').to_owned()));
        }
        let out = run(image, &["xattr", "-R", "--json"], &[]);
        let ours: BTreeSet<_> = json_lines(&out.stdout)
            .iter()
            .map(|line| {
                assert_eq!(line["type"], "xattr", "{line}");
                let text = |name: &str| line[name].as_str().expect("text").to_owned();
                (bytes_of(line, "path").expect("path"), text("name"), text("value_hex"))
            })
            .collect();
        let mut differences = Differences::new(image, "xattr");
        for only in ours.symmetric_difference(&right) {
            let who = if ours.contains(only) { "ours" } else { "truth" };
            differences.add(format!("only {who}: {:?} {} {}", String::from_utf8_lossy(&only.0), only.1, only.2));
        }
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        differences.end(right.len())
    });
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

/// Offset, place, length, flags (0x800 unwritten, 0x2000 shared); what lies side by side and is alike is one.
type Extent = (u64, u64, u64, u64);

fn merge(list: &mut Vec<Extent>, next: Extent) {
    if let Some(last) = list.last_mut()
        && (last.0 + last.2, last.1 + last.2, last.3) == (next.0, next.1, next.3)
    {
        last.2 += next.2;
    } else {
        list.push(next);
    }
}

#[test]
fn map_equals_fiemap() {
    each_image("fiemap", |image, truth| {
        let inos = tree(&std::fs::read(image.truth.join("tree")).expect("tree"));
        let text = String::from_utf8(truth).expect("UTF-8");
        let mut right: BTreeMap<Vec<u8>, Vec<Extent>> = BTreeMap::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let (name, count) = line.rsplit_once('\t').expect("name and count");
            let mut list = Vec::new();
            for _ in 0..count.parse::<usize>().expect("count") {
                let words: Vec<&str> = lines.next().expect("an extent").split(' ').collect();
                let number = |at: usize| words[at].parse::<u64>().expect("a number");
                let flags = u64::from_str_radix(words[3], 16).expect("flags") & 0x2800;
                merge(&mut list, (number(0), number(1), number(2), flags));
            }
            right.insert(python_literal(name), list);
        }
        let mut differences = Differences::new(image, "fiemap");
        // A file with several names is mapped once.
        let paths: BTreeMap<&Vec<u8>, &Vec<u8>> = right.keys().map(|path| (&inos[path][0], path)).collect();
        let paths: Vec<&Vec<u8>> = paths.into_values().collect();
        for part in paths.chunks(1000) {
            let numbers: Vec<OsString> = part.iter().map(|path| number_of(&inos, path)).collect();
            let out = run(image, &["map", "--json"], &numbers);
            let mut ours: BTreeMap<String, Vec<Extent>> = BTreeMap::new();
            for line in json_lines(&out.stdout) {
                let number = |name: &str| line[name].as_u64().expect("a number");
                let unwritten = line["state"] == "unwritten";
                let shared = line["shared"].as_bool().expect("known");
                let flags = u64::from(unwritten) << 11 | u64::from(shared) << 13;
                let extent = (number("offset_bytes"), number("start_bytes"), number("length_bytes"), flags);
                merge(ours.entry(line["ino"].to_string()).or_default(), extent);
            }
            for path in part {
                let ours = ours.get(&*String::from_utf8_lossy(&inos[*path][0])).cloned().unwrap_or_default();
                differences.compare(&String::from_utf8_lossy(path), Some(&ours), Some(&right[*path]));
            }
            assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        }
        differences.end(right.len())
    });
}

#[test]
fn map_writes_the_table_of_xfs_bmap() {
    each_image("bmap", |image, truth| {
        let text = String::from_utf8(truth).expect("UTF-8");
        let mut differences = Differences::new(image, "bmap");
        let mut right: Vec<(&str, String)> = Vec::new();
        for line in text.lines() {
            match (line.strip_prefix("== "), right.last_mut()) {
                (Some(name), _) => right.push((name, String::new())),
                (None, Some((_, table))) => {
                    table.push_str(line);
                    table.push('\n');
                }
                (None, None) => panic!("{line}"),
            }
        }
        let words: Vec<OsString> = right.iter().map(|(name, _)| OsString::from(format!("/{name}"))).collect();
        let out = run(image, &["map"], &words);
        let ours = String::from_utf8(out.stdout).expect("UTF-8");
        let mut rest = ours.as_str();
        for (name, table) in &right {
            let heading = format!("{name}:\n");
            rest = rest.strip_prefix(heading.as_str()).unwrap_or(rest);
            let end = rest.find("stripe width\n    0000001").map_or(rest.len(), |at| {
                at + rest[at..].match_indices('\n').nth(1).map_or(rest.len() - at, |(n, _)| n + 1)
            });
            let (one, more) = rest.split_at(end);
            rest = more;
            if one != table {
                let first = one.lines().zip(table.lines()).find(|(a, b)| a != b);
                differences.add(format!("{name}: {first:?}"));
            }
        }
        differences.end(right.len())
    });
}
