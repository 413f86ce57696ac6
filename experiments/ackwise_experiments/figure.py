# SPDX-License-Identifier: MIT
"""Figures as data, and as SVG, PDF or PNG: the same figure gives the same bytes everywhere."""

import io
import logging
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal

Kind = Literal["line", "steps", "points", "bars"]

# Distinguishable with any colour vision; the dark one is for published data.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#b58900", "#7f3fbf", "#8c564b")
SHAPES = "osD^vP*<>pX"  # open, two of them at one place can be told apart
INK = "#1c2430"
# Backgrounds of a grid's classes, in order of appearance.
CLASS_COLORS = ("#ffffff", "#f6c9b3", "#c8def0", "#cfe8da", "#ecdcee", "#f3e6b8")
PANEL_INCHES = (7.2, 3.1)
_NOTE_LETTERS = 110  # in the width of a panel
LEGEND_FROM = 2  # the axis label explains a single curve


@dataclass(frozen=True)
class Series:
    """One curve. `spread`: half widths of confidence intervals, drawn as a band or as bars."""

    label: str
    x: Sequence[float | str]
    y: Sequence[float]
    kind: Kind = "line"
    published: bool = False  # drawn dark and dashed
    spread: Sequence[float] | None = None


@dataclass(frozen=True)
class Panel:
    """Axes with their series. `lines`: labelled horizontal levels."""

    x_label: str
    y_label: str
    series: Sequence[Series]
    title: str = ""
    log_x: bool = False
    log_y: bool = False
    lines: Sequence[tuple[str, float]] = ()
    y_from_zero: bool = True
    apart: bool = False  # equal points show, each in a shape of its own, and not at the edge


@dataclass(frozen=True)
class Grid:
    """A table as a figure: cell texts on the colour of their class."""

    row_label: str
    column_label: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Sequence[str]]  # [row][column]
    classes: Sequence[Sequence[str]]  # [row][column], names in the legend; "": none
    title: str = ""


@dataclass(frozen=True)
class Figure:
    """One figure. `name`: of its file, without suffix; `source`: the published figure that it
    reproduces; `note`: lines below it."""

    name: str
    title: str
    panels: Sequence[Panel | Grid]
    source: str = ""
    columns: int = field(default=1)
    note: str = ""


FORMATS = {"svg": "svg", "pdf": "pdf", "png": "agg"}  # and matplotlib's backend for each
_PNG_DPI = 150


def format_of(path: str) -> str:
    """The format that a file's name asks for, which FORMATS may lack."""
    return PurePath(path).suffix.lower().removeprefix(".")


def drawn(figure: Figure, form: str = "svg") -> bytes:
    """The figure in one of FORMATS: no date, no random identifiers; in SVG, text stays text."""
    # It warns of a home that is not writable, where it would keep its cache of fonts.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    import matplotlib  # late: its import costs half a second

    matplotlib.use(FORMATS[form])
    from matplotlib import pyplot

    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": figure.name,
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "text.color": INK,
        "axes.edgecolor": "#b9c2cd",
        "axes.labelcolor": INK,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#e9edf1",
        "axes.titlesize": 9.5,
        "axes.titleweight": "bold",
        "path.simplify": True,
        "path.simplify_threshold": 0.5,
    }
    columns = min(figure.columns, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    with pyplot.rc_context():
        matplotlib.rcdefaults()  # independent of the user's settings
        matplotlib.rcParams.update(settings)
        width, height = PANEL_INCHES
        height = max([height, *map(_grid_inches, figure.panels)])
        share = 1 if columns == 1 else 0.72
        size = (width * columns * share, height * rows)
        drawing, axes = pyplot.subplots(rows, columns, figsize=size, squeeze=False)
        try:
            places = [ax for row in axes for ax in row]
            for ax, panel in zip(places, figure.panels, strict=False):
                if isinstance(panel, Grid):
                    _draw_grid(ax, panel)
                else:
                    _draw_panel(ax, panel)
            for ax in places[len(figure.panels) :]:
                ax.set_axis_off()
            if figure.note:
                letters = int(_NOTE_LETTERS * columns * share)
                note = [textwrap.fill(line, letters) for line in figure.note.splitlines()]
                drawing.supxlabel("\n".join(note), fontsize=8)
            drawing.tight_layout()
            out = io.BytesIO()
            about: dict[str, str | None] = {"Title": figure.title}
            none = {"svg": ("Date", "Creator"), "pdf": ("CreationDate", "Creator", "Producer")}
            about |= dict.fromkeys(none.get(form, ("Software",)))
            drawing.savefig(out, format=form, dpi=_PNG_DPI, metadata=about)
        finally:
            pyplot.close(drawing)
    if form != "svg":
        return out.getvalue()
    head, body = out.getvalue().split(b"\n", 1)
    return head + b"\n<!-- SPDX-License-Identifier: MIT -->\n" + body


# Bars leave no room for a legend between them; names of several lines move it further down.
BELOW: dict[str, Any] = {"loc": "upper center", "ncols": 1}
LINE_SHARE = 0.1  # of a panel's height


def _draw_panel(ax: Any, panel: Panel) -> None:
    bars = [s for s in panel.series if s.kind == "bars"]
    colors = iter(COLORS * (1 + len(panel.series) // len(COLORS)))
    for n, one in enumerate(panel.series):
        look: dict[str, Any] = {"label": one.label, "color": INK if one.published else next(colors)}
        if one.kind == "bars":
            _draw_bars(ax, one, bars, look)
            continue
        if one.kind == "points":
            look |= {"linestyle": "none", "marker": "x" if one.published else "o", "markersize": 4}
            if panel.apart:
                look |= {"markersize": 7, "fillstyle": "none", "marker": SHAPES[n % len(SHAPES)]}
        else:
            look |= {"linewidth": 1.4, "linestyle": "--" if one.published else "-"}
        if one.kind == "steps":
            look["drawstyle"] = "steps-post"
        ax.plot(one.x, one.y, **look)
        if one.spread is not None:
            low = [y - s for y, s in zip(one.y, one.spread, strict=True)]
            high = [y + s for y, s in zip(one.y, one.spread, strict=True)]
            if one.kind == "points":
                ax.vlines(one.x, low, high, color=look["color"], linewidth=0.8)
            else:
                ax.fill_between(one.x, low, high, color=look["color"], alpha=0.18, linewidth=0)
    for label, level in panel.lines:
        ax.axhline(level, color=INK, linewidth=0.9, linestyle=":")
        ax.annotate(
            label,
            (1, level),
            xycoords=("axes fraction", "data"),
            xytext=(-3, 2),
            textcoords="offset points",
            ha="right",
            fontsize=8,
        )
    if panel.log_x:
        ax.set_xscale("log")
        if panel.apart:
            _write_out(ax.xaxis)
    if panel.log_y:
        ax.set_yscale("log")
    elif panel.y_from_zero:
        ax.set_ylim(bottom=min(0, ax.get_ylim()[0]))
        if panel.apart:
            ax.set_ylim(top=1.08 * ax.get_ylim()[1])
    ax.set_xlabel(panel.x_label)
    ax.set_ylabel(panel.y_label)
    ax.set_title(panel.title, loc="left")
    if len(panel.series) >= LEGEND_FROM:
        look = {}
        if bars:
            more = max(str(x).count("\n") for s in bars for x in s.x)
            look = {**BELOW, "bbox_to_anchor": (0.5, -0.1 - LINE_SHARE * more)}
        ax.legend(fontsize=8, frameon=False, **look)


def _write_out(axis: Any) -> None:
    """Numbers at a logarithmic axis as tables have them, 4 000 and not 4x10^3."""
    from matplotlib.ticker import LogFormatter

    class Plain(LogFormatter):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return f"{x:,.0f}".replace(",", " ") if super().__call__(x, pos) else ""

    axis.set_major_formatter(Plain())
    axis.set_minor_formatter(Plain(minor_thresholds=(1, 0.4)))


def _draw_bars(ax: Any, one: Series, bars: list[Series], look: dict[str, Any]) -> None:
    names = list(dict.fromkeys(str(x) for s in bars for x in s.x))
    width = 0.8 / len(bars)
    shift = (bars.index(one) - (len(bars) - 1) / 2) * width
    places = [names.index(str(x)) + shift for x in one.x]
    ax.bar(places, one.y, width * 0.94, yerr=one.spread, ecolor=INK, capsize=2, **look)
    ax.set_xticks(range(len(names)), names)
    ax.grid(visible=False, axis="x")


def _grid_inches(panel: Panel | Grid) -> float:
    """The least height at which the texts of a grid stand apart: its rows, heads and legend."""
    return len(panel.rows) * 0.18 + 0.7 if isinstance(panel, Grid) else 0.0


def _draw_grid(ax: Any, grid: Grid) -> None:
    from matplotlib.patches import Patch, Rectangle

    names = list(dict.fromkeys(c for row in grid.classes for c in row if c))
    color = {"": "#ffffff"} | dict(zip(names, CLASS_COLORS, strict=False))
    for r, (texts, classes) in enumerate(zip(grid.cells, grid.classes, strict=True)):
        for c, (text, name) in enumerate(zip(texts, classes, strict=True)):
            ax.add_patch(
                Rectangle((c, r), 1, 1, facecolor=color[name], edgecolor="#dfe4ea", linewidth=0.7)
            )
            ax.text(c + 0.5, r + 0.5, text, ha="center", va="center", fontsize=7.5)
    ax.set_xlim(0, len(grid.columns))
    ax.set_ylim(len(grid.rows), 0)
    ax.set_xticks([c + 0.5 for c in range(len(grid.columns))], grid.columns, fontsize=8)
    ax.set_yticks([r + 0.5 for r in range(len(grid.rows))], grid.rows, fontsize=8)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.set_xlabel(grid.column_label)
    ax.set_ylabel(grid.row_label)
    ax.set_title(grid.title, loc="left")
    shown = [n for n in names if n]
    if shown:
        ax.legend(
            handles=[Patch(facecolor=color[n], edgecolor="#b9c2cd", label=n) for n in shown],
            fontsize=8,
            frameon=False,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.02),
            ncols=min(4, len(shown)),
        )
