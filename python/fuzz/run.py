# SPDX-License-Identifier: MIT
"""Coverage-guided fuzzing of one target: `python run.py TARGET [libFuzzer's options and
folders]`."""

import sys
from contextlib import suppress
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parent))
with atheris.instrument_imports(include=["ackwise"]):
    import targets

    from ackwise.errors import InputError, RunError


def main() -> None:
    """Never returns: libFuzzer ends the process."""
    name = sys.argv.pop(1)
    run = targets.TARGETS[name]

    def one(data: bytes) -> None:
        with suppress(InputError, RunError):
            run(data)

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
