# SPDX-License-Identifier: MIT
"""Mutates files of every kind that a stranger may hand over, and runs the commands that read them:

    python commands.py SECONDS FOLDER [SEED]

A failure is an internal error, a panic, an exit code that is none, more than 10 s of processor
time, a wait without end, more than 300 MB beyond the process that was forked, or a file left in the
temporary folder. What failed is kept in FOLDER; the exit code is 1. As root, it works in a network
namespace of its own, where `gateway up` leaves the state that is mutated.
"""

import ctypes
import gzip
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from ackwise import captures, diagnosis, replays, sweeps  # noqa: F401  imported before the forks
from ackwise.cli import compare, deadlock, diagnose, main, replay, sweep  # noqa: F401
from ackwise.cli.gateway import queues  # noqa: F401
from ackwise.plans import load

SECONDS_MAX, KILOBYTES_MAX, BYTES_MAX = 10, 300_000, 2**20
WAITS_MAX = 6  # real time for each second of processor time: the host may be busy
_WRONG = re.compile(rb"internal error|panicked|Traceback|MemoryError")
_NUMBER = re.compile(rb"[0-9]+")
_NUMBERS = (b"0", b"-1", b"1e308", b"99999999999999999999", b"4294967296", b"0.5", b"nan", b'"x"')
_PIECES = (b"\0" * 8, b"\xff" * 8, b"[", b"{", b'"', b"../", b"\n", b"=", b"\x1b[2J", b"<a href=x>")
_ROOM = Path(captures.__path__[0])
_SPACE = """\
title = "two points"
source = "fuzzing"
links = ["adsl"]
workloads = ["bulk"]
policies = ["linux", "delayed"]
[[vary]]
key = "link.down.rate"
values = [RATES]
[[vary]]
key = "workload.duration"
values = ["50ms", "100ms"]
"""
_FEW, _MANY = ('"1mbit", "5mbit"', ", ".join(f'"{n}mbit"' for n in range(1, 13)))
_AXIS = "link.down.rate"
_CAPTURED = """\
title = "captured"
source = "fuzzing"
duration = "50ms"
[[flows]]
name = "f"
app = {{ kind = "replay", capture = "{}" }}
"""
_BUFFERS = ("--send-buffer", "16KiB", "--recv-buffer", "64KiB", "--json")
_INTERFACE = "v0"
_NEW_NETWORK = 0x40000000


# Seeds of each file, and the commands that read a file of its kind.
Kinds = dict[str, tuple[list[bytes], Callable[[Path], list[list[str]]]]]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """A variant, by one to eight changes."""
    made = bytearray(data)
    for _ in range(1 << chance.randrange(4)):
        at = chance.randrange(len(made) + 1)
        far = at + chance.choice((1, 2, 4, 16, 256))
        how = chance.randrange(6)
        if how == 0 and at < len(made):
            made[at] ^= 1 << chance.randrange(8)
        elif how == 1:
            made[at:far] = chance.randbytes(far - at)
        elif how == 2:
            made[at:at] = chance.choice(_PIECES)
        elif how == 3:
            del made[at : at if chance.random() < 0.5 else far]
        elif how == 4:
            made[at:at] = made[at:far] * chance.choice((1, 3, 100))
        elif numbers := list(_NUMBER.finditer(made)):
            one = chance.choice(numbers)
            made[one.start() : one.end()] = chance.choice(_NUMBERS)
    if chance.random() < 0.1:
        del made[chance.randrange(len(made) + 1) :]
    return bytes(made[:BYTES_MAX])


def pcapng(pcap: bytes) -> bytes:
    """A capture of microseconds, as pcapng."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        size = (len(body) + 12).to_bytes(4, "little")
        return kind.to_bytes(4, "little") + size + body + size

    made = block(0x0A0D0D0A, bytes.fromhex("4d3c2b1a01000000ffffffffffffffff"))
    made += block(1, pcap[20:22] + bytes(2) + pcap[16:20])
    at = 24
    while at < len(pcap):
        words = [int.from_bytes(pcap[at + i : at + i + 4], "little") for i in range(0, 16, 4)]
        ticks = (words[0] * 10**6 + words[1]).to_bytes(8, "little")
        head = bytes(4) + ticks[4:] + ticks[:4] + pcap[at + 8 : at + 16]
        made += block(6, head + pcap[at + 16 : at + 16 + words[2]])
        at += 16 + words[2]
    return made


def kinds(work: Path) -> Kinds:
    """Seeds of each kind of file, and the commands that read a file of it."""
    seeds = [path.read_bytes() for path in sorted(_ROOM.glob("*.pcap"))]

    def capture(file: Path) -> list[list[str]]:
        name = str(file)
        captured.write_text(_CAPTURED.format(name), encoding="utf-8")
        return [
            ["diagnose", name],
            ["diagnose", name, "--regret", "--json", "-"],
            ["diagnose", name, "--anonymize", "--report", str(work / "out")],
            *(["diagnose", name, "--table", rows, "--csv", "-"] for rows in ("halves", "spans")),
            ["diagnose", name, "--table", "connections", "--parquet", str(work / "out")],
            ["replay", name, "--policy", "linux", "--csv", "-"],
            ["replay", name, "--policy", "all", "--json", "-"],
            ["replay", name, "--policy", "a3", "--report", str(work / "out")],
            ["compare", "--link", "adsl", "--workload", str(captured), "--duration", "50ms"],
        ]

    def short(*words: str) -> list[list[str]]:
        command = ["compare", *words, "--runs", "1", "--duration", "50ms", "--jobs", "1"]
        kinds = (["--json", "-"], ["--csv", "-"], ["--parquet", out], ["--report", out])
        return [[*command, *kind] for kind in kinds]

    out = str(work / "out")
    linux = ("--policy", "linux")
    captured = work / "captured.toml"
    space = work / "space-of-many.toml"
    space.write_text(_SPACE.replace("RATES", _MANY), encoding="utf-8")
    folder = work / "sweep"
    if main.main(["sweep", "run", str(space), str(folder), "--quiet"]):
        raise SystemExit("the sweep that is to be mutated cannot be run")
    shutil.copytree(folder, work / "kept-sweep")
    part = min(folder.glob("cells/*/*.parquet"))
    plans = Path(load.__file__).parent

    def shown(_file: Path) -> list[list[str]]:
        show = ["sweep", "show", str(folder)]
        by = ["--by", _AXIS, "--by", "workload.duration"]
        resume = ["sweep", "run", str(space), str(folder), "--jobs", "1"]
        return [show, [*show, "--json", "-"], [*show, *by, "--report", out], resume]

    def of(where: Path) -> list[bytes]:
        found = [path.read_bytes() for path in sorted(where.glob("*.toml"))]
        return [data for data in found if tomllib.loads(data.decode())]

    return {
        **_state(work),
        "x.pcap": (seeds, capture),
        "x.pcapng": ([pcapng(data) for data in seeds], capture),
        "x.pcap.gz": ([gzip.compress(data) for data in seeds], capture),
        "x.pcap.zst": ([pa.compress(data, "zstd", asbytes=True) for data in seeds], capture),
        "link.toml": (
            of(plans / "links"),
            lambda f: [*short("--link", str(f), *linux), ["deadlock", "--link", str(f), *_BUFFERS]],
        ),
        "workload.toml": (
            of(plans / "workloads"),
            lambda f: short("--link", "adsl", "--workload", str(f), *linux),
        ),
        "plan.toml": (of(plans), lambda f: short("--plan", str(f))),
        "space.toml": (
            [_SPACE.replace("RATES", _FEW).encode()],
            lambda f: [["sweep", "run", str(f), str(work / "new")]],
        ),
        "sweep/sweep.json": ([(folder / "sweep.json").read_bytes()], shown),
        str(part.relative_to(work)): ([part.read_bytes()], shown),
    }


def _state(work: Path) -> Kinds:
    """The gateway's state, and what reads it."""
    if os.geteuid() or ctypes.CDLL(None).unshare(_NEW_NETWORK):
        print("commands: only root mutates the gateway's state")
        return {}
    for words in (f"link add {_INTERFACE} type veth peer name v1", f"link set {_INTERFACE} up"):
        subprocess.run(["ip", *words.split()], check=True)
    folder = work / "run"
    where = [_INTERFACE, "--run-dir", str(folder)]
    up = ["gateway", "up", *where, "--down", "50mbit", "--up", "5mbit"]
    if forked(lambda: main.main(up), work / "said")[0]:
        raise SystemExit((work / "said").read_text(encoding="utf-8"))
    (file,) = folder.glob("*.json")
    status = ["gateway", "status", *where]
    commands = [status, [*status, "--prometheus"], ["gateway", "down", *where], up]
    return {str(file.relative_to(work)): ([file.read_bytes()], lambda _: commands)}


def put(file: Path, data: bytes) -> Path:
    """The file written; a part has the hash of its bytes in its name, or it would not be read."""
    if file.suffix == ".parquet":
        file.unlink(missing_ok=True)
        file = file.with_name(f"{file.name[:12]}{sha256(data).hexdigest()[:16]}.parquet")
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(data)
    file.chmod(0o600)
    return file


def forked(do: Callable[[], int], said: Path) -> tuple[int, int]:
    """Exit code of a fork that does it, and the most memory it had, in kB."""
    child = os.fork()
    if child == 0:
        with said.open("wb") as out:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
        for ends in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(ends, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, SECONDS_MAX)
        signal.alarm(WAITS_MAX * SECONDS_MAX)
        code = 99
        try:
            code = do()
            sys.stdout.flush()
        finally:
            os._exit(code)
    _, status, used = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), used.ru_maxrss


def run(words: list[str], said: Path) -> str:
    """What is wrong with a command; empty: nothing."""
    # A fork begins with less than this process has: pages of mapped files are not handed on.
    _, before = forked(lambda: 0, said)
    code, peak = forked(lambda: main.main(words), said)
    if code not in (0, 1, 2):
        slow = {-signal.SIGPROF: f"{SECONDS_MAX} s", -signal.SIGALRM: "waits"}
        return slow.get(code, f"code {code}")
    if peak - before > KILOBYTES_MAX:
        return f"{peak - before} kB"
    found = _WRONG.search(said.read_bytes())
    return found[0].decode() if found else ""


def fuzz(seconds: float, kept: Path, seed: int) -> int:
    """The exit code."""
    chance = random.Random(seed)  # noqa: S311  the same inputs each time
    counts, wrong = Counter[str](), Counter[str]()
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        work, temporary = Path(made), Path(made) / "tmp"
        temporary.mkdir()
        os.environ["TMPDIR"] = str(temporary)
        files = kinds(work)
        for name, (seeds, commands) in files.items():
            file = put(work / name, seeds[0])
            for words in commands(file):
                if forked(partial(main.main, words), work / "said")[0]:
                    raise SystemExit(f"{words}: {(work / 'said').read_text(encoding='utf-8')}")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            name = chance.choice(list(files))
            seeds, commands = files[name]
            original = chance.choice(seeds)
            data = mutated(original, chance)
            file = put(work / name, data)
            for words in commands(file):
                problem = run(words, work / "said")
                counts[name.rpartition("/")[2].partition("-")[0]] += 1
                if left := list(temporary.iterdir()):
                    problem = problem or f"left {left[0].name}"
                    shutil.rmtree(temporary)
                    temporary.mkdir()
                if problem:
                    wrong[f"{words[0]} {name}: {problem}"] += 1
                    number = sum(wrong.values())
                    (kept / f"{number}-{Path(name).name}").write_bytes(data)
                    shutil.copy(work / "said", kept / f"{number}-said")
            file.unlink(missing_ok=True)
            put(work / name, original)
            for made_there in ("new", "sweep"):
                shutil.rmtree(work / made_there, ignore_errors=True)
            shutil.copytree(work / "kept-sweep", work / "sweep")
    print(f"commands: {sum(counts.values())} runs, {dict(counts)}")
    for what, count in wrong.items():
        print(f"{count} x {what}; see {kept}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(fuzz(float(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] else 1))
