//! The stable codes of findings. Each has an anchor in `docs/explain.md`; a test compares the two.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How urgent a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A Service has no endpoints, or is not updated.
    Error,
    /// A pod or a part of the Service does not work as intended.
    Warning,
    /// By design, and often unexpected.
    Info,
}

/// What a finding is about. A sentence never mixes two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// What should be published, as the controllers decide it.
    Plan,
    /// What the stored objects contain, and who writes them.
    Published,
    /// What kube-proxy and DNS make of the published objects.
    Clients,
}

macro_rules! codes {
    ($($variant:ident $number:literal $level:ident $layer:ident $title:literal;)*) => {
        /// A cause. The number never changes its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $title] $variant,)*
        }

        impl Code {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            pub fn number(self) -> u16 {
                match self { $(Self::$variant => $number,)* }
            }

            pub fn level(self) -> Level {
                match self { $(Self::$variant => Level::$level,)* }
            }

            pub fn layer(self) -> Layer {
                match self { $(Self::$variant => Layer::$layer,)* }
            }

            /// The cause in a few words: the heading in the documentation.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }
        }
    };
}

codes! {
    NoSuchService 101 Error Plan "no such Service";
    NothingMatches 102 Error Plan "no pod matches the selector";
    LabelValueTypo 103 Warning Plan "a label value is nearly right";
    LabelMissing 104 Warning Plan "one label is missing";
    LabelUnderOtherKey 105 Warning Plan "the value is under another key";
    LabelSpelling 106 Warning Plan "a label value differs only in case, separators, or spaces";
    OtherNamespace 107 Warning Plan "the labels are in another namespace";
    LabelNotOnTemplate 108 Warning Plan "the label is on the workload and not on its pod template";
    SelectorNamesRollout 109 Error Plan "the selector names one rollout";
    NoPodsOfWorkload 110 Error Plan "the workload has no pods";
    TwoWorkloads 111 Info Plan "the selector chooses several workloads";
    NoSelector 112 Warning Plan "the Service has no selector";
    SelectorRemoved 113 Warning Published "the Service had a selector before";
    ManualEndpoints 114 Warning Published "manual changes of Endpoints are overwritten";
    ExternalName 115 Info Plan "an ExternalName has no endpoints";
    ServiceDeleting 116 Warning Plan "the Service is being deleted";
    NotScheduled 201 Warning Plan "the pod has no node";
    NoAddress 202 Warning Plan "the pod has no address yet";
    PodFailed 203 Info Plan "the pod has failed";
    PodSucceeded 204 Info Plan "the pod has completed";
    NodeMissing 205 Warning Plan "the pod's node does not exist";
    Terminating 206 Info Plan "the pod is terminating";
    TerminatingLong 207 Warning Plan "the pod has been terminating for too long";
    SharedAddress 208 Warning Clients "two pods have one address";
    HostNetwork 209 Info Clients "pods share the address of their node";
    InvalidAddress 210 Warning Plan "the pod's address is invalid";
    ReadinessProbe 301 Warning Plan "the readiness probe fails";
    StartupProbe 302 Warning Plan "the startup probe has not passed";
    ContainerNotRunning 303 Warning Plan "a container does not run";
    ReadinessGate 304 Warning Plan "a readiness gate is not set";
    NodeNotReady 305 Warning Plan "the node does not report";
    SidecarNotReady 306 Warning Plan "another container of the pod is not ready";
    ReadyJustNow 307 Info Published "readiness changed a moment ago";
    NotReadyPublished 308 Info Clients "pods that are not ready get traffic";
    NotResolvable 309 Info Clients "no DNS name before the pod is ready";
    TolerateUnready 310 Warning Plan "the tolerate-unready annotation";
    PortNameMissing 401 Warning Plan "no container has a port of that name";
    PortProtocol 402 Warning Plan "the port has another protocol";
    PortUndeclared 403 Info Plan "the port number is not declared";
    PortNumbersDiffer 404 Info Plan "one port name, several numbers";
    ServiceWithoutPorts 405 Warning Plan "the Service has no ports";
    SlicePortName 406 Warning Clients "a manual slice names its port differently";
    HostnameNotPublished 407 Warning Clients "the pod's hostname is not published";
    FamilyMissing 501 Warning Plan "the pod has no address of the Service's family";
    DualStackHalf 502 Warning Plan "one family has fewer endpoints";
    EndpointsOneFamily 503 Info Published "Endpoints contain one family only";
    TooFewForHints 601 Warning Plan "too few endpoints for topology hints";
    NodeWithoutZone 602 Warning Plan "a node without zone prevents hints";
    NodeWithoutCpu 603 Warning Plan "a node without allocatable CPU prevents hints";
    AnnotationWins 604 Info Plan "the topology annotation wins";
    UnknownDistribution 605 Warning Plan "trafficDistribution has an unknown value";
    ZoneWithoutHints 606 Info Clients "no endpoint is hinted for a zone";
    EndpointWithoutHints 607 Warning Clients "some endpoints have no hints";
    LocalPolicy 608 Warning Clients "a Local policy and nodes without endpoints";
    SkipMirror 701 Info Plan "the Endpoints have the skip-mirror label";
    LeaderElectionLock 702 Info Plan "the Endpoints are a leader election lock";
    EndpointsWithoutService 703 Warning Plan "the Endpoints have no Service";
    AddressesNotMirrored 704 Warning Plan "some addresses are not mirrored";
    ManualSlices 705 Info Published "slices of other writers";
    ImportIgnored 706 Warning Plan "the Service cannot have endpoints of another one";
    ImportRefused 707 Error Published "the endpoints of the source are not published";
    Imported 708 Info Published "the endpoints of another Service";
    ImportNotProcessed 709 Error Published "no controller imports endpoints";
    Exported 710 Info Published "this cluster exports the Service";
    ExportNotProcessed 711 Error Published "no controller processes the export";
    ExportInvalid 712 Error Published "the export is not valid";
    ExportNotReady 713 Warning Published "the export does not take part here";
    ExportConflict 714 Warning Published "the clusters do not agree on the Service";
    ImportedFromCluster 715 Info Published "the endpoints of one cluster";
    PortNotServed 716 Warning Published "a cluster does not serve a port of the import";
    ClusterLost 717 Warning Published "a cluster does not answer";
    ImportNotReady 718 Error Published "clients cannot use the import";
    AddressesOverlap 719 Warning Published "two clusters have the same address";
    Truncated 801 Warning Published "the Endpoints are truncated";
    PublishedDiffers 802 Error Published "what is published is not what should be";
    WriteRejected 803 Error Published "writes are rejected";
    NoLeader 804 Error Published "no controller is running";
    TwoWriters 805 Error Published "two controllers write the same slices";
    DeletionsLimited 806 Warning Published "deletions are limited";
    DecodeError 807 Warning Published "an object cannot be decoded";
    AllWell 900 Info Clients "no cause found here";
}

/// `EPD103`.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EPD{}", self.number())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let found = Self::ALL.iter().find(|code| code.to_string() == text);
        found.copied().ok_or_else(|| D::Error::custom(format!("unknown code `{text}`")))
    }
}
