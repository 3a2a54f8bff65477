"""The figures as a table, as JSON, and as a plot."""

from __future__ import annotations

import json
import platform
import statistics
from typing import Any, Dict, List, Tuple

from timing import Comparison

Overhead = Tuple[str, float, float]  # what, microseconds, goal


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:#.3g}"


def _rate(rows: int, seconds: List[float]) -> str:
    rate = rows / statistics.median(seconds)
    for unit, size in (("M/s", 1e6), ("k/s", 1e3)):
        if rate >= size:
            return f"{_short(rate / size)} {unit}"
    return f"{_short(rate)} /s"


def _verdict(reached: Any) -> str:
    return "" if reached is None else "yes" if reached else "**no**"


def lines(comparisons: List[Comparison], calls: List[Overhead]) -> List[List[str]]:
    table = [["what", "StrideDB", "beside", "its rate", "ratio", "goal", "reached"]]
    for c in comparisons:
        goal = "" if c.goal is None else f"{c.goal:g}x"
        rates = _rate(c.rows, c.stride), _rate(c.rows, c.other)
        table.append([c.what, rates[0], c.peer, rates[1], f"{_short(c.ratio)}x", goal, _verdict(c.reached)])
    for what, microseconds, goal in calls:
        table.append([what, f"{microseconds:.2f} us", "", "", "", f"{goal:g} us", _verdict(microseconds <= goal)])
    return table


def as_text(table: List[List[str]]) -> str:
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table)


def as_markdown(table: List[List[str]]) -> str:
    rows = ["| " + " | ".join(row) + " |" for row in table]
    return "\n".join([rows[0], "|---|---|---|---|--:|--:|---|"] + rows[1:])


def machine() -> Dict[str, Any]:
    """The processor, and the versions of what is compared."""
    from importlib.metadata import PackageNotFoundError, version

    found: Dict[str, Any] = {"python": platform.python_version()}
    with open("/proc/cpuinfo") as file:
        models = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    found["processor"] = f"{models[0]}, {len(models)} cores"
    for name in "stridedb numpy polars pandas pyarrow duckdb lmdb rocksdict pytricia py-radix".split():
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def write_json(path: str, comparisons: List[Comparison], calls: List[Overhead], arguments: Dict[str, Any]) -> None:
    everything = {
        "machine": machine(),
        "arguments": arguments,
        "comparisons": [dict(vars(c), ratio=c.ratio, reached=c.reached) for c in comparisons],
        "calls": [{"what": what, "microseconds": taken, "goal": goal} for what, taken, goal in calls],
    }
    with open(path, "w") as file:
        json.dump(everything, file, indent=1)


def write_plot(path: str, comparisons: List[Comparison]) -> None:
    """How many times faster than each peer, with the goal as a mark."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "stridedb", "svg.fonttype": "none", "font.family": "sans-serif"})
    from matplotlib import pyplot

    shown = comparisons[::-1]
    figure, axes = pyplot.subplots(figsize=(9, 0.34 * len(shown) + 1.2))
    colors = ["#c44e52" if c.reached is False else "#4c72b0" for c in shown]
    places = range(len(shown))
    axes.barh(places, [c.ratio for c in shown], color=colors, height=0.62)
    goals = [(place, c.goal) for place, c in zip(places, shown) if c.goal is not None]
    marks = [goal for _, goal in goals], [place for place, _ in goals]
    axes.plot(*marks, "|", color="black", markersize=13, label="goal")
    for place, c in zip(places, shown):
        axes.text(c.ratio * 1.06, place, _short(c.ratio), va="center", fontsize=8)
    axes.set_yticks(places, [f"{c.what} | {c.peer}" for c in shown], fontsize=8)
    axes.set_xscale("log")
    axes.axvline(1, color="gray", linewidth=0.8)
    axes.set_xlim(0.3, max(c.ratio for c in shown) * 4)
    axes.set_xlabel("times as fast as the peer (red: below the goal)")
    axes.legend(loc="lower right", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
