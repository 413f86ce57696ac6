# SPDX-License-Identifier: MIT
"""The documentation's site: every page opens in a real browser, and every link leads somewhere."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import api_reference
import click
import command_reference
import docs_site
import pytest
from browser import chromium
from conftest import Ackwise
from devtools import Browser, browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not importlib.util.find_spec("material"):
        pytest.skip("mkdocs-material is not installed; `make site` installs it")
    folder = tmp_path_factory.mktemp("documentation")
    done = subprocess.run(
        [sys.executable, docs_site.__file__, folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def page(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(chromium(), tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def complaints(site: Path, page: Browser) -> list[str]:
    """What is wrong with the pages below a folder, as a browser sees them."""
    wrong: list[str] = []
    ids: dict[str, set[str]] = {}
    links: list[tuple[str, str]] = []
    for file in sorted(site.rglob("*.html")):
        if file.name == "404.html":  # its links begin at the root of a web server
            continue
        for one in page.open(file.as_uri()):
            if one["method"] == "Network.requestWillBeSent":
                url = one["params"]["request"]["url"]
                if not url.startswith(("file:", "data:", "blob:", "about:")):
                    wrong.append(f"{file.name}: fetches {url}")
            elif one["method"] == "Runtime.exceptionThrown":
                wrong.append(f"{file.name}: {one['params']['exceptionDetails']['text']}")
        found = page.evaluate(
            """({
              ids: [...document.querySelectorAll("[id]")].map(one => one.id),
              links: [...document.querySelectorAll("a[href]")].map(one => one.href),
              broken: [...document.images]
                .filter(one => one.complete && !one.naturalWidth).map(one => one.src),
              title: document.querySelector("h1")?.innerText ?? "",
            })"""
        )
        wrong += [f"{file.name}: no picture {one.rpartition('/')[2]}" for one in found["broken"]]
        if not found["title"]:
            wrong.append(f"{file.name}: no heading")
        ids[file.as_uri()] = set(found["ids"])
        links += [(file.name, one) for one in found["links"]]
    there = {file.as_uri() for file in site.rglob("*") if file.is_file()}
    for name, link in links:
        where, _, anchor = link.partition("#")
        where = where.partition("?")[0]
        if not link.startswith(("file:", "https:")):
            wrong.append(f"{name}: {link} is not a link for this site")
        elif link.startswith("file:") and where not in there:
            wrong.append(f"{name}: {where.rpartition('/')[2]} leads to nothing")
        elif anchor and where in ids and anchor not in ids[where]:
            wrong.append(f"{name}: no place {anchor}")
    return wrong


@pytest.mark.slow
def test_every_page_opens_and_every_link_leads_to_a_place(site: Path, page: Browser) -> None:
    assert len(list(site.rglob("*.html"))) > 60
    assert complaints(site, page) == []


def test_the_browser_finds_what_is_broken(tmp_path: Path) -> None:
    (tmp_path / "two.html").write_text('<h1 id="there">Two</h1>', encoding="utf-8")
    (tmp_path / "one.html").write_text(
        '<h2>No heading</h2><img src="gone.svg"><script>throw Error()</script>'
        '<script src="http://127.0.0.1:9/elsewhere.js"></script>'
        '<a href="two.html#there">a</a><a href="two.html#gone">b</a><a href="three.html">c</a>',
        encoding="utf-8",
    )
    with browser(chromium(), tmp_path / "profile") as opened:
        found = complaints(tmp_path, opened)
    assert sorted(found) == [
        "one.html: Uncaught",
        "one.html: fetches http://127.0.0.1:9/elsewhere.js",
        "one.html: no heading",
        "one.html: no picture gone.svg",
        "one.html: no place gone",
        "one.html: three.html leads to nothing",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("quickack phase", "Glossary"),
        ("aw_decide", "ackwise/host.h"),
        ("prometheus", "ackwise gateway"),
    ],
)
def test_the_search_finds_a_word(site: Path, page: Browser, words: str, expected: str) -> None:
    page.open(f"{(site / 'index.html').as_uri()}?q={words.replace(' ', '%20')}")
    page.wait("document.querySelectorAll('.md-search-result__item').length")
    found = page.evaluate(
        "[...document.querySelectorAll('.md-search-result__item h1')].map(one => one.innerText)"
    )
    assert expected in found


@pytest.mark.slow
def test_the_index_of_the_search_holds_every_part(site: Path) -> None:
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    places = {entry["location"].partition("#")[0] for entry in index["docs"]}
    for part in (
        "index.html",
        "glossary.html",
        "commands/compare.html",
        "api/policy-h.html",
        "experiments/deadlock.html",
        "findings/index.html",
        "spec/rfc.html",
        "architecture.html",
        "contributing.html",
        "bench/index.html",
    ):
        assert part in places
    assert not [place for place in places if place.startswith("source/")]


@pytest.mark.slow
def test_nothing_in_the_site_names_the_machine_it_was_built_on(site: Path) -> None:
    here = str(docs_site.ROOT)
    named = [
        str(file.relative_to(site))
        for file in site.rglob("*")
        if file.suffix in (".html", ".json", ".js", ".css", ".xml")
        and here in file.read_text(encoding="utf-8")
    ]
    assert named == []


def doors(root: Path) -> dict[str, list[str]]:
    """The commands of the start page, by door."""
    page = (root / "docs/start/README.md").read_text(encoding="utf-8")
    return {
        door.partition("\n")[0]: re.findall(r"^    (.*)$", door, re.MULTILINE)
        for door in page.split("\n## ")[1:]
    }


def test_there_are_three_doors_of_three_commands(root: Path) -> None:
    assert [len(commands) for commands in doors(root).values()] == [3, 3, 3]


@pytest.mark.slow
def test_the_commands_behind_the_doors_work(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ackwise: Ackwise
) -> None:
    shutil.copyfile(root / "python/ackwise/captures/stream.pcap", tmp_path / "transfer.pcap")
    monkeypatch.chdir(tmp_path)
    done = 0
    for command in [line for lines in doors(root).values() for line in lines]:
        # What needs root or a kernel of its own has tests of its own.
        if command.startswith("ackwise ") and not re.match(
            r"ackwise (policy show|lab |live)", command
        ):
            said = ackwise(*command.split()[1:])
            assert said.code == 0, (command, said.err)
            done += 1
    assert done == 6
    assert (tmp_path / "report.html").is_file()


def quoted(root: Path) -> Iterator[tuple[str, str]]:
    """Every command whose output a page quotes, with that output."""
    for page in docs_site.tracked():
        if page.endswith(".md"):
            text = (root / page).read_text(encoding="utf-8")
            for block in re.findall(r"^    \$ ackwise .*(?:\n(?:    .*)?)*", text, re.MULTILINE):
                command, _, output = textwrap.dedent(block).partition("\n")
                if "./quarter.c" not in command:  # test_own_policy.py has the file
                    yield command.removeprefix("$ ackwise "), output


@pytest.mark.slow
def test_what_pages_quote_is_what_the_commands_print(root: Path, ackwise: Ackwise) -> None:
    found = list(quoted(root))
    assert {command.split()[0] for command, _ in found} == {
        "compare",
        "deadlock",
        "diagnose",
        "policy",
        "recommend",
    }
    for command, output in found:
        said = ackwise(*command.split())
        lines = [line.rstrip() for line in said.out.strip().splitlines()]
        assert output.strip().splitlines() == lines, command


def built(folder: Path, **pages: str) -> list[str]:
    """Complaints about a site of these pages."""
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return list(docs_site.dead_links(folder))


def test_dead_links_are_found(tmp_path: Path) -> None:
    text = (
        '<h2 id="here">x</h2><a href="#here">a</a><a href="two.html#there">b</a>'
        '<a href="#gone">c</a><a href="two.html#gone">d</a><a href="three.html">e</a>'
        '<a href="https://example.org/">f</a><img src="figure.svg">'
        '<script src="https://example.org/x.js"></script>'
    )
    assert built(tmp_path, one=text, two='<p id="there">x</p>') == [
        "one.html: #gone: no such place on that page",
        "one.html: two.html#gone: no such place on that page",
        "one.html: three.html leads to nothing",
        "one.html: figure.svg leads to nothing",
        "one.html: https://example.org/x.js is fetched from elsewhere",
    ]


def test_links_follow_pages_to_their_place_and_stay_in_code() -> None:
    layout = docs_site.Layout(["README.md", "docs/a.md", "core/conn.c", "docs/figures/f.svg"])
    layout.pages = {name: docs_site.place(name) for name in ("README.md", "docs/a.md")}
    text = (
        "<!-- SPDX-License-Identifier: MIT -->\n# A\n\n[up](../README.md#x),\n[c](../core/conn.c)\n"
        "![f](figures/f.svg) [out](https://example.org/)\n\n    [code](x.md)\n\n[here](#a)\n"
    )
    assert layout.rewritten("docs/a.md", text) == (
        "# A\n\n[up](overview.md#x),\n[c](source/core/conn.c.md)\n"
        "![f](figures/f.svg) [out](https://example.org/)\n\n    [code](x.md)\n\n[here](#a)\n"
    )
    assert layout.copied == {"docs/figures/f.svg"}
    with pytest.raises(docs_site.SiteError, match=r"docs/a.md: gone.md leads to nothing"):
        layout.target("docs/a.md", "gone.md")


def test_a_page_that_nobody_can_reach_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = [*docs_site.tracked(), "docs/elsewhere/lost.md"]
    monkeypatch.setattr(docs_site, "tracked", lambda: files)
    monkeypatch.setattr(
        docs_site, "made_pages", lambda: {"report/": {}, "commands/": {}, "api/": {}}
    )
    with pytest.raises(docs_site.SiteError, match=r"docs_site.py: docs/elsewhere/lost.md$"):
        docs_site.lay_out(tmp_path)


def test_the_reference_holds_every_command() -> None:
    pages = command_reference.pages()
    assert {"ackwise.md", "compare.md", "gateway.md", "lab.md", "policy.md"} <= pages.keys()
    assert "--segments-per-ack" in pages["gateway.md"]
    assert "## ackwise lab conform" in pages["lab.md"]


def test_the_reference_follows_a_tree_of_commands() -> None:
    tree = click.Group("tool", help=click.style("Does things.", bold=True))
    verbs = click.Group("lab", help="Runs things.")
    verbs.add_command(click.Command("build", help="Builds."))
    verbs.add_command(click.Command("inner", help="Not shown.", hidden=True))
    tree.add_command(verbs)
    found = dict(command_reference.help_texts(tree, ("tool",)))
    assert list(found) == [("tool",), ("tool", "lab"), ("tool", "lab", "build")]
    assert found["tool", "lab", "build"].startswith("Usage: tool lab build")
    assert "\n  Does things.\n" in found["tool",]


def test_the_reference_holds_every_function_of_the_headers(root: Path) -> None:
    pages = api_reference.pages(root / "core/include/ackwise")
    assert "The verdict in force after e." in pages["host-h.md"]
    names = {
        name
        for header in (root / "core/include/ackwise").iterdir()
        for entry in api_reference.entries(header.read_text(encoding="utf-8"))[1]
        for name in entry.names
    }
    assert {"aw_decide", "aw_conn", "aw_policy", "aw_clamp", "aw_div64"} <= names
