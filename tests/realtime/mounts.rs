//! Inodes that a mount reads, each with a field altered: verdicts equal what four kernels answered
//! (`testimages/mount/inodes`), and what a kernel refuses is damage for the check, too.

use crate::common;
use crate::common::overlay::Overlay;
use std::sync::Arc;
use xfsinspect::check::context::Hooks;
use xfsinspect::check::{Options, check};
use xfsinspect::format::checksum;
use xfsinspect::format::dinode::CRC_OFFSET;
use xfsinspect::hazard::{Asked, Deep, Evaluation, Facts, Kernel, LogState, Modes};
use xfsinspect::source::{FileSource, Source};
use xfsinspect::units::ByteOffset;
use xfsinspect::volume::{Choice, Devices, Volume};

const KERNELS: [&str; 4] = ["5.10.223", "6.1.176", "6.12.117", "7.2.13"];

struct Altered {
    name: String,
    volume: Volume,
    answers: Vec<String>,
}

fn altered() -> Vec<Altered> {
    let folder = common::images().join("mount");
    let path = common::unpacked(&folder.join("base.img.zst"), "mount-base");
    let base: Arc<dyn Source> = Arc::new(FileSource::open(&path).unwrap());
    // Nothing of the realtime device is looked at, but it must be there.
    let rt: Arc<dyn Source> = Arc::new(FileSource::open(&path).unwrap());
    let text = std::fs::read_to_string(folder.join("inodes")).unwrap();
    let line = |line: &str| {
        let [name, bytes, answers] = line.split(" | ").collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (keep, bytes) = (bytes.ends_with("nocrc"), bytes.trim_end_matches("nocrc"));
        let words: Vec<&str> = bytes.split_whitespace().collect();
        let mut inodes = std::collections::BTreeMap::new();
        for pair in words.chunks(2) {
            let at: u64 = pair[0].parse().unwrap();
            let bytes: &mut Vec<u8> = inodes.entry(at / 512 * 512).or_insert_with(|| {
                let mut bytes = vec![0; 512];
                base.read_at(ByteOffset(at / 512 * 512), &mut bytes).unwrap();
                bytes
            });
            let (from, new) = ((at % 512) as usize, super::predicates::hex(pair[1]));
            bytes[from..from + new.len()].copy_from_slice(&new);
        }
        for bytes in inodes.values_mut().filter(|_| !keep) {
            let crc = checksum::compute(bytes, CRC_OFFSET).unwrap();
            bytes[CRC_OFFSET..CRC_OFFSET + 4].copy_from_slice(&crc.to_le_bytes());
        }
        let devices = Devices { data: Overlay::new(base.clone(), inodes), log: None, rt: Some(rt.clone()) };
        let volume = Volume::open(devices, Choice::default()).unwrap();
        Altered { name: name.to_owned(), volume, answers: answers.split(' ').map(str::to_owned).collect() }
    };
    text.lines().filter(|line| !line.starts_with('#')).map(line).collect()
}

#[test]
fn altered_inodes_mount_as_on_four_kernels() {
    let kernels = KERNELS.map(|name| Kernel::parse(name).unwrap());
    let (mut cells, mut wrong) = (0, Vec::new());
    for Altered { name, volume, answers } in altered() {
        let asked = Asked { logical_sector: Some(512), log: LogState::Clean, headers: true };
        let mut facts = Facts::new(&volume, asked);
        facts.deep = Some(Deep::read(&volume));
        let evaluation = Evaluation::new(&facts);
        for (kernel, answer) in kernels.iter().zip(answers) {
            let verdict = evaluation.verdict(kernel);
            let sign = |mode| if verdict.modes.meets(mode) { '+' } else { '-' };
            let ours: String = [Modes::NOREC, Modes::RO, Modes::RW].into_iter().map(sign).collect();
            cells += 1;
            if ours != answer {
                let reasons: Vec<&str> = verdict.reasons.iter().map(|reason| reason.row.id).collect();
                wrong.push(format!("{name} on {}: kernel {answer}, preflight {ours} {reasons:?}", kernel.name));
            }
        }
    }
    assert!(cells >= 2000, "{cells} answers");
    assert!(wrong.is_empty(), "{} of {cells}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_the_newest_kernel_refuses_is_damage() {
    let mut missed = Vec::new();
    for Altered { name, volume, answers } in altered().into_iter().filter(|altered| altered.answers[3] == "---") {
        let (options, cancel) = (Options { threads: 1, ..Options::default() }, Default::default());
        let hooks = Hooks { progress: &|_| {}, cancel: &cancel };
        let report = check(&volume, &options, hooks);
        if !report.findings.iter().any(|finding| finding.rule.class.is_damage()) {
            missed.push(format!("{name}: {answers:?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
