//! Images for tests: unpacked once into the build folder, and the program itself.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

pub mod overlay;

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use xfsinspect::source::{Cached, FileSource, Source};
use xfsinspect::volume::{Choice, Devices, Volume};

/// The folder with the packed images.
pub fn images() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testimages")
}

/// Names of all images, without the devices that belong to one.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(images())
        .expect("testimages")
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".img.zst").map(str::to_owned))
        .filter(|name| !name.ends_with(".rt") && !name.ends_with(".log"))
        .collect();
    names.sort();
    names
}

/// An unpacked image, sparse: `NAME`, `NAME.rt` or `NAME.log`. `None` where there is none.
pub fn find(name: &str) -> Option<PathBuf> {
    let packed = images().join(format!("{name}.img.zst"));
    packed.exists().then(|| unpacked(&packed, name))
}

/// Where images are unpacked.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("images")
}

/// A packed file, unpacked under `name` once and for all.
pub fn unpacked(packed: &Path, name: &str) -> PathBuf {
    let meta = fs::metadata(packed).unwrap();
    let stamp = meta.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let folder = folder();
    fs::create_dir_all(&folder).unwrap();
    let unpacked = folder.join(format!("{name}.{}.{stamp}.img", meta.len()));
    if !unpacked.exists() {
        // Several test programs may unpack at once: each into a file of its own, the rename is atomic.
        let mut out = tempfile::NamedTempFile::new_in(&folder).unwrap();
        unpack(packed, out.as_file_mut());
        out.persist(&unpacked).unwrap();
    }
    unpacked
}

/// Unpacks a file, with its holes.
pub fn unpack(packed: &Path, out: &mut File) {
    let mut decoder = zstd::stream::read::Decoder::new(File::open(packed).unwrap()).unwrap();
    decoder.window_log_max(31).unwrap();
    let mut piece = vec![0u8; 1 << 16];
    let zeros = piece.clone();
    let mut length = 0u64;
    loop {
        let mut filled = 0;
        while filled < piece.len() {
            let n = decoder.read(&mut piece[filled..]).unwrap();
            if n == 0 {
                break;
            }
            filled += n;
        }
        if filled == 0 {
            break;
        }
        if piece[..filled] != zeros[..filled] {
            out.seek(SeekFrom::Start(length)).unwrap();
            out.write_all(&piece[..filled]).unwrap();
        }
        length += filled as u64;
    }
    out.set_len(length).unwrap();
}

/// [`find`] for an image that must exist.
pub fn image(name: &str) -> PathBuf {
    find(name).unwrap_or_else(|| panic!("no testimages/{name}.img.zst"))
}

fn source(path: &Path) -> Arc<dyn Source> {
    Arc::new(Cached::new(FileSource::open(path).unwrap()))
}

/// The devices of an image.
pub fn devices(name: &str) -> Devices {
    Devices {
        data: source(&image(name)),
        log: find(&format!("{name}.log")).as_deref().map(source),
        rt: find(&format!("{name}.rt")).as_deref().map(source),
    }
}

/// An image, opened through its primary superblock or the best copy.
pub fn volume(name: &str) -> Volume {
    Volume::open(devices(name), Choice::default()).unwrap_or_else(|e| panic!("{name}: {e:?}"))
}

/// Name of an unpacked image in their folder.
fn file_name(name: &str) -> String {
    let path = image(name);
    path.strip_prefix(folder()).unwrap().display().to_string()
}

/// Runs the program in the folder of the unpacked images: messages hold no paths of this machine, and lines break
/// where they break everywhere. `@NAME` stands for an image.
pub fn xfsinspect(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xfsinspect"));
    fs::create_dir_all(folder()).unwrap();
    command.current_dir(folder());
    command.env("TZ", "UTC").env("XFSINSPECT_HOST_KERNEL", "none").env_remove("NO_COLOR");
    for arg in args {
        match arg.strip_prefix('@') {
            Some(name) => command.arg(file_name(name)),
            None => command.arg(arg),
        };
    }
    command.output().unwrap()
}

/// What a run printed and returned, with paths of images shortened to their names.
pub fn transcript(args: &[&str]) -> String {
    let output = xfsinspect(args);
    let mut text = format!("$ xfsinspect {}\n", args.join(" "));
    text.push_str(&String::from_utf8_lossy(&output.stdout));
    let errors = String::from_utf8_lossy(&output.stderr);
    if !errors.is_empty() {
        text.push_str("--- stderr\n");
        text.push_str(&errors);
    }
    text.push_str(&format!("--- exit {}\n", output.status.code().map_or("by signal".into(), |c| c.to_string())));
    for arg in args.iter().filter_map(|arg| arg.strip_prefix('@')) {
        text = text.replace(&file_name(arg), arg);
    }
    text
}

/// The command that runs a tool of xfsprogs 7 or newer: from `XFSPROGS` (a folder), else from PATH; `None` where
/// there is none, which the caller must say aloud.
pub fn oracle(tool: &str) -> Option<Command> {
    let command = |program: PathBuf| {
        let version = Command::new(&program).arg("-V").output().ok()?;
        let text = String::from_utf8_lossy(&version.stdout).into_owned();
        let major: u32 = text.split("version ").nth(1)?.split('.').next()?.parse().ok()?;
        (major >= 7).then(|| {
            let mut command = Command::new(program);
            command.env("TZ", "UTC").env("LC_ALL", "C");
            command
        })
    };
    match std::env::var_os("XFSPROGS") {
        Some(folder) => command(Path::new(&folder).join(tool)),
        None => command(PathBuf::from(tool)),
    }
}

/// Says that a test was left out. Goes past the test runner's capture.
pub fn skip(why: &str) {
    let _ = writeln!(std::io::stderr().lock(), "SKIPPED: {why}");
}
