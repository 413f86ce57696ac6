# SPDX-License-Identifier: MIT
"""The roads on a machine without a person at it: what its commands answer."""

import os
import time
from pathlib import Path

import pytest

from ackwise.errors import RunError
from ackwise.host.leftovers import owned_name
from ackwise.roads import choice, session, unattended
from ackwise.roads.choice import Choice
from ackwise.roads.quickack import Quickack
from ackwise.roads.road import Fit, Wanted
from ackwise.roads.state import Keeper, Record


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Keeper.__init__, "__defaults__", (tmp_path,))


def test_nothing_in_force_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert unattended.main(["check"]) == 1
    assert capsys.readouterr().out == ""


def test_what_is_in_force_is_shown_with_its_counters(capsys: pytest.CaptureFixture[str]) -> None:
    record = Record(os.getpid(), owned_name(), "every", "a road", "", time.time())
    record.counters["merged"] = 7
    Keeper().write(record)
    assert unattended.main(["check"]) == 0
    assert capsys.readouterr().out == "every by a road: {'merged': 7}\n"


def test_a_policy_whose_process_has_ended_is_not_in_force() -> None:
    Keeper().write(Record(1, "ackwise-0-0", "every", "a road", "", time.time()))
    assert unattended.main(["check"]) == 1


def test_a_policy_without_a_road_is_refused_with_the_reasons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        choice, "choose", lambda _wanted: Choice(None, ((Quickack(), Fit(False, "it cannot")),))
    )
    with pytest.raises(RunError, match=r"no road for greedy: not by route .*: it cannot"):
        unattended.main(["greedy", "-"])


@pytest.mark.parametrize(("word", "device"), [("-", None), ("up", "up")])
def test_a_device_is_handed_on(
    monkeypatch: pytest.MonkeyPatch, word: str, device: str | None
) -> None:
    asked: list[Wanted] = []

    def chosen(wanted: Wanted) -> Choice:
        asked.append(wanted)
        return Choice(None, ())

    monkeypatch.setattr(choice, "choose", chosen)
    with pytest.raises(RunError):
        unattended.main(["every", word])
    assert asked[0].device == device


def test_stop_says_what_it_took_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "stop", lambda _keeper: ["this", "that"])
    assert unattended.main(["stop"]) == 0
    assert capsys.readouterr().out == "this\nthat\n"
