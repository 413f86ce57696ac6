# SPDX-License-Identifier: MIT
"""The series' scripts for packetdrill, which the lab runs too: as claims, in virtual time.

Needs a kernel that `ackwise lab build` made; ACKWISE_LAB_BUILD=1 lets the tests build it.
"""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import packetdrill
import pytest
from conftest import lab_kernel

from ackwise.lab.build import linux_folder
from ackwise_experiments.conform import claim, suite
from ackwise_experiments.conform.world import InLab

_LEAVES = re.compile(r"^.* > .* ack \d+(?: <nop.*)?\n", re.MULTILINE)
_FOLDER = "tools/testing/selftests/net/packetdrill/"


@cache
def added_files() -> dict[str, str]:
    """What the series adds to the kernel's packetdrill scripts, by name."""
    found: dict[str, str] = {}
    for patch in sorted((linux_folder() / "patches/6.12").glob("*.patch")):
        for section in re.split(r"^diff --git ", patch.read_text(), flags=re.MULTILINE)[1:]:
            name = section.split(" b/", 1)[1].split("\n", 1)[0]
            if name.startswith(_FOLDER) and name.endswith(".pkt"):
                added = [line[1:] for line in section.split("\n") if line.startswith("+")]
                found[name.removeprefix(_FOLDER)] = "\n".join(added[1:]) + "\n"
    return found


@cache
def came() -> tuple[suite.Seen, ...]:
    """Every script, run on the patched kernel."""
    claims = [
        claim.parse(Path(name), packetdrill.to_claim(name, text))
        for name, text in added_files().items()
    ]
    world = InLab(lab_kernel(stock=False))
    policies = sorted({c.policies[0].partition(":")[0] for c in claims})
    return tuple(one for p in policies for one in suite.observe(world, claims, p))


def test_each_duty_and_each_choice_has_a_script() -> None:
    assert {name.removeprefix("tcp_ack_policy_") for name in added_files()} == {
        f"{what}.pkt"
        for what in (
            "ce", "change", "delayed", "every", "fin", "flight", "order", "quickack",
        )
    }  # fmt: skip


def test_scripts_use_the_number_that_the_series_gives() -> None:
    series = "\n".join(p.read_text() for p in (linux_folder() / "patches/6.12").glob("*.patch"))
    found = re.search(r"^\+#define TCP_ACK_POLICY\s+(\d+)", series, re.MULTILINE)
    assert found
    assert int(found[1]) == packetdrill.ACK_POLICY
    for name, text in added_files().items():
        assert f"setsockopt(3, IPPROTO_TCP, {packetdrill.ACK_POLICY}, " in text, name


@pytest.mark.parametrize(
    "line",
    [
        "   +0 < . 1:1001(999) ack 1 win 65535",  # a length that is none
        "   +0 < P. 1:1001(1000) ack 1 win 65535",
        '   +0 setsockopt(4, IPPROTO_TCP, 200, "every", 5) = 0',
        '   +0 setsockopt(4, IPPROTO_TCP, 47, "every", 4) = 0',
        "   +0 write(4, ..., 1000) = 1000",
        "   +0 > . 1:1(0) ack 1001 <...>",
        "    1 > . 1:1(0) ack 1001",
    ],
)
def test_what_is_not_understood_is_refused(line: str) -> None:
    text = added_files()["tcp_ack_policy_every.pkt"]
    packetdrill.to_claim("every", text)
    with pytest.raises(ValueError, match="is not understood"):
        packetdrill.to_claim("every", text + line + "\n")


@pytest.mark.lab
@pytest.mark.slow
def test_every_script_holds_on_the_patched_kernel() -> None:
    outcomes = [s.outcome() for s in came()]
    assert len(outcomes) == len(added_files())
    assert [o.message for o in outcomes if not o.passed] == []


@pytest.mark.lab
@pytest.mark.slow
def test_a_script_that_expects_something_else_fails() -> None:
    mutants = 0
    for one in came():
        text = added_files()[one.claim.path.name]
        for leaves in _LEAVES.findall(text):
            later = re.sub(r"ack (\d+)", lambda m: f"ack {int(m[1]) + 1}", leaves)
            # a claim without any answer is refused as it is read
            for wrong in ("", later) if text.count(" > . ") > 1 else (later,):
                mutant = packetdrill.to_claim(one.claim.path.name, text.replace(leaves, wrong, 1))
                parsed = claim.parse(one.claim.path, mutant)
                outcome = replace(one, claim=parsed).outcome()
                assert not outcome.passed, f"{one.claim.path}: {leaves.strip()} -> {wrong.strip()}"
                mutants += 1
    assert mutants > len(added_files())
