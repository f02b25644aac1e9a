//! Fresh file systems of many shapes, made by mkfs.xfs 7 or newer: `info` and the AG headers equal xfs_db's.
//! Skipped aloud where xfsprogs is older or missing (see `XFSPROGS` in the README).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::fs::File;
use std::path::Path;
use std::process::Command;

/// MiB of the data, log and realtime devices (0: none), and mkfs.xfs's options; `LOG` and `RT` are the devices.
const SHAPES: &[(u64, u64, u64, &str)] = &[
    (320, 0, 0, ""),
    (5000, 0, 0, "-m rmapbt=0,reflink=0"),
    (600_000, 0, 0, "-d su=64k,sw=4"),
    (5_000_000, 0, 0, "-d agcount=33"),
    (320, 0, 0, "-b size=1024 -n size=16384"),
    (700, 0, 0, "-b size=65536"),
    (1000, 0, 0, "-b size=2048 -s size=2048"),
    (1000, 0, 0, "-s size=4096 -i size=2048"),
    (1000, 0, 0, "-i size=1024,maxpct=50 -l su=32k"),
    (1000, 0, 0, "-d sunit=128,swidth=86016"),
    (1000, 0, 0, "-b size=1024 -d su=1m,sw=2"),
    (1000, 0, 0, "-m finobt=0,rmapbt=0,reflink=0,bigtime=0,inobtcount=0 -i sparse=0,nrext64=0,exchange=0 -n parent=0"),
    (1000, 0, 0, "-n version=ci -L TANK123456xx"),
    (1000, 64, 0, "-l logdev=LOG"),
    (1000, 512, 0, "-l logdev=LOG,sectsize=4096,su=64k"),
    (1000, 0, 300, "-r rtdev=RT"),
    (1000, 0, 100_000, "-r rtdev=RT,extsize=28k"),
    (1000, 64, 2000, "-l logdev=LOG -r rtdev=RT,extsize=1m"),
    (1000, 0, 2000, "-m metadir=1 -r rtdev=RT,rgsize=64m"),
    (1000, 0, 2000, "-m metadir=1,rmapbt=1,reflink=1 -r rtdev=RT"),
    (1000, 0, 2000, "-m metadir=1 -r rtdev=RT,zoned=1,rgsize=16m"),
    (1000, 0, 0, "-m metadir=1 -d rtinherit=0"),
    (1000, 0, 0, "-m crc=0"),
    (1000, 0, 0, "-m crc=0 -b size=512 -i projid32bit=0,attr=1 -l lazy-count=0,version=1 -n ftype=0"),
    (1000, 0, 300, "-m crc=0 -n size=65536,version=ci -r rtdev=RT,extsize=256k"),
    (1000, 64, 0, "-m crc=0 -s size=1024 -l logdev=LOG,version=2,su=16k"),
];

fn sparse(path: &Path, mib: u64) {
    File::create(path).unwrap().set_len(mib << 20).unwrap();
}

fn text(command: &mut Command) -> String {
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn fresh_file_systems_of_many_shapes() {
    let (Some(_), Some(_)) = (common::oracle("mkfs.xfs"), common::oracle("xfs_db")) else {
        return common::skip("fresh_file_systems_of_many_shapes: no xfsprogs 7 in PATH or XFSPROGS");
    };
    let mut compared = 0;
    for (data, log, rt, options) in SHAPES {
        let folder = tempfile::tempdir().unwrap();
        for (name, mib) in [("data", data), ("LOG", log), ("RT", rt)].iter().filter(|(_, mib)| **mib > 0) {
            sparse(&folder.path().join(name), **mib);
        }
        let mut mkfs = common::oracle("mkfs.xfs").unwrap();
        // mkfs.xfs refuses small file systems unless it believes to be under test.
        mkfs.envs([("TEST_DIR", "1"), ("TEST_DEV", "1"), ("QA_CHECK_FS", "1")]).current_dir(folder.path());
        let made = mkfs.args(["-q", "-f"]).args(options.split_whitespace()).arg("data").output().unwrap();
        if !made.status.success() {
            common::skip(&format!("mkfs.xfs {options}: {}", String::from_utf8_lossy(&made.stderr).trim()));
            continue;
        }
        let mut db = common::oracle("xfs_db").unwrap();
        db.current_dir(folder.path()).arg("-r");
        let mut devices = Vec::new();
        if *log > 0 {
            db.args(["-l", "LOG"]);
            devices.extend(["--logdev", "LOG"]);
        }
        if *rt > 0 {
            db.args(["-R", "RT"]);
            devices.extend(["--rtdev", "RT"]);
        }
        for what in ["info", "sb 0", "sb 1", "agf 0", "agi 1", "agfl 1"] {
            db.args(["-c", what]);
            if what != "info" {
                db.args(["-c", "print"]);
            }
        }
        let theirs = text(db.arg("data"));
        let run = |args: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_xfsinspect"));
            text(command.current_dir(folder.path()).args(&devices).args(args))
        };
        let mut ours = run(&["info", "data"]);
        for what in [["sb", "0"], ["sb", "1"], ["agf", "0"], ["agi", "1"], ["agfl", "1"]] {
            ours.push_str(&run(&["show", "data", what[0], what[1]]));
        }
        if ours != theirs {
            let line = ours.lines().zip(theirs.lines()).position(|(a, b)| a != b).unwrap_or(0);
            let of = |text: &str| text.lines().nth(line).unwrap_or("(end)").to_owned();
            panic!("mkfs.xfs {options}, line {}\n  ours   {}\n  oracle {}", line + 1, of(&ours), of(&theirs));
        }
        compared += 1;
    }
    assert!(compared >= 20, "only {compared} shapes could be made");
}
