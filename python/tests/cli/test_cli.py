# SPDX-License-Identifier: MIT
"""The command line: one shape of help, plain English, suggestions, completion, man pages."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import click
import man
import pytest
from conftest import ROOT, Ackwise

from ackwise import engine, plans
from ackwise.cli import shape
from ackwise.cli.main import COMMANDS, cli
from ackwise.cli.shape import COMPLETE, Command, Group
from ackwise.errors import InputError

EVERY = {ctx.command_path: (command, ctx) for command, ctx in man.pages()}
RUNNABLE = [path for path, (command, _) in EVERY.items() if not isinstance(command, Group)]


def help_of(path: str) -> str:
    command, ctx = EVERY[path]
    return command.get_help(ctx)


def test_every_command_is_there() -> None:
    assert len(EVERY) >= 20
    for names in COMMANDS.values():
        assert {f"ackwise {name}" for name in names} <= set(EVERY)


@pytest.mark.parametrize("path", EVERY)
def test_help_has_one_shape(path: str) -> None:
    command, _ctx = EVERY[path]
    text = help_of(path)
    usage, summary = text.split("\n\n")[:2]
    assert usage.startswith(f"Usage: {path} ")
    assert command.short_help
    assert " ".join(summary.split()) == command.short_help
    assert not command.short_help.endswith(".")
    assert command.short_help[0].isupper()
    titles = re.findall(r"^([A-Z][^:\n]*):$", text, re.MULTILINE)
    assert titles[-1] in ("Examples", "Exit codes")
    assert path == "ackwise" or f"  {path}" in text.split("\nExamples:\n")[1].replace("sudo ", "")
    assert "show this help" in text
    assert max(map(len, text.split("\nExamples:\n")[0].splitlines())) <= 80


@pytest.mark.parametrize("path", EVERY)
def test_every_option_has_a_meaning_and_states_its_default(path: str) -> None:
    command, ctx = EVERY[path]
    for param in command.get_params(ctx):
        if getattr(param, "hidden", False):
            continue
        meaning = shape.meaning_of(param)
        assert meaning, param.opts
        assert not meaning[0].isspace()
        if isinstance(param.default, str | int | float) and not isinstance(param.default, bool):
            assert meaning.endswith(f"(default: {param.default})")
        assert meaning in " ".join(help_of(path).split())


def examples() -> list[str]:
    joined = ("\n".join(c.examples for c, _ in EVERY.values())).replace("\\\n", " ")
    return sorted({line for line in joined.splitlines() if line.strip()})


@pytest.mark.parametrize("line", examples())
def test_every_example_parses(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line.split(">")[0], comments=True)
    words = words[words.index("ackwise") + 1 :]
    ctx = cli.make_context("ackwise", list(words), obj=words)
    while isinstance(ctx.command, click.Group):
        rest = [*ctx._protected_args, *ctx.args]
        name, command, rest = ctx.command.resolve_command(ctx, rest)
        assert command is not None
        ctx = command.make_context(name, rest, parent=ctx)
    assert isinstance(ctx.command, Command)
    assert ctx.command_path in RUNNABLE


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "ackwise: missing command; see `ackwise --help`"),
        (("compre",), 'ackwise: unknown command "compre"; did you mean compare?; see'),
        (("xyzzy",), 'ackwise: unknown command "xyzzy"; see `ackwise --help`'),
        (("policy", "shw"), 'ackwise policy: unknown command "shw"; did you mean show?'),
        (("compare", "--polcy", "x"), "unknown option --polcy; did you mean --policy?; see `ack"),
        (("compare", "--link"), "ackwise compare: --link needs a value; see `ackwise compare --he"),
        (("compare", "--list=1"), "ackwise compare: --list takes no value"),
        (("compare", "adsl"), 'ackwise compare: unexpected argument "adsl"'),
        (("gateway", "model", "--up", "5mbit"), "ackwise gateway model: --down is missing"),
        (("lab", "run"), "ackwise: run: nothing to run; give PLAN, or --link with --workload"),
        (("diagnose",), "ackwise diagnose: CAPTURE... is missing"),
        (("compare", "--seed", "1.5"), 'ackwise: --seed: "1.5" is not a whole number; give 0 to'),
        (("completion", "tcsh"), 'SHELL: "tcsh" is not a choice; give one of bash, zsh, fish'),
        (("policy", "show", "linux", "--watch", "1s"), "--watch: cannot be combined with NAME"),
        (("lab", "run", "demo", "--json", "x", "--csv", "x"), "--csv: x: --json writes there too"),
    ],
)
def test_a_wrong_command_line_gets_one_line_that_helps(
    ackwise: Ackwise, words: tuple[str, ...], says: str
) -> None:
    said = ackwise(*words)
    assert (said.code, said.out) == (2, "")
    assert said.err.count("\n") == 1
    assert says in said.err


def test_version_and_help_are_success(ackwise: Ackwise) -> None:
    assert re.fullmatch(r"ackwise \S+\n", ackwise("--version").out)
    for words in (("--help",), ("-h",), ("compare", "--help"), ("lab", "build", "-h")):
        assert ackwise(*words).code == 0


def test_exit_codes_name_what_went_wrong(ackwise: Ackwise, monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(problem: BaseException) -> None:
        def fail(*_words: object) -> None:
            raise problem

        monkeypatch.setattr(engine, "policies", fail)

    monkeypatch.delenv("ACKWISE_DEBUG", raising=False)
    for problem, code in ((InputError("x"), 2), (KeyboardInterrupt(), 130), (ValueError("x"), 1)):
        raises(problem)
        assert ackwise("policy", "list").code == code
    assert "internal error: ValueError: x" in ackwise("policy", "list").err
    monkeypatch.setenv("ACKWISE_DEBUG", "1")
    with pytest.raises(ValueError, match="x"):
        ackwise("policy", "list")


@pytest.mark.parametrize("words", ["--help", "--version", "compare --help", "compare --lnk x"])
def test_help_and_errors_import_nothing_heavy(words: str) -> None:
    code = (
        "import sys; from ackwise.cli.main import main; "
        f"main({words.split()!r}); "
        "print(*sorted({m.split('.')[0] for m in sys.modules}), *sys.modules, file=sys.stderr)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(found.stderr.splitlines()[-1].split())
    assert not loaded & {
        "rich", "pyarrow", "plotly", "matplotlib", "ackwise.engine", "ackwise.lab", "ackwise.plans",
    }  # fmt: skip


@pytest.mark.parametrize("when", ["loading", "running"])
def test_an_interrupt_gets_no_traceback(when: str, tmp_path: Path) -> None:
    """The first module that a command loads interrupts it, or one that it loads when it runs."""
    name = {"loading": "click", "running": "ackwise_interrupts"}[when]
    (tmp_path / f"{name}.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(20)\n"
    )
    code = (
        "import sys; sys.argv[1:] = ['policy', 'list']; import ackwise.__main__ as start; "
        "from ackwise.cli import main; "
        f"main._run = lambda words: __import__({name!r}); sys.exit(start.main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT / 'python'}"},
    )  # fmt: skip
    wanted = {"loading": (-signal.SIGINT, ""), "running": (130, "ackwise: interrupted\n")}
    assert (done.returncode, done.stderr) == wanted[when]


def test_an_interrupt_inside_a_finalizer_is_not_lost() -> None:
    """Python reports what a finalizer raises, and goes on."""
    code = """
import os, signal, sys, time
from ackwise.cli import main

class Interrupted:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

def run(words):
    Interrupted()
    time.sleep(20)

main._run = run
sys.exit(main.main([]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (130, "ackwise: interrupted\n")


# --- completion ----------------------------------------------------------------------------------


def completions(words: str) -> list[str]:
    """What the parser offers for the last word, empty when the line ends in a space."""
    from click.shell_completion import ShellComplete

    *before, begin = words.split(" ")
    return [x.value for x in ShellComplete(cli, {}, "ackwise", COMPLETE).get_completions(
        before, begin)]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "offers"),
    [
        ("comp", ["compare", "completion"]),
        ("compare --link ads", ["adsl"]),
        ("compare --workload bul", ["bulk"]),
        ("sweep run --on ", ["simulator", "linux"]),
        ("compare --policy al", ["all"]),
        ("compare --policy riv", ["rivals"]),
        ("replay x.pcap --policy xn", ["xnu", "xnustretch"]),
        ("reproduce sep", ["separation"]),
        ("gateway plan x9 --format sys", ["systemd"]),
        ("gateway model --overhead pppoe-p", ["pppoe-ptm"]),
        ("lab conform --policy st", ["stock"]),
        ("doctor comp", ["compare"]),
        ("completion ", ["bash", "zsh", "fish"]),
        ("gateway st", ["status"]),
    ],
)
def test_names_are_completed(words: str, offers: list[str]) -> None:
    found = completions(words)
    assert set(offers) <= set(found)
    assert all(one.startswith(words.split(" ")[-1]) for one in found)


def test_every_shipped_name_is_offered() -> None:
    assert completions("compare --link ") == plans.shipped("links")
    assert completions("compare --plan ") == plans.shipped("")
    assert completions("policy show ") == [p["name"] for p in engine.policies()]


ASK = {
    "bash": """
        source {script}
        COMP_WORDS=({words}); COMP_CWORD={last}
        _ackwise_completion ackwise
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """,
    "zsh": """
        autoload -Uz compinit; compinit -u -D
        compadd() {{ print -rl -- ${{(P)@[-1]}} }}
        _describe() {{ print -rl -- ${{completions_with_descriptions%%:*}} }}
        source {script}
        words=({words}); CURRENT={after}
        _ackwise_completion
    """,
    "fish": """
        source {script}
        complete -C "{line}" | string split -f1 \\t
    """,
}


@pytest.mark.parametrize("shell", ASK)
def test_a_real_shell_completes(shell: str, tmp_path: Path, ackwise: Ackwise) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "completion"
    script.write_text(ackwise("completion", shell).out)
    start = tmp_path / "ackwise"
    start.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m ackwise "$@"\n')
    start.chmod(0o755)
    line = "ackwise compare --link ads"
    ask = ASK[shell].format(script=script, words=line, line=line, last=3, after=4)
    search = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    found = subprocess.run(
        [program, *(["-f"] if shell == "zsh" else []), "-c", ask],
        capture_output=True, text=True, check=False, cwd=tmp_path, timeout=300,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": search,
             "HOME": str(tmp_path)},
    )  # fmt: skip
    wanted = [name for name in plans.shipped("links") if name.startswith("ads")]
    assert wanted
    assert sorted(found.stdout.split()) == sorted(wanted), found.stderr


# --- man pages -----------------------------------------------------------------------------------


def test_every_command_has_a_man_page(tmp_path: Path) -> None:
    made = {path.name: path.read_text() for path in man.write(tmp_path)}
    assert set(made) == {f"{path.replace(' ', '-')}.1" for path in EVERY}
    for path, (command, _ctx) in EVERY.items():
        text = made[f"{path.replace(' ', '-')}.1"].replace("\\-", "-")
        for one in (p for p in command.params if isinstance(p, click.Option)):
            assert one.hidden or f"\n\\fB{one.opts[-1]}" in text


@pytest.mark.parametrize("tool", ["groff -ww -man -z", "mandoc -Tlint -Wwarning"])
def test_man_pages_have_no_warnings(tool: str, tmp_path: Path) -> None:
    words = tool.split()
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    for path in man.write(tmp_path):
        found = subprocess.run([*words, path], capture_output=True, text=True, check=False)
        assert (found.returncode, found.stdout, found.stderr) == (0, "", ""), path.name
