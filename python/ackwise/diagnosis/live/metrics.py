# SPDX-License-Identifier: MIT
"""Sums over all sockets in OpenMetrics format. Needs Prometheus' client, the extra
`ackwise[metrics]`.

No metric is labelled by connection: the number of labels would be unbounded.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from socket import AF_INET, AF_INET6, SHUT_RDWR, AddressFamily, socket
from socketserver import ThreadingMixIn
from threading import Thread
from types import ModuleType
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from ackwise import engine
from ackwise.errors import RunError
from ackwise.host import files

try:
    import prometheus_client
    from prometheus_client import core as _core
    from prometheus_client.openmetrics import exposition as _exposition
except ImportError:
    prometheus_client = None  # type: ignore[assignment]

CONNECTIONS_MAX = 4  # fewer than the tasks that the systemd unit allows
_LIMIT_S = 2.0
_PAUSE_S = 0.1
COUNTERS = {
    "acked_bytes": "payload that peers have acknowledged",
    "received_bytes": "payload received",
    "retransmissions": "segments sent again",
    "looks": "looks at a socket",
    "rounds": "complete lists of sockets",
}


class Exporter:
    """Holds the latest sums. HTTP threads answer requests, so they must not read a table that is
    being changed."""

    def __init__(self, totals: Mapping[str, Any]) -> None:
        _client()
        self.totals = totals
        self._registry = prometheus_client.CollectorRegistry()
        self._registry.register(self)

    def collect(self) -> "Iterator[_core.Metric]":
        """Every metric, in the form that Prometheus' client collects."""
        totals = self.totals
        limited = _core.CounterMetricFamily(
            "ackwise_limited_seconds", "time of sockets by limit", labels=["limit"]
        )
        active = _core.GaugeMetricFamily(
            "ackwise_active_sockets", "active sockets by their main limit", labels=["limit"]
        )
        for limit in engine.limits():
            limited.add_metric([limit], totals["limited_us"].get(limit, 0) / 1e6)
            active.add_metric([limit], totals["active"].get(limit, 0))
        yield limited
        yield active
        yield _core.GaugeMetricFamily("ackwise_sockets", "TCP sockets", value=totals["sockets"])
        for name, text in COUNTERS.items():
            yield _core.CounterMetricFamily(f"ackwise_{name}", text, value=totals[name])
        yield _core.CounterMetricFamily(
            "ackwise_cpu_seconds", "processor time of ackwise itself", value=totals["cpu_s"]
        )

    def text(self) -> bytes:
        """The metrics as OpenMetrics text."""
        shown: bytes = _exposition.generate_latest(self._registry)  # type: ignore[no-untyped-call]
        return shown

    @contextmanager
    def serving(self, address: str, port: int) -> Iterator[None]:
        """Answers HTTP requests during the block; RunError when the port cannot be opened."""
        app = prometheus_client.make_wsgi_app(self._registry)
        kind: type[_Server] = type("Server", (_Server,), {"address_family": _family(address)})
        try:
            server = make_server(address, port, app, kind, _Handler)
        except OSError as problem:
            raise RunError(
                f"--openmetrics: cannot listen on {address} port {port}: {files.reason(problem)}"
            ) from None
        with server:
            Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield
            finally:
                server.shutdown()


class _Server(ThreadingMixIn, WSGIServer):
    """Whoever can reach the port can keep few connections open, none for long, and cannot keep
    others out: a new connection closes the oldest."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, *given: Any) -> None:
        self._open: dict[socket, float] = {}  # when each came, oldest first
        super().__init__(*given)

    def get_request(self) -> tuple[socket, Any]:
        """The next connection."""
        try:
            came, peer = super().get_request()
        except OSError:
            time.sleep(_PAUSE_S)  # no descriptor is left, and the connection still waits
            raise
        came.settimeout(_LIMIT_S)
        for oldest in list(self._open)[: len(self._open) + 1 - CONNECTIONS_MAX]:
            self._end(oldest)
        self._open[came] = time.monotonic()
        return came, peer

    def service_actions(self) -> None:
        """Ends connections that took too long; called twice a second."""
        late = time.monotonic() - _LIMIT_S
        for one in [one for one, at in list(self._open.items()) if at < late]:
            self._end(one)

    def _end(self, one: socket) -> None:
        self._open.pop(one, None)
        with suppress(OSError):  # its thread has closed it
            one.shutdown(SHUT_RDWR)

    def close_request(self, request: Any) -> None:
        """Forgets a connection that was answered or ended."""
        self._open.pop(request, None)
        super().close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing about connections that end early."""


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *given: Any) -> None:
        pass


def _family(address: str) -> AddressFamily:
    return AF_INET6 if ":" in address else AF_INET


def _client() -> ModuleType:
    if prometheus_client is None:
        raise RunError(
            "--openmetrics: needs the Python package prometheus-client; "
            "`pip install 'ackwise[metrics]'`"
        )
    return prometheus_client
