# SPDX-License-Identifier: MIT
"""What the options that several commands share come to."""

import argparse
from pathlib import Path

from ackwise.errors import InputError
from ackwise.lab import build
from ackwise.plans import schema


def cache_of(args: argparse.Namespace) -> Path:
    """The folder of built kernels."""
    return Path(args.cache).absolute() if args.cache else build.default_cache()


def configs_of(args: argparse.Namespace) -> list[Path]:
    """Files with more lines of kernel configuration."""
    return [Path(name) for name in getattr(args, "config", None) or []]


def limit_s(args: argparse.Namespace) -> float | None:
    """Real time after which a run counts as hung."""
    if args.wall_limit is None:
        return None
    try:
        limit: int = schema.read_key(schema.DURATION, args.wall_limit)
    except ValueError as problem:
        raise InputError(f"--wall-limit: {problem}") from None
    return limit / 1e9
