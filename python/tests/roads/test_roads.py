# SPDX-License-Identifier: MIT
"""Roads without a kernel: which one is chosen and why, what it would change, what runs showed."""

import json
import os
import random
import re
import statistics
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import Ackwise

from ackwise import engine
from ackwise.cli import run
from ackwise.errors import RunError
from ackwise.host import bpf, holding, leftovers, tcp_acks
from ackwise.plans import own, policy
from ackwise.results.stats import Estimate
from ackwise.roads import choice, routes, session, sysctl, trial, verdict
from ackwise.roads.delay import Delay, tick_ms
from ackwise.roads.discipline import Discipline
from ackwise.roads.quickack import Quickack
from ackwise.roads.road import Fit, Wanted
from ackwise.roads.series import Series
from ackwise.roads.session import Watchdog
from ackwise.roads.state import Keeper
from ackwise.roads.verdict import GAIN, LOSS, SAME, UNDECIDED, Compared

ROOT = Path(__file__).resolve().parents[3]


def wanted(label: str) -> Wanted:
    return Wanted(policy.parse(label, "test"))


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """The sysctls of a kernel with the patch series."""
    (tmp_path / "tcp_available_ack_policies").write_text("stock delayed a3\n")
    (tmp_path / "tcp_ack_policy").write_text("stock\n")
    return tmp_path


# --- which road ----------------------------------------------------------------------------------


def test_whole_policies_go_before_levers(kernel: Path) -> None:
    short = "delayed:segments=2,delay_ms=20"
    with_series = choice.choose(wanted(short), (Series(kernel), Quickack(), Delay()))
    assert with_series.road is not None
    assert with_series.road.name == "patch series"
    assert choice.choose(wanted("a3"), (Series(kernel), Delay())).road is not None


def test_no_road_says_one_sentence_for_each(tmp_path: Path) -> None:
    found = choice.choose(wanted("a3"), (Series(tmp_path), Quickack(), Delay()))
    assert found.road is None
    assert len(found.others) == 3
    assert str(tmp_path / "tcp_available_ack_policies") in found.others[0]


def test_the_series_takes_no_part_of_a_host(kernel: Path) -> None:
    one = Wanted(policy.parse("a3", "test"), device="eth0")
    assert "leave the choice out" in Series(kernel).fit(one).why
    assert "does not list greedy" in Series(kernel).fit(wanted("greedy")).why


def test_a_policy_of_the_user_is_there_while_it_is_in_force(
    kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, file = kernel / "tcp_ack_policy", kernel / "greedy.c"
    file.write_text((ROOT / "core/policy/greedy.c").read_text())
    for header in (ROOT / "core/policy").glob("*.h"):
        (kernel / header.name).write_text(header.read_text())
    monkeypatch.setattr(own, "_added", {"greedy": file})
    own._programs.cache_clear()
    place.write_text("delayed\n")
    held: list[int] = []

    def register(what: str, data: bytes) -> int:
        assert what == str(file) and data.startswith(b"\x7fELF")
        held.append(os.open(os.devnull, os.O_RDONLY))
        return held[-1]

    monkeypatch.setattr(bpf, "register", register)
    assert Series(kernel).fit(wanted("greedy")).fits
    one = Series(kernel).prepare(wanted("greedy"))
    assert not held and place.read_text() == "delayed\n"
    one.begin()
    assert place.read_text() == "greedy"  # its parameters are in the programs
    one.refresh()
    place.write_text("stock\n")  # as the kernel does it when the link is closed
    assert "delayed again" in one.end()
    with pytest.raises(OSError):
        os.fstat(held[0])
    assert one.end() == "" and place.read_text() == "delayed"
    (kernel / "tcp_available_ack_policies").write_text("stock greedy\n")
    assert "lists another greedy" in Series(kernel).fit(wanted("greedy")).why


def test_a_policy_that_only_the_kernel_knows_is_taken(kernel: Path) -> None:
    (kernel / "tcp_available_ack_policies").write_text("stock a3 bpfmine\n")
    one = sysctl.known_here("bpfmine:segments=4", kernel)
    assert one is not None and one.name == "bpfmine"
    assert sysctl.known_here("a3", kernel) is None  # its parameters are checked before
    assert sysctl.known_here("nothing", kernel) is None
    found = choice.choose(Wanted(one), (Series(kernel), Quickack(), Delay(), Discipline()))
    assert found.road is not None and found.road.name == "patch series"
    assert "bpfmine is not built for it" in found.others[-1]
    road = found.road.prepare(Wanted(one))
    road.begin()
    assert (kernel / "tcp_ack_policy").read_text() == "bpfmine:segments=4"
    assert "stock" in road.end()


def test_the_series_sets_the_sysctl_and_gives_it_back(kernel: Path) -> None:
    place = kernel / "tcp_ack_policy"
    one = Series(kernel).prepare(wanted("delayed:segments=8"))
    assert place.read_text() == "stock\n"
    one.begin()
    assert place.read_text() == "delayed:segments=8"
    one.refresh()
    assert "stock" in one.end()
    assert place.read_text() == "stock"
    assert one.end() == ""


def test_the_series_leaves_what_somebody_else_has_set(kernel: Path) -> None:
    one = Series(kernel).prepare(wanted("a3"))
    one.begin()
    (kernel / "tcp_ack_policy").write_text("delayed\n")
    with pytest.raises(RunError, match="somebody else"):
        one.refresh()
    one.end()
    assert (kernel / "tcp_ack_policy").read_text() == "delayed\n"


NETSTAT = """\
TcpExt: TCPDelivered DelayedACKs
TcpExt: 90 {0}
TcpAck: segment-count push piggyback
TcpAck: {0} 2 7
IpExt: InOctets
IpExt: 1
"""


def test_the_series_counts_acks_by_reason_since_its_start(kernel: Path) -> None:
    netstat = kernel / "netstat"
    netstat.write_text(NETSTAT.format(40))
    one = Series(kernel, netstat).prepare(wanted("a3"))
    netstat.write_text(NETSTAT.format(41))
    one.begin()
    netstat.write_text(NETSTAT.format(50))
    assert one.counters() == {"segment-count": 9, "push": 0, "piggyback": 0}


def test_status_shows_acks_by_reason(
    kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    netstat, keeper = kernel / "netstat", Keeper(kernel / "run")
    netstat.write_text(NETSTAT.format(40))

    def second(_: float) -> None:
        run._status(keeper, as_json=False)
        netstat.write_text(NETSTAT.format(50))

    monkeypatch.setattr(session, "time", SimpleNamespace(sleep=second, time=time.time))
    monkeypatch.setattr(choice, "sweep", list)
    road = Series(kernel, netstat)
    session.run(road, wanted("a3"), keeper, ready=lambda _: None, looks=2)
    said = capsys.readouterr().out
    assert "a3 is in force by patch series" in said
    assert re.findall(r"^  segment-count +(\d+)$", said, re.MULTILINE) == ["10"]


def test_a_kernel_that_counts_no_reasons_has_no_counters(kernel: Path) -> None:
    for netstat in (kernel / "netstat", kernel / "none"):
        (kernel / "netstat").write_text("TcpExt: TCPDelivered\nTcpExt: 90\n")
        one = Series(kernel, netstat).prepare(wanted("a3"))
        one.begin()
        assert one.counters() == {}


@pytest.mark.parametrize(
    ("label", "why"),
    [
        ("a3", "carries only"),
        ("delayed", "carries only"),  # its default is 200 ms, which is stock's
        ("delayed:segments=4,delay_ms=20", "carries only"),
        ("delayed:segments=2,delay_ms=20,host=bsd", "carries only"),
        ("delayed:segments=2,delay_ms=1", "a tick is"),
    ],
)
def test_a_shorter_delay_is_all_that_the_lever_carries(label: str, why: str) -> None:
    if "tick" in why and tick_ms() < 1:
        pytest.skip("this kernel's tick is shorter than a policy's shortest delay")
    fit = Delay().fit(wanted(label))
    assert not fit.fits
    assert why in fit.why


@pytest.mark.parametrize("label", ["delayed", "every:host=bsd", "every:clamp=none"])
def test_quickack_carries_every_alone(label: str) -> None:
    assert Quickack().fit(wanted(label)).why == "it carries only every"


@pytest.fixture
def types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The type information of a kernel that has BPF queueing disciplines, and their objects."""
    place = tmp_path / "vmlinux"
    place.write_bytes(b"\0tcp_sock\0bpf_qdisc_skb_drop\0sk_buff\0")
    for name in ("adaptive", "delayed"):
        (tmp_path / f"hold.{name}.bpf.o").touch()
    monkeypatch.setattr(bpf, "KERNEL_TYPES", place)
    monkeypatch.setattr(bpf, "libbpf", lambda: None)
    monkeypatch.setattr(holding, "OBJECTS", tmp_path)
    return place


def over(device: str, label: str = "adaptive") -> Wanted:
    return Wanted(policy.parse(label, "test"), device=device)


def test_a_stock_kernel_with_bpf_disciplines_carries_what_thins(types: Path) -> None:
    assert Discipline().fit(over("lo")) == Fit(True, "this kernel has CONFIG_NET_SCH_BPF and BTF")
    assert "holds ACKs on lo" in Discipline().does(over("lo"))


@pytest.mark.parametrize(
    ("label", "why"),
    [
        ("delayed:segments=2", "fewer ACKs than stock"),
        ("a3", "with it: adaptive, delayed"),
        ("every", "not built"),
    ],
)
def test_the_discipline_makes_fewer_acks_alone(label: str, why: str, types: Path) -> None:
    assert why in Discipline().fit(over("lo", label)).why


def test_a_checkout_built_without_clang_says_what_builds_the_discipline(types: Path) -> None:
    for made in types.parent.glob("hold.*.bpf.o"):
        made.unlink()
    assert "install clang, then run `make build`" in Discipline().fit(over("lo")).why


def test_a_kernel_without_bpf_disciplines_is_told_what_it_lacks(types: Path) -> None:
    types.write_bytes(b"\0tcp_sock\0")
    assert "CONFIG_NET_SCH_BPF" in Discipline().fit(over("lo")).why
    types.unlink()
    assert "no BTF" in Discipline().fit(over("lo")).why


def test_the_discipline_does_not_take_a_cgroup(types: Path, tmp_path: Path) -> None:
    one = Wanted(policy.parse("adaptive", "test"), cgroup=tmp_path)
    assert "use --device" in Discipline().fit(one).why


def test_a_device_that_is_not_there_is_told(types: Path) -> None:
    assert 'no device "none0"' in Discipline().fit(over("none0")).why


def test_the_names_of_counters_are_the_programs() -> None:
    header = (ROOT / "linux/bpf/qdisc/hold.bpf.h").read_text()
    words = re.search(r"enum aw_hold_count {(.*?)};", header, re.DOTALL)
    assert words is not None
    names = re.findall(r"^\tCOUNT_(\w+)", words[1], re.MULTILINE)
    assert tuple(name.lower() for name in names) == holding.COUNTS
    queues = re.search(r"#define QUEUES (\d+)", header)
    assert queues is not None
    assert int(queues[1]) == holding.QUEUES_MAX


def test_limits_stand_in_each_roads_first_sentence() -> None:
    for road in choice.ROADS:
        assert road.cannot.startswith("It cannot ")


# --- the copy of the routes ----------------------------------------------------------------------

SHOWN = "\n".join(  # as ip prints it, with blanks at the end
    (
        "default via 10.0.0.2 dev v0 proto dhcp metric 100 linkdown ",
        "10.8.0.0/16 mtu lock 1400 \\\tnexthop via 10.0.0.2 dev v0 weight 1 "
        "\\\tnexthop via 10.0.0.3 dev v0 weight 2 ",
        "10.9.0.0/16 dev v1 scope link src 10.9.0.1 ",
        "blackhole 10.7.0.0/16 ",
        "default via fd00::2 dev v0 metric 1024 expires 599sec pref medium",
    )
)


def test_copied_routes_keep_everything_but_the_attribute() -> None:
    t = routes.TABLE
    assert routes.copied(SHOWN, "quickack 1", None) == [
        f"route append default table {t} quickack 1 via 10.0.0.2 dev v0 proto dhcp metric 100",
        f"route append 10.8.0.0/16 table {t} quickack 1 mtu lock 1400 nexthop via 10.0.0.2 dev v0 "
        "weight 1 nexthop via 10.0.0.3 dev v0 weight 2",
        f"route append 10.9.0.0/16 table {t} quickack 1 dev v1 scope link src 10.9.0.1",
        f"route append blackhole 10.7.0.0/16 table {t}",
        f"route append default table {t} quickack 1 via fd00::2 dev v0 metric 1024 pref medium",
    ]


def test_only_a_devices_routes_get_the_attribute() -> None:
    made = routes.copied(SHOWN, "quickack 1", "v1")
    assert [line.split()[2] for line in made if "quickack" in line] == ["10.9.0.0/16"]
    assert len(made) == 5  # the others go before main all the same, or longer prefixes would lose


# --- while it runs -------------------------------------------------------------------------------


def test_the_watchdog_wants_data_without_an_answer_twice() -> None:
    dog = Watchdog()
    for came, left in [(0, 0), (50, 20), (100, 20), (150, 21), (200, 21), (210, 21), (260, 21)]:
        dog.look(came, left)
    with pytest.raises(RunError, match="none left"):
        dog.look(310, 21)


def test_a_damaged_record_is_none(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    for text in ("", "{", "[]", '{"process": 1}', '{"process": 1, "more": 2}'):
        keeper.file.write_text(text)
        assert keeper.read() is None
        assert not keeper.is_running()


def test_a_process_number_alone_is_no_running_process() -> None:
    mine = leftovers.owned_name()
    assert leftovers.is_running(mine)
    prefix, space, pid, start, end = mine.split("-")
    other = f"{int(start) + 1}"
    assert not leftovers.is_running("-".join([prefix, space, pid, other, end]))


# --- what runs showed ----------------------------------------------------------------------------


def test_pairs_alternate_who_begins() -> None:
    assert trial.order(3) == [False, True, True, False, False, True]


def compared(percent: list[float], base: float = 100.0) -> Compared:
    return verdict.compare([base] * len(percent), [base + one for one in percent])


@pytest.mark.parametrize(
    ("throughput", "acks", "answer", "why"),
    [
        ([9.0, 10.0, 11.0], [-60.0, -61.0, -59.0], GAIN, "brings +10.0%"),
        ([-9.0, -10.0, -11.0], [-60.0, -61.0, -59.0], LOSS, "costs -10.0%"),
        ([0.1, -0.1, 0.0, 0.1], [-60.0, -61.0, -59.0, -60.0], SAME, "other than ACKs limits"),
        ([0.1, -0.1, 0.0, 0.1], [1.0, 0.0, -1.0, 0.5], SAME, "hardly changed the ACKs"),
        ([9.0, -8.0, 3.0], [-60.0, -61.0, -59.0], UNDECIDED, "more runs"),
        ([9.0], [-60.0], UNDECIDED, "one pair"),
    ],
)
def test_the_answer(throughput: list[float], acks: list[float], answer: str, why: str) -> None:
    found = verdict.judge("p", len(throughput), compared(throughput), compared(acks))
    assert found.answer == answer
    assert why in found.sentence


def test_a_small_but_certain_gain_is_none() -> None:
    found = verdict.judge("p", 4, compared([0.4, 0.5, 0.6, 0.5]), compared([-50.0] * 4))
    assert found.answer == SAME


def test_without_data_nothing_is_said() -> None:
    assert verdict.judge("p", 3, compared([0.0] * 3, base=0.0), compared([0.0] * 3)).answer == (
        UNDECIDED
    )


def test_runs_that_decide_do_decide_most_of_the_time() -> None:
    """An independent truth: draw as many pairs as were named, and see how often they decide."""
    source = random.Random(1)  # noqa: S311
    effect, spread = 2.0, 4.0
    first = [source.gauss(effect, spread) for _ in range(5)]
    while abs(statistics.mean(first) - effect) > 0.2 or abs(statistics.stdev(first) - spread) > 0.3:
        first = [source.gauss(effect, spread) for _ in range(5)]
    named = verdict.judge("p", 5, compared(first), compared(first))
    assert named.answer == UNDECIDED
    decided = 0
    for _ in range(400):
        more = [source.gauss(effect, spread) for _ in range(5 + named.more_runs)]
        decided += verdict.judge("p", len(more), compared(more), compared(more)).answer == GAIN
    # the interval then ends at zero on average, so half of all draws decide
    assert 0.35 < decided / 400 < 0.75


def test_more_spread_needs_more_runs() -> None:
    needed = [verdict.runs_that_decide(Estimate(2.0, ci95), 5) for ci95 in (2.1, 4.0, 8.0)]
    assert needed == sorted(set(needed))
    assert needed[0] == 6


MEASURED = trial.Measured(
    1.0, 0, 0.0, 0, 0, None, 0.0, None, 1, answers=0, overlapping=0, answer_ms=None,
    answer_p99_ms=None,
)  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "overlapping", "said"),
    [(0, 0, "got one"), (0, 5, "data came all the while"), (1, 0, ""), (1, 5, "")],
)
def test_without_answers_it_says_why(answers: int, overlapping: int, said: str) -> None:
    runs = [MEASURED, replace(MEASURED, answers=answers, overlapping=overlapping)]
    assert said in trial.untimed(runs)
    assert bool(said) == bool(trial.untimed(runs))


@pytest.mark.parametrize("many", [1, trial.P99_ANSWERS - 1, trial.P99_ANSWERS])
def test_a_99th_percentile_needs_a_hundred_answers(many: int) -> None:
    counted = dict.fromkeys(tcp_acks.COUNTERS, 0) | {"answered": many}
    answers = engine.quantiles([2000] * many)
    one = trial._measured(1.0, 0.0, counted, answers, {}, 0.0)
    assert one.answer_ms == 2.0
    assert one.answer_p99_ms == (2.0 if many == trial.P99_ANSWERS else None)


# --- the command ---------------------------------------------------------------------------------


def test_dry_run_says_road_limit_and_change(ackwise: Ackwise) -> None:
    said = ackwise("run", "every", "--dry-run")
    assert said.code == 0, said.err
    assert "by route attribute quickack" in said.out
    assert "It cannot send fewer ACKs than stock" in said.out
    assert f"table {routes.TABLE}" in said.out
    assert "not by TCP_BPF_DELACK_MAX" in said.out


def test_no_road_is_told_with_its_exit_code(ackwise: Ackwise) -> None:
    said = ackwise("run", "greedy")
    assert said.code == 1
    assert said.out == ""
    assert said.err.count("not by ") == len(choice.ROADS)
    as_json = ackwise("run", "greedy", "--json")
    assert as_json.code == 1
    assert json.loads(as_json.out)["road"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run"], "which policy"),
        (["run", "evry"], 'did you mean "every"'),
        (["run", "xnu"], "rule of another stack"),
        (["run", "every", "--device", "nosuch0"], "no such interface"),
        (["run", "every", "--cgroup", "/nonexistent"], "no such folder"),
        (["run", "every", "--device", "lo", "--cgroup", "/"], "cannot be combined"),
        (["run", "every", "--status"], "leave every out"),
        (["run", "--status", "--stop"], "cannot be combined"),
        (["try", "--policy", "every"], "command is missing"),
        (["try", "--", "true"], "--policy is missing"),
        (["try", "--policy", "every", "--", "no-such-program"], "no such program"),
    ],
)
def test_mistakes_name_the_remedy(words: list[str], message: str, ackwise: Ackwise) -> None:
    said = ackwise(*words)
    assert said.code == 2
    assert message in said.err


def test_the_unit_takes_back_what_a_kill_leaves(ackwise: Ackwise) -> None:
    said = ackwise("run", "every", "--device", "lo", "--systemd")
    assert said.code == 0
    assert "run every --device lo\n" in said.out
    assert "ExecStopPost=" in said.out
    assert "run --stop\n" in said.out


def test_nothing_in_force_is_told(ackwise: Ackwise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Keeper, "read", lambda _self: None)
    assert ackwise("run", "--status").code == 1
    assert json.loads(ackwise("run", "--status", "--json").out)["in_force"] is False
