# SPDX-License-Identifier: MIT
"""What a guest can do to its host, with programs in the place of a kernel: nothing, and whoever
shares the host can do nothing to the guest's folder."""

import dataclasses
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import alive, wait_until

from ackwise.cli import doctor, options
from ackwise.errors import InputError, RunError
from ackwise.host import needs
from ackwise.lab import build, device, machine
from ackwise.lab.machine import Kernel
from ackwise.lab.target import X86

NOBODY = 65_534
PRIVATE = "what only root may read"
NAMES = ("console", "error", "client.pcap", "steps", "flows")

as_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root has another user's rights to lose"
)

# A kernel whose guest is a shell script: it runs its init.
SHELL = """
#include <unistd.h>
int main(void)
{
	return execl("/bin/sh", "sh", "lab-guest", (char *)0);
}
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    if shutil.which("gcc") is None or needs.missing("lab-build"):
        pytest.skip("gcc or the static C library is missing")
    folder = tmp_path_factory.mktemp("kernel")
    (folder / "linux.c").write_text(SHELL)
    build._gcc("gcc", str(folder / "linux.c"), into=folder / "linux")
    build._compile_confine(build.inputs(stock=True), folder / "lab-confine")
    (folder / "lab-guest").touch()
    return Kernel(folder / "linux", folder / "lab-guest", "a shell", "0", False)


@pytest.fixture
def victim() -> Iterator[Path]:
    """A folder that everybody may write, with a file that everybody may write."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "victim"
        folder.mkdir()
        (folder / "file").write_text("as it was")
        os.utime(folder / "file", (10**9, 10**9))
        for place in (Path(name), folder, folder / "file"):
            place.chmod(0o777)
        yield folder


def run(kernel: Kernel, script: str, *without: str) -> tuple[int, str]:
    """Exit code and output of a script that is run as a guest."""
    options = [word for layer in without for word in ("--without", layer)]
    with machine.folder_to_give() as folder, machine.folder_to_give() as memory:
        done = subprocess.run(
            [kernel.confine, *options, folder, memory, str(1 << 20), "/bin/sh", "sh", "-c", script],
            capture_output=True,
            text=True,
            env={"PATH": "/usr/bin:/bin", "MEMORY": str(memory)},
        )
        return done.returncode, done.stdout + done.stderr


def look(folder: Path) -> list[tuple[str, int, float, str]]:
    return sorted(
        (p.name, p.stat().st_mode, p.stat().st_mtime, p.read_text()) for p in folder.iterdir()
    )


ATTACKS = {
    "create": "echo x > {victim}/new",
    "overwrite": "echo x > {victim}/file",
    "append": "echo x >> {victim}/file",
    "truncate": "truncate -s 1 {victim}/file",
    "remove": "rm -f {victim}/file",
    "rename": "mv {victim}/file {victim}/other",
    "make a folder": "mkdir {victim}/new",
    "link": "ln {victim}/file {victim}/new",
    "symbolic link": "ln -s {victim} here; echo x > here/new",
    "move in": "echo x > mine; mv mine {victim}/new",
    "the folder itself": 'mv "$PWD" {victim}/new; ln -s {victim} "$PWD"; echo x > "$PWD/new"',
    "a working directory": "cd {victim} && echo x > new",
    "through proc": "echo x > /proc/self/root{victim}/new",
    "a mount": "unshare -rm sh -c 'mount -o remount,rw,bind /; echo x > {victim}/new'",
}


@pytest.mark.parametrize("without", [(), ("landlock",), ("namespace",), ("seccomp",)], ids=str)
def test_nothing_outside_of_the_folder_is_changed(
    kernel: Kernel, victim: Path, without: tuple[str, ...]
) -> None:
    missing = set(machine.LAYERS) - set(machine.layers(kernel))
    if {"landlock", "namespace"} <= missing | set(without):
        pytest.skip(f"this host lacks {missing}")
    before = look(victim)
    for attack, words in ATTACKS.items():
        run(kernel, words.format(victim=victim), *without)
        assert look(victim) == before, attack


def test_without_its_layers_the_attacks_succeed(kernel: Kernel, victim: Path) -> None:
    run(kernel, ATTACKS["create"].format(victim=victim), *machine.LAYERS)
    run(kernel, ATTACKS["append"].format(victim=victim), *machine.LAYERS)
    assert (victim / "new").read_text() == "x\n"
    assert (victim / "file").read_text() == "as it wasx\n"


@pytest.mark.parametrize("without", [("namespace",), ("landlock", "seccomp")], ids=str)
def test_modes_and_times_stay(kernel: Kernel, victim: Path, without: tuple[str, ...]) -> None:
    """The guest's user may own the files: as an ordinary user's guest does."""
    if set(machine.layers(kernel)) != set(machine.LAYERS):
        pytest.skip("this host lacks a layer")
    file = victim / "file"
    before = look(victim)
    # utime: whoever may write a file may set its times to the present
    run(kernel, f"chmod 700 {file}; touch {file}; touch -d @5 {file}", *without)
    assert look(victim) == before
    run(kernel, f"touch {file}", *machine.LAYERS)
    assert look(victim) != before


def test_a_guest_writes_in_its_folders(kernel: Kernel) -> None:
    code, said = run(
        kernel, 'echo 1 > a; echo 2 >> a; mv a b; mkdir c; cat b; echo 3 > "$MEMORY/m"'
    )
    assert (code, said) == (0, "1\n2\n")


def test_a_guest_reaches_no_service(kernel: Kernel) -> None:
    if "seccomp" not in machine.layers(kernel):
        pytest.skip("this host lacks seccomp")
    for kind in ("AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET"):
        script = f"import socket; socket.socket(socket.{kind}, socket.SOCK_RAW)"
        _, said = run(kernel, f"{sys.executable} -c '{script}' 2>&1 | tail -n 1")
        assert "PermissionError: [Errno 1]" in said or "Permission denied" in said
    script = 'import socket; socket.socket(socket.AF_UNIX).connect("/run/x")'
    _, said = run(kernel, f"python3 -c '{script}'")
    assert "PermissionError: [Errno 1]" in said


def test_whatever_a_guest_starts_is_ended_with_it(kernel: Kernel) -> None:
    """Nothing leaves the session that the command ends."""
    code, said = run(kernel, "setsid sleep 1 2>&1; cut -d ' ' -f 6 /proc/self/stat; echo $$")
    assert "setsid" in said
    assert code == 0
    assert len(set(said.splitlines()[-2:])) == 1


@as_root
def test_root_becomes_a_user_that_nobody_else_is(kernel: Kernel) -> None:
    users = [run(kernel, "id -u; id -g; id -G; grep CapEff /proc/self/status")[1] for _ in range(3)]
    found = [text.split() for text in users]
    assert len({user for user, *_ in found}) == 3
    for user, group, groups, _, capabilities in found:
        assert int(user) >= 2_100_000_000 or int(user) in range(61_184, 65_280)
        assert group == groups == user
        assert int(capabilities, 16) == 0


def run_as_guest(kernel: Kernel, folder: Path, script: str) -> None:
    (folder / "lab-guest").write_text(script)
    machine.run(kernel, folder, ["nothing"], seed=1, wall_limit_s=600)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text(PRIVATE)
    path.chmod(0o600)
    return path


@pytest.fixture
def folder(kernel: Kernel) -> Iterator[Path]:
    with machine.run_folder(kernel) as folder:
        yield folder


def test_what_is_no_plain_file_of_the_guest_is_never_read(
    kernel: Kernel, folder: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even of a guest that can make links, which Landlock and seccomp do not let it."""
    words = machine._words
    layers = ("--without", "landlock", "--without", "seccomp")

    def weaker(*of: Any) -> list[str]:
        confine, *rest = words(*of)
        return [confine, *layers, *rest]

    monkeypatch.setattr(machine, "_words", weaker)
    script = "".join(f"rm -rf {name}; ln -s {secret} {name}\n" for name in NAMES)
    script += "mkfifo pings; mkdir -p a/b; ln -s /etc a/b/etc; echo kept > samples; rm lab-guest\n"
    run_as_guest(kernel, folder, script)
    assert [path.name for path in folder.iterdir()] == ["samples"]
    assert (folder.stat().st_uid, stat.S_IMODE(folder.stat().st_mode)) == (os.geteuid(), 0o700)
    assert secret.read_text() == PRIVATE


def test_the_console_is_shown_whatever_the_guest_does_to_its_name(
    kernel: Kernel, folder: Path, secret: Path
) -> None:
    with pytest.raises(RunError, match=r"(?s)exited with code 3.*\| a last word"):
        run_as_guest(kernel, folder, "rm console; echo other > console; echo a last word; exit 3")


RACER = """
import os, sys
owner, secret, names = sys.argv[1], sys.argv[2], sys.argv[3:]
won = 0
print("ready", flush=True)
while os.getppid() != 1:
    for top in ("/tmp", "/dev/shm"):
        for name in os.listdir(top):
            if not name.startswith("ackwise-") or f"-{owner}-" not in name:
                continue
            for one in names:
                place = f"{top}/{name}/lab/{one}"
                for act in (lambda: os.unlink(place), lambda: os.symlink(secret, place),
                            lambda: os.rename(f"{top}/{name}/lab", f"{top}/{name}/x"),
                            lambda: os.symlink("/", f"{top}/{name}/lab")):
                    try:
                        act()
                        won += 1
                        print("won", flush=True)
                    except OSError:
                        pass
"""


@as_root
def test_a_process_of_another_user_plants_nothing(kernel: Kernel, secret: Path) -> None:
    words = ["python3", "-c", RACER, str(os.getpid()), str(secret), *NAMES]
    racer = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "--", *words],
        stdout=subprocess.PIPE, text=True, user=NOBODY, group=NOBODY, extra_groups=(), cwd="/",
    )  # fmt: skip
    try:
        assert racer.stdout and racer.stdout.readline() == "ready\n"
        for _ in range(100):
            with machine.run_folder(kernel) as folder:
                run_as_guest(kernel, folder, "echo out; echo told > flows")
                assert (folder / "flows").read_text() == "told\n"
                assert (folder / "console").read_text() == "out\n"
    finally:
        racer.kill()
        said = racer.communicate()[0]
    assert said == ""
    assert secret.read_text() == PRIVATE


@as_root
def test_root_makes_no_folder_where_another_user_could_replace_it(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    with machine.run_folder(kernel):
        pass
    for user, mode in ((NOBODY, 0o700), (0, 0o777)):
        os.chown(place, user, user)
        place.chmod(mode)
        with pytest.raises(InputError, match=r"^TMPDIR: "):
            machine.run_folder(kernel).__enter__()
    place.chmod(0o1777)
    with machine.run_folder(kernel):
        pass


def test_a_guest_that_writes_too_much_is_stopped_with_a_message(
    kernel: Kernel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "FILE_BYTES_MAX", 1 << 20)
    with pytest.raises(RunError, match=r"a file of its run reached 0\.000976562 GiB; make the run"):
        run_as_guest(kernel, folder, "exec dd if=/dev/zero of=client.pcap bs=64k count=100")
    assert (folder / "client.pcap").stat().st_size == 1 << 20


def test_a_guest_starts_a_bounded_number_of_processes(kernel: Kernel) -> None:
    script = "n=0; while [ $n -lt 1000 ]; do sleep 60 & n=$((n+1)); echo $n; done"
    said = run(kernel, script)[1]
    assert "1000" not in said.split()
    assert "Cannot fork" in said
    assert len(said.splitlines()) > 400


TOO_MUCH = {
    "files": ("n=0; while :; do : > f$n; n=$((n+1)); done", "more than 512 files"),
    "folders": ("while mkdir d; do cd d; done; sleep 99", "more than 512 files"),
    "bytes": ("n=0; while :; do head -c 65536 /dev/zero > f$((n % 99)); n=$((n+1)); done", "GiB"),
    "at the end": ("for n in 1 2 3 4 5; do head -c 999999 /dev/zero > f$n; done", "GiB"),
    "without a name": ("exec 3> f; rm f; head -c 8000000 /dev/zero >&3; sleep 99", "GiB"),
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_a_guest_whose_files_are_too_many_or_too_large_is_stopped(
    kernel: Kernel, folder: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "BYTES_MAX", 4 << 20)
    script, says = TOO_MUCH[what]
    with pytest.raises(RunError, match=f"the guest was stopped: .*{says}"):
        run_as_guest(kernel, folder, script)


def emulated(script: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts a shell, which runs a script, in the place of QEMU."""
    (folder / "shell.c").write_text(SHELL.replace("lab-guest", str(script)))
    build._gcc("gcc", str(folder / "shell.c"), into=folder / "shell")
    board = dataclasses.replace(device._BOARDS[X86], emulator=str(folder / "shell"))
    monkeypatch.setitem(device._BOARDS, X86, board)


def test_an_emulator_whose_files_are_too_large_is_stopped(
    kernel: Kernel, victim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "BYTES_MAX", 4 << 20)
    script = victim.parent / "script"
    script.write_text(
        "n=0; while :; do head -c 65536 /dev/zero > $TMPDIR/$((n % 99)); n=$((n+1)); done"
    )
    emulated(script, tmp_path, monkeypatch)
    with device.started(X86, kernel, [], 1, device.COUNTED) as one:
        one.process.wait(60)
        with pytest.raises(RunError, match="the guest was stopped: its files reached"):
            one.results()


def test_an_emulator_is_confined_like_a_guest(
    kernel: Kernel, victim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a shell in the place of QEMU."""
    script = victim.parent / "script"
    script.write_text(f"id -u; grep CapEff /proc/self/status; ulimit -f; echo x > {victim}/new")
    emulated(script, tmp_path, monkeypatch)
    before = look(victim)
    with device.started(X86, kernel, [], 1, device.COUNTED) as one:
        one.process.wait(30)
        said = machine.console_tail(one.console).splitlines()
    assert before == look(victim)
    user, rights, blocks = (line.removeprefix("  | ") for line in said[:3])
    assert user != "0"
    assert int(rights.split()[1], 16) == 0
    assert int(blocks) * 512 <= machine.FILE_BYTES_MAX


def test_a_host_that_cannot_confine_guests_is_reported(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build, "find", lambda *_, **__: kernel)
    monkeypatch.setattr(machine, "layers", lambda _: ["seccomp"])
    assert options.Lab().kernel() is kernel
    said = capsys.readouterr().err
    assert said.startswith("ackwise: guests are not confined to their folder: ")
    shown = {one.what: one.detail for one in doctor.COMMANDS["lab"]()}
    assert shown["guests confined by"] == "this host lacks landlock, namespace"
    monkeypatch.setattr(machine, "layers", lambda _: ["namespace"])
    options.Lab().kernel()
    assert capsys.readouterr().err == ""


STARTER = """
import subprocess, sys
subprocess.run([*sys.argv[1:], "/bin/sh", "sh", "-c", "sleep 1000 & echo $$ $!; wait"])
"""


def test_a_guest_and_what_it_started_die_with_the_command(kernel: Kernel) -> None:
    with machine.folder_to_give() as folder:
        words = [str(kernel.confine), str(folder), str(folder), "1000000"]
        starter = subprocess.Popen(
            [sys.executable, "-c", STARTER, *words], stdout=subprocess.PIPE, text=True
        )
        assert starter.stdout
        guests = [int(pid) for pid in starter.stdout.readline().split()]
        assert len(guests) == 2
        assert all(map(alive, guests))
        starter.send_signal(signal.SIGKILL)
        starter.wait()
        wait_until(lambda: not any(map(alive, guests)))


def test_starting_a_guest_costs_few_milliseconds(kernel: Kernel) -> None:
    """CPU time is measured; thirty megabytes of kernel are not copied."""
    before = os.times()
    started = time.monotonic()
    for _ in range(20):
        assert run(kernel, "exit 0")[0] == 0
    after = os.times()
    spent = after.children_user + after.children_system
    spent -= before.children_user + before.children_system
    assert spent / 20 < 0.02, f"{(time.monotonic() - started) / 20:.3f} s each"
