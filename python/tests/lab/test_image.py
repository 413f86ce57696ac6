# SPDX-License-Identifier: MIT
"""A plan on a distribution's own kernel: what is refused before the start, and what the guest is
told to do; with an image (IMAGE=DIR, or ~/.cache/ackwise/stock), what it then does."""

import itertools
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Ackwise

from ackwise import plans
from ackwise.engine.scenario import Scenario
from ackwise.errors import InputError, RunError
from ackwise.host import files, holding, needs
from ackwise.lab import build, image, measure
from ackwise.lab.image import Image
from ackwise.lab.machine import Kernel
from ackwise.plans import policy
from ackwise.roads import unattended

NEW, OLD = "7.3.4+deb13-amd64", "6.12.117+deb12-amd64"
WITH_QDISC = "CONFIG_NET_SCH_BPF=y\nCONFIG_DEBUG_INFO_BTF=y\nCONFIG_BPF_JIT=y\n"
OPTIONS = "CONFIG_IP_MULTIPLE_TABLES=y\nCONFIG_CGROUP_BPF=y\nCONFIG_BPF_SYSCALL=y\nCONFIG_HZ=250\n"
# What these need, and that in turn.
MODULES = {
    "net/sched/sch_netem": "", "net/sched/sch_htb": "", "drivers/net/veth": "",
    "net/ipv4/tcp_bbr": "", "fs/9p/9p": "9pnet,netfs", "fs/netfs/netfs": "", "net/9p/9pnet": "",
    "net/9p/9pnet_virtio": "9pnet", "drivers/virtio/virtio-pci": "virtio-ring",
    "drivers/virtio/virtio_ring": "",
}  # fmt: skip


@pytest.fixture(autouse=True)
def all_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "complaint", lambda *_scopes: "")
    monkeypatch.setattr(
        holding, "not_built", lambda name: "" if name == "adaptive" else "not built"
    )


def made(folder: Path, release: str = NEW, config: str = OPTIONS + WITH_QDISC) -> Image:
    """An image with a file for each module."""
    modules = folder / "usr/lib/modules" / release
    for name, wanted in MODULES.items():
        file = modules / "kernel" / f"{name}.ko"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"\0license=GPL\0depends=" + wanted.encode() + b"\0")
    (modules / "modules.builtin").write_text("kernel/net/sched/sch_fq_codel.ko\n")
    (modules / "vmlinuz").write_bytes(b"kernel")
    (modules / "config").write_text(config)
    return image.find(folder)


def scenario(name: str, link: str = "lan-10m", workload: str = "bulk") -> Scenario:
    chosen = policy.parse(name, "test")
    return plans.scenario_of(plans.load_link(link), plans.load_workload(workload), chosen, 1)


def prepared(where: Image, given: Scenario) -> image.Prepared:
    kernel = Kernel(where.linux, Path("/guest"), where.label, "0", False)
    return image.Prepared(given, "link x", "workload x", kernel, where)


# --- the folder -----------------------------------------------------------------------------------


def test_a_folder_without_a_kernel_is_refused_with_what_fills_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no lib/modules/RELEASE in it; unpack .*dpkg -x"):
        image.find(tmp_path)


def test_a_folder_without_the_kernels_file_is_refused(tmp_path: Path) -> None:
    made(tmp_path).linux.unlink()
    with pytest.raises(InputError, match=f"no vmlinuz of {NEW}".replace("+", r"\+")):
        image.find(tmp_path)


def test_two_kernels_in_a_folder_are_refused(tmp_path: Path) -> None:
    made(tmp_path)
    with pytest.raises(InputError, match="more than one kernel"):
        made(tmp_path, OLD)


def test_a_kernel_that_lacks_what_each_workload_sets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"tcp_rto_min_us, which Linux has since 6\.11"):
        made(tmp_path, "6.1.0-41-amd64")


def test_a_missing_emulator_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "complaint", lambda *_scopes: "qemu-system-x86_64 is missing")
    with pytest.raises(RunError, match="lab run --image: qemu-system-x86_64 is missing"):
        made(tmp_path)


def test_modules_are_loaded_after_those_that_they_need(tmp_path: Path) -> None:
    order = [name for name, _ in made(tmp_path).loaded(["9p", "9pnet_virtio", "virtio_pci"])]
    assert order == ["9pnet", "netfs", "9p", "9pnet_virtio", "virtio_ring", "virtio_pci"]


# --- the plan of commands -------------------------------------------------------------------------


def test_stock_has_the_labs_own_steps_and_no_python(tmp_path: Path) -> None:
    found = prepared(made(tmp_path), scenario("linux"))
    assert found.chosen == {}
    assert not any("python" in step for step in found.run.steps)
    assert not any("policy=" in step for step in found.run.steps)


def test_a_policy_is_in_force_before_the_run_and_looked_for_after_it(tmp_path: Path) -> None:
    steps = prepared(made(tmp_path), scenario("adaptive")).run.steps
    python = os.path.realpath(sys.executable)
    begin, check = (
        f"exec client {' '.join(unattended.words_for(words, python))}"
        for words in (("adaptive:price_permille=1000", "up"), ("check",))
    )
    run = next(at for at, step in enumerate(steps) if step.startswith("run "))
    assert steps.index(begin) < run < steps.index(check)
    assert all(at < steps.index(begin) for at, step in enumerate(steps) if "-batch" in step)


@pytest.mark.parametrize(
    ("name", "config", "device"),
    [
        ("every", OPTIONS, "-"),
        ("delayed:segments=2,delay_ms=20", OPTIONS, "-"),
        ("adaptive", OPTIONS + WITH_QDISC, "up"),
    ],
)
def test_each_road_is_told_what_it_acts_on(
    tmp_path: Path, name: str, config: str, device: str
) -> None:
    steps = prepared(made(tmp_path, config=config), scenario(name)).run.steps
    (begin,) = (step for step in steps if "unattended" in step and not step.endswith("check"))
    assert begin.endswith(f" {device}")


def test_the_module_of_an_image_carries_what_it_lists(tmp_path: Path) -> None:
    where = made(tmp_path, OLD, OPTIONS)
    with pytest.raises(InputError, match="no module ackwise is among its modules"):
        prepared(where, scenario("greedy"))
    own = where.modules / "updates/dkms/ackwise.ko"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"\0depends=\0policies=stock adaptive greedy\0")
    found = prepared(image.find(tmp_path), scenario("greedy"))
    assert found.modules[-1] == "ackwise"
    with pytest.raises(InputError, match="its module ackwise does not list a3"):
        prepared(image.find(tmp_path), scenario("a3"))


def test_each_host_has_the_policy_of_what_it_receives(tmp_path: Path) -> None:
    given = scenario("every")
    down, stock = given.groups[0], scenario("linux").groups[0].policy
    up = replace(down, direction="up", policy=stock)
    assert list(prepared(made(tmp_path), replace(given, groups=(down, up))).chosen) == ["client"]
    up = replace(up, policy=down.policy)
    both = prepared(made(tmp_path), replace(given, groups=(down, up)))
    assert list(both.chosen) == ["client", "server"]


# --- what an image cannot do ----------------------------------------------------------------------


def test_a_policy_that_no_road_carries_is_refused_with_each_reason(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"--policy: greedy.*: no road of 7\.3\.4.*not built"
    ) as why:
        prepared(made(tmp_path), scenario("greedy"))
    assert str(why.value).endswith("docs/run.md says which carry which")


def test_an_option_that_a_road_needs_is_named(tmp_path: Path) -> None:
    where = made(tmp_path, config=OPTIONS + WITH_QDISC.replace("CONFIG_NET_SCH_BPF=y\n", ""))
    with pytest.raises(InputError, match="is built without CONFIG_NET_SCH_BPF"):
        prepared(where, scenario("adaptive"))


@pytest.mark.parametrize(
    ("link", "workload", "key", "module"),
    [
        ("adsl-cake", "bulk", r"link x: (up|down)\.discipline", "sch_cake"),
        (
            "lan-10m",
            "bbr-bulk",
            r"workload x: flows\[0\]\.sender\.congestion_control",
            "tcp_bbr",
        ),
    ],
)
def test_a_key_whose_module_is_missing_is_refused(
    tmp_path: Path, link: str, workload: str, key: str, module: str
) -> None:
    where = made(tmp_path)
    (where.modules / "kernel/net/ipv4/tcp_bbr.ko").unlink()
    with pytest.raises(InputError, match=f"{key}: not supported on this image: .*{module}; unpack"):
        prepared(where, scenario("linux", link, workload))


def test_two_policies_at_one_host_are_refused(tmp_path: Path) -> None:
    given = scenario("every")
    stock = replace(given.groups[0], policy=scenario("linux").groups[0].policy)
    with pytest.raises(InputError, match=r"workload x: flows\.policy: .*every and linux at"):
        prepared(made(tmp_path), replace(given, groups=(given.groups[0], stock)))


def test_the_command_refuses_what_builds_a_kernel(ackwise: Ackwise, tmp_path: Path) -> None:
    said = ackwise("lab", "run", "--image", str(tmp_path), "--stock", "--link", "adsl")
    assert said.code == 2
    assert "--stock: cannot be combined with --image" in said.err


# --- with an image --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real() -> tuple[Kernel, Image]:
    place = Path(os.environ.get("IMAGE", Path.home() / ".cache/ackwise/stock"))
    if not place.is_dir():
        pytest.skip(f"{place}: no image; linux/stock/boot --help says how to make one")
    try:
        found = image.find(place)
        return image.kernel_of(found, build.find_guest(files.cache_folder())), found
    except RunError as problem:
        pytest.skip(str(problem))


SAME = 1100  # packets of a second; with another build, 1164 were the same


def packets(folder: Path, host: str) -> list[tuple[int, ...]]:
    """The first SAME packets of a capture without times, with sequence numbers from the first."""
    found: list[tuple[int, ...]] = []
    first: dict[bool, int] = {}
    for one in itertools.islice(measure.read_capture(folder / f"{host}.pcap"), SAME):
        begin = first.setdefault(one.from_server, one.seq)
        other = first.get(not one.from_server, one.ack)
        found.append((one.from_server, one.flags, one.seq - begin, one.ack - other, one.payload))
    return found


@pytest.mark.lab
@pytest.mark.slow
def test_nothing_chosen_not_a_packet_differs(real: tuple[Kernel, Image], tmp_path: Path) -> None:
    """Where a policy was in force and has ended, whose module stays loaded; beside a machine in
    which only Python has run. Later, what ran before shifts one of stock's own decisions: a timer's
    tick and an arrival within 10 us of each other, in either machine."""
    given = replace(scenario("adaptive"), duration_ns=10**9)
    runs = {name: image.Prepared(given, "link x", "workload x", *real) for name in ("with", "not")}
    for name, one in runs.items():
        steps = one.run.steps
        stop = steps.pop().replace(" check", " stop")
        begin = next(at for at, step in enumerate(steps) if "unattended" in step)
        if name == "with":
            steps.insert(begin + 1, stop)
        else:
            steps[begin] = f"{steps[begin].partition(' -m ')[0]} -c pass"
            one.modules = [module for module in one.modules if module != "ackwise"]
        image.simulate(one, *real, keep=tmp_path / name)
    for host in ("client", "server"):
        same = packets(tmp_path / "not", host)
        assert len(same) == SAME
        assert packets(tmp_path / "with", host) == same


@pytest.mark.lab
@pytest.mark.slow
def test_a_policy_in_force_has_fewer_acks_at_stocks_goodput(
    real: tuple[Kernel, Image], tmp_path: Path
) -> None:
    found = []
    for name in ("linux", "adaptive"):
        given = replace(scenario(name), duration_ns=3 * 10**9)
        ready = image.Prepared(given, "link x", "workload x", *real)
        found.append(image.simulate(ready, *real, keep=tmp_path / name).groups[0])
    stock, fewer = found
    assert fewer.acks_sent < 0.6 * stock.acks_sent
    assert fewer.goodput_bps > 0.99 * stock.goodput_bps
    assert "adaptive" in (tmp_path / "adaptive/console").read_text(errors="replace")
