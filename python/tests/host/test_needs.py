# SPDX-License-Identifier: MIT
"""The list of what a host needs: both readers agree, and it names what scripts really use."""

import re
import subprocess
from pathlib import Path

import pytest

from ackwise.host import needs

SCOPES = sorted({scope for need in needs.needs() for scope in need.scopes})


def said_by_sh(root: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(root / "tools/needs"), *words], capture_output=True, text=True)


def listed(said: str) -> list[str]:
    return re.findall(r"^  (.+?): ", said, re.MULTILINE)


@pytest.mark.parametrize("scope", SCOPES)
def test_shell_and_python_find_the_same_things_missing(root: Path, scope: str) -> None:
    said = said_by_sh(root, scope)
    assert listed(said.stdout) == [need.name for need in needs.missing(scope)], said.stderr
    assert said.returncode == (1 if needs.missing(scope) else 0)


def test_on_a_host_without_anything_both_name_every_command_and_its_packages(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what tools/needs itself is made of can be found."""
    for tool in ("sh", "grep", "cut", "tr", "sort", "head", "sed", "dirname"):
        (tmp_path / tool).symlink_to(Path("/usr/bin") / tool)
    script = (root / "tools/needs").read_text(encoding="utf-8")
    copy = tmp_path / "tools" / "needs"
    copy.parent.mkdir()
    copy.write_text(re.sub(r"^PATH=.*\n", "", script, flags=re.MULTILINE), encoding="utf-8")
    copy.chmod(0o755)
    shipped = tmp_path / "python/ackwise/host/needs.tsv"
    shipped.parent.mkdir(parents=True)
    shipped.write_bytes((root / "python/ackwise/host/needs.tsv").read_bytes())
    monkeypatch.setattr(needs, "find_tool", lambda name: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for scope in SCOPES:
        said = subprocess.run(
            ["/bin/sh", str(copy), scope],
            capture_output=True,
            text=True,
            env={"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)},
        )
        lacking = needs.missing(scope)
        assert listed(said.stdout) == [need.name for need in lacking]
        asked = said.stdout.partition("apt-get install ")[2].strip()
        assert asked == needs.install(lacking)
        assert {n.name for n in needs.needs(scope) if n.kind != "file"} == {
            n.name for n in lacking if n.kind != "file"
        }


def test_an_unknown_scope_is_refused(root: Path) -> None:
    said = said_by_sh(root, "tests")
    assert said.returncode == 2
    assert "tests: no such scope" in said.stderr


def test_every_scope_that_a_script_asks_for_is_in_the_list(root: Path) -> None:
    asked: set[str] = set()
    for name in ("Makefile", "linux/check", "tools/fresh-machine"):
        text = re.sub(r"\$\(if \S+,(.*)\)", r"\1", (root / name).read_text(encoding="utf-8"))
        words = re.findall(r"(?:@tools/setup\.sh|/tools/needs\") +([a-z -]+)", text)
        words += re.findall(r'scopes=(?:"\$scopes )?([a-z -]+)', text)
        asked |= set(" ".join(words).split())
    assert asked
    assert asked <= set(SCOPES)


def test_of_two_versions_the_newer_is_known() -> None:
    assert needs._numbers("1.100.0") > needs._numbers("1.78")
    row = needs._need("build", "version:python3:3.11", "python3", "runs")
    assert row.find().startswith("3.")
    assert not needs._need("build", "version:python3:99.0", "python3", "runs").find()


def test_what_is_missing_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        needs, "find_tool", lambda name: "/x" if name in ("tcpdump", "iperf3") else None
    )
    assert needs.complaint("record") == (
        "missing: ip, tc, ethtool, setpriv, prlimit; install with "
        "`apt-get install ethtool iproute2 util-linux`"
    )
    monkeypatch.setattr(needs, "find_tool", lambda name: "/x")
    assert needs.complaint("record") == ""


def test_the_remedy_is_the_package_that_the_release_has(monkeypatch: pytest.MonkeyPatch) -> None:
    row = needs._need("build", "cargo", "cargo-web rustc-web | cargo rustc", "compiles")
    monkeypatch.setattr(needs, "_apt_knows", lambda *packages: True)
    assert row.remedy == "`apt-get install cargo-web rustc-web`"
    monkeypatch.setattr(needs, "_apt_knows", lambda *packages: False)
    assert row.remedy == "`apt-get install cargo rustc`"


# --- tools/setup.sh --------------------------------------------------------------------------

SMALL_TOOLS = ("bash", "sh", "cut", "dirname", "env", "grep", "head", "sed", "sort", "tr")


def setup_on(root: Path, host: Path, **tools: str) -> "subprocess.CompletedProcess[str]":
    """tools/setup.sh on a host whose commands are small tools and the scripts given."""
    for name in SMALL_TOOLS:
        (host / name).symlink_to(Path("/usr/bin") / name)
    for name, script in tools.items():
        file = host / name.replace("_", "-")
        file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        file.chmod(0o755)
    return subprocess.run(
        [str(root / "tools/setup.sh"), "record"],
        capture_output=True,
        text=True,
        env={"PATH": str(host), "HOME": str(host)},
    )


def test_without_apt_setup_says_what_to_install(root: Path, tmp_path: Path) -> None:
    said = setup_on(root, tmp_path)
    assert said.returncode == 1
    assert "has no apt" in said.stderr
    assert "iperf3: makes the transfer that is captured" in said.stderr


def test_without_root_and_sudo_setup_gives_the_command_to_type(root: Path, tmp_path: Path) -> None:
    said = setup_on(root, tmp_path, apt_get="exit 9", id="echo 1000")
    assert said.returncode == 1
    assert "not root" in said.stderr
    assert re.search(r"apt-get install .*iperf3", said.stderr)


def test_setup_installs_what_the_release_has_and_names_what_stays_missing(
    root: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    said = setup_on(
        root,
        tmp_path,
        id="echo 0",
        apt_cache='for last; do :; done; [ "$last" != tcpdump ]',
        apt_get=f'echo "$@" >> {log}',
    )
    assert said.returncode == 1
    asked = log.read_text(encoding="utf-8").splitlines()
    assert asked[0].startswith("update")
    assert "iperf3" in asked[1]
    assert "tcpdump" not in asked[1]
    assert "has no package tcpdump" in said.stderr
    assert "still missing" in said.stderr
    assert "iperf3: makes" in said.stderr


def test_setup_does_nothing_where_nothing_is_missing(root: Path, tmp_path: Path) -> None:
    there = dict.fromkeys(
        ("ip", "tc", "ethtool", "tcpdump", "iperf3", "setpriv", "prlimit"), "exit 0"
    )
    said = setup_on(root, tmp_path, apt_get="exit 9", **there)
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")
