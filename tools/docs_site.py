# SPDX-License-Identifier: MIT
"""Builds the documentation site; fails on a dead link and on a page without navigation entry.

    python tools/docs_site.py [FOLDER]      the site is FOLDER/site; build/site without one

Pages are kept where they are useful in the repository. This program lays them out for the site,
rewrites the links between them, and adds generated pages: the reference of the command line and of
the core, and a report. The experiments' figures are drawn from their records.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import api_reference
import command_reference
import record_pages as experiments

ROOT = Path(__file__).resolve().parent.parent

# Navigation: a heading, and below it pages of the repository (patterns are sorted, README.md
# first), or a folder of generated pages (with / at the end).
NAVIGATION: dict[str, tuple[str, ...]] = {
    "Start": ("docs/start/README.md", "docs/start/*.md"),
    "Guide": (
        "README.md",
        "docs/live.md",
        "docs/install.md",
        "docs/run.md",
        "docs/module.md",
        "docs/image.md",
        "docs/library.md",
        "docs/gateway.md",
        "docs/plan-format.md",
        "docs/sweep.md",
        "docs/twin.md",
        "docs/results.md",
        "docs/captures.md",
        "linux/README.md",
        "report/",
        "docs/glossary.md",
        "docs/README.md",
    ),
    "Commands": ("commands/",),
    "Core API": ("core/README.md", "api/", "crates/*/README.md", "examples/*/README.md"),
    "Inside": (
        "ARCHITECTURE.md",
        "docs/inside/*.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
    ),
    "Experiments": ("docs/experiments/*.md", "experiments/README.md"),
    "Findings": ("docs/findings/*.md", "bench/README.md", "crates/*/tests/captures/README.md"),
    "Claims": ("spec/*.md", "docs/deviations.md"),
}
ROOT_PAGES = {
    "docs/start/README.md": "index.md",
    "README.md": "overview.md",
    "docs/README.md": "documents.md",
    "experiments/README.md": "experiments/package.md",  # index.md is that of docs/experiments
}
TITLES = {"index.md": "Start", "overview.md": "Overview"}  # other pages use their first heading

# The report shown as an example; README.md has the same command.
REPORT = (
    *("compare", "--link", "wifi", "--policy", "linux", "--policy", "delayed:segments=8"),
    *("--policy", "ratelimit", "--policy", "a3"),
)

LANGUAGES = {".c": "c", ".h": "c", ".py": "python", ".rs": "rust", ".toml": "toml"}
_LICENCE = re.compile(r"^<!-- SPDX-License-Identifier: .* -->\n")
_LINK = re.compile(r"\]\(([^()\s]+)\)")
# Links in code blocks, which are indented or fenced, stay unchanged.
_CODE = re.compile(r"(?m)^```(?:.|\n)*?^```$|^\n(?:^ {4}.*\n)+")


class SiteError(Exception):
    """The site cannot be built."""


def place(source: str) -> str:
    """Path within the site of a page of the repository."""
    if source in ROOT_PAGES:
        return ROOT_PAGES[source]
    path = PurePosixPath(source.removeprefix("docs/"))
    if path.name == "README.md":
        return str(path.with_name("index.md"))
    return str(path).lower() if path.suffix == ".md" else str(path)


def tracked() -> list[str]:
    """Every file of the repository, including untracked ones."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    return sorted(name for name in listed.split("\0") if name and (ROOT / name).is_file())


def matching(pattern: str, files: list[str]) -> list[str]:
    """Files that match a pattern, README.md first."""
    found = [one for one in files if PurePosixPath(one).match(pattern)]
    found = [one for one in found if one.count("/") == pattern.count("/")]
    return sorted(found, key=lambda one: (not one.endswith("README.md"), one))


@dataclass
class Layout:
    """Mapping from files of the repository to pages of the site."""

    files: list[str]
    pages: dict[str, str] = field(default_factory=dict)  # repository -> site
    shown: dict[str, str] = field(default_factory=dict)  # source files shown as pages
    copied: set[str] = field(default_factory=set)  # pictures

    def target(self, source: str, link: str) -> str:
        """Target on the site of a link in a page of the repository."""
        wanted = os.path.normpath(PurePosixPath(source).parent / link)
        real = str((ROOT / wanted).resolve().relative_to(ROOT)) if wanted != "." else "."
        for path in (wanted, f"{wanted}/README.md"):
            if path in self.pages:
                return self.pages[path]
        if real in self.files and PurePosixPath(real).suffix in (".svg", ".png"):
            self.copied.add(real)
            return place(real)
        if real in self.files or any(one.startswith(f"{real}/") for one in self.files):
            return self.shown.setdefault(real, f"source/{real}.md")
        raise SiteError(f"{source}: {link} leads to nothing")

    def rewritten(self, source: str, text: str) -> str:
        """A page with links rewritten for the site, and its title first."""
        text = _LICENCE.sub("", text)
        here = PurePosixPath(self.pages[source]).parent

        def link(match: re.Match[str]) -> str:
            path, mark, anchor = match[1].partition("#")
            if not path or urlsplit(path).scheme:
                return match[0]
            return f"]({os.path.relpath(self.target(source, path), here)}{mark}{anchor})"

        made, last = [], 0
        for code in _CODE.finditer(text):
            made += [_LINK.sub(link, text[last : code.start()]), code[0]]
            last = code.end()
        return "".join([*made, _LINK.sub(link, text[last:])])

    def source_page(self, path: str) -> str:
        """A source file or folder rendered as a page."""
        head = f"---\nsearch:\n  exclude: true\n---\n\n# `{path}`\n\n"
        if path in self.files:
            text = (ROOT / path).read_text(encoding="utf-8")
            return f"{head}~~~~{LANGUAGES.get(Path(path).suffix, 'text')}\n{text}~~~~\n"
        below = [s for s in self.files if s.startswith(f"{path}/") and "/." not in s]
        here = PurePosixPath(self.shown[path]).parent
        rows = []
        for one in below:
            to = self.pages.get(one) or self.shown.setdefault(one, f"source/{one}.md")
            rows.append(f"- [`{one.removeprefix(path + '/')}`]({os.path.relpath(to, here)})")
        return head + "\n".join(rows) + "\n"


def write(file: Path, text: str) -> None:
    """One page of the site."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def made_pages() -> dict[str, dict[str, str]]:
    """Generated pages, by folder."""
    command = " ".join(("ackwise", *REPORT, "\\\n        --report", "compare.html"))
    report = (
        "# A report\n\nWhat `--report` writes: one file with the table, the plots and their data. "
        "It opens without a network.\n\n"
        f"    {command}\n\n[Open it on a page of its own](compare.html)\n\n"
        '<iframe class="report" src="compare.html" title="Report of ackwise compare"></iframe>\n'
    )
    return {
        "report/": {"index.md": report},
        "commands/": command_reference.pages(),
        "api/": api_reference.pages(ROOT / "core/include/ackwise"),
    }


def lay_out(to: Path) -> dict[str, list[str]]:
    """Writes every page to a folder; returns the navigation."""
    layout = Layout(tracked())
    made = made_pages()
    navigation: dict[str, list[str]] = {}
    for heading, patterns in NAVIGATION.items():
        entries = navigation.setdefault(heading, [])
        for pattern in patterns:
            if pattern.endswith("/"):
                entries += [f"{pattern}{name}" for name in made[pattern]]
                continue
            for source in matching(pattern, layout.files):
                if source not in layout.pages:
                    layout.pages[source] = place(source)
                    entries.append(layout.pages[source])
    out = [name for name in layout.files if name.endswith(".md") and name not in layout.pages]
    if out:
        raise SiteError(f"not in the navigation of tools/docs_site.py: {', '.join(out)}")
    shutil.rmtree(to, ignore_errors=True)
    for folder, pages in made.items():
        for name, text in pages.items():
            write(to / folder / name, text)
    for source, page in layout.pages.items():
        text = layout.rewritten(source, (ROOT / source).read_text(encoding="utf-8"))
        write(to / page, experiments.FIGURE.sub(r"![\2](figures/\1.svg)", text))
    experiments.draw(to / "experiments" / "figures")
    done: set[str] = set()
    while left := layout.shown.keys() - done:  # a folder's page may add further files
        for path in sorted(left):
            write(to / layout.shown[path], layout.source_page(path))
        done |= left
    for picture in sorted(layout.copied) + matching("docs/assets/*.*", layout.files):
        (to / place(picture)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / picture, to / place(picture))
    return navigation


def build(folder: Path) -> Path:
    """The site built below a folder by mkdocs, with warnings as errors."""
    if folder.name.startswith("-"):
        raise SiteError("give a folder to build the site in")
    site, laid_out = folder / "site", folder / "site-pages"
    shutil.rmtree(site, ignore_errors=True)
    settings = {
        "INHERIT": str(ROOT / "mkdocs.yml"),
        "docs_dir": str(laid_out),
        "site_dir": str(site),
        "nav": [
            {heading: [{TITLES[page]: page} if page in TITLES else page for page in pages]}
            for heading, pages in lay_out(laid_out).items()
        ],
    }
    config = laid_out.with_suffix(".yml")
    config.write_text(json.dumps(settings), encoding="utf-8")
    run = [sys.executable, "-m"]
    subprocess.run(
        [*run, "ackwise", *REPORT, "--report", "compare.html"],
        cwd=laid_out / "report",
        check=True,
        capture_output=True,
    )
    # mkdocs writes a time into pages: use the commit's, so that equal inputs give equal bytes.
    time = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout.strip()
    made = subprocess.run(
        [*run, "mkdocs", "build", "--strict", "--config-file", str(config)],
        env={**os.environ, "SOURCE_DATE_EPOCH": time, "NO_MKDOCS_2_WARNING": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if made.returncode:
        said = [line for line in made.stdout.splitlines() if not line.startswith("INFO")]
        raise SiteError("\n".join(said))
    return site


class Html(HTMLParser):
    """Links, loaded resources and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.add(given.get("id", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") != "canonical":
            self.loaded.append(given.get("href", ""))
        elif "src" in given:
            self.loaded.append(given["src"])


def dead_links(site: Path) -> Iterator[str]:
    """Links of the built site that lead nowhere, and resources that a page would fetch from
    elsewhere."""
    pages = {
        file: Html(file.read_text(encoding="utf-8"))
        for file in sorted(site.rglob("*.html"))
        if file.name not in ("404.html", "compare.html")
    }
    for file, page in pages.items():
        for link in (*page.links, *page.loaded):
            parts = urlsplit(link)
            where = f"{file.relative_to(site)}: {link}"
            if parts.scheme in ("http", "https") or parts.netloc:
                if link in page.loaded:
                    yield f"{where} is fetched from elsewhere"
                continue
            if parts.scheme:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if not target.is_file():
                yield f"{where} leads to nothing"
            elif (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].anchors
            ):
                yield f"{where}: no such place on that page"


def main() -> int:
    """Exit code 1 when a link is dead."""
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "build"
    try:
        site = build(folder)
    except (SiteError, subprocess.CalledProcessError) as problem:
        print(problem, file=sys.stderr)
        return 1
    found = list(dead_links(site))
    for line in found:
        print(line, file=sys.stderr)
    if not found:
        print(site / "index.html")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
