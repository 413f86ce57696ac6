# SPDX-License-Identifier: MIT
"""Live sockets: the same counters as ss, limits named right on this kernel, and what goes wrong."""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Ackwise, spawn
from netns import Namespace, namespace, needs_root
from systemd import complaints, needs_systemd
from transfers import PORT, Ends, Transfer, transferring

from ackwise import engine
from ackwise.diagnosis import sentences
from ackwise.diagnosis.live import lines, sampler, selection
from ackwise.host import inet_diag

pytestmark = pytest.mark.host


def looked(where: Namespace, *words: str, interval: str = "2s") -> list[dict[str, Any]]:
    """The sockets of one interval."""
    said = where.ackwise("live", "--json", "--once", "--interval", interval, *words)
    assert (said.code, said.err) == (0, "")
    return [json.loads(line) for line in said.out.splitlines()]


def only(where: Namespace, *words: str, interval: str = "2s") -> dict[str, Any]:
    """The one active socket of the transfer."""
    (row,) = looked(where, *words, interval=interval)
    assert sum(row["limited_us"].values()) == row["interval_us"]
    assert sum(row["limited_since_start_us"].values()) == row["interval_us"]
    return row


# --- limits, made on this kernel -----------------------------------------------------------------

# What limits it, how long a share of the time at least, and the counter of the kernel that says so.
MADE = {
    "receive-window": (
        Transfer(rcvbuf=16_384, delay_s=0.02), 80, "rwnd_limited_us",
    ),
    "receiving-application": (
        Transfer(read_bytes=8192, read_pause_s=0.1), 80, "rwnd_limited_us",
    ),
    "send-buffer": (
        Transfer(sndbuf=16_384, writes=(2000,), delay_s=0.02), 80, None,
    ),
    "sending-application": (
        Transfer(writes=(20_000,), write_pause_s=0.1), 80, None,
    ),
    "link": (
        Transfer(rate_bps=8_000_000, queue_packets=200, delay_s=0.005), 80, None,
    ),
    "congestion-window": (
        Transfer(lost_of=50, delay_s=0.02), 60, None,
    ),
}  # fmt: skip


def tried(how: Transfer, check: Callable[[Ends], None], tries: int = 3) -> None:
    """Makes the transfer and checks it: on a busy host its programs may stand still, which is a
    limit too, so once of a few times is enough."""
    for left in reversed(range(tries)):
        with transferring(how, warm_up_s=3) as ends:
            try:
                check(ends)
            except AssertionError:
                if not left:
                    raise
            else:
                return


@needs_root
@pytest.mark.real_time
@pytest.mark.slow
@pytest.mark.parametrize("limit", MADE)
def test_a_limit_that_was_made_is_named(limit: str) -> None:
    how, least_percent, counter = MADE[limit]

    def check(ends: Ends) -> None:
        row = only(ends.sender)
        assert row["limit"] == limit, row
        assert lines.percent(row, limit) >= least_percent, row["limited_us"]
        assert row["direction"] == "sending"
        if counter:
            # the kernel's account since the connection began: it waited for this most of the time
            info = row["tcp_info"]
            assert info[counter] > 0.7 * info["busy_time_us"]
        if limit == "congestion-window":
            assert row["retransmissions"] > 0
        said = lines.sentence(row)
        assert said.startswith(f"{row['peer']}: ")
        assert sentences.SAYINGS[limit].words in said

    tried(how, check)


@needs_root
@pytest.mark.real_time
@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "named"),
    [
        (Transfer(read_bytes=65_536, read_pause_s=0.02), {"receiving-application"}),
        (Transfer(read_bytes=262_144, read_pause_s=0.1, delay_s=0.01), {"receiving-application"}),
        # The window that this reader leaves fits the RTT.
        (
            Transfer(read_bytes=8192, read_pause_s=0.01, delay_s=0.01),
            {"receiving-application", "receive-window"},
        ),
        (Transfer(rcvbuf=65_536, delay_s=0.05), {"receive-window"}),
        (Transfer(rcvbuf=131_072, delay_s=0.01), {"receive-window"}),
        (Transfer(rcvbuf=4096, delay_s=0.005), {"receive-window"}),
    ],
)
def test_a_full_receive_window_is_neither_a_link_nor_undecided(
    how: Transfer, named: set[str]
) -> None:
    def check(ends: Ends) -> None:
        row = only(ends.sender)
        assert sum(lines.percent(row, limit) for limit in named) >= 95, row

    tried(how, check)


@needs_root
@pytest.mark.real_time
@pytest.mark.slow
def test_a_receiver_names_its_application() -> None:
    def check(ends: Ends) -> None:
        row = only(ends.receiver)
        assert (row["direction"], row["limit"]) == ("receiving", "receiving-application")
        assert row["unread_bytes"] > 0
        assert " here " in lines.sentence(row)

    tried(MADE["receiving-application"][0], check)


@needs_root
@pytest.mark.real_time
@pytest.mark.slow
def test_a_dead_path_is_a_timeout() -> None:
    def check(ends: Ends) -> None:
        ends.receiver.tool("ip", "link", "set", "v0", "down")
        time.sleep(1.5)
        assert only(ends.sender)["limit"] == "timeout"

    tried(Transfer(), check)


# --- the same as ss ------------------------------------------------------------------------------

# Values that change with every packet or with time are left out.
SS = {
    r"\brto:(\d+)": ("rto_us", 1000),
    r"\bmss:(\d+)": ("snd_mss_bytes", 1),
    r"\brcvmss:(\d+)": ("rcv_mss_bytes", 1),
    r"\badvmss:(\d+)": ("advmss_bytes", 1),
    r"\bcwnd:(\d+)": ("snd_cwnd", 1),
    r"\bbytes_sent:(\d+)": ("bytes_sent", 1),
    r"\bbytes_acked:(\d+)": ("bytes_acked", 1),
    r"\bbytes_received:(\d+)": ("bytes_received", 1),
    r"\bsegs_out:(\d+)": ("segs_out", 1),
    r"\bsegs_in:(\d+)": ("segs_in", 1),
    r"\bdata_segs_out:(\d+)": ("data_segs_out", 1),
    r"\bdata_segs_in:(\d+)": ("data_segs_in", 1),
    r"\bdelivered:(\d+)": ("delivered", 1),
    r"\brcv_space:(\d+)": ("rcv_space_bytes", 1),
    r"\brcv_ssthresh:(\d+)": ("rcv_ssthresh_bytes", 1),
    r"\bbusy:(\d+)ms": ("busy_time_us", 1000),
    r"\bpmtu:(\d+)": ("pmtu_bytes", 1),
    r"\bwscale:(\d+),": ("snd_wscale", 1),
    r"\bwscale:\d+,(\d+)": ("rcv_wscale", 1),
}

_EXCHANGE = """
import socket, time
server = socket.create_server(("127.0.0.1", 5001))
to = socket.create_connection(("127.0.0.1", 5001))
peer, _ = server.accept()
print("ready", flush=True)
time.sleep(1.2)
for _ in range(30):
    to.sendall(bytes(3000))
    peer.recv(9000)
    peer.sendall(bytes(700))
    to.recv(9000)
time.sleep(60)
"""


@needs_root
@pytest.mark.real_time
@pytest.mark.slow
def test_the_counters_are_those_of_ss() -> None:
    with namespace() as inside:
        inside.tool("ip", "link", "set", "lo", "up")
        words = ["ip", "netns", "exec", inside.name, sys.executable, "-c", _EXCHANGE]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            process.stdout.readline()
            rows = looked(inside, interval="4s")
            shown = inside.tool("ss", "-tinH", "state", "established")
        finally:
            process.kill()
            process.communicate()
    assert len(rows) == 2
    told = re.sub(r"\n\s+", " ", shown).splitlines()
    for row in rows:
        (line,) = (x for x in told if x.split()[2:4] == [row["local"], row["peer"]])
        compared = 0
        for pattern, (name, scale) in SS.items():
            found = re.search(pattern, line)
            if found:
                assert int(found[1]) == row["tcp_info"][name] // scale, (name, line)
                compared += 1
        assert compared >= 14, line
    assert {row["direction"] for row in rows} == {"sending", "receiving"}


# --- which sockets -------------------------------------------------------------------------------


@needs_root
@pytest.mark.real_time
@pytest.mark.slow
def test_filters_choose_as_ss_does() -> None:
    with transferring(Transfer(writes=(2000,), write_pause_s=0.01), warm_up_s=0.3) as ends:
        for words, expected in (
            (f"dport = :{PORT}", 1),
            (f"dport != :{PORT}", 0),
            (f"sport = :{PORT}", 0),
            (f"dport ge {PORT} and dport le {PORT}", 1),
            (f"dport < {PORT} or dport > {PORT}", 0),
            ("dst 10.99.0.0/24", 1),
            ("dst 10.99.0.1", 0),
            (f"dst 10.99.0.2:{PORT} and not src 10.0.0.0/16", 1),
            ("( dst 10.99.0.2 or dst 10.1.1.1 ) and not ( sport = :1 or sport = :2 )", 1),
            ("not ( dst 10.99.0.2 and src 10.99.0.1 )", 0),
            ("state established dst [::ffff:10.99.0.2]", 0),
            ("state fin-wait-1", 0),
        ):
            shown = ends.sender.tool("ss", "-tnH", *words.split()).splitlines()
            assert len(shown) == expected, words
            rows = looked(ends.sender, *words.split(), interval="300ms")
            assert len(rows) == expected, words
        assert len(looked(ends.sender, "--uid", "root", interval="300ms")) == 1
        assert looked(ends.sender, "--uid", "nobody", interval="300ms") == []


def test_a_process_sees_its_own_sockets(ackwise: Ackwise) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        words = ("live", "--once", "--json", "--interval", "200ms")
        with socket.create_connection(address) as to, server.accept()[0] as peer:
            chosen = (f"--pid={os.getpid()}", "dport", "=", str(address[1]))
            said = ackwise(*words, *chosen)
            assert (said.code, said.out) == (0, "")  # idle
            peer.settimeout(5)
            to.settimeout(5)


# --- the share of a core -------------------------------------------------------------------------


def test_a_long_list_is_read_on_in_the_next_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    datagrams, cost_s, share = 40, 0.01, 0.1
    clock = {"cpu": 0.0, "now": 0.0}
    received: list[int] = []

    class List:
        def __init__(self, *_chosen: object) -> None:
            self.left = datagrams

        def receive(self) -> inet_diag.Datagram:
            clock["cpu"] += cost_s
            received.append(self.left)
            self.left -= 1
            done = struct.pack("=IHHII", 20, 3, 2, 0, 0) + bytes(4)
            return inet_diag.Datagram(b"" if self.left else done, 0)

        def close(self) -> None:
            pass

    def sleep(seconds: float) -> None:
        clock["now"] += seconds

    monkeypatch.setattr(sampler, "Listing", List)
    monkeypatch.setattr(time, "thread_time", lambda: clock["cpu"])
    monkeypatch.setattr(time, "monotonic", lambda: clock["now"])
    monkeypatch.setattr(time, "sleep", sleep)
    looking = sampler.Sampler(selection.parse([]), core_share=share)
    looking.begin()
    assert len(received) == datagrams
    rounds = looking.totals()["rounds"]
    for interval in range(1, 101):
        looking.interval(1)
        used_s = cost_s * (len(received) - datagrams)
        assert used_s <= share * interval + 8 * cost_s  # it looks at the clock every 8 datagrams
    assert used_s > 0.9 * share * 100
    assert looking.totals()["rounds"] - rounds == (len(received) - datagrams) // datagrams
    assert received == list(range(datagrams, 0, -1)) * (len(received) // datagrams) + list(
        range(datagrams, datagrams - len(received) % datagrams, -1)
    )


# --- what goes wrong -----------------------------------------------------------------------------


def test_ctrl_c_and_a_closed_pipe_end_it() -> None:
    with spawn("live", "--interval", "200ms") as process:
        assert process.stdout is not None
        assert "local" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 130
        assert "Traceback" not in out + err
    with spawn("live", "--interval", "100ms") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        process.stdout = None
        assert process.wait(timeout=300) == 1
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"\x14\0\0\0\x02\0\0\0" + bytes(8) + b"\xfe\xff\xff\xff", "CONFIG_INET_TCP_DIAG"),
        (b"\x14\0\0\0\x02\0\0\0" + bytes(8) + b"\xf3\xff\xff\xff", "security module"),
        (b"\x50\0\0\0\x12\0\0\0" + bytes(8) + bytes(64), "damaged"),
        (b"\x02\0\0\0", "damaged"),
    ],
)
def test_a_kernel_that_does_not_answer_well_is_reported(
    answer: bytes, said: str, ackwise: Ackwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Netlink:
        def __init__(self, *_kind: int) -> None:
            pass

        def send(self, _request: bytes) -> None:
            pass

        def recv(self, _size: int) -> bytes:
            return answer

        def close(self) -> None:
            pass

    monkeypatch.setattr(socket, "socket", Netlink)
    done = ackwise("live", "--once")
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert said in done.err


def test_no_netlink_is_reported(ackwise: Ackwise, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_kind: int) -> None:
        raise PermissionError(1, "no")

    monkeypatch.setattr(socket, "socket", refuse)
    done = ackwise("live", "--once")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "filter of system calls" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dprot", "=", ":443"], 'did you mean "dport"?'),
        (["dport", "=", ":99999"], "too large"),
        (["dport", "=", ":nosuchservice"], "not a port"),
        (["dport", "="], "ends where a port should follow"),
        (["dst", "10.0.0.300"], "not an address"),
        (["state", "estab"], 'did you mean "established"?'),
        (["(", "sport", "=", "1"], "a ) is missing"),
        (["sport", "=", "1", "dport", "=", "2"], "put `and` before it"),
        (["not"], "ends where a condition should follow"),
        (["not"] * 500, "nested too deeply"),
        (["--pid", "4194304"], "no process"),
        (["--uid", "nobody-here"], "no user"),
        (["--openmetrics", "70000"], "1 to 65535"),
        (["--openmetrics", "9", "--json"], "cannot be combined"),
        (["--unit", "--json"], "cannot be combined"),
    ],
)
def test_mistakes_are_explained(words: list[str], said: str, ackwise: Ackwise) -> None:
    done = ackwise("live", "--once", *[w for w in words if w != "--once"])
    if "--unit" in words:
        done = ackwise("live", *words)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1


def test_a_long_filter_is_refused_before_the_kernel_sees_it(ackwise: Ackwise) -> None:
    words = " or ".join(f"sport = :{port}" for port in range(3000)).split()
    done = ackwise("live", "--once", *words)
    assert done.code == 2
    assert "too long" in done.err


# --- words and figures ---------------------------------------------------------------------------


def test_every_limit_has_its_words() -> None:
    assert set(engine.limits()) <= set(sentences.SAYINGS)
    for name in sentences.SAYINGS:
        for sends in (True, False):
            assert "{" not in sentences.remedy(name, sends=sends)


def test_a_sentence_says_what_an_engineer_would() -> None:
    row = {
        "peer": "10.0.0.2:443", "direction": "sending", "limit": "receive-window",
        "interval_us": 1_000_000, "limited_us": {"receive-window": 710_000, "link": 290_000},
        "acked_bytes": 530_000, "received_bytes": 0, "retransmissions": 0,
        "peer_window_max_bytes": 64_000, "send_buffer_bytes": 0, "unread_bytes": 0,
        "tcp_info": {"rtt_us": 120_000, "snd_wnd_bytes": 64_000},
    }  # fmt: skip
    assert lines.sentence(row) == (
        "10.0.0.2:443: 71% receive window (64 kB for 120 ms RTT allow 4.27 Mbit/s): raise "
        "net.ipv4.tcp_rmem's maximum there, or SO_RCVBUF in its application"
    )


# --- Prometheus, systemd, Grafana ----------------------------------------------------------------


def test_sums_are_exported_as_openmetrics(ackwise: Ackwise, tmp_path: Path) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    file = tmp_path / "ackwise.prom"
    words = ("--once", "--interval", "200ms", "--openmetrics", str(file))
    assert ackwise("live", *words).code == 0
    families = {f.name for f in parser.text_string_to_metric_families(file.read_text())}
    assert {"ackwise_sockets", "ackwise_looks", "ackwise_limited_seconds"} <= families


def test_http_is_answered_on_this_host_alone() -> None:
    pytest.importorskip("prometheus_client")

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with spawn("live", "--openmetrics", str(port)) as process:
        try:
            for _ in range(1500):
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
                        assert b"ackwise_sockets" in page.read()
                    break
                except OSError:
                    time.sleep(0.2)
            else:
                raise AssertionError("nobody listens")
            shown = subprocess.run(
                ["ss", "-tlnH", f"sport = :{port}"], capture_output=True, text=True, check=True
            ).stdout
            assert shown.split()[3] == f"127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=300)


def test_every_metric_of_the_dashboard_is_exported(ackwise: Ackwise) -> None:
    pytest.importorskip("prometheus_client")
    from ackwise.diagnosis.live.metrics import COUNTERS, Exporter

    totals = dict.fromkeys((*COUNTERS, "sockets", "cpu_s"), 0)
    sums = {"limited_us": {"link": 1}, "active": {"link": 1}}
    exported = Exporter(totals | sums).text().decode()
    said = ackwise("live", "--dashboard")
    named = set(re.findall(r"\backwise_\w+", said.out))
    assert len(named) >= 6
    for name in named:
        assert re.search(rf"^{name}(\{{| )", exported, re.MULTILINE), name
    limits = set(re.findall(r'limit!?="([^"]+)"', said.out.replace("\\", "")))
    assert limits <= set(sentences.SAYINGS)


def test_the_unit_needs_no_privilege(ackwise: Ackwise) -> None:
    unit = ackwise("live", "--unit").out
    assert "DynamicUser=yes" in unit
    assert "\nCapabilityBoundingSet=\n" in unit
    (start,) = re.findall(r"^ExecStart=/usr/local/bin/(ackwise .*)$", unit, re.MULTILINE)
    assert start.endswith("--openmetrics 127.0.0.1:9810")


@needs_systemd
def test_systemd_accepts_the_unit(ackwise: Ackwise, tmp_path: Path) -> None:
    file = tmp_path / "ackwise-live.service"
    file.write_text(ackwise("live", "--unit").out)
    assert complaints(file) == []


def test_the_shipped_files_are_in_the_package() -> None:
    folder = ROOT / "python/ackwise/diagnosis/live"
    assert json.loads((folder / "dashboard.json").read_text())["panels"]


@pytest.fixture
def metrics_port() -> Iterator[int]:
    """A port on which sums are served."""
    metrics = pytest.importorskip("ackwise.diagnosis.live.metrics")
    pytest.importorskip("prometheus_client")
    sums = dict.fromkeys((*metrics.COUNTERS, "sockets", "cpu_s"), 7)
    exporter = metrics.Exporter({**sums, "limited_us": {}, "active": {}})
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with exporter.serving("127.0.0.1", port):
        yield port


@pytest.mark.host
@pytest.mark.parametrize("sent", [b"", b"GET / HT"], ids=["idle", "half a request"])
def test_connections_that_others_keep_open_do_not_keep_a_scrape_out(
    metrics_port: int, sent: bytes
) -> None:
    before = threading.active_count()
    with ExitStack() as stack:
        for _ in range(100):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", metrics_port)))
            with suppress(OSError):  # the next ones have closed it
                one.sendall(sent)
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=10) as page:
            assert b"ackwise_sockets 7.0" in page.read()
        assert threading.active_count() - before <= 5


@pytest.mark.host
def test_a_connection_is_closed_after_its_time(metrics_port: int) -> None:
    with socket.create_connection(("127.0.0.1", metrics_port), timeout=20) as one:
        for _ in range(3):
            one.sendall(b"G")  # a byte now and then does not keep it open
        assert one.recv(1) == b""
