// SPDX-License-Identifier: MIT
//! The version of ECN that a handshake negotiates.

use serde::Serialize;

/// Version of ECN negotiated in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ecn {
    /// ECN was not negotiated.
    None,
    /// RFC 3168.
    Classic,
    /// RFC 9768.
    Accurate,
}

impl Ecn {
    /// The version according to the flags of SYN and SYN-ACK (RFC 3168, 6.1.1; RFC 9768, table 2).
    pub(crate) fn of([syn, syn_ack]: [u16; 2]) -> Self {
        use ackwise_capture::tcp_flag::{AE, CWR, ECE};
        let all = AE | CWR | ECE;
        match (syn & all, syn_ack & all) {
            (offer, answer) if offer == all && (answer == CWR || answer == CWR | ECE) => Ecn::Accurate,
            (offer, answer) if offer == all && (answer == AE || answer == AE | CWR) => Ecn::Accurate,
            (offer, ECE) if offer & (CWR | ECE) == CWR | ECE => Ecn::Classic,
            // The answer of RFC 3540.
            (offer, answer) if offer == all && answer == AE | ECE => Ecn::Classic,
            _ => Ecn::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackwise_capture::tcp_flag::{ACK, AE, CWR, ECE, SYN};

    #[test]
    fn the_handshake_agrees_on_ecn_as_rfc_9768_says() {
        let accurate = SYN | AE | CWR | ECE;
        let classic = SYN | CWR | ECE;
        // Not-ECT, ECT(1), ECT(0), CE on the SYN; then classic, broken and no answers.
        for answer in [CWR, CWR | ECE, AE, AE | CWR] {
            assert_eq!(Ecn::of([accurate, SYN | ACK | answer]), Ecn::Accurate);
            assert_eq!(Ecn::of([classic, SYN | ACK | answer]), Ecn::None);
        }
        assert_eq!(Ecn::of([accurate, SYN | ACK | ECE]), Ecn::Classic);
        assert_eq!(Ecn::of([accurate, SYN | ACK | AE | ECE]), Ecn::Classic);
        assert_eq!(Ecn::of([classic, SYN | ACK | ECE]), Ecn::Classic);
        for answer in [0, AE | CWR | ECE] {
            assert_eq!(Ecn::of([accurate, SYN | ACK | answer]), Ecn::None);
        }
        assert_eq!(Ecn::of([SYN, SYN | ACK | ECE]), Ecn::None);
    }
}
