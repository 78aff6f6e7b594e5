//! Timestamps in whole seconds, the precision of the API server.

use endpointd_model::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// `metav1.Time`. The zero time is an empty protobuf message, without seconds.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Time {
    #[prost(int64, optional, tag = "1")]
    pub seconds: Option<i64>,
}

/// 0001-01-01T00:00:00Z: Go's zero time, and the earliest time in its JSON.
const SECONDS_MIN: i64 = -62_135_596_800;
/// The last whole second of [`Timestamp`].
const SECONDS_MAX: i64 = 253_402_207_200;

impl Time {
    /// A time out of range becomes the nearest time in range.
    pub fn timestamp(self) -> Timestamp {
        let seconds = self.seconds.unwrap_or(SECONDS_MIN).clamp(SECONDS_MIN, SECONDS_MAX);
        Timestamp::from_second(seconds).expect("clamped to what a timestamp can hold")
    }

    /// None for the zero time.
    pub fn when(self) -> Option<Timestamp> {
        let seconds = self.seconds?;
        (seconds != SECONDS_MIN).then(|| self.timestamp())
    }
}

impl From<Timestamp> for Time {
    fn from(at: Timestamp) -> Self {
        let seconds = at.as_second() - i64::from(at.subsec_nanosecond() < 0);
        Self { seconds: (seconds != SECONDS_MIN).then_some(seconds) }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.timestamp())
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() {
            return Err(de::Error::custom("empty timestamp"));
        }
        let at: Timestamp = text.parse().map_err(de::Error::custom)?;
        Ok(Self::from(at))
    }
}
