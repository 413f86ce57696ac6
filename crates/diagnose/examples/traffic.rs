// SPDX-License-Identifier: MIT
//! Writes a capture of many simultaneous connections for bench/diagnose, always the same bytes:
//! `cargo run --release --example traffic CONNECTIONS SEGMENTS OUT.pcap`
//!
//! Each connection sends SEGMENTS segments in bursts of two, acknowledged together; one in a
//! hundred is lost after the capture point, reported by three duplicate ACKs with SACK and
//! retransmitted.

use ackwise_capture::link;
use ackwise_capture::tcp_flag::{ACK, FIN, PSH, SYN};
use ackwise_capture::write::{PcapStyle, PcapWriter, TcpPacket};
use std::net::SocketAddr;

const MSS: u32 = 1448;
/// MSS 1460, SACK permitted, timestamps, window scale 7.
const SYN_OPTIONS: [u8; 19] = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 3, 3, 7];

struct Transfer {
    ends: [SocketAddr; 2],
    isn: u32,
    sent: u32,
    is_open: bool,
}

struct Traffic {
    writer: PcapWriter,
    now_ns: u64,
    random: u64,
    idents: u16,
}

impl Traffic {
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }

    fn put(&mut self, packet: &TcpPacket) {
        self.now_ns += 1_000;
        self.idents = self.idents.wrapping_add(1);
        let mut ip = packet.to_ip();
        ip[4..6].copy_from_slice(&self.idents.to_be_bytes());
        let frame = ackwise_capture::write::frame(link::ETHERNET, &ip);
        self.writer.frame(self.now_ns, &frame);
    }

    fn stamps(&self, echo_ns: u64) -> [u8; 12] {
        let mut options = [1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
        options[4..8].copy_from_slice(&((self.now_ns / 1_000_000) as u32).to_be_bytes());
        options[8..12].copy_from_slice(&((echo_ns / 1_000_000) as u32).to_be_bytes());
        options
    }

    fn open(&mut self, t: &mut Transfer) {
        let [a, b] = t.ends;
        self.put(&TcpPacket::new(a, b, t.isn, 0, 0).flags(SYN).options(&SYN_OPTIONS));
        let answer = TcpPacket::new(b, a, 1, t.isn.wrapping_add(1), 0).flags(SYN | ACK);
        self.put(&answer.options(&SYN_OPTIONS));
        self.put(&TcpPacket::new(a, b, t.isn.wrapping_add(1), 2, 0).options(&self.stamps(self.now_ns)));
        t.is_open = true;
    }

    fn burst(&mut self, t: &mut Transfer) {
        let [a, b] = t.ends;
        let first = t.isn.wrapping_add(1).wrapping_add(t.sent * MSS);
        let data = |at: u32| TcpPacket::new(a, b, first.wrapping_add(at * MSS), 2, MSS).flags(PSH | ACK);
        let ack = |at: u32| TcpPacket::new(b, a, 2, first.wrapping_add(at * MSS), 0).window(2000);
        let passed_ns = self.now_ns;
        self.put(&data(0).options(&self.stamps(passed_ns)));
        self.put(&data(1).options(&self.stamps(passed_ns)));
        t.sent += 2;
        if self.below(50) == 0 {
            for at in 2..5 {
                self.put(&data(at).options(&self.stamps(passed_ns)));
                let mut options = self.stamps(passed_ns).to_vec();
                options.extend([1, 1, 5, 10]);
                for edge in [1, at + 1] {
                    options.extend(first.wrapping_add(edge * MSS).to_be_bytes());
                }
                self.put(&ack(0).options(&options));
            }
            t.sent += 3;
            self.put(&data(0).options(&self.stamps(passed_ns)));
            self.put(&ack(5).options(&self.stamps(passed_ns)));
        } else {
            self.put(&ack(2).options(&self.stamps(passed_ns)));
        }
    }

    fn close(&mut self, t: &Transfer) {
        let [a, b] = t.ends;
        let end = t.isn.wrapping_add(1).wrapping_add(t.sent * MSS);
        self.put(&TcpPacket::new(a, b, end, 2, 0).flags(FIN | ACK).options(&self.stamps(self.now_ns)));
        let answer = TcpPacket::new(b, a, 2, end.wrapping_add(1), 0).flags(FIN | ACK);
        self.put(&answer.options(&self.stamps(self.now_ns)));
        self.put(&TcpPacket::new(a, b, end.wrapping_add(1), 3, 0).options(&self.stamps(self.now_ns)));
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, connections, segments, out] = &arguments[..] else {
        return Err("give CONNECTIONS SEGMENTS OUT.pcap".into());
    };
    let (connections, segments): (u32, u32) = (connections.parse()?, segments.parse()?);
    let style = PcapStyle { nanoseconds: true, ..PcapStyle::default() };
    let mut traffic = Traffic {
        writer: PcapWriter::new(link::ETHERNET, style),
        now_ns: 1_700_000_000_000_000_000,
        random: 1,
        idents: 0,
    };
    let mut open: Vec<Transfer> = (0..connections)
        .map(|n| {
            let [b2, b1] = ((n / 250) as u16).to_be_bytes();
            let client = SocketAddr::from(([10, b2, b1, (n % 250) as u8 + 1], 40_000 + (n % 20_000) as u16));
            let ends = [client, SocketAddr::from(([192, 0, 2, 1], 443))];
            Transfer { ends, isn: n.wrapping_mul(0x9e37_79b9), sent: 0, is_open: false }
        })
        .collect();
    while !open.is_empty() {
        let n = traffic.below(open.len() as u64) as usize;
        let transfer = &mut open[n];
        match (transfer.is_open, transfer.sent >= segments) {
            (false, _) => traffic.open(transfer),
            (true, false) => traffic.burst(transfer),
            (true, true) => traffic.close(&open.swap_remove(n)),
        }
    }
    std::fs::write(out, traffic.writer.into_bytes())?;
    Ok(())
}
