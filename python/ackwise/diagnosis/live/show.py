# SPDX-License-Identifier: MIT
"""The table of live sockets: redrawn in place on a terminal, otherwise appended."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from rich.live import Live
from rich.text import Text

from ackwise.diagnosis.live import lines
from ackwise.diagnosis.live.lines import Row
from ackwise.diagnosis.sentences import SAYINGS
from ackwise.results.console import Console

_HEADS = ("local", "peer", "lost", "limits", "Mbit/s", "RTT ms", "least", "cwnd", "retrans")
_RIGHT = (2, 4, 5, 6, 7, 8)
_LIMITS_SHOWN = 3
_MARGIN_LINES = 4  # headings, sums, the cursor


class Screen(Protocol):
    """Output for tables."""

    def show(self, rows: Sequence[Row], totals: Mapping[str, Any]) -> None:
        """Shows the table of one interval."""

    @property
    def room(self) -> int:
        """Number of sockets that fit."""


class _Printed:
    """Tables printed one after the other."""

    def __init__(self, console: Console, most: int) -> None:
        self._console, self.room = console, most

    def show(self, rows: Sequence[Row], totals: Mapping[str, Any]) -> None:
        self._console.print(table(rows, totals), soft_wrap=True)
        self._console.file.flush()


class _Renewed:
    """A table that replaces the previous one."""

    def __init__(self, live: Live, most: int) -> None:
        self._live, self._most = live, most

    @property
    def room(self) -> int:
        return max(1, min(self._most, (self._live.console.height - _MARGIN_LINES) // 2))

    def show(self, rows: Sequence[Row], totals: Mapping[str, Any]) -> None:
        self._live.update(table(rows, totals), refresh=True)


@contextmanager
def screen(most: int, *, once: bool) -> Iterator[Screen]:
    """The output for tables of at most `most` sockets."""
    console = Console()
    if once or not console.is_terminal or console.is_dumb_terminal:
        yield _Printed(console, most)
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        yield _Renewed(live, most)


def table(rows: Sequence[Row], totals: Mapping[str, Any]) -> Text:
    """The table: a row and a sentence for each socket, and the number of active ones."""
    cells = [_HEADS, *map(_cells, rows)]
    wide = [max(len(row[i]) for row in cells) for i in range(len(_HEADS))]
    text = Text(no_wrap=True, overflow="ellipsis")
    for number, row in enumerate(cells):
        line = "  ".join(
            cell.rjust(wide[i]) if i in _RIGHT else cell.ljust(wide[i])
            for i, cell in enumerate(row)
        )
        text.append(line.rstrip() + "\n", style="" if number else "bold")
        if number:
            text.append(f"  {lines.sentence(rows[number - 1])}\n", style="dim")
    return text.append(_sums(totals))


def _cells(row: Row) -> tuple[str, ...]:
    info = row["tcp_info"]
    by_time = sorted(row["limited_us"].items(), key=lambda item: -item[1])
    shares = ((SAYINGS[limit].words, lines.percent(row, limit)) for limit, _ in by_time)
    shown = [f"{share}% {words}" for words, share in shares if share][:_LIMITS_SHOWN]
    return (
        row["local"], row["peer"], f"{row['lost_us'] / 1e6:.2f} s", ", ".join(shown),
        f"{lines.rate_bps(row) / 1e6:.2f}", f"{info.get('rtt_us', 0) / 1e3:.1f}",
        f"{info.get('min_rtt_us', 0) / 1e3:.1f}", str(info.get("snd_cwnd", "")),
        str(row["retransmissions"]),
    )  # fmt: skip


def _sums(totals: Mapping[str, Any]) -> str:
    active = sum(totals["active"].values())
    return f"{active} of {totals['sockets']} sockets were active"
