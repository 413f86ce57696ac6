# SPDX-License-Identifier: MIT
"""Policies of the user: a C file, compiled, checked, and added to the engine's list until the
process ends. The checks are the core's property tests, which know no policy by name.

The same file becomes BPF programs for the kernel that is running.
"""

import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ackwise import engine
from ackwise.errors import InputError, RunError, quoted
from ackwise.host import folders, programs
from ackwise.host.files import create
from ackwise.host.leftovers import temporary_folder
from ackwise.plans.policy import ALL, PATH, RIVALS, PolicyChoice, find

# What `make build` copies of core/: headers, hosts and the property tests.
CORE = Path(__file__).resolve().parents[1] / "core"
# As aw_policy_validate() wants it.
_NAME = re.compile(r"[a-z][a-z0-9]{0,14}")
_SEQUENCES = 2000  # long ones, beside all short ones
_COMPILE_S = 120.0
_CHECK_S = 20.0  # ten times what they take
_CALLED = {"memcpy", "memset", "memmove", "memcmp"}  # by the compiler itself

_added: dict[str, Path] = {}  # by name: with other parameters, a file is given again


def is_file(spec: str) -> bool:
    """Whether a policy in the users' notation names a C file: `./mine.c:segments=4`."""
    return spec.strip().partition(":")[0].endswith(".c")


def add(spec: str, where: str) -> str:
    """Adds the policy of a C file, and returns `spec` with its name in place of the file.

    InputError if the file does not compile, breaks a rule of policy.h, or violates a property that
    holds for every policy.
    """
    path, colon, rest = spec.strip().partition(":")
    file, said = Path(path), f"{where}: {path}"
    if not file.is_file():
        raise InputError(f"{said}: is no file; give a C file with a policy")
    name = file.stem
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{said}: a policy has the name of its file: a lower-case letter, then at most 14 "
            "letters and digits; rename the file and its policy"
        )
    if _added.get(name) == file.resolve():
        return f"{name}{colon}{rest}"
    if name in (ALL, PATH, RIVALS) or any(entry["name"] == name for entry in engine.policies()):
        raise InputError(
            f"{said}: there is a policy {quoted(name)}; rename the file and its policy"
        )
    if unquotable := set(str(file.resolve())) & set('"\\\n'):
        raise InputError(f"{said}: has {quoted(min(unquotable))} in its path; rename that")
    if whose := folders.stranger(file):
        raise InputError(
            f"{said}: not run: {whose}, who could exchange it; copy it to a folder of "
            f"{'yours' if os.geteuid() else 'root, such as /root'}"
        )
    if programs.find_tool("cc") is None:
        raise RunError(
            "a policy in C needs a compiler, cc; on Debian: apt-get install gcc libc6-dev"
        )
    with temporary_folder() as room:
        compiled, library = room / f"{name}.o", room / f"{name}.so"
        flags = ["-O2", "-ffreestanding", "-fPIC", "-Werror=implicit", "-Werror=return-type", "-c"]
        _compile(flags, [file.resolve()], compiled, said)
        _compile(["-shared", "-nostdlib"], [compiled, "-lgcc"], library, said)
        _check_symbols(library, name, said)
        _check(compiled, name, room, said)
        engine.add_policy(library, name, said)
    _added[name] = file.resolve()
    return f"{name}{colon}{rest}"


def file_of(name: str) -> Path | None:
    """The C file of a policy that was added; None for one of the core."""
    return _added.get(name)


def spec_of(chosen: PolicyChoice) -> str:
    """A policy in the users' notation, for another process: with its file in place of its name."""
    file = file_of(chosen.name)
    return str(file) + chosen.label[len(chosen.name) :] if file else chosen.label


def no_programs() -> str:
    """Why a C file cannot become BPF programs here; empty if it can."""
    if programs.find_tool("clang") is None:
        return "a policy in C needs clang to become BPF programs: apt-get install clang"
    return ""


def kernel_policy(chosen: PolicyChoice) -> bytes:
    """The object file of the policy for a kernel that has policies (linux/bpf/policy.bpf.h).

    InputError where clang refuses the file.
    """
    entry = find(chosen.name, "policy")
    flags = " | ".join(f"AW_BPF_{asked.upper()}" for asked in entry["asks"]) or "0"
    values = "".join(f", {chosen.params[one['name']]}" for one in entry["params"])
    last = f"AW_BPF_POLICY({chosen.name}, {flags}{values});\n"
    return _programs(chosen.name, "policy.bpf.h", last)


def discipline(chosen: PolicyChoice) -> bytes:
    """The object file of the discipline that holds ACKs (linux/bpf/qdisc/hold.bpf.h), with it.

    InputError where clang refuses the file.
    """
    return _programs(chosen.name, "hold.bpf.h", "")


@cache
def _programs(name: str, header: str, last: str) -> bytes:
    file = _added[name]
    text = f'#include "{header}"\n#define aw_policy_{name} static policy\n#include "{file}"\n{last}'
    with temporary_folder() as room:
        source, made = room / f"{name}.bpf.c", room / f"{name}.bpf.o"
        with create(source) as written:
            written.write(text.encode())
        words = [
            "clang", "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-ffreestanding",
            f"-I{CORE / 'include'}", f"-I{CORE / 'bpf'}", "-c", str(source), "-o", str(made),
        ]  # fmt: skip
        done = programs.run(words, timeout_s=_COMPILE_S)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error:" in line]
            why = lines[0] if lines else programs.ended(done.returncode)
            raise InputError(f"{file}: does not become BPF programs: {why}")
        return made.read_bytes()


def _compile(flags: list[str], parts: Sequence[Path | str], to: Path, said: str) -> None:
    words = ["cc", "-std=c11", *flags, f"-I{CORE / 'include'}", "-o", str(to), *map(str, parts)]
    done = programs.run(words, timeout_s=_COMPILE_S)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if re.search("error|undefined", line)]
        why = lines[0].removeprefix(f"{parts[-1]}:") if lines else programs.ended(done.returncode)
        why = re.sub(r" \[-W\S+\]$", "", why)
        raise InputError(f"{said}:{why}" if why[:1].isdigit() else f"{said}: {why}")


def _check_symbols(library: Path, name: str, said: str) -> None:
    """What it defines and calls: whoever else calls a policy, such as a kernel, has no libc."""
    listed = programs.run(["nm", "-D", str(library)], timeout_s=_COMPILE_S, check=True).stdout
    symbols = [line.split()[-2:] for line in listed.splitlines()]
    if called := [symbol for kind, symbol in symbols if kind == "U" and symbol not in _CALLED]:
        raise InputError(
            f"{said}: calls {', '.join(called[:3])}: a policy calls only what its file and the "
            "headers of ackwise define"
        )
    defined = [symbol for kind, symbol in symbols if symbol.startswith("aw_policy_")]
    if f"aw_policy_{name}" not in defined:
        instead = f"; it defines `{defined[0]}`" if defined else ""
        raise InputError(f"{said}: must define `aw_policy_{name}`, named as the file{instead}")


def _check(compiled: Path, name: str, room: Path, said: str) -> None:
    for file, line in (("policies.def", f"POLICY({name})\n"), ("rivals.def", "")):
        with create(room / file) as listed:
            listed.write(line.encode())
    tests = CORE / "test"
    registries = [CORE / "policy" / "registry.c", CORE / "rivals" / "registry.c"]
    parts = [*CORE.glob("*.c"), *(CORE / "host").glob("*.c"), *registries]
    program = room / "check"
    flags = ["-O1", f"-I{tests}", f"-I{room}"]
    _compile(flags, [tests / "prop_orders.c", *parts, compiled], program, said)
    with programs.started([str(program), str(_SEQUENCES), "first"]) as process:
        try:
            done = programs.await_end(process, "the check", _CHECK_S)
        except RunError:
            raise InputError(
                f"{said}: the property tests did not end within {_CHECK_S:g} s: it seems not to "
                "return"
            ) from None
    if done.returncode:
        why = done.stdout.partition("\n")[0] if done.returncode > 0 else ""
        raise InputError(
            f"{said}: violates what holds for every policy: "
            f"{why or programs.ended(done.returncode)}"
        )
