# SPDX-License-Identifier: MIT
"""`ackwise gateway up | down | status` on interfaces of a network namespace, and its faults."""

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from conftest import Said
from frames import Packet
from netns import NEEDS_ROOT, Namespace, killed_at, namespace

from ackwise.cli import main as cli
from ackwise.gateway import control, rehearsal, tree
from ackwise.gateway.state import Keeper
from ackwise.gateway.tree import TreeSettings

pytestmark = NEEDS_ROOT

RATES = ("--down", "2.1mbit", "--up", "800kbit", "--ack-leaf", "pfifo", "--data-leaf", "pfifo")


@pytest.fixture
def ns() -> Iterator[Namespace]:
    with namespace() as made:
        yield made


@pytest.fixture
def run() -> Iterator[Path]:
    """A run directory that does not exist yet, where everybody may look."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "run"


def own_htb(ns: Namespace) -> None:
    """Queues of a user: classes below classes, leaves, u32 and bpf filters."""
    for line in (
        "qdisc add dev v0 root handle 1: htb default 30 r2q 5",
        "class add dev v0 parent 1: classid 1:1 htb rate 5mbit burst 6k",
        "class add dev v0 parent 1:1 classid 1:10 htb rate 2mbit ceil 5mbit prio 2 burst 8k",
        "class add dev v0 parent 1:1 classid 1:30 htb rate 1mbit ceil 4mbit overhead 26 mpu 64",
        "qdisc add dev v0 parent 1:10 handle 10: pfifo limit 33",
        "qdisc add dev v0 parent 1:30 handle 30: tbf rate 900kbit burst 5000 limit 40000",
        "filter add dev v0 parent 1: protocol ip prio 4 u32 match ip dport 22 0xffff flowid 1:10",
        "filter add dev v0 parent 1: protocol ipv6 prio 5 u32 match ip6 dport 22 0xffff "
        "flowid 1:10",
        "filter add dev v0 parent 1: protocol all prio 9 bpf bytecode '1,6 0 0 0' flowid 1:30",
    ):
        ns.tc(line)


def own_tbf(ns: Namespace) -> None:
    ns.tc("qdisc add dev v0 root handle 7: tbf rate 3mbit burst 6000 limit 60000")


def own_none(_ns: Namespace) -> None:
    """The kernel's default."""


def up(ns: Namespace, run: Path, *more: str) -> Said:
    return ns.ackwise("gateway", "up", "v0", *RATES, "--run-dir", str(run), *more)


def down(ns: Namespace, run: Path) -> Said:
    return ns.ackwise("gateway", "down", "v0", "--run-dir", str(run))


def status(ns: Namespace, run: Path, *more: str) -> Said:
    return ns.ackwise("gateway", "status", "v0", "--run-dir", str(run), *more)


def test_up_and_down_leave_no_trace(ns: Namespace, run: Path) -> None:
    before = ns.told_by_tc()
    said = up(ns, run)
    assert said.code == 0, said.err
    assert "v0: up" in said.out
    assert status(ns, run).code == 0
    told = ns.told_by_tc()
    assert "qdisc htb ac: root" in told
    assert (
        "class htb ac:10 parent ac:1 leaf ac10: prio 0 quantum 1514 rate 114Kbit ceil 800Kbit"
        in told
    )
    assert "qdisc pfifo ac10: parent ac:10 limit 100p" in told
    assert "qdisc pfifo ac20: parent ac:20 limit 100p" in told
    said = down(ns, run)
    assert (said.code, said.out) == (0, "v0: down; the kernel's default queue\n")
    assert ns.told_by_tc() == before
    assert not run.exists()
    assert status(ns, run).code == 1


def test_what_is_no_uplink_is_refused(ns: Namespace, run: Path) -> None:
    said = ns.ackwise("gateway", "up", "lo", *RATES, "--run-dir", str(run))
    assert said.code == 2
    assert '"lo" is the loopback' in said.err
    said = ns.ackwise("gateway", "down", "nosuch0", "--run-dir", str(run))
    assert said.code == 2
    assert '"nosuch0": there is no such interface' in said.err
    assert not run.exists()


def test_where_nothing_is_gained_nothing_is_changed(ns: Namespace, run: Path) -> None:
    before = ns.told_by_tc()
    rates = ("--down", "9mbit", "--up", "9mbit", "--mtu", "9000B")
    words = ("gateway", "up", "v0", *rates, "--run-dir", str(run))
    said = ns.ackwise(*words)
    assert (said.code, said.out) == (1, "")
    assert "v0: nothing to offer: the ACKs of a full downlink need only 0.73%" in said.err
    assert ns.told_by_tc() == before
    assert not run.exists()
    assert ns.ackwise(*words, "--force").code == 0
    assert "qdisc htb ac: root" in ns.told_by_tc()


def test_the_state_of_another_namespace_is_not_this_one_s(ns: Namespace, run: Path) -> None:
    up(ns, run)
    with namespace() as other:
        said = status(other, run)
    assert said.code == 1
    assert "v0: down; `up` was run on an interface of this name in another" in said.out


def test_up_twice_is_up_once_and_so_is_down(ns: Namespace, run: Path) -> None:
    up(ns, run)
    ns.send(Packet(payload=b"x" * 500).frame())
    before = ns.told_by_tc()
    said = up(ns, run)
    assert (said.code, said.out.splitlines()[0]) == (0, "v0: already up")
    assert ns.told_by_tc() == before
    told = json.loads(status(ns, run, "--json").out)
    assert told["classes"]["data"]["sent_bytes"] >= 554, "counters go on"
    assert down(ns, run).code == 0
    said = down(ns, run)
    assert (said.code, said.out) == (0, "v0: is not up\n")


def test_other_settings_replace_the_first_and_down_still_knows_what_was_before(
    ns: Namespace, run: Path
) -> None:
    own_htb(ns)
    before = ns.told_by_tc()
    assert up(ns, run, "--replace").code == 0
    assert ns.ackwise(
        "gateway", "up", "v0", "--down", "8mbit", "--up", "1mbit", "--data-leaf", "bfifo:30000",
        "--run-dir", str(run),
    ).code == 0  # fmt: skip
    assert "bfifo ac20: parent ac:20 limit 30000b" in ns.told_by_tc()
    assert down(ns, run).code == 0
    assert ns.told_by_tc() == before


@pytest.mark.parametrize("own", [own_htb, own_tbf])
def test_queues_of_the_user_are_refused_or_kept(
    ns: Namespace, run: Path, own: Callable[[Namespace], None]
) -> None:
    own(ns)
    before = ns.told_by_tc()
    said = up(ns, run)
    assert said.code == 2
    assert "v0: already has queues" in said.err
    assert "--replace" in said.err
    assert ns.told_by_tc() == before
    assert not run.exists()
    said = up(ns, run, "--replace")
    assert said.code == 0, said.err
    assert ns.told_by_tc() != before
    assert down(ns, run).code == 0
    assert ns.told_by_tc() == before
    assert not run.exists()


def test_what_could_not_come_back_is_not_taken_away(ns: Namespace, run: Path) -> None:
    """A filter's action holds counters and times, which no request can set."""
    ns.tc("qdisc add dev v0 root handle 1: htb")
    ns.tc(
        "filter add dev v0 parent 1: protocol ip prio 4 u32 match u32 0 0 "
        "action mirred egress redirect dev v1"
    )
    before = ns.told_by_tc()
    said = up(ns, run, "--replace")
    assert said.code == 2, said
    assert "not changed" in said.err
    assert "could not be restored exactly" in said.err
    assert ns.told_by_tc() == before


def test_ingress_queues_stay(ns: Namespace, run: Path) -> None:
    ns.tc("qdisc add dev v0 clsact")
    ns.tc("filter add dev v0 ingress prio 3 protocol ip u32 match u32 0 0")
    before = ns.tool("tc", "filter", "show", "dev", "v0", "ingress")
    assert "match 00000000" in before
    assert up(ns, run).code == 0
    assert down(ns, run).code == 0
    assert ns.tool("tc", "filter", "show", "dev", "v0", "ingress") == before


@pytest.mark.parametrize(
    ("layer", "down_rate", "up_rate"),
    [
        ("header", "2.1mbit", "800kbit"),
        ("atm", "40mbit", "640kbit"),
        ("docsis", "200mbit", "10mbit"),
        ("ethernet", "200gbit", "60gbit"),  # beyond what 32 bits of bytes per second hold
        ("ip", "1mbit", "9kbit"),
        ("33B", "1001kbit", "333333bit"),
    ],
)
def test_the_printed_commands_make_the_same_tree(
    ns: Namespace, run: Path, layer: str, down_rate: str, up_rate: str
) -> None:
    words = ("v0", "--down", down_rate, "--up", up_rate, "--overhead", layer,
             "--ack-leaf", "pfifo_head_drop:20", "--data-leaf", "bfifo")  # fmt: skip
    assert ns.ackwise("gateway", "up", *words, "--run-dir", str(run)).code == 0
    ours, told = ns.snapshot(), ns.told_by_tc()
    assert down(ns, run).code == 0
    plan = ns.ackwise("gateway", "plan", *words, "--json")
    for line in json.loads(plan.out)["commands"]:
        ns.tool("sh", "-c", line)
    assert ns.told_by_tc() == told
    assert ns.snapshot() == ours


def test_plan_changes_nothing(ns: Namespace) -> None:
    before = ns.told_by_tc()
    assert ns.ackwise("gateway", "plan", "v0", *RATES).code == 0
    assert ns.told_by_tc() == before


def test_up_tests_itself_and_status_shows_the_outcome(ns: Namespace, run: Path) -> None:
    said = up(ns, run)
    assert (said.code, said.err) == (0, "")
    assert "- self-test passed: a pure ACK reached the ACK class\n" in said.out
    told = status(ns, run)
    assert "self-test passed" in told.out
    assert "warning" not in told.out
    told = status(ns, run, "--json")
    assert json.loads(told.out)["self_test"]["passed"] is True
    assert json.loads(told.out)["classes"]["ack"]["sent_packets"] == 1
    assert 'self_test_passed{interface="v0"} 1\n' in status(ns, run, "--prometheus").out


def test_a_wrong_framing_fails_the_self_test_but_changes_nothing(ns: Namespace, run: Path) -> None:
    said = up(ns, run, "--framing", "ip")
    assert said.code == 0
    assert said.err == (
        "ackwise: warning: --framing ip contradicts the kind of v0, which has ethernet framing\n"
        "ackwise: warning: v0: self-test FAILED: a pure ACK did not reach the ACK class within "
        "2 s: is --framing right?\n"
    )
    told = status(ns, run)
    assert told.code == 0, "the queues are up"
    assert "self-test FAILED" in told.out
    assert 'self_test_passed{interface="v0"} 0\n' in status(ns, run, "--prometheus").out


def test_the_self_test_can_be_left_out_and_what_cannot_be_sent_is_said(
    ns: Namespace, run: Path
) -> None:
    assert "self-test" not in up(ns, run, "--no-self-test").out
    told = json.loads(status(ns, run, "--json").out)
    assert (told["self_test"], told["classes"]["ack"]["sent_packets"]) == (None, 0)
    ns.tool("ip", "link", "set", "v0", "down")
    said = up(ns, run)
    assert said.code == 0
    assert "self-test not run: no probe could be sent: Network is down" in said.err
    assert "self-test not run" in status(ns, run).out


def test_status_warns_when_no_ack_matches(ns: Namespace, run: Path) -> None:
    assert up(ns, run, "--no-self-test", "--data-leaf", "pfifo:1000").code == 0
    data = Packet(payload=b"x").frame()
    ns.send(*[data] * 999)
    assert "warning" not in status(ns, run).out
    ns.send(data)
    for _ in range(3000):
        if json.loads(status(ns, run, "--json").out)["classes"]["data"]["waiting_packets"] == 0:
            break
        time.sleep(0.1)
    assert "warning: no pure ACK among 1000 packets sent" in status(ns, run).out
    assert "among 1000" in json.loads(status(ns, run, "--json").out)["warning"]
    ns.send(Packet().frame())
    assert "warning" not in status(ns, run).out


def test_the_length_of_the_interface_s_queue_is_as_in_the_rehearsal(
    ns: Namespace, run: Path
) -> None:
    """A ppp device has a txqueuelen of 3, and HTB reports it as its own."""
    ns.tool("ip", "link", "set", "v0", "txqueuelen", "3")
    said = up(ns, run)
    assert said.code == 0, said.err
    assert "direct_qlen 3" in ns.tool("tc", "qdisc", "show", "dev", "v0")


def test_the_kind_of_a_device_decides_not_its_name(ns: Namespace) -> None:
    ns.tool("ip", "tuntap", "add", "eth5", "mode", "tun")
    ns.tool("ip", "link", "add", "ppp5", "type", "veth", "peer", "name", "wan")
    for name, framing in (("eth5", "ip"), ("ppp5", "ethernet"), ("wan", "ethernet")):
        said = ns.ackwise("gateway", "plan", name, *RATES, "--json")
        assert said.code == 0, said.err
        told = json.loads(said.out)
        assert (told["settings"]["framing"], told["warnings"]) == (framing, []), name


# --- faults --------------------------------------------------------------------------------------


def missing_leaf(ns: Namespace) -> str:
    """A leaf kind that this kernel lacks."""
    said = ns.forked(lambda: print(json.dumps(control.missing_kinds())) or 0)
    kinds = [k for k in json.loads(said.out) if k in tree.LEAF_KINDS]
    if not kinds:
        pytest.skip("this kernel has every leaf")
    return str(kinds[0])


def test_a_missing_module_is_told_and_nothing_touched(ns: Namespace, run: Path) -> None:
    leaf = missing_leaf(ns)
    before = ns.told_by_tc()
    said = up(ns, run, "--data-leaf", leaf)
    assert said.code == 2
    assert said.err == (
        f"ackwise: v0: not changed: add the {leaf} leaf of the data class: Specified qdisc kind is "
        f"unknown (No such file or directory); this kernel has no {leaf} (module sch_{leaf}): "
        "install or load it, or choose another leaf\n"
    )
    assert ns.told_by_tc() == before
    assert not run.exists()


@pytest.mark.parametrize("own", [own_none, own_tbf, own_htb])
def test_a_step_that_fails_half_way_puts_everything_back(
    ns: Namespace, run: Path, own: Callable[[Namespace], None]
) -> None:
    """The rehearsal has not seen it: the root and the classes are there already when the kernel
    refuses the leaf."""
    leaf = missing_leaf(ns)
    own(ns)
    before, queues = ns.told_by_tc(), ns.snapshot()

    def unrehearsed() -> int:
        control._rehearse = lambda *_words: None
        return cli.main(
            ["gateway", "up", "v0", *RATES, "--replace", "--data-leaf", leaf, "--run-dir", str(run)]
        )

    said = ns.forked(unrehearsed)
    assert said.code == 1
    assert f"v0: add the {leaf} leaf of the data class: Specified qdisc kind is unknown" in said.err
    assert said.err.endswith("everything was restored\n")
    assert ns.snapshot() == queues
    assert ns.told_by_tc() == before
    assert not run.exists()


def test_a_failing_change_of_settings_keeps_the_first(ns: Namespace, run: Path) -> None:
    leaf = missing_leaf(ns)
    assert up(ns, run).code == 0
    before = ns.told_by_tc()
    assert up(ns, run, "--data-leaf", leaf).code == 2
    assert ns.told_by_tc() == before
    assert status(ns, run).code == 0
    assert down(ns, run).code == 0


def test_the_interface_vanishes_while_up(ns: Namespace, run: Path) -> None:
    assert up(ns, run).code == 0
    ns.tool("ip", "link", "del", "v0")
    said = status(ns, run)
    assert (said.code, said.out) == (1, "v0: the interface is gone\n")
    said = down(ns, run)
    assert (said.code, said.out) == (0, "v0: was removed in the meantime, and its queues with it\n")
    assert not run.exists()
    said = up(ns, run)
    assert said.code == 2
    assert "there is no such interface" in said.err


def test_an_interface_made_anew_is_set_up_anew(ns: Namespace, run: Path) -> None:
    assert up(ns, run).code == 0
    ns.tool("ip", "link", "del", "v0")
    ns.tool("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1")
    ns.tool("ip", "link", "set", "v0", "up")
    before = ns.told_by_tc()
    assert "created anew" in status(ns, run).out
    assert up(ns, run).code == 0
    assert status(ns, run).code == 0
    assert down(ns, run).code == 0
    assert ns.told_by_tc() == before


def test_an_interface_that_vanishes_during_up_is_told(ns: Namespace, run: Path) -> None:
    def vanishing() -> int:
        real = control._rehearse

        def and_then(settings: TreeSettings, *rest: object) -> object:
            found = real(settings, *rest)  # type: ignore[arg-type]
            subprocess.run(["ip", "link", "del", "v0"], check=True)
            return found

        control._rehearse = and_then  # type: ignore[assignment]
        return cli.main(["gateway", "up", "v0", *RATES, "--run-dir", str(run)])

    said = ns.forked(vanishing)
    assert said.code == 1
    assert (
        "v0: add the htb root ac:: Cannot find device" in said.err or "No such device" in said.err
    )
    assert "the interface is gone" in said.err
    assert not run.exists()


def test_queues_that_somebody_removed_meanwhile_can_be_set_up_again(
    ns: Namespace, run: Path
) -> None:
    assert up(ns, run).code == 0
    ns.tc("qdisc del dev v0 root")
    said = status(ns, run)
    assert (said.code, said.out) == (
        1,
        "v0: the queues were removed by someone else; `up` sets them up again, `down` forgets "
        "them\n",
    )
    assert up(ns, run).code == 0
    assert status(ns, run).code == 0
    ns.tc("qdisc del dev v0 root")
    assert down(ns, run).code == 0
    assert status(ns, run).out == "v0: down\n"


def test_queues_that_somebody_changed_meanwhile_are_left_alone(ns: Namespace, run: Path) -> None:
    assert up(ns, run).code == 0
    ns.tc("qdisc del dev v0 root")
    own_tbf(ns)
    before = ns.told_by_tc()
    assert "the queues were replaced by someone else" in status(ns, run).out
    said = down(ns, run)
    assert said.code == 0
    assert "its queues were replaced by someone else; left as they are" in said.out
    assert ns.told_by_tc() == before


def test_a_lost_or_damaged_state_file_is_told(ns: Namespace, run: Path) -> None:
    assert up(ns, run).code == 0
    file = run / "gateway-v0.json"
    file.write_text("{", encoding="utf-8")
    for command in (up, down, status):
        said = command(ns, run)
        assert said.code == 1
        assert "gateway-v0.json: is not JSON" in said.err
    file.unlink()
    said = down(ns, run)
    assert said.code == 1
    assert "`tc qdisc del dev v0 root` restores the kernel's default" in said.err
    assert up(ns, run).code == 2
    assert up(ns, run, "--replace").code == 0
    assert down(ns, run).code == 0
    assert ns.snapshot().is_default


def test_without_rights_it_says_so(ns: Namespace, run: Path) -> None:
    before = ns.told_by_tc()

    def as_nobody(verb: str) -> Callable[[], int]:
        def do() -> int:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            words = ["gateway", verb, "v0", "--run-dir", str(run)]
            return cli.main([*words, *(RATES if verb == "up" else ())])

        return do

    for verb in ("up", "down"):
        said = ns.forked(as_nobody(verb))
        assert said.code == 2
        assert said.err == (
            "ackwise: gateway: needs root (lacking CAP_NET_ADMIN); run it with sudo\n"
        )
    assert ns.told_by_tc() == before
    assert up(ns, run).code == 0
    said = ns.forked(as_nobody("status"))
    assert said.code == 0, said.err
    assert "v0: up" in said.out
    assert down(ns, run).code == 0


def with_net_admin_alone(ns: Namespace, *words: str) -> Said:
    """`ackwise ...` with CAP_NET_ADMIN only, as in many containers."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("no setpriv")

    def do() -> int:
        # inheritable and ambient sets are of no matter for root; the bounding set is
        command = [
            setpriv, "--bounding-set", "-all,+net_admin", "--inh-caps", "-all,+net_admin",
            sys.executable, "-m", "ackwise", *words,
        ]  # fmt: skip
        return subprocess.run(
            command, env=os.environ | {"PYTHONPATH": ":".join(sys.path)}
        ).returncode

    return ns.forked(do)


def test_without_the_right_to_try_a_default_queue_goes_without_a_rehearsal(
    ns: Namespace, run: Path
) -> None:
    run.mkdir()
    end = ("--run-dir", str(run))
    said = with_net_admin_alone(ns, "gateway", "up", "v0", *RATES, *end)
    assert said.code == 0, said.err
    assert status(ns, run).code == 0
    assert with_net_admin_alone(ns, "gateway", "down", "v0", *end).code == 0
    assert ns.snapshot().is_default


def test_without_the_right_to_try_the_leaves_need_not_be_named(ns: Namespace, run: Path) -> None:
    """The kernel cannot be asked which leaves it has, so every kernel's are taken."""
    run.mkdir()
    end = ("--run-dir", str(run))
    rates = ("--down", "9mbit", "--up", "1mbit")
    said = with_net_admin_alone(ns, "gateway", "up", "v0", *rates, *end)
    assert said.code == 0, said.err
    assert "data leaf pfifo: this kernel could not be asked" in said.err
    assert down(ns, run).code == 0


def test_without_the_right_to_try_queues_of_the_user_stay(ns: Namespace, run: Path) -> None:
    own_tbf(ns)
    before = ns.told_by_tc()
    end = ("--replace", "--run-dir", str(run))
    said = with_net_admin_alone(ns, "gateway", "up", "v0", *RATES, *end)
    assert said.code == 2
    assert "v0: not changed" in said.err
    assert "no network namespace can be made (Operation not permitted)" in said.err
    assert "CAP_SYS_ADMIN" in said.err
    assert "`tc qdisc del dev v0 root`" in said.err
    assert ns.told_by_tc() == before
    assert not run.exists()


@pytest.mark.parametrize("number", [errno.EPERM, errno.EINVAL, errno.ENOSPC])
def test_without_namespaces_queues_of_the_user_stay(
    ns: Namespace, run: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Whatever the reason: no right, no such kernel (CONFIG_NET_NS), too many of them."""

    def no_namespace() -> None:
        raise rehearsal.NoNamespace(os.strerror(number))

    monkeypatch.setattr(rehearsal, "unshare", no_namespace)
    own_tbf(ns)
    before = ns.told_by_tc()
    said = up(ns, run, "--replace")
    assert said.code == 2
    assert f"no network namespace can be made ({os.strerror(number)})" in said.err
    assert ns.told_by_tc() == before
    ns.tc("qdisc del dev v0 root")
    assert up(ns, run).code == 0
    assert down(ns, run).code == 0


def test_two_instances_take_turns(ns: Namespace, run: Path) -> None:
    run.mkdir()
    held = os.open(run / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    start = time.monotonic()
    threading.Timer(0.7, fcntl.flock, (held, fcntl.LOCK_UN)).start()
    said = up(ns, run)
    assert said.code == 0, said.err
    assert time.monotonic() - start > 0.6
    assert down(ns, run).code == 0


def test_an_instance_that_never_ends_is_told(
    ns: Namespace, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ackwise.gateway.state._LOCK_SECONDS", 0.3)
    run.mkdir()
    held = os.open(run / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    os.write(held, b"4711\n")
    try:
        said = up(ns, run)
        assert said.code == 1
        assert f"{run}/lock: process 4711 has held this lock" in said.err
        assert ns.snapshot().is_default
    finally:
        os.close(held)


def test_a_directory_that_another_instance_removes_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, lstat = tmp_path / "run", Path.lstat
    removed: list[Path] = []

    def remove_first(path: Path) -> os.stat_result:
        if path == directory and len(removed) < 3:
            path.rmdir()
            removed.append(path)
        return lstat(path)

    monkeypatch.setattr(Path, "lstat", remove_first)
    with Keeper(str(directory), "v0").lock():
        assert directory.is_dir()
    assert len(removed) == 3


def test_a_lock_that_anybody_can_take_is_of_no_matter(ns: Namespace, run: Path) -> None:
    """Another user may open the directory, and lock it; the lock file he may not."""
    assert up(ns, run).code == 0
    ready, wait = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.setgid(65534)
        os.setuid(65534)
        fcntl.flock(os.open(run, os.O_RDONLY), fcntl.LOCK_EX)
        os.write(ready[1], b"x")
        os.read(wait[0], 1)
        os._exit(0)
    try:
        assert os.read(ready[0], 1) == b"x"
        assert down(ns, run).code == 0
        assert up(ns, run).code == 0
        assert down(ns, run).code == 0
    finally:
        os.write(wait[1], b"x")
        os.waitpid(child, 0)


def test_many_instances_at_once_end_in_one_of_their_wishes(ns: Namespace, run: Path) -> None:
    before = ns.told_by_tc()
    children = []
    for i in range(8):
        verb = ["gateway", "down", "v0", "--run-dir", str(run)]
        if i % 2:
            verb = ["gateway", "up", "v0", "--down", "2mbit", "--up", f"{700 + i}kbit",
                    "--run-dir", str(run)]  # fmt: skip
        children.append(
            subprocess.Popen(
                ["ip", "netns", "exec", ns.name, sys.executable, "-m", "ackwise", *verb],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": ":".join(sys.path)},
            )
        )
    told = [child.communicate(timeout=300) for child in children]
    assert [child.returncode for child in children] == [0] * 8, told
    found = ns.snapshot()
    assert found.is_default or status(ns, run).code == 0
    assert down(ns, run).code == 0
    assert ns.told_by_tc() == before
    assert not run.exists()


# --- kill -9 at every step -----------------------------------------------------------------------


def steps(
    ns: Namespace, words: list[str], prepare: Callable[[], None]
) -> Iterator[tuple[int, Said]]:
    """Runs the command again and again, killed at a later step each time, until it ends alone.
    ACKWISE_STRIDE=1: at every step, which takes minutes; odd, so that both kinds of step occur."""
    for step in range(1, 2000, int(os.environ.get("ACKWISE_STRIDE", "5"))):
        prepare()
        said = ns.forked(partial(killed_at, step, partial(cli.main, words)))
        if said.code != -signal.SIGKILL:
            assert said.code == 0, said.err
            assert step > 40, "so few steps cannot be all"
            return
        yield step, said
    raise AssertionError("it never ends")


@pytest.mark.slow
@pytest.mark.parametrize("own", [own_none, own_htb])
def test_up_killed_at_any_step_is_whole_or_not_begun(
    ns: Namespace, run: Path, own: Callable[[Namespace], None]
) -> None:
    own(ns)
    before = ns.snapshot()
    words = ["gateway", "up", "v0", *RATES, "--replace", "--run-dir", str(run), "--quiet"]
    assert ns.ackwise(*words).code == 0
    whole = ns.snapshot()

    def prepare() -> None:
        assert down(ns, run).code == 0
        assert ns.snapshot() == before
        assert not run.exists()

    seen = set()
    for step, _ in steps(ns, words, prepare):
        found = ns.snapshot()
        assert found in (before, whole), f"step {step}: {found.words}"
        seen.add(found == whole)
        if step % 2:
            # half of the time `up` goes on where it was killed
            assert ns.ackwise(*words).code == 0, step
            assert ns.snapshot() == whole
            assert status(ns, run).code == 0
    assert seen == {False, True}
    prepare()


@pytest.mark.slow
@pytest.mark.parametrize("own", [own_none, own_htb])
def test_down_killed_at_any_step_is_whole_or_not_begun(
    ns: Namespace, run: Path, own: Callable[[Namespace], None]
) -> None:
    own(ns)
    before = ns.snapshot()
    raising = ["gateway", "up", "v0", *RATES, "--replace", "--run-dir", str(run), "--quiet"]
    assert ns.ackwise(*raising).code == 0
    whole = ns.snapshot()

    def prepare() -> None:
        assert ns.ackwise(*raising).code == 0
        assert ns.snapshot() == whole

    seen = set()
    for step, _ in steps(ns, ["gateway", "down", "v0", "--run-dir", str(run)], prepare):
        found = ns.snapshot()
        assert found in (before, whole), f"step {step}: {found.words}"
        seen.add(found == whole)
        assert down(ns, run).code == 0, step
        assert ns.snapshot() == before
        assert not run.exists()
    assert seen == {False, True}
