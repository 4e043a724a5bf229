//! Metrics of this process from `/proc`, with the names that Prometheus clients use.

use std::{fmt, fs, io};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Unit;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use super::gauge::gauge;

#[derive(Debug)]
pub(super) struct ProcessCollector;

#[derive(Debug, PartialEq)]
struct ProcessUsage {
    cpu_seconds: f64,
    /// Since boot.
    start_seconds: f64,
    threads: u64,
    virtual_bytes: u64,
    resident_bytes: u64,
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        // Without /proc there are none of these.
        let Ok(now) = ProcessSample::read() else { return Ok(()) };
        let ProcessSample { usage, start, open_fds, max_fds } = &now;
        let help = "Processor time in user and system mode.";
        let cpu =
            encoder.encode_descriptor("process_cpu", help, Some(&Unit::Seconds), MetricType::Counter)?;
        ConstCounter::new(usage.cpu_seconds).encode(cpu)?;
        let bytes = Some(&Unit::Bytes);
        let help = "Memory that is resident.";
        gauge(&mut encoder, "process_resident_memory", help, bytes)?.encode_gauge(&usage.resident_bytes)?;
        let help = "Memory that is addressed.";
        gauge(&mut encoder, "process_virtual_memory", help, bytes)?.encode_gauge(&usage.virtual_bytes)?;
        gauge(&mut encoder, "process_threads", "Threads.", None)?.encode_gauge(&usage.threads)?;
        gauge(&mut encoder, "process_open_fds", "Open file descriptors.", None)?.encode_gauge(open_fds)?;
        let help = "File descriptors that may be open.";
        gauge(&mut encoder, "process_max_fds", help, None)?.encode_gauge(max_fds)?;
        let help = "When the process started, in seconds since 1970.";
        gauge(&mut encoder, "process_start_time", help, Some(&Unit::Seconds))?.encode_gauge(start)
    }
}

struct ProcessSample {
    usage: ProcessUsage,
    start: f64,
    open_fds: u64,
    max_fds: u64,
}

impl ProcessSample {
    fn read() -> io::Result<Self> {
        let strange = || io::Error::other("it is not understood");
        let ticks = clock_ticks_per_second() as f64;
        let usage = fs::read_to_string("/proc/self/stat")?;
        let usage = ProcessUsage::of(&usage, ticks, page_size() as u64).ok_or_else(strange)?;
        let boot = boot_seconds(&fs::read_to_string("/proc/stat")?).ok_or_else(strange)?;
        // The listing itself uses one descriptor.
        let open_fds = (fs::read_dir("/proc/self/fd")?.count() as u64).saturating_sub(1);
        let max_fds = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Ok(Self { start: boot + usage.start_seconds, usage, open_fds, max_fds })
    }
}

impl ProcessUsage {
    /// From `/proc/self/stat` (proc_pid_stat(5)).
    fn of(stat: &str, ticks: f64, page: u64) -> Option<Self> {
        // The name of the program may contain anything, parentheses too.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // The first of these is `state`, number 3 in the manual.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            cpu_seconds: (field(14)? + field(15)?) as f64 / ticks,
            threads: field(20)?,
            start_seconds: field(22)? as f64 / ticks,
            virtual_bytes: field(23)?,
            resident_bytes: field(24)? * page,
        })
    }
}

/// The boot time from `/proc/stat`.
fn boot_seconds(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_from_stat() {
        let stat = "12 (a) b) S 1 2 3 0 -1 4194560 9 8 7 6 150 50 0 0 20 0 7 0 1200 4096000 25 18446744073709551615 1";
        let expected = ProcessUsage {
            cpu_seconds: 2.0,
            start_seconds: 12.0,
            threads: 7,
            virtual_bytes: 4_096_000,
            resident_bytes: 25 * 4096,
        };
        assert_eq!(ProcessUsage::of(stat, 100.0, 4096), Some(expected));
        assert_eq!(ProcessUsage::of("12 (a) S 1", 100.0, 4096), None);
        assert_eq!(boot_seconds("cpu 1 2\nbtime 1700000000\nprocesses 4\n"), Some(1_700_000_000.0));
        assert_eq!(boot_seconds("cpu 1 2\n"), None);
    }

    #[test]
    fn this_process_is_read() {
        let now = ProcessSample::read().expect("/proc");
        assert!(now.usage.resident_bytes > 1024 * 1024, "{:?}", now.usage);
        assert!(now.open_fds >= 3 && now.max_fds >= now.open_fds);
        let age = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("a clock").as_secs_f64() - now.start;
        assert!((-2.0..86_400.0).contains(&age), "{age}");
    }
}
