# SPDX-License-Identifier: MIT
"""Command words from before 0.1.0: they still work, after one line that names the new ones."""

from pathlib import Path

import pytest
from conftest import Ackwise

from ackwise.cli.renamed import current

BULK = "python/ackwise/captures/bulk.pcap"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("diagnose --live --once dport = :443", "live --once dport = :443"),
        ("diagnose --once --live", "live --once"),
        ("diagnose --unit", "live --unit"),
        ("diagnose --live --dashboard", "live --dashboard"),
        ("diagnose --live --json - --pid 4711", "live --json --pid 4711"),
        ("diagnose --json=- --live --quiet --once", "live --json --once"),
        ("compare --capture x.pcap --list", "compare --list"),
        ("compare --capture --list", "compare --list"),
        ("compare --on linux --list", "compare --list"),
        ("compare --capture x.pcap --allow-long --seed 3", "replay x.pcap --seed 3"),
        ("compare --capture x.pcap --policy all", "replay x.pcap --policy all"),
        ("compare --policy a3 --capture=- --jobs 2 --json", "replay - --policy a3 --json"),
        ("compare --on linux --link adsl --stock", "lab run --link adsl --stock"),
        ("compare --plan demo --on=linux --keep k", "lab run demo --keep k"),
        ("compare --on device --plan p.toml --device mips", "device compare p.toml --device mips"),
        ("compare --on simulator --link adsl", "compare --link adsl"),
    ],
)
def test_old_words_become_new_ones(old: str, new: str) -> None:
    words, said = current(old.split())
    assert words == new.split()
    assert said
    assert current(words) == (words, "")


@pytest.mark.parametrize("words", ["", "diagnose x.pcap", "compare --link adsl", "live --json"])
def test_other_words_stay(words: str) -> None:
    assert current(words.split()) == (words.split(), "")


def test_one_line_names_the_new_words_and_the_result_is_the_same(
    ackwise: Ackwise, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    more = ("--policy", "linux", "--json", "--quiet")
    old, new = ackwise("compare", "--capture", BULK, *more), ackwise("replay", BULK, *more)
    assert old.err == (
        "ackwise: `compare --capture` is now `ackwise replay`; the old words go in the next "
        "version\n"
    )
    assert (old.code, old.out) == (new.code, new.out)
    assert (new.code, new.err) == (0, "")
    unit = ackwise("diagnose", "--live", "--unit")
    assert unit.err.startswith("ackwise: `diagnose --live` is now `ackwise live`; ")
    assert unit.out == ackwise("live", "--unit").out
