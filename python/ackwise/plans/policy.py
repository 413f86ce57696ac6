# SPDX-License-Identifier: MIT
"""Policies in the users' notation, `NAME[:key=value,...]`, checked against the engine's list."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ackwise import engine
from ackwise.engine.catalogue import Parameter, PolicyEntry
from ackwise.engine.scenario import Policy
from ackwise.errors import InputError, quoted, suggestion

ALL = "all"
RAILS_KEY = "rails"
# On a kernel, `linux` is the kernel's own code, to which the core's rails do not apply.
STOCK = "linux"
# Keywords for rails, and the sets of rails.def that they represent.
RAIL_SETS = {
    "network": ("default", "network"),  # the kernel's rails
    "source": ("default",),  # the rails for published algorithms
    "all": ("default", "network", "all"),
    "none": (),
}


@dataclass(frozen=True)
class PolicyChoice:
    """A policy with every parameter's value."""

    label: str  # shown label; valid as input
    name: str
    params: dict[str, int]
    # None: not chosen, so a plan applies its own, and the engine `source`.
    rails: list[str] | None = None

    def for_engine(self) -> Policy:
        """The policy in the scenario's format."""
        return Policy(name=self.name, params=self.params, rails=self.rails)


def find(name: str, where: str) -> PolicyEntry:
    """The engine's entry of a policy; InputError if it does not exist."""
    for entry in engine.policies():
        if entry["name"] == name:
            return entry
    names = [p["name"] for p in engine.policies()]
    raise InputError(
        f"{where}: {quoted(name)} is not a policy; {suggestion(name, names)}; "
        "`ackwise policy list` shows all"
    )


def _range(param: Parameter) -> str:
    return f"{param['min']} to {param['max']} {param['unit']}"


def rail_set(word: str) -> list[str]:
    """The rails that a keyword of RAIL_SETS represents."""
    return [r["name"] for r in engine.rails() if r["set"] in RAIL_SETS[word]]


def rails_text(rails: Sequence[str]) -> str:
    """The keyword of a set, or the names of the rails, in the notation of `rails=`."""
    return next((word for word in RAIL_SETS if rail_set(word) == list(rails)), "+".join(rails))


def rails_in_force(name: str, chosen: Sequence[str] | None, word: str) -> list[str]:
    """The rails of policy `name` in a plan whose `rails` is `word`: those chosen for it, or the
    plan's."""
    if chosen is not None:
        return list(chosen)
    return rail_set("source" if name == STOCK and word == "network" else word)


def _rails(text: str, where: str) -> list[str]:
    if text in RAIL_SETS:
        return rail_set(text)
    known = [r["name"] for r in engine.rails()]
    chosen = text.split("+")
    for name in chosen:
        if name not in known:
            raise InputError(
                f"{where}: {RAILS_KEY}: {quoted(name)} is not a rail; {suggestion(name, known)}; "
                f"join several with +, or give {', '.join(RAIL_SETS)}"
            )
    return [name for name in known if name in chosen]


def extended(spec: str, more: str) -> str:
    """The policy `spec` with more key=value pairs, in the users' notation."""
    return f"{spec}{',' if ':' in spec else ':'}{more}"


def parse(spec: str, where: str) -> PolicyChoice:
    """One policy; `where` names the option or key that contains it. Raises InputError."""
    name, colon, rest = spec.strip().partition(":")
    entry = find(name, where)
    params = {p["name"]: p for p in entry["params"]}
    values = {p["name"]: int(p["initial"]) for p in entry["params"]}
    given: dict[str, str] = {}
    chosen_rails: list[str] | None = None
    if colon and not rest.strip():
        raise InputError(f"{where}: {quoted(spec)} ends in a colon; give key=value after it")
    for item in rest.split(",") if colon else []:
        key, equals, text = (part.strip() for part in item.partition("="))
        if not equals:
            raise InputError(f"{where}: {name}: {quoted(item)} is not of the form key=value")
        if key in given:
            raise InputError(f"{where}: {name}.{key}: given twice")
        given[key] = text
        if key == RAILS_KEY:
            chosen_rails = _rails(text, f"{where}: {name}")
            continue
        if key not in params:
            raise InputError(
                f"{where}: {name}.{key}: unknown parameter; {suggestion(key, [*params, RAILS_KEY])}"
            )
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
            raise InputError(
                f"{where}: {name}.{key}: {quoted(text)} is not a whole number; "
                f"give {_range(params[key])}"
            )
        value = int(text)
        if value < 0:
            raise InputError(
                f"{where}: {name}.{key}: {quoted(text)} is negative; give {_range(params[key])}"
            )
        if not params[key]["min"] <= value <= params[key]["max"]:
            size = "too small" if value < params[key]["min"] else "too large"
            raise InputError(
                f"{where}: {name}.{key}: {quoted(text)} is {size}; give {_range(params[key])}"
            )
        values[key] = value
    label = name
    if given:
        label += ":" + ",".join(f"{k}={given[k]}" for k in given)
    return PolicyChoice(label, name, values, chosen_rails)


def parse_all(specs: Iterable[str], where: str) -> list[PolicyChoice]:
    """Several policies; `all` means each of the engine's. A repeated policy is an error."""
    chosen: list[PolicyChoice] = []
    for spec in specs:
        wanted = [p["name"] for p in engine.policies()] if spec.strip() == ALL else [spec]
        for one in wanted:
            policy = parse(one, where)
            if spec.strip() == ALL and any(c.label == policy.label for c in chosen):
                continue  # also contained in `all`
            if any(c.label == policy.label for c in chosen):
                raise InputError(f"{where}: {quoted(policy.label)} is given twice")
            chosen.append(policy)
    return chosen
