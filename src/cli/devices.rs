//! Are the devices that were given the ones of this file system? Asked before a byte of them is believed.

use super::session::{Outcome, Session};
use super::target::Target;
use crate::check::Class;
use crate::check::rt::{Sink, devices, rules};
use crate::hazard::Same;
use crate::units::Device;
use crate::walk::Walk;
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// The same device or image, by whatever name?
fn is_same(a: &Path, b: &Path) -> bool {
    let number = |file: &Metadata| file.file_type().is_block_device().then(|| file.rdev());
    let (Ok(a), Ok(b)) = (a.metadata(), b.metadata()) else { return false };
    match (number(&a), number(&b)) {
        (None, None) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        (a, b) => a == b,
    }
}

/// Marks a device that was given twice.
pub fn mark_same(session: &mut Session, data: &Path, log: Option<&Path>, rt: Option<&Path>) -> Same {
    let mut same = Same::default();
    let pairs = [
        ("log", log, "data", Some(data), &mut same.log_data),
        ("realtime", rt, "data", Some(data), &mut same.rt_data),
        ("realtime", rt, "log", log, &mut same.rt_log),
    ];
    for (what, path, other, of, is) in pairs {
        if let (Some(path), Some(of)) = (path, of)
            && is_same(path, of)
        {
            let text = format!(
                "{}: given as the {what} device, but it is the {other} device: kernels refuse such a mount, and nothing \
                 on it is taken for the {what} device's",
                super::target::shown(path)
            );
            session.warn("device-given-twice", text, Outcome::Incomplete);
            *is = true;
        }
    }
    same
}

/// Marks what speaks against the realtime device. Gives why its content cannot be this file system's, where that is
/// certain.
pub fn mark_realtime(session: &mut Session, target: &Target) -> Option<String> {
    if target.volume.devices().rt.is_none() || !target.is_complete() {
        return None;
    }
    let mut findings = Vec::new();
    let mut keep = |finding| findings.push(finding);
    devices::check(&Walk::new(&target.volume), &mut Sink::new(&mut keep));
    let mut refused = None;
    let name = target.rt_name.as_deref().unwrap_or("realtime device");
    for finding in findings.iter().filter(|finding| finding.place.device == Device::Rt) {
        let rule = finding.rule;
        let text =
            format!("{name}: {}: {} is {}, expected {}", rule.summary, rule.field, finding.found, finding.expected);
        if [rules::DEVICE_OTHER.id, rules::DEVICE_SHORT.id].contains(&rule.id) {
            refused.get_or_insert_with(|| text.clone());
        }
        let outcome = if rule.id == rules::DEVICE_UNUSED.id { Outcome::Clean } else { Outcome::Incomplete };
        session.warn(rule.id, evidence(target, rule.class, text), outcome);
    }
    refused
}

/// A guess comes with what speaks for the device, too.
fn evidence(target: &Target, class: Class, text: String) -> String {
    let geometry = target.volume.geometry();
    let (Some(rt), Some(device)) = (&geometry.realtime, &target.volume.devices().rt) else { return text };
    if class != Class::Warning {
        return text;
    }
    let needed = rt.blocks.saturating_mul(geometry.block_size());
    format!(
        "{text}. Without realtime groups nothing on a realtime device tells whose it is; for this one speaks that it is long \
         enough ({} of {needed} bytes). What is read from it is certain only if it is the right one",
        device.len()
    )
}
