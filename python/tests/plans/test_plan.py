# SPDX-License-Identifier: MIT
"""Links, workloads and plans: what is shipped loads and runs, what is wrong is named."""

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import small_plan

from ackwise import bounded, engine, plans
from ackwise.engine.scenario import Scenario, Sender
from ackwise.engine.typed import put
from ackwise.errors import InputError
from ackwise.plans import policy, schema, units

LINK = """
title = "t"
source = "s"
[down]
rate = "10mbit"
delay = "5ms"
queue_packets = 50
[up]
rate = "10mbit"
delay = "5ms"
queue_packets = 50
"""
WORKLOAD = """
title = "t"
source = "s"
duration = "1s"
[[flows]]
name = "f"
app = { kind = "bulk" }
"""


@pytest.mark.parametrize("name", plans.shipped("links"))
def test_shipped_link_names_its_source_and_runs(name: str) -> None:
    link = plans.load_link(name)
    assert len(link.source.strip()) > 10
    workload = plans.load_workload("bulk")
    chosen = policy.parse("linux", "test")
    short = plans.scenario_of(link, workload, chosen, 1)
    short = put(short, "duration_ns", 500_000_000)  # an RTT and a half before the first data
    result = engine.simulate(short)
    assert result.groups[0].segments_received > 0 or link.scenario.down.delay_ns > 10**8


@pytest.mark.parametrize("name", plans.shipped("workloads"))
def test_shipped_workload_names_its_source_and_runs(name: str) -> None:
    workload = plans.load_workload(name)
    assert len(workload.source.strip()) > 10
    scenario = plans.scenario_of(
        plans.load_link("lan-10m"), workload, policy.parse("delayed", "test"), 1
    )
    scenario = put(scenario, "duration_ns", min(scenario.duration_ns, 500_000_000))
    engine.simulate(scenario)


@pytest.mark.parametrize("name", plans.shipped(""))
def test_shipped_plan_loads(name: str) -> None:
    made = plans.load_plan(name)
    assert made.links
    assert made.policies


def test_at_least_ten_links_are_shipped() -> None:
    assert len(plans.shipped("links")) >= 10


def write(tmp_path: Path, text: str) -> str:
    file = tmp_path / "my.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('rate = "10mbit"', 'rate = "-3mbit"', 'down.rate: "-3mbit" is negative'),
        ('rate = "10mbit"', 'rate = "0bit"', "down.rate: .* is too small; give 1bit to 1tbit"),
        ('rate = "10mbit"', 'rate = "2tbit"', "down.rate: .* is too large"),
        ('rate = "10mbit"', "rate = 10", "down.rate: 10 is a number without a unit"),
        ('delay = "5ms"', 'delay = "61s"', "down.delay: .* is too large; give 0ms to 60s"),
        ('delay = "5ms"', 'dealy = "5ms"', 'down.dealy: unknown key; did you mean "delay"'),
        ("queue_packets = 50", "queue_packets = 1.5", "queue_packets: 1.5 is not a whole number"),
        ("queue_packets = 50", "queue_packets = -1", "queue_packets: -1 is negative"),
        ("queue_packets = 50", "queue_packets = 0", "down: has no queue limit"),
        ("queue_packets = 50", 'queue = "100B"', "down.queue: .* cannot hold a packet"),
        ("queue_packets = 50", 'discipline = "fife"', 'discipline: .* did you mean "fifo"'),
        (
            "queue_packets = 50",
            'discipline = "fq_codel"',
            'discipline: "fq_codel" is unknown; did you mean "fq-codel"',
        ),
        (
            "queue_packets = 50",
            'discipline = "cake"\nqueue_packets = 50',
            'down.queue_packets: has no effect with discipline "cake"; remove it, or choose one of '
            "fifo, .*fq-codel, fq",
        ),
        (
            "queue_packets = 50",
            'discipline = "fq"\nqueue = "64KiB"',
            'down.queue: has no effect with discipline "fq"',
        ),
        (
            "queue_packets = 50",
            'queue_packets = 50\nquantum = "300B"',
            'down.quantum: has no effect with discipline "fifo"; .*one of fq-codel, fq$',
        ),
        (
            "queue_packets = 50",
            'queue_packets = 50\nack_share = "20%"',
            'down.ack_share: has no effect with discipline "fifo"; .*one of ack-separation, ',
        ),
        (
            "queue_packets = 50",
            'discipline = "fq-codel"\nack_filter = "on"',
            "down.ack_filter: has no effect with .*one of cake$",
        ),
        (
            "queue_packets = 50",
            'discipline = "cake"\nshaper_rate = "20mbit"',
            'down.shaper_rate: "20mbit" is above the link\'s rate.*give at most "10mbit"',
        ),
        (
            "queue_packets = 50",
            'discipline = "cake"\nshaper_rate = "9mbit"\nshared_medium = true',
            "down.shaper_rate: cannot be combined with shared_medium",
        ),
        ("queue_packets = 50", "queue_packets = true", "queue_packets: True is not a whole number"),
        (
            "queue_packets = 50",
            "queue_packets = 50\nshared_medium = true",
            "shared_medium: differs",
        ),
        ("[down]", "[down]\noutage = 3", r"down.outage: must be a list of tables"),
        ("[down]", "[down]\nreorder = 3", r"down.reorder: must be a table"),
        ("[up]", "[upp]", 'upp: unknown key; did you mean "up"'),
        ('title = "t"', "", "title: is missing"),
        ('title = "t"', 'title = ""', "title: .* is not a non-empty string"),
        ('title = "t"', 'title = "t"\nmtu = "100B"', "mtu: .* is too small"),
        ('title = "t"', 'title = "t', "invalid TOML: .*line 2"),
        ('source = "s"', "", "source: is missing"),
    ],
)
def test_a_wrong_link_is_named(tmp_path: Path, old: str, new: str, says: str) -> None:
    file = write(tmp_path, LINK.replace(old, new, 1))
    with pytest.raises(InputError, match=says) as refused:
        plans.load_link(file)
    assert file in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            'duration = "1s"',
            'duration = "2000min"',
            "duration: .* is too large; give 1ns to 100000s",
        ),
        ('name = "f"', 'name = "f"\ncount = 100001', r"flows\[0\].count: .* give 1 to 100000"),
        ('kind = "bulk"', 'kind = "bluk"', 'flows.0..app.kind: .* did you mean "bulk"'),
        ("kind = ", 'kin = "x", kind = ', 'flows.0..app.kin: unknown key; did you mean "kind"'),
        ('{ kind = "bulk" }', "{ }", "flows.0..app.kind: is missing; give one of bulk"),
        ('"bulk"', '"request-response"', "app.request: is missing"),
        ('"bulk"', '"pareto-bulk", mean = "2MB", max = "1MB"', "app.max: must be larger than mean"),
        ('"bulk"', '"replay", times = ["1ms"], bytes = []', "app.bytes: .* is not a list"),
        (
            '"bulk"',
            '"replay", times = ["2ms", "1ms"], bytes = ["1B", "1B"]',
            "must be non-decreasing",
        ),
        (
            '"bulk"',
            '"replay", times = ["2ms"], bytes = ["1B", "1B"]',
            "app.times: 1 values, but bytes has 2",
        ),
        ('name = "f"', 'name = "f"\nmeasured = false', "no group is measured"),
        ('name = "f"', 'name = "f"\npolicy = "linux"', "nothing to compare"),
        ('name = "f"', 'name = "f"\npolicy = "linus"', 'policy: "linus" is not a policy; did you'),
        ('name = "f"', 'name = "f"\narrivals_per_s = nan', "arrivals_per_s: nan is not a finite"),
        ("[[flows]]", "[[flow]]", 'flow: unknown key; did you mean "flows"'),
        ("[[flows]]", "[flows]", "flows: must be a list of tables"),
        ("app = ", 'sender = { pacing = "yes" }\napp = ', "sender.pacing: .* neither true nor"),
    ],
)
def test_a_wrong_workload_is_named(tmp_path: Path, old: str, new: str, says: str) -> None:
    file = write(tmp_path, WORKLOAD.replace(old, new, 1))
    with pytest.raises(InputError, match=says) as refused:
        plans.load_workload(file)
    assert file in str(refused.value)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\xff\xfe", "is not UTF-8"),
        (b"x = " + b"[" * 100_000, "nested too deep"),
        (b"x = " + b"9" * 10_000, "too long"),
        (b"a" * (bounded.BYTES_MAX + 1), "larger than"),
        (b".".join([b"a"] * 15_000) + b" = 1", "line 1: a key of more than 16 parts, the limit"),
        (b"# x\n[" + b".".join([b"a"] * 15_000) + b"]", "line 2: a key of more than 16 parts"),
        (b"x = [" + b"{}," * 500_000 + b"]", "500001 tables and lists, more than 100000"),
        (b"".join(b"k%d=1\n" % i for i in range(200_000)), "200000 keys, more than 100000"),
        (b"", "title: is missing"),
        (b"\x00", "invalid TOML"),
    ],
)
def test_a_hostile_file_is_refused(tmp_path: Path, data: bytes, says: str) -> None:
    file = tmp_path / "hostile.toml"
    file.write_bytes(data)
    with pytest.raises(InputError, match=says):
        plans.load_link(str(file))


def test_random_damage_never_ends_in_a_traceback(tmp_path: Path) -> None:
    dice = random.Random(1)  # noqa: S311
    file = tmp_path / "damaged.toml"
    accepted = 0
    for _ in range(400):
        text = bytearray((LINK if dice.random() < 0.5 else WORKLOAD).encode())
        load = plans.load_link if b"[down]" in text else plans.load_workload
        for _ in range(dice.randint(1, 6)):
            at = dice.randrange(len(text))
            text[at : at + dice.randint(0, 3)] = dice.choice(
                [b"", b"-", b"9", b"[", b'"', b"=", b"\n", b"%", b"\xc3", b"1e9", b"nan", b"."]
            )
        file.write_bytes(text)
        try:
            load(str(file))
            accepted += 1
        except InputError as refused:
            assert "\n" not in str(refused)
    assert accepted < 400


def test_files_are_looked_for_beside_the_plan(tmp_path: Path) -> None:
    (tmp_path / "l.toml").write_text(LINK)
    (tmp_path / "w.toml").write_text(WORKLOAD)
    (tmp_path / "p.toml").write_text(
        'title = "t"\nsource = "s"\nlinks = ["l.toml"]\nworkloads = ["w.toml"]\n'
        'policies = ["delayed:segments=4"]\nruns = 2\nseed = 7\n'
        '[override]\nduration = "2s"\n[override.flows.sender]\ncongestion_control = "reno"\n'
    )
    made = plans.load_plan(str(tmp_path / "p.toml"))
    assert [p.label for p in made.policies] == ["linux", "delayed:segments=4"]
    assert made.seeds == [7, 8]
    assert made.workloads[0].duration_ns == 2 * 10**9
    assert made.workloads[0].groups[0].sender == Sender(congestion_control="reno")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('links = ["adsl", "adsl"]', "the link .adsl. is given twice"),
        ('links = ["asdl"]', r'links\[0\]: "asdl" is not a shipped link; did you mean "adsl"'),
        ('links = ["../x.toml"]', "x.toml: does not exist"),
        ("links = []", "links: .* is not a list of names"),
        ('links = ["adsl"]\nruns = 0', "runs: 0 is too small; give 1 to 1000"),
        ('links = ["adsl"]\nseed = -1', "seed: -1 is negative"),
        ('links = ["adsl"]\npolicies = ["linux", "linux"]', 'policies: "linux" is given twice'),
        ('links = ["adsl"]\nbaseline = "x"', 'baseline: "x" is not a policy'),
        ('links = ["adsl"]\n[override]\nname = "x"', "override.name: unknown key"),
    ],
)
def test_a_wrong_plan_is_named(tmp_path: Path, line: str, says: str) -> None:
    file = write(tmp_path, f'title = "t"\nsource = "s"\nworkloads = ["bulk"]\n{line}\n')
    with pytest.raises(InputError, match=says):
        plans.load_plan(file)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("", "is not a policy"),
        ("linux:", "ends in a colon"),
        ("linux:quick", "is not of the form key=value"),
        ("delayed:segments=1.5", "is not a whole number"),
        ("delayed:segments=-1", "is negative"),
        ("delayed:segments=99999999999", "is too large"),
        ("delayed:segments=²", "is not a whole number"),
        ("delayed:segments=2,segments=3", "given twice"),
        ("delayed:segmens=2", 'did you mean "segments"'),
        ("delayed:clamp=flights", 'did you mean "flight"'),
        ("delayed:host=linx", 'did you mean "linux"'),
        ("linux:host=rfc", "linux is a host, without a policy"),
        ("delayed:rails=none", "give clamp=none"),
        ("x" * 5000, "is not a policy"),
    ],
)
def test_a_wrong_policy_is_named(spec: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as refused:
        policy.parse(spec, "--policy")
    assert len(str(refused.value)) < 500


def test_every_parameter_has_its_value_and_host_and_clamp_may_be_chosen() -> None:
    chosen = policy.parse("delayed:segments=4", "test")
    entry = policy.find("delayed", "test")
    assert set(chosen.params) == {p["name"] for p in entry["params"]}
    assert chosen.params["segments"] == 4
    assert (chosen.host, chosen.clamp) == ("linux", None)
    assert policy.parse("bsd", "test").host == "bsd"
    other = policy.parse("delayed:host=rfc,clamp=none", "test")
    assert (other.host, other.clamp) == ("rfc", "none")
    made = other.for_engine()
    assert (made.host, made.clamp) == ("rfc", False)


def test_a_word_means_several_policies_and_all_means_no_rival() -> None:
    def labels(*specs: str) -> list[str]:
        return [one.label for one in policy.parse_all(specs, "test")]

    kinds = {p["name"]: p["kind"] for p in engine.policies()}
    rivals = labels("rivals")
    assert {kinds[name] for name in rivals} == {"rival"}
    assert rivals[:3] == ["xnu", "xnustretch", "tack"]
    ours = labels("all")
    assert {kinds[name] for name in ours} == {"host", "policy"}
    assert {*ours, *rivals} == {*kinds} - {policy.MODEL}
    assert labels("linux", "xnu", "rivals") == ["linux", *rivals]
    assert labels("rivals:clamp=none") == [f"{name}:clamp=none" for name in rivals]
    with pytest.raises(InputError, match='"xnu" is given twice'):
        labels("rivals", "xnu")
    with pytest.raises(InputError, match=r"linux\.clamp: linux is a host, without a policy"):
        labels("all:clamp=none")


def test_a_policys_path_is_an_element_of_the_uplink_of_simulated_links_alone() -> None:
    spelt = [one.label for one in policy.parse_all(["path"], "test")]
    assert spelt == [f"linux:path={name}" for name in policy.PATHS]
    link, bulk = plans.load_link("wan-10ms"), plans.load_workload("bulk")

    def scenario(spec: str) -> Scenario:
        return plans.scenario_of(link, bulk, policy.parse(spec, "test"), 1)

    stock = scenario("linux")
    driver = scenario("linux:path=samsung")
    assert driver == put(stock, "up.coalescer", "samsung")
    # CAKE comes with its own limit: 50 packets were the FIFO's.
    cake = scenario("linux:path=cake-aggressive")
    changed = {"discipline": "cake", "ack_filter": "aggressive", "queue_packets": 0}
    assert cake == put(stock, "up", changed)
    xnu = scenario("linux:path=xnu")
    changed = {"discipline": "fq-codel", "ack_compression_ns": 5_000_000, "queue_packets": 0}
    assert xnu == put(stock, "up", changed)
    made = scenario("a3:path=aic,clamp=none")
    assert (made.up.coalescer, made.groups[0].policy.clamp) == ("aic", False)
    with pytest.raises(InputError, match="path=samsung is a part of a link's uplink"):
        policy.parse("linux:path=samsung", "test").for_engine()
    with pytest.raises(InputError, match=r'linux\.path: "samsun" is unknown'):
        policy.parse("linux:path=samsun", "test")


@pytest.mark.parametrize("word", [None, *policy.CLAMPS])
def test_a_plan_clamps_as_a_kernel_unless_it_says_otherwise(word: str | None) -> None:
    made = small_plan(
        links=[plans.load_link("wan-10ms")],
        workloads=[plans.load_workload("beside-bsd")],
        policies=policy.parse_all(["a3", "csa3:clamp=none", "linux"], "test"),
        baseline="delayed",
        **({} if word is None else {"clamp": word}),
    )
    wanted = word or "flight"
    clamp = {p.name: p.clamp for p in (made.baseline, *made.policies)}
    assert clamp == {"delayed": wanted, "a3": wanted, "csa3": "none", "linux": wanted}
    new, ordinary = plans.scenario_of(
        made.links[0], made.workloads[0], made.policies[1], made.seed
    ).groups
    assert new.policy.clamp == ordinary.policy.clamp == (wanted == "flight")


def test_a_workload_pings_and_a_link_does_not() -> None:
    loaded = plans.load_workload("rrul")
    made = plans.scenario_of(plans.load_link("adsl"), loaded, policy.parse("linux", "test"), 1)
    assert made.ping_interval_ns == loaded.ping_interval_ns == 100 * 10**6
    assert "ping_interval" not in {key.name for key in schema.link().keys}


def test_a_plan_file_names_its_clamp(tmp_path: Path) -> None:
    def read(more: str) -> plans.Plan:
        file = tmp_path / "plan.toml"
        file.write_text(
            'title = "t"\nsource = "s"\nlinks = ["lan-10m"]\nworkloads = ["bulk"]\n' + more
        )
        return plans.load_plan(str(file))

    assert read("").clamp == "flight"
    assert read('clamp = "none"').clamp == "none"
    with pytest.raises(InputError, match=r'clamp: "kernel" is unknown.*flight, none'):
        read('clamp = "kernel"')


def test_absurd_work_is_refused_and_much_is_announced() -> None:
    def planned(duration_s: int, runs: int) -> plans.Plan:
        made = plans.build(
            title="t",
            source="s",
            file="",
            links=[plans.load_link("lan-1g")],
            workloads=[plans.load_workload("bulk")],
            policies=policy.parse_all(["all"], "test"),
            baseline="linux",
            runs=runs,
            seed=1,
            where="test",
        )
        return plans.with_duration(made, duration_s * 10**9)

    assert plans.check_work(planned(1, 1)) == ""
    assert "takes minutes" in plans.check_work(planned(100, 10))
    with pytest.raises(InputError, match="--allow-long"):
        plans.check_work(planned(3600, 1000))
    assert plans.check_work(planned(3600, 1000), allow_long=True)


def tables(of: schema.Table) -> Iterator[schema.Table]:
    """A table and all below it."""
    yield of
    for below in of.tables:
        yield from tables(below)


def keys(of: schema.Table) -> Iterator[schema.Key]:
    """Every key of a table and of all below it."""
    for table in tables(of):
        yield from table.keys
        for variant in table.variants.values():
            yield from variant


FILES = [schema.link(), schema.workload(), schema.plan()]
IN_ENGINE = {
    f"{table}.{known['name']}": known
    for table, listed in engine.scenario_keys().items()
    for known in listed
}


def test_defaults_are_within_their_own_bounds() -> None:
    for key in (key for file in FILES for key in keys(file)):
        if key.default in (schema.REQUIRED, schema.ABSENT) or isinstance(key.default, tuple):
            continue
        schema.read_key(key, key.default)


@pytest.mark.parametrize("known", IN_ENGINE)
def test_a_key_of_the_engine_is_a_key_of_files_or_has_a_reason_not_to_be(known: str) -> None:
    files = {key.target for file in FILES for key in keys(file)}
    below = {table.engine_name for file in FILES for table in tables(file)}
    in_files = known in files or IN_ENGINE[known]["name"] in below
    assert in_files != (known in schema.ELSEWHERE)


@pytest.mark.parametrize("known", sorted(set(IN_ENGINE) - set(schema.ELSEWHERE)))
def test_a_number_wider_than_32_bits_has_bounds_of_its_own(known: str) -> None:
    if any(wide in IN_ENGINE[known]["kind"] for wide in ("u64", "f64")):
        assert {"low", "high"} <= set(IN_ENGINE[known])


def test_what_the_schema_says_about_the_engine_s_keys_is_about_keys_that_exist() -> None:
    assert {*schema.IN_FILES, *schema.ELSEWHERE} <= set(IN_ENGINE)
    assert {key.target for file in FILES for key in keys(file)} <= {"", *IN_ENGINE}


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (
            {"name": "wait_ns", "kind": "u64", "default": 1_500_000, "low": 0, "high": 10**9},
            schema.Key("wait", units.TIME, "t", "1.5ms", 0, 10**9, target="down.wait_ns"),
        ),
        (
            {"name": "bytes", "kind": "Vec<u32>", "low": 1, "high": 1 << 30},
            schema.Key(
                "bytes",
                units.SIZE,
                "t",
                schema.REQUIRED,
                1,
                1 << 30,
                target="down.bytes",
                many=True,
            ),
        ),
        (
            {"name": "room_bytes", "kind": "Option<u64>", "default": None, "low": 1, "high": 9},
            schema.Key("room", units.SIZE, "t", schema.ABSENT, 1, 9, target="down.room_bytes"),
        ),
        (
            {"name": "order", "kind": "Order", "default": "fifo", "choices": ["fifo", "lifo"]},
            schema.Key(
                "order",
                schema.Kind.CHOICE,
                "t",
                "fifo",
                choices=("fifo", "lifo"),
                target="down.order",
            ),
        ),
        (
            {"name": "shared", "kind": "bool", "default": False},
            schema.Key("shared", schema.Kind.FLAG, "t", False, target="down.shared"),
        ),
        (
            {"name": "tries", "kind": "u32"},
            schema.Key("tries", schema.Kind.COUNT, "t", schema.REQUIRED, target="down.tries"),
        ),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else "",
)
def test_a_key_added_to_the_engine_is_a_key_of_files(
    monkeypatch: pytest.MonkeyPatch, known: dict[str, Any], expected: schema.Key
) -> None:
    monkeypatch.setattr(engine, "scenario_keys", lambda: {"down": [{"text": "t", **known}]})
    assert schema.keys_of("down") == (expected,)


def test_the_schema_needs_the_engine_only_when_it_is_used() -> None:
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.modules['ackwise.engine._engine'] = None\n"
            "from ackwise.plans import schema\n"
            "from ackwise.errors import RunError\n"
            "try: schema.link()\n"
            "except RunError as problem: print(problem)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "cannot be loaded" in told.stdout
