# SPDX-License-Identifier: MIT
"""A policy in force on a machine without a person at it, such as a guest of the lab.

    python -m ackwise.roads.unattended POLICY DEVICE    in force, in the background; "-": no device
    python -m ackwise.roads.unattended check            exit code 1 if it is not in force any more
    python -m ackwise.roads.unattended stop             stock again

As `ackwise run` does it, without anything that a plain Python lacks.
"""

import sys
from collections.abc import Callable, Sequence

from ackwise.errors import EXIT_FAILED, InputError, RunError
from ackwise.host import programs
from ackwise.plans import policy
from ackwise.roads import choice, session
from ackwise.roads.road import Wanted
from ackwise.roads.state import Keeper


def words_for(words: Sequence[str], python: str) -> list[str]:
    """The command for these words."""
    return [python, "-m", __name__, *words]


def main(words: Sequence[str]) -> int:
    """The exit code; raises InputError, RunError."""
    keeper = Keeper()
    if words == ["stop"]:
        print("\n".join(session.stop(keeper)))
        return 0
    if words == ["check"]:
        record = keeper.read()
        if record is not None:
            print(f"{record.policy} by {record.road}: {record.counters}")
        return 0 if keeper.is_running() else EXIT_FAILED
    chosen, device = words
    wanted = Wanted(policy.parse(chosen, "unattended"), None if device == "-" else device)
    found = choice.choose(wanted)
    if found.road is None:
        raise RunError(f"no road for {chosen}: {'; '.join(found.others)}")

    def stay(ready: Callable[[], None]) -> int:
        def say_so(taken: choice.Choice, _swept: list[str]) -> None:
            assert taken.road is not None
            print(f"{chosen}: by {taken.road.name}; {taken.road.does(wanted)}", flush=True)
            ready()

        session.run_best(found, wanted, keeper, ready=say_so)
        return 0

    return programs.detached(stay)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (InputError, RunError) as problem:
        sys.exit(f"unattended: {problem}")
