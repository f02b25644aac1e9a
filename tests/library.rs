//! The door of the library (`Xfs`) against what kernels and xfs_info said of the images.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use sha2::{Digest, Sha256};
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use xfsinspect::check::{Options, Verdict};
use xfsinspect::format::dinode_view::Kind;
use xfsinspect::source::Source;
use xfsinspect::units::ByteOffset;
use xfsinspect::walk::Walk;
use xfsinspect::walk::file::{self, Piece};
use xfsinspect::{Object, Xfs};

/// Content sums of files below this, as they were taken under a kernel.
const LARGEST: u64 = 63 << 20;

fn open(name: &str) -> Xfs {
    let mut builder = Xfs::builder(common::image(name));
    if let Some(rt) = common::find(&format!("{name}.rt")) {
        builder = builder.realtime(rt);
    }
    builder.open().unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A line with path and sum for every regular file below a directory.
fn sums(fs: &Xfs, directory: &Object<'_>, path: &[u8], out: &mut Vec<String>) {
    for entry in directory.entries() {
        let entry = entry.unwrap();
        let object = fs.inode(entry.ino).unwrap();
        let path = if path.is_empty() { entry.name } else { [path, b"/", &entry.name].concat() };
        match object.metadata().kind() {
            Kind::Directory => sums(fs, &object, &path, out),
            Kind::Regular if object.reader().unwrap().size() <= LARGEST => {
                let mut sum = Sha256::new();
                std::io::copy(&mut object.reader().unwrap(), &mut sum).unwrap();
                out.push(format!("{}\t{}", path.escape_ascii(), hex(&sum.finalize())));
            }
            _ => {}
        }
    }
}

/// Number of files and sum over their lines, from the kernel's table.
fn kernels(name: &str) -> (usize, String) {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("testimages/expected/kernel.tsv");
    let table = fs::read_to_string(table).unwrap();
    let row = table.lines().find(|line| line.starts_with(&format!("{name}\tsha256\t"))).unwrap();
    let fields: Vec<&str> = row.split('\t').collect();
    (fields[2].parse().unwrap(), fields[3].to_owned())
}

#[test]
fn contents_are_those_that_a_kernel_read() {
    for name in ["v4-512b", "v5-rt-28k"] {
        let fs = open(name);
        let mut lines = Vec::new();
        sums(&fs, &fs.root().unwrap(), b"", &mut lines);
        lines.sort();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        assert_eq!((lines.len(), hex(&Sha256::digest(text))), kernels(name), "{name}");
    }
}

#[test]
fn the_report_is_that_of_xfs_info() {
    for name in ["v5-default", "v4-512b", "v5-zoned"] {
        let right = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testimages/expected/{name}.info"));
        let right = fs::read_to_string(right).unwrap();
        // The door knows no names of devices.
        assert_eq!(open(name).info(), right.replacen("meta-data=data", "meta-data=    ", 1), "{name}");
    }
}

#[test]
fn seeking_reads_the_same_bytes() {
    let fs = open("v5-rt-28k");
    let file = fs.path("dirs/hardlink_b").unwrap();
    let mut reader = file.reader().unwrap();
    assert_eq!(reader.size(), 60001);
    let mut whole = Vec::new();
    reader.read_to_end(&mut whole).unwrap();
    let tail = i64::try_from(whole.len() / 3).unwrap();
    reader.seek(SeekFrom::End(-tail)).unwrap();
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, whole[whole.len() - whole.len() / 3..]);
    assert!(reader.seek(SeekFrom::Current(-tail * 4)).is_err());
}

#[test]
fn sound_and_damaged_are_told_apart() {
    let verdict = |name| open(name).check(&Options::default()).summary.verdict;
    assert_eq!(verdict("v5-rt-28k"), Verdict::Clean);
    assert_eq!(verdict("c18-nextents-mismatch"), Verdict::Damaged);
}

#[test]
fn paths_and_limits() {
    let fs = open("v5-default");
    let root = fs.root().unwrap();
    let name = root.entries().next().unwrap().unwrap().name;
    let object = fs.path(&name).unwrap();
    assert_eq!(object.paths().unwrap(), [name]);
    assert!(fs.path("no/such/name").is_err());
    let limited = Xfs::builder(common::image("v5-default")).max_steps(1).open().unwrap();
    assert!(limited.root().is_ok() && limited.path(&object.paths().unwrap()[0]).is_err());
}

/// A device with a part that cannot be read.
struct Bad(Arc<dyn Source>, std::ops::Range<u64>);

impl Source for Bad {
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> std::io::Result<()> {
        if offset.0 < self.1.end && self.1.start < offset.0 + buf.len() as u64 {
            return Err(std::io::Error::from_raw_os_error(5));
        }
        self.0.read_at(offset, buf)
    }
}

/// What is before a block that cannot be read is delivered, however much was asked for at once.
#[test]
fn content_ends_at_the_block_that_cannot_be_read() {
    let fs = open("v4-512b");
    let object = fs.path("dirs/hardlink_b").unwrap();
    let (extent, place) = object.extents().next().unwrap().unwrap();
    assert!(extent.blockcount > 20, "{extent:?}");
    let mut whole = Vec::new();
    object.reader().unwrap().read_to_end(&mut whole).unwrap();
    let bad = place.unwrap().byte.0 + 20 * 512 + 100;
    let source = Bad(Arc::clone(&fs.volume().devices().data), bad..bad + 1);
    let fs = Xfs::from_source(source).open().unwrap();
    let object = fs.path("dirs/hardlink_b").unwrap();
    let walk = Walk::new(fs.volume());
    let mut content = file::content(&walk, object.metadata()).unwrap();
    let mut read = Vec::new();
    let error = loop {
        match content.next_piece().unwrap() {
            Ok(Piece::Data { bytes, .. }) => read.extend_from_slice(bytes),
            Ok(Piece::Zeros { .. }) => panic!("no holes here"),
            Err(error) => break error.to_string(),
        }
    };
    assert_eq!(read, whole[..20 * 512]);
    assert!(error.contains(&format!("at byte {} of the data device: cannot read 512 bytes", bad - 100)), "{error}");
}
