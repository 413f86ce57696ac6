# SPDX-License-Identifier: MIT
"""`ackwise lab conform`: claims about a receiver's ACKs, on the real kernel, policy by policy."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from ackwise.cli import options
from ackwise.cli.options import Lab
from ackwise.cli.outputs import Outputs, outputs
from ackwise.cli.shape import Command, argument, group, option, others
from ackwise.errors import EXIT_FAILED, InputError

if TYPE_CHECKING:
    from ackwise.results.console import Console
    from ackwise_experiments.conform.claim import Claim
    from ackwise_experiments.conform.suite import ClaimOutcome
    from ackwise_experiments.conform.world import OnImage, World

_TEXT = """\
A claim is a script of linux/conform/: which segments arrive and when, and which leave the host,
exact in virtual time. docs/inside/conform.md describes the language. With --image, the kernel is a
distribution's own: stock's code, the policies of the kernel module if the image has it, and `every`
by the attribute of a route.
"""
_EXAMPLES = """\
ackwise lab conform
ackwise lab conform --stock
ackwise lab conform '*window*' --policy stock --policy delayed:segments=4
ackwise lab conform a-segment-above-a-hole-is-acknowledged-at-once --show
ackwise lab conform my-own.claim --policy a3 --json -
ackwise lab conform --image debian-6.12/ --policy stock --policy adaptive
ackwise lab conform --list
"""
_EXIT_CODES = """\
0  every claim holds
1  a claim does not hold, or a run failed
"""


def _claims() -> Iterator[tuple[str, str]]:
    from ackwise_experiments.conform import suite

    return ((path.stem, "") for path in sorted(suite.folder().glob("*.claim")))


def _policy_names() -> Iterator[tuple[str, str]]:
    yield "stock", "the kernel's own code"
    yield from options.POLICIES.known()


def _policies(asked: Sequence[str], *, stock: bool, image: "OnImage | None" = None) -> list[str]:
    from ackwise import engine
    from ackwise.plans import policy
    from ackwise_experiments.conform import world
    from ackwise_experiments.conform.claim import STOCK

    if stock:
        if any(p != STOCK for p in asked):
            raise InputError(
                "--policy: cannot be combined with --stock: a kernel without patches has no "
                "policies; leave one of them out"
            )
        return [STOCK]
    labels: list[str] = []
    for spec in asked or [policy.ALL]:
        if spec == policy.ALL:
            known = [p["name"] for p in engine.policies() if p["kind"] == "policy"]
            wanted = [STOCK, *(world.of_image(image.image) if image else known)]
        elif spec == STOCK:
            wanted = [STOCK]
        else:
            chosen = policy.parse(spec, "--policy")
            policy.check_in_kernel(chosen.name, "--policy")
            if chosen.clamp is not None or chosen.host != policy.STOCK:
                raise InputError(
                    f"--policy: {chosen.label}: a kernel's rules cannot be changed; leave "
                    "host and clamp out"
                )
            if image:
                world.way_of(image.image, spec)
            wanted = [chosen.label]
        labels += [label for label in wanted if label not in labels]
    return labels


def _list(claims: "Sequence[Claim]") -> int:
    from rich.text import Text

    from ackwise.results.console import Console

    console = Console()
    for claim in claims:
        console.print(Text(claim.name, style="bold"), soft_wrap=True)
        cited = "; ".join(f"{rfc} {rfc.level}" for rfc in claim.rfcs)
        console.print(Text(f"    {cited}: {claim.why}"), soft_wrap=True)
        if claim.policies:
            console.print(Text(f"    for {', '.join(claim.policies)}"), soft_wrap=True)
        if claim.differs:
            console.print(Text(f"    but: {claim.differs}"), soft_wrap=True)
        for place, text in claim.unless.items():
            console.print(Text(f"    unless {place}: {text}"), soft_wrap=True)
    console.print(f"{len(claims)} claims")
    return 0


def _show(console: "Console", outcomes: "Sequence[ClaimOutcome]", *, everything: bool) -> None:
    from rich.text import Text

    for one in outcomes:
        if one.passed and not everything:
            continue
        if one.passed:
            console.print(Text(f"{one.claim.name}: {one.policy}: holds"), soft_wrap=True)
        else:
            console.print(Text(one.message, style="red"), soft_wrap=True)
        for line in one.came or ("nothing left",):
            console.print(Text(f"    {line}", style="dim"), soft_wrap=True)
        console.print()


@click.command(
    "conform",
    cls=Command,
    short_help="Check that receivers acknowledge as the RFCs and their policy say",
    text=_TEXT,
    examples=_EXAMPLES,
    exit_codes=_EXIT_CODES,
)
@argument(
    "claim",
    metavar="[CLAIM]...",
    nargs=-1,
    type=options.Known(_claims, files=True),
    help="name, pattern or file of a claim",
    show_default="every shipped claim",
)
@group(
    "What to check",
    option("--list", "listing", is_flag=True, help="list the claims and the RFCs they come from"),
    option(
        "--policy",
        type=options.Known(_policy_names),
        metavar="NAME[:KEY=VALUE,...]",
        multiple=True,
        help="policy to check; `stock` is the kernel's own code",
        show_default="all",
    ),
    option("--show", is_flag=True, help="show every segment that left, even where a claim holds"),
)
@group(
    "Kernel",
    options.STOCK,
    options.IMAGE,
    options.CACHE,
    options.CONFIG,
    options.jobs("guests in parallel"),
)
@outputs("json")
@others(option("--quiet", is_flag=True, help="no progress bar"))
@options.gathered("lab", Lab)
def command(
    claim: tuple[str, ...],
    listing: bool,
    policy: tuple[str, ...],
    show: bool,
    lab: Lab,
    jobs: int | None,
    outputs: Outputs,
    quiet: bool,
) -> int:
    """0 when every claim holds, else 1; raises InputError, RunError, Interrupted."""
    from rich.text import Text

    from ackwise.results import table
    from ackwise.results.console import Console
    from ackwise.results.progress import progress_bar
    from ackwise_experiments.conform import document, suite, world

    claims = suite.choose(claim)
    if listing:
        return _list(claims)
    image = None
    if lab.image is not None:
        options.refuse(("--stock", "--config"), "--image", "its kernel is not built here")
        image = world.on_image(*lab.image_kernel())
    policies = _policies(policy, stock=lab.stock, image=image)
    for name in policies:
        if not any(one.choice(name) for one in claims):
            raise InputError(f"lab conform: none of the claims given is about {name}")
    outputs.check()
    where: World = image or world.InLab(lab.kernel())
    kernel = where.kernel
    started = time.monotonic()
    with progress_bar(not quiet) as progress:
        outcomes = suite.run(
            where,
            claims,
            policies,
            workers=jobs,
            on_progress=partial(progress, f"{len(claims)} claims on {kernel.label}"),
        )
    took_s = time.monotonic() - started
    outputs.write(document.document(where, claims, policies, outcomes), list)
    failed = sum(not one.passed for one in outcomes)
    if outputs.to_terminal:
        console = Console()
        cells = {(o.claim.name, o.policy): "ok" if o.passed else "FAIL" for o in outcomes}
        table.show_grid("claim", [c.name for c in claims], policies, cells, console)
        for one, name, text in suite.left_out(where, claims, policies):
            console.print(Text(f"{one.path}: {name}: not claimed here: {text}"), soft_wrap=True)
        _show(console, outcomes, everything=show)
        console.print(
            f"{len(outcomes) - failed} of {len(outcomes)} hold: {len(claims)} claims, "
            f"{len(policies)} {'policy' if len(policies) == 1 else 'policies'}, {kernel.label}, "
            f"{took_s:.1f} s"
        )
    return EXIT_FAILED if failed else 0
