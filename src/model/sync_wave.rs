//! The sync wave of an object: its place in the apply order of its app.

use std::fmt;

use serde::Serialize;

use super::labels;

/// The number in [`labels::SYNC_WAVE`]; 0 without it. Small, as it is kept of every live object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SyncWave(i16);

/// An annotation value that is no valid sync wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidSyncWave<'a>(pub &'a str);

impl SyncWave {
    pub const LOWEST: i16 = i16::MIN;
    pub const HIGHEST: i16 = i16::MAX;

    /// From the annotations of an object, of which `annotation` tells one by its name. Ours counts before Argo CD's, which is
    /// read as Argo CD does: what is no number is 0.
    pub fn of<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> Result<Self, InvalidSyncWave<'a>> {
        if let Some(says) = annotation(labels::SYNC_WAVE) {
            return says.parse().map(Self).map_err(|_| InvalidSyncWave(says));
        }
        let foreign = annotation(labels::ARGO_SYNC_WAVE).and_then(|says| says.parse::<i64>().ok());
        let near = foreign.unwrap_or_default().clamp(Self::LOWEST.into(), Self::HIGHEST.into());
        Ok(Self(i16::try_from(near).unwrap_or_default()))
    }

    pub fn number(self) -> i16 {
        self.0
    }

    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for SyncWave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
impl From<i16> for SyncWave {
    fn from(number: i16) -> Self {
        Self(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_wave_overrides_argo_wave() {
        let check = |ours: Option<&'static str>, argo: Option<&'static str>, expected: Result<i16, &str>| {
            let wave = SyncWave::of(|name| match name {
                labels::SYNC_WAVE => ours,
                labels::ARGO_SYNC_WAVE => argo,
                other => panic!("{other}"),
            });
            assert_eq!(wave.map(|wave| wave.0).map_err(|wrong| wrong.0), expected);
        };
        check(None, None, Ok(0));
        check(Some("-5"), Some("3"), Ok(-5));
        check(None, Some("+3"), Ok(3));
        check(Some("two"), Some("3"), Err("two"));
        check(Some("40000"), None, Err("40000"));
        check(None, Some("40000"), Ok(i16::MAX));
        check(None, Some(""), Ok(0));
        check(Some(""), None, Err(""));
    }
}
