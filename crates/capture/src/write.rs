// SPDX-License-Identifier: MIT
//! Writes small captures packet by packet, as fixtures for tests, examples and fuzzing.
//!
//! The output depends only on the calls. Checksums are 0.

use crate::link;
use crate::segment::{tcp_flag, Tunnel};
use std::net::{IpAddr, SocketAddr};

/// One TCP packet; payload bytes are zeros.
#[derive(Clone, Debug)]
pub struct TcpPacket {
    /// Source address and port. If either address is IPv6, the packet is, and an IPv4 address is
    /// mapped.
    pub src: SocketAddr,
    /// Destination address and port.
    pub dst: SocketAddr,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// TCP flags, in the bits of [`crate::tcp_flag`].
    pub flags: u16,
    /// The window field, not scaled.
    pub window: u16,
    /// Options as bytes; padded to a multiple of 4 with end-of-list options.
    pub options: Vec<u8>,
    /// Payload length, bytes.
    pub payload_len: u32,
    /// ECN bits of the IP header.
    pub ecn: u8,
    /// IPv4 identification.
    pub ident: u16,
}

impl TcpPacket {
    /// A packet with the ACK flag and a window of 65 535.
    pub fn new(src: SocketAddr, dst: SocketAddr, seq: u32, ack: u32, payload_len: u32) -> Self {
        let (flags, window) = (tcp_flag::ACK, 0xffff);
        TcpPacket { src, dst, seq, ack, flags, window, options: Vec::new(), payload_len, ecn: 0, ident: 0 }
    }
    /// Sets [`TcpPacket::flags`].
    #[must_use]
    pub fn flags(mut self, flags: u16) -> Self {
        self.flags = flags;
        self
    }
    /// Sets [`TcpPacket::options`].
    #[must_use]
    pub fn options(mut self, options: &[u8]) -> Self {
        self.options = options.to_vec();
        self
    }
    /// Sets [`TcpPacket::window`].
    #[must_use]
    pub fn window(mut self, window: u16) -> Self {
        self.window = window;
        self
    }
    /// Sets [`TcpPacket::ecn`]; bits above the lowest two are ignored.
    #[must_use]
    pub fn ecn(mut self, ecn: u8) -> Self {
        self.ecn = ecn;
        self
    }
    /// Sets [`TcpPacket::ident`]; IPv6 has no such field.
    #[must_use]
    pub fn ident(mut self, ident: u16) -> Self {
        self.ident = ident;
        self
    }

    /// The IP packet. A length that does not fit the header's field is written as 0, as offloads
    /// do.
    pub fn to_ip(&self) -> Vec<u8> {
        let mut options = self.options.clone();
        options.resize(options.len().div_ceil(4) * 4, 0);
        let tcp_len = 20 + options.len() + self.payload_len as usize;
        let mut b = Vec::with_capacity(40 + tcp_len);
        let field = |len: usize| u16::try_from(len).unwrap_or(0).to_be_bytes();
        match (self.src.ip(), self.dst.ip()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                b.extend([0x45, self.ecn & 3]);
                b.extend(field(20 + tcp_len));
                b.extend(self.ident.to_be_bytes());
                b.extend([0x40, 0, 64, 6, 0, 0]);
                b.extend(src.octets());
                b.extend(dst.octets());
            }
            (src, dst) => {
                let octets = |ip: IpAddr| match ip {
                    IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                    IpAddr::V6(ip) => ip.octets(),
                };
                b.extend([0x60, (self.ecn & 3) << 4, 0, 0]);
                b.extend(field(tcp_len));
                b.extend([6, 64]);
                b.extend(octets(src));
                b.extend(octets(dst));
            }
        }
        b.extend(self.src.port().to_be_bytes());
        b.extend(self.dst.port().to_be_bytes());
        b.extend(self.seq.to_be_bytes());
        b.extend(self.ack.to_be_bytes());
        let words = ((20 + options.len()) / 4) as u16;
        b.extend((words << 12 | self.flags & 0x1ff).to_be_bytes());
        b.extend(self.window.to_be_bytes());
        b.extend([0; 4]);
        b.extend(&options);
        b.resize(b.len() + self.payload_len as usize, 0);
        b
    }
}

/// A router's ICMP message that an IP packet is larger than the next link's MTU, with the first bytes
/// of that packet (RFC 1191, 4; RFC 4443, 3.2). The router has an address of the packet's family.
pub fn too_big(router: IpAddr, ip: &[u8], mtu_bytes: u16) -> Vec<u8> {
    const QUOTED: usize = 64;
    let quote = &ip[..ip.len().min(QUOTED)];
    let mut b = Vec::with_capacity(48 + quote.len());
    let len = 8 + quote.len() as u16;
    match router {
        IpAddr::V4(router) => {
            b.extend([0x45, 0]);
            b.extend((20 + len).to_be_bytes());
            b.extend([0, 0, 0, 0, 64, 1, 0, 0]);
            b.extend(router.octets());
            b.extend(&ip[12..16]);
            b.extend([3, 4, 0, 0, 0, 0]);
        }
        IpAddr::V6(router) => {
            b.extend([0x60, 0, 0, 0]);
            b.extend(len.to_be_bytes());
            b.extend([58, 64]);
            b.extend(router.octets());
            b.extend(&ip[8..24]);
            b.extend([2, 0, 0, 0, 0, 0]);
        }
    }
    b.extend(mtu_bytes.to_be_bytes());
    b.extend(quote);
    b
}

/// Adds a link-layer header before an IP packet; unknown link types get none.
pub fn frame(link_type: u32, ip: &[u8]) -> Vec<u8> {
    let is_ipv6 = ip.first().is_some_and(|b| b >> 4 == 6);
    let [high, low] = if is_ipv6 { [0x86, 0xdd] } else { [0x08, 0x00] };
    let ppp = if is_ipv6 { 0x57 } else { 0x21 };
    let family = if is_ipv6 { 30 } else { 2 };
    let mut b = match link_type {
        link::ETHERNET => vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, high, low],
        link::LINUX_SLL => vec![0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, high, low],
        link::LINUX_SLL2 => vec![high, low, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0],
        link::NULL => vec![family, 0, 0, 0],
        link::LOOP => vec![0, 0, 0, family],
        link::SLIP => vec![0; 16],
        link::PPP | link::PPP_HDLC => vec![0xff, 0x03, 0, ppp],
        link::CISCO_HDLC => vec![0x0f, 0, high, low],
        link::PPP_PPPD => vec![1, 0x03, 0, ppp],
        link::PPP_WITH_DIRECTION => vec![1, 0xff, 0x03, 0, ppp],
        // A data frame to the access point, with QoS.
        link::IEEE802_11 => wifi(0x88, 1, high, low),
        link::IEEE802_11_RADIOTAP => {
            // A time, flags and a rate; the 802.11 header is padded to 28 bytes.
            let mut b = vec![0, 0, 18, 0, 7, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x20, 2];
            let mut wifi = wifi(0x88, 1, high, low);
            wifi.splice(26..26, [0; 2]);
            b.append(&mut wifi);
            b
        }
        link::IEEE802_11_PRISM => {
            let mut b = vec![0x44, 0, 0, 0, 144, 0, 0, 0];
            b.resize(144, 0);
            b.extend(wifi(0x08, 2, high, low));
            b
        }
        link::IEEE802_11_AVS => {
            let mut b = vec![0x80, 0x21, 0x10, 1, 0, 0, 0, 64];
            b.resize(64, 0);
            b.extend(wifi(0x08, 2, high, low));
            b
        }
        link::PPI => [vec![0, 0, 8, 0, 105, 0, 0, 0], wifi(0x08, 3, high, low)].concat(),
        link::NFLOG => {
            let family = if is_ipv6 { 10 } else { 2 };
            let [len_low, len_high] = (ip.len() as u16 + 4).to_le_bytes();
            // A packet header, a prefix of 3 bytes, the packet.
            let header = [8, 0, 1, 0, high, low, 0, 0, 7, 0, 10, 0, b'a', b'b', 0, 0];
            [&[family, 0, 0, 1], &header[..], &[len_low, len_high, 9, 0]].concat()
        }
        link::PPP_ETHER => {
            let [len_high, len_low] = (ip.len() as u16 + 2).to_be_bytes();
            vec![0x11, 0, 0, 7, len_high, len_low, 0, ppp]
        }
        _ => Vec::new(),
    };
    b.extend(ip);
    b
}

/// An 802.11 header, with the frame control's two bytes, and LLC with SNAP.
fn wifi(control: u8, flags: u8, high: u8, low: u8) -> Vec<u8> {
    let qos = if control & 0x80 != 0 { 2 } else { 0 };
    let mut b = vec![control, flags];
    b.resize(if flags & 3 == 3 { 30 } else { 24 } + qos, 0);
    b.extend([0xaa, 0xaa, 3, 0, 0, 0, high, low]);
    b
}

/// Wraps an IP packet in a tunnel between 192.0.2.1 and 192.0.2.2; returns the outer IPv4 packet.
pub fn tunnelled(tunnel: Tunnel, ip: &[u8]) -> Vec<u8> {
    let is_ipv6 = ip.first().is_some_and(|b| b >> 4 == 6);
    let ethertype: [u8; 2] = if is_ipv6 { [0x86, 0xdd] } else { [0x08, 0x00] };
    let udp = |port: u16, payload: &[u8]| {
        let len = (8 + payload.len()) as u16;
        [&[0xc0, 1], &port.to_be_bytes()[..], &len.to_be_bytes(), &[0, 0], payload].concat()
    };
    let (protocol, body) = match tunnel {
        Tunnel::IpInIp => (if is_ipv6 { 41 } else { 4 }, ip.to_vec()),
        Tunnel::Gre => (47, [&[0, 0], &ethertype[..], ip].concat()),
        Tunnel::Vxlan => {
            let ethernet = frame(link::ETHERNET, ip);
            (17, udp(4789, &[&[8, 0, 0, 0, 0, 0, 5, 0], &ethernet[..]].concat()))
        }
        Tunnel::Geneve => {
            let ethernet = frame(link::ETHERNET, ip);
            // An option of 4 bytes with its header of 4.
            let head = [2, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 1, 0, 0, 0, 9];
            (17, udp(6081, &[&head, &ethernet[..]].concat()))
        }
        Tunnel::GtpU => {
            // A sequence number, and an extension header of 4 bytes (PDU session container).
            let len = (ip.len() as u16 + 8).to_be_bytes();
            let head = [0x36, 255, len[0], len[1], 0, 0, 0, 7, 0, 1, 0, 0x85, 1, 0x10, 9, 0];
            (17, udp(2152, &[&head, ip].concat()))
        }
        Tunnel::L2tp => {
            // Version 2 with a length and sequence numbers.
            let len = (ip.len() as u16 + 16).to_be_bytes();
            let ppp = if is_ipv6 { 0x57 } else { 0x21 };
            let head = [0x48, 2, len[0], len[1], 0, 1, 0, 2, 0, 3, 0, 0, 0xff, 3, 0, ppp];
            (17, udp(1701, &[&head, ip].concat()))
        }
        // With an origin indication.
        Tunnel::Teredo => (17, udp(3544, &[&[0, 0, 0xbf, 0xff, 0x3f, 0xff, 0xfd, 0xd2], ip].concat())),
        Tunnel::Tzsp => {
            let ethernet = frame(link::ETHERNET, ip);
            // A padding, a signal of one byte, the end.
            (17, udp(37008, &[&[1, 0, 0, 1, 0, 10, 1, 0xc4, 1], &ethernet[..]].concat()))
        }
    };
    let [high, low] = u16::try_from(20 + body.len()).unwrap_or(0).to_be_bytes();
    let mut outer = vec![0x45, 0, high, low, 0, 0, 0, 0, 63, protocol, 0, 0];
    outer.extend([192, 0, 2, 1, 192, 0, 2, 2]);
    outer.extend(body);
    outer
}

/// Cuts an IPv4 packet without options into fragments with at most `len` bytes of payload, a
/// multiple of 8.
pub fn fragments(ip: &[u8], len: usize) -> Vec<Vec<u8>> {
    let (head, body) = ip.split_at(20);
    let count = body.len().div_ceil(len);
    let one = |(i, part): (usize, &[u8])| {
        let mut packet = [head, part].concat();
        let total_len = packet.len() as u16;
        packet[2..4].copy_from_slice(&total_len.to_be_bytes());
        let more = if i + 1 < count { 0x2000 } else { 0 };
        packet[6..8].copy_from_slice(&(more | (i * len / 8) as u16).to_be_bytes());
        packet
    };
    body.chunks(len).enumerate().map(one).collect()
}

/// Version and record layout of a pcap file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PcapVersion {
    /// 2.4, the current one.
    #[default]
    V2_4,
    /// 2.3: the two lengths of a record are swapped in odd records.
    V2_3,
    /// 2.2: the two lengths are swapped.
    V2_2,
    /// 543.0 of DG/UX: the two lengths are swapped.
    V543,
    /// 2.4 with longer record headers.
    Modified,
}

/// Byte order and time unit of a pcap file.
#[derive(Clone, Copy, Debug, Default)]
pub struct PcapStyle {
    /// Byte order: big-endian instead of little-endian.
    pub big_endian: bool,
    /// Whether times are in nanoseconds instead of microseconds.
    pub nanoseconds: bool,
    /// Bytes kept of each packet; 0: all.
    pub snap_len: u32,
    /// Version and record layout.
    pub version: PcapVersion,
}

/// A pcap file in memory.
#[derive(Clone, Debug)]
pub struct PcapWriter {
    style: PcapStyle,
    link_type: u32,
    packets: u64,
    bytes: Vec<u8>,
}

impl PcapWriter {
    /// An empty file whose packets have link type `link_type` ([`crate::link`]).
    pub fn new(link_type: u32, style: PcapStyle) -> Self {
        let mut w = PcapWriter { style, link_type, packets: 0, bytes: Vec::new() };
        w.u32(match (style.version, style.nanoseconds) {
            (PcapVersion::Modified, _) => 0xa1b2_cd34,
            (_, true) => 0xa1b2_3c4d,
            (_, false) => 0xa1b2_c3d4,
        });
        let (major, minor): (u16, u16) = match style.version {
            PcapVersion::V2_4 | PcapVersion::Modified => (2, 4),
            PcapVersion::V2_3 => (2, 3),
            PcapVersion::V2_2 => (2, 2),
            PcapVersion::V543 => (543, 0),
        };
        for n in [major, minor] {
            w.bytes.extend(if style.big_endian { n.to_be_bytes() } else { n.to_le_bytes() });
        }
        w.u32(0);
        w.u32(0);
        w.u32(if style.snap_len == 0 { 262_144 } else { style.snap_len });
        w.u32(link_type);
        w
    }

    fn u32(&mut self, n: u32) {
        self.bytes.extend(if self.style.big_endian { n.to_be_bytes() } else { n.to_le_bytes() });
    }

    /// Adds a packet with the writer's link-layer header.
    pub fn tcp(&mut self, time_ns: u64, packet: &TcpPacket) -> &mut Self {
        self.frame(time_ns, &frame(self.link_type, &packet.to_ip()))
    }

    /// Adds a frame unchanged.
    pub fn frame(&mut self, time_ns: u64, frame: &[u8]) -> &mut Self {
        let kept = match self.style.snap_len {
            0 => frame.len(),
            snap => frame.len().min(snap as usize),
        };
        let unit_ns = if self.style.nanoseconds { 1 } else { 1_000 };
        self.u32((time_ns / 1_000_000_000) as u32);
        self.u32((time_ns % 1_000_000_000 / unit_ns) as u32);
        self.packets += 1;
        let lengths = [kept as u32, frame.len() as u32];
        let swapped = match self.style.version {
            PcapVersion::V2_4 | PcapVersion::Modified => false,
            PcapVersion::V2_3 => self.packets % 2 == 1,
            PcapVersion::V2_2 | PcapVersion::V543 => true,
        };
        self.u32(lengths[usize::from(swapped)]);
        self.u32(lengths[usize::from(!swapped)]);
        if self.style.version == PcapVersion::Modified {
            self.bytes.extend([0; 8]);
        }
        self.bytes.extend(&frame[..kept]);
        self
    }

    /// The file's bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// A pcapng file in memory.
#[derive(Clone, Debug)]
pub struct PcapngWriter {
    big_endian: bool,
    interfaces: Vec<(u32, u8)>,
    bytes: Vec<u8>,
}

impl PcapngWriter {
    /// A file with one section and no interface yet, in this byte order.
    pub fn new(big_endian: bool) -> Self {
        let mut w = PcapngWriter { big_endian, interfaces: Vec::new(), bytes: Vec::new() };
        w.section();
        w
    }

    fn n32(&self, n: u32) -> [u8; 4] {
        if self.big_endian {
            n.to_be_bytes()
        } else {
            n.to_le_bytes()
        }
    }
    fn n16(&self, n: u16) -> [u8; 2] {
        if self.big_endian {
            n.to_be_bytes()
        } else {
            n.to_le_bytes()
        }
    }

    /// Adds a block of any type; the body is padded.
    pub fn block(&mut self, kind: u32, body: &[u8]) -> &mut Self {
        let padded = body.len().div_ceil(4) * 4;
        let len = self.n32(padded as u32 + 12);
        self.bytes.extend(self.n32(kind));
        self.bytes.extend(len);
        self.bytes.extend(body);
        self.bytes.resize(self.bytes.len() + padded - body.len(), 0);
        self.bytes.extend(len);
        self
    }

    /// Starts a section in this byte order.
    pub fn section_in(&mut self, big_endian: bool) -> &mut Self {
        self.big_endian = big_endian;
        self.section()
    }

    /// Starts a new section: interfaces are numbered from 0 again.
    pub fn section(&mut self) -> &mut Self {
        self.interfaces.clear();
        let mut body = self.n32(0x1a2b_3c4d).to_vec();
        body.extend(self.n16(1));
        body.extend(self.n16(0));
        body.extend([0xff; 8]);
        self.block(0x0a0d_0d0a, &body)
    }

    /// Adds an interface; `resolution`: 6 for microseconds, 9 for nanoseconds, `0x80 | n` for
    /// 2^-n seconds. Returns its number.
    pub fn interface(&mut self, link_type: u32, resolution: u8) -> u32 {
        self.interface_with(link_type, resolution, 0, &[])
    }

    /// Adds an interface with a snap length (0: none) and further options, each a code and a value.
    pub fn interface_with(
        &mut self,
        link_type: u32,
        resolution: u8,
        snap_len: u32,
        options: &[(u16, &[u8])],
    ) -> u32 {
        self.interfaces.push((link_type, resolution));
        let mut body = self.n16(link_type as u16).to_vec();
        body.extend([0; 2]);
        body.extend(self.n32(snap_len));
        self.option(&mut body, 9, &[resolution]);
        for &(code, value) in options {
            self.option(&mut body, code, value);
        }
        body.extend([0; 4]);
        self.block(1, &body);
        self.interfaces.len() as u32 - 1
    }

    fn option(&self, body: &mut Vec<u8>, code: u16, value: &[u8]) {
        body.extend(self.n16(code));
        body.extend(self.n16(value.len() as u16));
        body.extend(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }

    fn ticks(&self, interface: u32, time_ns: u64) -> u64 {
        let resolution = self.interfaces.get(interface as usize).map_or(6, |i| i.1);
        let per_second = match resolution & 0x80 {
            0 => 10u128.pow(u32::from(resolution.min(19))),
            _ => 1u128 << (resolution & 0x7f).min(63),
        };
        (u128::from(time_ns) * per_second / 1_000_000_000) as u64
    }

    /// Adds statistics of an interface: start of the capture, packets received and dropped.
    pub fn statistics(&mut self, interface: u32, start_ns: u64, received: u64, dropped: u64) -> &mut Self {
        let ticks = self.ticks(interface, start_ns);
        let halves = [self.n32((ticks >> 32) as u32), self.n32(ticks as u32)].concat();
        let count = |n: u64| if self.big_endian { n.to_be_bytes() } else { n.to_le_bytes() };
        let mut body = [&self.n32(interface)[..], &halves].concat();
        self.option(&mut body, 2, &halves);
        self.option(&mut body, 4, &count(received));
        self.option(&mut body, 5, &count(dropped));
        body.extend([0; 4]);
        self.block(5, &body)
    }

    /// Adds a packet with the link-layer header of its interface.
    pub fn tcp(&mut self, interface: u32, time_ns: u64, packet: &TcpPacket) -> &mut Self {
        let link_type = self.interfaces.get(interface as usize).map_or(link::RAW, |i| i.0);
        self.frame(interface, time_ns, &frame(link_type, &packet.to_ip()))
    }

    /// Adds a frame unchanged.
    pub fn frame(&mut self, interface: u32, time_ns: u64, frame: &[u8]) -> &mut Self {
        let ticks = self.ticks(interface, time_ns);
        let mut body = self.n32(interface).to_vec();
        body.extend(self.n32((ticks >> 32) as u32));
        body.extend(self.n32(ticks as u32));
        body.extend(self.n32(frame.len() as u32));
        body.extend(self.n32(frame.len() as u32));
        body.extend(frame);
        self.block(6, &body)
    }

    /// The file's bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
