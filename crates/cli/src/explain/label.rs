//! The word before a finding.

use endpointd_explain::Code;

pub const READY: &str = "ready";

/// What the finding is about, in a word or two.
pub fn label(code: Code) -> &'static str {
    match code {
        Code::NoSuchService => "Service",
        Code::NothingMatches | Code::SelectorNamesRollout | Code::TwoWorkloads => "selector",
        Code::NoSelector | Code::SelectorRemoved => "selector",
        Code::LabelValueTypo
        | Code::LabelMissing
        | Code::LabelUnderOtherKey
        | Code::LabelSpelling
        | Code::OtherNamespace
        | Code::LabelNotOnTemplate => "not chosen",
        Code::NoPodsOfWorkload => "no pods",
        Code::ManualEndpoints | Code::Truncated | Code::EndpointsOneFamily => "Endpoints",
        Code::ExternalName => "alias",
        Code::ServiceDeleting => "deleted",
        Code::NotScheduled
        | Code::NoAddress
        | Code::PodFailed
        | Code::PodSucceeded
        | Code::NodeMissing
        | Code::InvalidAddress => "left out",
        Code::Terminating | Code::TerminatingLong => "terminating",
        Code::SharedAddress | Code::HostNetwork | Code::AddressesOverlap => "address",
        Code::ReadinessProbe
        | Code::StartupProbe
        | Code::ContainerNotRunning
        | Code::ReadinessGate
        | Code::NodeNotReady
        | Code::SidecarNotReady => "not ready",
        Code::ReadyJustNow => "soon",
        Code::NotReadyPublished => "not ready",
        Code::TolerateUnready => "annotation",
        Code::NotResolvable | Code::HostnameNotPublished => "DNS",
        Code::PortNameMissing
        | Code::PortProtocol
        | Code::PortUndeclared
        | Code::PortNumbersDiffer
        | Code::ServiceWithoutPorts
        | Code::SlicePortName => "port",
        Code::FamilyMissing | Code::DualStackHalf => "family",
        Code::TooFewForHints
        | Code::NodeWithoutZone
        | Code::NodeWithoutCpu
        | Code::AnnotationWins
        | Code::UnknownDistribution
        | Code::ZoneWithoutHints
        | Code::EndpointWithoutHints => "zones",
        Code::LocalPolicy => "policy",
        Code::SkipMirror
        | Code::LeaderElectionLock
        | Code::EndpointsWithoutService
        | Code::AddressesNotMirrored => "mirroring",
        Code::ManualSlices | Code::TwoWriters => "writers",
        Code::ImportIgnored | Code::ImportRefused | Code::Imported | Code::ImportNotProcessed => {
            "source"
        }
        Code::Exported | Code::ExportNotProcessed | Code::ExportInvalid | Code::ExportNotReady => {
            "export"
        }
        Code::ExportConflict => "conflict",
        Code::ImportedFromCluster => "cluster",
        Code::PortNotServed => "port",
        Code::ClusterLost => "no answer",
        Code::ImportNotReady => "import",
        Code::PublishedDiffers => "outdated",
        Code::WriteRejected => "rejected",
        Code::NoLeader => "no leader",
        Code::DeletionsLimited => "limited",
        Code::DecodeError => "malformed",
        Code::AllWell => "well",
    }
}
