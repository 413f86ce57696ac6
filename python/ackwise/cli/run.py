# SPDX-License-Identifier: MIT
"""`ackwise run`: a policy in force on the running kernel, until Ctrl-C."""

import json
import shlex
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ackwise import __version__
from ackwise.cli import options
from ackwise.cli.options import POLICY
from ackwise.cli.shape import Command, argument, group, option, others
from ackwise.errors import EXIT_FAILED, InputError, RunError
from ackwise.host import rights
from ackwise.host.terminal import say

if TYPE_CHECKING:
    from ackwise.roads.choice import Choice
    from ackwise.roads.road import Fit, Wanted
    from ackwise.roads.state import Keeper

SCHEMA_VERSION = 1
RIGHTS = (
    *("CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON", "CAP_SYS_ADMIN", "CAP_DAC_OVERRIDE"),
    *("CAP_KILL", "CAP_SETGID", "CAP_SETUID"),
)
_TEXT = """\
Puts an ACK policy in force on the kernel that is running, by the best road that this kernel has for
it, and says which and why. It stays in the foreground: after Ctrl-C everything is stock again.
"""
_EXAMPLES = """\
ackwise run every --dry-run                            # which road, and what it would change
sudo ackwise run every --device eth0
sudo ackwise run delayed:segments=2,delay_ms=20
sudo ackwise run /root/mine.c --device eth0            # a policy of yours, with clang
sudo ackwise run every --detach                        # in the background, until --stop
ackwise run --status
ackwise run every --systemd > /etc/systemd/system/ackwise-run.service
"""
_EXIT_CODES = """\
0  it was in force, and was ended; with --status: it is in force
1  no road of this kernel carries the policy, or it had to be taken off; with --status: none is
"""
_SERVICE = """\
# {command}
[Unit]
Description=ACK policy {policy}
After=network-online.target
Wants=network-online.target

[Service]
ExecStart={program} run {words}
ExecStopPost={program} run --stop
Restart=on-failure

[Install]
WantedBy=multi-user.target
"""


@click.command("run", cls=Command, text=_TEXT, examples=_EXAMPLES, exit_codes=_EXIT_CODES)
@argument("policy", metavar="[POLICY]", type=POLICY, required=False, help="policy to put in force")
@group(
    "Which connections",
    option(
        "--device",
        metavar="DEV",
        help="those whose packets leave by it",
        show_default="all of this network namespace",
    ),
    option(
        "--cgroup",
        type=options.DIRECTORY,
        metavar="PATH",
        help="those that its processes open; a folder of cgroup version 2",
    ),
)
@group(
    "Instead",
    option("--dry-run", is_flag=True, help="say what would be done, and do nothing"),
    option("--detach", is_flag=True, help="go on in the background"),
    option("--status", is_flag=True, help="say what is in force, with counters"),
    option("--stop", is_flag=True, help="end it, and take back what a killed run left"),
    option("--systemd", is_flag=True, help="print a unit for systemd"),
)  # fmt: skip
@others(options.AS_JSON)
def command(
    policy: str | None, device: str | None, cgroup: str | None,
    dry_run: bool, detach: bool, status: bool, stop: bool, systemd: bool, as_json: bool,
) -> int:  # fmt: skip
    """Exit code; raises InputError, RunError."""
    from ackwise.roads import choice, session
    from ackwise.roads.state import Keeper

    for one in ("--status", "--stop"):
        others = ("--device", "--cgroup", "--dry-run", "--detach", "--systemd")
        if one in options.given(one):
            options.refuse(others, one)
            if policy is not None:
                raise InputError(f"run: {one} is about what is in force; leave {policy} out")
    options.one_of("--status", "--stop")
    options.one_of("--dry-run", "--detach", "--systemd")
    keeper = Keeper()
    if status:
        return _status(keeper, as_json=as_json)
    if stop:
        check_rights("run --stop")
        done = session.stop(keeper)
        print(_json("run-stop", done=done) if as_json else "\n".join(done) or "nothing to stop")
        return 0
    if policy is None:
        raise InputError("run: which policy? `ackwise policy list` shows all; see `ackwise run -h`")
    wanted = wanted_of(policy, device, cgroup, "run")
    if systemd:
        print(unit(wanted), end="")
        return 0
    found = choice.choose(wanted)
    if found.road is None:
        return _no_road(found, wanted, as_json=as_json)
    if dry_run:
        _say_choice(found, wanted, as_json=as_json)
        return 0
    check_rights("run")

    def stay(ready: Callable[[], None]) -> int:
        return _stay(found, wanted, keeper, as_json=as_json, ready=ready)

    if detach:
        from ackwise.host import programs

        return programs.detached(stay)
    return stay(lambda: None)


def wanted_of(policy: str, device: str | None, cgroup: str | None, where: str) -> "Wanted":
    """What the options ask for; InputError where it does not exist."""
    from socket import if_nametoindex

    from ackwise.plans import own
    from ackwise.plans import policy as policies
    from ackwise.roads import sysctl
    from ackwise.roads.road import Wanted

    if device is not None and cgroup is not None:
        raise InputError(
            f"{where}: --device and --cgroup cannot be combined; leave one of them out"
        )
    if own.is_file(policy):
        policy = own.add(policy, where)
    chosen = sysctl.known_here(policy) or policies.parse(policy, where)
    policies.check_in_kernel(chosen.name, where)
    if device is not None:
        try:
            if_nametoindex(device)
        except OSError:
            raise InputError(
                f"--device: {device}: there is no such interface; see `ip link`"
            ) from None
    if cgroup is not None and not Path(cgroup).is_dir():
        raise InputError(f"--cgroup: {cgroup}: there is no such folder")
    return Wanted(chosen, device, None if cgroup is None else Path(cgroup).absolute())


def check_rights(what: str) -> None:
    """InputError when this process may not change the network."""
    lacking = rights.missing_capabilities("CAP_NET_ADMIN", "CAP_SYS_ADMIN")
    if lacking:
        raise InputError(f"{what}: needs root (lacking {', '.join(lacking)}); run it with sudo")


def _json(kind: str, **what: object) -> str:
    head = {"schema_version": SCHEMA_VERSION, "ackwise_version": __version__, "kind": kind}
    return json.dumps(head | what, indent=2)


def _roads(found: "Choice") -> list[dict[str, object]]:
    return [
        {"road": one.name, "fits": fit.fits, "why": fit.why, "cannot": one.cannot}
        for one, fit in found.fits
    ]


def _no_road(found: "Choice", wanted: "Wanted", *, as_json: bool) -> int:
    if as_json:
        print(_json("run", road=None, roads=_roads(found)))
    else:
        say(f"ackwise: run: this kernel has no road for {wanted.policy.label}")
        for line in found.others:
            say(f"  {line}")
    return EXIT_FAILED


def _say_choice(found: "Choice", wanted: "Wanted", *, as_json: bool) -> None:
    assert found.road is not None
    does = found.road.does(wanted)
    if as_json:
        print(_json("run", road=found.road.name, does=does, roads=_roads(found)))
        return
    print(f"by {found.road.name}: {_fact(found)}")
    print(f"  {found.road.cannot}")
    for line in found.others:
        print(f"  {line}")
    print(f"{wanted.policy.label}: {does}")


def _fact(found: "Choice") -> str:
    fit: Fit = next(fit for one, fit in found.fits if one is found.road)
    return fit.why


def _stay(
    found: "Choice", wanted: "Wanted", keeper: "Keeper", *, as_json: bool, ready: Callable[[], None]
) -> int:
    from ackwise.roads import session

    begun = False

    def say_so(taken: "Choice", swept: list[str]) -> None:
        nonlocal begun
        for line in swept:
            say(f"ackwise: a killed run had left something: {line}")
        _say_choice(taken, wanted, as_json=as_json)
        if not as_json:
            print("in force; Ctrl-C: stock again")
        sys.stdout.flush()
        begun = True
        ready()

    try:
        session.run_best(found, wanted, keeper, ready=say_so)
    except KeyboardInterrupt:
        if not begun:
            raise
        with suppress(OSError):
            say("ackwise: stock again")
        return 0
    except RunError as problem:
        if not begun:
            raise
        raise RunError(f"run: {problem}; stock again") from None
    return 0


def _status(keeper: "Keeper", *, as_json: bool) -> int:
    record, running = keeper.read(), keeper.is_running()
    if as_json:
        known = None if record is None else asdict(record)
        print(_json("run-status", in_force=running, record=known))
    elif record is None:
        print("no policy is in force by `ackwise run` in this network namespace")
    elif not running:
        print(
            f"{record.policy} was in force by {record.road}, but process {record.process} was "
            "killed; `ackwise run --stop` takes back what it left"
        )
    else:
        minutes = (time.time() - record.since_s) / 60
        print(
            f"{record.policy} is in force by {record.road} for {minutes:.0f} min, process "
            f"{record.process}: {record.does}"
        )
        for name, value in record.counters.items():
            print(f"  {name:16} {value}")
    return 0 if running else EXIT_FAILED


def unit(wanted: "Wanted") -> str:
    """The unit for systemd."""
    from ackwise.plans import own

    words = [own.spec_of(wanted.policy)]
    if wanted.device is not None:
        words += ["--device", wanted.device]
    if wanted.cgroup is not None:
        words += ["--cgroup", str(wanted.cgroup)]
    return _SERVICE.format(
        command=options.command_line(),
        policy=wanted.policy.label,
        program=Path(sys.argv[0]).absolute(),
        words=shlex.join(words),
    )
