// SPDX-License-Identifier: MIT
//! The sender: what the socket layer copies from the writer, and what TCP output may send.

use crate::pair::{Nagle, Pair, Rule, Socket};

/// Copy size between writer and send buffer in 4.3BSD and SunOS 4.1.3.
const CLUSTER_BYTES: u64 = 1024;
const PUSH_BYTES: u64 = 4096;
/// Size of a bulk writer's write in Linux; the last segment of a write carries PSH.
const WRITE_BYTES: u64 = 128 * 1024;

#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub bytes: u32,
    pub psh: bool,
}

#[derive(Clone)]
pub struct Sender {
    mss: u64,
    buffer: u64,
    nagle: Nagle,
    socket: Socket,
    half_window: bool,
    push: bool,
    cluster: bool,
    output_first: bool,
    pub una: u64,
    pub nxt: u64,
    pub written: u64,
    /// Sequence number of the end of the data that the application wants to write.
    pub wanted: u64,
    window_end: u64,
    largest_window: u64,
    short_end: u64,
    /// Size of one write, bytes.
    each: u64,
}

impl Sender {
    pub fn new(pair: &Pair, window: u64) -> Self {
        let holds = |rule| !pair.without.contains(&rule);
        Sender {
            mss: pair.mss_bytes.into(),
            buffer: pair.send_buffer_bytes,
            nagle: pair.nagle,
            socket: pair.socket,
            half_window: holds(Rule::HalfWindow),
            push: holds(Rule::Push),
            cluster: holds(Rule::Cluster),
            output_first: pair.socket == Socket::Bsd43 && holds(Rule::OutputFirst),
            una: 0,
            nxt: 0,
            written: 0,
            wanted: match (pair.script.is_empty(), pair.write_bytes) {
                (false, _) => 0,
                (true, 0) => u64::MAX,
                (true, bytes) => bytes,
            },
            window_end: window,
            largest_window: window,
            short_end: 0,
            each: match (pair.script.is_empty(), pair.write_bytes) {
                (false, _) => u64::MAX, // each call ends where the buffer does
                (true, 0) => WRITE_BYTES,
                (true, bytes) => bytes,
            },
        }
    }

    fn free(&self) -> u64 {
        self.buffer - (self.written - self.una).min(self.buffer)
    }

    fn room(&self) -> u64 {
        self.free().min(self.wanted - self.written)
    }

    /// Processes an ACK; segments that leave because of it are pushed to `out`.
    pub fn on_ack(&mut self, ack: u64, window: u64, out: &mut Vec<Segment>) {
        self.una = self.una.max(ack);
        self.window_end = self.window_end.max(ack + window);
        self.largest_window = self.largest_window.max(window);
        if self.output_first {
            self.output(out);
        }
        self.write(out);
    }

    /// Lets the writer continue as far as there is room.
    pub fn write(&mut self, out: &mut Vec<Segment>) {
        match self.socket {
            Socket::Linux => {
                self.fill_segments();
                self.output(out);
            }
            Socket::Bsd43 => {
                while self.fill_clusters() {
                    self.output(out);
                }
                self.output(out);
            }
        }
    }

    /// Linux: the writer wakes when a third is free, and fills whole segments while it has more.
    fn fill_segments(&mut self) {
        let room = self.room();
        let all = self.written + room == self.wanted;
        let asleep = self.written > self.una && room < self.buffer / 3;
        if room == 0 || (asleep && !all) {
            return;
        }
        let end = self.written + room;
        let torn = if all || room < self.mss { 0 } else { end % self.mss };
        self.written = end - torn;
    }

    /// 4.3BSD: clusters until a push is due. True: something was copied.
    // [S5.3]
    fn fill_clusters(&mut self) -> bool {
        let most = if self.push { PUSH_BYTES } else { u64::MAX };
        let begin = self.written;
        while self.written - begin < most {
            let room = self.room();
            let all = self.written + room == self.wanted;
            let usable = !self.cluster || all || room >= CLUSTER_BYTES.min(self.buffer);
            if room == 0 || !usable {
                break;
            }
            self.written += room.min(CLUSTER_BYTES).min(most - (self.written - begin));
        }
        self.written > begin
    }

    fn output(&mut self, out: &mut Vec<Segment>) {
        loop {
            let unsent = self.written - self.nxt;
            let len = unsent.min(self.mss).min(self.window_end.saturating_sub(self.nxt));
            if len == 0 || (len < self.mss && !self.short_may_leave(len, unsent)) {
                return;
            }
            let end = self.nxt + len;
            // Linux sets PSH at the end of a write; every stack sets it when the buffer becomes
            // empty.
            let ends_write = self.socket == Socket::Linux && self.nxt / self.each < end / self.each;
            out.push(Segment { bytes: len as u32, psh: end == self.written || ends_write });
            if len < self.mss {
                self.short_end = end;
            }
            self.nxt = end;
        }
    }

    /// RFC 1122, 4.2.3.4, with the three forms of Nagle's rule.
    // [S5.4]
    fn short_may_leave(&self, len: u64, unsent: u64) -> bool {
        if self.half_window && 2 * len >= self.largest_window {
            return true;
        }
        len == unsent
            && match self.nagle {
                Nagle::Off => true,
                Nagle::Bsd43 => self.nxt == self.una,
                Nagle::Minshall => self.short_end <= self.una,
            }
    }

    /// Whether the writer still waits for room.
    pub fn is_blocked(&self) -> bool {
        self.written < self.wanted
    }

    /// (unsent bytes that may not leave, free bytes in the send buffer, remaining window).
    pub fn held(&self) -> (u64, u64, u64) {
        (self.written - self.nxt, self.free(), self.window_end.saturating_sub(self.nxt))
    }

    pub fn mss(&self) -> u64 {
        self.mss
    }

    pub fn buffer(&self) -> u64 {
        self.buffer
    }
}
