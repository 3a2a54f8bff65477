"""What a table's files and trees are like, as text and as a picture."""

from __future__ import annotations

import html
from typing import Any, Dict, List

from ._core import Table


_PARTS = (
    ("keys", "key_bytes", "#4477aa"),
    ("values", "value_bytes", "#66ccee"),
    ("tree", "tree_bytes", "#ee6677"),
    ("filter", "filter_bytes", "#ccbb44"),
)


def _tree_text(segment: Dict[str, Any]) -> str:
    strides = "-".join(map(str, segment["strides"])) or "none"
    return f"strides {strides}, {segment['prefix_bits']} bits in common, leaves of {segment['leaf_capacity']}"


def explain(self: Table) -> str:
    """The table's segments, newest first: rows, bytes, and the strides of their trees."""
    segments = self.segments()
    lines = [f"table {self.name!r}: {self.schema}", f"{len(segments)} segment{'' if len(segments) == 1 else 's'}"]
    for i, segment in enumerate(segments):
        expected = segment["expected_finds_per_second"]
        speed = f", {expected / 1e6:.1f} M finds/s expected on {segment['expected_on']}" if expected else ""
        lines.append(
            f"  {i}: run {segment['run']}, {segment['rows']} rows, {segment['bytes_on_disk']} bytes, "
            f"tree of {segment['tree_bytes']} bytes ({_tree_text(segment)}){speed}"
        )
    return "\n".join(lines)


def _bars(segments: List[Dict[str, Any]]) -> str:
    largest = max((sum(s[bytes_of] for _, bytes_of, _ in _PARTS) for s in segments), default=1) or 1
    width, height = 420, 26
    shapes = []
    for i, segment in enumerate(segments):
        y = i * height
        x = 0.0
        for name, bytes_of, color in _PARTS:
            size = segment[bytes_of]
            w = width * size / largest
            shapes.append(
                f'<rect x="{x:.1f}" y="{y + 4}" width="{w:.1f}" height="16" fill="{color}">'
                f"<title>{name}: {size} bytes</title></rect>"
            )
            x += w
        label = html.escape(f"{segment['rows']} rows; {_tree_text(segment)}")
        shapes.append(f'<text x="{x + 6:.1f}" y="{y + 17}" font-size="12" fill="currentColor">{label}</text>')
    total = max(len(segments), 1) * height
    return f'<svg width="900" height="{total}" font-family="sans-serif">{"".join(shapes)}</svg>'


def explain_html(self: Table) -> str:
    """A bar for each segment: what its keys, values, tree and filter take."""
    legend = " ".join(f'<span style="color:{color}">&#9632;</span> {name}' for name, _, color in _PARTS)
    about = f"<b>{html.escape(self.name)}</b>: {html.escape(self.schema)}"
    return f"<p>{about}<br>{legend}</p>{_bars(self.segments())}"
