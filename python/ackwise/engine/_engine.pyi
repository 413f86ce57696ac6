# SPDX-License-Identifier: MIT
"""The compiled module of crates/python: JSON texts in and out."""

from collections.abc import Callable, Sequence

__version__: str
CAPTURE_START_NS: int
AT_HOST_NS: int

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
def add_policy(file: str, name: str) -> None:
    """Adds `aw_policy_NAME` of a shared object to the policies, until the process ends."""

def reasons() -> str: ...
def scenario_keys() -> str:
    """The keys of a scenario by table (`scenario`, `channel`, `sender` ..., `app.KIND`): a list of
    name, kind, text, default (absent: required), choices (absent: not a choice), low and high
    (absent: those of the kind)."""

def classes() -> str:
    """Every struct of a scenario and of a result: a list of name, text, table (as scenario_keys has
    it; absent: of a result) and keys."""

def simulate(scenario_json: str, cancel: Cancel | None = None) -> str: ...
def simulate_captured(scenario_json: str) -> tuple[str, tuple[bytes, bytes, bytes]]: ...
def replay(path: str, options_json: str, cancel: Cancel | None = None) -> str: ...
def diagnose(
    paths: Sequence[str],
    threads: int = 1,
    cancel: Cancel | None = None,
    progress: Callable[[int, int | None], None] | None = None,
    kept: int = 0,
) -> Diagnosis:
    """The connections of all captures together; `-` is the standard input. The result is the same
    for any number of threads. `progress` is told the bytes read and their number; `kept` raises the
    number of connections that are kept."""

def arrivals(path: str, most: int) -> str: ...
def tcp_packets(
    path: str,
) -> list[tuple[int, str, int, str, int, int, int, int, int, int, tuple[tuple[int, int], ...]]]:
    """The TCP packets of a capture in order: time_ns since 1970, source, source_port, destination,
    destination_port, ip_ident, flags, seq, ack, payload_bytes, sack_blocks; numbers as on the wire.
    Other packets are skipped. Raises CaptureError, which names the byte, for a file that is damaged
    or ends inside a packet."""

def measure_run(
    paths: Sequence[str],
    server: str,
    first_port: int,
    wanted_json: str,
    groups_of: Sequence[int],
    groups: int,
) -> str:
    """What the client's and the server's capture show of a run (crates/diagnose, both_ends)."""

def follow_flow(
    paths: Sequence[str],
    server: str,
    first_port: int,
    flow: int,
    down: bool,
    trace_first_ns: int,
    duration_ns: int,
) -> (
    tuple[
        int,
        int,
        list[tuple[int, bool, int, int, int, tuple[tuple[int, int], ...], bool, bool]],
    ]
    | None
): ...
def lost_packets(paths: Sequence[str], server: str, first_port: int) -> str: ...
def quantiles(values: Sequence[int]) -> str: ...
def deadlock(pair_json: str) -> str: ...
def diagnosis_series(paths: Sequence[str], wanted_json: str) -> str: ...
def replay_arrivals(arrivals_json: str, options_json: str) -> str: ...
def optimum(times_ns: Sequence[int], rho_permille: int, unit_ns: int) -> str: ...
def limits() -> list[str]: ...

class Diagnosis:
    def notes(self) -> str: ...
    def __len__(self) -> int: ...
    def __getitem__(self, at: int) -> str: ...
    def outline(self, at: int) -> str: ...

class Sockets:
    """The table of crates/sockets."""

    def __init__(
        self, uid: int | None = None, inodes: set[int] | None = None, bytecode: bytes = b""
    ) -> None: ...
    def take(self, datagram: bytes, time_us: int) -> int | None: ...
    def end_round(self) -> None: ...
    def needs_all(self) -> bool: ...
    def choose_inodes(self, inodes: set[int]) -> None: ...
    def rows(self, most: int) -> str: ...
    def totals(self) -> str: ...
