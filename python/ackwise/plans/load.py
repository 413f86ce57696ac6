# SPDX-License-Identifier: MIT
"""Links, workloads and plans from TOML files, shipped or a user's."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from ackwise import bounded, engine
from ackwise.engine import typed
from ackwise.engine.scenario import App, Channel, FlowGroup, ParetoBulk, Policy, Replay, Scenario
from ackwise.errors import InputError, quoted, suggestion
from ackwise.host import reading
from ackwise.plans import policy, schema
from ackwise.plans.scenario import Flows, Link, Plan, Workload, build

LIMITED_DISCIPLINES = ("fq-codel", "fq", "cake")  # limited by default, as in Linux


def shipped_dir(kind: str) -> Path:
    """Folder of the shipped files: kind is "links", "workloads" or "" for plans."""
    root = resources.files("ackwise") / "plans"
    return Path(str(root / kind if kind else root))


def shipped(kind: str) -> list[str]:
    """Names of the shipped links, workloads or plans (kind "")."""
    return sorted(p.stem for p in shipped_dir(kind).glob("*.toml"))


def _load_toml(path: Path, where: str) -> dict[str, Any]:
    data = reading.read_bounded(path, bounded.BYTES_MAX, where, "a TOML file")
    try:
        return bounded.parse_toml(data)
    except ValueError as problem:
        raise InputError(f"{where}: {problem}; see docs/plan-format.md") from None


def _locate(spec: str, kind: str, word: str, beside: Path | None, where: str) -> tuple[Path, str]:
    """Path of a shipped name or a file, and its name for messages."""
    if not spec.strip() or "\0" in spec:
        raise InputError(f"{where}: {quoted(spec)} is not a valid {word} name")
    if spec.endswith(".toml") or "/" in spec:
        path = Path(spec)
        return (beside / path if beside and not path.is_absolute() else path), spec
    names = shipped(kind)
    if spec not in names:
        raise InputError(
            f"{where}: {quoted(spec)} is not a shipped {word}; {suggestion(spec, names)}; "
            f"file names end in .toml (`ackwise compare --list` lists what is shipped)"
        )
    return shipped_dir(kind) / f"{spec}.toml", f"{word} {spec}"


def load_link(spec: str, where: str = "--link", beside: Path | None = None) -> Link:
    """A link from a shipped name or a file; `where` is its origin for messages. Raises
    InputError."""
    path, name = _locate(spec, "links", "link", beside, where)
    return read_link(_load_toml(path, name), name, path.stem)


def read_link(given: dict[str, Any], where: str, name: str) -> Link:
    """A link from parsed TOML. Raises InputError."""
    values = schema.read(schema.link(), given, where)
    meta = {key: values.pop(key) for key in ("title", "source", "device")}
    for side in ("client", "server"):
        if side in values:
            host = values[side]
            parts = [host.pop(part, {}) for part in ("memory", "cpu", "gro")]
            values[side] = {k: v for part in parts for k, v in part.items()} | host
    path = typed.read(Scenario, values | {"seed": 0, "duration_ns": 0, "groups": []})
    for side, pipe in (("down", path.down), ("up", path.up)):
        _check_discipline(pipe, given[side], f"{where}: {side}")
        limited = pipe.queue_packets or pipe.queue_bytes
        if not limited and pipe.discipline not in LIMITED_DISCIPLINES:
            raise InputError(
                f'{where}: {side}: has no queue limit; give queue_packets = 100 or queue = "64KiB"'
            )
        if 0 < pipe.queue_bytes < path.mtu_bytes:
            raise InputError(
                f"{where}: {side}.queue: {quoted(given[side]['queue'])} cannot hold a packet of "
                f"{path.mtu_bytes} bytes; give at least that"
            )
    if path.down.shared_medium != path.up.shared_medium:
        raise InputError(
            f"{where}: down.shared_medium: differs from up.shared_medium; give both the same value"
        )
    if path.mtu_bytes < path.ip_tcp_header_bytes + 76:
        raise InputError(
            f"{where}: mtu: leaves less than 64 bytes of payload after "
            f"{path.ip_tcp_header_bytes} bytes of headers and 12 of timestamps; increase it"
        )
    return Link(name=name, scenario=path, **meta)


def _check_discipline(pipe: Channel, given: Mapping[str, object], path: str) -> None:
    """Refuses keys that do not apply to the discipline of a direction."""
    for key in schema.keys_of("channel"):
        if key.name in given and key.disciplines and pipe.discipline not in key.disciplines:
            raise InputError(
                f"{path}.{key.name}: has no effect with discipline {quoted(pipe.discipline)}; "
                f"remove it, or choose one of {', '.join(key.disciplines)}"
            )
    if pipe.shaper_rate_bps is None:
        return
    if pipe.shaper_rate_bps > pipe.rate_bps:
        raise InputError(
            f"{path}.shaper_rate: {quoted(given['shaper_rate'])} is above the link's rate, so "
            f"packets would wait behind the shaper; give at most {quoted(given['rate'])}"
        )
    if pipe.shared_medium:
        raise InputError(
            f"{path}.shaper_rate: cannot be combined with shared_medium; remove one of them"
        )


def load_workload(spec: str, where: str = "--workload", beside: Path | None = None) -> Workload:
    """A workload from a shipped name or a file; `where` is its origin for messages. Raises
    InputError."""
    path, name = _locate(spec, "workloads", "workload", beside, where)
    return read_workload(_load_toml(path, name), name, path.stem, path.parent)


def read_workload(
    given: dict[str, Any], where: str, name: str, beside: Path | None = None
) -> Workload:
    """A workload from parsed TOML; names of captures are relative to `beside`. Raises
    InputError."""
    values = schema.read(schema.workload(), given, where)
    flows: list[Flows] = []
    for i, group in enumerate(values["flows"]):
        path = f"flows[{i}]"
        if group["name"] in [other.group.name for other in flows]:
            raise InputError(f"{where}: {path}.name: {quoted(group['name'])} is used twice")
        if group["app"]["kind"] == "replay":
            _read_replay(group["app"], where, f"{path}.app", beside or Path())
        flows.append(_flows(group, f"{where}: {path}"))
        _check_app(flows[-1].group.app, where, f"{path}.app")
    if not any(one.measured for one in flows):
        raise InputError(f"{where}: flows: no group is measured; set measured = true in one")
    if all(one.has_policy for one in flows):
        raise InputError(
            f"{where}: flows: every group sets its own policy, so there is nothing to "
            "compare; remove `policy` from one"
        )
    return Workload(
        name,
        values["title"],
        values["source"],
        values["duration_ns"],
        tuple(flows),
        values["ping_interval_ns"],
    )


def _flows(given: dict[str, Any], where: str) -> Flows:
    """A group whose keys have the engine's names, except the policies, which are still text."""
    measured = bool(given.pop("measured"))
    own = _policies(given, where)
    group = typed.read(FlowGroup, {"policy": {"name": policy.STOCK}, **given})
    return Flows(group, measured, "policy" in own, "start_jitter_ns" in given).changed(**own)


def _policies(given: dict[str, Any], where: str) -> dict[str, Policy]:
    """Parses the policies of a group of flows, and removes them from `given`."""
    texts = {key: given.pop(key) for key in ("policy", "peer_policy") if key in given}
    return {key: policy.parse(text, f"{where}.{key}").for_engine() for key, text in texts.items()}


def _read_replay(app: dict[str, Any], where: str, path: str, beside: Path) -> None:
    """Replaces the name of a capture by its arrivals."""
    given = [key for key, name in (("times", "times_ns"), ("bytes", "bytes")) if name in app]
    if "capture" in app and given:
        raise InputError(
            f"{where}: {path}.{given[0]}: cannot be combined with capture; remove one of them"
        )
    if "capture" not in app:
        if len(given) < 2:
            raise InputError(f"{where}: {path}: requires times and bytes, or capture")
        return
    file = str(beside / app.pop("capture"))
    try:
        found = engine.arrivals(file)
    except InputError as problem:
        raise InputError(f"{where}: {path}.capture: {problem}") from None
    longest_ns = next(key.high for key in schema.keys_of("app.replay") if key.name == "times")
    if found["times_ns"][-1] > longest_ns:
        raise InputError(
            f"{where}: {path}.capture: {file}: lasts {found['times_ns'][-1] / 1e9:.1f} s; a "
            f"workload can last at most {longest_ns / 1e9:.0f} s (`editcap -B` cuts a capture)"
        )
    app["times_ns"], app["bytes"] = found["times_ns"], found["bytes"]


def _check_app(app: App, where: str, path: str) -> None:
    if isinstance(app, ParetoBulk) and app.max_bytes <= app.mean_bytes:
        raise InputError(f"{where}: {path}.max: must be larger than mean")
    if isinstance(app, Replay):
        if len(app.times_ns) != len(app.bytes):
            raise InputError(
                f"{where}: {path}.times: {len(app.times_ns)} values, but bytes has "
                f"{len(app.bytes)}; give the same number of each"
            )
        if list(app.times_ns) != sorted(app.times_ns):
            raise InputError(f"{where}: {path}.times: must be non-decreasing; sort the list")


def load_plan(spec: str, where: str = "--plan") -> Plan:
    """A plan from a shipped name or a file, with its links and workloads. Raises InputError."""
    path, name = _locate(spec, "", "plan", None, where)
    given = _load_toml(path, name)
    values = schema.read(schema.plan(), given, name)
    own_file = spec.endswith(".toml") or "/" in spec
    links = [
        load_link(s, f"{name}: links[{i}]", path.parent) for i, s in enumerate(values["links"])
    ]
    workloads = [
        load_workload(s, f"{name}: workloads[{i}]", path.parent)
        for i, s in enumerate(values["workloads"])
    ]
    if "override" in values:
        workloads = [_laid_over(w, values["override"], name) for w in workloads]
    return build(
        title=values["title"],
        source=values["source"],
        file=spec if own_file else "",
        links=links,
        workloads=workloads,
        policies=policy.parse_all(values["policies"], f"{name}: policies"),
        baseline=values["baseline"],
        runs=values["runs"],
        seed=values["seed"],
        clamp=values["clamp"],
        device=values["device"],
        where=name,
    )


def _laid_over(workload: Workload, override: dict[str, Any], where: str) -> Workload:
    over = dict(override.get("flows", {}))
    over |= _policies(over, f"{where}: override.flows")
    measured = over.pop("measured", None)
    ends = {key: over.pop(key) for key in ("sender", "receiver") if key in over}

    def changed(flows: Flows) -> Flows:
        parts = {key: replace(getattr(flows.group, key), **ends[key]) for key in ends}
        one = flows.changed(**over, **parts)
        return one if measured is None else replace(one, measured=measured)

    return replace(
        workload,
        flows=tuple(map(changed, workload.flows)),
        duration_ns=override.get("duration_ns", workload.duration_ns),
    )


def titles(kind: str) -> Iterable[tuple[str, str, str]]:
    """Name, title and source of each shipped link, workload or plan (kind "")."""
    for name in shipped(kind):
        given = _load_toml(shipped_dir(kind) / f"{name}.toml", name)
        yield name, str(given.get("title", "")), str(given.get("source", ""))
