# SPDX-License-Identifier: MIT
"""The checks that simulator, lab and host share: each can fail, and says of which run."""

from ackwise_experiments.separation import paper
from ackwise_experiments.separation.paper import DOWN, FIFO, UP

QUEUES = {"ACK separation": ("two queues",)}


def _failed(
    shares: dict[tuple[str, str], list[float]], *, as_published: bool, each_run: bool
) -> set[str]:
    checks = paper.share_checks(
        lambda queue, flow: shares[queue, flow],
        QUEUES,
        as_published=as_published,
        each_run=each_run,
    )
    return {check.name for check in checks if not check.passed}


def test_every_run_is_held_to_the_bounds() -> None:
    good = {
        (FIFO, UP): [33.0, 45.0],
        (FIFO, DOWN): [90.0, 100.0],
        ("two queues", UP): [93.0, 99.0],
        ("two queues", DOWN): [93.0, 99.0],
    }
    assert _failed(good, as_published=True, each_run=True) == set()
    bad = {**good, (FIFO, UP): [33.0, 45.1], ("two queues", DOWN): [92.9, 99.0]}
    assert _failed(bad, as_published=True, each_run=True) == {
        "upload's share, FIFO, highest",
        "download's share, ACK separation, lowest",
    }
    assert _failed(bad, as_published=False, each_run=False) == {
        "download's share, ACK separation, lower end of the CI"
    }


def test_of_queues_that_share_a_row_the_worst_counts() -> None:
    shares = {"one": [99.0, 94.0], "other": [95.0, 93.5]}
    up, _ = paper.share_checks(
        lambda queue, _flow: shares[queue],
        {"either": ("one", "other")},
        as_published=False,
        each_run=True,
    )
    assert up.measured == 93.5


def test_throughput_is_held_to_the_published_figures() -> None:
    def names(scale: float, beside: float) -> list[str]:
        checks = paper.throughput_checks(
            lambda flow: scale * paper.paper_figure(f"{flow} alone"), beside, ", in cells"
        )
        assert len(checks) == 3
        return [check.name for check in checks if not check.passed]

    assert names(1.0, 250) == []
    assert names(1.06, 250) == ["upload alone, in cells", "download alone, in cells"]
    assert names(1.0, 313) == ["upload beside a download, FIFO, in cells"]


def test_only_the_paper_s_hosts_have_published_shares() -> None:
    def published(as_published: bool) -> set[object]:
        checks = paper.share_checks(
            lambda _queue, _flow: [50.0], QUEUES, as_published=as_published, each_run=False
        )
        return {check.published for check in checks}

    assert published(False) == {None}
    assert None not in published(True)
