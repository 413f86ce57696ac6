# SPDX-License-Identifier: MIT
"""The page of a diagnosis in a real browser: graphs, shared zoom, packets, and its size."""

import base64
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, elements
from conftest import ROOT
from devtools import Browser, browser
from hostile import TITLES

from ackwise import engine, replays
from ackwise.diagnosis import report, table, whatif
from ackwise.diagnosis.anonymize import anonymized
from ackwise.diagnosis.report import chosen, filters, packed
from ackwise.diagnosis.report.marks import MARKS
from ackwise.diagnosis.sentences import COLORS, SAYINGS
from ackwise.plans.policy import parse_all
from ackwise.replays import ReplaySettings

BULK = str(ROOT / "python/ackwise/captures/bulk.pcap")
GRAPHS = ["sequence", "throughput", "acks", "rtt", "flight"]
LIBRARY_BYTES = 5_000_000  # of the library that draws

Series = Any  # lists of tracks; the columns that a test reads differ


@pytest.fixture(scope="module")
def diagnosis() -> Any:
    return engine.diagnose([BULK])


@pytest.fixture(scope="module")
def series(diagnosis: Any) -> Series:
    found = chosen.series(table.rank(diagnosis), [BULK])
    assert found is not None
    return found


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(chromium(), tmp_path_factory.mktemp("profile")) as found:
        width = {"width": 1400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        found.call("Emulation.setDeviceMetricsOverride", **width)
        yield found


def shown(opened: Browser, folder: Path, page: bytes) -> Browser:
    """The page, open and drawn; it complains of nothing and fetches nothing."""
    file = folder / "report.html"
    file.write_bytes(page)
    events = opened.open(file.as_uri())
    opened.wait("document.querySelector('footer')")
    events += opened.events
    for one in events:
        assert one["method"] not in ("Runtime.exceptionThrown", "Log.entryAdded"), one
        assert one["method"] != "Runtime.consoleAPICalled", one
        if one["method"] == "Network.requestWillBeSent":
            url = one["params"]["request"]["url"]
            assert url.startswith(("file:", "data:", "blob:")), url
    return opened


def page_of(diagnosis: Any, series: Series | None) -> bytes:
    ranked = table.rank(diagnosis)
    return report.of_diagnosis(diagnosis, ranked, series, f"ackwise diagnose {BULK}")


def click(page: Browser, x: float, y: float) -> None:
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


def middle_of(page: Browser, element: str) -> tuple[float, float]:
    page.evaluate(f"document.querySelector('{element}').scrollIntoView({{block: 'center'}})")
    box = page.evaluate(
        f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])"
        f"(document.querySelector('{element}').getBoundingClientRect())"
    )
    return box[0], box[1]


@pytest.mark.slow
def test_every_graph_draws_and_zooms_with_the_others(
    opened: Browser, tmp_path: Path, diagnosis: Any, series: Series
) -> None:
    page = shown(opened, tmp_path, page_of(diagnosis, series))
    ranges = "JSON.stringify(GRAPHS.map(g => g.target._fullLayout.xaxis.range.map(x => x * 1e6)))"
    for name in GRAPHS:
        marks = page.evaluate(f"document.querySelectorAll('#plot-{name} path[d]').length")
        assert marks > 5, name
        bars = page.evaluate(f"document.querySelectorAll('#plot-{name} .barlayer path').length")
        assert bars > 3, f"{name}: no band of limits"
        described = page.evaluate(
            f"['labelledby', 'describedby'].map(a => document.getElementById("
            f"document.getElementById('plot-{name}').getAttribute('aria-' + a)).textContent)"
        )
        assert all(described), name
    low, high = page.evaluate("state.whole")
    click(page, *middle_of(page, "#closer"))
    page.wait(f"state.view[1] - state.view[0] < {0.51 * (high - low)}")
    for start, end in json.loads(page.evaluate(ranges)):
        assert end - start == pytest.approx((high - low) / 2, rel=1e-6)
    drag(page, "rtt")
    page.wait(f"state.view[1] - state.view[0] < {0.3 * (high - low)}")
    found = json.loads(page.evaluate(ranges))
    assert len({tuple(map(round, one)) for one in found}) == 1
    assert page.evaluate("document.querySelectorAll('#table tbody tr').length") == 20
    click(page, *middle_of(page, "#whole"))
    page.wait(f"state.view[1] - state.view[0] > {0.99 * (high - low)}")


def drag(page: Browser, graph: str) -> None:
    """Zooms into the middle of a graph with the mouse."""
    x, y = middle_of(page, f"#plot-{graph} .nsewdrag")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x - 150, y=y)
    page.call(
        "Input.dispatchMouseEvent", type="mousePressed", x=x - 150, y=y, button="left", clickCount=1
    )
    for step in range(1, 11):
        at = x - 150 + 30 * step
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=at, y=y, button="left")
    page.call(
        "Input.dispatchMouseEvent",
        type="mouseReleased",
        x=x + 150,
        y=y,
        button="left",
        clickCount=1,
    )


@pytest.mark.slow
def test_other_policies_stand_below_their_transfer(
    opened: Browser, tmp_path: Path, diagnosis: Any, series: Series
) -> None:
    settings = ReplaySettings(parse_all(["linux", "every"], ""), 500, 10**7, 1, None, None)
    replayed = replays.run(BULK, settings, trace=False).document
    page = shown(opened, tmp_path, page_of(whatif.joined(diagnosis, replayed), series))
    cells = replayed["directions"][0]["cells"]
    column = (
        "[...document.querySelectorAll('#policies tbody td:nth-child({})')].map(c => c.textContent)"
    )
    assert page.evaluate(column.format(1)) == [cell["policy"] for cell in cells]
    assert page.evaluate(column.format(2)) == [str(cell["acks"]) for cell in cells]
    assert page.evaluate(column.format(3)) == [
        f"{100 * (c['acks_saved'] or 0):.1f}%" for c in cells
    ]
    best = replayed["directions"][0]["optimum"]["acks"]
    assert f"hindsight: {best} ACKs" in page.evaluate(
        "document.querySelector('#policies').textContent"
    )


@pytest.mark.slow
def test_a_click_shows_packets_and_a_filter_that_wireshark_takes(
    opened: Browser, tmp_path: Path, diagnosis: Any, series: Series
) -> None:
    page = shown(opened, tmp_path, page_of(diagnosis, series))
    # few packets in view, so that the mouse finds one
    page.evaluate("show([state.series.data.from_us[200] - 5, state.series.data.from_us[203] + 5])")
    middle_of(page, "#plot-flight .nsewdrag")
    x, y = page.evaluate(
        """(() => {
          const plot = document.getElementById("plot-flight");
          const {xaxis, yaxis} = plot._fullLayout;
          const box = plot.querySelector(".nsewdrag").getBoundingClientRect();
          const number = state.series.data.first[202];
          const n = plot.data[0].customdata.findIndex(p => p && p.first === number);
          return [box.x + xaxis.l2p(plot.data[0].x[n]), box.y + yaxis.l2p(plot.data[0].y[n])];
        })()"""
    )
    number = page.evaluate("state.series.data.first[202]")
    click(page, x, y)
    page.wait("document.getElementById('filter').value.includes('frame.number')")
    assert page.evaluate("document.getElementById('picked').textContent") == f"packet {number}"
    asked = page.evaluate("document.getElementById('filter').value")
    if shutil.which("tshark"):
        said = subprocess.run(
            ["tshark", "-r", BULK, "-Y", asked, "-T", "fields", "-e", "frame.number"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert said.stdout.split() == [str(number)]
    page.call("Browser.grantPermissions", permissions=["clipboardReadWrite"])
    click(page, *middle_of(page, "#copy"))
    page.wait("document.getElementById('copy').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == asked


@pytest.mark.slow
def test_the_page_holds_the_packets_that_the_engine_read(
    opened: Browser, tmp_path: Path, diagnosis: Any, series: Series
) -> None:
    page = shown(opened, tmp_path, page_of(diagnosis, series))
    for name in ("data", "acks"):
        for column, values in series[0][name].items():
            if column == "each":
                continue
            unit = 1000 if column.endswith("_ns") else 1
            shown_as = column.replace("_ns", "_us")
            expected = [None if v is None else v // unit for v in values]
            if any(expected):
                assert page.evaluate(f"state.series.{name}.{shown_as}") == expected, column
    half = table.rank(diagnosis)[0].half
    sums = page.evaluate(
        "['delivered_bytes', 'duplicate'].map(name => binned(state.series.acks, name, state.whole,"
        " emptyBins(50)).reduce((x, y) => x + y))"
    )
    acks: Any = half["counts"]["acks"]
    assert sums == pytest.approx([acks["acked_bytes"], acks["duplicate"]])


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_scheme_of_colours_and_prints_light(
    opened: Browser, tmp_path: Path, diagnosis: Any, series: Series, scheme: str
) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    opened.call("Emulation.setEmulatedMedia", media="screen", features=features)
    page = shown(opened, tmp_path, page_of(diagnosis, series))
    background = "document.querySelector('.plot')._fullLayout.paper_bgcolor"
    assert page.evaluate(background) == {"light": "#ffffff", "dark": "#171c22"}[scheme]
    page.call("Emulation.setEmulatedMedia", media="print", features=features)
    page.wait(f"{background} === '#ffffff'")
    printed = base64.b64decode(page.call("Page.printToPDF")["data"])
    assert printed.startswith(b"%PDF")
    assert 1 <= printed.count(b"/Type /Page\n") <= 6
    opened.call("Emulation.setEmulatedMedia", media="", features=[])


def many(diagnosis: Any, count: int) -> Any:
    """The diagnosis with `count` connections."""
    one = diagnosis["connections"][-1]
    connections = []
    for index in range(count):
        endpoints = [f"10.{index >> 16}.{index >> 8 & 255}.{index & 255}:{1024 + index % 60000}"]
        connections.append({**one, "index": index, "endpoints": [*endpoints, "192.0.2.1:443"]})
    return {**diagnosis, "connections": connections}


@pytest.mark.slow
def test_a_hundred_thousand_connections_are_a_list_to_search(
    opened: Browser, tmp_path: Path, diagnosis: Any, series: Series
) -> None:
    crowd = many(diagnosis, 100_000)
    made = page_of(crowd, [series[0]] * chosen.DRAWN_MAX)
    assert len(made) < report.DATA_BYTES_MAX + LIBRARY_BYTES
    page = shown(opened, tmp_path, made)
    rows = "document.querySelectorAll('#ranked tbody tr').length"
    assert page.evaluate(rows) == 100
    note = page.evaluate("document.getElementById('found').textContent")
    assert f"{100_000 - report.LISTED_MAX} that lost less time are not on this page" in note
    page.evaluate(
        "search.value = '10.0.0.77:'; search.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    assert page.evaluate(rows) == 1
    click(page, *middle_of(page, "#ranked tbody button"))
    page.wait("document.body.dataset.drawn === '77'")
    assert "10.0.0.77:1101" in page.evaluate("document.getElementById('lines').textContent")
    assert "lost more time have them" in page.evaluate(
        "document.getElementById('graphs-note').textContent"
    )


@pytest.mark.slow
def test_a_capture_from_standard_input_has_no_graphs_and_says_why(
    opened: Browser, tmp_path: Path, diagnosis: Any
) -> None:
    assert chosen.series(table.rank(diagnosis), ["-"]) is None
    page = shown(opened, tmp_path, page_of(diagnosis, None))
    assert "standard input" in page.evaluate("document.getElementById('graphs-note').textContent")
    assert page.evaluate("document.querySelector('.stack').hidden")


def test_who_pipes_a_capture_is_told_that_there_are_no_graphs(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "ackwise", "diagnose", "-", "--report", str(tmp_path / "x.html")]
    with (ROOT / "python/ackwise/captures/bulk.pcap").open("rb") as capture:
        done = subprocess.run(words, stdin=capture, capture_output=True, text=True, check=True)
    assert "ackwise: the page has no graphs: standard input" in done.stderr


@pytest.mark.slow
def test_a_capture_without_data_is_a_page_too(
    opened: Browser, tmp_path: Path, diagnosis: Any
) -> None:
    page = shown(opened, tmp_path, page_of({**diagnosis, "connections": []}, []))
    assert "No connection" in page.evaluate("document.body.textContent")


def test_hostile_text_stays_text(diagnosis: Any, series: Series) -> None:
    harmless = elements(page_of(diagnosis, series).decode())
    files = [{**diagnosis["files"][0], "name": title} for title in TITLES]
    words = "".join(TITLES)
    named: Any = {**diagnosis, "files": files}
    ranked = table.rank(diagnosis)
    made = report.of_diagnosis(named, ranked, series, words, words).decode()
    assert elements(made).tags == harmless.tags
    data = made.partition('id="data">')[2].partition("</script>")[0]
    assert not re.search(r"[<>&]", data)
    assert json.loads(data)["files"] == list(TITLES)


@pytest.mark.slow
def test_hostile_text_is_not_obeyed(
    opened: Browser, tmp_path: Path, diagnosis: Any, series: Series
) -> None:
    words = "".join(title for title in TITLES if title.isprintable())
    files = [{**diagnosis["files"][0], "name": words}] * 5
    page = shown(opened, tmp_path, page_of({**diagnosis, "files": files}, series))
    shown_as = f"{words}, {words}, {words} and 2 more files"
    assert page.evaluate("document.querySelector('h1').textContent") == shown_as
    assert page.evaluate("document.images.length") == 0


def test_every_limit_and_mark_has_a_colour_of_its_own() -> None:
    assert list(COLORS) == list(SAYINGS)
    assert len(set(COLORS.values())) == len(COLORS)
    assert len({look.color for look in MARKS.values()} | set()) == len(MARKS)


def test_points_are_shared_by_need() -> None:
    assert chosen.shared([], 10) == []
    assert chosen.shared([3, 100, 4], 27) == [3, 20, 4]
    assert chosen.shared([100, 100], 31) == [15, 16]
    assert chosen.shared([5, 5], 100) == [5, 5]


def test_few_spans_keep_the_time_and_the_longest_limit_of_each_part() -> None:
    found: Any = [
        {"from_ns": 1000 * n, "to_ns": 1000 * (n + 1), "limit": "link" if n % 10 < 7 else "timeout"}
        for n in range(1000)
    ]
    few: Any = packed.spans(found, 100)
    assert len(few["limit"]) == 100
    assert set(few["limit"]) == {"link"}
    assert few["end_us"] == 1000
    assert sum(few["from_us"]) == 990
    whole = packed.spans(found, 1000)
    assert whole["limit"] == [one["limit"] for one in found]
    assert packed.spans([], 10) == {"from_us": [], "end_us": 0, "limit": []}


@pytest.mark.parametrize(
    ("endpoints", "expected"),
    [
        (
            ("10.0.0.1:5000", "10.0.0.2:80"),
            "ip.addr == 10.0.0.1 && ip.addr == 10.0.0.2 && tcp.port == 5000 && tcp.port == 80",
        ),
        (
            ("[2001:db8::1]:1", "[2001:db8::2]:2"),
            "ipv6.addr == 2001:db8::1 && ipv6.addr == 2001:db8::2"
            " && tcp.port == 1 && tcp.port == 2",
        ),
        (("host-1:port-1", "host-2:port-2"), ""),
    ],
)
def test_a_filter_names_addresses_and_ports(endpoints: tuple[str, str], expected: str) -> None:
    assert filters.of_connection(endpoints) == expected


def test_an_anonymous_page_has_no_address_port_or_name(diagnosis: Any, series: Series) -> None:
    text = page_of(anonymized(diagnosis), series).decode()
    data = text.partition('id="data">')[2].partition("</script>")[0]
    assert "host-1:port-" in data
    for connection in diagnosis["connections"]:
        for endpoint in connection["endpoints"]:
            assert endpoint not in data
            assert endpoint.rpartition(":")[0] not in data
    assert "bulk" not in data
