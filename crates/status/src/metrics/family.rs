//! Registers every metric family, so that the registry, the reference page, and the comparison with
//! upstream have the same ones.

use prometheus::core::Collector;
use prometheus::process_collector::ProcessCollector;
use prometheus::{GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};

/// The description of one metric family.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    pub name: String,
    pub help: String,
    pub kind: FamilyKind,
    pub labels: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FamilyKind {
    Counter,
    Gauge,
    /// With the upper bounds of the buckets.
    Histogram(Vec<f64>),
}

impl FamilyKind {
    /// The type in the text format.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// A registry, and the descriptions of what was registered.
#[derive(Default)]
pub(super) struct Families {
    pub registry: Registry,
    pub families: Vec<Family>,
}

impl Families {
    pub fn counter(&mut self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        let counter = IntCounterVec::new(Opts::new(name, help), labels).expect(VALID);
        self.register(&counter, FamilyKind::Counter);
        counter
    }

    pub fn gauge(&mut self, name: &str, help: &str, labels: &[&str]) -> GaugeVec {
        let gauge = GaugeVec::new(Opts::new(name, help), labels).expect(VALID);
        self.register(&gauge, FamilyKind::Gauge);
        gauge
    }

    pub fn histogram(
        &mut self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: &[f64],
    ) -> HistogramVec {
        let opts = HistogramOpts::new(name, help).buckets(buckets.to_vec());
        let histogram = HistogramVec::new(opts, labels).expect(VALID);
        self.register(&histogram, FamilyKind::Histogram(buckets.to_vec()));
        histogram
    }

    /// `process_*`, read from the kernel at each scrape.
    pub fn process(&mut self) {
        let collector = ProcessCollector::for_self();
        let describe = |desc: &&prometheus::core::Desc| Family {
            name: desc.fq_name.clone(),
            help: desc.help.clone(),
            // The collector has no types before it collects; the name tells them.
            kind: match desc.fq_name.ends_with("_total") {
                true => FamilyKind::Counter,
                false => FamilyKind::Gauge,
            },
            labels: Vec::new(),
        };
        self.families.extend(collector.desc().iter().map(describe));
        self.registry.register(Box::new(collector)).expect(VALID);
    }

    fn register<C: Collector + Clone + 'static>(&mut self, collector: &C, kind: FamilyKind) {
        let desc = collector.desc();
        let desc = desc.first().expect("a vector has one description");
        self.families.push(Family {
            name: desc.fq_name.clone(),
            help: desc.help.clone(),
            kind,
            labels: desc.variable_labels.clone(),
        });
        self.registry.register(Box::new(collector.clone())).expect(VALID);
    }
}

const VALID: &str = "names are valid and unique: a test registers all families";
