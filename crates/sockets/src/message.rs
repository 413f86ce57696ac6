// SPDX-License-Identifier: MIT
//! Netlink messages of `inet_diag`: a datagram holds many, each describing one socket with
//! attributes.

use crate::TcpInfo;
use serde::{Serialize, Serializer};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

// linux/netlink.h, linux/inet_diag.h
const HEADER: usize = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const FIRST_OF_FAMILY: u16 = 16;
const IDLE: u16 = 256; // not a message of the kernel: see linux/bpf/live/tcp_walk.bpf.c
const SOCKET: usize = 72;
const INFO: u16 = 2;
const CONG: u16 = 4;
const SKMEM_INFO: u16 = 7;
const BBR_INFO: u16 = 16;
const TYPE: u16 = 0x3fff; // without NLA_F_NESTED, NLA_F_NET_BYTEORDER
pub(crate) const AF_INET: u8 = 2;
pub(crate) const AF_INET6: u8 = 10;
const ERRNO_MAX: u32 = 4095;

/// The kernel's bytes contradict themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damaged;

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the kernel's list of sockets is damaged")
    }
}

impl std::error::Error for Damaged {}

/// One message of a datagram.
pub enum Message<'a> {
    Socket(Seen<'a>),
    Idle(Idle),
    /// The list is complete.
    Done,
    /// The kernel refuses the request with this errno.
    Refused(i32),
}

/// A socket that was inactive since an earlier sample and has nothing waiting.
pub struct Idle {
    pub cookie: u64,
    /// Number of segments sent and received so far.
    pub segments: (u32, u32),
}

/// Address and port of one end, as text `192.0.2.1:443` or `[2001:db8::1]:443`.
pub type Address = SocketAddr;

/// Both ends of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    pub local: Address,
    pub peer: Address,
}

/// One socket as the kernel describes it.
pub struct Seen<'a> {
    pub ends: Endpoint,
    pub state: State,
    /// The timer that is running: 0 none, 1 retransmission, 2 keepalive, 4 zero-window probe.
    pub timer: u8,
    pub interface: u32,
    /// Number that the kernel never reuses for another socket, even if the ports are reused.
    pub cookie: u64,
    /// Bytes received that the application has not read.
    pub unread_bytes: u32,
    pub uid: u32,
    pub inode: u32,
    attributes: &'a [u8],
}

/// The kernel's number of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State(pub u8);

impl State {
    pub const ESTABLISHED: State = State(1);
    pub const SYN_SENT: State = State(2);

    /// The name that `ss` uses.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 13] = [
            "unknown",
            "established",
            "syn-sent",
            "syn-recv",
            "fin-wait-1",
            "fin-wait-2",
            "time-wait",
            "closed",
            "close-wait",
            "last-ack",
            "listening",
            "closing",
            "syn-recv",
        ];
        NAMES.get(usize::from(self.0)).unwrap_or(&NAMES[0])
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The kernel's description of a socket beyond the fixed part.
#[derive(Default)]
pub struct Attributes<'a> {
    pub info: Option<TcpInfo>,
    pub congestion: &'a [u8],
    /// BBR's pacing gain in 1/256.
    pub pacing_gain: Option<u32>,
    /// SO_RCVBUF and SO_SNDBUF in effect.
    pub receive_buffer_bytes: Option<u32>,
    pub send_buffer_bytes: Option<u32>,
}

/// The messages of a datagram, up to the first damaged one.
pub fn messages(mut datagram: &[u8]) -> impl Iterator<Item = Result<Message<'_>, Damaged>> {
    std::iter::from_fn(move || {
        while !datagram.is_empty() {
            let (kind, body) = match next(&mut datagram) {
                Some(found) => found,
                None => {
                    datagram = &[];
                    return Some(Err(Damaged));
                }
            };
            let message = match kind {
                DONE => Ok(Message::Done),
                ERROR => refused(body).ok_or(Damaged),
                IDLE => Idle::new(body).map(Message::Idle).ok_or(Damaged),
                kind if kind < FIRST_OF_FAMILY => continue,
                _ => Seen::new(body).map(Message::Socket).ok_or(Damaged),
            };
            return Some(message);
        }
        None
    })
}

fn next<'a>(datagram: &mut &'a [u8]) -> Option<(u16, &'a [u8])> {
    let length = u32_at(datagram, 0)? as usize;
    let kind = u16_at(datagram, 4)?;
    let body = datagram.get(HEADER..length)?;
    *datagram = datagram.get(length.checked_next_multiple_of(4)?..).unwrap_or(&[]);
    Some((kind, body))
}

/// A refusal; an error number of 0 would acknowledge a request, which is not expected here.
fn refused(body: &[u8]) -> Option<Message<'_>> {
    let code = u32_at(body, 0)?.wrapping_neg();
    Some(Message::Refused(code.clamp(1, ERRNO_MAX) as i32))
}

impl Idle {
    fn new(body: &[u8]) -> Option<Self> {
        let cookie = u64::from_ne_bytes(body.get(..8)?.try_into().ok()?);
        Some(Idle { cookie, segments: (u32_at(body, 8)?, u32_at(body, 12)?) })
    }
}

impl<'a> Seen<'a> {
    fn new(body: &'a [u8]) -> Option<Self> {
        let (fixed, attributes) = (body.get(..SOCKET)?, body.get(SOCKET..)?);
        let family = fixed[0];
        let end = |port: usize, address: usize| {
            let port = u16::from_be_bytes([fixed[port], fixed[port + 1]]);
            Some(SocketAddr::new(ip(family, &fixed[address..address + 16])?, port))
        };
        Some(Seen {
            ends: Endpoint { local: end(4, 8)?, peer: end(6, 24)? },
            state: State(fixed[1]),
            timer: fixed[2],
            interface: u32_at(fixed, 40)?,
            cookie: u64::from(u32_at(fixed, 44)?) | u64::from(u32_at(fixed, 48)?) << 32,
            unread_bytes: u32_at(fixed, 56)?,
            uid: u32_at(fixed, 64)?,
            inode: u32_at(fixed, 68)?,
            attributes,
        })
    }

    /// Parses the attributes; one that is too short counts as absent.
    pub fn attributes(&self) -> Attributes<'a> {
        let mut found = Attributes::default();
        let mut rest = self.attributes;
        while let (Some(length), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
            let Some(data) = rest.get(4..usize::from(length)) else { break };
            match kind & TYPE {
                INFO => found.info = Some(TcpInfo::new(data)),
                CONG => found.congestion = data.split(|&b| b == 0).next().unwrap_or(&[]),
                BBR_INFO => found.pacing_gain = u32_at(data, 12),
                SKMEM_INFO => {
                    found.receive_buffer_bytes = u32_at(data, 4);
                    found.send_buffer_bytes = u32_at(data, 12);
                }
                _ => {}
            }
            rest = rest.get(usize::from(length).next_multiple_of(4)..).unwrap_or(&[]);
        }
        found
    }
}

fn ip(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    match family {
        AF_INET => <[u8; 4]>::try_from(&bytes[..4]).ok().map(|b| Ipv4Addr::from(b).into()),
        AF_INET6 => <[u8; 16]>::try_from(bytes).ok().map(|b| Ipv6Addr::from(b).into()),
        _ => None,
    }
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}
