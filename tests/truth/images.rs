//! Images with what is known of them, unpacked once, and the program run on them.

use serde_json::Value;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// An image, ready to be read.
pub struct Image {
    /// Its name.
    pub name: String,
    /// Data device.
    pub data: PathBuf,
    /// Options for the other devices.
    pub options: Vec<OsString>,
    /// What a kernel said of it.
    pub truth: PathBuf,
}

struct Store {
    images: Vec<Image>,
    _folder: tempfile::TempDir,
}

/// Unpacks `from` to `to`, zeros as holes.
fn unpack(from: &Path, to: &Path) {
    let mut decoder = zstd::stream::read::Decoder::new(File::open(from).expect("image")).expect("zstd");
    decoder.window_log_max(31).expect("window");
    let mut out = File::create(to).expect("unpacked image");
    let mut piece = vec![0u8; 1 << 16];
    let mut length = 0u64;
    loop {
        let mut filled = 0;
        while filled < piece.len() {
            match decoder.read(&mut piece[filled..]).expect("zstd data") {
                0 => break,
                n => filled += n,
            }
        }
        if filled == 0 {
            break;
        }
        if piece[..filled].iter().any(|&b| b != 0) {
            out.seek(SeekFrom::Start(length)).expect("seek");
            out.write_all(&piece[..filled]).expect("write");
        }
        length += filled as u64;
    }
    out.set_len(length).expect("length");
}

fn collect(folder: &Path, into: &Path, images: &mut Vec<Image>) {
    let mut names: Vec<PathBuf> = fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    names.sort();
    for image in names.into_iter().filter(|path| path.join("truth").is_dir()) {
        let name = image.file_name().expect("name").to_string_lossy().into_owned();
        if std::env::var("XFSINSPECT_ONLY").is_ok_and(|only| only != name) {
            continue;
        }
        let device = |part: &str| {
            let packed = image.join(format!("{part}.img.zst"));
            let plain = image.join(format!("{part}.img"));
            if !packed.exists() {
                return plain.exists().then_some(plain);
            }
            let to = into.join(format!("{name}.{part}.img"));
            unpack(&packed, &to);
            Some(to)
        };
        let Some(data) = device("data") else { continue };
        let mut options = Vec::new();
        for (part, option) in [("rt", "--rtdev"), ("log", "--logdev")] {
            if let Some(path) = device(part) {
                options.extend([OsString::from(option), path.into_os_string()]);
            }
        }
        images.push(Image { name, data, options, truth: image.join("truth") });
    }
}

/// The images there are. Says so aloud where none are found.
pub fn images() -> &'static [Image] {
    static STORE: OnceLock<Store> = OnceLock::new();
    let store = STORE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("temporary folder");
        let mut images = Vec::new();
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testimages"), folder.path(), &mut images);
        match std::env::var_os("XFSINSPECT_CORPUS") {
            Some(more) => collect(Path::new(&more), folder.path(), &mut images),
            None => eprintln!("skipped: XFSINSPECT_CORPUS names no folder of images with truth/"),
        }
        Store { images, _folder: folder }
    });
    &store.images
}

/// Runs the program: command and options, the image, then `words`.
pub fn run(image: &Image, command: &[&str], words: &[OsString]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_xfsinspect"));
    program.args(command).args(&image.options).arg(&image.data).args(words);
    program.output().expect("the program runs")
}

/// Bytes of a JSON field: exact where they stand in hex, too; `None` for null.
pub fn bytes_of(line: &Value, name: &str) -> Option<Vec<u8>> {
    if let Some(hex) = line[format!("{name}_hex")].as_str() {
        return Some((0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex")).collect());
    }
    line[name].as_str().map(|text| text.as_bytes().to_vec())
}
