# SPDX-License-Identifier: MIT
"""Policies in the users' notation, `NAME[:key=value,...]`, checked against the engine's list."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ackwise import engine
from ackwise.engine.catalogue import Parameter, PolicyEntry
from ackwise.engine.scenario import Policy
from ackwise.errors import InputError, quoted, suggestion

ALL = "all"
# The rules of other stacks, which `all` does not mean.
RIVALS = "rivals"
# Stock receivers whose ACKs are thinned on their way.
PATH = "path"
# The host without a policy: on a kernel, its own code.
STOCK = "linux"
# The host of papers, which has arrivals and no protocol: not a receiver among others.
MODEL = "model"
HOST_KEY, CLAMP_KEY, PATH_KEY = "host", "clamp", "path"
# What bounds an order: a quarter of flight and window, or, as published, only its delay.
CLAMPS = (CLAMPED, UNCLAMPED) = ("flight", "none")
# What else may thin the ACKs on their way up, and the keys of the uplink that put it there.
PATHS: dict[str, dict[str, str | int]] = {
    "cake": {"discipline": "cake", "ack_filter": "on"},
    "cake-aggressive": {"discipline": "cake", "ack_filter": "aggressive"},
    "xnu": {"discipline": "fq-codel", "ack_compression_ns": 5_000_000},
    **{name: {"coalescer": name} for name in ("samsung", "qualcomm", "broadcom", "aic")},
}


@dataclass(frozen=True)
class PolicyChoice:
    """A policy with every parameter's value."""

    label: str  # shown label; valid as input
    name: str
    params: dict[str, int]
    host: str = STOCK  # whose rules the policy's orders stand on; of a host, its own name
    clamp: str | None = None  # of CLAMPS; None: not chosen, so a plan applies its own
    path: str | None = None  # of PATHS: what thins the ACKs after the receiver has sent them

    def for_engine(self) -> Policy:
        """The policy in the scenario's format. Raises InputError for one with something on its
        path, which only `plans.scenario_of` puts there."""
        if self.path is not None:
            raise InputError(
                f"{self.label}: {PATH_KEY}={self.path} is a part of a link's uplink, so only "
                "simulations of links have it: `ackwise compare`, `ackwise sweep`"
            )
        return Policy(
            name=self.name, params=self.params, host=self.host, clamp=self.clamp != UNCLAMPED
        )


def find(name: str, where: str) -> PolicyEntry:
    """The engine's entry of a policy; InputError if it does not exist."""
    for entry in engine.policies():
        if entry["name"] == name:
            return entry
    names = [p["name"] for p in engine.policies()]
    if name.endswith(".c"):
        raise InputError(
            f"{where}: {quoted(name)}: a C file is a policy only for `ackwise compare`, `replay`, "
            "`run` and `try`"
        )
    raise InputError(
        f"{where}: {quoted(name)} is not a policy; {suggestion(name, names)}; "
        "`ackwise policy list` shows all"
    )


def _range(param: Parameter) -> str:
    return f"{param['min']} to {param['max']} {param['unit']}"


def check_in_kernel(name: str, where: str) -> None:
    """InputError for a rival, which no kernel has. A kernel may have policies that we do not."""
    if name in groups()[RIVALS]:
        raise InputError(
            f"{where}: {quoted(name)} is the rule of another stack, which no kernel has; use the "
            "simulator"
        )


def hosts() -> list[str]:
    """Names of the hosts, which are choices of their own: no policy."""
    return [entry["name"] for entry in engine.policies() if entry["kind"] == "host"]


def _word(text: str, where: str, known: Sequence[str]) -> str:
    if text not in known:
        raise InputError(f"{where}: {quoted(text)} is unknown; {suggestion(text, known)}")
    return text


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
    host, clamp, path = (name if entry["kind"] == "host" else STOCK), None, None
    if colon and not rest.strip():
        raise InputError(f"{where}: {quoted(spec)} ends in a colon; give key=value after it")
    for item in rest.split(",") if colon else []:
        key, equals, text = (part.strip() for part in item.partition("="))
        if not equals:
            raise InputError(f"{where}: {name}: {quoted(item)} is not of the form key=value")
        if key in given:
            raise InputError(f"{where}: {name}.{key}: given twice")
        given[key] = text
        if key in (HOST_KEY, CLAMP_KEY) and entry["kind"] == "host":
            raise InputError(f"{where}: {name}.{key}: {name} is a host, without a policy")
        if key == HOST_KEY:
            host = _word(text, f"{where}: {name}.{key}", hosts())
            continue
        if key == CLAMP_KEY:
            clamp = _word(text, f"{where}: {name}.{key}", CLAMPS)
            continue
        if key == PATH_KEY:
            path = _word(text, f"{where}: {name}.{key}", list(PATHS))
            continue
        if key == "rails":
            raise InputError(
                f"{where}: {name}.rails: there are no rails any more; give clamp=none for orders "
                "as published, or host=NAME for other rules"
            )
        if key not in params:
            raise InputError(
                f"{where}: {name}.{key}: unknown parameter; "
                f"{suggestion(key, [*params, HOST_KEY, CLAMP_KEY, PATH_KEY])}"
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
    return PolicyChoice(label, name, values, host, clamp, path)


def groups() -> dict[str, list[str]]:
    """The words that mean several policies: `all` that are ours and receive TCP, `rivals`, and
    `path`, stock with each element on its path."""
    listed = engine.policies()
    return {
        ALL: [p["name"] for p in listed if p["kind"] != "rival" and p["name"] != MODEL],
        RIVALS: [p["name"] for p in listed if p["kind"] == "rival"],
        PATH: [extended(STOCK, f"{PATH_KEY}={name}") for name in PATHS],
    }


def parse_all(specs: Iterable[str], where: str) -> list[PolicyChoice]:
    """Several policies; of a word that means several, each: `rivals:clamp=none`. A repeated policy
    is an error."""
    chosen: list[PolicyChoice] = []
    several = groups()
    for spec in specs:
        name, colon, rest = spec.strip().partition(":")
        wanted = [extended(one, rest) if colon else one for one in several.get(name, [name])]
        for one in wanted:
            policy = parse(one, where)
            if name in several and any(c.label == policy.label for c in chosen):
                continue  # also contained in the group
            if any(c.label == policy.label for c in chosen):
                raise InputError(f"{where}: {quoted(policy.label)} is given twice")
            chosen.append(policy)
    return chosen
