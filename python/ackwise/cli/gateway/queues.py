# SPDX-License-Identifier: MIT
"""`ackwise gateway plan|up|down|status`: the queues of an interface."""

import json
import time
from typing import TYPE_CHECKING

import click

from ackwise import __version__
from ackwise.cli import options
from ackwise.cli.gateway import request
from ackwise.cli.gateway.model import SCHEMA_VERSION
from ackwise.cli.options import Number, OneOf
from ackwise.cli.shape import Command, group, option, others
from ackwise.errors import EXIT_FAILED
from ackwise.gateway.formats import FORMATS
from ackwise.gateway.settings import Request
from ackwise.gateway.state import RUN_DIRECTORY
from ackwise.host import rights
from ackwise.host.terminal import say

if TYPE_CHECKING:
    from ackwise.gateway.settings import Settled

_PLAN_EXAMPLES = """\
ackwise gateway plan eth0 --down 50mbit --up 5mbit
ackwise gateway plan pppoe-wan --down 50mbit --up 10mbit --overhead pppoe-ptm --format openwrt
ackwise gateway plan eth0 --down 50mbit --up 5mbit --json
"""
_UP_EXAMPLES = """\
sudo ackwise gateway up eth0 --down 50mbit --up 5mbit
sudo ackwise gateway up ppp0 --down 16mbit --up 1mbit --overhead atm-pppoa --replace
"""
_DOWN_EXAMPLES = """\
sudo ackwise gateway down eth0
"""
_STATUS_EXAMPLES = """\
ackwise gateway status eth0
ackwise gateway status eth0 --watch 2
ackwise gateway status eth0 --prometheus
"""
_STATUS_EXIT_CODES = """\
0  the queues are up
1  they are not, or the kernel could not be read
"""
# CAP_NET_ADMIN changes queues, CAP_NET_RAW sends the self-test's probe, CAP_SYS_ADMIN makes the
# rehearsal's namespace.
_QUEUES = ("CAP_NET_ADMIN", "CAP_NET_RAW")
REHEARSAL = (*_QUEUES, "CAP_SYS_ADMIN")
REPLACE = option("--replace", is_flag=True, help="replace existing qdiscs; `down` restores them")
RUN_DIR = option(
    "--run-dir", type=options.DIRECTORY, metavar="DIR", default=RUN_DIRECTORY,
    help="directory where `up` saves what `down` restores",
)  # fmt: skip


@click.command(
    "plan",
    cls=Command,
    short_help="Print what `up` would do, as tc commands, scripts or units",
    examples=_PLAN_EXAMPLES,
)
@request.interface
@request.link
@request.queues
@group(
    "Output",
    option("--format", "form", type=OneOf(*FORMATS), default="tc", help="output format"),
    option("--json", "as_json", is_flag=True, help="print settings, commands and reasons as JSON"),
)
def plan(asked: Request, form: str, as_json: bool) -> int:
    """Exit code; raises InputError, RunError."""
    from ackwise.gateway import control, formats
    from ackwise.gateway.settings import settle

    settled = settle(asked, for_target=form != "tc" and not as_json)
    warn(settled)
    if as_json:
        found = {
            "schema_version": SCHEMA_VERSION,
            "ackwise_version": __version__,
            "kind": "gateway-plan",
            "settings": control.settings_document(settled.settings),
            "commands": formats.command_lines(settled.settings),
            "reasons": settled.reasons,
            "warnings": settled.warnings,
        }
        print(json.dumps(found, indent=2))
        return 0
    repeated = request.repeated()
    command = options.command_line()
    made = {
        "tc": lambda: formats.tc(settled),
        "sh": lambda: formats.shell(settled, command=command),
        "openwrt": lambda: formats.openwrt(settled, command=command),
        "systemd": lambda: formats.systemd(repeated, settled),
        "ifupdown": lambda: formats.ifupdown(repeated, settled),
        "networkmanager": lambda: formats.networkmanager(repeated, settled),
    }
    print(made[form](), end="")
    return 0


def warn(settled: "Settled") -> None:
    """Says the warnings of settings."""
    for warning in settled.warnings:
        say(f"ackwise: warning: {warning}")


@click.command(
    "up",
    cls=Command,
    short_help="Separate ACKs on an interface (needs root)",
    examples=_UP_EXAMPLES,
)
@request.interface
@request.link
@request.queues
@others(
    REPLACE,
    option("--quiet", is_flag=True, help="do not print the reasons"),
    RUN_DIR,
)
def up(
    asked: Request,
    replace: bool,
    quiet: bool,
    run_dir: str,
) -> int:
    """Exit code; raises InputError, RunError."""
    from ackwise.gateway import control
    from ackwise.gateway.settings import settle
    from ackwise.gateway.state import Keeper

    rights.keep_only(*REHEARSAL)
    control.check_rights()
    control.check_present(asked.interface)
    settled = settle(asked)
    did = control.up(
        settled.settings,
        control.settings_document(settled.settings),
        Keeper(run_dir, asked.interface),
        replace_own=replace,
        self_test=asked.self_test,
        rehearsed=lambda: rights.keep_only(*_QUEUES),
    )
    print("\n".join([did.words, *(() if quiet else (f"- {line}" for line in settled.reasons))]))
    warn(settled)
    tested = did.self_test
    if tested is not None and not tested.passed:
        say(f"ackwise: warning: {asked.interface}: {tested.line}")
    elif tested is not None and not quiet:
        print(f"- {tested.line}")
    return 0


@click.command(
    "down",
    cls=Command,
    short_help="Restore what was there before `up` (needs root)",
    examples=_DOWN_EXAMPLES,
)
@request.interface
@others(RUN_DIR)
def down(interface: str, run_dir: str) -> int:
    """Exit code; raises InputError, RunError."""
    from ackwise.gateway import control
    from ackwise.gateway.state import Keeper

    rights.keep_only("CAP_NET_ADMIN")
    print(control.down(interface, Keeper(run_dir, interface)).words)
    return 0


@click.command(
    "status",
    cls=Command,
    short_help="Show the kernel's counters of each class",
    examples=_STATUS_EXAMPLES,
    exit_codes=_STATUS_EXIT_CODES,
)
@request.interface
@group(
    "Output",
    option("--json", "as_json", is_flag=True, help="print JSON"),
    option("--prometheus", is_flag=True, help="print the Prometheus text format"),
    option(
        "--watch",
        type=Number(0.1, 3600),
        metavar="SECONDS",
        help="print the counters and their rates every SECONDS, until Ctrl-C",
    ),
)
@others(RUN_DIR)
def status(
    interface: str, as_json: bool, prometheus: bool, watch: float | None, run_dir: str
) -> int:
    """0 when all is up, else 1; raises InputError, RunError."""
    from ackwise.gateway import control
    from ackwise.gateway import status as counters
    from ackwise.gateway.state import Keeper, Unreadable
    from ackwise.host.netlink import Rtnetlink

    rights.keep_only()
    control.check_name(interface)
    keeper = Keeper(run_dir, interface)
    for other in options.given("--json", "--prometheus"):
        options.refuse(("--watch",), other)
    before = None
    with Rtnetlink() as kernel:
        while True:
            at = time.monotonic()
            try:
                found = counters.read(kernel, interface, keeper.read())
            except Unreadable:
                found = counters.read(kernel, interface, None, unreadable=True)
            if as_json:
                print(json.dumps(counters.document(found), indent=2))
            elif prometheus:
                print(counters.prometheus(found), end="")
            else:
                seconds = at - before[1] if before else 0.0
                print("\n".join(counters.table(found, before[0] if before else None, seconds)))
            if watch is None:
                return 0 if found.is_up else EXIT_FAILED
            before = (found, at)
            print(flush=True)
            time.sleep(watch)
