# SPDX-License-Identifier: MIT
"""`up` and `down`: replace the queues of an interface, and restore them.

      up:    read the queues ─> rehearse ─> save the state ─> change, one datagram ─> mark it up
                                                                 │ refused
                                                                 └─> restore, forget, say why
      down:  read the state ─> mark it ─> restore ─> forget

Queues that are not the kernel's default are replaced only if restoring them was rehearsed, and gave
the same bytes. The kernel processes a datagram within one system call, so a killed `up` leaves the
interface as it was or as it should be. A restore that is too large for one datagram can be cut
short; the state file then says that it has begun, and the next `up` or `down` begins it again.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from ackwise.errors import InputError, RunError, quoted
from ackwise.gateway import rehearsal, selftest, tree
from ackwise.gateway.classifier import Framing
from ackwise.gateway.linklayer import LAYERS
from ackwise.gateway.rehearsal import NoNamespace
from ackwise.gateway.snapshot import Snapshot
from ackwise.gateway.state import GOING_DOWN, GOING_UP, UP, Keeper, SelfTest, State, namespace
from ackwise.gateway.tree import TreeSettings
from ackwise.host import rights
from ackwise.host.netlink import Interface, Message, Refused, Rtnetlink

MODULES = {
    "htb": "sch_htb",
    "pfifo": "sch_fifo",
    "pfifo_head_drop": "sch_fifo",
    "bfifo": "sch_fifo",
    "fq_codel": "sch_fq_codel",
    "cake": "sch_cake",
    "bpf": "cls_bpf",
}
NAME_BYTES_MAX = 15


@dataclass(frozen=True)
class Did:
    """Description of what was done; `changed`: whether the interface's queues were changed."""

    words: str
    changed: bool
    self_test: SelfTest | None = None


def check_name(name: str) -> None:
    """InputError for an invalid interface name. The name is also the state file's name."""
    if (
        not 0 < len(os.fsencode(name)) <= NAME_BYTES_MAX
        or any(c in "/:\0" or c.isspace() for c in name)
        or name in (".", "..")
    ):
        raise InputError(
            f"interface: {quoted(name)} is not an interface name; `ip link` lists them"
        )


def check_rights() -> None:
    """InputError when this process may not change queues."""
    if "CAP_NET_ADMIN" in rights.missing_capabilities():
        raise InputError("gateway: needs root (lacking CAP_NET_ADMIN); run it with sudo")


def check_present(name: str) -> None:
    """InputError when there is no such interface."""
    check_name(name)
    with Rtnetlink() as kernel:
        find_link(kernel, name)


def find_link(kernel: Rtnetlink, name: str) -> Interface:
    """The interface; InputError when it is missing."""
    link = kernel.link(name)
    if link is None:
        raise _absent(name)
    return link


def _absent(name: str) -> InputError:
    return InputError(f"interface: {quoted(name)}: there is no such interface; see `ip link`")


PSCHED = Path("/proc/net/psched")


def timer_step_ns() -> int | None:
    """Resolution of this kernel's queue timers: 1 with high-resolution timers, otherwise 1 s / HZ.
    None when unknown."""
    try:
        per_second = int(PSCHED.read_text(encoding="ascii").split()[-1], 16)
        return 10**9 // per_second
    except (OSError, ValueError, LookupError, ArithmeticError):
        return None


def missing_kinds() -> dict[str, str]:
    """Leaf queues, root and filter that this kernel lacks, each with the kernel's error message.
    Needs root; NoNamespace when no namespace can be created."""
    found = {}
    for kind in tree.LEAF_KINDS:
        leaf = tree.Leaf(kind, 0 if kind == "cake" else 10_000)
        plain = TreeSettings(
            "rehearsal", 8_000_000, 800_000, 1_600_000, leaf, tree.Leaf("pfifo", 100),
            LAYERS["header"], 1500, Framing.ETHERNET,
        )  # fmt: skip
        refused, _ = rehearsal.attempt(partial(tree.messages, plain))
        for one in refused[:1]:
            found[_kind_of(one, leaf.kind)] = one.words
    return found


def _kind_of(refused: Refused, leaf: str) -> str:
    if "htb root" in refused.step:
        return "htb"
    return "bpf" if "filter" in refused.step else leaf


def up(
    settings: TreeSettings,
    note: dict[str, object],
    keeper: Keeper,
    *,
    replace_own: bool,
    self_test: bool = True,
    rehearsed: Callable[[], object] = lambda: None,
) -> Did:
    """Sets up the tree; `note` is stored in the state file.

    `replace_own`: save and replace queues that the user has set up; without it they are refused.
    `self_test`: send one pure ACK and see whether its class counts it; a failure changes nothing.
    `rehearsed`: called when no namespace is needed any more.
    Raises InputError before anything is changed, RunError afterwards, with everything restored.
    """
    check_rights()
    with keeper.lock(), Rtnetlink() as kernel:
        link = find_link(kernel, settings.interface)
        current = Snapshot.take(kernel, link.ifindex)
        old = _still_meant(keeper, link)
        before = _before(link.name, old, current, keeper, replace_own=replace_own)
        wanted = _rehearse(settings, before, current, link)
        rehearsed()
        state = State(link.name, link.ifindex, namespace(), GOING_UP, note, before)
        if current == wanted or (old is not None and old.settings == note and current == old.after):
            state = replace(state, phase=UP, after=current)
            tested = _finish(kernel, link, keeper, state, self_test=self_test)
            return Did(f"{link.name}: already up", changed=False, self_test=tested)
        keeper.write(state)
        if Snapshot.take(kernel, link.ifindex) != current and kernel.link(link.name) is not None:
            _back_to(old, keeper)
            raise RunError(f"{link.name}: not changed: someone else changed its queues; try again")
        refused = _change(kernel, current, tree.messages(settings, link.ifindex), link)
        after = Snapshot.take(kernel, link.ifindex)
        if not refused and wanted is not None and after != wanted:
            refused = [Refused("compare", 0, "the kernel did something else than in the rehearsal")]
        if refused:
            keeper.write(replace(state, phase=GOING_DOWN))
            back, words = _put_back(kernel, current, link)
            if back:
                _back_to(old, keeper)
            raise RunError(f"{link.name}: {_explained(refused[0])}; {words}")
        state = replace(state, phase=UP, after=after)
        tested = _finish(kernel, link, keeper, state, self_test=self_test)
        return Did(f"{link.name}: up", changed=True, self_test=tested)


def _back_to(old: State | None, keeper: Keeper) -> None:
    """Restores the earlier state file once the interface is back in its earlier state."""
    if old is None:
        keeper.forget()
    else:
        keeper.write(old)


def _finish(
    kernel: Rtnetlink, link: Interface, keeper: Keeper, state: State, *, self_test: bool
) -> SelfTest | None:
    """Marks the interface up, then tests it: a kill during the test must not undo the set-up."""
    keeper.write(state)
    if not self_test:
        return None
    tested = selftest.run(kernel, link)
    keeper.write(replace(state, self_test=tested))
    return tested


def _still_meant(keeper: Keeper, link: Interface) -> State | None:
    """The saved state, unless its interface is gone."""
    state = keeper.read()
    if state is None:
        return None
    if state.namespace != namespace():
        raise RunError(
            f"{keeper.file}: belongs to an interface in another network namespace; "
            "give another --run-dir"
        )
    return state if state.ifindex == link.ifindex else None


def check_not_up(device: str, keeper: Keeper, *, replace_own: bool) -> None:
    """InputError where the queues of `up` are in place, or it would refuse those that are."""
    with Rtnetlink() as kernel:
        link = find_link(kernel, device)
        current = Snapshot.take(kernel, link.ifindex)
    old = _still_meant(keeper, link)
    if old is not None and current.has_our_root:
        raise InputError(f"{device}: is up already; `ackwise gateway down {device}` first")
    _before(device, old, current, keeper, replace_own=replace_own)


def _before(
    device: str,
    old: State | None,
    current: Snapshot,
    keeper: Keeper,
    *,
    replace_own: bool,
) -> Snapshot:
    """The queues that `down` will restore."""
    if old is not None and (
        current.has_our_root or current == old.before or _is_half_restored(old, current)
    ):
        return old.before
    if current.is_default:
        return current
    if current.is_ours:
        if replace_own:
            return Snapshot()
        raise InputError(
            f"{device}: has the queues of `up`, but {keeper.file} is missing; "
            f"remove them with `tc qdisc del dev {device} root`, or give --replace"
        )
    if not replace_own:
        raise InputError(
            f"{device}: already has queues ({current.words}); give --replace to replace them; "
            "`down` restores them"
        )
    return current


def _is_half_restored(state: State, current: Snapshot) -> bool:
    return state.phase == GOING_DOWN and (
        current.is_default or current.skeleton <= state.before.skeleton
    )


def _rehearse(
    settings: TreeSettings, before: Snapshot, current: Snapshot, link: Interface
) -> Snapshot | None:
    """The tree as the kernel will report it. None when no namespace can be created for a trial;
    nothing is at risk then, because the queues being replaced are the kernel's default, ours, or
    whole in the state file.

    InputError when the tree cannot be set up, or the replaced queues could not be restored exactly.
    """
    at_stake = current == before and not before.is_default
    why = current.obstacle if at_stake else ""
    wanted = None
    try:
        refused, wanted = rehearsal.attempt(
            partial(tree.messages, settings), queue_packets=link.queue_packets
        )
        if refused:
            raise InputError(f"{link.name}: not changed: {_explained(refused[0])}")
        if at_stake and not why:
            why = _loss(before, link)
    except NoNamespace as problem:
        if at_stake and not why:
            remedy = (
                "run it with sudo, so that it has CAP_SYS_ADMIN"
                if rights.missing_capabilities("CAP_SYS_ADMIN")
                else "use a kernel with network namespaces (CONFIG_NET_NS)"
            )
            raise InputError(
                f"{link.name}: not changed: whether its queues ({before.words}) could be restored "
                f"cannot be tried, as no network namespace can be made ({problem}); {remedy}, or "
                f"remove the queues first: `tc qdisc del dev {link.name} root`"
            ) from None
    if why:
        raise InputError(
            f"{link.name}: not changed: its queues ({before.words}) could not be restored exactly "
            f"({why}); remove them first: `tc qdisc del dev {link.name} root`"
        )
    return wanted


def _loss(before: Snapshot, link: Interface) -> str:
    """How the queues would differ after a restore; "" if they would not. NoNamespace when a restore
    cannot be tried."""
    refused, back = rehearsal.attempt(
        before.messages,
        transmit_queues=link.transmit_queues,
        queue_packets=link.queue_packets,
    )
    if refused:
        return str(refused[0])
    if back == before:
        return ""
    found = set(back.parts)
    lost = next((p for p in before.parts if p not in found), None)
    return f"{lost} differs" if lost else "there would be more of them"


def _explained(refused: Refused) -> str:
    """The failed step, the kernel's message, and the missing module, if any."""
    if "unknown" in refused.words or refused.number == 2:
        kinds = [k for k in MODULES if f" {k} " in f" {refused.step} "]
        if kinds:
            return (
                f"{refused}; this kernel has no {kinds[0]} (module {MODULES[kinds[0]]}): install "
                "or load it, or choose another leaf"
            )
    return str(refused)


def _change(
    kernel: Rtnetlink, current: Snapshot, made: Sequence[Message], link: Interface
) -> list[Refused]:
    first = [] if current.is_default else [tree.delete_root(link.ifindex)]
    return kernel.change([*first, *made])


def _put_back(kernel: Rtnetlink, snapshot: Snapshot, link: Interface) -> tuple[bool, str]:
    """Restores `snapshot`. Returns whether nothing is left to restore, and the outcome in words."""
    if kernel.link(link.name) is None:
        return True, "the interface is gone"
    now = Snapshot.take(kernel, link.ifindex)
    refused = _change(kernel, now, snapshot.messages(link.ifindex), link)
    again = Snapshot.take(kernel, link.ifindex)
    if again == snapshot:
        return True, "everything was restored"
    why = f" ({refused[0]})" if refused else ""
    return False, f"NOT restored{why}: {again.words} instead of {snapshot.words}; run `down` again"


def down(interface: str, keeper: Keeper) -> Did:
    """Restores the queues. Having nothing to restore is not an error; RunError when the kernel
    refuses."""
    check_name(interface)
    check_rights()
    with keeper.lock(), Rtnetlink() as kernel:
        state = keeper.read()
        link = kernel.link(interface)
        if state is None:
            keeper.forget()
            if link is None:
                raise _absent(interface)
            if Snapshot.take(kernel, link.ifindex).is_ours:
                raise RunError(
                    f"{interface}: has the queues of `up`, but {keeper.file} is missing; "
                    f"`tc qdisc del dev {interface} root` restores the kernel's default"
                )
            return Did(f"{interface}: is not up", changed=False)
        if state.namespace != namespace():
            raise RunError(
                f"{keeper.file}: belongs to an interface in another network namespace; "
                "give another --run-dir"
            )
        if link is None or link.ifindex != state.ifindex:
            keeper.forget()
            return Did(
                f"{interface}: was removed in the meantime, and its queues with it", changed=False
            )
        current = Snapshot.take(kernel, link.ifindex)
        if current == state.before:
            keeper.forget()
            return Did(f"{interface}: down; {current.words}", changed=False)
        if not (current.has_our_root or _is_half_restored(state, current)):
            keeper.forget()
            return Did(
                f"{interface}: its queues were replaced by someone else; left as they are: "
                f"{current.words}",
                changed=False,
            )
        keeper.write(replace(state, phase=GOING_DOWN))
        back, words = _put_back(kernel, state.before, link)
        if not back:
            raise RunError(f"{interface}: {words}")
        keeper.forget()
        return Did(f"{interface}: down; {state.before.words}", changed=True)


def settings_document(settings: TreeSettings) -> dict[str, object]:
    """Settings as JSON: what the state file and `plan --json` hold."""
    document = asdict(settings)
    document["framing"] = settings.framing.value
    return document
