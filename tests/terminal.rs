//! What does not depend on the image: outputs that cannot be written, ids that can be explained, compressed files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_xfsinspect"))
}

/// A run of every command, on an image about which there is something to say on stderr.
fn runs() -> Vec<Vec<String>> {
    let image = common::image("c42-rt-dirty-log").display().to_string();
    let copy = common::image("c01-first-sector-zeroed").display().to_string();
    let all = [
        "--help",
        "--version",
        "info I",
        "info C",
        "info nosuch",
        "show I sb 0",
        "ls I",
        "ls C",
        "ls -lR I",
        "stat I /",
        "cat I nosuch",
        "xattr -R I",
        "find I",
        "map I nosuch",
        "check I",
        "check C",
        "preflight I",
        "explain",
        "explain nosuch",
        "explain mounted",
        "free I",
        "frag I",
        "quota I",
        "convert I agno 0",
        "fsmap I",
        "rt I",
        "owner I 0",
        "check --json I",
        "info --io-stats I",
        "nonsense",
        "ls",
    ];
    let word = |word: &str| match word {
        "I" => image.clone(),
        "C" => copy.clone(),
        other => other.to_owned(),
    };
    all.iter().map(|line| line.split(' ').map(word).collect()).collect()
}

fn full() -> Stdio {
    Stdio::from(File::options().write(true).open("/dev/full").unwrap())
}

#[test]
fn an_unwritable_stderr_changes_nothing_else() {
    for args in runs() {
        let plain = program().args(&args).output().unwrap();
        let code = plain.status.code().unwrap();
        let output = program().args(&args).stdout(Stdio::piped()).stderr(full()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stdout == plain.stdout), (Some(code), true), "{args:?}");
        // Nobody listens: the pipe is closed before the first line.
        let mut child = program().args(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stderr.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stdout == plain.stdout), (Some(code), true), "{args:?}");
        // No stderr at all.
        let mut closed = Command::new("sh");
        closed.args(["-c", "exec \"$0\" \"$@\" 2>&-", env!("CARGO_BIN_EXE_xfsinspect")]).args(&args);
        assert_eq!(closed.output().unwrap().status.code(), Some(code), "{args:?}");
    }
}

#[test]
fn an_unwritable_stdout_is_an_error() {
    for args in runs() {
        let plain = program().args(&args).output().unwrap();
        let output = program().args(&args).stdout(full()).stderr(Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        let code = output.status.code().unwrap();
        // What was found out stands; an answer that got lost is no success.
        let right = if plain.stdout.is_empty() || matches!(plain.status.code(), Some(1 | 3)) {
            plain.status.code()
        } else {
            Some(2)
        };
        assert_eq!(Some(code), right, "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

fn explained(id: &str) -> bool {
    program().args(["explain", id]).output().unwrap().status.code() == Some(0)
}

/// Every `warn("id"` of the program's sources is an id that `explain` knows. Other ids come from registries.
#[test]
fn every_warning_can_be_explained() {
    let mut paths = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli"), &mut paths);
    let mut ids = Vec::new();
    for path in paths {
        let text: String = fs::read_to_string(path).unwrap().split_whitespace().collect();
        let calls = text.split(".warn(\"").skip(1);
        ids.extend(calls.map(|rest| rest.split('"').next().unwrap().to_owned()));
    }
    ids.sort();
    ids.dedup();
    assert!(ids.len() > 15, "{ids:?}");
    let unknown: Vec<_> = ids.iter().filter(|id| !explained(id)).collect();
    assert!(unknown.is_empty(), "explain does not know {unknown:?}: add them to src/report/warning.rs");
}

#[test]
fn explain_lists_all_and_offers_the_nearest() {
    let stdout = |output: Output| String::from_utf8(output.stdout).unwrap();
    let list = stdout(program().arg("explain").output().unwrap());
    for id in ["mounted", "log-dirty", "agf-bad-magic", "rt-bitmap-end-scan"] {
        assert!(list.lines().any(|line| line.split_whitespace().next() == Some(id)), "{id} is not listed");
    }
    let output = program().args(["explain", "quota-usage-mismach"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("did you mean quota-usage-mismatch"), "{stderr}");
}

/// Frames as pzstd, several calls of zstd, and `zstd --long=31` write them, after RFC 8878.
#[test]
fn compressed_images() {
    let folder = tempfile::tempdir().unwrap();
    let image = zstd::decode_all(File::open(common::images().join("tiny/tiny-cut.img.zst")).unwrap()).unwrap();
    let (first, rest) = image.split_at(image.len() / 3);
    let skip = |size: usize| {
        [&[0x5a, 0x2a, 0x4d, 0x18][..], &u32::try_from(size).unwrap().to_le_bytes(), &vec![7; size]].concat()
    };
    let pack = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    let info = |name: &str, bytes: &[u8], options: &[&str]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        program().arg("info").args(options).arg(path).output().unwrap()
    };
    let plain = info("image", &image, &[]);
    assert_eq!(plain.status.code(), Some(0));
    let frames = [skip(4), pack(first), skip(0), pack(rest)].concat();
    let unpacked = info("image.zst", &frames, &[]);
    let figures = |output: &Output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_once(" isize=").map(|(_, figures)| figures.trim_start().to_owned()).unwrap()
    };
    assert_eq!((unpacked.status.code(), figures(&unpacked)), (Some(0), figures(&plain)));

    // A frame that asks for 2 GiB: descriptor 0, window 0xa8 (exponent 21, mantissa 0), one raw last block of 8 bytes.
    let long = [&[0x28, 0xb5, 0x2f, 0xfd, 0, 0xa8, 0x41, 0, 0][..], b"12345678"].concat();
    let refused = info("long.zst", &long, &[]);
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr.contains("window of more than 128 MiB") && stderr.contains("--zstd-long"), "{stderr}");
    let taken = info("long.zst", &long, &["--zstd-long"]);
    assert!(String::from_utf8_lossy(&taken.stderr).contains("no XFS"), "{}", String::from_utf8_lossy(&taken.stderr));
    // Nothing but frames to be skipped, and one that is cut.
    for bytes in [skip(100), skip(1 << 16)[..20].to_vec(), [skip(8).as_slice(), &[0x28, 0xb5, 0x2f]].concat()] {
        assert_eq!(info("skip", &bytes, &[]).status.code(), Some(2));
    }
}
