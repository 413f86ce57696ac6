# SPDX-License-Identifier: MIT
"""What goes wrong in everyday use, as one table: each mistake gets one line that names its cause
and the remedy, and an exit code; nothing is left behind and nothing is lost."""

import os
import shlex
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import spaces
from conftest import ROOT, full_device, lab_kernel
from pcaps import pcap, steady_transfer
from processes import wait_until

from ackwise.host import needs
from ackwise.host.leftovers import is_abandoned
from ackwise.lab import build

# One short run, and one that lasts until it is interrupted.
RUN = "ackwise compare --link lan-10m --policy linux --runs 1 --duration 200ms --quiet"
MODEL = "ackwise gateway model --down 9mbit --up 1mbit --sweep"
LONG = "ackwise compare --plan all-links --runs 100 --allow-long --quiet"
# `plain` runs a command without rights, `no-user` as a user that the host does not know.
SHELL = """
if [ "$(id -u)" = 0 ]; then
    plain() { setpriv --bounding-set -all --inh-caps -all -- "$@"; }
else
    plain() { "$@"; }
fi
no_user() { unshare --user --map-user=12345 --map-group=12345 -- "$@"; }
# Sends a signal once the command has started its work in threads.
signalled() {
    signal=$1; shift
    env --default-signal=INT "$@" &
    while [ "$(ls /proc/$!/task | wc -l)" -lt 2 ]; do sleep 0.1; done
    kill -s "$signal" $!
    wait $!
}
no_network() { unshare --user --map-root-user --net -- "$@"; }
# dir becomes a full file system, for this command alone
no_space() {
    unshare --user --map-root-user --mount -- sh -c '
        mount -t tmpfs -o size=64k none dir && head -c 65536 /dev/zero > dir/rest
        exec "$@"' sh "$@"
}
"""


@dataclass(frozen=True)
class Mistake:
    """A shell line, its exit code, and words of its message. `makes`: files that it writes;
    `needs`: what it cannot be tried without."""

    name: str
    line: str
    code: int
    says: tuple[str, ...]
    makes: tuple[str, ...] = ()
    needs: str = ""


MISTAKES = [
    # --- typos -----------------------------------------------------------------------------------
    Mistake("command", "ackwise compre", 2, ('unknown command "compre"; did you mean compare?',)),
    Mistake("verb", "ackwise gateway sttus", 2, ("did you mean status?",)),
    Mistake("option", "ackwise compare --lnk adsl", 2, ("did you mean --link?",)),
    Mistake(
        "option misspelt", "ackwise lab run demo --lnk adsl", 2,
        ("unknown option --lnk; did you mean --link?",),
    ),
    Mistake(
        "option of no command", "ackwise --workloda bulk", 2, ("--workload of `ackwise compare`",)
    ),
    Mistake("link", "ackwise compare --link adls", 2, ('--link: "adls"', 'did you mean "adsl"?')),
    Mistake("policy", f"{RUN} --policy lnux", 2, ('"lnux"', 'did you mean "linux"?')),
    Mistake("parameter", f"{RUN} --policy delayed:segmens=3", 2, ('did you mean "segments"?',)),
    Mistake("key", "ackwise compare --link key.toml", 2, ("key.toml: titel", '"title"')),
    Mistake("twin of plan and link", "ackwise twin demo --link adsl", 2,
            ("--link: cannot be combined with PLAN; a plan names links and workloads itself",)),
    Mistake("twin without link", "ackwise twin --workload bulk", 2,
            ("--workload: needs --link; give PLAN, or --link",)),
    Mistake("twin without a kernel", "ackwise twin --link adsl --cache $PWD/no-cache", 1,
            ("run `ackwise lab build`",)),
    Mistake("tolerance without a unit", "ackwise twin --link adsl --tolerance 100", 2,
            ("--tolerance",)),
    Mistake("varied key", "ackwise sweep run space.toml cells", 2,
            ('space.toml: vary[0].key: "link.down.rat"', 'did you mean "link.down.rate"?')),
    Mistake("choice", "ackwise sweep run space.toml x --on linx", 2,
            ("--on", "give one of simulator, linux")),
    # --- units -----------------------------------------------------------------------------------
    Mistake("no unit", f"{RUN} --duration 5", 2, ('--duration: "5" has no unit', '"20ms"')),
    Mistake("unknown unit", f"{RUN} --duration 5h", 2, ('unknown unit "h"', "units of a time")),
    Mistake("negative", "ackwise record x.pcap --rate -1mbit", 2, ("--rate", "is negative")),
    # --- contradictions --------------------------------------------------------------------------
    Mistake("plan and link", f"{RUN} --plan demo", 2, ("--link: cannot be combined with --plan",)),
    Mistake("socket filter as captures", "ackwise diagnose dport = :443", 2,
            ('"dport" does not exist; give a pcap or pcapng file',)),
    Mistake("capture as a socket filter", "ackwise live good.pcap", 2,
            ("`ackwise diagnose good.pcap` reads it",)),
    Mistake("compressed capture as a socket filter", "ackwise live a.pcap.gz", 2,
            ("`ackwise diagnose a.pcap.gz` reads it",)),
    Mistake("replay with runs", "ackwise replay good.pcap --runs 2",
            2, ("unknown option --runs; did you mean --runs of `ackwise compare`?",)),
    Mistake("one file twice", f"{RUN} --json x --csv x", 2, ("--csv: x: --json writes there too",)),
    Mistake(
        "result over its plan", "ackwise compare --plan plan.toml --json ./plan.toml", 2,
        ("--json: ./plan.toml: --plan reads it; give another file name",),
    ),
    Mistake("lab's option", f"{RUN} --keep x", 2, ("did you mean --keep of `ackwise lab run`?",)),
    # --- rights ----------------------------------------------------------------------------------
    Mistake("rights to record", "plain ackwise record x.pcap", 2, ("needs root (lacking CAP_",),
            needs="record"),
    Mistake("rights for queues", "plain ackwise gateway up lo --down 9mbit --up 1mbit", 2,
            ("gateway: needs root (lacking CAP_NET_ADMIN); run it with sudo",)),
    Mistake("rights to go down", "plain ackwise gateway down lo", 2, ("needs root", "sudo")),
    Mistake("rights on the host", "plain ackwise reproduce separation --on host", 2,
            ("needs root", "CAP_SYS_ADMIN"), needs="host"),
    Mistake("rights in the lab", "plain ackwise lab run stretch", 1,
            ("lab: root without CAP_CHOWN", "run it as an ordinary user"), needs="kernel and root"),
    # --- outputs ---------------------------------------------------------------------------------
    Mistake("full device", f"{RUN} --json full", 1,
            ("ackwise: full: cannot be written: No space left on device; free some space",),
            needs="device"),
    Mistake("folder on a full device", "no_space ackwise sweep run good-space.toml dir/x", 1,
            ("dir/x/sweep.json: cannot be written: No space left on device",), needs="unshare"),
    Mistake("full output", f"{RUN} > /dev/full", 1, ("standard output: No space left on device",)),
    Mistake("full output, help", "ackwise --help > /dev/full", 1, ("standard output: No space",)),
    Mistake("full JSON output", f"{RUN} --json > /dev/full", 1, ("standard output: No space",)),
    Mistake("closed output", "ackwise policy list >&-", 1, ("standard output: Bad file desc",)),
    Mistake("full error output", "ackwise compre 2> /dev/full", 2, ()),
    Mistake("closed pipe", "(ackwise compare --list; echo code $? >&2) | true", 0, ("code 1",)),
    Mistake("FIFO", f"wc -l < fifo & {RUN} --csv fifo; code=$?; wait; exit $code", 0, ("2",)),
    Mistake("symbolic link", f"{RUN} --json link.json", 0, ("linux",), makes=("dir/real.json",)),
    Mistake("dangling link", f"{RUN} --json new.json", 0, ("linux",), makes=("dir/new.json",)),
    Mistake("directory", f"{RUN} --json dir", 2, ("--json: dir: is a directory; give a file na",)),
    Mistake("no directory", f"{RUN} --json no/x", 2, ("there is no directory", "create it first")),
    Mistake("locked directory", f"plain {RUN} --csv locked/x", 2, ("locked is not writable",)),
    Mistake("protected file", f"plain {RUN} --csv kept.csv", 2, ("kept.csv: is write-protected",)),
    Mistake("record over a capture", "ackwise record good.pcap", 2,
            ("good.pcap: is a capture already; `ackwise replay good.pcap`", "--force")),
    Mistake("record over a file", "ackwise record key.toml", 2, ("key.toml: exists", "--force")),
    Mistake("result over a capture", f"{RUN} --report good.pcap", 2, ("good.pcap: is a capture",)),
    Mistake("figure's suffix", f"{MODEL} --figure x.gif", 2,
            ("--figure: x.gif: give a file name that ends in .svg, .pdf or .png",)),
    Mistake("figure in PNG", f"{MODEL} --figure x.png", 0, ("thinning",), makes=("x.png",)),
    Mistake("folder of no sweep", "ackwise sweep show dir", 2,
            ("dir/sweep.json: does not exist; give the folder of a sweep",)),
    Mistake("folder of other things", "ackwise sweep run good-space.toml dir", 2,
            ("dir: is not empty and holds no sweep; give a new folder",)),
    Mistake("sweep in a locked directory", "plain ackwise sweep run good-space.toml locked/x", 2,
            ("locked is not writable",)),
    Mistake("folder is a file", "ackwise reproduce dynamic --figures kept.csv", 2,
            ("--figures: kept.csv", "is not a directory")),
    # --- interruptions ---------------------------------------------------------------------------
    Mistake("Ctrl-C", f"signalled INT {LONG}", 130, ("ackwise: interrupted",)),
    Mistake("kill", f"signalled TERM {LONG}", 130, ("ackwise: interrupted",)),
    # --- huge values -----------------------------------------------------------------------------
    Mistake("huge seed", f"{RUN} --seed 99999999999999999999999999",
            2, ("is too large; give 0 to",)),
    Mistake("many runs", f"{RUN} --runs 1000000", 2, ("--runs", "is too large; give 1 to 1000")),
    Mistake("huge rate", "ackwise gateway model --down 9999999999gbit --up 1mbit", 2,
            ("--down", "is out of range")),
    Mistake("huge plan", "ackwise compare --plan all-links --runs 1000 --quiet",
            2, ("--allow-long",)),
    # --- empty and wrong files -------------------------------------------------------------------
    Mistake("empty plan", "ackwise compare --plan empty", 2, ("file names end in .toml",)),
    Mistake("empty link", "ackwise compare --link empty.toml",
            2, ("empty.toml: title: is missing",)),
    Mistake("wrong TOML", "ackwise compare --link wrong.toml", 2, ("wrong.toml: invalid TOML",)),
    Mistake("not text", "ackwise compare --link binary.toml", 2, ("binary.toml",)),
    Mistake("empty capture", "ackwise replay empty",
            2, ("empty: byte 0: the file is em",)),
    Mistake("text as capture", "ackwise replay kept.csv",
            2, ("expected pcap or pcapng",)),
    Mistake("packed capture", "ackwise replay good.pcap.xz",
            2, ("compressed with xz", "unxz good.pcap.xz")),
    Mistake("another format", "ackwise replay old.snoop",
            2, ("format of snoop", "editcap -F pcapng old.snoop converted.pcapng")),
    Mistake("truncated header", "ackwise replay head.pcap", 2, ("inside its header",)),
    Mistake("truncated capture", "ackwise replay cut.pcap --policy every", 0,
            ("cut.pcap: byte ", "(packet ", "the packets before it are analysed")),
    # --- characters, terminals, places -----------------------------------------------------------
    Mistake("Unicode name", "ackwise compare --link Zürich→Genève.toml",
            2, ("Zürich→Genève.toml",)),
    Mistake("Unicode output", f"{RUN} --csv Größe.csv", 0, ("linux",), makes=("Größe.csv",)),
    Mistake("name that is no text", "ackwise compare --link $(printf 'a\\377.toml')",
            2, (".toml",)),
    Mistake("ASCII only", f"PYTHONIOENCODING=ascii {RUN} --policy a3 --runs 2", 0, ("a3", "\\xb1")),
    Mistake("locale C", f"LC_ALL=C PYTHONCOERCECLOCALE=0 PYTHONUTF8=0 {RUN}", 0, ("linux",)),
    Mistake("unknown locale", f"LC_ALL=xx_YY.UTF-8 LANG=xx {RUN}", 0, ("linux",)),
    Mistake("dumb terminal", f"script -qec 'TERM=dumb {RUN}' /dev/null", 0, ("linux",),
            needs="script"),
    Mistake("narrow terminal", f"script -qec 'COLUMNS=40 {RUN}' /dev/null", 0, ("linux",),
            needs="script"),
    Mistake("narrow help", "COLUMNS=40 ackwise compare --help", 0, ("--plan NAME|FILE",)),
    Mistake("other directory", f"cd / && {RUN}", 0, ("linux",)),
    Mistake("no input", f"{RUN} <&-", 0, ("linux",)),
    Mistake("no HOME", f"env -u HOME {RUN}", 0, ("linux",)),
    Mistake("no home", "no_user env -u HOME ackwise lab shell", 2, ("no home directory is known",),
            needs="unshare"),
    Mistake("read-only home", f"HOME=/proc/1 {MODEL} --figure x.svg",
            0, ("thinning",), makes=("x.svg",)),
    Mistake("no network", f"no_network {RUN}", 0, ("linux",), needs="unshare"),
    Mistake("no network to build", "PATH=$PWD/offline:$PATH ackwise lab build --cache $PWD/cache "
            "--quiet", 1, ("Could not resolve 'deb.debian.org'", "give a tarball with --source"),
            makes=("cache",), needs="lab-build"),
]  # fmt: skip

OFFLINE = """\
#!/bin/sh
echo "W: a warning of several words, which is not the cause and does not matter, as it is only long" >&2
echo "E: Failed to fetch http://deb.debian.org/debian/pool/main/l/linux/linux-source-6.12_6.12.48-1_all.deb  Could not resolve 'deb.debian.org'" >&2
echo "E: Unable to fetch some archives, maybe run apt-get update or try with --fix-missing?" >&2
exit 100
"""  # noqa: E501


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory with the files that the table names, and `ackwise` on the path."""
    here = tmp_path / "here"
    for folder in (here, here / "dir", here / "locked", here / "offline", tmp_path / "bin"):
        folder.mkdir()
    (tmp_path / "tmp").mkdir()
    start = tmp_path / "bin" / "ackwise"
    start.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m ackwise "$@"\n')
    apt = here / "offline" / "apt-get"
    apt.write_text(OFFLINE)
    for program in (start, apt):
        program.chmod(0o755)
    good = pcap(steady_transfer(200, 1000))
    for name, content in {
        "good.pcap": good,
        "cut.pcap": good[:-77],
        "head.pcap": good[:20],
        "good.pcap.xz": b"\xfd7zXZ\0" + bytes(50),
        "old.snoop": b"snoop\0\0\0" + bytes(50),
        "empty": b"",
        "empty.toml": b"",
        "wrong.toml": b"[[[",
        "binary.toml": struct.pack("8B", *range(248, 256)),
        "key.toml": b'titel = "x"\n',
        "kept.csv": b"kept\n",
        "space.toml": spaces.GRID.replace("down.rate", "down.rat").encode(),
        "good-space.toml": spaces.GRID.encode(),
        "dir/real.json": b"{}\n",
        "plan.toml": (ROOT / "plans" / "demo.toml").read_bytes(),
    }.items():
        (here / name).write_bytes(content)
    (here / "link.json").symlink_to("dir/real.json")
    (here / "new.json").symlink_to("dir/new.json")
    os.mkfifo(here / "fifo")
    (here / "kept.csv").chmod(0o444)
    (here / "locked").chmod(0o555)
    yield here
    (here / "locked").chmod(0o755)


def why_not(wanted: str, here: Path) -> str:
    """Why a mistake cannot be tried here; "" if it can."""
    if wanted == "kernel and root":
        lab_kernel(stock=False)  # skips
        return "" if os.geteuid() == 0 else "not root"
    if wanted == "unshare":
        words = ["unshare", "--user", "--map-root-user", "--net", "true"]
        tried = subprocess.run(words, capture_output=True)
        return "no user namespaces" if tried.returncode else ""
    if wanted == "lab-build":
        try:
            build._check_tools()
        except Exception as problem:
            return str(problem)
        return ""
    if wanted == "device":
        full_device(here)  # skips
        return ""
    if wanted == "script":
        return "" if shutil.which("script") else "script is not installed"
    return needs.complaint(wanted) if wanted else ""


def contents(folder: Path) -> dict[str, str | bytes]:
    """Every file below `folder`: its bytes, where a link points, or what kind of file it is."""
    found: dict[str, str | bytes] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        else:
            found[name] = path.read_bytes() if path.is_file() else f"{path.stat().st_mode:o}"
    return found


def running(mark: str) -> list[int]:
    """Processes that have `mark` in their environment and have not ended. TMPDIR is handed on to
    what ackwise starts."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def abandoned_namespaces() -> list[str]:
    known = Path("/run/netns")
    return [n.name for n in known.iterdir() if is_abandoned(n.name)] if known.is_dir() else []


@pytest.mark.parametrize("one", MISTAKES, ids=lambda m: m.name)
def test_a_mistake_gets_one_line_and_costs_nothing(one: Mistake, place: Path) -> None:
    reason = why_not(one.needs, place)
    if reason:
        pytest.skip(reason)
    for name in abandoned_namespaces():
        subprocess.run(["ip", "netns", "del", name], check=True)
    before, mark = contents(place), str(place.parent / "tmp")
    done = subprocess.run(
        ["sh", "-c", SHELL + one.line],
        cwd=place,
        env={
            **{k: v for k, v in os.environ.items() if k != "ACKWISE_DEBUG"},
            "PATH": f"{place.parent / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "python"),
            "TMPDIR": mark,
        },
        capture_output=True,
        timeout=600,
    )
    out, err = done.stdout.decode(), done.stderr.decode()

    assert done.returncode == one.code, out + err
    for words in one.says:
        assert words in out + err
    for words in ("Traceback", "internal error", "Exception ignored"):
        assert words not in out + err
    if one.code:
        assert err.count("\n") <= 1, err
        assert not err or err.startswith("ackwise")

    after = contents(place)
    for name in one.makes:
        assert after.get(name) != before.get(name)
    assert {n: c for n, c in after.items() if n.split("/")[0] not in one.makes} == before | {
        name: after[name] for name in one.makes if name in after and "/" in name
    }
    assert list((place.parent / "tmp").iterdir()) == []
    assert running(mark) == []
    # tests of this host run beside these: what a recording killed there left goes with its next one
    wait_until(lambda: not abandoned_namespaces(), 60)


def test_the_table_covers_what_happens_to_new_users() -> None:
    assert len(MISTAKES) >= 25
    assert len({one.name for one in MISTAKES}) == len(MISTAKES)
