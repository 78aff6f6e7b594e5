//! Medians, percentiles, spread.

/// The values of one measurement over all rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples(Vec<f64>);

impl Samples {
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub fn all(&self) -> &[f64] {
        &self.0
    }

    pub fn median(&self) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => None,
            n if n.is_multiple_of(2) => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
            _ => Some(sorted[middle]),
        }
    }

    /// Minimum and maximum.
    pub fn range(&self) -> Option<(f64, f64)> {
        let smallest = self.0.iter().copied().min_by(f64::total_cmp)?;
        let largest = self.0.iter().copied().max_by(f64::total_cmp)?;
        Some((smallest, largest))
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// The value that `percent` of `values` do not exceed (nearest rank); `None` without values.
pub fn percentile(values: &[f64], percent: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// `value` relative to `base`; `None` if `base` is zero.
pub fn ratio(value: f64, base: f64) -> Option<f64> {
    (base > 0.0).then(|| value / base)
}

pub fn show_ratio(ratio: f64) -> String {
    if ratio >= 10.0 { format!("{ratio:.0}×") } else { format!("{ratio:.1}×") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even_numbers_of_values() {
        let median = |values: &[f64]| values.iter().copied().collect::<Samples>().median();
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 9.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }

    #[test]
    fn range_is_minimum_and_maximum() {
        let samples: Samples = [3.0, 1.0, 9.0].into_iter().collect();
        assert_eq!(samples.range(), Some((1.0, 9.0)));
        assert_eq!(Samples::default().range(), None);
    }

    #[test]
    fn percentile_returns_a_measured_value() {
        let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 50.0), Some(100.0));
        assert_eq!(percentile(&values, 99.0), Some(198.0));
        assert_eq!(percentile(&values, 100.0), Some(200.0));
        assert_eq!(percentile(&[7.0], 1.0), Some(7.0));
        assert_eq!(percentile(&[], 50.0), None);
    }

    #[test]
    fn ratio_to_zero_is_none() {
        assert_eq!(ratio(10.0, 4.0), Some(2.5));
        assert_eq!(ratio(10.0, 0.0), None);
    }
}
