// SPDX-License-Identifier: MIT
//! Validates a scenario before a run: the second check after the plan reader, for callers with
//! their own JSON. Bounds of single keys are declared with the keys in `scenario`; this module
//! checks combinations.

use crate::classes::channel_keys;
use crate::keys::{within, word, Table};
use crate::scenario::{AppSpec, ChannelSpec, FlowGroup, HostSpec, Scenario};

/// # Errors
/// The first key whose value is out of range, with the range.
pub fn scenario(s: &Scenario) -> Result<(), String> {
    s.check_bounds("")?;
    // Header and timestamps must leave at least 64 bytes of payload. The key's own lower bound
    // equals this one for IPv4.
    within("", "mtu_bytes", &s.mtu_bytes, u64::from(s.ip_tcp_header_bytes) + 76, 65_535)?;
    channel("down", &s.down)?;
    channel("up", &s.up)?;
    if s.down.shared_medium != s.up.shared_medium {
        return Err("shared_medium is set on one direction only; set it on both or on none".into());
    }
    if let Some(access) = &s.access {
        access.check_bounds("access")?;
    }
    if let Some(points) = s.duration_ns.checked_div(s.series_interval_ns) {
        within("", "duration_ns / series_interval_ns", &points, 1, 1_000_000)?;
    }
    if let Some(pings) = s.duration_ns.checked_div(s.ping_interval_ns) {
        within("", "duration_ns / ping_interval_ns", &pings, 0, 65_535)?;
    }
    host("client", &s.client)?;
    host("server", &s.server)?;
    if s.one_processor && s.server.is_paid() {
        return Err("server has costs that one_processor leaves out; give them to the client".into());
    }
    if s.groups.is_empty() {
        return Err("groups is empty; give at least one group of flows".into());
    }
    s.groups.iter().try_for_each(group)
}

fn channel(at: &str, c: &ChannelSpec) -> Result<(), String> {
    c.check_bounds(at)?;
    if let Some(burst) = &c.burst_loss {
        burst.check_bounds(&format!("{at}.burst_loss"))?;
    }
    if let Some(reorder) = &c.reorder {
        reorder.check_bounds(&format!("{at}.reorder"))?;
    }
    c.outages.iter().try_for_each(|outage| outage.check_bounds(&format!("{at}.outages")))?;
    c.lose.iter().try_for_each(|lose| lose.check_bounds(&format!("{at}.lose")))?;
    discipline(at, c)
}

/// Refuses a key that has no effect with this discipline, unless it has its default value.
fn discipline(at: &str, c: &ChannelSpec) -> Result<(), String> {
    let given = serde_json::to_value(c).map_err(|e| e.to_string())?;
    let ours = word(&c.discipline);
    for key in channel_keys() {
        let foreign = !key.disciplines.is_empty() && !key.disciplines.contains(&ours);
        if foreign && key.default.as_ref() != given.get(key.name) {
            let those = key.disciplines.join(", ");
            return Err(format!("{at}.{} has no effect with discipline {ours}, only with {those}", key.name));
        }
    }
    if let Some(rate_bps) = c.shaper_rate_bps {
        // Above the link's rate, the queue would form after the shaper.
        within(at, "shaper_rate_bps", &rate_bps, 1, c.rate_bps)?;
        if c.shared_medium {
            return Err(format!("{at}.shaper_rate_bps cannot be combined with shared_medium; remove one"));
        }
    }
    Ok(())
}

fn host(at: &str, h: &HostSpec) -> Result<(), String> {
    h.check_bounds(at)?;
    h.process.check_bounds(&format!("{at}.process"))
}

fn group(g: &FlowGroup) -> Result<(), String> {
    let at = format!("groups.{}", g.name);
    g.check_bounds(&at)?;
    g.sender.check_bounds(&format!("{at}.sender"))?;
    g.receiver.check_bounds(&format!("{at}.receiver"))?;
    app(&format!("{at}.app"), &g.app)
}

fn app(at: &str, app: &AppSpec) -> Result<(), String> {
    match app {
        AppSpec::Bulk(bulk) => bulk.check_bounds(at),
        AppSpec::RequestResponse(exchange) => exchange.check_bounds(at),
        AppSpec::RandomSpacing(writes) => writes.check_bounds(at),
        AppSpec::OddWrites(writes) => writes.check_bounds(at),
        AppSpec::ParetoBulk(sizes) => {
            sizes.check_bounds(at)?;
            within(at, "mean_bytes", &sizes.mean_bytes, 1, sizes.max_bytes - 1)
        }
        AppSpec::Replay(replay) => {
            replay.check_bounds(at)?;
            let (times_ns, bytes) = (&replay.times_ns, &replay.bytes);
            if times_ns.len() != bytes.len() || times_ns.is_empty() {
                return Err(format!("{at}: times_ns and bytes need the same length, at least 1"));
            }
            if times_ns.windows(2).any(|w| w[0] > w[1]) {
                return Err(format!("{at}.times_ns: times must not go back"));
            }
            Ok(())
        }
    }
}
