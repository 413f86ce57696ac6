# SPDX-License-Identifier: MIT
"""Policies as BPF programs: what `ackwise policy load` says, and that the examples are the core's.

That a policy does in the kernel what it should is checked there, by `linux/check bpf`.
"""

import json
import re
import subprocess
from pathlib import Path

import pytest

from ackwise import engine
from ackwise.errors import InputError, RunError
from ackwise.host import bpf, sockets

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "linux" / "bpf").glob("*.bpf.c"))


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("objects")
    make = ["make", "-s", "-C", str(ROOT / "linux" / "bpf"), f"O={folder}", "all", "test"]
    subprocess.run(make, check=True)
    return folder


@pytest.fixture
def capable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A kernel that seems to have everything required."""
    monkeypatch.setattr(sockets, "AVAILABLE", tmp_path)
    monkeypatch.setattr(bpf, "KERNEL_TYPES", tmp_path)
    monkeypatch.setattr(bpf, "PINNED", tmp_path / "pinned")
    monkeypatch.setattr(bpf, "MODULE", tmp_path / "no module")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.name)
def test_an_example_states_the_parameters_of_its_policy(example: Path) -> None:
    name = example.name.removesuffix(".bpf.c")
    (policy,) = (p for p in engine.policies() if p["name"] == name)
    stated = re.search(
        r"^AW_BPF_POLICY\(bpf(\w+), ([\w |]+?)((?:, \d+)*)\);$", example.read_text(), re.M
    )
    assert stated and stated[1] == name
    values = [int(value) for value in stated[3].split(", ")[1:]]
    assert len(values) == len(policy["params"])
    for value, one in zip(values, policy["params"], strict=True):
        assert one["min"] <= value <= one["max"], one["name"]
    core = (ROOT / "core" / "policy" / f"{name}.c").read_text()
    wanted = [
        f"AW_BPF_{flag.upper()}"
        for flag in ("reads_arrivals", "asked_on_read", "uses_random")
        if f"\t.{flag} = 1," in core
    ]
    assert stated[2] == (" | ".join(wanted) or "0")


def test_a_file_that_holds_no_policy_is_refused(
    objects: Path, tmp_path: Path, capable: None
) -> None:
    with pytest.raises(InputError, match="does not exist"):
        bpf.load(str(tmp_path / "nothing"))
    text = tmp_path / "text"
    text.write_text("policy")
    with pytest.raises(InputError, match="no object file; make one with `clang -target bpf`"):
        bpf.load(str(text))
    with pytest.raises(InputError, match="not an object file of BPF programs: "):
        bpf.load("/bin/true")
    source = tmp_path / "none.c"
    source.write_text('__attribute__((section("license"), used)) char l[] = "GPL";\n')
    none = tmp_path / "none.o"
    compiler = ["clang", "-target", "bpf", "-O2", "-g", "-c", "-o"]
    subprocess.run([*compiler, str(none), str(source)], check=True)
    with pytest.raises(InputError, match=r"0 policies \(\.struct_ops\); give a file with one"):
        bpf.load(str(none))


def test_a_damaged_object_is_refused(objects: Path, tmp_path: Path, capable: None) -> None:
    whole = (objects / "delayed.bpf.o").read_bytes()
    for kept in (5, 64, len(whole) // 2, len(whole) - 100):
        cut = tmp_path / "cut.o"
        cut.write_bytes(whole[:kept])
        with pytest.raises((InputError, RunError), match=r"cut\.o: "):
            bpf.load(str(cut))


def test_a_kernel_without_policies_is_named(
    objects: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sockets, "AVAILABLE", tmp_path / "none")
    with pytest.raises(RunError, match=r"no ACK policies; .*or build it with linux/patches"):
        bpf.load(str(objects / "delayed.bpf.o"))
    monkeypatch.setattr(sockets, "AVAILABLE", tmp_path)
    monkeypatch.setattr(bpf, "KERNEL_TYPES", tmp_path / "none")
    with pytest.raises(RunError, match="no BTF; build it with DEBUG_INFO_BTF"):
        bpf.load(str(objects / "delayed.bpf.o"))


def test_what_the_module_lacks_is_named(
    objects: Path, capable: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bpf, "MODULE", tmp_path)
    monkeypatch.setattr(bpf, "MODULE_TYPES", tmp_path / "none")
    with pytest.raises(RunError, match="built without BTF; build it again with a build tree"):
        bpf.load(str(objects / "delayed.bpf.o"))
    monkeypatch.setattr(bpf, "MODULE_TYPES", tmp_path)
    monkeypatch.setattr(bpf, "MODULE_LIBBPF", (99, 0))
    with pytest.raises(RunError, match=r"does not find the operations of a module; .* 99\.0 or"):
        bpf.load(str(objects / "delayed.bpf.o"))


def test_a_kernel_that_refuses_is_quoted(objects: Path, capable: None) -> None:
    with pytest.raises(RunError, match=r"the kernel refuses it:\n  \| "):
        bpf.load(str(objects / "writes-seen.bpf.o"))


def test_only_what_was_loaded_can_be_unloaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bpf, "PINNED", tmp_path / "pinned")
    assert bpf.loaded() == []
    with pytest.raises(InputError, match='"one" is not loaded; loaded: none'):
        bpf.unload("one")
    bpf.PINNED.mkdir()
    (bpf.PINNED / "one").touch()
    (bpf.PINNED / "two").touch()
    assert bpf.loaded() == ["one", "two"]
    for wrong in ("", "..", "../pinned/one", "three"):
        with pytest.raises(InputError, match="is not loaded; loaded: one, two"):
            bpf.unload(wrong)
    with pytest.raises(RunError, match="pinned/one: "):
        bpf.unload("one")  # nothing of BPF
    assert bpf.loaded() == ["one", "two"]


def test_the_list_of_loaded_policies_is_json_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from ackwise.cli import main

    monkeypatch.setattr(bpf, "PINNED", tmp_path)
    assert main.main(["policy", "list", "--loaded"]) == 0
    assert capsys.readouterr().out == "no policy is loaded\n"
    (tmp_path / "one").touch()
    assert main.main(["policy", "list", "--loaded", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == ["one"]
