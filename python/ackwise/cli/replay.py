# SPDX-License-Identifier: MIT
"""`ackwise compare --capture`: checks everything first, replays, then writes."""

from dataclasses import dataclass
from pathlib import Path

from ackwise.cli.options import Overrides, Quantity, command_line
from ackwise.cli.outputs import Outputs
from ackwise.cli.shape import option
from ackwise.errors import InputError, printable, quoted
from ackwise.host.terminal import say

_STEP_PPM = 1000  # of --cost-ratio: the replay counts in thousandths

OPTIONS = (
    option(
        "--cost-ratio", type=Quantity("SHARE", _STEP_PPM, 999_000), metavar="SHARE", default="50%",
        help="weight of one ACK against latency, 0.1% to 99.9%",
    ),
    option(
        "--unit", type=Quantity("TIME", 1, 1000 * 10**9), metavar="TIME", default="10ms",
        help="latency of one packet that costs 1",
    ),
    option(
        "--ack-delay-max", type=Quantity("TIME", 10**6, 500 * 10**6), metavar="TIME",
        default="500ms",
        help="the longest delay that the host allows an ACK; Linux: 200ms, or its least RTO",
    ),
    option(
        "--ack-cost", type=Quantity("TIME", 0, 10**9), metavar="TIME",
        help="CPU time to send an ACK; with --data-cost it adds the CPU column",
    ),
    option(
        "--data-cost", type=Quantity("TIME", 0, 10**9), metavar="TIME",
        help="CPU time to receive a data packet",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class ReceiverCosts:
    """What an ACK and a packet's latency cost."""

    cost_ratio: int  # ppm
    unit: int  # ns
    ack_delay_max: int  # ns
    ack_cost: int | None  # ns
    data_cost: int | None  # ns


def main(
    capture: str, overrides: Overrides, costs: ReceiverCosts, outputs: Outputs, *, quiet: bool
) -> int:
    """Exit code; raises InputError, RunError, Interrupted."""
    from ackwise import engine, replays
    from ackwise.plans import policy, units
    from ackwise.replays import table
    from ackwise.results import export
    from ackwise.results.console import Console
    from ackwise.results.progress import progress_bar

    if costs.cost_ratio % _STEP_PPM:
        shown = units.show(costs.cost_ratio, units.SHARE)
        raise InputError(f"--cost-ratio: {quoted(shown)}: the finest step is 0.1%")
    if (costs.ack_cost is None) != (costs.data_cost is None):
        raise InputError("--ack-cost: needs --data-cost, and the reverse; give both or neither")
    settings = replays.ReplaySettings(
        policies=policy.parse_all(overrides.policy or [policy.ALL], "--policy"),
        rho_permille=costs.cost_ratio // _STEP_PPM,
        unit_ns=costs.unit,
        seed=1 if overrides.seed is None else overrides.seed,
        ack_ns=costs.ack_cost,
        data_ns=costs.data_cost,
        ack_delay_max_ns=costs.ack_delay_max,
    )
    path = Path(capture)
    if capture != engine.STDIN:
        if "\0" in capture or not path.exists():
            raise InputError(
                f"--capture: {quoted(capture)} does not exist; give a pcap or pcapng file"
            )
        if not path.is_file():
            raise InputError(
                f"--capture: {quoted(capture)} is not a regular file; give a capture, or - for the "
                "standard input"
            )
    with progress_bar(not quiet) as show:
        show("replaying", 0, 1)
        replayed = replays.run(capture, settings, trace=outputs.report is not None)
    document = replayed.document
    cut = document["truncated"]
    if cut and not quiet:
        say(
            f"ackwise: {printable(capture)}: byte {cut['offset']} (packet {cut['packet']}): the "
            f"file ends inside a packet, after {cut['present_bytes']} of {cut['claimed_bytes']} "
            "bytes; the packets before it are analysed"
        )
    left_out = document["directions_left_out"]
    if left_out["directions"] and not quiet:
        say(
            f"ackwise: {printable(capture)}: {left_out['directions']} directions with less data "
            f"than the {len(document['directions'])} evaluated are left out "
            f"({left_out['data_segments']} segments, {left_out['payload_bytes']} bytes); to see "
            "them, take a part of the capture: tcpdump -r in.pcap -w out.pcap 'tcp port PORT'"
        )
    if not document["directions"]:
        short = document["directions_skipped"]
        found = (
            f"no TCP direction in it has enough data to judge ({short} with fewer than 10 segments)"
            if short
            else "no TCP found, or none that carries data"
        )
        raise InputError(
            f"--capture: {capture}: {found}; capture a transfer, with its ACKs, near the receiver"
        )

    def page() -> bytes:
        from ackwise.replays import report

        return report.of_replay(replayed, command_line())

    outputs.write(
        document,
        lambda: replays.rows(replayed),
        page,
        lambda: {
            "provenance": export.json_bytes(document["provenance"]).decode(),
            "capture": capture,
        },
    )
    if outputs.to_terminal:
        table.show(document, Console())
    return 0
