# SPDX-License-Identifier: MIT
"""Titles and file names of a stranger's plan in CSV, JSON, Parquet and the report."""

import csv
import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet
import pytest
from browser import elements
from conftest import Ackwise
from hostile import INTERFACES, TITLES, is_inert
from test_terminal import compare, link

from ackwise.errors import printable
from ackwise.results import export
from ackwise_experiments.figure import Figure, Panel, Series, drawn

FORMULA = re.compile(r"(?:^|;)\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
NAMES = dict.fromkeys(t[:60] for t in (*TITLES, *INTERFACES) if not set("/\0") & set(t))


@dataclass(frozen=True)
class Written:
    """One comparison in every form."""

    names: list[str]
    titles: list[str]
    folder: Path


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A link for each hostile title, in a file with a hostile name."""
    from ackwise.cli import main

    folder = tmp_path_factory.mktemp("hostile")
    names = list(NAMES)
    titles = [f"{TITLES[i % len(TITLES)]}.".strip() for i in range(len(names))]
    links = [link(folder, name, title) for name, title in zip(names, titles, strict=True)]
    to = [f"--{form}={folder / 'out'}.{form}" for form in ("json", "csv", "parquet", "report")]
    assert main.main([*compare(*links), "--quiet", *to]) == 0
    return Written(names, titles, folder)


def test_a_spreadsheet_finds_no_formula_and_all_numbers(written: Written) -> None:
    data = (written.folder / "out.csv").read_bytes()
    assert is_inert(data.decode())
    rows = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    assert len(rows) == len(written.names)
    for name, row in zip(written.names, rows, strict=True):
        for cell in row.values():
            assert cell is not None
            assert not FORMULA.search(cell), cell
        assert row["link"].replace("'", "") == printable(name).replace("'", "")
        assert float(row["goodput_bps"]) > 0
        assert int(row["acks"]) > 0


def test_numbers_of_a_csv_file_stay_numbers() -> None:
    row: export.Row = {
        "a": -1,
        "b": -2.5e-9,
        "c": "-1",
        "d": None,
        "e": "x;=1",
        "f": "delayed:segments=8",
    }
    (read,) = csv.DictReader(io.StringIO(export.csv_bytes([row]).decode()))
    assert read == {
        "a": "-1", "b": "-2.5e-09", "c": "'-1", "d": "", "e": "x;'=1", "f": "delayed:segments=8",
    }  # fmt: skip
    assert float(read["a"]), float(read["b"])


def test_json_and_parquet_hold_the_exact_text(written: Written) -> None:
    text = (written.folder / "out.json").read_text(encoding="utf-8")
    assert is_inert(text)
    plan = json.loads(text)["plan"]
    assert [one["name"] for one in plan["links"]] == written.names
    assert [one["title"] for one in plan["links"]] == written.titles
    table = pyarrow.parquet.read_table(written.folder / "out.parquet")
    utf8 = [name.encode(errors="backslashreplace").decode() for name in written.names]
    assert table["link"].to_pylist() == utf8


def test_a_report_has_the_same_elements_whatever_titles_say(
    ackwise: Ackwise, written: Written, tmp_path: Path
) -> None:
    harmless = tmp_path / "harmless.html"
    path = link(tmp_path, "harmless", "harmless")
    assert ackwise(*compare(path), "--quiet", "--report", str(harmless)).code == 0
    expected = elements(harmless.read_text(encoding="utf-8"))
    text = (written.folder / "out.report").read_text(encoding="utf-8")
    found = elements(text)
    assert found.tags == expected.tags
    assert sum(tag == "script" for tag, _ in found.tags) == 3
    data = text.partition('id="data">')[2].partition("</script>")[0]
    assert not re.search(r"[<>&]", data)
    plan = json.loads(data)["document"]["plan"]
    assert [one["title"] for one in plan["links"]] == written.titles


def test_a_hostile_capture_s_name_stays_the_title_of_its_page(
    ackwise: Ackwise, tmp_path: Path
) -> None:
    from pcaps import pcap, steady_transfer

    file = tmp_path / "<script>x\x1b\u202e<.pcap"
    file.write_bytes(pcap(steady_transfer(400, 700)))
    page, rows = tmp_path / "page", tmp_path / "rows"
    said = ackwise("replay", str(file), "--policy", "linux", "--report", str(page),
                   "--parquet", str(rows))  # fmt: skip
    assert said.code == 0, said.err
    assert is_inert(said.out + said.err)
    found = elements(page.read_text(encoding="utf-8"))
    assert found.title.strip() == f"ackwise: {printable(str(file))}"
    assert sum(tag == "script" for tag, _ in found.tags) == 3


def test_a_capture_whose_name_is_not_utf_8_is_refused(ackwise: Ackwise, tmp_path: Path) -> None:
    from pcaps import pcap, steady_transfer

    file = tmp_path / "\udcff.pcap"
    file.write_bytes(pcap(steady_transfer(4, 7)))
    said = ackwise("replay", str(file))
    assert said.code == 2
    assert (
        said.err == f"ackwise: {tmp_path}/\\udcff.pcap: the file's name is not UTF-8; rename it\n"
    )


def test_text_of_a_figure_is_text() -> None:
    # XML cannot hold control characters, and the font lacks others
    titles = [title for title in TITLES if title.isascii() and title.isprintable()][:24]
    panel = Panel(titles[0], titles[1], [Series(t, [1.0, 2.0], [1.0, 2.0]) for t in titles])
    svg = ElementTree.fromstring(drawn(Figure("x", titles[2], [panel])))  # noqa: S314
    for element in svg.iter():
        assert element.tag.rpartition("}")[2] not in ("script", "image", "foreignObject")
        assert not any(name.startswith("on") for name in element.attrib)
    said = [text for element in svg.iter() for text in element.itertext()]
    assert "<img src=x onerror=alert(1)>" in said
