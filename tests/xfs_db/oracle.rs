//! xfs_db itself: finding it, and asking it a few hundred questions at once.

use super::collect::Question;
use super::common;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use xfsinspect::source::{Cached, FileSource, Source};
use xfsinspect::volume::{Choice, Devices, Volume};

/// An image with its devices.
pub struct Image {
    pub name: String,
    data: PathBuf,
    rt: Option<PathBuf>,
    log: Option<PathBuf>,
}

fn source(path: &Path) -> Arc<dyn Source> {
    Arc::new(Cached::new(FileSource::open(path).unwrap()))
}

impl Image {
    /// The images to compare: those of `XFS_IMAGES`, where that is given, else those of testimages.
    pub fn all(names: &[&str]) -> Vec<Self> {
        let only = std::env::var("XFS_ONLY").ok();
        let wanted = |name: &str| match &only {
            Some(only) => only.split(',').any(|word| word == name),
            None => names.contains(&name),
        };
        if let Some(folder) = std::env::var_os("XFS_IMAGES") {
            let mut all: Vec<Self> = std::fs::read_dir(folder)
                .unwrap()
                .filter_map(|entry| Self::in_folder(&entry.unwrap().path()))
                .filter(|image| wanted(&image.name))
                .collect();
            all.sort_by(|a, b| a.name.cmp(&b.name));
            return all;
        }
        let packed = common::names();
        packed
            .into_iter()
            .filter(|name| wanted(name))
            .map(|name| Self {
                data: common::image(&name),
                rt: common::find(&format!("{name}.rt")),
                log: common::find(&format!("{name}.log")),
                name,
            })
            .collect()
    }

    fn in_folder(folder: &Path) -> Option<Self> {
        let file = |name: &str| Some(folder.join(name)).filter(|path| path.is_file());
        let data = file("data.img").or_else(|| file("fs.img"))?;
        let name = folder.file_name()?.to_str()?.to_owned();
        Some(Self { name, data, rt: file("rt.img"), log: file("log.img") })
    }

    /// Opens it.
    pub fn volume(&self) -> Volume {
        let devices = Devices {
            data: source(&self.data),
            log: self.log.as_deref().map(source),
            rt: self.rt.as_deref().map(source),
        };
        Volume::open(devices, Choice::default()).unwrap_or_else(|e| panic!("{}: {e:?}", self.name))
    }
}

/// A command line that runs xfs_db.
pub struct Oracle(Vec<String>);

/// What its library says in between, which is no part of the answer.
const CHATTER: &[&str] = &[
    "Metadata CRC error detected at ",
    "Metadata corruption detected at ",
    "Bad btree magic ",
    "Metadata CRC error detected for ino ",
    "no elements in ",
    "cache_node_purge: ",
    "Unknown directory buffer type!",
    "Unknown attribute buffer type!",
    "metadump",
];

impl Oracle {
    /// `XFS_DB`, `XFSPROGS`, PATH, in that order; only version 7 or newer.
    pub fn find() -> Option<Self> {
        let words = |text: String| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let candidates = [
            std::env::var("XFS_DB").ok().map(words),
            std::env::var("XFSPROGS").ok().map(|folder| vec![format!("{folder}/xfs_db")]),
            std::env::var("XFSPROGS").ok().map(|folder| vec![format!("{folder}/usr/sbin/xfs_db")]),
            Some(vec!["xfs_db".to_owned()]),
        ];
        candidates.into_iter().flatten().map(Self).find(|oracle| oracle.major().is_some_and(|major| major >= 7))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.0[0]);
        command.args(&self.0[1..]).env("TZ", "UTC");
        command
    }

    fn major(&self) -> Option<u32> {
        let output = self.command().arg("-V").output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        text.trim().strip_prefix("xfs_db version ")?.split('.').next()?.parse().ok()
    }

    /// The answers to all of them, from one process.
    pub fn ask(&self, image: &Image, questions: &[Question]) -> Vec<Vec<u8>> {
        let mut command = self.command();
        command.arg("-r");
        if let Some(rt) = &image.rt {
            command.arg("-R").arg(rt);
        }
        if let Some(log) = &image.log {
            command.arg("-l").arg(log);
        }
        for (n, question) in questions.iter().enumerate() {
            command.arg("-c").arg(format!("echo =====question {n}"));
            for text in &question.commands {
                command.arg("-c").arg(text);
            }
        }
        let output = command.arg(&image.data).output().unwrap();
        let mut answers = vec![Vec::new(); questions.len()];
        let mut at = None;
        for line in output.stdout.split_inclusive(|&byte| byte == b'\n') {
            if let Some(n) = line.strip_prefix(b"=====question ") {
                at = std::str::from_utf8(n).unwrap().trim().parse::<usize>().ok();
                continue;
            }
            let chatter = CHATTER.iter().any(|text| line.starts_with(text.as_bytes()));
            if let Some(answer) = at.and_then(|at| answers.get_mut(at)).filter(|_| !chatter) {
                answer.extend_from_slice(line);
            }
        }
        if !output.status.success() {
            println!("{}: xfs_db ended with {} at question {at:?}", image.name, output.status);
        }
        answers
    }
}
