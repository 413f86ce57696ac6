# SPDX-License-Identifier: MIT
"""Claims about ACKs without a kernel: the language, what it refuses, what the judge lets pass."""

import json
from pathlib import Path

import pytest

from ackwise import __version__, engine
from ackwise.cli import main as cli
from ackwise.errors import InputError
from ackwise.host import programs
from ackwise.lab.image import Image
from ackwise.lab.machine import Kernel
from ackwise_experiments.conform import document, suite, world
from ackwise_experiments.conform.claim import (
    DISCIPLINE,
    MODULE,
    ROUTE,
    App,
    Arrives,
    Claim,
    Leaves,
    Quiet,
    parse,
)
from ackwise_experiments.conform.suite import Came, Seen, SentPacket
from ackwise_experiments.conform.world import OnImage

HEAD = "rfc 9293 3.8.6.3 MUST\nwhy Because.\n"
MSS = 1460
WARM = 20 * MSS


def claim(body: str, head: str = HEAD) -> Claim:
    return parse(Path("some.claim"), head + body)


def packet(ack: int, at_us: float, cause: int = -1, **more: object) -> SentPacket:
    """A pure ACK; `cause` counts the script's own actions."""
    keys: dict[str, object] = {
        "seq": 0, "length": 0, "window": 23360, "flags": "A", "sack": (), "reasons": (),
        "echo": None,
    }  # fmt: skip
    warm = 21  # segments of the warm-up, and quickack
    index = warm + cause if cause >= 0 else -1
    keys |= more
    return SentPacket(cause=index, time_ns=int(at_us * 1000), ack=WARM + ack, **keys)  # type: ignore[arg-type]


def problem(script: Claim, *packets: SentPacket, policy: str = "stock") -> str:
    return Seen(script, policy, policy, Came(list(packets), {})).outcome().problem


# --- the language --------------------------------------------------------------------------------


def test_a_script_is_read_line_by_line() -> None:
    read = claim(
        "policies stock delayed:segments=8\n"
        "peer timestamps=yes mss=1012\n"
        "host rcvbuf=9000 tcp_sack=0\n"
        "at 1ms arrives 0s:1s+10 psh win 77 # a comment\n"
        "leaves ack 1s+10 win 5 sack 2s:3s,4s:5s ece ecr -1ms because duplicate/push\n"
        "at 2ms app reads 1s\n"
        "by 0.5s leaves ack 3s-1\n"
        "until 700.5ms nothing leaves\n"
        "end 9s\n"
    )
    assert read.mss == 1000
    assert read.sysctls == {"tcp_sack": "0"}
    what = [line.what for line in read.lines]
    assert what == [
        Arrives(0, 1010, window=77, flags="P"),
        Leaves(
            "ack", 1010, window=5, sack=((2000, 3000), (4000, 5000)), ece=True, echo=-1,
            because=("duplicate", "push"),
        ),
        App("read", "1000", 1000),
        Leaves("ack", 2999, by_us=500_000),
        Quiet(700_500),
    ]  # fmt: skip
    assert [line.time_us for line in read.lines] == [1000, 1000, 2000, 500_000, 700_500]
    assert (read.end_us, [line.number for line in read.lines]) == (9_000_000, [6, 7, 8, 9, 10])


def test_lines_are_chosen_by_policy() -> None:
    read = claim(
        "at 0ms arrives 0s:1s\nfor stock delayed: at 45ms leaves ack 1s\n"
        "for every: leaves ack 1s\nelse: by 500ms leaves ack 1s\n"
    )
    timed = {
        name: read.for_policy(name)[-1].what for name in ("delayed", "every", "a3", "a3:delay_ms=9")
    }
    assert timed["delayed"] == Leaves("ack", MSS, at_us=45_000)
    assert timed["every"] == Leaves("ack", MSS)
    assert timed["a3"] == timed["a3:delay_ms=9"] == Leaves("ack", MSS, by_us=500_000)
    assert all(len(read.for_policy(name)) == 2 for name in timed)


def test_figures_of_a_policy_are_those_of_its_own_parameters() -> None:
    named = claim(
        "at 0ms arrives 0s:1s\nfor delayed: at 200ms leaves ack 1s\nelse: leaves ack 1s\n"
    )
    assert named.choice("delayed") == "delayed"
    assert named.choice("delayed:delay_ms=9") is None
    assert named.choice("a3:delay_ms=9") == "a3:delay_ms=9"
    contract = claim("policies delayed:segments=8\nat 0ms arrives 0s:8s\nleaves ack 8s\n")
    assert contract.choice("delayed") == contract.choice("delayed:segments=8")
    assert contract.choice("delayed:segments=4") is None
    assert contract.choice("a3") is None


@pytest.mark.parametrize(
    ("body", "line", "says"),
    [
        ("at 0ms arives 0s:1s", 3, '"arives" is not known here; did you mean "arrives"?'),
        ("at 0 arrives 0s:1s", 3, '"0" is not a valid time; give one such as 45ms'),
        ("at 5ms arrives 0s:1s\nat 4ms leaves ack 1s", 4, "4 ms is before 5 ms"),
        ("at 700s arrives 0s:1s", 3, "a claim lasts 600 s at most"),
        ("at 0ms arrives 0s", 3, '"0s" is not a range; give FROM:TO'),
        ("at 0ms arrives 2s:1s", 3, '"2s:1s" ends before it begins'),
        ("at 0ms arrives 0s:x", 3, '"x" is not a valid offset'),
        ("at 0ms arrives 0:99999999999", 3, "is out of range; give 0 to 2147483647 bytes"),
        ("at 0ms arrives 0s:1s finn", 3, 'did you mean "fin"?'),
        ("at 0ms arrives 0s:1s tsval 3ms", 3, "tsval needs a line `peer timestamps=yes`"),
        ("at 0ms arrives 0s:1s size 2000", 3, "size 2000 is out of range; give 1 to 1460"),
        ("at 0ms arrives", 3, "the line ends where a range such as 0s:1s is expected"),
        ("at 0ms leaves ack 1s 2s", 3, '"2s" is not known here'),
        ("at 0ms leaves ack 1s because of", 3, '"of" is not known here'),
        ("at 0ms app jumps", 3, '"jumps" is not known here'),
        ("at 0ms app reads 0", 3, "reads 0: give at least one byte"),
        ("at 0ms app sets quickack", 3, "quickack has no value"),
        ("at 0ms app shuts now", 3, '"now" is not known here; known: reading'),
        ("at 0ms app closes now", 3, '"now" is not expected here; remove it'),
        ("by 5ms arrives 0s:1s", 3, '"arrives" is not known here'),
        ("until 5ms silence", 3, "after `until TIME` give `nothing leaves`"),
        ("for nobody: leaves ack 1s", 3, '"nobody" is not known here'),
        ("for stock leaves ack 1s", 3, '"leaves" is not known here'),
        ("else: leaves ack 1s", 3, "`else:` needs a line `for NAMES:` before it"),
        ("at 0ms arrives 0s:1s\nhost warm=0", 4, "`host` comes after a statement"),
        ("peer completes=no\nat 0ms arrives 0s:1s\nleaves ack 1s", 5, "needs a line `host warm=0`"),
        ("peer syn_bytes=9\nat 0ms arrives 9:10\nleaves ack 10", 5, "needs a line `host warm=0`"),
        ("peer syn_bytes=1461\nat 0ms arrives 0s:1s", 4, "one segment at most; give 0 to 1460"),
        ("peer sack=perhaps", 3, '"perhaps" is not known here; known: yes, no'),
        ("peer rtt=9s", 3, "rtt: \"9s\" is out of range; give 0ms to 500ms"),
        ("host rcvbuf=many", 3, 'rcvbuf: "many" is not a whole number'),
        ("unless there It differs.", 3, '"there" is neither one of module, route, '),
        ("unless 7.3", 3, "say what happens there: `unless 7.3 TEXT`"),
        ("host buffer=1", 3, '"buffer" is not known here'),
        ("host warm", 3, '"warm" is not of the form key=value'),
        ("policies delayed:segments=0", 3, "policies: delayed.segments: \"0\" is too small"),
        ("rfc 9293 3.8.6.3 OUGHT", 3, '"OUGHT" is not known here; known: MUST, SHOULD'),
        ("rfc nine 3.8 MUST", 3, "give number, section and level"),
        ("at 0ms arrives 0s:1s", 3, "nothing is claimed; add a line `leaves ...`"),
    ],
)  # fmt: skip
def test_a_bad_script_is_refused_with_file_and_line(body: str, line: int, says: str) -> None:
    with pytest.raises(InputError) as refused:
        claim(body + "\n")
    assert str(refused.value).startswith(f"some.claim:{line}: ")
    assert says in str(refused.value)


def test_the_example_of_the_docs_is_a_claim(root: Path) -> None:
    page = (
        (root / "docs/inside/conform.md").read_text().split("\n## A script\n")[1].split("\n## ")[0]
    )
    block = [line[4:] for line in page.splitlines() if line.startswith("    ")]
    read = parse(Path("docs"), "\n".join(block))
    assert [str(rfc) for rfc in read.rfcs] == ["RFC 5681, 4.2", "RFC 9293, 3.8.6.3"]
    assert len(read.for_policy("stock")) == 5


def test_rfc_and_reason_are_asked_for() -> None:
    with pytest.raises(InputError, match=r"some.claim:2: no RFC is cited"):
        claim("at 0ms leaves ack 0\n", "why Because.\n")
    with pytest.raises(InputError, match=r"some.claim:2: no reason is given"):
        claim("at 0ms leaves ack 0\n", "rfc 9293 3.4 MUST\n")


# --- to the guest --------------------------------------------------------------------------------


def test_a_range_is_cut_into_segments_and_fin_and_psh_go_on_the_last() -> None:
    read = claim("host warm=1\nat 3ms arrives 1s:3s+5 fin psh ack 7 ce\nat 4ms arrives 0:0\n"
                 "until 1s nothing leaves\n")  # fmt: skip
    done = suite.actions(read, read.for_policy("stock"))
    assert [(one.time_us, one.text) for one in done] == [
        (-21_000, "segment seq=0 len=1460 ack=0 flags=A"),
        (-20_000, "set quickack=1"),
        (3_000, "segment seq=2920 len=1460 ack=7 flags=A tos=3"),
        (3_000, "segment seq=4380 len=1460 ack=7 flags=A tos=3"),
        (3_000, "segment seq=5840 len=5 ack=7 flags=FPA tos=3"),
        (4_000, "segment seq=1460 len=0 ack=7 flags=A"),  # the last ACK holds
    ]
    assert suite.end_us(read, read.lines) == 2_000_000


def test_the_guests_output_is_read() -> None:
    told = suite.read_came(
        "claim 3\n"
        "app action=4 result=-11\n"
        "left cause=2 time_ns=2048 seq=0 ack=10 len=0 win=9 tos=0 flags=AE sack=11:12,14:15 "
        "ecr_ms=5 reason=duplicate\n"
        "done 3\n"
        "claim 4\n"
        "left cause=-1 time_ns=5 seq=1 ack=2 len=3 win=4 tos=0 flags=PA\n"
    )
    assert list(told) == [3]  # the other one did not end
    assert told[3].results == {4: -11}
    assert told[3].packets == [
        SentPacket(2, 2048, 0, 10, 0, 9, "AE", ((11, 12), (14, 15)), ("duplicate",), 5)
    ]


# --- judging -------------------------------------------------------------------------------------

TIMED = claim("at 0ms arrives 0s:1s\nat 45ms leaves ack 1s\n")
AT_ONCE = claim("at 0ms arrives 1s:2s\nleaves ack 0 sack 1s:2s\n")
DUE = claim("at 0ms arrives 0s:4s\nby 500ms leaves ack 4s\n")


def test_time_is_exact_to_the_resolution_and_creep_is_cut_off() -> None:
    assert problem(TIMED, packet(MSS, 45_000)) == ""
    assert problem(TIMED, packet(MSS, 45_099.9)) == ""
    assert "it came at 45.1 ms" in problem(TIMED, packet(MSS, 45_100))
    assert "it came at 44.9 ms" in problem(TIMED, packet(MSS, 44_999.9))
    assert "it came at once" in problem(TIMED, packet(MSS, 45_000, cause=0))


def test_at_once_is_a_matter_of_cause_not_of_the_clock() -> None:
    good = packet(0, 2, 0, sack=((WARM + MSS, WARM + 2 * MSS),))
    late = packet(0, 2, -1, sack=((WARM + MSS, WARM + 2 * MSS),))
    assert problem(AT_ONCE, good) == ""
    assert "it came from a timer" in problem(AT_ONCE, late)


def test_a_packet_without_a_line_fails_the_claim() -> None:
    assert "expected nothing more" in problem(TIMED, packet(MSS, 45_000), packet(MSS, 90_000))
    assert "nothing came" in problem(TIMED)
    quiet = claim("at 0ms arrives 0s:1s\nuntil 40ms nothing leaves\nby 500ms leaves ack 1s\n")
    assert "expected nothing; came at 39.9 ms" in problem(quiet, packet(MSS, 39_990))
    assert problem(quiet, packet(MSS, 40_000)) == ""


def test_acks_of_less_may_come_before_the_one_that_is_due() -> None:
    assert problem(DUE, packet(2 * MSS, 1, 1), packet(4 * MSS, 500_000)) == ""
    assert "it came at 500.1 ms" in problem(DUE, packet(4 * MSS, 500_100))
    assert "it acknowledges 5s" in problem(DUE, packet(5 * MSS, 9))
    assert "nothing came" in problem(DUE, packet(2 * MSS, 1, 1))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"flags": "RA"}, "it is rst, not ack"),
        ({"flags": "FA"}, "it is fin, not ack"),
        ({"length": 3}, "it is data, not ack"),
        ({"flags": "AE"}, "its ECE is set"),
        ({"sack": ((WARM, WARM + MSS),)}, "its SACK blocks are 0:1s"),
        ({"window": 5}, "its window is 5"),
        ({"echo": 3}, "it echoes the timestamp of 3 ms"),
        ({"reasons": ("push",)}, "its reason is push"),
        ({"reasons": ()}, "its reason is none"),
    ],
)
def test_every_part_of_a_segment_counts(changed: dict[str, object], says: str) -> None:
    read = claim("peer timestamps=yes mss=1472\nat 0ms arrives 0s:1s\n"
                 "leaves ack 1s win 9 ecr 1ms because duplicate\n")  # fmt: skip
    good: dict[str, object] = {"window": 9, "echo": 1, "reasons": ("duplicate",)}
    assert problem(read, packet(MSS, 1, 0, **good), policy="every") == ""
    assert says in problem(read, packet(MSS, 1, 0, **good | changed), policy="every")


def test_the_kernels_own_code_gives_no_reasons() -> None:
    read = claim("at 0ms arrives 0s:1s\nleaves ack 1s because push\n")
    assert problem(read, packet(MSS, 1, 0)) == ""


def test_an_image_may_send_by_its_own_tick_but_not_for_another_cause() -> None:
    def told(at_us: float, cause: int = -1) -> str:
        came = Came([packet(MSS, at_us, cause)], {})
        return Seen(TIMED, "stock", "stock", came, slack_us=10_000).outcome().problem

    assert told(45_000 - 10_000) == told(45_000 + 10_000) == ""
    assert "it came at 55.1 ms" in told(55_100)
    assert "it came at 34.9 ms" in told(34_900)
    assert "it came at once" in told(45_000, 0)


def test_silence_on_an_image_ends_a_tick_early() -> None:
    read = claim("at 0ms arrives 0s:1s\nuntil 40ms nothing leaves\nby 60ms leaves ack 1s\n")

    def told(at_us: float) -> str:
        came = Came([packet(MSS, at_us)], {})
        return Seen(read, "stock", "stock", came, slack_us=10_000).outcome().problem

    assert told(30_000) == told(70_000) == ""
    assert "expected nothing" in told(29_900)
    assert "it came at 70.1 ms" in told(70_100)


def test_a_kernel_that_counts_no_reasons_is_not_asked_for_them() -> None:
    read = claim("at 0ms arrives 0s:1s\nleaves ack 1s because push\n")
    came = Came([packet(MSS, 1, 0)], {})
    assert "its reason is none" in Seen(read, "every", "every", came).outcome().problem
    seen = Seen(read, "every", "every", came, counts_reasons=False)
    assert seen.outcome().problem == ""


def test_the_application_must_read_the_bytes_that_were_sent() -> None:
    read = claim("host warm=0 reader=idle\nat 0ms arrives 0:9\nby 500ms leaves ack 9\n"
                 "at 600ms app reads 9\n")  # fmt: skip
    ack = SentPacket(-1, 45 * 10**6, 0, 9, 0, 9, "A", (), (), None)

    def told(result: int) -> str:
        return Seen(read, "stock", "stock", Came([ack], {1: result})).outcome().message

    assert told(9) == "some.claim: stock: "
    assert (
        "some.claim:6: stock: expected the application's call to return 9; it returned 5" in told(5)
    )
    assert "the application did not read the bytes that were sent" in told(-74)


# --- a distribution's kernel ---------------------------------------------------------------------


def test_a_claim_may_except_the_module_and_newer_releases() -> None:
    read = claim("unless 7.3 It replies.\nunless module It holds.\nat 0ms arrives 0s:1s\n"
                 "by 500ms leaves ack 1s\n")  # fmt: skip
    told = read.exception
    assert told("6.12.117+deb12-amd64") == told("7.2.9") == told("6.12.117", "route") == ""
    assert told("7.3.4+deb13-amd64") == told("7.10.1") == told("8.0") == "It replies."
    assert told("6.12.117", "module") == "It holds."


def image_of(folder: Path, policies: str = "", options: str = "") -> OnImage:
    """An image without a kernel in it."""
    modules = folder / "usr/lib/modules/6.12.117+deb12-amd64"
    (modules / "kernel").mkdir(parents=True)
    (modules / "modules.builtin").write_text("kernel/drivers/net/tun.ko\n")
    (modules / "config").write_text("CONFIG_IP_MULTIPLE_TABLES=y\n" + options)
    if policies:
        (modules / "ackwise.ko").write_bytes(b"\0policies=" + policies.encode() + b"\0")
    image = Image(folder / "vmlinuz", modules)
    return world.on_image(Kernel(image.linux, Path("guest"), image.label, "0", False), image)


def test_claims_choose_what_a_namespace_can(tmp_path: Path) -> None:
    where = image_of(tmp_path, "adaptive delayed").image
    assert world.of_image(where) == ["adaptive", "delayed"]
    assert world.way_of(where, "delayed:segments=4") == MODULE
    assert world.way_of(where, "every") == ROUTE
    assert world.way_of(where, "delayed:segments=2,delay_ms=20") == MODULE
    assert world.way_of(where, "stock") == ""
    with pytest.raises(InputError, match=r"a3: .* has no road for it; .*ackwise\.ko"):
        world.way_of(where, "a3")


def test_without_the_module_claims_choose_every(tmp_path: Path) -> None:
    where = image_of(tmp_path).image
    assert world.of_image(where) == ["every"]
    with pytest.raises(InputError, match=r"adaptive: .* has no road for it"):
        world.way_of(where, "adaptive")


def test_roads_of_the_whole_host_have_no_claim_about_a_socket_s_policy(tmp_path: Path) -> None:
    needed = ("NET_SCH_BPF", "DEBUG_INFO_BTF", "BPF_JIT")
    where = image_of(tmp_path, options="".join(f"CONFIG_{one}=y\n" for one in needed))
    assert {"adaptive", "delayed:segments=8"} < set(world.of_image(where.image))
    assert where.way("adaptive") == DISCIPLINE
    assert where.keys("adaptive") == {"by": "host"}
    plain = claim("at 0ms arrives 0s:1s\nby 500ms leaves ack 1s\n")
    sets = claim("at 0ms app sets policy=every\nat 1ms arrives 0s:1s\nby 500ms leaves ack 1s\n")
    other = claim("policies adaptive:price_permille=9\nat 0ms arrives 0s:1s\n"
                  "by 500ms leaves ack 1s\n")  # fmt: skip
    assert where.exception(plain, "adaptive") == ""
    assert "No socket" in where.exception(sets, "adaptive")
    assert "other parameters" in where.exception(other, "adaptive")
    assert where.exception(other, "adaptive:price_permille=9") == ""


def test_a_line_may_be_of_one_way(tmp_path: Path) -> None:
    read = claim("at 0ms arrives 0s:1s\nfor discipline: leaves ack 0\nby 500ms leaves ack 1s\n")
    assert len(read.for_policy("adaptive")) == 2
    assert len(read.for_policy("adaptive", DISCIPLINE)) == 3


def test_an_image_without_tun_is_refused(tmp_path: Path) -> None:
    (tmp_path / "modules/kernel").mkdir(parents=True)
    (tmp_path / "modules/modules.builtin").write_text("")
    image = Image(tmp_path / "vmlinuz", tmp_path / "modules")
    kernel = Kernel(image.linux, Path("guest"), image.label, "0", False)
    with pytest.raises(InputError, match="has no module tun"):
        world.on_image(kernel, image)


def test_how_a_policy_is_chosen_depends_on_the_kernel(tmp_path: Path) -> None:
    where = image_of(tmp_path, "delayed")
    done = suite.actions(TIMED, TIMED.lines)
    for policy, one, said in (
        ("every", world.InLab(where.kernel), ""),
        ("delayed", where, "by=sysctl"),
        ("every", where, f"by=route ip={programs.program('ip')}"),
        ("stock", where, "by=sysctl"),
    ):
        first = suite.script(0, TIMED, policy, done, 0, one.keys(policy))[0]
        assert first.endswith(said) if said else "by=" not in first
        assert ("policy=" in first) is (policy != "stock")


# --- what is shipped, and the command ------------------------------------------------------------


def test_the_shipped_claims_are_enough_and_cite_their_rfcs() -> None:
    shipped = suite.shipped()
    assert len(shipped) >= 40
    for one in shipped:
        assert one.name == one.name.lower()
        assert one.name.count("-") >= 2, "the name is the claim, in words"
    cited = {rfc.number for one in shipped for rfc in one.rfcs}
    assert cited >= {1122, 2018, 2883, 3168, 5681, 5961, 7323, 8257, 9293}
    everyone = [one for one in shipped if not one.policies]
    assert len(everyone) >= 40
    # each policy has a contract of its own that is claimed
    named = {asked.partition(":")[0] for one in shipped for asked in one.policies}
    policies = {p["name"] for p in engine.policies() if p["kind"] == "policy"}
    unclaimed = policies - named - {"a3fewer"}
    assert not unclaimed, f"no file in linux/conform has `policies` with {unclaimed}"


def test_claims_are_found_by_name_pattern_and_file(tmp_path: Path) -> None:
    mine = tmp_path / "mine.claim"
    mine.write_text(HEAD + "at 0ms arrives 0s:1s\nby 500ms leaves ack 1s\n")
    names = [
        one.name
        for one in suite.choose(["a-fin-*", str(mine), "a-fin-with-data-is-acknowledged-at-once"])
    ]
    assert names == sorted(set(names))
    assert {"mine", "a-fin-with-data-is-acknowledged-at-once"} <= set(names)
    with pytest.raises(
        InputError, match=r"a-fin-sent-agian-is-acknowledged-again: not a known claim; did you mean"
    ):
        suite.choose(["a-fin-sent-agian-is-acknowledged-again"])
    with pytest.raises(InputError, match=r"not a known claim"):
        suite.choose([str(tmp_path / "none.claim")])


def test_the_list_needs_no_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lab", "conform", "--list", "*window*"]) == 0
    told = capsys.readouterr().out
    assert "a-full-buffer-advertises-a-zero-window\n    RFC 9293, 3.8.6 text: " in told


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--stock", "--policy", "every"], "a kernel without patches has no policies"),
        (["--policy", "evry"], 'did you mean "every"?'),
        (["--policy", "every:clamp=none"], "a kernel's rules cannot be changed"),
        (["--policy", "xnu"], "the rule of another stack, which no kernel has"),
        (["delayed-8-*", "--policy", "every"], "none of the claims given is about every"),
        (["no-such-claim"], "no-such-claim: not a known claim"),
    ],
)
def test_impossible_requests_are_refused(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["lab", "conform", *words]) == 2
    assert says in capsys.readouterr().err


def test_the_json_document_has_the_keys_that_are_described() -> None:
    outcome = Seen(TIMED, "stock", "stock", Came([packet(MSS, 45_000)], {})).outcome()
    kernel = Kernel(Path("linux"), Path("lab-guest"), "Linux 6.12, patched", "hash", True)
    made = document.document(world.InLab(kernel), [TIMED], ["stock"], [outcome])
    whole = json.loads(json.dumps(made))
    told = " ".join(document.KEYS)
    for key in [*whole, *whole["claims"][0], *whole["claims"][0]["cells"][0]]:
        assert key in told
    assert (whole["held"], whole["failed"]) == (1, 0)
    assert whole["provenance"] == {
        "world": "lab", "kernel": "Linux 6.12, patched", "kernel_hash": "hash",
        "ackwise_version": __version__, "seeds": [1], "clamp": {"stock": None},
    }  # fmt: skip
