# SPDX-License-Identifier: MIT
"""The lists of policies and the kernel's modules follow from the files of core/policy, that of
rivals from core/rivals."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TEMPLATE = (ROOT / "core" / "policy" / "TEMPLATE.c").read_text(encoding="utf-8")


@pytest.fixture
def core(tmp_path: Path) -> Path:
    place = tmp_path / "core"
    shutil.copytree(ROOT / "core", place, ignore=shutil.ignore_patterns("build"))
    return place


def policies(core: Path, option: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [core / "policies", option], capture_output=True, text=True, check=False, cwd="/"
    )


def add(
    core: Path, file: str, policy: str, name: str | None = None, folder: str = "policy"
) -> None:
    text = TEMPLATE.replace("aw_policy_template", f"aw_policy_{policy}")
    text = text.replace('"template"', f'"{name or policy}"')
    (core / folder / file).write_text(text, encoding="utf-8")


def listed(core: Path, file: str = "policy/policies.def") -> list[str]:
    text = (core / file).read_text(encoding="utf-8")
    return re.findall(r"^POLICY\((\w+)\)$", text, re.MULTILINE)


def test_a_file_is_all_that_a_policy_needs(core: Path) -> None:
    before = listed(core)
    add(core, "patient.c", "patient")
    assert policies(core, "--check").returncode == 1
    assert policies(core, "--write").returncode == 0
    assert listed(core) == [*before, "patient"]
    assert policies(core, "--check").returncode == 0
    assert "patient : patient" in policies(core, "--modules").stdout.splitlines()


def test_a_rival_is_listed_apart_and_is_part_of_no_kernel(core: Path, tmp_path: Path) -> None:
    ours, rivals = listed(core), listed(core, "rivals/rivals.def")
    add(core, "patient.c", "patient", folder="rivals")
    assert "rivals/rivals.def is not up to date" in policies(core, "--check").stderr
    assert policies(core, "--write").returncode == 0
    assert listed(core) == ours
    assert listed(core, "rivals/rivals.def") == [*rivals, "patient"]
    assert "patient" not in policies(core, "--modules").stdout
    linux = tmp_path / "linux"
    linux.mkdir()
    shutil.copy(ROOT / "linux" / "series", linux)
    assert series(linux, "core").stdout == series(ROOT / "linux", "core").stdout
    add(core, "patient.c", "patient")
    assert "defined more than once: patient" in policies(core, "--check").stderr


def test_neither_a_library_nor_one_file_holds_a_rival(tmp_path: Path) -> None:
    subprocess.run([ROOT / "core" / "amalgamate", tmp_path], check=True)
    whole = (tmp_path / "ackwise.c").read_text(encoding="ascii")
    assert "aw_policy_delayed" in whole
    shown = subprocess.run(
        ["make", "-s", "-B", "-n", "-C", ROOT / "core", "lib"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "policy/delayed.c" in shown
    for rival in listed(ROOT / "core", "rivals/rivals.def"):
        assert f"aw_policy_{rival}" not in whole
        assert f"rivals/{rival}.c" not in shown


def test_a_policy_whose_file_is_gone_leaves_the_list_and_a_moved_line_stays(core: Path) -> None:
    text = (core / "policy" / "policies.def").read_text(encoding="utf-8")
    moved = text.replace("POLICY(every)\n", "") + "POLICY(every)\n"
    (core / "policy" / "policies.def").write_text(moved, encoding="utf-8")
    (core / "policy" / "greedy.c").unlink()
    assert policies(core, "--write").returncode == 0
    assert listed(core)[-1] == "every"
    assert "greedy" not in listed(core)


@pytest.mark.parametrize(
    ("file", "policy", "name", "message"),
    [
        ("patient.c", "patient", "hasty", 'aw_policy_patient is named "hasty"; write .name'),
        ("other.c", "patient", "patient", "other.c: defines no aw_policy_other"),
        ("every2.c", "every", "every", "every2.c: defines no aw_policy_every2"),
    ],
)
def test_a_policy_its_file_and_its_symbol_go_by_one_name(
    core: Path, file: str, policy: str, name: str, message: str
) -> None:
    add(core, file, policy, name)
    for option in ("--write", "--check", "--modules"):
        done = policies(core, option)
        assert done.returncode == 1
        assert message in done.stderr
    assert listed(core) == listed(ROOT / "core")


def test_a_static_policy_is_reported(core: Path) -> None:
    add(core, "patient.c", "patient")
    file = core / "policy" / "patient.c"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("const struct aw_policy", "static const struct aw_policy"))
    assert "not static" in policies(core, "--check").stderr


def test_a_name_is_defined_once(core: Path) -> None:
    add(core, "patient.c", "patient")
    text = (core / "policy" / "patient.c").read_text(encoding="utf-8")
    twice = text + '\nconst struct aw_policy aw_policy_every = {\n\t.name = "every",\n};\n'
    (core / "policy" / "patient.c").write_text(twice, encoding="utf-8")
    assert "defined more than once: every" in policies(core, "--check").stderr


def test_policies_that_share_code_share_a_module(core: Path) -> None:
    modules = policies(core, "--modules").stdout.splitlines()
    assert "a3 csa3 : a3 a3fewer csa3" in modules
    named = [word for line in modules for word in line.split(" : ")[1].split()]
    assert sorted(named) == sorted(listed(core))


def series(linux: Path, version: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([linux / "series", version], capture_output=True, text=True, check=False)


def test_the_kernel_gets_a_module_for_each_policy(core: Path, tmp_path: Path) -> None:
    linux = tmp_path / "linux"
    linux.mkdir()
    shutil.copy(ROOT / "linux" / "series", linux)
    add(core, "patient.c", "patient")
    stale = series(linux, "core")
    assert "core/policies --write" in stale.stderr
    assert not stale.stdout
    policies(core, "--write")
    made = series(linux, "core")
    assert made.returncode == 0
    tree = tmp_path / "tree"
    tree.mkdir()
    subprocess.run(["git", "apply", "-"], cwd=tree, input=made.stdout, text=True, check=True)
    placed = tree / "net/ipv4/ackpolicy/core"
    rules = (placed / "modules.mk").read_text(encoding="utf-8")
    assert "tcp_ack_patient-y := core/module/patient.o core/policy/patient.o\n" in rules
    for policy in listed(core):
        holders = [
            module
            for module in (placed / "module").glob("*.c")
            if f"\tACK_POLICY({policy}),\n" in module.read_text(encoding="utf-8")
        ]
        assert len(holders) == 1
        alias = f'MODULE_ALIAS("tcp_ack_{policy}")' in holders[0].read_text(encoding="utf-8")
        assert alias == (holders[0].stem != policy)


@pytest.mark.parametrize("version", ["6.12", "7.3"])
def test_the_series_is_a_mailbox_of_the_core_and_all_patches(version: str, tmp_path: Path) -> None:
    made = series(ROOT / "linux", version)
    assert made.returncode == 0
    split = ["git", "mailsplit", f"-o{tmp_path}"]
    subprocess.run(split, input=made.stdout, text=True, check=True, capture_output=True)
    mails = [mail.read_text(encoding="utf-8") for mail in sorted(tmp_path.iterdir())]
    patches = sorted((ROOT / "linux" / "patches" / version).glob("*.patch"))
    numbers = [int(patch.name[:4]) for patch in patches]
    (place,) = set(range(1, len(mails) + 1)) - set(numbers)
    assert mails.pop(place - 1) == series(ROOT / "linux", "core").stdout
    assert mails == [patch.read_text(encoding="utf-8") for patch in patches]


def test_a_series_that_is_not_there_is_named(tmp_path: Path) -> None:
    for version in ("5.10", "lab", "../6.12x"):
        wrong = series(ROOT / "linux", version)
        assert (wrong.returncode, wrong.stdout) == (1, "")
        assert f"{version}: no such series; there are 6.12 7.3" in wrong.stderr
    assert series(ROOT / "linux", "").returncode == 2


def test_the_patch_holds_each_file_of_the_core_unchanged(tmp_path: Path) -> None:
    printed = series(ROOT / "linux", "core").stdout
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=printed, text=True, check=True)
    core = ROOT / "core"
    folders = {core / "include" / "ackwise": "include/ackwise", core: "net/ipv4/ackpolicy/core"}
    kept = 0
    for folder, place in folders.items():
        for copy in (tmp_path / place).rglob("*.*"):
            file = folder / copy.relative_to(tmp_path / place)
            if file.is_file():
                first, rest = copy.read_text(encoding="utf-8").split("\n", 1)
                assert file.read_text(encoding="utf-8").split("\n", 1)[1] == rest
                assert "SPDX-License-Identifier: GPL-2.0-only OR MIT" in first
                kept += 1
    own = {"TEMPLATE.c", "registry.c"}  # of the core outside the kernel
    policies_of_core = {file.name for file in (core / "policy").glob("*.[ch]")} - own
    placed = tmp_path / "net/ipv4/ackpolicy/core/policy"
    assert {file.name for file in placed.iterdir()} == policies_of_core
    included = re.findall(r'#include [<"]ackwise/([\w.]+)[>"]', printed)
    assert {file.name for file in (tmp_path / "include/ackwise").iterdir()} == set(included)
    assert kept == len(policies_of_core) + len(set(included)) + len({"policy.c", "reason.c"})
