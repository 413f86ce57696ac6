# SPDX-License-Identifier: MIT
"""HTML pages: their elements, what a browser draws, and the outputs quoted in them."""

import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest


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
        self.links: list[str] = []
        self._open: list[tuple[str, str]] = []  # tag, id

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in ("br", "img", "input", "meta", "link", "hr"):
            self._open.append((tag, given.get("id") or ""))
        self.links += [to for key in ("href", "xlink:href") if (to := given.get(key))]
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


class Elements(HTMLParser):
    """What a browser's parser would make of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.title = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "title":
            self.title += data


def elements(text: str) -> Elements:
    """The elements of a page."""
    page = Elements()
    page.feed(text)
    page.close()
    return page


def output(page: str, name: str) -> list[str]:
    """A block of a page."""
    text = page.split(f"<!-- output: {name} -->\n")[1].split("<!-- end of output -->")[0]
    return [line.removeprefix("    ").rstrip() for line in text.strip("\n").splitlines()]
