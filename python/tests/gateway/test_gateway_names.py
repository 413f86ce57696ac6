# SPDX-License-Identifier: MIT
"""Every name that Linux allows for an interface reaches `tc` and `ackwise` as that one argument,
whatever shell or unit hands it on; and nothing in it is obeyed."""

import codecs
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Ackwise
from hostile import INTERFACES, is_inert
from netns import namespace, needs_root
from systemd import complaints, needs_systemd
from test_gateway_formats import SHELLS, shell

from ackwise.errors import InputError
from ackwise.gateway import control, formats
from ackwise.gateway.classifier import Framing
from ackwise.gateway.formats import PROGRAM
from ackwise.gateway.settings import Access, LeafChoice, Request, Settled, settle
from ackwise.host.terminal import shown

SYSTEMD = Path("/usr/lib/systemd/systemd")
OPTIONS = ["--down", "40mbit", "--up", "1mbit", "--overhead", "atm"]
COMMAND = "ackwise\nx; $(x)\r\x1b[2J"


def settled(name: str) -> Settled:
    """A plan for an interface that need not be on this host, with a warning that has its name."""
    access = Access(40_000_000, 1_000_000, mtu_bytes=1500)
    pfifo = LeafChoice("pfifo", 9)
    asked = Request(name, access, Framing.IP, None, None, pfifo, pfifo, 1_000_000, self_test=False)
    made = settle(asked)
    return Settled(
        made.request, made.settings, made.ack_leaves, made.data_leaves,
        (f"because of {name}\nx",), (f"beware of {name}\nx",),
    )  # fmt: skip


def text(form: str, name: str) -> str:
    """What `plan --format` prints, for a command line as hostile as the name."""
    plan = settled(name)
    return {
        "tc": lambda: formats.tc(plan),
        "sh": lambda: formats.shell(plan, command=COMMAND),
        "openwrt": lambda: formats.openwrt(plan, command=COMMAND),
        "systemd": lambda: formats.systemd(OPTIONS, plan),
        "ifupdown": lambda: formats.ifupdown(OPTIONS, plan),
        "networkmanager": lambda: formats.networkmanager(OPTIONS, plan),
    }[form]()


class Host:
    """A PATH on which `tc`, `logger` and `ackwise` write down their arguments, and `x` that it was
    run; and interfaces of every name below `net`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log, self.canary = folder, folder / "log", folder / "canary"
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool in ("tc", "logger", "ackwise"):
            self._tool(tool, f"printf '%s\\0' {tool} \"$@\" '' >>{self.log}")
        for tool in ("x", "rm", "root"):
            self._tool(tool, f"echo >{self.canary}")

    def _tool(self, name: str, line: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        (self.bin / name).chmod(0o755)

    def script(self, form: str, name: str) -> Path:
        """The script, which looks for interfaces below our folder."""
        net = self.folder / "net" / os.fsencode(name).hex()
        net.mkdir(parents=True, exist_ok=True)
        (net / "mtu").write_text("1500\n", encoding="utf-8")
        file = self.folder / form
        made = text(form, name).replace("/sys/class/net/$DEVICE", str(net))
        file.write_text(made, encoding="utf-8")
        return file

    def run(self, *words: str, **environment: str) -> list[list[str]]:
        """The calls that a program makes."""
        self.log.unlink(missing_ok=True)
        done = subprocess.run(
            words, capture_output=True, stdin=subprocess.DEVNULL, cwd=self.folder,
            env={"PATH": f"{self.bin}:/usr/sbin:/usr/bin:/sbin:/bin", **environment},
        )  # fmt: skip
        said = done.stdout + done.stderr
        assert done.returncode == 0, (words, said)
        assert is_inert(said.decode("latin-1")), said
        assert not self.canary.exists(), words
        calls = self.log.read_bytes().split(b"\0\0") if self.log.exists() else [b""]
        return [[os.fsdecode(word) for word in call.split(b"\0")] for call in calls[:-1]]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def some(name: str) -> tuple[str, ...]:
    """Two thirds of the names for each shell; so two shells have each."""
    left_out = SHELLS.index(name)
    return tuple(one for i, one in enumerate(INTERFACES) if i % 3 != left_out)


def named(calls: list[list[str]], name: str) -> list[list[str]]:
    """The calls for `eth0` as they should be for another name."""
    return [[name if word == "eth0" else word for word in call] for call in calls]


def without_log(calls: list[list[str]]) -> list[list[str]]:
    """Log lines hold the name as plain text; that they are one argument is what matters."""
    for call in calls:
        if call[0] == "logger":
            assert call[1:4] == ["-t", "ackwise", "--"]
            assert len(call) == 5
            assert is_inert(call[4]) and "\n" not in call[4]
    return [call for call in calls if call[0] != "logger"]


def test_enough_names_are_hostile_and_all_are_names() -> None:
    assert min(len(set(some(name))) for name in SHELLS) >= 50
    for name in INTERFACES:
        control.check_name(name)
    for name in ("", ".", "..", "a/b", "a b", "a\n", "a:b", "a\0b", "x" * 16, "é" * 8):
        with pytest.raises(InputError):
            control.check_name(name)


@pytest.mark.parametrize("form", formats.FORMATS)
def test_what_is_printed_is_printable(form: str) -> None:
    for name in INTERFACES:
        made = text(form, name)
        assert shown(made) == made
        comments = [line for line in made.splitlines() if line.startswith("#")]
        assert len(made.splitlines()) == len(text(form, "eth0").splitlines()), name
        assert any("beware of " in line for line in comments)


@pytest.mark.parametrize("name", SHELLS)
def test_the_script_gives_tc_the_name(host: Host, name: str) -> None:
    def calls(interface: str, verb: str) -> list[list[str]]:
        return without_log(host.run(*shell(name), str(host.script("sh", interface)), verb))

    up, status = calls("eth0", "up"), calls("eth0", "status")
    assert len(up) == 9
    assert all(call[call.index("dev") + 1] == "eth0" for call in up)
    for interface in some(name):
        assert calls(interface, "up") == named(up, interface)
    assert calls("$(x)", "status") == named(status, "$(x)")


@pytest.mark.parametrize("name", SHELLS)
def test_the_script_takes_the_name_as_an_argument(host: Host, name: str) -> None:
    script = str(host.script("sh", "eth0"))
    up = without_log(host.run(*shell(name), script, "up"))
    for interface in some(name)[::5]:
        assert without_log(host.run(*shell(name), script, "up", interface)) == named(up, interface)


@pytest.mark.parametrize("name", SHELLS)
def test_openwrt_s_events_give_tc_the_name(host: Host, name: str) -> None:
    def calls(interface: str) -> list[list[str]]:
        script = host.script("openwrt", interface)
        other = host.run(*shell(name), "-c", f". {script}", ACTION="ifup", DEVICE=f"{interface}x",
                         INTERFACE="wan")  # fmt: skip
        assert other == []
        return without_log(host.run(
            *shell(name), "-c", f". {script}", ACTION="ifup", DEVICE=interface, INTERFACE="wan"
        ))  # fmt: skip

    up = calls("eth0")
    assert len(up) == 9
    for interface in some(name):
        assert calls(interface) == named(up, interface)


@pytest.mark.parametrize("name", SHELLS)
def test_the_lines_of_tc_can_be_pasted(host: Host, name: str) -> None:
    """All names in one paste: lines that end up inside each other's quotes would show."""
    expected = host.run(*shell(name), "-c", text("tc", "eth0"))
    assert len(expected) == 7
    script = host.folder / "tc.sh"
    script.write_text("".join(text("tc", interface) for interface in INTERFACES), encoding="utf-8")
    calls = host.run(*shell(name), str(script))
    assert calls == [call for interface in INTERFACES for call in named(expected, interface)]


@pytest.mark.parametrize("form", ["ifupdown", "networkmanager"])
@pytest.mark.parametrize("name", SHELLS)
def test_hooks_give_ackwise_the_name(host: Host, ackwise: Ackwise, name: str, form: str) -> None:
    def calls(interface: str, *, up: bool, of: str) -> list[list[str]]:
        script = str(host.script(form, interface))
        if form == "networkmanager":
            return host.run(*shell(name), script, of, "up" if up else "down")
        return host.run(*shell(name), script, IFACE=of, MODE="start" if up else "stop")

    for interface in some(name):
        assert calls(interface, up=True, of=f"{interface}x") == []
        (call,) = calls(interface, up=True, of=interface)
        last = ["--", interface] if interface.startswith("-") else []
        first = [] if last else [interface]
        assert call == ["ackwise", "gateway", "up", *first, *OPTIONS, *last]
        (call,) = calls(interface, up=False, of=interface)
        assert call == ["ackwise", "gateway", "down", *first, *last]


@pytest.mark.parametrize(
    "interface", ["-rf", "--help", "$(x)", "\x1b[2J", "日本語", "\udcff\udc80"]
)
def test_the_command_reads_the_name_that_its_hooks_give_it(
    ackwise: Ackwise, interface: str
) -> None:
    words = [*OPTIONS, "--framing", "ip", "--", interface]
    said = ackwise("gateway", "plan", "--json", *words)
    assert said.code == 0, said.err
    assert is_inert(said.out + said.err)
    again = ackwise("gateway", "plan", "--format", "systemd", *words)
    (line,) = (line for line in again.out.splitlines() if line.startswith("ExecStart="))
    start = systemd_words(line.partition("=")[2])
    assert start[:3] == [PROGRAM, "gateway", "up"]
    assert ackwise("gateway", "plan", "--json", *start[3:]).out == said.out


_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')


def _bytes_of(escaped: str) -> str:
    return os.fsdecode(codecs.escape_decode(escaped.replace("\\$", "$").replace("\\`", "`"))[0])


def systemd_words(line: str) -> list[str]:
    """The words of a command as systemd reads them, and as its dump writes them."""
    words = (a or b for a, b in _QUOTED.findall(line))
    return [_bytes_of(word).replace("%%", "%").replace("$$", "$") for word in words]


@pytest.fixture
def readable() -> Iterator[Path]:
    """A folder that an ordinary user can read."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.mark.skipif(not shutil.which("systemd-escape"), reason="no systemd-escape")
def test_units_are_bound_to_the_device_as_systemd_names_it() -> None:
    paths = [f"/sys/subsystem/net/devices/{name}" for name in INTERFACES]
    told = subprocess.run(
        ["systemd-escape", "--path", "--suffix=device", "--", *paths],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name, unit in zip(INTERFACES, told.stdout.split(), strict=True):
        lines = text("systemd", name).splitlines()
        assert f"BindsTo={unit}" in lines
        assert f"WantedBy={unit}" in lines


def units(folder: Path) -> dict[str, str]:
    """A unit for each name, in files with the names that the units themselves give; by file."""
    made = {}
    for name in INTERFACES:
        unit = text("systemd", name)
        (path,) = (line for line in unit.splitlines() if line.startswith("# /etc/systemd/system/"))
        file = Path(path.removeprefix("# ")).name
        made[file] = name
        (folder / file).write_text(unit, encoding="utf-8")
    assert len(made) == len(INTERFACES)
    return made


@pytest.mark.skipif(not SYSTEMD.exists(), reason="no systemd")
@pytest.mark.skipif(bool(os.getuid() == 0 and not shutil.which("setpriv")), reason="no setpriv")
def test_systemd_reads_the_names_from_the_units(readable: Path) -> None:
    """systemd itself, in the test mode in which it reads units and prints what it has read."""
    made = units(readable)
    wants = "\n".join(f"Wants={file}".replace("%", "%%") for file in made)
    (readable / "all.target").write_text(f"[Unit]\n{wants}\n", encoding="utf-8")
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    told = subprocess.run(
        [*(user if os.getuid() == 0 else []), str(SYSTEMD), "--test", "--user", "--no-pager",
         "--unit=all.target"],
        capture_output=True,
        env={"XDG_RUNTIME_DIR": str(readable), "HOME": str(readable), "PATH": "/usr/bin:/bin",
             "SYSTEMD_UNIT_PATH": f"{readable}:", "SYSTEMD_LOG_TARGET": "console"},
    )  # fmt: skip
    if b"Cannot determine cgroup we are running in" in told.stderr:
        pytest.skip("systemd reads units only where /sys/fs/cgroup is mounted")
    assert told.returncode == 0, told.stderr[-2000:]
    dump = told.stdout.decode(errors="surrogateescape")
    blocks = dict(re.findall(r"^\t*-> Unit (\S+):\n(.*?)(?=^\t*-> Unit |\Z)", dump, re.M | re.S))
    for file, name in made.items():
        lines = re.findall(r"Command Line: (.*)", blocks[file])
        assert len(lines) == 2, file
        last = ["--", name] if name.startswith("-") else []
        first = [] if last else [name]
        for line, command, options in zip(lines, ("up", "down"), (OPTIONS, []), strict=True):
            words = [word.replace("$$", "$") for word in systemd_dump(line)]
            expected = [PROGRAM, "gateway", command, *first, *options, *last]
            assert words == expected, name
        assert re.search(r"Description: ACK separation on .* by ackwise$", blocks[file], re.M)


def systemd_dump(line: str) -> list[str]:
    """The words of a command line that systemd has read and prints with C's escapes."""
    return [_bytes_of(a or b) for a, b in _QUOTED.findall(line)]


@needs_systemd
def test_systemd_analyze_finds_no_fault_with_the_units(readable: Path) -> None:
    assert complaints(*(readable / file for file in units(readable))) == []


@needs_root
def test_a_real_interface_of_that_name_gets_its_tree(tmp_path: Path) -> None:
    # `%` is the kernel's pattern for a number
    names = [name for name in some(SHELLS[0]) if "%" not in name]
    assert len(names) >= 50
    with namespace() as ns:
        ns.tool("ip", "link", "set", "v0", "down")
        here, expected = "v0", ""
        for i, name in enumerate(["eth0", *names]):
            ns.tool("ip", "link", "set", "dev", here, "name", name)
            here = name
            script = tmp_path / "sh"
            script.write_text(text("sh", name), encoding="utf-8")
            ns.tool(*shell(SHELLS[i % len(SHELLS)]), str(script), "up")
            told = ns.told_by_tc(name)
            expected = expected or told
            assert told == expected
            assert "htb ac:" in told
            ns.tool(*shell(SHELLS[i % len(SHELLS)]), str(script), "down")
            assert "htb" not in ns.tool("tc", "qdisc", "show", "dev", name)


@needs_root
@pytest.mark.parametrize("name", ["-rf", "$(x)", "\x1b[2J", "\udcff\udc80", "#"])
def test_the_command_changes_a_real_interface_of_that_name(tmp_path: Path, name: str) -> None:
    common = ("--run-dir", str(tmp_path / "run"), "--", name)
    with namespace() as ns:
        ns.tool("ip", "link", "set", "v0", "down")
        ns.tool("ip", "link", "set", "dev", "v0", "name", name)
        ns.tool("ip", "link", "set", "dev", name, "up")
        for words in (("up", *OPTIONS), ("status",), ("status", "--prometheus"), ("down",)):
            said = ns.ackwise("gateway", *words, *common)
            assert said.code == 0, (words, said.err)
        assert "htb" not in ns.tool("tc", "qdisc", "show", "dev", name)
