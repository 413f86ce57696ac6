// SPDX-License-Identifier: MIT
//! Captures of a simulated run at its client, its server and the router between them: the packets
//! that [`ackwise_sim::tap`] reports, as IPv4 headers without payload.
//!
//! Addresses and ports are those of the lab. A connection that starts established is preceded by a
//! handshake with the timing that its empty segments would have had. No packet has a FIN: a FIN
//! without data is written as the ACK that it carries.

use ackwise_capture::write::{PcapStyle, PcapWriter, TcpPacket};
use ackwise_capture::{link, tcp_flag};
use ackwise_sim::tap::{End, Opened, Passed, Place, Tap};
use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};

/// Time of day at the start of a run; the added handshakes lie before it.
pub const START_NS: u64 = 1_000_000_000_000_000_000;
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const CLIENT_PORT: u16 = 20_001;
const SERVER_PORT: u16 = 5_001;
/// Ethernet, IPv4 and TCP with all options.
const SNAP_BYTES: u32 = 94;
const NS_PER_TICK: u64 = 1_000_000;
const UNSCALED_MAX: u64 = 65_535;

struct Connection {
    opened: Opened,
    /// Time at which the data sender's peer sent the last packet of the added handshake.
    answered_ns: u64,
    /// Next IP identification of the client and of the server, which count their packets as Linux
    /// does.
    idents: [u16; 2],
    /// Handshake packets that must be written before the first later packet.
    handshake: Vec<(u64, Place, TcpPacket)>,
    /// Handshake packets as seen at the router, with the server's times: the first data packet
    /// shows its distance.
    at_router: Vec<(u64, TcpPacket)>,
}

impl Connection {
    fn end(&self, down: bool) -> End {
        if down {
            self.opened.server
        } else {
            self.opened.client
        }
    }

    /// A SYN of the client, or the server's SYN-ACK.
    fn syn(&self, down: bool, sent_ns: u64, echo_ns: u64, ecn_flags: u16) -> TcpPacket {
        let end = self.end(down);
        let flags = ecn_flags | if down { tcp_flag::SYN | tcp_flag::ACK } else { tcp_flag::SYN };
        packet(self.opened.flow, down, 0, u64::from(down), 0)
            .flags(flags)
            .window(end.window_bytes.min(UNSCALED_MAX) as u16)
            .options(&syn_options(&self.opened, end, sent_ns, echo_ns))
    }

    /// A segment of the established connection.
    fn segment(&self, p: &Passed) -> TcpPacket {
        let mut options = Vec::new();
        if self.opened.timestamps {
            let is_senders = p.down != self.opened.up;
            let has_no_answer = !self.opened.handshake && is_senders && p.echo_ns == 0;
            let echo_ns = if has_no_answer { self.answered_ns } else { START_NS + p.echo_ns };
            options = timestamps(START_NS + p.sent_ns, echo_ns);
        }
        if !p.sack.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * p.sack.len() as u8]);
            for &(start, end) in p.sack {
                options.extend((start as u32).wrapping_add(1).to_be_bytes());
                options.extend((end as u32).wrapping_add(1).to_be_bytes());
            }
        }
        let psh = if p.psh { tcp_flag::PSH } else { 0 };
        let flags = tcp_flag::ACK | psh | ecn_flags(p.ece, p.cwr);
        let window = (u64::from(p.window_bytes) >> shift(self.end(p.down))).min(UNSCALED_MAX) as u16;
        packet(p.flow, p.down, p.seq + 1, p.ack + 1, p.payload_bytes)
            .flags(flags)
            .ecn(p.ecn as u8)
            .window(window)
            .options(&options)
    }

    /// Writes a handshake that ends when the data sender may start: the client after the SYN-ACK,
    /// the server after the final ACK.
    fn write_in_advance(&mut self) {
        let (up, down_ns, up_ns) = (self.opened.up, self.opened.down_ns, self.opened.up_ns);
        let start_ns = START_NS + self.opened.time_ns;
        let syn_ns = start_ns - (up_ns + down_ns) - if up { 0 } else { up_ns };
        let syn_ack_ns = syn_ns + up_ns;
        let ack_ns = syn_ack_ns + down_ns;
        let ecn = self.opened.ecn;
        let syn = self.syn(false, syn_ns, 0, ecn_flags(ecn, ecn)).ident(1);
        let syn_ack = self.syn(true, syn_ack_ns, syn_ns, ecn_flags(ecn, false)).ident(1);
        let client = self.opened.client;
        let mut ack = packet(self.opened.flow, false, 1, 1, 0)
            .ident(2)
            .window((client.window_bytes >> shift(client)) as u16);
        if self.opened.timestamps {
            ack = ack.options(&timestamps(ack_ns, syn_ack_ns));
        }
        self.handshake = vec![
            (syn_ns, Place::Client, syn.clone()),
            (syn_ack_ns, Place::Server, syn.clone()),
            (syn_ack_ns, Place::Server, syn_ack.clone()),
            (ack_ns, Place::Client, syn_ack.clone()),
            (ack_ns, Place::Client, ack.clone()),
            (ack_ns + up_ns, Place::Server, ack.clone()),
        ];
        self.handshake.sort_by_key(|(at, _, _)| *at);
        self.at_router = vec![(syn_ack_ns, syn), (syn_ack_ns, syn_ack), (ack_ns + up_ns, ack)];
        self.answered_ns = if up { syn_ack_ns } else { ack_ns };
        // Follows the handshake's numbers.
        self.idents = [3, 2];
    }
}

fn ecn_flags(ece: bool, cwr: bool) -> u16 {
    (if ece { tcp_flag::ECE } else { 0 }) | (if cwr { tcp_flag::CWR } else { 0 })
}

fn shift(end: End) -> u32 {
    end.window_shift.unwrap_or(0)
}

/// Identity of a packet at all places: flow, direction, sequence and ACK numbers, time.
type Identity = (u32, bool, u64, u64, u64);

/// One pcap file for each place, in memory.
pub struct Captures {
    client: PcapWriter,
    server: PcapWriter,
    router: PcapWriter,
    /// Whether the path has a router.
    has_router: bool,
    connections: Vec<Connection>,
    /// IP identifications of packets in flight.
    idents: HashMap<Identity, VecDeque<u16>>,
}

impl Captures {
    pub fn new() -> Self {
        let style = PcapStyle { nanoseconds: true, snap_len: SNAP_BYTES, ..PcapStyle::default() };
        let file = || PcapWriter::new(link::ETHERNET, style);
        Captures {
            client: file(),
            server: file(),
            router: file(),
            has_router: false,
            connections: Vec::new(),
            idents: HashMap::new(),
        }
    }

    /// The packet's IP identification, assigned by its sender; a lost packet uses one up.
    fn ident(&mut self, p: &Passed) -> u16 {
        let identity = (p.flow, p.down, p.seq, p.ack, p.sent_ns);
        let (first, last) =
            if p.down { (Place::Server, Place::Client) } else { (Place::Client, Place::Server) };
        if p.place == first {
            let c = &mut self.connections[p.flow as usize];
            let next = &mut c.idents[usize::from(p.down)];
            let ident = *next;
            *next = next.wrapping_add(p.payload_bytes.div_ceil(c.opened.mss_bytes.max(1)).max(1) as u16);
            self.idents.entry(identity).or_default().push_back(ident);
            return ident;
        }
        let Some(waiting) = self.idents.get_mut(&identity) else { return 0 };
        let ident = waiting.front().copied().unwrap_or(0);
        if p.place == last {
            waiting.pop_front();
            if waiting.is_empty() {
                self.idents.remove(&identity);
            }
        }
        ident
    }

    /// The files of client, server and router; the router's is empty where the path has none.
    pub fn into_bytes(mut self) -> [Vec<u8>; 3] {
        for flow in 0..self.connections.len() {
            self.write_handshake(flow, u64::MAX);
            self.write_at_router(flow, 0);
        }
        if !self.has_router {
            self.router = Captures::new().router;
        }
        [self.client.into_bytes(), self.server.into_bytes(), self.router.into_bytes()]
    }

    fn at(&mut self, place: Place) -> &mut PcapWriter {
        match place {
            Place::Client => &mut self.client,
            Place::Server => &mut self.server,
            Place::Router => &mut self.router,
        }
    }

    /// Writes the handshake before the first packet at the router; `away_ns`: delay between router
    /// and server.
    fn write_at_router(&mut self, flow: usize, away_ns: u64) {
        for (at_ns, packet) in std::mem::take(&mut self.connections[flow].at_router) {
            let is_down = packet.src.ip() == SERVER;
            self.router.tcp(if is_down { at_ns + away_ns } else { at_ns - away_ns }, &packet);
        }
    }

    /// Writes the handshake packets that precede `time_ns`.
    fn write_handshake(&mut self, flow: usize, time_ns: u64) {
        let waiting = &mut self.connections[flow].handshake;
        let count = waiting.iter().take_while(|(at, _, _)| *at <= time_ns).count();
        for (at, place, packet) in waiting.drain(..count).collect::<Vec<_>>() {
            self.at(place).tcp(at, &packet);
        }
    }
}

fn packet(flow: u32, down: bool, seq: u64, ack: u64, payload_bytes: u32) -> TcpPacket {
    // There are more flows than ports: only the first 40 000 have distinct ones.
    let offset = (flow % 40_000) as u16;
    let client = SocketAddr::from((CLIENT, CLIENT_PORT + offset));
    let server = SocketAddr::from((SERVER, SERVER_PORT + offset));
    let (src, dst) = if down { (server, client) } else { (client, server) };
    TcpPacket::new(src, dst, seq as u32, ack as u32, payload_bytes)
}

/// The timestamp option, from times of day; the echo is 0 in a packet that answers none.
fn timestamps(sent_ns: u64, echo_ns: u64) -> Vec<u8> {
    let ticks = |ns: u64| ((ns / NS_PER_TICK) as u32).to_be_bytes();
    [&[1, 1, 8, 10][..], &ticks(sent_ns), &ticks(echo_ns)].concat()
}

/// A SYN's options in Linux's order.
fn syn_options(o: &Opened, end: End, sent_ns: u64, echo_ns: u64) -> Vec<u8> {
    let mut b = vec![2, 4];
    b.extend((o.mss_bytes as u16).to_be_bytes());
    match (o.sack, o.timestamps) {
        (true, true) => b.extend([4, 2]),
        (true, false) => b.extend([1, 1, 4, 2]),
        (false, true) => b.extend([1, 1]),
        (false, false) => {}
    }
    if o.timestamps {
        b.extend(&timestamps(sent_ns, echo_ns)[2..]);
    }
    if let Some(shift) = end.window_shift {
        b.extend([1, 3, 3, shift as u8]);
    }
    b
}

impl Tap for Captures {
    fn opened(&mut self, o: &Opened) {
        let mut connection = Connection {
            opened: o.clone(),
            answered_ns: 0,
            // Linux draws the first one; here every run gives the same captures.
            idents: [1, 1],
            handshake: Vec::new(),
            at_router: Vec::new(),
        };
        if !o.handshake {
            connection.write_in_advance();
        }
        self.connections.push(connection);
    }

    fn passed(&mut self, p: &Passed) {
        self.has_router |= p.place == Place::Router;
        let time_ns = START_NS + p.time_ns;
        let flow = p.flow as usize;
        self.write_handshake(flow, time_ns);
        if p.place == Place::Router {
            let way_ns = p.time_ns.saturating_sub(p.sent_ns);
            self.write_at_router(
                flow,
                if p.down { way_ns } else { self.connections[flow].opened.up_ns.saturating_sub(way_ns) },
            );
        }
        let ident = self.ident(p);
        let c = &self.connections[flow];
        let packet = if p.syn {
            let echo_ns = if p.down { START_NS + p.echo_ns } else { 0 };
            c.syn(p.down, START_NS + p.sent_ns, echo_ns, ecn_flags(p.ece, p.cwr))
        } else {
            c.segment(p)
        };
        self.at(p.place).tcp(time_ns, &packet.ident(ident));
    }
}
