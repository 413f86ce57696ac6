// SPDX-License-Identifier: MIT
//! Refuses scenarios that cannot mean anything, before a run: the second line behind the plan
//! reader, for callers that bring their own JSON.

use crate::scenario::{AppSpec, ChannelSpec, Scenario};

const S: u64 = 1_000_000_000;

fn within(what: &str, value: u64, low: u64, high: u64) -> Result<(), String> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(format!("{what} = {value} is out of range; give {low} to {high}"))
    }
}

fn pipe(name: &str, p: &ChannelSpec) -> Result<(), String> {
    within(&format!("{name}.rate_bps"), p.rate_bps, 1, 1_000_000_000_000)?;
    within(&format!("{name}.delay_ns"), p.delay_ns, 0, 60 * S)?;
    within(&format!("{name}.jitter_ns"), p.jitter_ns, 0, 60 * S)?;
    within(&format!("{name}.grant_interval_ns"), p.grant_interval_ns, 0, S)?;
    within(&format!("{name}.per_packet_ns"), p.per_packet_ns, 0, S)?;
    within(&format!("{name}.ack_share_ppm"), p.ack_share_ppm.into(), 10_000, 990_000)?;
    let mut shares = vec![("loss_ppm", p.loss_ppm), ("duplicate_ppm", p.duplicate_ppm)];
    if let Some(b) = &p.burst_loss {
        shares.extend([("enter_ppm", b.enter_ppm), ("leave_ppm", b.leave_ppm), ("loss_ppm", b.loss_ppm)]);
    }
    if let Some(r) = &p.reorder {
        shares.push(("probability_ppm", r.probability_ppm));
        within(&format!("{name}.reorder.delay_ns"), r.delay_ns, 0, 60 * S)?;
    }
    for (key, ppm) in shares {
        within(&format!("{name}.{key}"), ppm.into(), 0, 1_000_000)?;
    }
    for o in &p.outages {
        within(&format!("{name}.outages.start_ns"), o.start_ns, 0, 100_000 * S)?;
        within(&format!("{name}.outages.length_ns"), o.length_ns, 0, 100_000 * S)?;
    }
    Ok(())
}

/// # Errors
/// The first key whose value is out of range, with the range.
pub fn scenario(s: &Scenario) -> Result<(), String> {
    within("duration_ns", s.duration_ns, 1, 100_000 * S)?;
    within("ip_tcp_header_bytes", s.ip_tcp_header_bytes.into(), 20, 120)?;
    // The MSS may not vanish: header and timestamps leave at least 64 bytes of payload.
    within("mtu_bytes", s.mtu_bytes.into(), u64::from(s.ip_tcp_header_bytes) + 76, 1 << 20)?;
    within("link_overhead_bytes", s.link_overhead_bytes.into(), 0, 1500)?;
    pipe("down", &s.down)?;
    pipe("up", &s.up)?;
    if s.down.shared_medium != s.up.shared_medium {
        return Err("shared_medium is set on one direction only; set it on both or on none".into());
    }
    if let Some(a) = &s.access {
        within("access.rate_bps", a.rate_bps, 1, 1_000_000_000_000)?;
        within("access.delay_ns", a.delay_ns, 0, 60 * S)?;
    }
    if let Some(points) = s.duration_ns.checked_div(s.series_interval_ns) {
        within("duration_ns / series_interval_ns", points, 1, 1_000_000)?;
    }
    for (name, h) in [("client", &s.client), ("server", &s.server)] {
        for (key, ns) in [
            ("data_received_ns", h.data_received_ns),
            ("data_sent_ns", h.data_sent_ns),
            ("ack_received_ns", h.ack_received_ns),
            ("ack_sent_ns", h.ack_sent_ns),
            ("gro_window_ns", h.gro_window_ns),
            ("process.read_ns", h.process.read_ns),
            ("process.read_kib_ns", h.process.read_kib_ns),
            ("process.write_kib_ns", h.process.write_kib_ns),
        ] {
            within(&format!("{name}.{key}"), ns, 0, S)?;
        }
        for (key, bytes) in [
            ("send_buffer_max_bytes", h.send_buffer_max_bytes),
            ("recv_buffer_max_bytes", h.recv_buffer_max_bytes),
        ] {
            if bytes > 0 {
                within(&format!("{name}.{key}"), bytes, 256, 1 << 32)?;
            }
        }
    }
    if s.groups.is_empty() {
        return Err("groups is empty; give at least one group of flows".into());
    }
    for g in &s.groups {
        let at = |key: &str| format!("groups.{}.{key}", g.name);
        within(&at("count"), g.count.into(), 1, 100_000)?;
        within(&at("start_ns"), g.start_ns, 0, 100_000 * S)?;
        within(&at("start_jitter_ns"), g.start_jitter_ns, 0, 100_000 * S)?;
        if !(0.0..=1e6).contains(&g.arrivals_per_s) {
            return Err(format!(
                "{} = {} is out of range; give 0 to 1e6",
                at("arrivals_per_s"),
                g.arrivals_per_s
            ));
        }
        within(&at("sender.send_buffer_bytes"), g.sender.send_buffer_bytes, 1, 1 << 32)?;
        within(&at("sender.low_water_bytes"), g.sender.low_water_bytes, 0, 1 << 32)?;
        within(&at("sender.copy_bps"), g.sender.copy_bps, 0, 1_000_000_000_000)?;
        within(&at("sender.initial_window_segments"), g.sender.initial_window_segments.into(), 1, 10_000)?;
        within(&at("sender.min_rto_ns"), g.sender.min_rto_ns, 1_000_000, 60 * S)?;
        within(&at("receiver.recv_buffer_bytes"), g.receiver.recv_buffer_bytes, 256, 1 << 30)?;
        within(&at("receiver.recv_buffer_max_bytes"), g.receiver.recv_buffer_max_bytes, 0, 1 << 30)?;
        within(&at("receiver.reader_lag_ns"), g.receiver.reader_lag_ns, 0, 60 * S)?;
        app(&at("app"), &g.app)?;
    }
    Ok(())
}

fn app(at: &str, app: &AppSpec) -> Result<(), String> {
    match app {
        AppSpec::Bulk { bytes } => within(&format!("{at}.bytes"), *bytes, 0, 1 << 50),
        AppSpec::RequestResponse { request_bytes, response_bytes, think_ns, .. } => {
            within(&format!("{at}.request_bytes"), (*request_bytes).into(), 1, u32::MAX.into())?;
            within(&format!("{at}.response_bytes"), *response_bytes, 1, 1 << 40)?;
            within(&format!("{at}.think_ns"), *think_ns, 0, 3600 * S)
        }
        AppSpec::RandomSpacing { packets, bytes, max_gap_ns } => {
            within(&format!("{at}.packets"), (*packets).into(), 1, 10_000_000)?;
            within(&format!("{at}.bytes"), (*bytes).into(), 1, 1 << 24)?;
            within(&format!("{at}.max_gap_ns"), *max_gap_ns, 0, 3600 * S)
        }
        AppSpec::OddWrites { write_bytes, writes, gap_ns, .. } => {
            within(&format!("{at}.write_bytes"), (*write_bytes).into(), 1, 1 << 30)?;
            within(&format!("{at}.writes"), (*writes).into(), 1, 100_000)?;
            within(&format!("{at}.gap_ns"), *gap_ns, 0, 3600 * S)
        }
        AppSpec::ParetoBulk { mean_bytes, max_bytes } => {
            within(&format!("{at}.max_bytes"), *max_bytes, 2, 1 << 44)?;
            within(&format!("{at}.mean_bytes"), *mean_bytes, 1, max_bytes - 1)
        }
        AppSpec::Replay { times_ns, bytes } => {
            if times_ns.len() != bytes.len() || times_ns.is_empty() {
                return Err(format!("{at}: times_ns and bytes need the same length, at least 1"));
            }
            if times_ns.windows(2).any(|w| w[0] > w[1]) {
                return Err(format!("{at}.times_ns: times must not go back"));
            }
            bytes.iter().try_for_each(|b| within(&format!("{at}.bytes"), (*b).into(), 1, 1 << 30))
        }
    }
}
