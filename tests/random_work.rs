//! File systems that the running kernel fills with random work and unmounts: `check` finds nothing in them.
//! Needs root, loop mounts, and mkfs.xfs 7 or newer; skipped aloud without.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use rustix::fs::{CWD, FallocateFlags, FileType, Mode, XattrFlags};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// mkfs.xfs's options, and mount options.
const SHAPES: &[(&str, &str)] = &[
    ("", ""),
    ("-b size=1024 -n size=4096 -m rmapbt=1,reflink=1", ""),
    ("-m rmapbt=0,reflink=0,finobt=0,inobtcount=0,bigtime=0 -i sparse=0,nrext64=0,exchange=0 -n parent=0", ""),
    ("-i size=2048 -n size=16384 -d agcount=5", ""),
    ("-s size=4096 -d su=64k,sw=4", ""),
    ("-n version=ci", ""),
    ("-m metadir=1", "uquota,gquota,pquota"),
    ("-b size=2048 -s size=2048 -n parent=1", "usrquota,prjquota"),
    ("-b size=16384", ""),
];

/// Operations for each shape.
const WORK: u32 = 4000;

/// xorshift: the same work in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// A mounted image; unmounted when dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn new(image: &Path, point: &Path, options: &str) -> Option<Self> {
        let options = if options.is_empty() { "loop".to_owned() } else { format!("loop,{options}") };
        let mount = Command::new("mount").args(["-t", "xfs", "-o", &options]).args([image, point]).output().ok()?;
        if !mount.status.success() {
            common::skip(&format!("mount -o {options}: {}", String::from_utf8_lossy(&mount.stderr).trim()));
            return None;
        }
        Some(Self(point.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let done = Command::new("umount").arg(&self.0).status();
        assert!(done.is_ok_and(|status| status.success()) || std::thread::panicking(), "umount {}", self.0.display());
    }
}

/// A name of some length, in one of few directories.
fn path(root: &Path, random: &mut Random) -> PathBuf {
    let mut path = root.to_owned();
    for _ in 0..random.below(3) {
        path.push(format!("dir{}", random.below(6)));
    }
    let long = match random.below(8) {
        0 => "a-long-name-that-fills-blocks-of-directories-sooner-than-short-ones-do-".repeat(3),
        1 => "\u{e9}t\u{e9}".to_owned(),
        _ => String::new(),
    };
    path.join(format!("{long}f{}", random.below(900)))
}

/// One operation. Those that fail (no such file, a directory in the way, no space) are part of it.
fn step(root: &Path, random: &mut Random) {
    let (one, other) = (path(root, random), path(root, random));
    let bytes = vec![b'x'; random.below(20_000) as usize];
    let _ = match random.below(16) {
        0..=3 => fs::write(&one, &bytes),
        4 => {
            // In pieces, with holes between.
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(&one);
            file.and_then(|file| (0..8).try_for_each(|_| file.write_at(&bytes, random.below(1 << 23)).map(|_| ())))
        }
        5 => fs::remove_file(&one),
        6 => fs::rename(&one, &other),
        7 => fs::hard_link(&one, &other),
        8 => std::os::unix::fs::symlink("t".repeat(1 + random.below(1000) as usize), &one),
        9 => fs::create_dir_all(root.join(format!(
            "dir{}/dir{}/dir{}",
            random.below(6),
            random.below(6),
            random.below(6)
        ))),
        10 => OpenOptions::new().write(true).open(&one).and_then(|file| file.set_len(random.below(1 << 22))),
        11 => File::create(&one).and_then(|file| {
            rustix::fs::fallocate(&file, FallocateFlags::empty(), random.below(1 << 20), 1 + random.below(1 << 20))?;
            Ok(())
        }),
        12 | 13 => {
            // From a few bytes in the inode to a value in blocks of its own.
            let name = format!("{}.{}", ["user", "trusted", "security"][random.below(3) as usize], random.below(60));
            let value = vec![b'v'; [8, 60, 700, 3000, 30_000][random.below(5) as usize]];
            rustix::fs::setxattr(&one, name, &value, XattrFlags::empty()).map_err(Into::into)
        }
        14 => File::open(&one).and_then(|from| {
            let to = File::create(&other)?;
            rustix::fs::ioctl_ficlone(&to, &from)?;
            Ok(())
        }),
        _ => {
            // Under names of their own: nobody opens them, which would wait for a reader.
            let special = root.join(format!("special{}", random.below(40)));
            let kinds = [FileType::Fifo, FileType::Socket, FileType::CharacterDevice];
            let _ = fs::remove_file(&special);
            rustix::fs::mknodat(CWD, &special, kinds[random.below(3) as usize], Mode::from(0o644), 259)
                .map_err(Into::into)
        }
    };
}

/// A directory of many names, and holes in it.
fn names(root: &Path) {
    let folder = root.join("many");
    fs::create_dir_all(&folder).unwrap();
    for i in 0..1500 {
        File::create(folder.join(format!("a_rather_long_file_name_number_{i:06}"))).unwrap();
    }
    for i in (0..1500).step_by(3) {
        fs::remove_file(folder.join(format!("a_rather_long_file_name_number_{i:06}"))).unwrap();
    }
}

/// A file of many extents.
fn fragments(root: &Path) {
    let mut file = File::create(root.join("fragments")).unwrap();
    for i in 0..600 {
        file.write_at(b"fragment", i * 2 * 65_536).unwrap();
    }
    file.flush().unwrap();
}

#[test]
fn what_the_kernel_writes_is_clean() {
    let name = "what_the_kernel_writes_is_clean";
    if fs::metadata("/proc/self").map_or(true, |me| me.uid() != 0) {
        return common::skip(&format!("{name}: not root, no loop mounts"));
    }
    if common::oracle("mkfs.xfs").is_none() {
        return common::skip(&format!("{name}: no xfsprogs 7 in PATH or XFSPROGS"));
    }
    let mut looked = 0;
    for (seed, (options, mount)) in (1u64..).zip(SHAPES) {
        let folder = tempfile::tempdir().unwrap();
        let (image, point) = (folder.path().join("image"), folder.path().join("mnt"));
        File::create(&image).unwrap().set_len(600 << 20).unwrap();
        fs::create_dir(&point).unwrap();
        let mkfs = common::oracle("mkfs.xfs").unwrap().arg("-q").args(options.split_whitespace()).arg(&image).output();
        let mkfs = mkfs.unwrap();
        assert!(mkfs.status.success(), "mkfs.xfs {options}: {}", String::from_utf8_lossy(&mkfs.stderr));
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ seed);
        {
            let Some(_mounted) = Mounted::new(&image, &point, mount) else { continue };
            (0..WORK / 2).for_each(|_| step(&point, &mut random));
            names(&point);
            fragments(&point);
        }
        {
            // What was freed and allocated anew.
            let Some(_mounted) = Mounted::new(&image, &point, mount) else { continue };
            (0..WORK / 2).for_each(|_| step(&point, &mut random));
        }
        let path = image.display().to_string();
        let out = common::xfsinspect(&["check", &path]);
        let text = String::from_utf8_lossy(&out.stdout);
        assert_eq!(out.status.code(), Some(0), "{options} {mount}: {text}");
        // A reflink flag may outlive what was shared: preen, as the kernel's scrub has it.
        let odd = |line: &&str| line.contains("]: ") && !line.starts_with("preen[inode-flag-without-shared]");
        assert_eq!(text.lines().find(odd), None, "{options} {mount}: {text}");
        if let Some(mut repair) = common::oracle("xfs_repair") {
            let out = repair.args(["-n", &path]).output().unwrap();
            assert!(out.status.success(), "xfs_repair: {options}: {}", String::from_utf8_lossy(&out.stderr));
        }
        looked += 1;
    }
    if looked == 0 {
        common::skip(&format!("{name}: no shape could be mounted"));
    }
}
