# SPDX-License-Identifier: MIT
"""One line of text for a socket's account of an interval."""

from collections.abc import Mapping
from typing import Any

from ackwise.diagnosis.advice import rate, size, time
from ackwise.diagnosis.sentences import SAYINGS, remedy

Row = Mapping[str, Any]  # one socket's record as crates/sockets writes it


def percent(row: Row, limit: str) -> int:
    """Share of the interval under a limit, in percent."""
    share: float = row["limited_us"].get(limit, 0) / row["interval_us"]
    return round(100 * share)


def rate_bps(row: Row) -> float:
    """Rate of acknowledged or received data, bit/s."""
    moved = row["received_bytes"] if row["direction"] == "receiving" else row["acked_bytes"]
    return float(moved * 8e6 / row["interval_us"])


def rtt_s(row: Row) -> float:
    """RTT of the path that the data takes, seconds."""
    return _receiver_rtt_us(row) / 1e6


def sentence(row: Row) -> str:
    """`192.0.2.1:443: 71% receive window (64 kB for 120 ms RTT allow 4.27 Mbit/s): raise ...`"""
    limit = row["limit"]
    evidence = _evidence(row)
    shown = f" ({evidence})" if evidence else ""
    said = f"{row['peer']}: {percent(row, limit)}% {SAYINGS[limit].words}{shown}: "
    sends = row["direction"] == "sending"
    said += remedy(limit, sends=sends)
    capture = SAYINGS[limit].capture
    return f"{said}; a capture decides more: {capture}" if capture else said


def _evidence(row: Row) -> str:
    info = row["tcp_info"]
    rtt_us, least_us = info.get("rtt_us", 0), info.get("min_rtt_us", 0)
    mss = info.get("snd_mss_bytes", 0)
    window = _window(row)
    return {
        "receive-window": lambda: _allows(window, _receiver_rtt_us(row)),
        "receiving-application": lambda: _unread(row),
        "send-buffer": lambda: _allows(row["send_buffer_bytes"] or 0, rtt_us),
        "congestion-window": lambda: _lost(row),
        "slow-start": lambda: _allows(info.get("snd_cwnd", 0) * mss, rtt_us),
        "link": lambda: (
            f"{time(rtt_us / 1e6)} RTT, {time(least_us / 1e6)} without queue, "
            f"at {rate(rate_bps(row))}"
        ),
        "timeout": lambda: f"RTO {time(info.get('rto_us', 0) / 1e6)}",
        "ack-stall": lambda: f"{size(info.get('notsent_bytes', 0))} wait, less than one MSS",
        "undecided": lambda: _undecided(row),
    }.get(row["limit"], lambda: "")()


def _window(row: Row) -> int:
    info = row["tcp_info"]
    if row["direction"] == "receiving":
        return int(info.get("rcv_wnd_bytes") or info.get("rcv_ssthresh_bytes") or 0)
    return int(info.get("snd_wnd_bytes") or row["peer_window_max_bytes"])


def _receiver_rtt_us(row: Row) -> int:
    info = row["tcp_info"]
    return int(info.get("rcv_rtt_us" if row["direction"] == "receiving" else "rtt_us") or 0)


def _allows(size_bytes: int, rtt_us: int) -> str:
    if not size_bytes or not rtt_us:
        return ""
    allowed = rate(size_bytes * 8e6 / rtt_us)
    return f"{size(size_bytes)} for {time(rtt_us / 1e6)} RTT allow {allowed}"


def _unread(row: Row) -> str:
    if row["direction"] == "receiving":
        return f"{size(row['unread_bytes'])} unread"
    window = row["tcp_info"].get("snd_wnd_bytes")
    return f"its window is down to {size(window)}" if window is not None else ""


def _undecided(row: Row) -> str:
    info = row["tcp_info"]
    if row["direction"] == "receiving":
        return "the sender's limit"
    if "busy_time_us" not in info:
        return "this kernel keeps no account"
    return "both windows have room: pacing, the device's queue or the processor"


def _lost(row: Row) -> str:
    count = row["retransmissions"]
    return f"{count} retransmission{'s' * (count != 1)}" if count else "no loss in this interval"
