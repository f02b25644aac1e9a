//! What kernels from 2.6.36 to 4.19 mount: `testimages/old`, their answers against the verdicts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::sync::Arc;
use xfsinspect::hazard::{Asked, Deep, Evaluation, Facts, Kernel, LogState, Modes};
use xfsinspect::source::{FileSource, Source};
use xfsinspect::volume::{Choice, Devices, Volume};
use xfsinspect::walk::log;

/// Images on which a verdict may differ, and why.
const DIFFERENT: [(&str, &str); 5] = [
    ("m-agblocks-1", "with other AGs the log lies elsewhere: not clean, so that all AG headers are read"),
    ("m-dblocks-small", "4.19 compares the length of AG 3 at mount, since the counters are found wrong"),
    ("m-log-junk", "what the log holds decides, and is not looked at here"),
    ("m-logblocks-big", "the end of the log cannot be read"),
    ("m-logstart-off", "the log cannot be read"),
];

#[test]
fn old_kernels_mount_what_preflight_says() {
    let folder = common::images().join("old");
    let text = std::fs::read_to_string(folder.join("mounts")).unwrap();
    let kernels: Vec<Kernel> =
        text.lines().nth(1).unwrap().split_whitespace().skip(2).map(|name| Kernel::parse(name).unwrap()).collect();
    let device = |name: &str, what: &str| -> Option<Arc<dyn Source>> {
        let packed = folder.join(format!("{name}{what}.img.zst"));
        let path = packed.exists().then(|| common::unpacked(&packed, &format!("old-{name}{what}")))?;
        Some(Arc::new(FileSource::open(&path).unwrap()))
    };
    let (mut cells, mut wrong) = (0, Vec::new());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, answers) = line.split_once(' ').unwrap();
        let devices = Devices { data: device(name, "").unwrap(), log: device(name, ".log"), rt: device(name, ".rt") };
        let given = (devices.rt.is_some(), devices.log.is_some());
        // Without a superblock there is no verdict, and no kernel mounts it.
        let Ok(volume) = Volume::open(devices, Choice::default()) else {
            assert!(!answers.contains('+'), "{line}");
            continue;
        };
        let log = match log::state(&volume).is_dirty() {
            Some(true) => LogState::Dirty,
            Some(false) => LogState::Clean,
            None => LogState::Unknown,
        };
        let mut facts = Facts::new(&volume, Asked { logical_sector: Some(512), log, headers: true });
        facts.deep = Some(Deep::read(&volume));
        let evaluation = Evaluation::new(&facts);
        for (kernel, answer) in kernels.iter().zip(answers.split(' ')) {
            let verdict = evaluation.verdict(kernel);
            let needs = |id: &str| verdict.notes.iter().any(|note| note.row.id == id);
            let lacks = (needs("rt-device-needed") && !given.0) || (needs("log-device-needed") && !given.1);
            let sign = |mode| if verdict.modes.meets(mode) && !lacks { '+' } else { '-' };
            let ours: String = [Modes::NOREC, Modes::RO, Modes::RW].into_iter().map(sign).collect();
            cells += 1;
            if ours != answer && !DIFFERENT.iter().any(|(image, _)| *image == name) {
                let reasons: Vec<&str> = verdict.reasons.iter().map(|reason| reason.row.id).collect();
                wrong.push(format!("{name} on {}: kernel {answer}, preflight {ours} {reasons:?}", kernel.name));
            }
        }
    }
    assert!(cells > 1200, "{cells}");
    assert!(wrong.is_empty(), "{} of {cells}:\n{}", wrong.len(), wrong.join("\n"));
}
