# SPDX-License-Identifier: MIT
"""The cases: which programs rebuild a story, over which path, and what then limits the transfer."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ackwise_experiments.stories.told import STORIES

SERVER, CLIENT = "server", "client"
S, C = "10.99.0.1", "10.99.0.2"
S6, C6 = "fd99::1", "fd99::2"
NETWORK, NETWORK6 = "10.99.0.0/24", "fd99::/64"
HTTP, HTTP2, TLS, SSH, OTHER = 8080, 8082, 8443, 2222, 8090
IPERF, REDIS, POSTGRES, SMB = 5201, 6379, 5432, 445
MQTT, FTP, FTP_DATA, MYSQL, NBD, GIT = 1883, 2121, 2122, 3306, 10809, 9418
_MS = 10**6  # nanoseconds
_FAST_MBIT = 100.0
_WINDOW_SCALE = 3  # kind of the TCP option
_APP = f"{sys.executable} -m ackwise_experiments.stories.apps"

Channel = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """Shell commands at both ends; {folder} is a folder of the run, with `www` in it."""

    story: str
    number: int
    cause: str  # a key of truth.CAUSES
    serve: str
    ask: str
    port: int
    down: Channel
    up: Channel
    data_from: str = SERVER
    files: Mapping[str, str] = field(default_factory=dict)
    sysctls: Mapping[str, str] = field(default_factory=dict)
    prepare: Sequence[str] = ()  # shell commands before anything runs
    offload: bool = False
    ipv6: bool = False
    congestion: str = "cubic"
    mtu_bytes: int = 1500
    serve_also: str = ""
    must_say: str = ""  # a pattern for the text of the diagnosis
    listens: int = 0  # where the server listens first, if data has a port of its own

    @property
    def name(self) -> str:
        """STORY-NUMBER."""
        return f"{self.story}-{self.number}"

    @property
    def split(self) -> str:
        """That of its story."""
        return next(story.split for story in STORIES if story.name == self.story)


def way(rtt_ms: float, mbit: float = _FAST_MBIT, queue: int = 1000, **more: Any) -> Channel:
    """A direction, with half of the RTT."""
    return {
        "rate_bps": round(mbit * 1e6),
        "delay_ns": round(rtt_ms * _MS / 2),
        "queue_packets": queue,
        **more,
    }


def nginx(server: str = f"listen {HTTP};", more: str = "", location: str = "") -> dict[str, str]:
    """Its configuration. With sendfile, Linux does not count the pages of a file as buffered."""
    return {
        "nginx.conf": f"""
        daemon off; worker_processes 1; user root; pid {{folder}}/nginx.pid;
        error_log {{folder}}/nginx.log; events {{{{ }}}}
        http {{{{
            access_log off; {"" if "sendfile" in more else "sendfile on;"}
            keepalive_requests 100000; {more}
            client_max_body_size 0; client_body_temp_path {{folder}}/body;
            proxy_temp_path {{folder}}/proxy; fastcgi_temp_path {{folder}}/fastcgi;
            uwsgi_temp_path {{folder}}/uwsgi; scgi_temp_path {{folder}}/scgi;
            server {{{{ {server} root {{folder}}/www; location / {{{{ {location} }}}} }}}}
        }}}}
        """
    }


NGINX = "exec nginx -p {folder} -c {folder}/nginx.conf -e {folder}/nginx.log"
_SSHD = "exec /usr/sbin/sshd -D -e -f {folder}/sshd.conf"
_SSHD_FILES = {
    "sshd.conf": f"""
Port {SSH}
HostKey {{folder}}/host_key
PidFile {{folder}}/sshd.pid
AuthorizedKeysFile {{folder}}/key.pub
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
Subsystem sftp internal-sftp
"""
}
_SSHD_KEYS = (
    "ssh-keygen -q -t ed25519 -N '' -f {folder}/host_key",
    "ssh-keygen -q -t ed25519 -N '' -f {folder}/key",
    "mkdir -p /run/sshd",
)
_SSH_OPTIONS = (
    "-F none -i {folder}/key -o IdentitiesOnly=yes -o StrictHostKeyChecking=no "
    "-o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
)


def _curl(what: str = "large", seconds: float = 6, more: str = "", port: int = HTTP) -> str:
    return f"curl -s -o /dev/null -m {seconds} {more} http://{S}:{port}/{what}"


def _sftp(command: str, options: str, seconds: float = 7) -> str:
    batch = f"echo '{command}' | "
    return f"{batch}timeout {seconds} sftp -q {_SSH_OPTIONS} -P {SSH} {options} -b - root@{S}"


def _app(name: str, **values: Any) -> str:
    return f"{_APP} {name} " + " ".join(f"{key}={value}" for key, value in values.items())


def _iperf(more: str, seconds: float = 6) -> str:
    return f"iperf3 -c {S} -p {IPERF} -t {seconds} {more}"


_IPERF_SERVER = f"exec iperf3 -s -1 -p {IPERF}"


def _policer(mbit: float, burst_bytes: int) -> list[str]:
    return [
        f"qdisc replace dev v0 root tbf rate {round(mbit * 1e6)}bit burst {burst_bytes} limit 0"
    ]


def _away(start_ms: int, length_ms: int) -> list[dict[str, int]]:
    return [{"start_ns": start_ms * _MS, "length_ns": length_ms * _MS}]


def _web(rtt_ms: float, cause: str, number: int, story: str, ask: str, **values: Any) -> Case:
    return Case(
        story, number, cause, _app("web", port=HTTP, **values), ask, HTTP, way(rtt_ms), way(rtt_ms)
    )


def _download(
    story: str, number: int, cause: str, down: Channel, up: Channel, ask: str = "", **more: Any
) -> Case:
    """A large file of nginx."""
    return Case(
        story, number, cause, NGINX, ask or _curl(), HTTP, down, up,
        **{"files": nginx(), **more},
    )  # fmt: skip


def _write(story: str, number: int, cause: str, rtt_ms: float, **values: Any) -> Case:
    """Written by the client, read by a sink."""
    reply = {}
    if "confirmed" in values:
        reply = {"reply": values["confirmed"], "of_bytes": values["write_bytes"]}
    serve = _app("sink", port=OTHER, **reply)
    return Case(
        story, number, cause, serve, _app("write", host=S, port=OTHER, **{"seconds": 6, **values}),
        OTHER, way(rtt_ms), way(rtt_ms), CLIENT,
    )  # fmt: skip


_POSTGRES = (
    "chown -R postgres {folder}/db; "
    "exec setpriv --reuid postgres --regid postgres --clear-groups "
    f"$(ls -d /usr/lib/postgresql/*/bin)/postgres -D {{folder}}/db -p {POSTGRES} "
    "-k '' -c listen_addresses='*' -c ssl=off"
)
_POSTGRES_FOLDER = (
    "mkdir {folder}/db; chmod a+x {folder}; chown postgres {folder}/db; "
    "setpriv --reuid postgres --regid postgres --clear-groups "
    "$(ls -d /usr/lib/postgresql/*/bin)/initdb -A trust -N -D {folder}/db > /dev/null; "
    f"echo 'host all all {NETWORK} trust' >> {{folder}}/db/pg_hba.conf",
)


def _haproxy() -> dict[str, str]:
    return {
        "haproxy.cfg": f"""
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend web
    bind :{HTTP2} proto h2
    default_backend app
backend app
    server app 127.0.0.1:{OTHER}
"""
    }


def _tuning() -> list[Case]:
    """Cases of the stories that rules may be tuned with, and of none else."""
    nodelay = {"nodelay": 1}
    loops = "for i in $(seq {n}); do {what}; done"
    return [
        *(
            Case(
                "split-query", number, "ack-stall",
                _app("sink", port=OTHER, reply=reply, of_bytes=sum(map(int, parts.split("+")))),
                _app("ask", host=S, port=OTHER, seconds=5, parts=parts, answer_bytes=reply),
                OTHER, way(rtt_ms), way(rtt_ms), CLIENT,
            )
            for number, parts, reply, rtt_ms in (
                (1, "5+95", 500, 1), (2, "60+1100", 3000, 12), (3, "30+30+30", 60, 4),
            )
        ),
        *(
            Case(
                "ssh-channel-window", number, "application-window", _SSHD,
                f"timeout 7 dbclient -y -y -W {window} -i {{folder}}/dropbear_key -p {SSH} "
                f"root@{S} 'head -c 60000000 /dev/zero' > /dev/null",
                SSH, way(rtt_ms), way(rtt_ms), SERVER, _SSHD_FILES,
                prepare=(
                    *_SSHD_KEYS,
                    "dropbearkey -t ed25519 -f {folder}/dropbear_key | grep ^ssh- "
                    ">> {folder}/key.pub",
                ),
            )
            for number, window, rtt_ms in ((1, 65536, 60), (2, 24576, 30), (3, 200000, 120))
        ),
        *(
            Case(
                "http2-upload-window", number, "application-window",
                f"{_app('upload', port=OTHER)} & exec haproxy -db -f {{folder}}/haproxy.cfg",
                f"curl -s -m 7 -o /dev/null --http2-prior-knowledge -T {{folder}}/www/large "
                f"http://{S}:{HTTP2}/up",
                HTTP2, way(rtt_ms), way(rtt_ms), CLIENT, _haproxy(),
            )
            for number, rtt_ms in ((1, 50), (2, 110))
        ),
        Case(
            "http2-upload-window", 3, "application-window",
            f"exec nghttpd --no-tls -d {{folder}}/www {HTTP2}",
            f"timeout 7 nghttp -n -d {{folder}}/www/large http://{S}:{HTTP2}/large",
            HTTP2, way(70), way(70), CLIENT,
        ),
        *(
            Case(
                "fixed-send-buffer", number, "send-buffer", _app("sink", port=OTHER),
                f"timeout 6 socat -u {blocks} OPEN:/dev/zero "
                f"TCP:{S}:{OTHER},sndbuf={size},nodelay",
                OTHER, way(rtt_ms), way(rtt_ms), CLIENT,
            )
            for number, blocks, size, rtt_ms in (
                (1, "-b 8192", 30_000, 40), (2, "-b 32768", 100_000, 90),
            )
        ),
        _write("fixed-send-buffer", 3, "send-buffer", 30, sndbuf=40000, **nodelay),
        *(
            _download(
                "window-scale-stripped", number, "receive-window", way(rtt_ms),
                way(rtt_ms, stripped_options=[_WINDOW_SCALE]),
            )
            for number, rtt_ms in ((1, 30), (2, 110))
        ),
        Case(
            "window-scale-stripped", 3, "receive-window", _IPERF_SERVER, _iperf(""), IPERF,
            way(60, stripped_options=[_WINDOW_SCALE]), way(60), CLIENT,
        ),
        *(
            _download(
                "policed", number, "policer", way(rtt_ms, tc=_policer(mbit, burst)), way(rtt_ms),
                _curl(seconds=8),
            )
            for number, mbit, burst, rtt_ms in (
                (1, 10, 30_000, 30), (2, 4, 100_000, 60), (3, 20, 60_000, 15),
            )
        ),
        _download(
            "slow-reader", 1, "receiving-application", way(20), way(20),
            _curl(seconds=7, more="--limit-rate 300k"),
        ),
        _download(
            "slow-reader", 2, "receiving-application", way(40), way(40),
            f"timeout 7 curl -s http://{S}:{HTTP}/large | pv -qL 500k > /dev/null",
        ),
        Case(
            "slow-reader", 3, "receiving-application",
            _app("give", port=OTHER, total_bytes=40_000_000),
            _app("take", host=S, port=OTHER, read_bytes=16384, pause_ms=50, seconds=7),
            OTHER, way(10), way(10),
        ),
        _download(
            "slow-reader", 4, "receiving-application", way(60), way(60),
            f"timeout 8 wget -q -O /dev/null --limit-rate=400k http://{S}:{HTTP}/large",
        ),
        _download(
            "throttled-server", 1, "sending-application", way(40), way(40),
            files=nginx(location="limit_rate 500k;"),
        ),
        Case(
            "throttled-server", 2, "sending-application", _app("sink", port=OTHER),
            f"timeout 6 pv -qL 800k /dev/zero | socat -u - TCP:{S}:{OTHER}",
            OTHER, way(25), way(25), CLIENT,
        ),
        _write("throttled-server", 3, "sending-application", 20, write_bytes=8192, pause_ms=5),
        _write(
            "throttled-server", 4, "sending-application", 50, write_bytes=1200, pause_ms=3,
            **nodelay,
        ),
        _write(
            "throttled-server", 5, "sending-application", 80, write_bytes=20000, pause_ms=10,
            **nodelay,
        ),
        Case(
            "throttled-server", 6, "sending-application", _IPERF_SERVER, _iperf("-b 5M"), IPERF,
            way(35), way(35), CLIENT,
        ),
        _web(
            30, "sending-application", 1, "slow-answer", _curl("[1-12]", 8),
            head_bytes=200, body_bytes=20000, think_ms=400, **nodelay,
        ),
        _web(
            80, "sending-application", 2, "slow-answer", _curl("[1-5]", 8),
            head_bytes=200, body_bytes=150_000, think_ms=1200, **nodelay,
        ),
        _write("block-by-block", 1, "own-answers", 40, write_bytes=32768, confirmed=4, **nodelay),
        _write("block-by-block", 2, "own-answers", 20, write_bytes=512, confirmed=4, **nodelay),
        _write("block-by-block", 3, "own-answers", 70, write_bytes=65536, drained=1, **nodelay),
        *(
            _download(
                "upload-and-download", number, "return-path", way(rtt_ms, down),
                way(rtt_ms, up, queue),
                f"curl -s -m 9 -o /dev/null -T {{folder}}/www/large -H Expect: "
                f"http://{S}:{OTHER}/up & sleep 1; {_curl(seconds=7)}; kill $!",
                serve_also=_app("sink", port=OTHER),
            )
            for number, down, up, queue, rtt_ms in ((1, 20, 1, 60, 30), (2, 50, 2, 150, 50))
        ),
        *(
            _download(
                "narrow-uplink", number, "return-path", way(rtt_ms, down), way(rtt_ms, up, queue),
            )
            for number, down, up, queue, rtt_ms in ((1, 40, 0.15, 40, 30), (2, 25, 0.08, 20, 60))
        ),
        *(
            Case(
                "idle-keep-alive", number, "peer-requests",
                _app("sink", port=OTHER, reply=reply, of_bytes=300),
                _app(
                    "ask", host=S, port=OTHER, seconds=7, parts="300", answer_bytes=reply,
                    pause_ms=pause_ms, **nodelay,
                ),
                OTHER, way(rtt_ms), way(rtt_ms),
            )
            for number, reply, pause_ms, rtt_ms in ((1, 20_000, 800, 30), (2, 1000, 400, 60))
        ),
        Case(
            "reset", 1, "link", _app("give", port=OTHER, total_bytes=6_000_000, abort=1),
            _app("take", host=S, port=OTHER), OTHER, way(30, 8, 100), way(30),
            must_say=r"\b(reset|RST)\b",
        ),
        _download(
            "reset", 2, "link", way(50, 12, 150), way(50),
            f"timeout -s KILL 5 curl -s -o /dev/null http://{S}:{HTTP}/large",
            must_say=r"\b(reset|RST)\b",
        ),
        *(
            _download(
                "short-transfers", number, "start", way(rtt_ms), way(rtt_ms),
                loops.format(n=count, what=_curl(what)),
            )
            for number, what, count, rtt_ms in ((1, "middle", 12, 90), (2, "small", 20, 150))
        ),
        Case(
            "parallel", 1, "link", _IPERF_SERVER, _iperf("-R -P 4"), IPERF,
            way(30, 20, 200), way(30),
        ),
        _download(
            "parallel", 2, "link", way(60, 12, 150), way(60),
            " & ".join([_curl(seconds=7)] * 3) + "; wait",
        ),
        *(
            _download(
                "ecn", number, cause, way(rtt_ms, mbit, 500, marked_packets=marked), way(rtt_ms),
                _curl(seconds=8), sysctls={"net.ipv4.tcp_ecn": "1"},
            )
            for number, cause, mbit, marked, rtt_ms in (
                (1, "link", 10, 25, 30), (2, "congestion-window", 30, 4, 80),
                (3, "link", 5, 30, 60),
            )
        ),
        _download(
            "clamped-mss", 1, "link", way(30, 6, 150), way(30, clamped_mss_bytes=536),
        ),
        _download(
            "clamped-mss", 2, "receive-window", way(70, clamped_mss_bytes=1200),
            way(70, clamped_mss_bytes=1200, stripped_options=[_WINDOW_SCALE]),
        ),
        _download(
            "clamped-mss", 3, "link", way(40, 15, 200, clamped_mss_bytes=1000), way(40),
        ),
        _download("offload", 1, "link", way(30, 30, 300), way(30), offload=True),
        Case(
            "offload", 2, "send-buffer",
            _app("give", port=OTHER, total_bytes=60_000_000, sndbuf=60_000, **nodelay),
            _app("take", host=S, port=OTHER, seconds=6), OTHER, way(50), way(50), offload=True,
        ),
        _download(
            "offload", 3, "sending-application", way(25), way(25), offload=True,
            files=nginx(location="limit_rate 900k;"),
        ),
        _download(
            "offload", 4, "congestion-window", way(60, loss_ppm=3000), way(60), offload=True,
        ),
        *(
            Case(
                "expect-continue", number, "sending-application", _app("upload", port=HTTP),
                loops.format(
                    n=4,
                    what=_curl(
                        "up",
                        more=f"-H 'Expect: 100-continue' --data-binary @{{folder}}/www/{body}",
                    ),
                ),
                HTTP, way(rtt_ms), way(rtt_ms), CLIENT,
            )
            for number, body, rtt_ms in ((1, "small", 20), (2, "middle", 60))
        ),
    ]  # fmt: skip


def _judging() -> list[Case]:
    """Cases of the stories that no rule was tuned with."""
    loops = "for i in $(seq {n}); do {what}; done"
    http_server = (
        f"exec {sys.executable} -m http.server {HTTP} --protocol HTTP/1.1 "
        "--directory {folder}/www"
    )
    return [
        _web(
            2, "ack-stall", 1, "split-response", _curl("[1-100]", 5), head_bytes=120, body_bytes=300
        ),
        _web(
            18, "ack-stall", 2, "split-response", _curl("[1-80]", 5),
            head_bytes=250, body_bytes=1200,
        ),
        Case(
            "split-response", 3, "ack-stall", http_server, _curl("tiny?[1-400]", 6), HTTP,
            way(8), way(8),
        ),
        *(
            Case(
                "sftp-few-requests", number, "peer-requests" if get else "own-answers", _SSHD,
                _sftp(
                    "get {folder}/www/large /dev/null" if get
                    else "put {folder}/www/large /dev/null",
                    options,
                ),
                SSH, way(rtt_ms), way(rtt_ms), SERVER if get else CLIENT, _SSHD_FILES,
                prepare=_SSHD_KEYS,
            )
            for number, get, options, rtt_ms in (
                (1, True, "-R 1 -B 32768", 40), (2, True, "-R 3 -B 16384", 90),
                (3, False, "-R 1 -B 32768", 60),
            )
        ),
        *(
            Case(
                "http2-download-window", number, "application-window",
                f"exec nghttpd --no-tls -d {{folder}}/www {HTTP2}", ask,
                HTTP2, way(rtt_ms), way(rtt_ms),
            )
            for number, ask, rtt_ms in (
                (1, f"timeout 7 nghttp -n -w 16 -W 16 http://{S}:{HTTP2}/large", 60),
                (2, f"timeout 7 h2load -c 1 -n 1 -w 15 -W 16 http://{S}:{HTTP2}/large", 30),
                (3, f"timeout 8 nghttp -n -w 18 -W 18 http://{S}:{HTTP2}/large", 140),
            )
        ),
        _download(
            "fixed-receive-buffer", 1, "receive-window", way(40), way(40),
            f"(printf 'GET /large HTTP/1.0\\r\\n\\r\\n'; sleep 6) | timeout 6 socat - "
            f"TCP:{S}:{HTTP},rcvbuf=32768 > /dev/null",
        ),
        *(
            Case(
                "fixed-receive-buffer", number, "receive-window",
                _app("give", port=OTHER, total_bytes=60_000_000),
                _app("take", host=S, port=OTHER, rcvbuf=size, seconds=6), OTHER,
                way(rtt_ms), way(rtt_ms),
            )
            for number, size, rtt_ms in ((2, 100_000, 80), (3, 16_384, 15))
        ),
        *(
            Case(
                "embedded-window", number, "receive-window",
                _app("give", port=OTHER, total_bytes=60_000_000),
                _app("take", host=S, port=OTHER, clamp=size, seconds=5), OTHER,
                way(rtt_ms), way(rtt_ms),
            )
            for number, size, rtt_ms in ((1, 2920, 10), (2, 1400, 20), (3, 5840, 40))
        ),
        _download("deep-queue", 1, "link", way(30, 5, 400), way(30), _curl(seconds=8)),
        Case(
            "deep-queue", 2, "link", _app("sink", port=OTHER),
            f"curl -s -m 8 -o /dev/null -T {{folder}}/www/large -H Expect: http://{S}:{OTHER}/up",
            OTHER, way(20), way(20, 1.5, 120), CLIENT,
        ),
        _download(
            "random-loss", 1, "congestion-window", way(40, loss_ppm=10_000), way(40),
        ),
        _download(
            "random-loss", 2, "congestion-window", way(90, loss_ppm=2000), way(90),
            _curl(seconds=9),
        ),
        Case(
            "random-loss", 3, "congestion-window", _IPERF_SERVER, _iperf("", 8), IPERF,
            way(60), way(60, loss_ppm=5000), CLIENT,
        ),
        Case(
            "bbr", 1, "link", _IPERF_SERVER, _iperf("-R", 7), IPERF,
            way(40, 12, 300, loss_ppm=8000), way(40), congestion="bbr",
        ),
        Case(
            "bbr", 2, "link", _IPERF_SERVER, _iperf("", 7), IPERF,
            way(70), way(70, 6, 400), CLIENT, congestion="bbr",
        ),
        Case(
            "stalling-disk", 1, "receiving-application",
            _app("give", port=OTHER, total_bytes=60_000_000),
            _app("take", host=S, port=OTHER, pause_ms=1500, every_bytes=1_000_000, seconds=9),
            OTHER, way(20), way(20),
        ),
        _download(
            "stalling-disk", 2, "receiving-application", way(30), way(30),
            f"timeout 7 curl -s http://{S}:{HTTP}/large | {_app('unpack', seconds=8, work=25)}",
        ),
        Case(
            "one-request-at-a-time", 1, "peer-requests",
            f"exec redis-server --port {REDIS} --save '' --protected-mode no --dir {{folder}}",
            f"redis-benchmark -h {S} -p {REDIS} -c 1 -n 90 -d 100 -t get > /dev/null", REDIS,
            way(50), way(50),
        ),
        Case(
            "one-request-at-a-time", 2, "own-answers",
            f"exec redis-server --port {REDIS} --save '' --protected-mode no --dir {{folder}}",
            f"redis-benchmark -h {S} -p {REDIS} -c 1 -n 60 -d 4000 -t set > /dev/null", REDIS,
            way(80), way(80), CLIENT,
        ),
        Case(
            "one-request-at-a-time", 3, "peer-requests",
            _POSTGRES,
            f"for i in $(seq 100); do echo \"select repeat('x', 200 + $i);\"; done | "
            f"psql -q -h {S} -p {POSTGRES} -U postgres postgres > /dev/null", POSTGRES,
            way(45), way(45),
            prepare=_POSTGRES_FOLDER,
        ),
        _download(
            "mtu-black-hole", 1, "path-mtu", way(30, mtu_bytes=1400), way(30), _curl(seconds=8)
        ),
        _download(
            "mtu-black-hole", 2, "path-mtu", way(60, mtu_bytes=1460), way(60), _curl(seconds=6),
            sysctls={"net.ipv4.tcp_mtu_probing": "1"},
        ),
        *(
            _download(
                "lossy-uplink", number, "link", way(rtt_ms, mbit, queue),
                way(rtt_ms, loss_ppm=ppm), _curl(seconds=8),
            )
            for number, mbit, queue, ppm, rtt_ms in (
                (1, 10, 150, 300_000, 40), (2, 6, 100, 600_000, 30),
            )
        ),
        *(
            Case(
                "lost-tail", number, "timeout",
                _app("sink", port=OTHER, reply=reply, of_bytes=200),
                _app("ask", host=S, port=OTHER, seconds=7, parts="200", answer_bytes=reply),
                OTHER, way(rtt_ms, lost_pushes=2), way(rtt_ms),
                sysctls={"net.ipv4.tcp_early_retrans": "0"},
            )
            for number, reply, rtt_ms in ((1, 3000, 20), (2, 900, 40))
        ),
        Case(
            "idle-then-closed", 1, "sending-application",
            _app("give", port=OTHER, total_bytes=300_000, idle_ms=5000),
            _app("take", host=S, port=OTHER), OTHER, way(30), way(30),
        ),
        _download(
            "idle-then-closed", 2, "sending-application", way(50), way(50),
            f"(printf 'GET /middle HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n'; sleep 7) | "
            f"socat - TCP:{S}:{HTTP} > /dev/null",
            files=nginx(more="keepalive_timeout 5;"),
        ),
        *(
            Case(
                "tls-each-time", number, "start", NGINX,
                loops.format(
                    n=count, what=f"curl -sk -o /dev/null -m 5 https://{S}:{TLS}/{what}"
                ),
                TLS, way(rtt_ms), way(rtt_ms),
                files=nginx(
                    f"listen {TLS} ssl; ssl_certificate {{folder}}/cert; "
                    "ssl_certificate_key {folder}/cert_key;"
                ),
                prepare=(
                    "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=a -days 9 "
                    "-keyout {folder}/cert_key -out {folder}/cert 2> /dev/null",
                ),
            )
            for number, what, count, rtt_ms in ((1, "small", 14, 70), (2, "small", 8, 180))
        ),
        *(
            Case(
                "rsync-ssh", number, cause, _SSHD,
                f"timeout 8 rsync -e \"ssh {_SSH_OPTIONS} -p {SSH}\" {more} "
                f"{{folder}}/www/large root@{S}:{{folder}}/copy",
                SSH, way(rtt_ms), up, CLIENT, _SSHD_FILES, prepare=_SSHD_KEYS,
            )
            for number, cause, more, rtt_ms, up in (
                (1, "link", "--whole-file", 30, way(30, 8, 150)),
                (2, "sending-application", "--whole-file --bwlimit=400", 50, way(50)),
            )
        ),
        *(
            _download(
                "other-mtu", number, "link", way(rtt_ms, mbit, queue), way(rtt_ms), mtu_bytes=mtu
            )
            for number, mtu, mbit, queue, rtt_ms in ((1, 900, 12, 200, 30), (2, 9000, 30, 60, 25))
        ),
        Case(
            "ipv6", 1, "link", NGINX, f"curl -s -o /dev/null -m 7 'http://[{S6}]:{HTTP}/large'",
            HTTP, way(40, 10, 150), way(40), files=nginx(f"listen [::]:{HTTP};"), ipv6=True,
            mtu_bytes=1480,
        ),
        Case(
            "ipv6", 2, "receive-window", NGINX,
            "(printf 'GET /large HTTP/1.0\\r\\n\\r\\n'; sleep 6) | timeout 6 socat - "
            f"'TCP6:[{S6}]:{HTTP},rcvbuf=50000' > /dev/null",
            HTTP, way(60), way(60), files=nginx(f"listen [::]:{HTTP};"), ipv6=True,
        ),
        *(
            Case(
                "smb", number, cause,
                "exec smbd -F --no-process-group -s {folder}/smb.conf -l {folder}",
                f"timeout 8 smbclient //{S}/share -p {SMB} -N -c 'get large /dev/null'", SMB,
                down, up,
                files={
                    "smb.conf": f"""[global]
server min protocol = SMB2
map to guest = Bad User
guest account = root
smb ports = {SMB}
disable spoolss = yes
load printers = no
bind interfaces only = no
server role = standalone server
private dir = {{folder}}
lock directory = {{folder}}
state directory = {{folder}}
cache directory = {{folder}}
pid directory = {{folder}}
ncalrpc dir = {{folder}}
[share]
path = {{folder}}/www
guest ok = yes
"""
                },
            )
            for number, cause, down, up in (
                (1, "link", way(30, 10, 200), way(30)),
                (2, "congestion-window", way(50, loss_ppm=4000), way(50)),
            )
        ),
        *(
            _download(
                "handover", number, "timeout", way(rtt_ms, mbit, 100, outages=_away(*away)),
                way(rtt_ms, outages=_away(*away)), _curl(seconds=9),
            )
            for number, mbit, away, rtt_ms in ((1, 10, (1500, 4500), 30), (2, 20, (1000, 5000), 60))
        ),
    ]  # fmt: skip


_FTPD = {
    "vsftpd.conf": f"""
listen=YES
listen_port={FTP}
background=NO
anonymous_enable=YES
no_anon_password=YES
anon_root={{folder}}/ftp
pasv_min_port={FTP_DATA}
pasv_max_port={FTP_DATA}
seccomp_sandbox=NO
secure_chroot_dir={{folder}}/empty
vsftpd_log_file={{folder}}/vsftpd.log
"""
}


def _ftp(number: int, cause: str, commands: str, down: Channel, up: Channel) -> Case:
    return Case(
        "ftp-buffers", number, cause, "exec vsftpd {folder}/vsftpd.conf",
        f"timeout 9 lftp -c 'set net:max-retries 1; set ftp:ssl-allow no; {commands}'",
        FTP_DATA, down, up, SERVER, _FTPD,
        prepare=("mkdir {folder}/ftp {folder}/empty; ln {folder}/www/large {folder}/ftp/large",),
        listens=FTP,
    )  # fmt: skip


_MARIADB = (
    "chown -R mysql {folder}/db; exec mariadbd --no-defaults --user=mysql --datadir={folder}/db "
    f"--port={MYSQL} --bind-address={S} --socket={{folder}}/db/socket --skip-grant-tables "
    "--skip-networking=0 --innodb-flush-log-at-trx-commit=0 --max-allowed-packet=16M"
)
_MARIADB_FOLDER = (
    "mkdir {folder}/db; chown mysql {folder}/db; mariadb-install-db --no-defaults --user=mysql "
    "--datadir={folder}/db --skip-test-db > /dev/null",
)
_WEBSOCKETS = {
    "server.py": f"""
import asyncio, sys, websockets
async def give(peer):
    while True:
        await peer.send(bytes(int(sys.argv[1])))
async def main():
    async with websockets.serve(give, "{S}", {OTHER}, compression=None):
        await asyncio.Future()
asyncio.run(main())
""",
    "client.py": f"""
import asyncio, sys, time, websockets
async def main():
    async with websockets.connect("ws://{S}:{OTHER}", compression=None) as peer:
        async for message in peer:
            time.sleep(float(sys.argv[1]))
asyncio.run(main())
""",
}
_DEBIAN_PYTHON = "/usr/bin/python3 -I"  # it has the packages of Debian


def _second_draw() -> list[Case]:
    """Cases of the second draw, which no rule was tuned with."""
    loops = "for i in $(seq {n}); do {what}; done"
    nodelay = {"nodelay": 1}
    return [
        *(
            Case(
                "mqtt-inflight", number, "own-answers",
                "exec mosquitto -c {folder}/mosquitto.conf",
                f"yes $(printf %0{size}d 0) | timeout 7 mosquitto_pub -h {S} -p {MQTT} -V 5 "
                "-t t -q 1 -l --nodelay",
                MQTT, way(rtt_ms), way(rtt_ms), CLIENT,
                {
                    "mosquitto.conf": f"listener {MQTT}\nallow_anonymous true\n"
                    f"max_inflight_messages {inflight}\nset_tcp_nodelay true\n"
                },
            )
            for number, size, inflight, rtt_ms in ((1, 3000, 10, 50), (2, 500, 20, 100))
        ),
        *(
            _ftp(
                number, cause, f"{buffer}open -p {FTP} {S}; cat large > /dev/null", down, up,
            )
            for number, cause, buffer, down, up in (
                (1, "receive-window", "set net:socket-buffer 20000; ", way(35), way(35)),
                (2, "receive-window", "set net:socket-buffer 60000; ", way(90), way(90)),
                (3, "link", "", way(40, 9, 150), way(40)),
            )
        ),
        *(
            Case(
                "row-by-row", number, "own-answers", _MARIADB,
                "(echo 'create table mysql.t (a longblob) engine=aria;'; for i in $(seq 2000); do "  # noqa: S608
                f"echo \"insert into mysql.t values ('$(printf %0{size}d $i)');\"; done) | "
                f"timeout 8 mariadb --no-defaults -h {S} -P {MYSQL}",
                MYSQL, way(rtt_ms), way(rtt_ms), CLIENT, prepare=_MARIADB_FOLDER,
            )
            for number, size, rtt_ms in ((1, 20_000, 40), (2, 900, 90))
        ),
        *(
            Case(
                "cursor-batches", number, "peer-requests", _POSTGRES,
                f"timeout 8 psql -qAt -v FETCH_COUNT={rows} -h {S} -p {POSTGRES} -U postgres "  # noqa: S608
                f"-c \"select repeat('x', {size}) from generate_series(1, 100000)\" postgres "
                "> /dev/null",
                POSTGRES, way(rtt_ms), way(rtt_ms), prepare=_POSTGRES_FOLDER,
            )
            for number, rows, size, rtt_ms in ((1, 10, 400, 30), (2, 100, 1000, 80))
        ),
        *(
            Case(
                "token-stream", number, "sending-application",
                _app(
                    "give", port=OTHER, total_bytes=10_000_000, write_bytes=size,
                    pause_ms=pause_ms, **nodelay,
                ),
                _app("take", host=S, port=OTHER, seconds=7), OTHER, way(rtt_ms), way(rtt_ms),
            )
            for number, size, pause_ms, rtt_ms in ((1, 90, 25, 60), (2, 300, 60, 25))
        ),
        _download(
            "interference", 1, "timeout",
            way(20, 20, 200, outages=[_away(at, 400)[0] for at in range(700, 9000, 700)]),
            way(20, outages=[_away(at, 400)[0] for at in range(700, 9000, 700)]),
            _curl(seconds=8),
        ),
        Case(
            "interference", 2, "timeout", _app("sink", port=OTHER),
            _app("write", host=S, port=OTHER, seconds=8), OTHER,
            way(12, outages=[_away(at, 350)[0] for at in range(900, 9000, 900)]),
            way(12, 15, 200, outages=[_away(at, 350)[0] for at in range(900, 9000, 900)]),
            CLIENT,
        ),
        _download(
            "one-way-firewall", 1, "timeout", way(30, 10, 200),
            way(30, outages=_away(1500, 60_000)), _curl(seconds=9),
        ),
        Case(
            "one-way-firewall", 2, "timeout", _app("sink", port=OTHER),
            "timeout 9 "
            + _app("write", host=S, port=OTHER, seconds=9, write_bytes=4000, pause_ms=20),
            OTHER,
            way(50, outages=_away(1000, 60_000)), way(50), CLIENT,
        ),
        _download(
            "reordered", 1, "link",
            way(30, 12, 200, late_ppm=20_000, late_ns=8 * _MS), way(30),
        ),
        _download(
            "reordered", 2, "link",
            way(50, 20, 300, late_ppm=200_000, late_ns=3 * _MS), way(50),
        ),
        *(
            _download(
                "video-segments", number, "peer-requests", way(rtt_ms, mbit, 200), way(rtt_ms),
                _curl("middle?[1-30]", 9, f"--rate {rate}/m"),
            )
            for number, mbit, rtt_ms, rate in ((1, 40, 30, 60), (2, 25, 70, 90))
        ),
        *(
            Case(
                "block-device", number, cause,
                f"exec nbdkit -f -p {NBD} {plugin}", f"timeout 8 nbdcopy --connections=1 "
                f"--threads=1 --requests={requests} --request-size={size} {order}",
                NBD, way(rtt_ms), way(rtt_ms), SERVER if cause == "peer-requests" else CLIENT,
            )
            for number, cause, plugin, requests, size, order, rtt_ms in (
                (1, "peer-requests", "pattern 1G", 1, 65536, f"nbd://{S} null:", 40),
                (2, "peer-requests", "pattern 1G", 3, 32768, f"nbd://{S} null:", 100),
                (3, "own-answers", "memory 1G", 1, 131072,
                 f"--no-extents --allocated -S 0 {{folder}}/www/large nbd://{S}", 70),
            )
        ),
        *(
            Case(
                "slow-consumer", number, "receiving-application",
                f"exec {_DEBIAN_PYTHON} {{folder}}/server.py {size}",
                f"timeout 8 {_DEBIAN_PYTHON} {{folder}}/client.py {pause_s}",
                OTHER, way(rtt_ms), way(rtt_ms), files=_WEBSOCKETS,
            )
            for number, size, pause_s, rtt_ms in ((1, 20_000, 0.03, 30), (2, 3000, 0.008, 80))
        ),
        *(
            _download(
                "slow-upstream", number, "sending-application", way(rtt_ms), way(rtt_ms),
                _curl(seconds=7),
                files={
                    **nginx(location=f"proxy_pass http://127.0.0.1:{OTHER};"),
                    "backend.sh": "read line; printf 'HTTP/1.0 200 OK\\r\\n\\r\\n'; "
                    f"exec pv -qL {rate} /dev/zero",
                },
                serve_also=f"exec socat TCP-LISTEN:{OTHER},fork,reuseaddr "
                "EXEC:'sh {folder}/backend.sh'",
            )
            for number, rate, rtt_ms in ((1, "400k", 35), (2, "1500k", 15))
        ),
        *(
            Case(
                "compressing-sender", number, "sending-application", _app("sink", port=OTHER),
                f"timeout 7 sh -c '{command} < /dev/urandom | socat -u - TCP:{S}:{OTHER}'",
                OTHER, way(rtt_ms), way(rtt_ms), CLIENT,
            )
            for number, command, rtt_ms in ((1, "xz -6 -c -T1", 20), (2, "bzip2 -9 -c", 8))
        ),
        *(
            _web(
                rtt_ms, "ack-stall", number, "last-chunk", _curl("[1-300]", 6),
                head_bytes=head, body_bytes=body,
            )
            for number, head, body, rtt_ms in ((1, 4000, 5, 4), (2, 9500, 60, 14))
        ),
        _download(
            "satellite", 1, "start", way(600, 20, 400), way(600, 5),
            loops.format(n=3, what=_curl("middle", 9)),
        ),
        Case(
            "satellite", 2, "start", _app("give", port=OTHER, total_bytes=400_000),
            loops.format(n=2, what=_app("take", host=S, port=OTHER, seconds=9)), OTHER,
            way(520, 50, 1000), way(520),
        ),
        *(
            Case(
                "git-clone", number, cause,
                f"exec git daemon --reuseaddr --export-all --base-path={{folder}} --port={GIT} "
                "{folder}",
                f"timeout 8 git clone -q git://{S}:{GIT}/repository {{folder}}/clone",
                GIT, down, way(rtt_ms),
                prepare=(
                    "git init -q {folder}/repository; cd {folder}/repository; "
                    "head -c 30000000 /dev/urandom > data; git add data; "
                    "git -c user.name=a -c user.email=a@a -c commit.gpgsign=false commit -qm a",
                ),
            )
            for number, cause, rtt_ms, down in (
                (1, "link", 30, way(30, 8, 150)),
                (2, "congestion-window", 60, way(60, loss_ppm=4000)),
            )
        ),
        _download(
            "aggregated", 1, "link", way(20, 15, 250, burst_ns=12 * _MS), way(20), _curl(seconds=7)
        ),
        _download(
            "aggregated", 2, "link", way(30, 8, 200, burst_ns=6 * _MS),
            way(30, burst_ns=20 * _MS), _curl(seconds=7),
        ),
    ]  # fmt: skip


def _third_draw() -> list[Case]:
    """Cases of the third draw, which no rule was tuned with."""
    return [
        *(
            Case(
                "chunked-upload", number, "own-answers", _app("upload", port=OTHER),
                f"timeout 8 curl -s -o /dev/null -H Expect: -T {{folder}}/www/{chunk} "
                f"'http://{S}:{OTHER}/up?[1-2000]'",
                OTHER, way(rtt_ms), way(rtt_ms), CLIENT,
            )
            for number, chunk, rtt_ms in ((1, "middle", 60), (2, "middle", 150), (3, "small", 35))
        ),
        *(
            _download(
                "range-reads", number, "peer-requests", way(rtt_ms), way(rtt_ms),
                "timeout 8 " + _curl("large?[1-2000]", 8, f"-r {first}-{first + size - 1}"),
            )
            for number, first, size, rtt_ms in ((1, 0, 131_072, 50), (2, 5_000_000, 32_768, 120))
        ),
        Case(
            "scanning-proxy", 1, "sending-application",
            _app("give", port=OTHER, total_bytes=9_000_000, write_bytes=700, pause_ms=400),
            _app("take", host=S, port=OTHER, seconds=9), OTHER, way(20), way(20),
        ),
        _download(
            "scanning-proxy", 2, "sending-application", way(45), way(45), _curl(seconds=9),
            files={
                **nginx(location=f"proxy_pass http://127.0.0.1:{OTHER};"),
                "backend.sh": "read line; printf 'HTTP/1.0 200 OK\\r\\n\\r\\n'; "
                "while head -c 5000 /dev/zero; do sleep 0.7; done",
            },
            serve_also=f"exec socat TCP-LISTEN:{OTHER},fork,reuseaddr "
            "EXEC:'sh {folder}/backend.sh'",
        ),
        Case(
            "tunnel-mtu", 1, "path-mtu", _app("sink", port=OTHER),
            f"curl -s -m 8 -o /dev/null -T {{folder}}/www/large -H Expect: http://{S}:{OTHER}/up",
            OTHER, way(40), way(40, mtu_bytes=1380), CLIENT,
        ),
        Case(
            "tunnel-mtu", 2, "path-mtu", _SSHD,
            f"timeout 8 rsync -e \"ssh {_SSH_OPTIONS} -p {SSH}\" --whole-file "
            f"{{folder}}/www/large root@{S}:{{folder}}/copy",
            SSH, way(25), way(25, mtu_bytes=1430), CLIENT, _SSHD_FILES, prepare=_SSHD_KEYS,
        ),
        Case(
            "policed-port", 1, "policer", _IPERF_SERVER, _iperf("", 8), IPERF,
            way(20), way(20, tc=_policer(15, 40_000)), CLIENT,
        ),
        Case(
            "policed-port", 2, "policer", _app("sink", port=OTHER),
            f"curl -s -m 9 -o /dev/null -T {{folder}}/www/large -H Expect: http://{S}:{OTHER}/up",
            OTHER, way(45), way(45, tc=_policer(8, 80_000)), CLIENT,
        ),
        Case(
            "both-ways", 1, "link", _IPERF_SERVER, _iperf("--bidir", 8), IPERF,
            way(30, 12, 150), way(30, 12, 150),
        ),
        Case(
            "both-ways", 2, "link",
            f"exec socat TCP-LISTEN:{OTHER},fork,reuseaddr /dev/zero!!/dev/null",
            f"timeout 8 socat /dev/zero!!/dev/null TCP:{S}:{OTHER}", OTHER,
            way(40, 8, 120), way(40, 16, 200),
        ),
        Case(
            "network-boot", 1, "receive-window", _app("give", port=OTHER, total_bytes=60_000_000),
            _app("take", host=S, port=OTHER, rcvbuf=5000, seconds=7), OTHER, way(10), way(10),
        ),
        _download(
            "network-boot", 2, "receive-window", way(25), way(25),
            "(printf 'GET /large HTTP/1.0\\r\\n\\r\\n'; sleep 7) | timeout 7 socat - "
            f"'TCP:{S}:{HTTP},rcvbuf=9000' > /dev/null",
        ),
        _write("camera", 1, "sending-application", 30, write_bytes=9000, pause_ms=40),
        _write("camera", 2, "sending-application", 12, write_bytes=2600, pause_ms=16, nodelay=1),
        _in_parts("header-then-body", 1, "180+9000", 60, 6, 2),
        _in_parts("header-then-body", 2, "150+2500", 60, 6, 10),
        *(
            Case(
                "power-save", number, "peer-requests",
                _app("web", port=HTTP, head_bytes=200, body_bytes=body, nodelay=1),
                "timeout 8 " + _curl("[1-2000]", 8), HTTP, way(4, 20),
                way(4, 20, burst_ns=beacon_ms * _MS),
            )
            for number, body, beacon_ms in ((1, 1200, 102), (2, 30_000, 205))
        ),
    ]  # fmt: skip


def _in_parts(
    story: str, number: int, parts: str, answer_bytes: int, seconds: int, rtt_ms: float
) -> Case:
    """Requests that are written in several parts, each answered."""
    whole = sum(map(int, parts.split("+")))
    return Case(
        story, number, "ack-stall",
        _app("sink", port=OTHER, reply=answer_bytes, of_bytes=whole),
        _app("ask", host=S, port=OTHER, seconds=seconds, parts=parts, answer_bytes=answer_bytes),
        OTHER, way(rtt_ms), way(rtt_ms), CLIENT,
    )  # fmt: skip


def _fourth_draw() -> list[Case]:
    """Cases of the fourth draw, which no rule was tuned with."""
    upload = f"-o /dev/null -T {{folder}}/www/large -H Expect: http://{S}:{OTHER}/up"
    rsync = (
        f'rsync -e "ssh {_SSH_OPTIONS} -p {SSH}" --whole-file {{folder}}/www/large '
        f"root@{S}:{{folder}}/copy"
    )
    twice = [*_away(1500, 2000), *_away(5500, 2500)]
    return [
        *(
            Case(
                "fixed-window-copy", number, "receive-window", _POSTGRES,
                f"timeout 8 psql -q -h {S} -p {POSTGRES} -U postgres -c \"copy (select "  # noqa: S608
                "repeat('x', 700) from generate_series(1, 1000000)) to stdout\" postgres "
                "> /dev/null",
                POSTGRES, way(rtt_ms), way(rtt_ms), prepare=_POSTGRES_FOLDER,
                sysctls={"net.ipv4.tcp_rmem": f"4096 {size} {size}"},
            )
            for number, size, rtt_ms in ((1, 40_000, 60), (2, 131_072, 110))
        ),
        *(
            Case(
                "slow-log-server", number, "receiving-application",
                f"exec socat -u TCP-LISTEN:{OTHER},reuseaddr,fork EXEC:'sh {{folder}}/take.sh'",
                "yes '<14>1 2026-11-27T21:00:00Z host app - - a message of the usual length' | "
                f"timeout 8 socat -u - TCP:{S}:{OTHER}",
                OTHER, way(rtt_ms), way(rtt_ms), CLIENT, {"take.sh": take},
            )
            for number, take, rtt_ms in (
                (1, "exec pv -qL 150k > /dev/null", 30),
                (2, "while test $(head -c 250000 | wc -c) -gt 0; do sleep 0.7; done", 60),
            )
        ),
        _in_parts("bonus-round-trip", 1, "350+600", 250, 7, 10),
        _in_parts("bonus-round-trip", 2, "280+900", 250, 7, 35),
        *(
            _download(
                "heartbeat", number, "sending-application", way(rtt_ms), way(rtt_ms),
                _curl(seconds=9, more="-N"),
                files={
                    **nginx(
                        location=f"proxy_pass http://127.0.0.1:{OTHER}; proxy_buffering off;"
                    ),
                    "backend.sh": "read line; printf 'HTTP/1.0 200 OK\\r\\n\\r\\n'; "
                    f"while head -c {size} /dev/zero; do sleep {pause_s}; done",
                },
                serve_also=f"exec socat TCP-LISTEN:{OTHER},fork,reuseaddr "
                "EXEC:'sh {folder}/backend.sh'",
            )
            for number, size, pause_s, rtt_ms in ((1, 14, 0.5, 25), (2, 4000, 1.5, 120))
        ),
        *(
            Case(
                "capped-upload", number, "sending-application", _app("sink", port=OTHER),
                f"curl -s -m 8 --limit-rate {rate} {upload}", OTHER, way(rtt_ms), way(rtt_ms),
                CLIENT,
            )
            for number, rate, rtt_ms in ((1, "300k", 25), (2, "90k", 80))
        ),
        Case(
            "uplink-bloat", 1, "link", _app("sink", port=OTHER), f"curl -s -m 10 {upload}",
            OTHER, way(40), way(40, 2, 500), CLIENT,
        ),
        Case(
            "uplink-bloat", 2, "link", _SSHD, f"timeout 10 {rsync}",
            SSH, way(30), way(30, 4, 600), CLIENT, _SSHD_FILES, prepare=_SSHD_KEYS,
        ),
        Case(
            "ingress-policer", 1, "policer", _IPERF_SERVER, _iperf("-R", 9), IPERF,
            way(25, tc=_policer(5, 15_000)), way(25),
        ),
        _download(
            "ingress-policer", 2, "policer", way(50, tc=_policer(12, 32_000)), way(50),
            _curl(seconds=9),
        ),
        _download(
            "cross-border", 1, "congestion-window", way(209, loss_ppm=13_000), way(209),
            _curl(seconds=12),
        ),
        Case(
            "cross-border", 2, "congestion-window",
            f"exec nghttpd --no-tls -d {{folder}}/www {HTTP2}",
            f"timeout 10 nghttp -n -w 24 -W 24 http://{S}:{HTTP2}/large",
            HTTP2, way(120, loss_ppm=20_000), way(120),
        ),
        *(
            Case(
                "distant-calls", number, "own-answers",
                f"exec nghttpd --no-tls -d {{folder}}/www {HTTP2}",
                f"timeout 8 h2load -c 1 -m 1 -n 5000 -d {{folder}}/call http://{S}:{HTTP2}/tiny",
                HTTP2, way(rtt_ms), way(rtt_ms), CLIENT,
                prepare=(f"head -c {size} /dev/zero > {{folder}}/call",),
            )
            for number, size, rtt_ms in ((1, 20_000, 70), (2, 1200, 150))
        ),
        Case(
            "labile-wifi", 1, "timeout", _app("sink", port=OTHER), f"curl -s -m 10 {upload}",
            OTHER, way(15, outages=twice), way(15, 20, 200, outages=twice), CLIENT,
        ),
        Case(
            "labile-wifi", 2, "timeout", _SSHD, f"timeout 10 {rsync}",
            SSH, way(45, outages=twice), way(45, 10, 150, outages=twice), CLIENT, _SSHD_FILES,
            prepare=_SSHD_KEYS,
        ),
        Case(
            "distant-ssh", 1, "application-window", _SSHD,
            f"timeout 11 ssh {_SSH_OPTIONS} -p {SSH} root@{S} 'head -c 90000000 /dev/zero' "
            "> /dev/null",
            SSH, way(250), way(250), SERVER, _SSHD_FILES, prepare=_SSHD_KEYS,
        ),
        Case(
            "distant-ssh", 2, "application-window", _SSHD,
            f"timeout 12 ssh {_SSH_OPTIONS} -p {SSH} root@{S} 'cat > /dev/null' < /dev/zero",
            SSH, way(330), way(330), CLIENT, _SSHD_FILES, prepare=_SSHD_KEYS,
        ),
    ]  # fmt: skip


def cases() -> list[Case]:
    """All of them, in the order of the stories."""
    places = {story.name: place for place, story in enumerate(STORIES)}
    return sorted(
        [*_tuning(), *_judging(), *_second_draw(), *_third_draw(), *_fourth_draw()],
        key=lambda one: (places[one.story], one.number),
    )
