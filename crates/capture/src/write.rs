// SPDX-License-Identifier: MIT
//! Writes small captures packet by packet: fixtures for tests, examples and fuzzing.
//!
//! The same calls give the same bytes. Checksums are left 0.

use crate::packet::{link, tcp_flag};
use std::net::{IpAddr, SocketAddr};

/// One TCP packet; payload bytes are zeros.
#[derive(Clone, Debug)]
pub struct TcpPacket {
    pub src: SocketAddr,
    pub dst: SocketAddr,
    pub seq: u32,
    pub ack: u32,
    /// As in [`crate::tcp_flag`].
    pub flags: u16,
    pub window: u16,
    /// Options as bytes; padded to a multiple of 4 with ends of list.
    pub options: Vec<u8>,
    pub payload_len: u32,
    /// ECN bits of the IP header.
    pub ecn: u8,
}

impl TcpPacket {
    /// A packet with the ACK flag and a window of 65 535.
    pub fn new(src: SocketAddr, dst: SocketAddr, seq: u32, ack: u32, payload_len: u32) -> Self {
        let (flags, window) = (tcp_flag::ACK, 0xffff);
        TcpPacket { src, dst, seq, ack, flags, window, options: Vec::new(), payload_len, ecn: 0 }
    }
    #[must_use]
    pub fn flags(mut self, flags: u16) -> Self {
        self.flags = flags;
        self
    }
    #[must_use]
    pub fn options(mut self, options: &[u8]) -> Self {
        self.options = options.to_vec();
        self
    }
    #[must_use]
    pub fn window(mut self, window: u16) -> Self {
        self.window = window;
        self
    }
    #[must_use]
    pub fn ecn(mut self, ecn: u8) -> Self {
        self.ecn = ecn;
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
                b.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
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

/// Puts a link-layer header in front of an IP packet; unknown link types get none.
pub fn frame(link_type: u32, ip: &[u8]) -> Vec<u8> {
    let ethertype: [u8; 2] =
        if ip.first().is_some_and(|b| b >> 4 == 6) { [0x86, 0xdd] } else { [0x08, 0x00] };
    let mut b = match link_type {
        link::ETHERNET => vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2],
        link::LINUX_SLL => vec![0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0],
        link::LINUX_SLL2 => {
            let mut b = ethertype.to_vec();
            b.extend([0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0]);
            b
        }
        link::NULL => vec![if ethertype[0] == 0x86 { 30 } else { 2 }, 0, 0, 0],
        link::LOOP => vec![0, 0, 0, if ethertype[0] == 0x86 { 30 } else { 2 }],
        _ => Vec::new(),
    };
    if matches!(link_type, link::ETHERNET | link::LINUX_SLL) {
        b.extend(ethertype);
    }
    b.extend(ip);
    b
}

/// Byte order and time unit of a pcap file.
#[derive(Clone, Copy, Debug, Default)]
pub struct PcapStyle {
    pub big_endian: bool,
    /// Times in nanoseconds instead of microseconds.
    pub nanoseconds: bool,
    /// Bytes kept of each packet; 0: all.
    pub snap_len: u32,
}

/// A pcap file in memory.
#[derive(Clone, Debug)]
pub struct PcapWriter {
    style: PcapStyle,
    link_type: u32,
    bytes: Vec<u8>,
}

impl PcapWriter {
    pub fn new(link_type: u32, style: PcapStyle) -> Self {
        let mut w = PcapWriter { style, link_type, bytes: Vec::new() };
        w.u32(if style.nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 });
        let version = if style.big_endian { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
        w.bytes.extend(version);
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

    /// Adds a packet as it is.
    pub fn frame(&mut self, time_ns: u64, frame: &[u8]) -> &mut Self {
        let kept = match self.style.snap_len {
            0 => frame.len(),
            snap => frame.len().min(snap as usize),
        };
        let unit_ns = if self.style.nanoseconds { 1 } else { 1_000 };
        self.u32((time_ns / 1_000_000_000) as u32);
        self.u32((time_ns % 1_000_000_000 / unit_ns) as u32);
        self.u32(kept as u32);
        self.u32(frame.len() as u32);
        self.bytes.extend(&frame[..kept]);
        self
    }

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
        self.interfaces.push((link_type, resolution));
        let mut body = self.n16(link_type as u16).to_vec();
        body.extend([0; 6]);
        body.extend(self.n16(9));
        body.extend(self.n16(1));
        body.extend([resolution, 0, 0, 0]);
        body.extend([0; 4]);
        self.block(1, &body);
        self.interfaces.len() as u32 - 1
    }

    /// Adds a packet with the link-layer header of its interface.
    pub fn tcp(&mut self, interface: u32, time_ns: u64, packet: &TcpPacket) -> &mut Self {
        let link_type = self.interfaces.get(interface as usize).map_or(link::RAW, |i| i.0);
        self.frame(interface, time_ns, &frame(link_type, &packet.to_ip()))
    }

    /// Adds a packet as it is.
    pub fn frame(&mut self, interface: u32, time_ns: u64, frame: &[u8]) -> &mut Self {
        let resolution = self.interfaces.get(interface as usize).map_or(6, |i| i.1);
        let per_second = match resolution & 0x80 {
            0 => 10u128.pow(u32::from(resolution.min(19))),
            _ => 1u128 << (resolution & 0x7f).min(63),
        };
        let ticks = (u128::from(time_ns) * per_second / 1_000_000_000) as u64;
        let mut body = self.n32(interface).to_vec();
        body.extend(self.n32((ticks >> 32) as u32));
        body.extend(self.n32(ticks as u32));
        body.extend(self.n32(frame.len() as u32));
        body.extend(self.n32(frame.len() as u32));
        body.extend(frame);
        self.block(6, &body)
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
