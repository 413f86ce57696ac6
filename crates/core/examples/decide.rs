// SPDX-License-Identifier: MIT
//! Prints a policy's decisions on ten segments, one per millisecond: `cargo run --example decide
//! [POLICY]`

use ackwise_core::{Action, Event, EventKind, PolicyChoice};

const MSS: u32 = 1448;
const WINDOW: u32 = 65_535;

fn main() -> Result<(), String> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "delayed".into());
    let policy = PolicyChoice::new(&name).resolve()?;
    let event = |kind, now_ns, unacked_bytes| Event {
        unacked_bytes,
        wnd_bytes: WINDOW - unacked_bytes,
        wnd_next_bytes: WINDOW,
        wnd_max_bytes: WINDOW,
        rcv_mss_bytes: MSS,
        mss_max_bytes: MSS,
        rtt_us: 20_000,
        rto_us: 200_000,
        delay_max_us: 200_000,
        ..Event::new(kind, now_ns)
    };
    let mut conn = policy.connect(&event(EventKind::Data, 0, 0));
    let mut unacked_bytes = 0;
    for segment in 1..=10 {
        let now_ns = segment * 1_000_000;
        unacked_bytes += MSS;
        let data = Event { bytes: MSS, ..event(EventKind::Data, now_ns, unacked_bytes) };
        let verdict = conn.decide(&data);
        print!("segment {segment:2}: ");
        match verdict.action {
            Action::SendNow => {
                println!("ACK now, {}", verdict.reason.label());
                unacked_bytes = 0;
                conn.decide(&event(EventKind::AckSent, now_ns, 0));
            }
            Action::WaitUntil(at_ns) => {
                println!("ACK at {} ms at the latest, {}", at_ns / 1_000_000, verdict.reason.label());
            }
            Action::Nothing => println!("nothing to acknowledge"),
        }
    }
    Ok(())
}
