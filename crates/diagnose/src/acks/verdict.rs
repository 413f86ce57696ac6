// SPDX-License-Identifier: MIT
//! The verdict on a receiver's policy, from the scores of all policies.

use super::follower::Score;
use crate::distance::is_at_host;
use serde::Serialize;

/// Minimum number of ACKs for a verdict: fewer fit any policy.
const ACKS_MIN: u32 = 8;
/// Minimum share of ACKs that the receiver's policy must explain.
const SHARE_MIN: f64 = 0.5;
/// Minimum share away from the receiver, where times are less exact.
const FAR_SHARE_MIN: f64 = 0.8;
const SHARE_HIGH: f64 = 0.9;
/// Advantage that fitting may give, in general and where arrivals are regular.
const FITTED_SHARE: f64 = 0.02;
const ALIKE_SHARE: f64 = 0.1;

/// Input of a verdict.
#[derive(Clone, Debug, Default)]
pub struct AckFeatures {
    /// Scores of all policies, the simplest first.
    pub scores: Vec<(&'static str, Score)>,
    /// Number of ACKs that acknowledge data for the first time.
    pub advancing: u64,
    /// Number of these that acknowledge a whole window.
    pub window_bound: u64,
    /// Whether the receiver's packets are in the capture.
    pub is_answered: bool,
    /// Whether the data sender's packets are in the capture.
    pub has_data: bool,
    /// RTT between the capture point and the receiver, nanoseconds.
    pub distance_ns: Option<u64>,
}

/// How certain a verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// One policy explains nearly all ACKs, and no other does.
    High,
    /// It explains most ACKs, or others explain as many.
    Medium,
    /// The capture was taken away from the receiver, where only counts of segments are reliable.
    Low,
}

/// Why there is no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undecided {
    /// Data or ACKs are not in the capture: both directions would decide.
    OneDirection,
    /// There are too few ACKs: a longer capture would decide.
    FewAcks,
    /// The path hides the policy: a capture at the receiver would decide.
    FarFromReceiver,
    /// The window is full before a policy would send an ACK.
    WindowBound,
    /// No known policy behaves like this receiver.
    UnlikeAny,
}

/// The policies that explain the ACKs, including those that cannot be distinguished.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AckVerdict {
    /// Names, the best first; empty if undecided.
    pub policies: Vec<&'static str>,
    /// Share of the judged ACKs that the first policy explains, 0 to 1.
    pub share: f64,
    /// Number of ACKs that the policies were compared on.
    pub judged_acks: u32,
    /// Scores of all policies.
    pub scores: Vec<(&'static str, Score)>,
    /// How certain the verdict is; None if undecided.
    pub confidence: Option<Confidence>,
    /// Why there is no verdict; None if there is one.
    pub undecided: Option<Undecided>,
}

/// The verdict on these features.
pub fn judge(features: &AckFeatures) -> AckVerdict {
    let judged_acks = features.scores.iter().map(|(_, s)| s.acks).max().unwrap_or(0);
    let verdict = AckVerdict { judged_acks, scores: features.scores.clone(), ..AckVerdict::default() };
    let undecided = |why| AckVerdict { undecided: Some(why), ..verdict.clone() };
    if !features.has_data || !features.is_answered {
        return undecided(Undecided::OneDirection);
    }
    let is_far = !is_at_host(features.distance_ns);
    let ranked = rank(&features.scores, is_far);
    let Some(&(_, best)) = ranked.first() else {
        return undecided(Undecided::FewAcks);
    };
    let (least, why) = match is_far {
        true => (FAR_SHARE_MIN, Undecided::FarFromReceiver),
        false => (SHARE_MIN, Undecided::UnlikeAny),
    };
    if share(&best) < least {
        let is_bound = 2 * features.window_bound > features.advancing;
        return undecided(if is_bound { Undecided::WindowBound } else { why });
    }
    // Regular arrivals look the same to any fitted value.
    let extra = if best.is_fitted { ALIKE_SHARE * f64::from(best.acks) } else { 0.0 };
    let is_alike = |score: &Score| excess(&best, score) <= slack(&best) + extra;
    let policies: Vec<_> = ranked.iter().filter(|(_, s)| is_alike(s)).map(|(name, _)| *name).collect();
    let confidence = match (is_far, policies.len(), share(&best) >= SHARE_HIGH) {
        (true, ..) => Confidence::Low,
        (false, 1, true) => Confidence::High,
        _ => Confidence::Medium,
    };
    AckVerdict { policies, share: share(&best), confidence: Some(confidence), ..verdict }
}

/// Policies that may be the receiver's, best first.
fn rank(scores: &[(&'static str, Score)], is_far: bool) -> Vec<(&'static str, Score)> {
    let mut ranked: Vec<_> = scores.iter().copied().filter(|(_, s)| s.acks >= ACKS_MIN).collect();
    ranked.sort_by(|(_, a), (_, b)| share(b).total_cmp(&share(a)));
    let Some(&(_, first)) = ranked.first() else { return ranked };
    // A fitted policy explains ACKs more easily. Where an unfitted one does nearly as well, prefer
    // it; away from the receiver, the value would be fitted to the path.
    let nearly = slack(&first) + FITTED_SHARE * f64::from(first.acks);
    if is_far || ranked.iter().any(|(_, s)| !s.is_fitted && excess(&first, s) <= nearly) {
        ranked.retain(|(_, s)| !s.is_fitted);
    }
    ranked
}

fn share(score: &Score) -> f64 {
    f64::from(score.explained) / f64::from(score.acks.max(1))
}

/// Number of ACKs that this policy fails to explain beyond the best one's failures.
fn excess(best: &Score, score: &Score) -> f64 {
    (share(best) - share(score)) * f64::from(score.acks)
}

/// Random variation of the best one: two standard deviations of its failures, plus one ACK or two.
fn slack(best: &Score) -> f64 {
    1.5 + 2.0 * f64::from(best.acks - best.explained).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Features with the number of ACKs out of 1000 that each policy explained.
    fn of(scores: &[(&'static str, u32)]) -> AckFeatures {
        let score = |&(name, explained): &(&'static str, u32)| {
            (name, Score { acks: 1000, explained, is_fitted: name == "dynamic" })
        };
        AckFeatures {
            scores: scores.iter().map(score).collect(),
            advancing: 1000,
            window_bound: 0,
            is_answered: true,
            has_data: true,
            distance_ns: Some(0),
        }
    }

    #[test]
    fn one_policy_that_explains_nearly_all_is_named_with_confidence() {
        let found = judge(&of(&[("every", 10), ("delayed", 980), ("linux", 700)]));
        assert_eq!(found.policies, ["delayed"]);
        assert_eq!(found.confidence, Some(Confidence::High));
        assert_eq!((found.share, found.judged_acks, found.undecided), (0.98, 1000, None));
    }

    #[test]
    fn policies_that_differ_by_chance_only_are_named_together() {
        let found = judge(&of(&[("linux", 985), ("ratelimit", 990), ("delayed", 900)]));
        assert_eq!(found.policies, ["ratelimit", "linux"]);
        assert_eq!(found.confidence, Some(Confidence::Medium));
    }

    #[test]
    fn a_few_acks_decide_where_the_best_never_fails() {
        assert_eq!(judge(&of(&[("a3", 1000), ("csa3", 995)])).policies, ["a3"]);
    }

    #[test]
    fn what_is_fitted_is_named_only_where_nothing_else_explains_the_acks() {
        assert_eq!(judge(&of(&[("delayed", 985), ("dynamic", 1000)])).policies, ["delayed"]);
        assert_eq!(judge(&of(&[("delayed", 800), ("dynamic", 1000)])).policies, ["dynamic"]);
    }

    #[test]
    fn without_an_answer_it_says_what_is_missing() {
        let good = of(&[("linux", 990)]);
        let far = Some(20_000_000);
        let few = vec![("linux", Score { acks: 5, explained: 5, is_fitted: false })];
        let nothing = of(&[("linux", 300), ("every", 200)]);
        for (features, why) in [
            (AckFeatures { is_answered: false, ..good.clone() }, Undecided::OneDirection),
            (AckFeatures { has_data: false, ..good.clone() }, Undecided::OneDirection),
            (AckFeatures { scores: few, ..good.clone() }, Undecided::FewAcks),
            (AckFeatures { distance_ns: far, ..nothing.clone() }, Undecided::FarFromReceiver),
            (AckFeatures { window_bound: 501, ..nothing.clone() }, Undecided::WindowBound),
            (nothing, Undecided::UnlikeAny),
        ] {
            let found = judge(&features);
            assert_eq!((found.undecided, found.policies.len()), (Some(why), 0));
        }
        let fitted = of(&[("every", 900), ("dynamic", 1000)]);
        assert_eq!(judge(&AckFeatures { distance_ns: far, ..fitted }).policies, ["every"]);
        let found = judge(&AckFeatures { distance_ns: far, ..good });
        assert_eq!((found.policies, found.confidence), (vec!["linux"], Some(Confidence::Low)));
    }
}
