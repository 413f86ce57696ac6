# SPDX-License-Identifier: MIT
"""Python classes of a scenario and its result, generated from the engine's declarations: --write
generates them (`make build` does), --check fails when a file is stale."""

import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import renewed

from ackwise.engine import _engine

HERE = Path(__file__).resolve().parent.parent / "python/ackwise/engine"
WIDTH = 100
_PLAIN = {"u32": "int", "u64": "int", "f64": "float", "bool": "bool", "String": "str"}
_KEPT = {"PolicyChoice": "Policy", "AppSpec": "App"}

HEAD = '''# SPDX-License-Identifier: MIT
"""{about}

Made by tools/classes.py from {source}: do not edit.
"""

{imports}
'''
POLICY = '''

@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A policy by name and its parameters, on a host."""

    name: str
    params: Mapping[str, int] = field(default_factory=dict)
    """values by parameter; those not named keep their initial value"""
    host: str = "linux"
    """whose rules its orders stand on; a host's own name without a policy"""
    clamp: bool = True
    """whether a quarter of flight and window bounds its orders; else only the longest delay"""
'''


def python_name(rust: str) -> str:
    """A struct's name without the parts that matter only in Rust."""
    return _KEPT.get(rust, rust.removesuffix("Spec"))


def python_type(rust: str, *, result: bool) -> str:
    """Type of a field. Lists of a scenario are tuples, because a scenario is immutable."""
    outer, _, inner = rust.replace(" ", "").partition("<")
    inner = inner.removesuffix(">")
    if outer in ("Option", "Simulated"):
        return f"{python_type(inner, result=result)} | None"
    if outer == "Vec":
        of = python_type(inner, result=result)
        return f"list[{of}]" if result else f"tuple[{of}, ...]"
    if outer == "BTreeMap":
        return f"dict[str, {python_type(inner.partition(',')[2], result=result)}]"
    return _PLAIN.get(outer) or python_name(outer)


def _default(key: Mapping[str, Any], kind: str) -> str:
    """Text after the field's type; "": the field is required."""
    if key["kind"].startswith(("Option", "Simulated")):
        return " = None"
    if "default" not in key:
        return ""
    default = key["default"]
    if kind == "Policy":
        return f" = Policy(name={_quoted(default['name'])})"
    if isinstance(default, dict):
        return f" = {kind}()"
    if isinstance(default, list):
        return " = ()"
    return f" = {_quoted(default) if isinstance(default, str) else f'{default!r}'}"


def _quoted(word: str) -> str:
    return json.dumps(word)


def _docstring(text: str, indent: str = "    ") -> Iterator[str]:
    whole = f'{indent}"""{text}"""'
    if len(whole) <= WIDTH:
        yield whole
        return
    lines = textwrap.wrap(f'"""{text}', WIDTH, initial_indent=indent, subsequent_indent=indent)
    yield from lines
    yield f'{indent}"""'


def _choice(name: str, words: Sequence[str]) -> Iterator[str]:
    line = f"{name} = Literal[{', '.join(map(_quoted, words))}]"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"{name} = Literal["
    yield from (f"    {_quoted(word)}," for word in words)
    yield "]"


def _class(one: Mapping[str, Any]) -> Iterator[str]:
    result = "table" not in one
    yield from ("", "")
    # Results are created for every run, and creating a frozen instance takes twice the time.
    yield f"@dataclass({'' if result else 'frozen=True, '}slots=True, kw_only=True)"
    yield f"class {python_name(one['name'])}:"
    yield from _docstring(one["text"] or _ABOUT[one["name"]])
    yield ""
    app = re.fullmatch(r"app\.(.*)", one.get("table", ""))
    if app:
        kind = _quoted(app[1])
        yield f"    kind: Literal[{kind}] = field(default={kind}, init=False)"
    for key in one["keys"]:
        kind = python_type(key["kind"], result=result)
        yield f"    {key['name']}: {kind}{_default(key, kind)}"
        if key["text"]:
            yield from _docstring(key["text"])


# Structs whose name says it in Rust.
_ABOUT = {
    "BurstLoss": "Gilbert-Elliott burst loss.",
    "Reorder": "Packets overtaken by later ones.",
    "Outage": "A period in which every packet is lost.",
    "SenderSpec": "TCP of the data sender.",
    "ReceiverSpec": "TCP of the data receiver.",
}


def _in_order(classes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The classes, each after those that it contains."""
    left, made = list(classes), list[Mapping[str, Any]]()
    while left:
        names = {one["name"] for one in left}
        ready = [
            one
            for one in left
            if not any(names & set(re.findall(r"\w+", key["kind"])) for key in one["keys"])
            and not (one["name"] == "FlowGroup" and any("app." in o["table"] for o in left))
        ]
        made += ready
        left = [one for one in left if one not in ready]
    return made


def scenario_module(classes: Sequence[Mapping[str, Any]]) -> str:
    """Text of engine/scenario.py."""
    imports = (
        "from collections.abc import Mapping\n"
        "from dataclasses import dataclass, field\nfrom typing import Literal"
    )
    lines = HEAD.format(
        about="The input of a run, as the engine takes it.",
        source="crates/sim/src/scenario.rs",
        imports=imports,
    ).splitlines()
    choices = {
        python_name(key["kind"]): key["choices"]
        for one in classes
        for key in one["keys"]
        if key.get("choices")
    }
    lines.append("")
    for name, words in choices.items():
        lines += _choice(name, words)
    lines += POLICY.splitlines()
    apps = [one for one in classes if one["table"].startswith("app.")]
    for one in _in_order(classes):
        if one["name"] == "FlowGroup":
            lines += ["", "", f"App = {' | '.join(python_name(app['name']) for app in apps)}"]
        lines += _class(one)
    return "\n".join(lines) + "\n"


def result_module(classes: Sequence[Mapping[str, Any]]) -> str:
    """Text of engine/result.py."""
    lines = HEAD.format(
        about="The result of a run, of the lab too: None where only the simulator can know.",
        source="crates/sim/src/result.rs",
        imports="from dataclasses import dataclass",
    ).splitlines()
    for one in _in_order(classes):
        lines += _class(one)
    return "\n".join(lines) + "\n"


def made() -> dict[Path, str]:
    """The text of each file."""
    classes = json.loads(_engine.classes())
    return {
        HERE / "scenario.py": scenario_module([one for one in classes if "table" in one]),
        HERE / "result.py": result_module([one for one in classes if "table" not in one]),
    }


if __name__ == "__main__":
    sys.exit(renewed.main(__doc__, made, "run `make build`"))
