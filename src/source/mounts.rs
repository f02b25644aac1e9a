//! What the running system has mounted: `/proc/self/mountinfo`, and the files behind loop devices.
//!
//! A mounted file system changes under our eyes, and what lies on its device may be older than what the kernel
//! holds, so an answer about it must be marked.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// One line of mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Device number, `major:minor` as mountinfo writes it.
    pub device: String,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// File system type, `xfs` for ours.
    pub fs_type: String,
    /// What was mounted: the path of the data device.
    pub source: PathBuf,
    /// Options of the superblock (`rw,attr2,…,rtdev=/dev/sdb`).
    pub options: Vec<String>,
}

impl Mount {
    /// The value of an option `name=value`.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find_map(|o| o.strip_prefix(name)?.strip_prefix('='))
    }
}

/// All mounts that the calling process sees; empty where there is no /proc.
pub fn mounts() -> Vec<Mount> {
    parse(&fs::read("/proc/self/mountinfo").unwrap_or_default())
}

/// Reads the text of a mountinfo file; lines that make no sense are left out.
pub fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|&b| b == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    // id parent major:minor root mount-point options optional* - type source super-options
    let mut words = line.split(|&b| b == b' ');
    let device = String::from_utf8(words.nth(2)?.to_vec()).ok()?;
    let mount_point = path(words.nth(1)?);
    words.find(|w| *w == b"-")?;
    let fs_type = String::from_utf8(words.next()?.to_vec()).ok()?;
    let source = path(words.next()?);
    let options = String::from_utf8_lossy(words.next().unwrap_or_default()).split(',').map(str::to_owned).collect();
    Some(Mount { device, mount_point, fs_type, source, options })
}

/// A word of mountinfo as a path: `\040` and the like are octal escapes.
fn path(word: &[u8]) -> PathBuf {
    let mut out = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&b, tail)) = rest.split_first() {
        let octal = (b == b'\\')
            .then(|| tail.get(..3))
            .flatten()
            .and_then(|d| std::str::from_utf8(d).ok())
            .and_then(|d| u8::from_str_radix(d, 8).ok());
        match octal {
            Some(byte) => {
                out.push(byte);
                rest = tail.get(3..).unwrap_or_default();
            }
            None => {
                out.push(b);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsString::from_vec(out))
}

/// The block devices (`major:minor`) that a target stands for: itself, or the loop devices that use the file.
pub fn devices_of(target: &Path, kind: super::FileKind) -> Vec<String> {
    if let super::FileKind::BlockDevice(major, minor) = kind {
        return vec![format!("{major}:{minor}")];
    }
    let Ok(target) = target.canonicalize() else { return Vec::new() };
    let Ok(blocks) = fs::read_dir("/sys/block") else { return Vec::new() };
    blocks
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"loop"))
        .filter_map(|entry| {
            let backing = fs::read_to_string(entry.path().join("loop/backing_file")).ok()?;
            let number = fs::read_to_string(entry.path().join("dev")).ok()?;
            (Path::new(backing.trim_end_matches('\n')) == target).then(|| number.trim().to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_devices_options_and_escapes() {
        let text = b"36 35 9:2 / /video\\040store rw,noatime shared:1 - xfs /dev/md2 rw,attr2,rtdev=/dev/md3,noquota\n\
            bad line\n22 1 0:21 / /proc rw - proc proc rw\n";
        let all = parse(text);
        assert_eq!(all.len(), 2);
        let video = all.first().expect("two mounts");
        assert_eq!(video.mount_point, Path::new("/video store"));
        assert_eq!((video.device.as_str(), video.fs_type.as_str()), ("9:2", "xfs"));
        assert_eq!(video.option("rtdev"), Some("/dev/md3"));
        assert_eq!(video.option("logdev"), None);
    }
}
