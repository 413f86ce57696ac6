# SPDX-License-Identifier: MIT
"""The report in a real browser: every plot draws marks, nothing complains, nothing is fetched."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conftest import Ackwise

COMPARE_PLOTS = ["throughput", "reasons", "rtt", "reasons-time", "sequence"]


def chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    pytest.skip("no chromium on this machine; `make setup-test` installs it")


class Page(HTMLParser):
    """Counts drawn marks below each element of class plot."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: dict[str, int] = {}
        self.rows: dict[str, int] = {}
        self.text: list[str] = []
        self._open: list[tuple[str, str]] = []  # tag, id

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in ("br", "img", "input", "meta", "link", "hr"):
            self._open.append((tag, given.get("id") or ""))
        inside = [name for _, name in self._open if name]
        if tag == "path" and given.get("d"):
            for name in inside:
                self.marks[name] = self.marks.get(name, 0) + 1
        if tag == "tr":
            for name in inside:
                self.rows[name] = self.rows.get(name, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        for i in range(len(self._open) - 1, -1, -1):
            if self._open[i][0] == tag:
                del self._open[i:]
                return

    def handle_data(self, data: str) -> None:
        if not any(tag in ("script", "style") for tag, _ in self._open):
            self.text.append(data)


def rendered(report: Path, profile: Path) -> tuple[Page, str]:
    """The page after its scripts ran, and what the browser's console said."""
    done = subprocess.run(
        [
            chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", f"--user-data-dir={profile}", "--enable-logging=stderr",
            "--window-size=1400,3000", "--virtual-time-budget=30000", "--dump-dom",
            report.as_uri(),
        ],
        capture_output=True, text=True, errors="replace", timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    page = Page()
    page.feed(done.stdout)
    console = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return page, console


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
    from test_capture import pcap, steady_transfer

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
