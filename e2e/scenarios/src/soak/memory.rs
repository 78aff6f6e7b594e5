//! Memory at the quiet points, and its trend.

use std::fs;
use std::time::Duration;

/// Growth over the whole run that counts as none: allocators keep some pages.
const GROWTH_SHARE_MAX: f64 = 0.03;
const GROWTH_BYTES_MAX: f64 = 1_048_576.0;
/// Of the first samples, because caches and the allocator fill.
const WARM_UP_SHARE: f64 = 0.2;
/// A line through fewer says nothing.
const SAMPLES_MIN: usize = 4;

/// Resident bytes of one process, by the time since the start.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<(Duration, f64)>);

/// A line through the samples after the warm-up, by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    pub n_samples: usize,
    pub mean_bytes: f64,
    pub bytes_per_hour: f64,
    /// Along the line, from the first sample to the last one.
    pub growth_bytes: f64,
    pub growth_bytes_max: f64,
}

impl Trend {
    pub fn is_flat(&self) -> bool {
        self.growth_bytes <= self.growth_bytes_max
    }
}

impl Samples {
    pub fn add(&mut self, at: Duration, bytes: u64) {
        self.0.push((at, bytes as f64));
    }

    pub fn last_bytes(&self) -> f64 {
        self.0.last().map_or(0.0, |&(_, bytes)| bytes)
    }

    /// `None` if there are too few samples.
    pub fn trend(&self) -> Option<Trend> {
        let n_warm_up = (self.0.len() as f64 * WARM_UP_SHARE).ceil() as usize;
        let samples = self.0.get(n_warm_up..)?;
        if samples.len() < SAMPLES_MIN {
            return None;
        }
        let n = samples.len() as f64;
        let hours = |at: Duration| at.as_secs_f64() / 3600.0;
        let mean_hours = samples.iter().map(|&(at, _)| hours(at)).sum::<f64>() / n;
        let mean_bytes = samples.iter().map(|&(_, bytes)| bytes).sum::<f64>() / n;
        let (mut covariance, mut variance) = (0.0, 0.0);
        for &(at, bytes) in samples {
            let distance = hours(at) - mean_hours;
            covariance += distance * (bytes - mean_bytes);
            variance += distance * distance;
        }
        let bytes_per_hour = if variance > 0.0 { covariance / variance } else { 0.0 };
        let (first, last) = (samples.first()?.0, samples.last()?.0);
        Some(Trend {
            n_samples: samples.len(),
            mean_bytes,
            bytes_per_hour,
            growth_bytes: bytes_per_hour * hours(last - first),
            growth_bytes_max: (mean_bytes * GROWTH_SHARE_MAX).max(GROWTH_BYTES_MAX),
        })
    }
}

pub fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse().ok());
    kilobytes.unwrap_or(0_u64) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(bytes: impl Fn(f64) -> f64) -> Samples {
        let at = |minute: u64| Duration::from_secs(60 * minute);
        Samples((0..60).map(|minute| (at(minute), bytes(minute as f64))).collect())
    }

    #[test]
    fn noise_around_a_constant_is_flat() {
        let trend = samples(|minute| 20e6 + 300e3 * (minute * 7.0).sin()).trend().unwrap();
        assert!(trend.is_flat(), "{trend:?}");
        assert_eq!(trend.n_samples, 48);
    }

    #[test]
    fn constant_growth_is_not_flat() {
        let trend = samples(|minute| 20e6 + 40e3 * minute).trend().unwrap();
        assert!((trend.bytes_per_hour - 2.4e6).abs() < 1.0, "{trend:?}");
        assert!(!trend.is_flat());
    }

    #[test]
    fn growth_during_the_warm_up_does_not_count() {
        let trend = samples(|minute| 20e6 + 1e6 * minute.min(10.0)).trend().unwrap();
        assert!(trend.is_flat(), "{trend:?}");
    }

    #[test]
    fn few_samples_have_no_trend() {
        assert_eq!(Samples(vec![(Duration::ZERO, 1.0); 4]).trend(), None);
    }

    #[test]
    fn this_process_has_memory() {
        assert!(resident_bytes(std::process::id()) > 100_000);
    }
}
