# SPDX-License-Identifier: MIT
"""The report in a real browser: every plot draws marks, nothing complains, nothing is fetched."""

import re
from pathlib import Path

import pytest
from browser import rendered
from conftest import Ackwise

COMPARE_PLOTS = ["throughput", "reasons", "rtt", "reasons-time", "sequence"]


@pytest.fixture
def comparison(ackwise: Ackwise, tmp_path: Path) -> Path:
    report = tmp_path / "report.html"
    said = ackwise(
        "compare", "--link", "adsl", "--link", "mips-receiver", "--workload", "bulk",
        "--workload", "both-ways", "--policy", "linux", "--policy", "a3",
        "--policy", "delayed:segments=64,delay_ms=400", "--duration", "2s", "--runs", "2",
        "--quiet", "--report", str(report),
    )  # fmt: skip
    assert said.code == 0, said.err
    return report


def test_the_page_is_self_contained_and_not_large(comparison: Path) -> None:
    text = comparison.read_text(encoding="utf-8")
    assert len(text) < 15_000_000
    assert text.count("<script") - text.count('"<script') >= 3
    head = text[: text.index("<main")]
    assert not re.search(r"(?:src|href)\s*=", head)
    assert "default-src 'none'" in head
    assert text.count("* plotly.js v") == 1


@pytest.mark.slow
def test_every_plot_of_a_comparison_draws(comparison: Path, tmp_path: Path) -> None:
    page, console = rendered(comparison, tmp_path / "profile")
    assert console == ""
    for name in COMPARE_PLOTS:
        assert page.marks.get(f"plot-{name}", 0) > 3, f"{name}: nothing was drawn"
    assert page.rows["table"] == 1 + 3
    assert page.rows["overview"] == 1 + 2 * 3
    said = " ".join(" ".join(page.text).split())
    for words in ("Where goodput is more than 1% below linux", "ackwise compare --link adsl",
                  "Fewest ACKs within 1% of the best goodput", "seeds 1 to 2"):  # fmt: skip
        assert words in said


@pytest.mark.slow
def test_names_from_files_stay_text(ackwise: Ackwise, tmp_path: Path) -> None:
    """A plan from a stranger must not become markup or script in the page."""
    evil = '</script><script>document.title = "owned"</script><img src=x onerror=alert(1)>@@DATA@'
    (tmp_path / "evil.toml").write_text(
        f"title = '''{evil}'''\nsource = '''{evil}'''\n"
        '[down]\nrate = "1mbit"\ndelay = "5ms"\nqueue_packets = 20\n'
        '[up]\nrate = "1mbit"\ndelay = "5ms"\nqueue_packets = 20\n'
    )
    report = tmp_path / "report.html"
    said = ackwise(
        "compare", "--link", str(tmp_path / "evil.toml"), "--policy", "linux", "--duration", "1s",
        "--runs", "1", "--quiet", "--report", str(report),
    )  # fmt: skip
    assert said.code == 0, said.err
    page, console = rendered(report, tmp_path / "profile")
    assert console == ""
    assert evil in " ".join(page.text)
    assert page.marks["plot-throughput"] > 3


@pytest.mark.slow
def test_every_plot_of_a_capture_draws(ackwise: Ackwise, tmp_path: Path) -> None:
    from pcaps import pcap, steady_transfer

    (tmp_path / "steady.pcap").write_bytes(pcap(steady_transfer(400, 700)))
    report = tmp_path / "report.html"
    said = ackwise("replay", str(tmp_path / "steady.pcap"), "--quiet", "--report", str(report))
    assert said.code == 0, said.err
    page, console = rendered(report, tmp_path / "profile")
    assert console == ""
    for name in ("ratio", "latency", "reasons", "reasons-time", "sequence"):
        assert page.marks.get(f"plot-{name}", 0) > 3, f"{name}: nothing was drawn"
    assert page.rows["table"] > 5
    assert "Ratio to the optimum" in " ".join(page.text)
