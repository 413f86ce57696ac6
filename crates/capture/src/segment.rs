// SPDX-License-Identifier: MIT
//! What is read from the headers of a packet: a TCP segment, or why there is none.

use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// TCP header flags, in the bits of [`crate::Record::flags`].
pub mod tcp_flag {
    /// The sender has no more data.
    pub const FIN: u16 = 0x001;
    /// Synchronizes sequence numbers: opens a connection.
    pub const SYN: u16 = 0x002;
    /// Resets the connection.
    pub const RST: u16 = 0x004;
    /// The receiver should pass the data to the application.
    pub const PSH: u16 = 0x008;
    /// The acknowledgment number is valid.
    pub const ACK: u16 = 0x010;
    /// The urgent pointer is valid.
    pub const URG: u16 = 0x020;
    /// ECN-Echo (RFC 3168, 6.1); part of the ACE counter with AccECN.
    pub const ECE: u16 = 0x040;
    /// Congestion Window Reduced (RFC 3168, 6.1); part of the ACE counter with AccECN.
    pub const CWR: u16 = 0x080;
    /// Accurate ECN, formerly NS (RFC 9768, 3.1); part of the ACE counter.
    pub const AE: u16 = 0x100;
}

/// Why a packet does not count as TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SkipCause {
    /// The link type of its interface is not supported, or the interface was not described.
    UnknownLink,
    /// The record carries no time (pcapng simple packets).
    NoTime,
    /// Neither IPv4 nor IPv6 (ARP, LLDP, PPPoE discovery ...).
    NotIp,
    /// IP, but no TCP header in it (UDP, ICMP, encrypted).
    NotTcp,
    /// A later part of a fragmented IP packet whose first part is missing.
    Fragment,
    /// The snap length cut the headers.
    Cut,
    /// The headers contradict each other.
    Malformed,
    /// An encrypted 802.11 frame.
    Encrypted,
}

impl SkipCause {
    pub(crate) const ALL: [SkipCause; 8] = [
        SkipCause::UnknownLink,
        SkipCause::NoTime,
        SkipCause::NotIp,
        SkipCause::NotTcp,
        SkipCause::Fragment,
        SkipCause::Cut,
        SkipCause::Malformed,
        SkipCause::Encrypted,
    ];
}

/// The tunnel that carried a TCP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Tunnel {
    /// IPv4 or IPv6 in IPv4 or IPv6 (RFC 2003, 2473, 4213).
    IpInIp,
    /// GRE, also with Ethernet or PPP inside, and mirrored frames (ERSPAN).
    Gre,
    /// VXLAN (RFC 7348) on UDP port 4789 or 8472.
    Vxlan,
    /// Geneve (RFC 8926) on UDP port 6081.
    Geneve,
    /// User data of a mobile network (3GPP TS 29.281).
    GtpU,
    /// L2TP, version 2 (RFC 2661) or 3 (RFC 3931).
    L2tp,
    /// IPv6 in UDP (RFC 4380).
    Teredo,
    /// Mirrored frames.
    Tzsp,
}

impl Tunnel {
    /// Every kind.
    pub const ALL: [Tunnel; 8] = [
        Tunnel::IpInIp,
        Tunnel::Gre,
        Tunnel::Vxlan,
        Tunnel::Geneve,
        Tunnel::GtpU,
        Tunnel::L2tp,
        Tunnel::Teredo,
        Tunnel::Tzsp,
    ];
}

/// What an IP packet without TCP carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Protocol {
    /// IPsec (RFC 4303), also in UDP (RFC 3948).
    Esp,
    /// UDP port 51820.
    WireGuard,
    /// UDP port 1194.
    OpenVpn,
    /// UDP port 443.
    Quic,
    /// UDP port 53.
    Dns,
    /// ICMP, of IPv4 or IPv6.
    Icmp,
    /// SCTP (RFC 9260).
    Sctp,
    /// Any other UDP.
    Udp,
    /// Any other IP.
    Other,
}

impl Protocol {
    pub(crate) const ALL: [Protocol; 9] = [
        Protocol::Esp,
        Protocol::WireGuard,
        Protocol::OpenVpn,
        Protocol::Quic,
        Protocol::Dns,
        Protocol::Icmp,
        Protocol::Sctp,
        Protocol::Udp,
        Protocol::Other,
    ];
}

/// Which part of a fragmented TCP packet this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fragment {
    /// The part with the TCP header; the payload is that of this fragment.
    First,
    /// A continuation: it has the first part's numbers, flags and window, but not its SACK blocks.
    Later,
}

/// What the snap length cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    /// The payload; its length is still known.
    Payload,
    /// All or some of the options.
    Options,
}

/// At most four SACK blocks fit into the options.
pub(crate) const SACKS_MAX: usize = 4;

/// Number of counters in an AccECN option, and bytes of each.
pub(crate) const ECN_COUNTERS: usize = 3;
pub(crate) const ECN_COUNTER_BYTES: usize = 3;

/// One of the two AccECN options (RFC 9768, 3.2.3): payload bytes that its sender received, by
/// codepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccEcn([Option<[u8; ECN_COUNTER_BYTES]>; ECN_COUNTERS]);

impl AccEcn {
    /// Width of the counters in bits, after which they wrap.
    pub const BITS: u32 = 8 * ECN_COUNTER_BYTES as u32;

    /// Counters of ECT(0), CE and ECT(1); None where the option ends before the counter.
    #[inline]
    pub fn counters(&self) -> [Option<u32>; ECN_COUNTERS] {
        self.0.map(|field| field.map(|[a, b, c]| u32::from_be_bytes([0, a, b, c])))
    }

    /// Parses the body after kind and length; in order 1, ECT(1) comes first. Complete fields
    /// count, whatever the length; the rest is padding.
    pub fn read(body: &[u8], ect1_first: bool) -> Self {
        let mut fields = [None; ECN_COUNTERS];
        for (field, bytes) in fields.iter_mut().zip(body.chunks_exact(ECN_COUNTER_BYTES)) {
            *field = bytes.try_into().ok();
        }
        if ect1_first {
            fields.reverse();
        }
        AccEcn(fields)
    }
}

/// The captured options of one TCP packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Maximum segment size, bytes (RFC 9293, 3.7.1).
    pub mss: Option<u16>,
    /// Window shift, at most 14: larger ones are read as 14 (RFC 7323, 2.3).
    /// At most 14 (RFC 7323, 2.3).
    pub window_scale: Option<u8>,
    /// Whether the packet permits SACK (RFC 2018, 2).
    pub sack_permitted: bool,
    /// Timestamps: (TSval, TSecr) (RFC 7323, 3).
    /// (TSval, TSecr).
    pub timestamps: Option<(u32, u32)>,
    /// One of the AccECN options.
    pub accecn: Option<AccEcn>,
    pub(crate) sacks: [(u32, u32); SACKS_MAX],
    pub(crate) sack_count: u8,
}

impl TcpOptions {
    /// [left edge, right edge) of each SACK block, the first as reported.
    #[inline]
    pub fn sack_blocks(&self) -> &[(u32, u32)] {
        &self.sacks[..usize::from(self.sack_count)]
    }

    /// The options that apply to every part of a fragmented packet.
    pub(crate) fn only_timestamps(&self) -> Self {
        TcpOptions { timestamps: self.timestamps, ..TcpOptions::default() }
    }
}

/// The headers of one TCP packet, numbers as on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSegment {
    /// Address in the innermost IP header, to which all IP fields here belong.
    pub src: SocketAddr,
    /// Destination address and port.
    pub dst: SocketAddr,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number; without meaning unless the ACK flag is set.
    pub ack: u32,
    /// TCP flags, in the bits of [`tcp_flag`].
    pub flags: u16,
    /// The window field, not scaled.
    pub window: u16,
    /// Payload length on the wire; the capture may hold less.
    pub payload_len: u32,
    /// Length of the IP packet with its header; above the MTU where offloads merged packets.
    pub ip_total_len: u32,
    /// Identification field of the IPv4 header; 0 for IPv6.
    pub ip_ident: u16,
    /// TTL or hop limit.
    pub ip_ttl: u8,
    /// The two ECN bits of the IP header.
    pub ecn: u8,
    /// The innermost tunnel that it came through.
    pub tunnel: Option<Tunnel>,
    /// Number of nested tunnels.
    pub tunnel_depth: u8,
    /// Which part of a fragmented packet it is; None if it is whole.
    pub fragment: Option<Fragment>,
    /// What the snap length cut off; None if nothing.
    pub cut: Option<Cut>,
    /// The TCP options that were captured.
    pub options: TcpOptions,
}

impl TcpSegment {
    /// Whether any bit of `flag` is set in [`TcpSegment::flags`].
    #[inline]
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// [left edge, right edge) of each SACK block, the first as reported.
    #[inline]
    pub fn sack_blocks(&self) -> &[(u32, u32)] {
        self.options.sack_blocks()
    }

    /// An empty segment to decode into.
    pub(crate) fn nothing() -> Self {
        let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        TcpSegment {
            src: nowhere,
            dst: nowhere,
            seq: 0,
            ack: 0,
            flags: 0,
            window: 0,
            payload_len: 0,
            ip_total_len: 0,
            ip_ident: 0,
            ip_ttl: 0,
            ecn: 0,
            tunnel: None,
            tunnel_depth: 0,
            fragment: None,
            cut: None,
            options: TcpOptions::default(),
        }
    }
}

#[inline]
pub(crate) fn be16(b: &[u8], at: usize) -> Result<u16, SkipCause> {
    match b.get(at..at + 2) {
        Some(raw) => Ok(u16::from_be_bytes([raw[0], raw[1]])),
        None => Err(SkipCause::Cut),
    }
}

#[inline]
pub(crate) fn be32(b: &[u8], at: usize) -> Result<u32, SkipCause> {
    match b.get(at..at + 4) {
        Some(raw) => Ok(u32::from_be_bytes([raw[0], raw[1], raw[2], raw[3]])),
        None => Err(SkipCause::Cut),
    }
}

#[inline]
pub(crate) fn skip(b: &[u8], len: usize) -> Result<&[u8], SkipCause> {
    b.get(len..).ok_or(SkipCause::Cut)
}
