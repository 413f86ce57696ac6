# SPDX-License-Identifier: MIT
"""A space: a plan with varied keys, from a TOML file and one schema."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from ackwise import bounded, plans
from ackwise.errors import InputError, quoted, suggestion
from ackwise.host import reading
from ackwise.plans import Link, Workload, policy, schema
from ackwise.plans.policy import PolicyChoice
from ackwise.plans.schema import ABSENT, REQUIRED, Key, Kind, Table
from ackwise.plans.units import Dimension
from ackwise.sweeps import keys
from ackwise.sweeps.axis import DISTRIBUTIONS, PARAMETERS, Axis
from ackwise.sweeps.keys import NAMES, Varied

AXES_MAX = 64
VALUES_MAX = 10_000
STEPS_MAX = 10_000
POINTS_MAX = 2**23
CANDIDATES_MAX = 100  # every candidate is compared with every other
CELLS_MAX = 10_000_000

GRID, RANDOM, SOBOL = "grid", "random", "sobol"
SHARED, OWN = "shared", "own"

# Keys with the same meaning as in a plan.
_AS_IN_PLANS = ("title", "source", "links", "workloads", "policies", "runs", "seed", "clamp")


@cache
def table() -> Table:
    """Schema of a space's file; `varied` has the keys of a [[vary]]."""
    taken = {key.name: key for key in schema.plan().keys}
    taken["title"] = replace(taken["title"], text="one-line description of the space")
    taken["links"] = replace(taken["links"], text=f"{taken['links'].text}; several are an axis")
    taken["workloads"] = replace(
        taken["workloads"], text=f"{taken['workloads'].text}; several are an axis"
    )
    taken["runs"] = replace(
        taken["runs"], text="runs of each policy at each point; seeds as in a plan", default=1
    )
    return Table(
        "",
        "A space: a plan of which keys are varied",
        (
            *(taken[name] for name in _AS_IN_PLANS),
            Key(
                "sampling",
                Kind.CHOICE,
                "grid: every combination; random: independent points; sobol: points that fill the "
                "space evenly (Sobol's sequence, scrambled)",
                GRID,
                choices=(GRID, RANDOM, SOBOL),
            ),
            Key(
                "points",
                Kind.COUNT,
                "number of points, for random and sobol; for sobol a power of two",
                ABSENT,
                1,
                POINTS_MAX,
            ),
            Key("draw_seed", Kind.COUNT, "seed of the points' draw", 1, 0, 2**63 - 1),
            Key(
                "seeds",
                Kind.CHOICE,
                "shared: every point has the same seeds, so that points differ by nothing but the "
                "axes; own: each has other ones, so that many points average over chance, too",
                SHARED,
                choices=(SHARED, OWN),
            ),
        ),
        (Table("vary", "a key and what values it takes; one table per key", repeated=True),),
    )


def varied(of: Key) -> Table:
    """Schema of a [[vary]] for the key `of`, whose values are parsed like that key's."""

    def like(name: str, text: str, **changes: Any) -> Key:
        wide = {"low": -(2**62), "high": 2**62} if "low" not in changes else {}
        return replace(of, name=name, text=text, default=ABSENT, target="", **{**changes, **wide})

    inside = {"low": of.low, "high": of.high}
    positive = {"low": min(1e-9, 1) if of.kind is Kind.NUMBER else 1, "high": 2**62}
    parameters = {
        "mean": like("mean", "mean of normal and exponential", low=0, high=2**62),
        "deviation": like("deviation", "standard deviation of normal", **positive),
        "median": like("median", "median of lognormal", **positive),
        "sigma": Key(
            "sigma",
            Kind.NUMBER,
            "standard deviation of the natural logarithm, of lognormal",
            low=0.001,
            high=20.0,
        ),
    }
    return Table(
        "vary",
        "a key and what values it takes; one table per key",
        (
            Key("key", Kind.TEXT, "the key to vary, such as link.down.rate", REQUIRED),
            like("values", "the values it takes, or range", many=True, **inside),
            like(
                "range",
                "lowest and highest value, for keys that are quantities or numbers",
                many=True,
                **inside,
            ),
            Key(
                "distribution",
                Kind.CHOICE,
                "how values lie within the range; a distribution is cut off at its ends",
                "uniform",
                choices=tuple(DISTRIBUTIONS),
            ),
            *(parameters[name] for name in PARAMETERS),
            Key(
                "steps",
                Kind.COUNT,
                "values that a grid takes from a range, at equal shares of the distribution",
                ABSENT,
                2,
                STEPS_MAX,
            ),
        ),
    )


@dataclass(frozen=True)
class Candidate:
    """A policy that is compared with others at each point."""

    label: str  # includes the varied parameters in a grid
    choice: PolicyChoice
    varied: Mapping[str, int]  # columns of the varied parameters, in a grid


@dataclass(frozen=True)
class Space:
    """Everything that a sweep runs."""

    title: str
    source: str
    file: str
    sampling: str
    count: int  # number of points
    draw_seed: int
    links: tuple[Link, ...]
    workloads: tuple[Workload, ...]
    candidates: tuple[Candidate, ...]
    runs: int
    seed: int
    own_seeds: bool  # whether each point has its own seeds
    clamp: str
    axes: tuple[Axis, ...]  # axes of points; in a grid without those of policies
    policy_axes: tuple[Axis, ...]

    @property
    def all_axes(self) -> tuple[Axis, ...]:
        """Axes of points, then axes of policies."""
        own = {axis.varied.name for axis in self.axes}
        return (*self.axes, *(a for a in self.policy_axes if a.varied.name not in own))

    @property
    def cells(self) -> int:
        """Number of simulated or real runs."""
        return self.count * len(self.candidates) * self.runs

    def seeds(self, number: int) -> list[int]:
        """Seeds of a point's runs."""
        first = self.seed + (number * self.runs if self.own_seeds else 0)
        return [first + run for run in range(self.runs)]

    @property
    def policy_names(self) -> list[str]:
        """Names of the policies, each once."""
        return list(dict.fromkeys(c.choice.name for c in self.candidates))


def load(spec: str) -> Space:
    """The space in a file. Raises InputError, which names the file, key, value and remedy."""
    path = Path(spec)
    data = reading.read_bounded(path, bounded.BYTES_MAX, spec, "a TOML file")
    try:
        given = bounded.parse_toml(data)
    except ValueError as problem:
        raise InputError(f"{spec}: {problem}; see docs/sweep.md") from None
    return read(given, spec, path.parent)


def read(given: Mapping[str, Any], where: str, beside: Path) -> Space:
    """The space in parsed TOML; file names are relative to `beside`. Raises InputError."""
    vary = given.get("vary", [])
    values = schema.read(table(), {k: v for k, v in given.items() if k != "vary"}, where)
    links = tuple(
        plans.load_link(s, f"{where}: links[{i}]", beside) for i, s in enumerate(values["links"])
    )
    workloads = tuple(
        plans.load_workload(s, f"{where}: workloads[{i}]", beside)
        for i, s in enumerate(values["workloads"])
    )
    _check_names(where, links, workloads)
    choices = policy.parse_all(values["policies"], f"{where}: policies")
    axes = _read_axes(vary, where, workloads, values["sampling"])
    _check_places(axes, where, links, choices)
    names = ([link.name for link in links], [workload.name for workload in workloads])
    named = [
        Axis(_name_axis(word), tuple(several))
        for word, several in zip(NAMES, names, strict=True)
        if len(several) > 1
    ]
    axes = [*named, *axes]
    if not axes:
        raise InputError(f"{where}: varies nothing; add a table [[vary]], or several links")
    of_policies = tuple(axis for axis in axes if axis.varied.path[0] == "policy")
    grid = values["sampling"] == GRID
    of_points = tuple(a for a in axes if not grid or a not in of_policies)
    candidates = _candidates(choices, of_policies if grid else (), where)
    space = Space(
        title=values["title"],
        source=values["source"],
        file=where,
        sampling=values["sampling"],
        count=_count(values, of_points, where),
        draw_seed=values["draw_seed"],
        links=links,
        workloads=workloads,
        candidates=candidates,
        runs=values["runs"],
        seed=values["seed"],
        own_seeds=values["seeds"] == OWN,
        clamp=values["clamp"],
        axes=of_points,
        policy_axes=of_policies,
    )
    if space.cells > CELLS_MAX:
        raise InputError(
            f"{where}: {space.cells} cells ({space.count} points, {len(candidates)} policies, "
            f"{space.runs} runs); the limit is {CELLS_MAX}: give fewer steps, points or policies"
        )
    return space


def _check_names(where: str, links: Sequence[Link], workloads: Sequence[Workload]) -> None:
    for word, names in (
        ("links", [link.name for link in links]),
        ("workloads", [workload.name for workload in workloads]),
    ):
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"{where}: {word}: {quoted(name)} is given twice")


def _name_axis(word: str) -> Varied:
    return Varied(word, Key(word, Kind.TEXT, f"name of the {word}"), (word,))


def _count(values: Mapping[str, Any], axes: Sequence[Axis], where: str) -> int:
    """Number of points; InputError if it does not fit the sampling."""
    points = values.get("points")
    if values["sampling"] == GRID:
        if points is not None:
            raise InputError(
                f"{where}: points: a grid has as many as its axes give; remove it, or give "
                'sampling = "random" or "sobol"'
            )
        return prod(len(axis.grid()) for axis in axes)
    if points is None:
        raise InputError(f"{where}: points: is missing; {values['sampling']} sampling requires it")
    if values["sampling"] == SOBOL and points & (points - 1):
        near = 1 << (points.bit_length() - 1)
        raise InputError(
            f"{where}: points: {points} is not a power of two, so Sobol's points would not fill "
            f"the space evenly; give {near} or {min(2 * near, POINTS_MAX)}"
        )
    return int(points)


# --- axes -----------------------------------------------------------------------------------------


def _read_axes(
    vary: object, where: str, workloads: Sequence[Workload], sampling: str
) -> list[Axis]:
    if not isinstance(vary, list) or not all(isinstance(v, dict) for v in vary):
        raise InputError(f"{where}: vary: must be a list of tables; write [[vary]]")
    if len(vary) > AXES_MAX:
        raise InputError(f"{where}: vary: {len(vary)} tables; the limit is {AXES_MAX}")
    known = keys.known(workloads)
    axes: list[Axis] = []
    for i, given in enumerate(vary):
        axis = _read_axis(given, where, f"vary[{i}]", known, sampling)
        if any(axis.varied.name == other.varied.name for other in axes):
            raise InputError(f"{where}: vary[{i}].key: {quoted(axis.varied.name)} is given twice")
        axes.append(axis)
    return axes


def _read_axis(
    given: Mapping[str, Any], where: str, at: str, known: Mapping[str, Varied], sampling: str
) -> Axis:
    name = given.get("key")
    if not isinstance(name, str):
        raise InputError(f'{where}: {at}.key: is missing; give one like "link.down.rate"')
    if name not in known:
        raise InputError(
            f"{where}: {at}.key: {quoted(name)} is not a key that can be varied; "
            f"{_near(name, known)}"
        )
    found = known[name]
    values = schema.read(varied(found.key), given, where, at)
    number = isinstance(found.key.kind, Dimension) or found.key.kind in (Kind.COUNT, Kind.NUMBER)

    def refuse(key: str, problem: str) -> InputError:
        return InputError(f"{where}: {at}.{key}: {problem}")

    if ("values" in values) == ("range" in values):
        raise refuse("values", "give either values or range")
    if "values" in values:
        for key in ("distribution", "steps", *PARAMETERS):
            if key in given:
                raise refuse(key, "belongs to a range; remove it, or give range instead of values")
        if len(values["values"]) > VALUES_MAX:
            raise refuse("values", f"{len(values['values'])} values; the limit is {VALUES_MAX}")
        if len(set(values["values"])) < len(values["values"]):
            raise refuse("values", "holds a value twice; remove one")
        return Axis(found, tuple(values["values"]))
    if not number:
        raise refuse("range", f"{found.name} is neither a quantity nor a number; give values")
    if len(values["range"]) != 2 or values["range"][0] >= values["range"][1]:
        raise refuse("range", "give two values, the lower one first")
    chosen = DISTRIBUTIONS[values["distribution"]]
    for key in PARAMETERS:
        if key in chosen.parameters and key not in values:
            raise refuse(key, f"is missing; {values['distribution']} requires it")
        if key in values and key not in chosen.parameters:
            raise refuse(key, f"does not belong to {values['distribution']}; remove it")
    low, high = values["range"]
    if chosen.positive and low <= 0:
        raise refuse("range", f"{values['distribution']} needs a lowest value above zero")
    if values.get("mean") == 0 and values["distribution"] == "exponential":
        raise refuse("mean", "is zero; exponential needs a mean above zero")
    if ("steps" in values) != (sampling == GRID):
        raise refuse(
            "steps",
            "is missing; a grid requires it with a range"
            if sampling == GRID
            else f"has no effect with {sampling} sampling; remove it",
        )
    axis = Axis(
        found,
        low=low,
        high=high,
        distribution=values["distribution"],
        parameters={key: float(values[key]) for key in chosen.parameters},
        steps=values.get("steps", 0),
    )
    if axis.share_in_range < 1e-9:
        raise refuse(
            "range",
            f"{values['distribution']} has almost no values there; move or widen it",
        )
    return axis


def _near(name: str, known: Mapping[str, Varied]) -> str:
    """The nearest key, or a pointer to the list: the full list would fill a screen."""
    found = suggestion(name, known)
    return found if found.startswith("did you mean") else "docs/sweep.md says which can"


def _check_places(
    axes: Sequence[Axis], where: str, links: Sequence[Link], choices: Sequence[PolicyChoice]
) -> None:
    """Refuses axes that would have no effect."""
    names = {choice.name for choice in choices}
    varied_keys = {axis.varied.name for axis in axes}
    for axis in axes:
        at = f"{where}: vary: {axis.varied.name}"
        if axis.varied.path[0] == "policy" and axis.varied.path[1] not in names:
            raise InputError(
                f"{at}: policy {axis.varied.path[1]} is not among the policies; add it to them"
            )
        side = axis.varied.path[1] if axis.varied.path[0] == "link" else ""
        takes = axis.varied.key.disciplines
        if not takes or f"link.{side}.discipline" in varied_keys:
            continue
        for link in links:
            ours = (link.scenario.down if side == "down" else link.scenario.up).discipline
            if ours not in takes:
                raise InputError(
                    f"{at}: has no effect with discipline {quoted(ours)} of link {link.name}; "
                    f"remove it, or choose one of {', '.join(takes)}"
                )


# --- policies -------------------------------------------------------------------------------------


def with_parameters(choice: PolicyChoice, values: Mapping[str, int], where: str) -> PolicyChoice:
    """The policy with more parameters, in the notation of the command line."""
    if not values:
        return choice
    more = ",".join(f"{name}={value}" for name, value in values.items())
    return policy.parse(policy.extended(choice.label, more), where)


def own_axes(choice: PolicyChoice, axes: Sequence[Axis]) -> list[Axis]:
    """The axes of a policy's parameters."""
    return [axis for axis in axes if axis.varied.path[1] == choice.name]


def _candidates(
    choices: Sequence[PolicyChoice], axes: Sequence[Axis], where: str
) -> tuple[Candidate, ...]:
    """The policies, each with every combination of its parameters that `axes` vary."""
    count = sum(prod(len(a.grid()) for a in own_axes(choice, axes)) for choice in choices)
    if count > CANDIDATES_MAX:
        raise InputError(
            f"{where}: policies: {count} with their varied parameters; the limit is "
            f"{CANDIDATES_MAX}: give fewer policies, values or steps"
        )
    return tuple(one for choice in choices for one in _in_grid(choice, axes, where))


def _in_grid(choice: PolicyChoice, axes: Sequence[Axis], where: str) -> list[Candidate]:
    """A policy with every combination of its varied parameters."""
    own = own_axes(choice, axes)
    made = []
    for values in product(*(axis.grid() for axis in own)):
        whole = [int(v) for v in values]
        params = {axis.varied.path[2]: v for axis, v in zip(own, whole, strict=True)}
        columns = {axis.varied.column: v for axis, v in zip(own, whole, strict=True)}
        chosen = with_parameters(choice, params, f"{where}: policies")
        made.append(Candidate(chosen.label, chosen, columns))
    return made
