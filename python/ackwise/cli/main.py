# SPDX-License-Identifier: MIT
"""Command line: what is asked is parsed here and done elsewhere."""

import argparse
import contextlib
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from ackwise import __version__
from ackwise.cli import gateway_options as options
from ackwise.errors import (
    EXIT_BAD_INPUT,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    InputError,
    Interrupted,
    RunError,
    quoted,
)

_COMPARE_EXAMPLES = """\
examples:
  ackwise compare --link adsl --workload bulk --policy linux --policy delayed:segments=8
  ackwise compare --link docsis --policy all --runs 5 --report docsis.html
  ackwise compare --plan demo --json results.json --csv results.csv
  ackwise compare --plan my-plan.toml --parquet results.parquet
  ackwise compare --capture transfer.pcap --policy all
  ackwise compare --on linux --link adsl --policy linux      the real kernel, see `ackwise lab`
  ackwise compare --list                          shipped links, workloads and plans
"""
_REPRODUCE_EXAMPLES = """\
examples:
  ackwise reproduce separation
  ackwise reproduce all --report published.html --json checks.json
  ackwise reproduce deadlock --figures figures/      each figure as SVG
  ackwise reproduce ratelimit --on linux             on the real kernel, see `ackwise lab`
  ackwise reproduce --list                           what each experiment asks

exit code: 0 when every check passes, else 1
"""
_DEADLOCK_EXAMPLES = """\
examples:
  ackwise deadlock --mss 9148 --send-buffer 16KiB --recv-buffer 40KiB \\
      --nagle bsd43 --socket bsd43 --policy bsd
  ackwise deadlock --link loopback --send-buffer 64KiB --recv-buffer 64KiB --policy delayed
  ackwise deadlock --mss 1460 --write 2000 --send-buffer 64KiB --recv-buffer 64KiB --nagle bsd43
  ackwise deadlock --mss 536 --send-buffer 1KiB --recv-buffer 4KiB --policy delayed --json

No simulation: the endpoints' rules are walked through, with the policy itself as receiver, without
loss and with a congestion window that is no limit. docs/experiments/deadlock.md tells how well
that agrees with simulation.
"""
_POLICY_EXAMPLES = """\
examples:
  ackwise policy list
  ackwise policy show delayed
  ackwise policy list --json
  ackwise policy show                     live sockets, on a kernel with linux/patches
  ackwise policy show --watch 1s

Live sockets: ACKs and segments of data; how long an ACK is owed, and until when it may wait; what
the policy tells of its state (`ackwise policy show NAME` lists these values).
"""
_CAPTURE_EXAMPLES = """\
examples:
  sudo ackwise capture transfer.pcap
  sudo ackwise capture adsl.pcap --rate 2.1mbit --delay 40ms --seconds 5
  ackwise compare --capture transfer.pcap

Two network namespaces of its own, joined by a veth pair with offloads off, carry one iperf3
transfer; tcpdump listens at the data receiver. No packet leaves them, and they are removed at the
end, also after Ctrl-C.
"""
_LAB_EXAMPLES = """\
examples:
  ackwise lab build                       the kernel with ackwise's patches, once: minutes
  ackwise lab build --stock               without them
  ackwise lab run --stock stretch --policy linux --keep runs/
  ackwise lab conform                     when does the kernel acknowledge, and why?
  ackwise lab shell
  ackwise compare --on linux --stock --link adsl --policy linux

The lab runs Linux as an ordinary process in virtual time: sender, routers and receiver are network
namespaces of one guest, and its clock moves only while nothing runs. The same plan and seed give
the same packets. Nothing on this machine is changed.
"""
_CONFORM_EXAMPLES = """\
examples:
  ackwise lab conform                                 every claim, every policy: seconds
  ackwise lab conform --stock                         Linux without patches
  ackwise lab conform '*window*' --policy stock --policy delayed:segments=4
  ackwise lab conform a-segment-above-a-hole-is-acknowledged-at-once --show
  ackwise lab conform my-own.claim --policy a3 --json -
  ackwise lab conform --list                          what is claimed, and which RFC wants it

A claim is a script of linux/conform/: what arrives and when, and what leaves the host, exact in
virtual time. docs/inside/conform.md has the language.

exit code: 0 when every claim holds, else 1
"""
_DOCTOR_EXAMPLES = """\
examples:
  ackwise doctor                 everything
  ackwise doctor compare         only what `ackwise compare` needs

exit code: 0 when nothing required is missing, else 1
"""


class _Parser(argparse.ArgumentParser):
    """Complains in one line, as every other message does."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: {message}; see `{self.prog} --help`\n")


def _whole(option: str, low: int, high: int) -> "type[int]":
    """An argparse type: a whole number within bounds."""

    def read(text: str) -> int:
        digits = text.strip().removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
            raise argparse.ArgumentTypeError(
                f"{quoted(text)} is no whole number; give {low} to {high}"
            )
        value = int(text)
        if not low <= value <= high:
            size = "negative" if value < 0 else "too small" if value < low else "too large"
            raise argparse.ArgumentTypeError(f"{quoted(text)} is {size}; give {low} to {high}")
        return value

    read.__name__ = option
    return read  # type: ignore[return-value]


def _outputs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output (a table on the terminal unless - is chosen)")
    group.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="result document, see docs/results.md; without FILE to standard output",
    )
    group.add_argument("--csv", metavar="FILE", help="one row for each run and group; -: stdout")
    group.add_argument("--parquet", metavar="FILE", help="the same rows, typed")
    group.add_argument("--report", metavar="FILE", help="one self-contained page with plots")
    group.add_argument("--quiet", action="store_true", help="no progress bar, no warnings")


def _overrides(how: argparse._ArgumentGroup) -> None:
    """What is said of a plan's runs besides the plan."""
    how.add_argument(
        "--policy",
        metavar="NAME[:k=v,...]",
        action="append",
        help="may be repeated; `all` for every policy (default: the plan's, or all)",
    )
    how.add_argument(
        "--baseline", metavar="POLICY", help="what the others are measured against (linux)"
    )
    how.add_argument(
        "--runs",
        type=_whole("--runs", 1, 1000),
        metavar="N",
        help="runs of each combination, each with its own seed (3)",
    )
    how.add_argument(
        "--seed", type=_whole("--seed", 0, 2**63 - 1), metavar="N", help="of the first run (1)"
    )
    how.add_argument("--duration", metavar="TIME", help="simulated time, such as 5s")
    how.add_argument(
        "--jobs", type=_whole("--jobs", 1, 1024), metavar="N", help="runs at a time (all cores)"
    )


def _kernel(parser: argparse._ActionsContainer, build: bool = False) -> None:
    """Which kernel of the lab."""
    parser.add_argument("--stock", action="store_true", help="the kernel without ackwise's patches")
    parser.add_argument("--cache", metavar="DIR", help="of built kernels (~/.cache/ackwise)")
    if not build:
        parser.add_argument(
            "--wall-limit", metavar="TIME", help="real time after which a run counts as hung"
        )
        parser.add_argument(
            "--keep", metavar="DIR", help="captures, samples, counters, console of every run"
        )


def _lab(commands: "argparse._SubParsersAction[_Parser]") -> None:
    raw = argparse.RawDescriptionHelpFormatter
    lab = commands.add_parser(
        "lab",
        help="the real kernel in virtual time",
        epilog=_LAB_EXAMPLES,
        formatter_class=raw,
    )
    verbs = lab.add_subparsers(dest="verb", metavar="build|run|conform|shell", required=True)
    build = verbs.add_parser("build", help="build the kernel, once for each change of its inputs")
    _kernel(build, build=True)
    build.add_argument(
        "--source", metavar="TARBALL|DIR", help="Linux 6.12 (default: linux-source-6.12 by apt)"
    )
    build.add_argument(
        "--config", metavar="FILE", action="append", help="more CONFIG_ lines; may be repeated"
    )
    build.add_argument(
        "--jobs", type=_whole("--jobs", 1, 1024), metavar="N", help="of make (all cores)"
    )
    build.add_argument("--quiet", action="store_true", help="say nothing")
    run = verbs.add_parser("run", help="run a plan on it, as `ackwise compare --on linux --plan`")
    run.add_argument("plan", metavar="NAME|FILE", help="a plan: links, workloads, policies")
    _kernel(run)
    run.add_argument("--config", metavar="FILE", action="append", help=argparse.SUPPRESS)
    _overrides(run.add_argument_group("how"))
    _outputs(run)
    conform = verbs.add_parser(
        "conform",
        help="does a receiver acknowledge as the RFCs and its policy say?",
        epilog=_CONFORM_EXAMPLES,
        formatter_class=raw,
    )
    conform.add_argument(
        "claim", metavar="CLAIM", nargs="*", help="name, pattern or file of a claim (default: all)"
    )
    conform.add_argument("--list", action="store_true", help="list the claims")
    conform.add_argument(
        "--policy",
        metavar="NAME[:k=v,...]",
        action="append",
        help="may be repeated; `stock` for the kernel's own code (default: `all`)",
    )
    conform.add_argument("--show", action="store_true", help="what came, also where a claim holds")
    _kernel(conform, build=True)
    conform.add_argument("--config", metavar="FILE", action="append", help=argparse.SUPPRESS)
    conform.add_argument(
        "--jobs", type=_whole("--jobs", 1, 1024), metavar="N", help="guests at a time (all cores)"
    )
    conform.add_argument("--json", nargs="?", const="-", metavar="FILE", help="see docs/results.md")
    conform.add_argument("--quiet", action="store_true", help="no progress bar")
    shell = verbs.add_parser("shell", help="a shell inside a guest")
    _kernel(shell, build=True)
    shell.add_argument("--config", metavar="FILE", action="append", help=argparse.SUPPRESS)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="ackwise",
        description="The TCP acknowledgement as a policy: which one is best on my link, "
        "and what does each cost?",
        epilog="Every command shows examples with --help.",
    )
    parser.add_argument("--version", action="version", version=f"ackwise {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    raw = argparse.RawDescriptionHelpFormatter

    compare = commands.add_parser(
        "compare",
        help="which policy is best on this link, workload or capture?",
        description="Simulates policies over links and workloads, or replays a capture's "
        "arrivals through them, and tells what each gains and costs.",
        epilog=_COMPARE_EXAMPLES,
        formatter_class=raw,
    )
    what = compare.add_argument_group("what to compare (one of --plan, --link, --capture, --list)")
    what.add_argument("--plan", metavar="NAME|FILE", help="a plan: links, workloads, policies")
    what.add_argument("--link", metavar="NAME|FILE", action="append", help="may be repeated")
    what.add_argument(
        "--workload", metavar="NAME|FILE", action="append", help="may be repeated (default: bulk)"
    )
    what.add_argument(
        "--capture", metavar="FILE", help="pcap or pcapng, best taken at the data receiver"
    )
    what.add_argument("--list", action="store_true", help="list shipped links, workloads, plans")
    how = compare.add_argument_group("how")
    _overrides(how)
    how.add_argument(
        "--allow-long", action="store_true", help="run a plan that takes very long all the same"
    )
    on = compare.add_argument_group("how (on the real kernel)")
    on.add_argument(
        "--on", choices=("simulator", "linux"), default="simulator", help="what runs it (simulator)"
    )
    _kernel(on)
    capture_only = compare.add_argument_group("how (with --capture)")
    capture_only.add_argument(
        "--cost-ratio",
        metavar="SHARE",
        default=None,
        help="price of one ACK against latency, above 0%% and below 100%% (50%%)",
    )
    capture_only.add_argument(
        "--unit", metavar="TIME", default=None, help="latency of one packet that costs 1 (10ms)"
    )
    capture_only.add_argument(
        "--ack-cost", metavar="TIME", help="processor time to send an ACK, for the CPU column"
    )
    capture_only.add_argument(
        "--data-cost", metavar="TIME", help="processor time to receive a data packet"
    )
    _outputs(compare)

    again = commands.add_parser(
        "reproduce",
        help="run a published experiment again, beside its published figures",
        description="Runs a published experiment in the simulator, or on the real kernel, and puts "
        "every figure beside the published one: what may differ by how much was set before "
        "measuring.",
        epilog=_REPRODUCE_EXAMPLES,
        formatter_class=raw,
    )
    again.add_argument("name", metavar="NAME", nargs="?", help="an experiment, or all")
    again.add_argument("--list", action="store_true", help="list the experiments")
    again.add_argument(
        "--on",
        choices=("simulator", "linux", "host"),
        default="simulator",
        help="what runs it; linux: the lab; host: this machine's kernel, as root (simulator)",
    )
    again.add_argument("--cache", metavar="DIR", help="of built kernels (~/.cache/ackwise)")
    again.add_argument(
        "--jobs", type=_whole("--jobs", 1, 1024), metavar="N", help="runs at a time (all cores)"
    )
    into = again.add_argument_group("output (a table on the terminal unless - is chosen)")
    into.add_argument(
        "--json", nargs="?", const="-", metavar="FILE", help="checks and the figures' data"
    )
    into.add_argument("--csv", metavar="FILE", help="one row for each check; -: stdout")
    into.add_argument("--report", metavar="FILE", help="one self-contained page with figures")
    into.add_argument("--figures", metavar="DIR", help="each figure as SVG")
    into.add_argument("--plans", metavar="DIR", help="every scenario that was run, one in a line")
    into.add_argument("--quiet", action="store_true", help="no progress bar")

    stall = commands.add_parser(
        "deadlock",
        help="can this sender and this receiver wait for each other, and what ends it?",
        description="Says whether Nagle's rule at the sender and delayed ACKs at the receiver can "
        "wait for each other, which class of deadlock that is, how long it lasts, what is left of "
        "the throughput, and which single changes end it.",
        epilog=_DEADLOCK_EXAMPLES,
        formatter_class=raw,
    )
    ends = stall.add_argument_group("the two ends")
    ends.add_argument("--mss", metavar="SIZE", help="largest segment, bytes (or from --link)")
    ends.add_argument("--send-buffer", metavar="SIZE", required=True, help="of the sender")
    ends.add_argument("--recv-buffer", metavar="SIZE", required=True, help="of the receiver, fixed")
    ends.add_argument(
        "--nagle",
        choices=("bsd43", "minshall", "off"),
        default="minshall",
        help="when a short segment waits (minshall, as Linux)",
    )
    ends.add_argument(
        "--socket",
        choices=("linux", "bsd43"),
        default="linux",
        help="how the socket layer takes data from the writer (linux)",
    )
    ends.add_argument(
        "--policy", metavar="NAME[:k=v,...]", default="linux", help="of the receiver (linux)"
    )
    ends.add_argument(
        "--write", metavar="SIZE", help="messages of this size, one after another (one stream)"
    )
    path = stall.add_argument_group("the path")
    path.add_argument("--link", metavar="NAME|FILE", help="takes MSS, round trip and rate from it")
    path.add_argument("--rtt", metavar="TIME", help="round trip (1ms)")
    path.add_argument("--rate", metavar="RATE", help="rate (100mbit)")
    stall.add_argument("--no-cures", action="store_true", help="do not look for what ends it")
    stall.add_argument("--json", action="store_true", help="as JSON, see docs/results.md")

    _lab(commands)

    policy = commands.add_parser(
        "policy",
        help="list and show policies",
        epilog=_POLICY_EXAMPLES,
        formatter_class=raw,
    )
    verbs = policy.add_subparsers(dest="verb", metavar="list|show", required=True)
    listing = verbs.add_parser("list", help="every policy in a line")
    show = verbs.add_parser(
        "show",
        help="one policy; without NAME: live sockets",
        description="One policy with its parameters, units and ranges. Without NAME: the TCP "
        "sockets of this network namespace, with the ACK policy that each has in the running "
        "kernel, and its state.",
        epilog=_POLICY_EXAMPLES,
        formatter_class=raw,
    )
    show.add_argument("name", metavar="NAME", nargs="?")
    show.add_argument("--watch", metavar="TIME", help="live sockets, again and again (1s)")
    for verb in (listing, show):
        verb.add_argument("--json", action="store_true", help="as JSON")

    capture = commands.add_parser(
        "capture",
        help="make a real capture between two network namespaces (root)",
        epilog=_CAPTURE_EXAMPLES,
        formatter_class=raw,
    )
    capture.add_argument("file", metavar="OUT.pcap")
    capture.add_argument("--rate", default="20mbit", help="of the link (20mbit)")
    capture.add_argument("--delay", help="round trip without queue (20ms, if the kernel has netem)")
    capture.add_argument(
        "--seconds",
        type=_whole("--seconds", 1, 30),
        default=2,
        metavar="N",
        help="length of the transfer, 1 to 30 (2)",
    )
    capture.add_argument("--quiet", action="store_true", help="say nothing")

    gateway = commands.add_parser(
        "gateway",
        help="keep a download's ACKs from pushing uploads out of a slow uplink",
        description="ACK separation on a real interface: pure ACKs get a class of their own, with "
        "a guarantee and a ceiling that follow from the link's rates.",
        epilog=options.EXAMPLES,
        formatter_class=raw,
    )
    options.add_options(gateway)

    doctor = commands.add_parser(
        "doctor",
        help="what is missing on this machine, before any run",
        epilog=_DOCTOR_EXAMPLES,
        formatter_class=raw,
    )
    doctor.add_argument("commands", nargs="*", metavar="COMMAND", help="check these only")
    doctor.add_argument("--json", action="store_true", help="as JSON")
    return parser


def _dispatch(args: argparse.Namespace, argv: Sequence[str]) -> int:
    # Late imports: `--help` and messages come at once.
    if args.command == "compare":
        from ackwise.cli import compare as compare_command

        return compare_command.main(args, shlex.join(["ackwise", *argv]))
    if args.command == "reproduce":
        from ackwise.cli import reproduce as reproduce_command

        return reproduce_command.main(args, shlex.join(["ackwise", *argv]))
    if args.command == "deadlock":
        from ackwise.cli import deadlock as deadlock_command

        return deadlock_command.main(args)

    if args.command == "lab":
        from ackwise.cli import lab as lab_command

        return lab_command.main(args, shlex.join(["ackwise", *argv]))
    if args.command == "policy":
        from ackwise.cli import policy as policy_command

        return policy_command.main(args)
    if args.command == "gateway":
        from ackwise.cli import gateway as gateway_command

        return gateway_command.main(args, shlex.join(["ackwise", *argv]))
    if args.command == "capture":
        from ackwise.cli import capture

        return capture.main(args)
    from ackwise.cli import doctor

    return doctor.main(args)


def _say(message: str) -> None:
    print(f"ackwise: {message}", file=sys.stderr)


def _interrupt(_signal: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0, 1 failed, 2 bad input, 130 interrupted."""
    words = list(sys.argv[1:] if argv is None else argv)
    with contextlib.suppress(ValueError):  # not the main thread: whoever calls handles signals
        signal.signal(signal.SIGTERM, _interrupt)  # a polite kill cleans up as Ctrl-C does
    try:
        return _dispatch(_parser().parse_args(words), words)
    except InputError as problem:
        _say(str(problem))
        return EXIT_BAD_INPUT
    except RunError as problem:
        _say(str(problem))
        return EXIT_FAILED
    except (Interrupted, KeyboardInterrupt):
        _say("interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) left: nothing more to say, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except SystemExit:
        raise
    except BaseException as problem:  # a panic of the engine is no Exception
        if os.environ.get("ACKWISE_DEBUG"):
            raise
        _say(
            f"internal error: {type(problem).__name__}: {problem} "
            "(set ACKWISE_DEBUG=1 for the traceback, and please report it)"
        )
        return EXIT_FAILED
