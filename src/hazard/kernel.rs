//! Which kernel is asked about: its version, how it is configured, and ranges of versions with the stable releases
//! that stand out of them.
//!
//! A version is an upstream release. Two numbers (three in the 2.6 days) name a series and mean its first release;
//! a further number is a stable release of it. What comes after (`-553.el8_10`) names a distribution or a patch set,
//! whose changes are not known here.

use crate::error::{Error, Result};
use std::fmt;

/// An upstream version: series and stable release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// `[5, 4, 0]` for 5.4.y, `[2, 6, 32]` for 2.6.32.y.
    pub series: [u16; 3],
    /// Stable release within the series, 0 for the first one.
    pub stable: u16,
}

/// First release of a series from 3.0 on.
pub const fn v(major: u16, minor: u16) -> Version {
    Version { series: [major, minor, 0], stable: 0 }
}

/// First release of a 2.6 series.
pub const fn v26(third: u16) -> Version {
    Version { series: [2, 6, third], stable: 0 }
}

/// Before every kernel.
pub const ALWAYS: Version = Version { series: [0; 3], stable: 0 };
/// After every kernel.
pub const NEVER: Version = Version { series: [u16::MAX; 3], stable: u16::MAX };

impl Version {
    /// The same series, its first release.
    pub const fn first(self) -> Self {
        Self { stable: 0, ..self }
    }

    /// Name of the series: `5.4`, `2.6.32`.
    pub fn series_name(self) -> String {
        let [major, minor, third] = self.series;
        if major == 2 { format!("{major}.{minor}.{third}") } else { format!("{major}.{minor}") }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.series_name();
        if self.stable == 0 { f.pad(&name) } else { f.pad(&format!("{name}.{}", self.stable)) }
    }
}

/// A stable release from which on its series differs from the upstream release it was cut from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stable {
    /// That release.
    pub version: Version,
    /// Is it the first one, or only the first in which it was seen?
    pub exact: bool,
}

/// The first stable release with a change: `since(5, 4, 73)`.
pub const fn since(major: u16, minor: u16, stable: u16) -> Stable {
    Stable { version: Version { series: [major, minor, 0], stable }, exact: true }
}

/// A stable release that has a change; the first one that has it is not known.
pub const fn by(major: u16, minor: u16, stable: u16) -> Stable {
    Stable { version: Version { series: [major, minor, 0], stable }, exact: false }
}

/// Switches that a kernel is built with, where they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where they come from: the name of the file; `None` for the assumption.
    pub from: Option<String>,
    /// CONFIG_XFS_FS
    pub xfs: bool,
    /// CONFIG_XFS_RT
    pub rt: bool,
    /// CONFIG_XFS_QUOTA
    pub quota: bool,
    /// CONFIG_XFS_SUPPORT_V4, where the file says.
    pub v4: Option<bool>,
    /// CONFIG_XFS_SUPPORT_ASCII_CI, where the file says.
    pub ascii_ci: Option<bool>,
    /// CONFIG_64BIT
    pub bits64: bool,
    /// Page size in bytes.
    pub page_size: u32,
    /// CONFIG_TRANSPARENT_HUGEPAGE: without it the page cache has no blocks beyond a page.
    pub large_folios: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            from: None,
            xfs: true,
            rt: true,
            quota: true,
            v4: None,
            ascii_ci: None,
            bits64: true,
            page_size: 4096,
            large_folios: true,
        }
    }
}

impl Config {
    /// Reads the switches of a kernel configuration (`/boot/config-…`, `.config`).
    ///
    /// # Errors
    /// [`Error::Request`] where no line of the text sets an option.
    pub fn parse(text: &str, name: &str) -> Result<Self> {
        let value = |option: &str| {
            text.lines().map(str::trim).find_map(|line| {
                if let Some(rest) = line.strip_prefix("# ") {
                    return (rest.strip_suffix(" is not set")? == option).then_some("n");
                }
                let (found, value) = line.split_once('=')?;
                (found == option).then_some(value.trim())
            })
        };
        let on = |option: &str| value(option).map(|v| v == "y" || v == "m");
        if !text.lines().any(|line| line.trim_start().starts_with("CONFIG_") && line.contains('=')) {
            return Err(Error::request(format!("{name}: no kernel configuration, no line sets a CONFIG_ option")));
        }
        let set = |options: &[&str]| options.iter().any(|option| on(option) == Some(true));
        let page_size = if set(&["CONFIG_PAGE_SIZE_64KB", "CONFIG_ARM64_64K_PAGES", "CONFIG_PPC_64K_PAGES"]) {
            65536
        } else if set(&["CONFIG_PAGE_SIZE_16KB", "CONFIG_ARM64_16K_PAGES"]) {
            16384
        } else {
            4096
        };
        let old_32 = ["CONFIG_X86_32", "CONFIG_ARM", "CONFIG_PPC32"];
        Ok(Self {
            from: Some(name.to_owned()),
            xfs: on("CONFIG_XFS_FS").unwrap_or(false),
            rt: on("CONFIG_XFS_RT").unwrap_or(false),
            quota: on("CONFIG_XFS_QUOTA").unwrap_or(false),
            v4: on("CONFIG_XFS_SUPPORT_V4"),
            ascii_ci: on("CONFIG_XFS_SUPPORT_ASCII_CI"),
            bits64: on("CONFIG_64BIT").unwrap_or_else(|| !set(&old_32)),
            page_size,
            large_folios: on("CONFIG_TRANSPARENT_HUGEPAGE").unwrap_or(false),
        })
    }
}

/// A kernel that is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// As it was asked for.
    pub name: String,
    /// The upstream release that answers for it.
    pub version: Version,
    /// What follows the numbers, where something does: `-553.el8_10`.
    pub vendor: Option<String>,
    /// How it is built.
    pub config: Config,
}

impl Kernel {
    /// An upstream release, as built by default.
    pub fn upstream(version: Version) -> Self {
        Self { name: version.to_string(), version, vendor: None, config: Config::default() }
    }

    /// Reads `3.2.22`, `5.4`, `5.4.302`, `2.6.32.71`, `4.18.0-553.el8_10`, `6.8.0-45-generic`, `6.12-rc5`.
    ///
    /// # Errors
    /// [`Error::Request`] for anything that does not begin with such a number.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = || {
            Error::request(format!("{text:?} is no kernel version: expected 5.4, 5.4.302, 4.18.0-553.el8_10 or host"))
        };
        let trimmed = text.trim();
        let text_end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (mut numbers, mut vendor) = (trimmed.get(..text_end).unwrap_or(""), trimmed.get(text_end..).unwrap_or(""));
        if let Some(shorter) = numbers.strip_suffix('.') {
            // `4.18.x86_64` and the like: the dot belongs to what follows.
            numbers = shorter;
            vendor = trimmed.get(text_end.saturating_sub(1)..).unwrap_or("");
        }
        let parts: Vec<u16> =
            numbers.split('.').map(str::parse).collect::<std::result::Result<_, _>>().map_err(|_| bad())?;
        let version = match *parts.as_slice() {
            [2, 6, third] => Version { series: [2, 6, third], stable: 0 },
            [2, 6, third, stable, ..] => Version { series: [2, 6, third], stable },
            [major @ 3..=99, minor] => Version { series: [major, minor, 0], stable: 0 },
            [major @ 3..=99, minor, stable, ..] => Version { series: [major, minor, 0], stable },
            _ => return Err(bad()),
        };
        if vendor.starts_with(|c: char| !matches!(c, '-' | '+' | '.' | '_' | '~')) {
            return Err(bad());
        }
        let vendor = (!vendor.is_empty()).then(|| vendor.to_owned());
        Ok(Self { name: trimmed.to_owned(), version, vendor, config: Config::default() })
    }

    /// Is it a release candidate (`-rc3`)?
    fn is_candidate(&self) -> bool {
        self.vendor.as_deref().is_some_and(|v| v.starts_with("-rc"))
    }

    /// Are V4 file systems accepted? The option exists since 5.10 and is off by default since 6.18.
    pub fn takes_v4(&self) -> bool {
        self.version < v(5, 10) || self.config.v4.unwrap_or(self.version < v(6, 18))
    }

    /// Are case-insensitive file systems accepted? The option exists since 6.4 and is off by default since 6.18.
    pub fn takes_ascii_ci(&self) -> bool {
        self.version < v(6, 4) || self.config.ascii_ci.unwrap_or(self.version < v(6, 18))
    }

    /// What was assumed about it, in sentences.
    pub fn assumptions(&self) -> Vec<String> {
        let mut list = Vec::new();
        let on = |on: bool| if on { "on" } else { "off" };
        match (&self.vendor, self.is_candidate()) {
            _ if self.version >= v(7, 3) => list.push(format!("{}: not known: judged as 7.2", self.name)),
            (Some(vendor), true) => {
                list.push(format!("{}: release candidate ({vendor}), answered as {}", self.name, self.version));
            }
            (Some(_), false) => list.push(format!(
                "{}: answered as upstream {}; distribution kernel, backports not known",
                self.name, self.version
            )),
            (None, _) if self.version.stable == 0 => {
                list.push(format!("{}: the first release of that series is meant", self.version));
            }
            _ => {}
        }
        let c = &self.config;
        let mut built = match &c.from {
            Some(file) => {
                format!("built as {file} says: XFS {}, realtime {}, quota {}", on(c.xfs), on(c.rt), on(c.quota))
            }
            None => "built with realtime, quota and ACLs (upstream options)".to_owned(),
        };
        if self.version >= v(5, 10) {
            built.push_str(&format!(", V4 {}", on(self.takes_v4())));
        }
        if self.version >= v(6, 4) {
            built.push_str(&format!(", ascii-ci {}", on(self.takes_ascii_ci())));
        }
        let bits = if c.bits64 { 64 } else { 32 };
        built.push_str(&format!(", for a {bits}-bit machine with pages of {} bytes", c.page_size));
        list.push(built);
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, Option<String>) {
        let kernel = Kernel::parse(text).expect("a version");
        (kernel.version.to_string(), kernel.vendor)
    }

    #[test]
    fn versions() {
        assert_eq!(read("5.4"), ("5.4".into(), None));
        assert_eq!(read("5.4.302"), ("5.4.302".into(), None));
        assert_eq!(read("3.2.22"), ("3.2.22".into(), None));
        assert_eq!(read("2.6.32"), ("2.6.32".into(), None));
        assert_eq!(read("2.6.32.71"), ("2.6.32.71".into(), None));
        assert_eq!(read("4.18.0-553.el8_10"), ("4.18".into(), Some("-553.el8_10".into())));
        assert_eq!(read("5.14.0-427.el9"), ("5.14".into(), Some("-427.el9".into())));
        assert_eq!(read("6.8.0-45-generic"), ("6.8".into(), Some("-45-generic".into())));
        assert_eq!(read("3.2.22-rt34"), ("3.2.22".into(), Some("-rt34".into())));
        assert_eq!(read("6.12-rc5"), ("6.12".into(), Some("-rc5".into())));
        assert_eq!(read("7.2.13+deb14-amd64"), ("7.2.13".into(), Some("+deb14-amd64".into())));
        for bad in ["", "5", "five", "5.", "2.6", "2.4.37", "5.x", "5.4q", "-rc1", "5.99999999", "0.1", "..", "5..4"] {
            assert!(Kernel::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn order_of_versions() {
        assert!(v26(32) < v26(37) && v26(39) < v(3, 0) && v(3, 10) > v(3, 2) && v(5, 4) > v(4, 19));
        assert!(since(5, 4, 73).version > v(5, 4) && since(5, 4, 73).version < v(5, 5));
        assert!(ALWAYS < v26(0) && NEVER > v(7, 2));
    }

    #[test]
    fn configurations() {
        let text = "#\n# Automatically generated\nCONFIG_64BIT=y\nCONFIG_XFS_FS=m\nCONFIG_XFS_QUOTA=y\n\
                    # CONFIG_XFS_RT is not set\n# CONFIG_XFS_SUPPORT_V4 is not set\nCONFIG_XFS_SUPPORT_ASCII_CI=y\n\
                    CONFIG_TRANSPARENT_HUGEPAGE=y\n";
        let config = Config::parse(text, "config-x").expect("a configuration");
        let right = Config {
            from: Some("config-x".into()),
            rt: false,
            v4: Some(false),
            ascii_ci: Some(true),
            ..Config::default()
        };
        assert_eq!(config, right);
        let config = Config::parse("CONFIG_X86_32=y\nCONFIG_XFS_FS=y\n", "c").expect("a configuration");
        assert!(!config.bits64 && !config.rt && config.v4.is_none());
        let pages = Config::parse("CONFIG_ARM64_64K_PAGES=y\nCONFIG_64BIT=y\n", "c").expect("a configuration");
        assert_eq!((pages.page_size, pages.xfs), (65536, false));
        assert!(Config::parse("hello\n", "c").is_err());
    }

    #[test]
    fn v4_by_default() {
        let on = |text: &str| Kernel::parse(text).expect("a version").takes_v4();
        assert!(on("5.4") && on("6.12") && on("6.17.9") && !on("6.18") && !on("7.2"));
    }
}
