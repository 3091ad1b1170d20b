"""Draws bar charts as SVG text, for light and dark pages. Pure.

The picture loads nothing and runs no script. It has its own background, because a page can be dark while the system is light.
Colours repeat information that the labels give too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Final

from msgspec import Struct

_WIDTH: Final = 900
_MARGIN: Final = 24
_BARS_LEFT: Final = 350
_BARS_WIDTH: Final = 330
_VALUES_LEFT: Final = _BARS_LEFT + _BARS_WIDTH + 16
_ROW: Final = 26
_BAR: Final = 16
_HEAD: Final = 64
_FOOT: Final = 34
_STYLE: Final = """
  .card { fill: #ffffff } .word { fill: #1f2937 } .faint { fill: #5b6472 } .grid { stroke: #d5dae1 } .mark { stroke: #1f2937 }
  .ours { fill: #2563eb } .other { fill: #c98a3e } .reference { fill: #8b95a5 }
  .good { fill: #15803d } .bad { fill: #b45309 }
  text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif }
  .title { font-size: 16px; font-weight: 600 } .strong { font-weight: 600 } .small { font-size: 12px }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0f1620 } .word { fill: #e6eaf0 } .faint { fill: #9aa5b4 } .grid { stroke: #2c3746 } .mark { stroke: #e6eaf0 }
    .ours { fill: #60a5fa } .other { fill: #d9a05b } .reference { fill: #6c7889 }
    .good { fill: #4ade80 } .bad { fill: #f0a04b }
  }
"""


class Bar(Struct, frozen=True):
    """One row. `kind` is `ours`, `other`, `reference`, `good` or `bad`."""

    label: str
    value: float
    text: str
    kind: str


class Panel(Struct, frozen=True):
    """Bars on one scale. A tick is a value with its label; on a logarithmic scale bars begin at the first tick."""

    title: str
    subtitle: str
    bars: tuple[Bar, ...]
    ticks: tuple[tuple[float, str], ...]
    is_log: bool = False
    mark: float | None = None

    @property
    def height(self) -> int:
        return _HEAD + len(self.bars) * _ROW + _FOOT


def draw(panels: Sequence[Panel], description: str) -> str:
    height = sum(panel.height for panel in panels) + _MARGIN
    parts, top = [], _MARGIN // 2
    for panel in panels:
        parts.append(_panel(panel, top))
        top += panel.height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(description)}">\n'
        f"<title>{escape(description)}</title>\n<style>{_STYLE}</style>\n"
        f'<rect class="card" width="{_WIDTH}" height="{height}" rx="10"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _panel(panel: Panel, top: int) -> str:
    first, last = top + _HEAD, top + _HEAD + len(panel.bars) * _ROW
    lines = [
        _text(_MARGIN, top + 24, panel.title, "word title"),
        _text(_MARGIN, top + 44, panel.subtitle, "faint small"),
    ]
    for value, word in panel.ticks:
        x = _x(panel, value)
        lines.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{first - 4}" y2="{last}"/>')
        lines.append(_text(x, last + 16, word, "faint small", anchor="middle"))
    for number, bar in enumerate(panel.bars):
        lines.append(_bar(panel, bar, first + number * _ROW))
    if panel.mark is not None:
        x = _x(panel, panel.mark)
        lines.append(f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{first - 6}" y2="{last}" stroke-width="1.5"/>')
    return "\n".join(lines)


def _bar(panel: Panel, bar: Bar, y: int) -> str:
    length = max(2.0, _x(panel, bar.value) - _BARS_LEFT)
    strong = " strong" if bar.kind == "ours" else ""
    baseline = y + _BAR - 3
    return "\n".join(
        (
            _text(_BARS_LEFT - 10, baseline, bar.label, f"word{strong}", anchor="end"),
            f'<rect class="{bar.kind}" x="{_BARS_LEFT}" y="{y}" width="{length:.1f}" height="{_BAR}" rx="2"/>',
            _text(_VALUES_LEFT, baseline, bar.text, f"word small{strong}"),
        )
    )


def _x(panel: Panel, value: float) -> float:
    low, high = panel.ticks[0][0], panel.ticks[-1][0]
    is_log = panel.is_log
    share = math.log(max(value, low) / low) / math.log(high / low) if is_log else (value - low) / (high - low)
    return _BARS_LEFT + min(max(share, 0.0), 1.0) * _BARS_WIDTH


def _text(x: float, y: float, words: str, classes: str, anchor: str = "start") -> str:
    return f'<text class="{classes}" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'
