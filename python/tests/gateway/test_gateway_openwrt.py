# SPDX-License-Identifier: MIT
"""The package of OpenWrt's feed, without OpenWrt: installed by its own Makefile into a folder, and
run with stand-ins for `functions.sh`, `network.sh`, `rc.common` and `procd.sh` that do what
OpenWrt's do. Its arithmetic is held to that of `plan`."""

import random
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from netns import Namespace, namespace, needs_root

from ackwise.errors import InputError, RunError
from ackwise.gateway import formats, linklayer, model, settings, tree
from ackwise.gateway.classifier import Framing
from ackwise.gateway.settings import Access, LeafChoice, Request

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "openwrt/ackwise-gateway"
FILES = PACKAGE / "files"
AWKS = [
    words.split() for words in ("mawk", "busybox awk", "gawk") if shutil.which(words.split()[0])
]
SHELLS = [words.split() for words in ("dash", "busybox ash") if shutil.which(words.split()[0])]
BUSYBOX = pytest.mark.skipif(not shutil.which("busybox"), reason="needs busybox")

# --- the arithmetic ------------------------------------------------------------------------------


def settled_by_awk(options: dict[str, str], awk: list[str]) -> tuple[int, str]:
    lines = "".join(f"{name} {value}\n" for name, value in options.items())
    words = [*awk, "-f", str(FILES / "figures.awk"), "-f", str(FILES / "settle.awk")]
    done = subprocess.run(words, input=lines, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


def variables(text: str) -> dict[str, str]:
    """Assignments of a shell."""
    return dict(word.split("=", 1) for word in shlex.split(text))


def anything(chance: random.Random) -> tuple[Request, dict[str, str]]:
    """A line, as a request and as options."""
    up = chance.choice((chance.randint(64, 20_000) * 1000, chance.randint(8000, 10**10)))
    down = int(up * chance.choice((0.5, 1, 2, 3, 8, 10, 20, 50, 200, chance.uniform(0.9, 60))))
    down = min(max(down, 8000), 10**12)
    access = Access(down_bps=down, up_bps=up)
    options = {"down": f"{down}bit", "up": f"{up}bit", "interface": "wan", "enabled": "1"}
    if chance.random() < 0.7:
        name = chance.choice(list(linklayer.LAYERS))
        access, options["overhead"] = replace(access, layer=linklayer.LAYERS[name]), name
    elif chance.random() < 0.5:
        size = chance.randint(0, 256)
        options["overhead"] = chance.choice((f"{size}", f"{size}B"))
        access = replace(access, layer=linklayer.read(f"{size}B", "x"))
    if chance.random() < 0.4:
        size = chance.choice((576, 1280, 1492, 9000, 65535))
        access, options["mtu"] = (
            replace(access, mtu_bytes=size),
            chance.choice((f"{size}", f"{size}B")),
        )
    if chance.random() < 0.3:
        blocks = chance.randint(0, 4)
        access = replace(access, sack_blocks=blocks, ipv6=True, timestamps=blocks % 2 == 0)
        options |= {"sack": str(blocks), "ipv6": "yes", "timestamps": "10"[blocks % 2]}
    if chance.random() < 0.2:
        size = chance.randint(40, 256)
        access, options["ack_bytes"] = replace(access, ack_bytes=size), str(size)
    if chance.random() < 0.3:
        each = chance.choice(("2", "1.5", "3.7", "32"))
        access, options["segments_per_ack"] = replace(access, segments_per_ack=float(each)), each
    request = Request("nosuch0", access)
    if chance.random() < 0.3:
        framing = chance.choice(list(Framing))
        request, options["framing"] = replace(request, framing=framing), framing.value
    for key in ("ack_guarantee", "ack_ceiling"):
        if chance.random() < 0.15:
            rate = max(8, int(up * chance.uniform(0.05, 1.1)))
            given: dict[str, Any] = {f"{key}_bps": rate}
            request, options[key] = replace(request, **given), f"{rate}bit"
    for key in ("ack_leaf", "data_leaf"):
        if chance.random() < 0.2:
            kind = chance.choice(tree.LEAF_KINDS)
            limit = None if kind == "cake" else chance.choice((None, 7, 40_000))
            given = {key: LeafChoice(kind, limit)}
            words = f"{kind}:{limit}" if limit else kind
            request, options[key] = replace(request, **given), words
    if chance.random() < 0.2:
        request, options["burst"] = replace(request, burst_ns=2_500_000), "2.5ms"
    if chance.random() < 0.2:
        request, options["self_test"] = replace(request, self_test=False), "0"
    if chance.random() < 0.3:
        request, options["force"] = replace(request, force=True), "on"
    return request, options


@pytest.mark.parametrize("awk", AWKS, ids=" ".join)
def test_the_routers_arithmetic_is_that_of_the_plan(awk: list[str]) -> None:
    chance = random.Random(42)  # noqa: S311 - no secret
    settled = thinned = 0
    for _ in range(300):
        request, options = anything(chance)
        code, told = settled_by_awk(options, awk)
        try:
            wanted = settings.settle(request, for_target=True)
        except (InputError, RunError) as why:
            assert code == 1, (options, why)
            assert told.startswith("option "), told
            continue
        assert code == 0, (options, told)
        expected = variables(formats.assigned(wanted))
        del expected["give"], expected["warnings"]
        found = variables(told)
        warned = found.pop("warnings")
        assert found == expected, options
        assert ("leaves out" in warned) == any("leaves out" in w for w in wanted.warnings)
        settled += 1
        thinned += "\n" in found["ack_leaves"]
    assert settled > 120
    assert thinned > 30
    assert settled - thinned > 30


def test_what_gains_nothing_is_refused_at_the_same_line() -> None:
    """Where the FIFO's two directions are just about to interfere."""
    for name in ("header", "atm"):
        layer = linklayer.LAYERS[name]
        verdicts = []
        for tenth in range(10, 80):
            line = model.AccessLink(down_bps=100_000 * tenth, up_bps=10**6, layer=layer)
            options = {"down": f"{100 * tenth}kbit", "up": "1mbit", "overhead": name}
            verdicts.append(model.predict(line).interferes)
            assert (settled_by_awk(options, AWKS[0])[0] == 0) == verdicts[-1], options
        assert len(set(verdicts)) == 2


@pytest.mark.parametrize(("given", "said"), [
    ({"up": "5"}, "option up '5': has no unit; give one like 10mbit"),
    ({"up": "5mbps"}, "option up '5mbps': has an unknown unit"),
    ({"up": "0.0001kbit"}, "is finer than its base unit"),
    ({"up": "1kbit"}, "is out of range; give 8kbit to 1tbit"),
    ({"up": "9" * 30 + "mbit"}, "is too large"),
    ({"up": "$(reboot)"}, "option up '$(reboot)': give one like 10mbit"),
    ({"up": "100mbit"}, "is faster than option down: were they swapped?"),
    ({"up": "40mbit"}, "the ACKs of a full downlink need only 5.4% of the uplink"),
    ({"overhead": "adsl"}, "is no link layer; there are header vlan"),
    ({"overhead": "999"}, "is out of range; give 0 to 256 bytes"),
    ({"mtu": "100"}, "is out of range; give 576 to 65535 bytes"),
    ({"framing": "ppp"}, "is no framing; there are ethernet ip"),
    ({"sack": "5"}, "is not a number from 0 to 4"),
    ({"ipv6": "maybe"}, "is neither 1 nor 0"),
    ({"segments_per_ack": "0"}, "is not a number from 1 to 1000"),
    ({"ack_leaf": "red"}, "is no leaf queue; there are pfifo"),
    ({"ack_leaf": "cake:5"}, "cake takes no limit; give cake alone"),
    ({"data_leaf": "pfifo:0"}, "has no valid limit; give packets, such as pfifo:100"),
    ({"data_leaf": "bfifo:9"}, "is less than one packet; give at least bfifo:1514"),
    ({"ack_guarantee": "5mbit"}, "is not below option up"),
    ({"ack_guarantee": "1mbit", "ack_ceiling": "500kbit"}, "is not between the guarantee"),
    ({"burst": "2s"}, "is out of range; give 1us to 1s"),
    ({"dwon": "5mbit"}, "option dwon '5mbit': is no option; there are enabled interface"),
    ({"down": ""}, "option down '': give one like 10mbit"),
])  # fmt: skip
def test_a_bad_value_is_named_with_its_remedy(given: dict[str, str], said: str) -> None:
    for awk in AWKS:
        code, told = settled_by_awk({"down": "50mbit", "up": "5mbit"} | given, awk)
        assert code == 1
        assert said in told
        assert len(told.splitlines()) == 1


def test_a_missing_rate_is_named() -> None:
    assert settled_by_awk({"down": "50mbit"}, AWKS[0])[1].startswith("option up: is missing")


# --- the package ---------------------------------------------------------------------------------

RULES = """\
INSTALL_DIR = mkdir -p
INSTALL_BIN = install -m 755
INSTALL_DATA = install -m 644
INSTALL_CONF = install -m 600
"""
# What package.mk needs of a package, and its steps: prepare, configure, compile, install.
PACKAGE_MK = """\
define BuildPackage
fields:
\t@echo '$(PKG_NAME)|$(PKG_VERSION)|$(PKG_RELEASE)|$(PKG_LICENSE)|$(PKG_MAINTAINER)'
conffiles:
\t@echo $(Package/$(1)/conffiles)
compile:
\t$(Build/Compile)
install:
\t$(call Package/$(1)/install,$(DESTDIR))
endef
"""


def make(folder: Path, *words: str) -> str:
    rules = folder / "top"
    rules.mkdir(exist_ok=True)
    (rules / "rules.mk").write_text(RULES, encoding="ascii")
    (rules / "package.mk").write_text(PACKAGE_MK, encoding="ascii")
    given = [f"TOPDIR={rules}", f"INCLUDE_DIR={rules}", *words]
    done = subprocess.run(
        ["make", "-s", "-C", str(PACKAGE), *given], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


FUNCTIONS_SH = """\
config() { CONFIG_SECTION=$2; config_cb "$1" "$2"; }
option() { option_cb "$1" "$2"; }
list() { list_cb "$1" "$2"; }
config_cb() { return 0; }
option_cb() { return 0; }
list_cb() { return 0; }
config_load() {
	CONFIG_SECTION=
	[ -r @ROOT@/etc/config/$1 ] || return 1
	. @ROOT@/etc/config/$1
	${CONFIG_SECTION:+config_cb}
	return 0
}
"""
NETWORK_SH = """\
network_get_device() {
	[ -r "@ROOT@/connections/$2" ] || return 1
	eval "$1=$(cat "@ROOT@/connections/$2")"
}
"""
RC_COMMON = """\
initscript=$1
action=$2
. @ROOT@/lib/functions.sh
start_service() { return 0; }
enabled() { [ -e @ROOT@/enabled ]; }
. "$initscript"
[ "$action" = enabled ] || {
	exec 1000>@ROOT@/procd.lock
	flock -n 1000 || { echo "procd's lock is held" >&2; exit 9; }
}
procd_add_reload_trigger() { echo "$*" >@ROOT@/triggers; }
start() { start_service; service_triggers; }
stop() { stop_service; }
reload() { reload_service; }
$action
"""


@dataclass(frozen=True)
class Router:
    """The package below `root`, in a namespace."""

    ns: Namespace
    root: Path
    shell: tuple[str, ...]

    def configure(self, text: str) -> None:
        (self.root / "etc/config/ackwise").write_text(text, encoding="utf-8")

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        path = f"PATH={self.root / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"
        given = ["env", "-i", path, *(f"{name}={value}" for name, value in environment.items())]
        return subprocess.run(
            ["ip", "netns", "exec", self.ns.name, *given, *self.shell, *words],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    def service(self, action: str) -> subprocess.CompletedProcess[str]:
        """/etc/init.d/ackwise-gateway ACTION."""
        script = str(self.root / "etc/init.d/ackwise-gateway")
        return self.run(str(self.root / "etc/rc.common"), script, action)

    def event(self, action: str, device: str, interface: str = "wan") -> str:
        """As hotplug-call starts the hooks."""
        (hook,) = (self.root / "etc/hotplug.d/iface").iterdir()
        done = self.run("-c", f". {hook}", ACTION=action, DEVICE=device, INTERFACE=interface)
        return done.stderr

    def ask(self, command: str) -> subprocess.CompletedProcess[str]:
        return self.run(str(self.root / "usr/sbin/ackwise-gateway"), command)


ABSOLUTE = re.compile(r"(?<![\w/.])/(?=lib/functions|usr/(lib|sbin)/ackwise|etc/|var/lock)")
SECTION = """\
config gateway '{name}'
	option {by} '{what}'
	option down '40mbit'
	option up '1mbit'
	option overhead 'atm'
	option ack_leaf 'pfifo_head_drop:9'
"""
PLAN = ("--down", "40mbit", "--up", "1mbit", "--overhead", "atm", "--ack-leaf", "pfifo_head_drop:9")


def section(by: str = "interface", what: str = "wan", name: str = "home", more: str = "") -> str:
    return SECTION.format(by=by, what=what, name=name) + more


@pytest.fixture(params=SHELLS, ids=" ".join)
def router(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Router]:
    root = tmp_path / "root"
    make(tmp_path, "compile")
    make(tmp_path, "install", f"DESTDIR={root}")
    for name, text in (
        ("lib/functions.sh", FUNCTIONS_SH),
        ("lib/functions/network.sh", NETWORK_SH),
        ("etc/rc.common", RC_COMMON),
        ("connections/wan", "v0"),
        ("enabled", ""),
        ("bin/logger", f'#!/bin/sh\necho "$@" >>{root}/log\n'),
    ):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("@ROOT@", str(root)), encoding="utf-8")
    (root / "var/lock").mkdir(parents=True)
    (root / "bin/logger").chmod(0o755)
    # the stand-ins and the package are below the root, and in the shell that is tested
    for file in (
        *(root / "usr").rglob("*"),
        *(root / "etc").rglob("ackwise-gateway"),
        *(root / "etc").rglob("9*"),
    ):
        if file.is_file():
            text = ABSOLUTE.sub(f"{root}/", file.read_text(encoding="utf-8"))
            if file.name == "ackwise-gateway":
                text = text.replace(
                    "#!/bin/sh",
                    f"#!{shutil.which(request.param[0])} {' '.join(request.param[1:])}",
                    1,
                )
            file.write_text(text, encoding="utf-8")
    (hook,) = (root / "etc/hotplug.d/iface").iterdir()
    script = root / "etc/init.d/ackwise-gateway"
    # what rc.common's first line does
    hook.write_text(hook.read_text().replace(
        f"{script} enabled", f"{shlex.join(request.param)} {root}/etc/rc.common {script} enabled"
    ), encoding="utf-8")  # fmt: skip
    with namespace() as ns:
        yield Router(ns, root, tuple(request.param))


def wanted(ns: Namespace, run: Path) -> str:
    """What `up` makes of the same line."""
    words = ("--run-dir", str(run))
    assert ns.ackwise("gateway", "up", "v0", *PLAN, *words).code == 0
    told = ns.told_by_tc()
    assert ns.ackwise("gateway", "down", "v0", *words).code == 0
    return told


@needs_root
def test_the_commands_do_what_up_and_down_do(router: Router, tmp_path: Path) -> None:
    ns = router.ns
    before, expected = ns.told_by_tc(), wanted(ns, tmp_path / "run")
    router.configure(section())
    for _ in range(2):
        done = router.ask("reload")
        assert done.returncode == 0, done.stderr
        assert ns.told_by_tc() == expected
        assert "warning: the queue counts the Ethernet header" not in done.stderr
    assert "class htb ac:10" in router.ask("status").stdout
    router.configure(section(more="\toption overhead 'ip'\n"))
    told = router.ask("reload").stderr
    assert "v0: warning: the queue counts the Ethernet header, which option overhead leaves" in told
    assert router.ask("stop").returncode == 0
    assert ns.told_by_tc() == before
    assert router.ask("start").returncode == 2


@needs_root
def test_a_section_that_is_taken_out_or_off_restores_its_line(router: Router) -> None:
    ns = router.ns
    before = ns.told_by_tc()
    others = ns.told_by_tc("v1")
    both = section() + section("device", "v1", "second")
    for rest in (section("device", "v1", "second"), section(more="\toption enabled '0'\n") +
                 section("device", "v1", "second"), section("device", "v1", "home")):  # fmt: skip
        router.configure(both)
        assert router.ask("reload").returncode == 0
        assert "htb ac:" in ns.told_by_tc()
        router.configure(rest)
        assert router.ask("reload").returncode == 0
        assert ns.told_by_tc() == before
        assert "htb ac:" in ns.told_by_tc("v1")
    router.configure("")
    assert router.ask("reload").returncode == 0
    assert ns.told_by_tc("v1") == others


@needs_root
@pytest.mark.parametrize(("text", "said"), [
    (section(more="\toption mtu '12'\n"), "option mtu '12': is out of range; give 576 to"),
    (section("device", "v1") + section(name="b", more="\toption up '5mbps'\n"),
     "section 'b': option up '5mbps': has an unknown unit; give one like 10mbit"),
    (section() + section("device", "v0", "twice"), "section 'twice': v0 has a section already"),
    (section(more="\toption device 'v0'\n"), "give either option interface"),
    (section("device", "lo"), "option device 'lo': is no uplink"),
    (section("device", "a b"), "option device 'a b': is no uplink"),
    (section(more="\tlist overhead 'atm'\n"), "list overhead: is no list; give option"),
    (section(more="\toption mtu '1\n500'\n"), "option mtu: has characters that cannot be shown"),
    (section().replace("gateway", "gatway"), "is a 'gatway'; give config gateway 'home'"),
])  # fmt: skip
def test_a_mistake_changes_nothing_anywhere(router: Router, text: str, said: str) -> None:
    ns = router.ns
    before = ns.told_by_tc(), ns.told_by_tc("v1")
    router.configure(text)
    done = router.ask("reload")
    assert done.returncode == 1
    assert f"{router.root}/etc/config/ackwise: " in done.stderr
    assert said in done.stderr
    assert "nothing is changed" in done.stderr
    assert said in (router.root / "log").read_text(encoding="utf-8")
    assert (ns.told_by_tc(), ns.told_by_tc("v1")) == before
    # nor what is in force
    router.configure(section())
    assert router.ask("reload").returncode == 0
    in_force = ns.told_by_tc()
    router.configure(text)
    assert router.ask("reload").returncode == 1
    assert ns.told_by_tc() == in_force


@needs_root
def test_queues_of_others_stay_and_a_kernel_without_a_leaf_leaves_nothing(router: Router) -> None:
    ns = router.ns
    router.configure(section("device", "v0", "a") + section("device", "v1", "b"))
    ns.tc("qdisc add dev v0 root handle 1: pfifo limit 7")
    before = ns.told_by_tc()
    done = router.ask("reload")
    assert done.returncode == 1
    assert "v0: already has queues" in done.stderr
    assert ns.told_by_tc() == before
    assert "htb ac:" in ns.told_by_tc("v1")
    assert router.ask("stop").returncode == 0
    assert ns.told_by_tc() == before
    # a leaf that the kernel refuses
    plain = ns.told_by_tc("v1")
    library = router.root / "usr/lib/ackwise/figures.awk"
    text = library.read_text(encoding="utf-8")
    library.write_text(text.replace('"pfifo_head_drop limit', '"nosuch limit'), encoding="utf-8")
    done = router.ask("reload")
    assert done.returncode == 1
    assert "v1: error: class ac:10: no nosuch" in done.stderr
    assert ns.told_by_tc("v1") == plain


@needs_root
def test_netifds_events_set_up_and_take_down(router: Router, tmp_path: Path) -> None:
    ns = router.ns
    before, expected = ns.told_by_tc(), wanted(ns, tmp_path / "run")
    (router.root / "connections/wan").unlink()  # not up yet
    router.configure(section())
    assert router.ask("reload").returncode == 0
    assert ns.told_by_tc() == before
    assert router.event("ifup", "v1", "lan") == ""
    assert "htb" not in ns.told_by_tc("v1")
    router.event("ifup", "v0")
    assert ns.told_by_tc() == expected
    assert router.event("ifupdate", "v0") == ""
    router.event("ifdown", "v0")
    assert ns.told_by_tc() == before
    # a second connection of the device, as wan6, does not set it up anew
    (router.root / "connections/wan").write_text("v0", encoding="utf-8")
    router.event("ifup", "v0", "wan6")
    assert ns.told_by_tc() == before
    (router.root / "enabled").unlink()
    router.event("ifup", "v0")
    assert ns.told_by_tc() == before


@needs_root
@BUSYBOX
def test_the_service_starts_reloads_and_stops(router: Router) -> None:
    """OpenWrt removes a package by `stop` before its files go."""
    if router.shell[0] != "busybox":
        pytest.skip("procd's lock has a number of four digits, which dash cannot read")
    ns = router.ns
    before = ns.told_by_tc()
    router.configure(section())
    for action in ("start", "reload"):
        done = router.service(action)
        assert done.returncode == 0, done.stderr  # so the self-test does not hold the lock
        assert "htb ac:" in ns.told_by_tc()
    assert (router.root / "triggers").read_text(encoding="utf-8") == "ackwise\n"
    assert router.service("stop").returncode == 0
    assert ns.told_by_tc() == before


@needs_root
def test_a_script_of_plan_beside_the_package_is_told(router: Router) -> None:
    router.configure(section())
    single = router.root / "etc/hotplug.d/iface/90-ackwise"
    single.write_text("", encoding="utf-8")
    before = router.ns.told_by_tc()
    done = router.ask("reload")
    assert done.returncode == 1
    assert f"{single}: sets up queues, too; remove it, or this package" in done.stderr
    assert router.ns.told_by_tc() == before


def test_the_package_has_what_openwrt_asks_of_one(tmp_path: Path) -> None:
    fields = make(tmp_path, "fields").splitlines()
    name, version, release, licence, maintainer = fields[0].split("|")
    cargo = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    assert f'version = "{version}"' in cargo
    assert (name, release, licence) == ("ackwise-gateway", "1", "MIT")
    assert "@" in maintainer
    text = (PACKAGE / "Makefile").read_text(encoding="utf-8")
    for field in ("SECTION", "CATEGORY", "TITLE", "DEPENDS", "PKGARCH"):
        assert re.search(rf"^  {field}:=\S", text, re.MULTILINE), field
    assert make(tmp_path, "conffiles").split() == ["/etc/config/ackwise"]
    root = tmp_path / "there"
    make(tmp_path, "install", f"DESTDIR={root}")
    modes = {
        str(one.relative_to(root)): one.stat().st_mode & 0o777
        for one in root.rglob("*")
        if one.is_file()
    }
    assert modes == {
        "etc/config/ackwise": 0o600,
        "etc/hotplug.d/iface/91-ackwise-gateway": 0o644,
        "etc/init.d/ackwise-gateway": 0o755,
        "usr/lib/ackwise/figures.awk": 0o644,
        "usr/lib/ackwise/gateway.sh": 0o644,
        "usr/lib/ackwise/settle.awk": 0o644,
        "usr/sbin/ackwise-gateway": 0o755,
    }


@needs_root
def test_as_shipped_nothing_is_set_up(router: Router) -> None:
    before = router.ns.told_by_tc()
    done = router.ask("reload")
    assert (done.returncode, done.stderr) == (0, "")
    assert router.ns.told_by_tc() == before
    shipped = router.root / "etc/config/ackwise"
    shipped.write_text(
        shipped.read_text(encoding="utf-8").replace("enabled '0'", "enabled '1'"), encoding="utf-8"
    )
    done = router.ask("reload")
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr
    assert "htb ac:" in router.ns.told_by_tc()


@pytest.mark.parametrize(
    "name", ["ackwise-gateway.sh", "ackwise-gateway.init", "ackwise-gateway.hotplug", "gateway.sh"]
)
def test_its_scripts_are_portable(name: str) -> None:
    for words in SHELLS:
        subprocess.run([*words, "-n", str(FILES / name)], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", "-s", "sh", "-x", str(FILES / name)], check=True, cwd=FILES)


def test_the_package_has_the_functions_of_the_scripts() -> None:
    words = [sys.executable, str(ROOT / "tools/openwrt.py"), "--check"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- the kernel's patches ------------------------------------------------------------------------

KERNEL_PATCHES = ROOT / "openwrt/kernel-patches"


def test_the_series_comes_into_openwrts_tree_and_goes(tmp_path: Path) -> None:
    generic = tmp_path / "target/linux/generic"
    folder, config = generic / "hack-6.12", generic / "config-6.12"
    folder.mkdir(parents=True)
    (folder / "700-other.patch").write_text("", encoding="ascii")
    before = "CONFIG_TCP_CONG_CUBIC=y\n# CONFIG_TLAN is not set\n"
    config.write_text(before, encoding="ascii")
    series = subprocess.run([ROOT / "linux/series", "6.12"], capture_output=True, check=True).stdout
    for _ in range(2):
        subprocess.run([KERNEL_PATCHES, tmp_path], check=True, capture_output=True)
        made = sorted(folder.glob("69*"))
        assert b"".join(one.read_bytes() for one in made) == series
        assert len(made) == series.count(b"\nSubject: [PATCH] ")
        assert [one.name[:7] for one in made] == [f"690-{i:02}-" for i in range(1, len(made) + 1)]
        assert all(re.fullmatch(r"[\w.-]+\.patch", one.name) for one in made)
        assert config.read_text() == (
            f"{before}CONFIG_TCP_ACK_POLICIES=y\n# CONFIG_TCP_ACK_RANDOM is not set\n"
        )
    subprocess.run([KERNEL_PATCHES, "--remove", tmp_path], check=True, capture_output=True)
    assert [one.name for one in folder.iterdir()] == ["700-other.patch"]
    assert config.read_text() == before


def test_every_symbol_of_the_series_has_an_answer() -> None:
    """One without would make OpenWrt's build ask for it."""
    series = subprocess.run([ROOT / "linux/series", "6.12"], capture_output=True, check=True).stdout
    symbols = set(re.findall(r"^\+config (\w+)$", series.decode(), re.MULTILINE))
    text = KERNEL_PATCHES.read_text(encoding="utf-8")
    assert symbols == set(re.findall(r"CONFIG_(\w+)(?:=y| is not set)", text))


def test_a_tree_that_is_not_openwrts_is_refused(tmp_path: Path) -> None:
    done = subprocess.run([KERNEL_PATCHES, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"{tmp_path}: no OpenWrt with Linux 6.12" in done.stderr
    assert list(tmp_path.iterdir()) == []
