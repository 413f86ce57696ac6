# SPDX-License-Identifier: MIT
"""Sums over all sockets in OpenMetrics format. Needs Prometheus' client, the extra
`ackwise[metrics]`.

No metric is labelled by connection: the number of labels would be unbounded.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from types import ModuleType
from typing import Any

from ackwise import engine
from ackwise.errors import RunError
from ackwise.host import files

try:
    import prometheus_client
    from prometheus_client import core as _core
    from prometheus_client.openmetrics import exposition as _exposition
except ImportError:
    prometheus_client = None  # type: ignore[assignment]

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

    def serving(self, address: str, port: int) -> AbstractContextManager[object]:
        """Answers HTTP requests during the block; RunError when the port cannot be opened."""
        stack = ExitStack()
        try:
            server, _thread = prometheus_client.start_http_server(
                port, addr=address, registry=self._registry
            )
        except OSError as problem:
            raise RunError(
                f"--openmetrics: cannot listen on {address} port {port}: {files.reason(problem)}"
            ) from None
        stack.callback(server.server_close)
        stack.callback(server.shutdown)
        return stack


def _client() -> ModuleType:
    if prometheus_client is None:
        raise RunError(
            "--openmetrics: needs the Python package prometheus-client; "
            "`pip install 'ackwise[metrics]'`"
        )
    return prometheus_client
