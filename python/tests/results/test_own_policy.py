# SPDX-License-Identifier: MIT
"""A policy in a C file of the user: compiled, checked and compared, or refused in one line."""

import json
import re
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, Ackwise, Said, spawn

from ackwise import engine
from ackwise.errors import InputError
from ackwise.host import bpf
from ackwise.plans import own
from ackwise.plans.policy import PolicyChoice, parse

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
COMPARE = ("compare", "--link", "lan-10m", "--runs", "1", "--duration", "300ms", "--quiet")
POLICY = """\
#include <ackwise/policy.h>
struct state {{ aw_u32 asked, more[64]; }};
static struct aw_order order(void *state, const struct aw_params *p, const struct aw_seen *seen)
{{
	struct state *s = state;

	(void)p;
	(void)s;
	{line}
}}
const struct aw_policy aw_policy_{name} = {{
	.name = "{name}", .summary = "a test", .source = "this test", .state_bytes = 4, .order = order,
}};
"""
SOUND = "return seen->why == AW_WHY_SENT ? aw_order(1, 0) : aw_now(AW_REASON_SEGMENT_COUNT);"


def policy(folder: Path, name: str, line: str = SOUND, *, named: str = "") -> str:
    file = folder / f"{name}.c"
    file.write_text(POLICY.format(name=named or name, line=line))
    return str(file)


def apart(*words: str) -> Said:
    """The command in a process of its own: a policy that was added stays until that ends."""
    with spawn(*words) as process:
        out, err = process.communicate()
    return Said(process.returncode, out, err)


def test_a_copy_of_a_policy_acts_as_that_policy(tmp_path: Path) -> None:
    text = (ROOT / "core/policy/delayed.c").read_text()
    file = tmp_path / "later.c"
    file.write_text(
        re.sub(r"aw_policy_delayed\b|\"delayed\"", lambda m: m[0].replace("delayed", "later"), text)
    )
    words = ("--policy", "delayed:segments=4", "--policy", f"{file}:segments=4", "--json", "-")
    said = apart(*COMPARE, *words)
    assert said.code == 0, said.err
    cells = {cell["policy"]: cell for cell in json.loads(said.out)["tables"][0]["cells"]}
    means = [
        {key: value["mean"] for key, value in cells[name]["metrics"].items()}
        for name in ("delayed:segments=4", "later:segments=4")
    ]
    assert means[0] == means[1]
    assert means[0]["segments_per_ack"] > 2


def test_a_file_is_given_twice_with_other_parameters(tmp_path: Path) -> None:
    text = (ROOT / "core/policy/delayed.c").read_text()
    file = tmp_path / "twice.c"
    file.write_text(
        text.replace("aw_policy_delayed", "aw_policy_twice").replace('"delayed"', '"twice"')
    )
    words = [f"--policy={file}:segments={count}" for count in (2, 8)]
    said = apart(*COMPARE, *words, "--json", "-")
    assert said.code == 0, said.err
    acks = {
        cell["policy"]: cell["metrics"]["acks"]["mean"]
        for cell in json.loads(said.out)["tables"][0]["cells"]
    }
    assert acks["twice:segments=8"] < acks["twice:segments=2"]


@pytest.mark.parametrize(
    ("command", "known"),
    [("replay", ["captured"]), ("diagnose", ["captured", "linux"])],
)
def test_it_runs_on_a_capture(tmp_path: Path, command: str, known: list[str]) -> None:
    file = policy(tmp_path, "mine")
    capture = str(ROOT / "python/ackwise/captures/bulk.pcap")
    said = apart(command, capture, "--policy", file, "--json", "-", "--quiet")
    assert said.code == 0, said.err
    document = json.loads(said.out)
    cells = document.get("replay", document)["directions"][0]["cells"]
    assert [cell["policy"] for cell in cells] == [*known, "mine"]


@pytest.mark.parametrize(
    ("name", "line", "why"),
    [
        ("typo", "return aw_order(1, 0)", r"typo\.c:9:\d+: error: "),
        ("missing", "return aw_oder(1, 0);", r"missing\.c:9:\d+: .*\Waw_oder\W"),
        ("silent", ";", r"silent\.c:\d+:\d+: error: "),
        ("loud", f'int puts(const char *); puts("x"); {SOUND}', "calls puts: a policy calls only"),
        ("outside", f"s->more[40]++; {SOUND}", "violates what holds for every policy: "),
        ("random", "return aw_order(seen->random, 0);", "violates .*random bits"),
        ("null", "return *(struct aw_order *)state = *(struct aw_order *)0;", "violates .*SIG"),
        ("linux", SOUND, 'there is a policy "linux"'),
        ("xnu", SOUND, 'there is a policy "xnu"'),
        ("rivals", SOUND, 'there is a policy "rivals"'),
        ("My-own", SOUND, "a policy has the name of its file"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(
    ackwise: Ackwise, tmp_path: Path, name: str, line: str, why: str
) -> None:
    said = ackwise(*COMPARE, "--policy", policy(tmp_path, name, line))
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert said.err.startswith(f"ackwise: --policy: {tmp_path}/{name}.c:")
    assert re.search(why, said.err), said.err


def test_a_policy_that_does_not_return_is_stopped(
    ackwise: Ackwise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "_CHECK_S", 0.5)
    said = ackwise(*COMPARE, "--policy", policy(tmp_path, "endless", f"for (;;) ; {SOUND}"))
    assert said.code == 2
    assert "did not end within 0.5 s" in said.err


def test_the_policy_is_named_as_the_file(ackwise: Ackwise, tmp_path: Path) -> None:
    said = ackwise(*COMPARE, "--policy", policy(tmp_path, "misnamed", named="other"))
    assert said.code == 2
    assert "must define `aw_policy_misnamed`" in said.err
    assert "it defines `aw_policy_other`" in said.err
    engine.policies.cache_clear()
    assert "other" not in {entry["name"] for entry in engine.policies()}


def test_no_file_that_others_could_exchange_is_run(ackwise: Ackwise, tmp_path: Path) -> None:
    file = policy(tmp_path, "exposed")
    tmp_path.chmod(0o777)
    said = ackwise(*COMPARE, "--policy", file)
    assert said.code == 2
    assert f"others can write to {tmp_path}" in said.err


def test_a_plan_runs_no_file(ackwise: Ackwise, tmp_path: Path) -> None:
    file = policy(tmp_path, "mine")
    plan = tmp_path / "plan.toml"
    keys = {"title": "t", "source": "s", "links": ["lan-10m"], "workloads": ["bulk"]}
    plan.write_text(
        "\n".join(f"{k} = {json.dumps(v)}" for k, v in {**keys, "policies": [file]}.items())
    )
    said = ackwise("compare", "--plan", str(plan))
    assert said.code == 2
    assert "is a policy only for `ackwise compare`" in said.err


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The core's `dynamic` as if it were a file of the user's."""
    file = tmp_path / "dynamic.c"
    file.write_text((ROOT / "core/policy/dynamic.c").read_text())
    for header in (ROOT / "core/policy").glob("*.h"):
        (tmp_path / header.name).write_text(header.read_text())
    monkeypatch.setattr(own, "_added", {"dynamic": file})
    return file


@pytest.mark.skipif(bool(bpf.missing()), reason="no libbpf")
@pytest.mark.parametrize(
    ("made", "wanted"), [(own.kernel_policy, b"dynamic"), (own.discipline, b"ackwise")]
)
def test_it_becomes_bpf_programs(
    made: Callable[[PolicyChoice], bytes], wanted: bytes, ours: Path
) -> None:
    own._programs.cache_clear()
    chosen = parse("dynamic:draw=1", "test")
    library, data = bpf.libbpf(), made(chosen)
    with bpf.opened(library, str(ours), data) as held:
        assert library.bpf_object__find_map_by_name(held, wanted)
    assert own.spec_of(chosen) == f"{ours}:draw=1"


def test_a_file_that_becomes_none_is_told(ours: Path) -> None:
    own._programs.cache_clear()
    ours.write_text(ours.read_text() + "#ifdef __bpf__\n#error not here\n#endif\n")
    with pytest.raises(InputError, match=r"does not become BPF programs: .*dynamic\.c:.*not here"):
        own.kernel_policy(parse("dynamic", "test"))
    own._programs.cache_clear()


def test_run_takes_a_file(tmp_path: Path) -> None:
    file = policy(tmp_path, "mine")
    said = apart("run", file, "--systemd")
    assert said.code == 0, said.err
    assert re.search(rf"^ExecStart=\S+ run {re.escape(file)}$", said.out, re.M)
    assert apart("run", policy(tmp_path, "bad", "return 1;"), "--dry-run").code == 2


def test_the_page_s_policy_has_the_page_s_table(tmp_path: Path) -> None:
    page = (ROOT / "docs/start/policy.md").read_text(encoding="utf-8")
    code, shown, *_ = (
        textwrap.dedent(block)
        for block in re.findall(r"(?:^(?:    .*)?\n)+", page, re.MULTILINE)
        if "    " in block
    )
    (tmp_path / "quarter.c").write_text(code.strip() + "\n")
    command, _, table = shown.strip().partition("\n")
    words = command.removeprefix("$ ackwise ").split()
    with spawn(*words, "--quiet", cwd=tmp_path) as process:
        out, err = process.communicate()
    assert process.returncode == 0, err
    assert out.split() == table.split()
