//! Does this device belong to this file system? `rt`, `check` and `preflight` say so.

use crate::common::{self, image, xfsinspect};
use crate::patch::Image;
use std::collections::BTreeMap;
use xfsinspect::units::Device;

fn run(command: &str, name: &str, options: &[&str]) -> (String, Option<i32>) {
    let mut args = vec![command.to_owned(), format!("@{name}")];
    args.extend(options.iter().map(|one| (*one).to_owned()));
    if command == "preflight" {
        args.extend(["--kernel".to_owned(), "7.2".to_owned()]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let out = xfsinspect(&args);
    let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    (text, out.status.code())
}

/// `rt`, `check` and `preflight` each say one of these, and return so.
fn all(name: &str, options: &[&str], right: [(&str, i32); 3]) {
    for (command, (word, status)) in ["rt", "check", "preflight"].into_iter().zip(right) {
        let (text, code) = run(command, name, options);
        assert!(text.contains(word), "{command} {name} {options:?}: {word}: {text}");
        assert_eq!(code, Some(status), "{command} {name} {options:?}: {text}");
    }
}

fn path(name: &str) -> String {
    image(name).display().to_string()
}

#[test]
fn the_device_of_another_file_system() {
    let foreign = path("v5-rtgroups-16k.rt");
    let right = [("rtdev-of-another-fs", 1), ("rtdev-of-another-fs", 1), ("7.2: refused: rt-superblock-bad", 1)];
    all("v5-rtgroups", &["--rtdev", &foreign], right);
    // A section without groups has nothing of its own on the device: only its size, and what else may begin there.
    let right = [
        ("rtdev-too-short", 1),
        ("rtdev-too-short", 1),
        ("7.2: refused: rt-device-is-other-device, rt-device-short", 1),
    ];
    all("v5-rt-64k", &["--rtdev", &path("v5-rt-64k")], right);
    let (text, _) = run("rt", "v5-rt-64k", &["--rtdev", &path("v5-rt-64k")]);
    assert!(text.contains("rtdev-holds-something-else") && text.contains("an XFS superblock"), "{text}");
}

/// Which devices belong together does not wait in the log.
#[test]
fn the_device_of_another_file_system_and_a_dirty_log() {
    let other = ["--rtdev", "@v5-rtgroups.rt"];
    for command in ["rt", "check"] {
        let (text, status) = run(command, "v5-rt-cut", &other);
        assert!(text.contains("rtdev-of-another-fs"), "{command}: {text}");
        assert_eq!(status, Some(1), "{command}: {text}");
    }
}

#[test]
fn the_devices_swapped() {
    let name = "v5-rtgroups";
    for command in ["rt", "check", "preflight"] {
        let (text, code) = run(command, &format!("{name}.rt"), &["--rtdev", &path(name)]);
        assert!(text.contains("this is the realtime device of an XFS file system"), "{command}: {text}");
        assert_eq!(code, Some(2), "{command}");
    }
}

#[test]
fn a_device_that_is_too_short() {
    let folder = tempfile::tempdir().unwrap();
    for length in [0, 4096, 1 << 20] {
        let short = folder.path().join(format!("short{length}"));
        std::fs::File::create(&short).unwrap().set_len(length).unwrap();
        let short = short.display().to_string();
        let right = [("rtdev-too-short", 1), ("rtdev-too-short", 1), ("rt-device-short", 1)];
        all("v5-rt-64k", &["--rtdev", &short], right);
        all("v5-rtgroups", &["--rtdev", &short], right);
    }
}

#[test]
fn a_device_where_none_is_needed() {
    let other = path("v5-rt-64k.rt");
    let right = [("rtdev-not-needed", 0), ("rtdev-not-needed", 0), ("7.2: mounts rw", 0)];
    all("v5-default", &["--rtdev", &other], right);
    // Zoned, on the data device: the mount option is refused.
    let right = [("rtdev-not-needed", 0), ("rtdev-not-needed", 0), ("7.2: refused: rt-device-internal", 1)];
    all("v5-zoned", &["--rtdev", &other], right);
}

/// Case C25, and the same with other images.
#[test]
fn the_log_of_another_file_system() {
    let log = path("c25-external-log-wrong-uuid.log");
    for name in ["c25-external-log-wrong-uuid", "v5-extlog"] {
        let right = [("log-foreign", 1), ("log-of-another-fs", 1), ("7.2: mounts ro,norecovery", 1)];
        for (command, (word, status)) in ["rt", "check"].into_iter().zip(right) {
            let (text, code) = run(command, name, &["--logdev", &log]);
            assert!(text.contains(word), "{command} {name}: {text}");
            assert_eq!(code, Some(status), "{command} {name}");
        }
        let (text, code) = run("preflight", name, &["--logdev", &log]);
        assert!(text.contains("log-contents-bad") && text.contains("99999999-0000-4000-8000-000000000025"), "{text}");
        assert_eq!(code, Some(1), "{name}");
    }
    let (text, code) = run("check", "c25-external-log-wrong-uuid", &[]);
    assert!(text.contains("log-state-unknown"), "{text}");
    assert_eq!(code, Some(2));
}

/// A primary superblock that cannot be used: copies have no inodes of bitmap and summary and no count of free extents, and
/// nothing is wrong with the section for that.
#[test]
fn copies_lead_to_the_section() {
    for name in ["v5-rt-28k", "v4-rt-256k", "v5-rt-64k", "v5-rtgroups-16k", "c63-classic-rt-recorder"] {
        let image = Image::new(name);
        let lost = image.with(Device::Data, BTreeMap::from([(0, vec![0; 512])]));
        let (damage, _, report) = crate::patch::look(&lost);
        assert!(damage.is_empty(), "{name}: {damage:?}");
        let (.., right) = crate::patch::look(&image.volume);
        let (report, right) = (report.unwrap(), right.unwrap());
        assert_eq!(report.totals, right.totals, "{name}");
        assert_eq!((report.free_in_superblock, right.free_in_superblock), (None, Some(right.totals.free)), "{name}");
    }
}

/// A count of extents that is nothing but damage: the answer comes, and the figures are those of the copies.
#[test]
fn an_absurd_number_of_extents() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["v5-rt-28k", "v4-rt-256k"] {
        let image = Image::new(name);
        let volume = image.superblock_changed(|b| b[24..32].copy_from_slice(&(u64::MAX >> 1).to_be_bytes()));
        let (damage, _, report) = crate::patch::look(&volume);
        assert!(damage.contains("rtbitmap-hole"), "{name}: {damage:?}");
        assert!(report.unwrap().totals.unknown > 1 << 60, "{name}");
        // The program measures by the copies.
        let copy = folder.path().join(name);
        std::fs::copy(common::image(name), &copy).unwrap();
        let mut sector = image.read(0, 512);
        sector[24..32].copy_from_slice(&(u64::MAX >> 1).to_be_bytes());
        image.mend(&mut sector, 224);
        let file = std::fs::OpenOptions::new().write(true).open(&copy).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &sector, 0).unwrap();
        let out = xfsinspect(&["rt", &copy.display().to_string()]);
        let errors = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(errors.contains("sb-rextents-mismatch") && errors.contains("sb-primary-differs"), "{errors}");
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(text.contains("the summary agrees with the bitmap") && !text.contains("corrupt["), "{text}");
        assert_eq!(out.status.code(), Some(1));
    }
}

/// What is on a wrong device is never printed as the content of a file.
#[test]
fn no_content_from_a_wrong_device() {
    let cat = |name: &str, rt: &str, what: &str| run("cat", name, &["--rtdev", rt, what]);
    // The device of another file system, by its superblock.
    let (text, code) = cat("v5-rtgroups", &path("v5-rtgroups-16k.rt"), "rt/f0");
    assert!(text.contains("warning[rtdev-of-another-fs]"), "{text}");
    assert_eq!(code, Some(2), "{text}");
    let file = "c63-classic-rt-recorder";
    let inode = run("find", file, &["--kind", "regular", "--rtdev", &path(&format!("{file}.rt"))]);
    let name = inode.0.lines().find(|line| line.contains("rec")).expect("a recording").trim().to_owned();
    let right = run("cat", file, &["--rtdev", &path(&format!("{file}.rt")), &name]);
    assert_eq!(right.1, Some(0), "{}", right.0);
    // The data device itself, and a device that ends before the section: nothing is printed.
    let folder = tempfile::tempdir().expect("folder");
    let cut = folder.path().join("cut");
    let length = std::fs::metadata(path(&format!("{file}.rt"))).expect("size").len();
    std::fs::File::create(&cut).expect("file").set_len(length - (200 << 20)).expect("length");
    for (rt, id) in [(path(file), "device-given-twice"), (cut.display().to_string(), "rtdev-too-short")] {
        let (text, code) = cat(file, &rt, &name);
        assert!(
            text.contains(id) && text.contains("its content lies on the realtime device, and this is another one"),
            "{text}"
        );
        assert_eq!(code, Some(2), "{text}");
    }
    // Another file system of the right size: without groups that is a guess, said and in the status.
    let ext4 = folder.path().join("ext4");
    std::fs::File::create(&ext4).expect("file").set_len(length).expect("length");
    let file_of = std::fs::File::options().write(true).open(&ext4).expect("file");
    std::os::unix::fs::FileExt::write_all_at(&file_of, &[0x53, 0xef], 1080).expect("written");
    let (text, code) = cat(file, &ext4.display().to_string(), &name);
    assert!(text.contains("warning[rtdev-holds-something-else]") && text.contains("ext2/3/4"), "{text}");
    assert_eq!(code, Some(2), "{text}");
}
