//! Images with what a kernel said of them, and the program run on them.

use crate::common;
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An image, ready to be read.
pub struct Image {
    /// Its name.
    pub name: String,
    /// Data device.
    pub data: PathBuf,
    /// Options for the other devices.
    pub options: Vec<OsString>,
    /// What a kernel said of it, where the folder is at hand.
    pub truth: Option<PathBuf>,
}

/// Options for the realtime and log devices of an image.
fn options(device: impl Fn(&str) -> Option<PathBuf>) -> Vec<OsString> {
    let parts = [("rt", "--rtdev"), ("log", "--logdev")];
    parts
        .into_iter()
        .filter_map(|(part, option)| Some([OsString::from(option), device(part)?.into_os_string()]))
        .flatten()
        .collect()
}

/// The image of that name in testimages/.
pub fn own(name: &str) -> Image {
    Image {
        name: name.to_owned(),
        data: common::image(name),
        options: options(|part| common::find(&format!("{name}.{part}"))),
        truth: None,
    }
}

/// The images of the folder that XFSINSPECT_CORPUS names: per image a folder with `data.img` or `data.img.zst` and so
/// on, and `truth/`. XFSINSPECT_ONLY picks one.
pub fn outside(folder: &Path) -> Vec<Image> {
    let mut names: Vec<PathBuf> =
        fs::read_dir(folder).expect("folder of images").map(|e| e.expect("entry").path()).collect();
    names.sort();
    let only = std::env::var("XFSINSPECT_ONLY").ok();
    let mut images = Vec::new();
    for image in names.into_iter().filter(|path| path.join("truth").is_dir()) {
        let name = image.file_name().expect("name").to_string_lossy().into_owned();
        if only.as_ref().is_some_and(|only| *only != name) {
            continue;
        }
        let device = |part: &str| {
            let packed = image.join(format!("{part}.img.zst"));
            let plain = image.join(format!("{part}.img"));
            if packed.exists() {
                Some(common::unpacked(&packed, &format!("{name}.{part}.outside")))
            } else {
                plain.exists().then_some(plain)
            }
        };
        let Some(data) = device("data") else { continue };
        let options = options(device);
        images.push(Image { name, data, options, truth: Some(image.join("truth")) });
    }
    images
}

/// Runs the program: command and options, the image, then `words`.
pub fn run(image: &Image, command: &[&str], words: &[OsString]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_xfsinspect"));
    program.args(command).args(&image.options).arg(&image.data).args(words);
    program.output().expect("the program runs")
}

/// The lines of JSON that a run printed. It must have ended with 0.
pub fn lines(image: &Image, command: &[&str], words: &[OsString]) -> Vec<Value> {
    let out = run(image, command, words);
    assert_eq!(out.status.code(), Some(0), "{} {command:?}: {}", image.name, String::from_utf8_lossy(&out.stderr));
    let text = std::str::from_utf8(&out.stdout).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON object per line")).collect()
}

/// Bytes of a JSON field: exact where they stand in hex, too; `None` for null.
pub fn bytes_of(line: &Value, name: &str) -> Option<Vec<u8>> {
    if let Some(hex) = line[format!("{name}_hex")].as_str() {
        return Some((0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex")).collect());
    }
    line[name].as_str().map(|text| text.as_bytes().to_vec())
}
