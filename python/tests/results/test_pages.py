# SPDX-License-Identifier: MIT
"""Every page fits a phone and follows the system's scheme of colours, also while it is open."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import chromium
from conftest import ROOT, Ackwise
from devtools import Browser, browser
from spaces import written

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not chromium(), reason="chromium is not installed"),
]
PAPER = {"light": "#ffffff", "dark": "#171c22"}
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
BULK = str(ROOT / "python/ackwise/captures/bulk.pcap")
COMMANDS = {
    "compare": (
        *("compare", "--link", "adsl", "--policy", "linux", "--policy", "delayed:segments=8"),
        *("--runs", "2", "--duration", "500ms", "--quiet"),
    ),
    "replay": ("replay", BULK, "--policy", "every", "--policy", "delayed", "--quiet"),
    "diagnose": ("diagnose", BULK, "--quiet"),
}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(chromium(), tmp_path_factory.mktemp("profile")) as found:
        found.call("Emulation.setDeviceMetricsOverride", **PHONE)
        yield found


@pytest.fixture(params=[*COMMANDS, "sweep"])
def page(request: pytest.FixtureRequest, ackwise: Ackwise, tmp_path: Path) -> str:
    file = tmp_path / "page.html"
    if request.param == "sweep":
        space = written(tmp_path)
        run = ackwise("sweep", "run", str(space), str(tmp_path / "swept"), "--quiet")
        assert run.code == 0, run.err
        said = ackwise("sweep", "show", str(tmp_path / "swept"), "--report", str(file))
    else:
        said = ackwise(*COMMANDS[request.param], "--report", str(file))
    assert said.code == 0, said.err
    return file.as_uri()


def scheme(opened: Browser, name: str, media: str = "screen") -> None:
    features = [{"name": "prefers-color-scheme", "value": name}]
    opened.call("Emulation.setEmulatedMedia", media=media, features=features)


def test_a_page_follows_the_scheme_and_fits_a_phone(opened: Browser, page: str) -> None:
    scheme(opened, "dark")
    events = opened.open(page)
    plot = "document.querySelector('.plot[data-traces]:not([data-traces=\"0\"])')"
    opened.wait(f"{plot} && {plot}._fullLayout")
    for name, media in (
        ("dark", "screen"),
        ("light", "screen"),
        ("dark", "screen"),
        ("dark", "print"),
    ):
        scheme(opened, name, media)
        paper = PAPER["light" if media == "print" else name]
        opened.wait(f"{plot}._fullLayout.paper_bgcolor === '{paper}'")
        shown = "getComputedStyle(document.querySelector('section:not(.callout)')).backgroundColor"
        assert opened.evaluate(shown) == "rgb({}, {}, {})".format(*bytes.fromhex(paper[1:]))
    scheme(opened, "dark")
    wide = (
        "[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, pre')"
        f" && e.getBoundingClientRect().right > {PHONE['width']})"
    )
    opened.wait(f"({wide}).length === 0")
    opened.wait(f"document.documentElement.scrollWidth <= {PHONE['width']}")
    assert not [e for e in events if e["method"] == "Runtime.exceptionThrown"]
    unresolved = (
        "[...document.querySelectorAll('.plot svg *')].some(e => e.outerHTML.includes('var('))"
    )
    assert not opened.evaluate(unresolved)
