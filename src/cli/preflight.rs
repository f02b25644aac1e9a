//! `preflight`: what kernels, boot loaders and tools do with an image.

use super::args::{PreflightArgs, number};
use super::journal;
use super::session::{Outcome, Session};
use super::target::{self, Target, shown};
use crate::error::{Error, Result};
use crate::hazard::enable::enable;
use crate::hazard::stream::{Workload, advise};
use crate::hazard::{Config, Deep, Evaluation, Facts, KERNELS, Kernel, Known, LogState, Mount, Severity};
use crate::report::{preflight, preflight_json, stream};
use crate::walk::log::Log;
use std::path::Path;

/// Most of a kernel configuration that is read: real ones have some 300 KB.
const MOST: u64 = 8 << 20;

/// Answers for the target.
pub fn run(session: &mut Session, args: &PreflightArgs) -> Result<()> {
    let config = args.kconfig.as_deref().map(read_config).transpose()?;
    let kernels = kernels(&args.kernels, config.as_ref())?;
    let sector = args.logical_sector.map(sector).transpose()?;
    let target = target::open(session, &args.target)?;
    let known = Known {
        log: target.log.as_ref(),
        logical_sector: sector.or(target.logical_sector),
        same: target.same,
        mounted_uuids: Vec::new(),
        quick: args.quick || args.stream.is_some() || args.enable_rt.is_some(),
    };
    let mut facts = Facts::of(&target.volume, known);
    let planned = plans(session, args, &target, &facts)?;
    if planned && args.kernels.is_empty() {
        target.close(session);
        return Ok(());
    }
    if !args.quick && facts.deep.is_none() {
        facts.deep = Some(Deep::read(&target.volume));
    }
    let evaluation = Evaluation::new(&facts);
    let asked = !args.kernels.is_empty();
    for verdict in kernels.iter().map(|kernel| evaluation.verdict(kernel)).filter(|_| asked) {
        if verdict.mount != Mount::Rw || verdict.reasons.iter().any(|r| r.effect.severity == Severity::Danger) {
            session.outcome(Outcome::Findings);
        }
        if verdict.is_open() && !args.quick {
            session.outcome(Outcome::Incomplete);
        }
    }
    journal::verdict(session, &target);
    if let Ok(headers) = &facts.headers
        && headers.looked_at < headers.of
    {
        let text = format!(
            "{}: the headers of {} of {} AGs were looked at, the first and the last",
            target.name, headers.looked_at, headers.of
        );
        session.warn("ag-headers-sampled", text, Outcome::Clean);
    }
    if session.common.json {
        let warnings = session.take_warnings();
        for line in preflight_json::lines(&target.name, &evaluation, &kernels, warnings) {
            session.print_json(line);
        }
    } else {
        session.print(&preflight::text(&target.name, &evaluation, &kernels, asked));
    }
    target.close(session);
    Ok(())
}

/// Answers about a workload and about a section to be added, where they were asked for.
fn plans(session: &mut Session, args: &PreflightArgs, target: &Target, facts: &Facts) -> Result<bool> {
    if let Some(text) = &args.stream {
        let workload = Workload::parse(text, number).map_err(|why| Error::request(format!("--stream {why}")))?;
        let workload =
            workload.with_deadline(args.deadline_ms).map_err(|why| Error::request(format!("--deadline-ms {why}")))?;
        let advice = advise(facts, workload);
        if session.common.json {
            session.print_json(stream::advice_json(&target.name, &advice));
        } else {
            session.print(&stream::advice_text(&target.name, &advice));
        }
    }
    if let Some(text) = &args.enable_rt {
        let (bytes, extent) = text.split_once(':').map_or((text.as_str(), None), |(size, unit)| (size, Some(unit)));
        let enabled = enable(facts, device_bytes(bytes)?, extent.map(device_bytes).transpose()?);
        if !enabled.possible() {
            session.outcome(Outcome::Findings);
        }
        if session.common.json {
            session.print_json(stream::enable_json(&target.name, &enabled));
        } else {
            session.print(&stream::enable_text(&target.name, &enabled));
        }
    }
    Ok(args.stream.is_some() || args.enable_rt.is_some())
}

/// A size of `--enable-rt`: of a device, or of a piece of it.
fn device_bytes(text: &str) -> Result<u64> {
    let bytes = number(text).map_err(|why| Error::request(format!("--enable-rt {why}")))?;
    match i64::try_from(bytes) {
        Ok(1..) => Ok(bytes),
        _ => Err(Error::request(format!("--enable-rt {text:?}: expected 1 to 2^63 - 1 bytes, as devices have"))),
    }
}

/// The state of the log as hazards take it.
pub fn log_state(target: &Target) -> LogState {
    match target.log.as_ref().and_then(Log::is_dirty) {
        Some(false) => LogState::Clean,
        Some(true) => LogState::Dirty,
        None => LogState::Unknown,
    }
}

fn sector(bytes: u64) -> Result<u32> {
    match u32::try_from(bytes) {
        Ok(size) if size.is_power_of_two() && (512..=65536).contains(&size) => Ok(size),
        _ => Err(Error::request(format!("--logical-sector {bytes}: expected a power of two from 512 to 65536"))),
    }
}

fn read_config(path: &Path) -> Result<Config> {
    let name = shown(path);
    let system = |source| Error::System { what: format!("--kconfig {name}"), source };
    let file = std::fs::File::open(path).map_err(system)?;
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(file, MOST), &mut bytes).map_err(system)?;
    Config::parse(&String::from_utf8_lossy(&bytes), &name)
}

/// The running kernel. `XFSINSPECT_HOST_KERNEL` stands for its release where it is set (`none`: there is none), so that
/// answers can be made elsewhere than where they are needed, and compared.
pub fn running() -> Result<Kernel> {
    if let Ok(release) = std::env::var("XFSINSPECT_HOST_KERNEL") {
        return Kernel::parse(&release);
    }
    let path = "/proc/sys/kernel/osrelease";
    let release = std::fs::read_to_string(path).map_err(|source| Error::System { what: path.to_owned(), source })?;
    let mut kernel = Kernel::parse(&release)?;
    let config = format!("/boot/config-{}", release.trim());
    if let Ok(config) = read_config(Path::new(&config)) {
        kernel.config = config;
    }
    Ok(kernel)
}

/// The kernels asked about, or the usual table.
fn kernels(asked: &[String], config: Option<&Config>) -> Result<Vec<Kernel>> {
    let mut kernels: Vec<Kernel> = if asked.is_empty() {
        KERNELS.iter().map(|version| Kernel::upstream(*version)).collect()
    } else {
        asked.iter().map(|text| if text == "host" { running() } else { Kernel::parse(text) }).collect::<Result<_>>()?
    };
    if let Some(config) = config {
        for kernel in &mut kernels {
            kernel.config = config.clone();
        }
    }
    Ok(kernels)
}
