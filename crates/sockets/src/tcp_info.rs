// SPDX-License-Identifier: MIT
//! `struct tcp_info` by field name. Each kernel version appends fields; those that an older one
//! lacks are None.

use serde::ser::{Serialize, SerializeMap, Serializer};

/// Longer than the struct of any kernel; fields beyond it are not read.
const LENGTH_MAX: usize = 256;

/// The bytes of one `struct tcp_info`, as many as the kernel provides.
#[derive(Clone, Copy)]
pub struct TcpInfo {
    length: u16,
    bytes: [u8; LENGTH_MAX],
}

impl TcpInfo {
    /// Copies as much as fits; a kernel's structure may be shorter or longer.
    pub fn new(data: &[u8]) -> Self {
        let length = data.len().min(LENGTH_MAX);
        let mut bytes = [0; LENGTH_MAX];
        bytes[..length].copy_from_slice(&data[..length]);
        TcpInfo { length: length as u16, bytes }
    }

    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.bytes[..usize::from(self.length)].get(at..at + N)?.try_into().ok()
    }
}

macro_rules! fields {
    ($($(#[$text:meta])* $name:ident: $type:ty = $at:literal,)*) => {
        impl TcpInfo {
            $($(#[$text])* pub fn $name(&self) -> Option<$type> {
                self.array($at).map(<$type>::from_ne_bytes)
            })*
        }

        /// Serialized as `{name: value}`, in the kernel's order.
        impl Serialize for TcpInfo {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                $(if let Some(value) = self.$name() {
                    map.serialize_entry(stringify!($name), &value)?;
                })*
                map.serialize_entry("snd_wscale", &(self.wscale() & 15))?;
                map.serialize_entry("rcv_wscale", &(self.wscale() >> 4))?;
                map.serialize_entry("delivery_rate_app_limited", &self.app_limited())?;
                map.end()
            }
        }
    };
}

// linux/tcp.h; the comment names the first kernel with the field where that is later than 4.10.
fields! {
    ca_state: u8 = 1,
    retransmits: u8 = 2,
    probes: u8 = 3,
    backoff: u8 = 4,
    options: u8 = 5,
    rto_us: u32 = 8,
    ato_us: u32 = 12,
    snd_mss_bytes: u32 = 16,
    rcv_mss_bytes: u32 = 20,
    unacked: u32 = 24,
    sacked: u32 = 28,
    lost: u32 = 32,
    retrans: u32 = 36,
    last_data_sent_ms: u32 = 44,
    last_data_recv_ms: u32 = 52,
    last_ack_recv_ms: u32 = 56,
    pmtu_bytes: u32 = 60,
    rcv_ssthresh_bytes: u32 = 64,
    rtt_us: u32 = 68,
    rttvar_us: u32 = 72,
    snd_ssthresh: u32 = 76,
    snd_cwnd: u32 = 80,
    advmss_bytes: u32 = 84,
    reordering: u32 = 88,
    rcv_rtt_us: u32 = 92,
    rcv_space_bytes: u32 = 96,
    total_retrans: u32 = 100,
    pacing_rate_bytes_per_s: u64 = 104,
    max_pacing_rate_bytes_per_s: u64 = 112,
    bytes_acked: u64 = 120,
    bytes_received: u64 = 128,
    segs_out: u32 = 136,
    segs_in: u32 = 140,
    notsent_bytes: u32 = 144,
    min_rtt_us: u32 = 148,
    data_segs_in: u32 = 152,
    data_segs_out: u32 = 156,
    delivery_rate_bytes_per_s: u64 = 160,
    busy_time_us: u64 = 168,
    rwnd_limited_us: u64 = 176,
    sndbuf_limited_us: u64 = 184,
    delivered: u32 = 192, // 4.18
    delivered_ce: u32 = 196, // 4.18
    bytes_sent: u64 = 200, // 4.19
    bytes_retrans: u64 = 208, // 4.19
    dsack_dups: u32 = 216, // 4.19
    reord_seen: u32 = 220, // 4.19
    rcv_ooopack: u32 = 224, // 5.4
    snd_wnd_bytes: u32 = 228, // 5.4
    rcv_wnd_bytes: u32 = 232, // 6.2
    rehash: u32 = 236, // 6.2
    total_rto: u16 = 240, // 6.7
    total_rto_recoveries: u16 = 242, // 6.7
    total_rto_time_ms: u32 = 244, // 6.7
}

impl TcpInfo {
    /// Window scales: the peer's in the lower four bits.
    fn wscale(&self) -> u8 {
        let bits = self.array::<1>(6).map_or(0, |b| b[0]);
        // C puts the first bit-field into the lower half where the first byte is the lower one.
        if cfg!(target_endian = "little") {
            bits
        } else {
            bits.rotate_left(4)
        }
    }

    /// Whether the delivery rate was limited by the application.
    pub fn app_limited(&self) -> bool {
        let bit = if cfg!(target_endian = "little") { 1 } else { 0x80 };
        self.array::<1>(7).is_some_and(|b| b[0] & bit != 0)
    }

    /// Packets in flight, as the kernel counts them.
    pub fn in_flight(&self) -> u32 {
        let count = |field: Option<u32>| field.unwrap_or(0);
        count(self.unacked())
            .saturating_add(count(self.retrans()))
            .saturating_sub(count(self.sacked()))
            .saturating_sub(count(self.lost()))
    }
}
