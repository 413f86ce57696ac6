# SPDX-License-Identifier: MIT
"""`ackwise reproduce bottleneck`: a step is run, diagnosed from its captures alone, and judged."""

from dataclasses import replace
from functools import cache

import pytest

from ackwise.diagnosis.advice import Advice
from ackwise_experiments.bottleneck import simulator, steps, story
from ackwise_experiments.bottleneck.scenario import LINUX, SIMULATOR
from ackwise_experiments.check import Check
from ackwise_experiments.experiment import Outcome
from ackwise_experiments.runner import Runner

TEN_MS = story.STEPS[1]


@cache
def _told(step: story.Step) -> Outcome:
    """The experiment with this step alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(story, "STEPS", (step,))
        return simulator.run(Runner(workers=1))


def _of(outcome: Outcome, group: str) -> list[Check]:
    return [one for one in outcome.checks if one.group.startswith(group)]


@pytest.mark.slow
def test_a_step_is_named_from_each_of_its_captures() -> None:
    outcome = _told(TEN_MS)
    named = _of(outcome, "the limit, as the diagnosis")
    assert [one.name for one in named] == [
        f"{TEN_MS.name}: capture at the {place}" for place in ("sender", "router", "receiver")
    ]
    assert {(one.published, one.measured) for one in named} == {("send-buffer", "send-buffer")}
    (speed,) = _of(outcome, "throughput")
    assert (speed.published, speed.passed) == (758, True)


@pytest.mark.slow
def test_a_step_that_is_not_as_published_fails_its_checks() -> None:
    outcome = _told(replace(TEN_MS, limit="receive-window", published_mbit_s=75.8))
    failed = [one.group for one in outcome.checks if not one.passed]
    assert set(failed) == {one.group for one in outcome.checks}


def test_the_story_has_the_published_figures() -> None:
    published = [step.published_mbit_s for step, _ in story.story(SIMULATOR)]
    assert published == [927, 758, 94, 143, 239, 456, 927]


def test_a_line_that_sets_a_buffer_is_read() -> None:
    line = 'sysctl -w net.ipv4.tcp_rmem="4096 131072 26214400"'
    assert steps.advised_by(line) == ("tcp_rmem", 26_214_400)
    assert steps.advised_by("sysctl -w net.ipv4.tcp_window_scaling=1") is None
    assert steps.advised_by("") is None


def _advised(line: str) -> steps.StepResult:
    named = steps.Named([("receive-window", 1.0)], Advice("", "", "", line))
    return steps.StepResult(story.STEPS[4], 1.0, 1.0, {"sender": named})


def test_of_several_advised_buffers_the_furthest_from_the_source_s_counts() -> None:
    lines = [f'sysctl -w net.ipv4.tcp_rmem="4096 131072 {mb}000000"' for mb in (25, 20, 24)]
    (one,) = steps._remedies([_advised(line) for line in lines])
    assert (one.measured, one.passed) == (20, False)
    (one,) = steps._remedies([_advised(lines[0]), _advised("")])
    assert (one.measured, one.passed) == (None, False)


@pytest.mark.parametrize("sysctl", ["tcp_wmem", "tcp_rmem"])
def test_a_buffer_is_set_in_the_lab_as_advised(sysctl: str) -> None:
    sysctls = TEN_MS.allowing(sysctl, 26_214_400).scenario(LINUX)["extras"]["sysctls"]
    assert int(sysctls[sysctl].split()[-1]) == pytest.approx(26_214_400, abs=2)
    (other,) = {"tcp_wmem", "tcp_rmem"} - {sysctl}
    assert sysctls[other] == TEN_MS.scenario(LINUX)["extras"]["sysctls"][other]
