# SPDX-License-Identifier: MIT
"""The compiled module of crates/python: JSON texts in and out."""

from collections.abc import Sequence

__version__: str
CAPTURE_START_NS: int

class EngineError(ValueError): ...
class CaptureError(ValueError): ...
class Cancelled(Exception): ...

class Cancel:
    def __init__(self) -> None: ...
    def cancel(self) -> None: ...

class RandomStream:
    """The simulator's random numbers: one stream for each user, named by the run's seed and the
    user's place."""

    def __init__(self, seed: int, place: int) -> None: ...
    def unit(self) -> float:
        """Uniform on [0, 1)."""

    def up_to(self, most: int) -> int:
        """Uniform on [0, most]; draws nothing when that is 0."""

    def exponential(self, mean: float) -> float:
        """Exponential with this mean."""

def pareto(u: float, mean: float, most: float) -> int:
    """The size at quantile `u` of the simulator's bounded Pareto distribution."""

def policies() -> str: ...
def reasons() -> str: ...
def rails() -> str: ...
def scenario_keys() -> str:
    """The keys of a scenario by table (`scenario`, `channel`, `sender` ..., `app.KIND`): a list of
    name, kind, text, default (absent: required), choices (absent: not a choice), low and high
    (absent: those of the kind)."""

def simulate(scenario_json: str, cancel: Cancel | None = None) -> str: ...
def simulate_captured(scenario_json: str) -> tuple[str, tuple[bytes, bytes, bytes]]: ...
def replay(path: str, options_json: str, cancel: Cancel | None = None) -> str: ...
def arrivals(path: str, most: int) -> str: ...
def tcp_packets(
    path: str,
) -> list[tuple[int, str, int, str, int, int, int, int, int, int, tuple[tuple[int, int], ...]]]:
    """The TCP packets of a capture in order: time_ns since 1970, source, source_port, destination,
    destination_port, ip_ident, flags, seq, ack, payload_bytes, sack_blocks; numbers as on the wire.
    Other packets are skipped. Raises CaptureError, which names the byte, for a file that is damaged
    or ends inside a packet."""

def deadlock(pair_json: str) -> str: ...
def replay_arrivals(arrivals_json: str, options_json: str) -> str: ...
def optimum(times_ns: Sequence[int], rho_permille: int, unit_ns: int) -> str: ...
