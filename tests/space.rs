//! Free space, fragmentation, addresses and the state of the log, as the tools and a kernel saw them
//! (testimages/expected: NAME.freesp and NAME.frag by xfs_db 7.2, NAME.usable by xfs_spaceman on the mounted file
//! system, convert.txt by xfs_db, log-states.txt by xfs_logprint).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{images, names, volume, xfsinspect};
use std::fs;
use xfsinspect::report::convert::{Kind, convert};
use xfsinspect::walk::log::{State, probe, state};

fn equals(kind: &str, args: &[&str], least: usize) {
    let mut compared = 0;
    for name in names() {
        let Ok(theirs) = fs::read_to_string(images().join("expected").join(format!("{name}.{kind}"))) else { continue };
        let mut words = args.to_vec();
        let (image, log) = (format!("@{name}"), format!("@{name}.log"));
        words.push(&image);
        if common::find(&format!("{name}.log")).is_some() {
            words.extend(["--logdev", &log]);
        }
        let output = xfsinspect(&words);
        assert_eq!(String::from_utf8_lossy(&output.stdout), theirs, "{name} {kind}");
        assert_eq!(output.status.code(), Some(0), "{name} {kind}");
        compared += 1;
    }
    assert!(compared >= least, "only {compared} images compared");
}

#[test]
fn free_equals_freesp() {
    equals("freesp", &["free"], 22);
}

#[test]
fn usable_equals_xfs_spaceman() {
    equals("usable", &["free", "--usable", "--summary"], 19);
}

#[test]
fn frag_equals_xfs_db() {
    equals("frag", &["frag"], 22);
}

#[test]
fn logs_are_as_xfs_logprint_finds_them() {
    let mut compared = 0;
    for line in fs::read_to_string(images().join("expected/log-states.txt")).unwrap().lines() {
        let (name, theirs) = line.split_once(": ").unwrap();
        // xfs_logprint takes the superblock as it is; with absurd shifts or none it looks elsewhere.
        let log = state(&volume(name));
        let ends = log.ends().unwrap_or_else(|| panic!("{name}: {:?}", log.state));
        let word = if matches!(log.state, State::Dirty(_)) { "DIRTY" } else { "CLEAN" };
        let ours = format!("log tail: {} head: {} state: <{word}>", ends.tail, ends.head);
        assert_eq!(ours, theirs, "{name}");
        assert_eq!(probe(&volume(name)), log, "{name}");
        compared += 1;
    }
    assert!(compared >= 50, "only {compared} logs compared");
}

#[test]
fn addresses_equal_xfs_db() {
    let mut compared = 0;
    for line in fs::read_to_string(images().join("expected/convert.txt")).unwrap().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (name, section) = (words[0], words[1]);
        let theirs: Vec<(Kind, u64)> =
            words[2..].chunks(2).map(|two| (Kind::by_name(two[0]).unwrap(), two[1].parse().unwrap())).collect();
        let volume = volume(name);
        let ours = convert(volume.geometry(), &theirs[..1], section == "rt").unwrap();
        for (kind, value) in &theirs {
            let unit = ours.units.iter().find(|unit| unit.kind == *kind);
            assert_eq!(unit.map(|unit| unit.value), Some(*value), "{line}: {}", kind.name());
            compared += 1;
        }
        // And back, from any unit that makes an address alone.
        for unit in ours.units.iter() {
            let whole = matches!(unit.kind, Kind::FsBlock | Kind::Ino | Kind::Daddr | Kind::RtBlock | Kind::Rtx);
            if whole {
                let back = convert(volume.geometry(), &[(unit.kind, unit.value)], section == "rt").unwrap();
                assert!(back.byte <= ours.byte, "{line}: {}", unit.kind.name());
                let same = back.units.iter().any(|u| (u.kind, u.value) == (unit.kind, unit.value));
                assert!(same, "{line}: {}", unit.kind.name());
            }
        }
    }
    assert!(compared >= 1000, "only {compared} values compared");
}

/// The record of group 2000 in v5-quota says 1 block and 1 inode, as its inode does; one block more is made of that,
/// with and without the checksum mended.
#[test]
fn quota_usage_that_does_not_add_up() {
    let mut bytes = fs::read(common::image("v5-quota")).unwrap();
    let at = bytes
        .windows(12)
        .step_by(8)
        .position(|w| w[..3] == [0x44, 0x51, 1] && w[3] & 4 != 0 && w[4..8] == 2000u32.to_be_bytes())
        .map(|n| n * 8)
        .expect("a record of group 2000");
    assert_eq!(bytes[at + 40..at + 48], 1u64.to_be_bytes());
    bytes[at + 47] = 2;
    let run = |bytes: &[u8]| {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        let output = xfsinspect(&["quota", "-k", "group", file.path().to_str().unwrap()]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, errors) = run(&bytes);
    assert_eq!(code, Some(1));
    assert!(errors.contains("inode 132 › dquot 2000.crc") && errors.contains("the checksum is wrong"), "{errors}");
    let crc = xfsinspect::format::checksum::compute(&bytes[at..at + 136], 108).unwrap();
    bytes[at + 108..at + 112].copy_from_slice(&crc.to_le_bytes());
    let (code, errors) = run(&bytes);
    assert_eq!(code, Some(1));
    assert!(errors.contains("warning[quota-usage-mismatch]") && errors.contains("for group 2000;"), "{errors}");
}

#[test]
fn addresses_that_do_not_exist_are_refused() {
    let cases: &[(&str, &[&str], &str)] = &[
        ("v5-default", &["fsblock", "10240"], "fsblock 10240 does not exist"),
        ("v5-default", &["agno", "4", "agblock", "0"], "agnumber 4 does not exist: the file system has 4 (0 to 3)"),
        ("v5-default", &["byte", "167772160"], "lies past the end: the data section has 167772160 bytes"),
        ("v5-default", &["ino", "99999999999"], "ino 99999999999 does not exist"),
        ("v5-default", &["agno", "1", "blkoff", "4096"], "blkoff 4096 does not exist: a block has 4096 (0 to 4095)"),
        ("v5-default", &["fsblock", "1", "ino", "128"], "fsblock and ino cannot be given together"),
        ("v5-default", &["rtblock", "0"], "there is no realtime section"),
        ("v5-default", &["furlong", "1"], "\"furlong\" is no unit"),
        ("v5-default", &["fsblock"], "a value is required"),
        ("v5-rtgroups", &["rtblock", "999999"], "rtblock 999999 does not exist"),
        ("v5-rtgroups", &["rtblock", "0", "rsumlog", "40"], "rsumlog 40 does not exist: the summary has 15 levels"),
    ];
    for (name, address, says) in cases {
        let image = format!("@{name}");
        let mut words = vec!["convert", &image];
        words.extend(*address);
        let output = xfsinspect(&words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{address:?}: {errors}");
        assert!(
            output.stdout.is_empty() && (errors.contains(says) || *says == "a value is required"),
            "{address:?}: {errors}"
        );
    }
}
