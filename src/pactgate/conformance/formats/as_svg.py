"""The scores of a report as one picture: a bar for each family. Self-contained, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape

from pactgate.conformance.report import ComplianceReport, Score
from pactgate.core.display import flat

_WIDTH: Final = 640
_ROW: Final = 26
_LEFT: Final = 240
_BAR: Final = 300


def as_svg(report: ComplianceReport) -> str:
    height = _ROW * (len(report.scores) + 2)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
            ' font-family="system-ui, sans-serif" font-size="13" role="img">',
            f"<title>{escape(flat(report.source, 100))}</title>",
            f'<rect width="{_WIDTH}" height="{height}" rx="6" fill="#ffffff"/>',
            f'<text x="12" y="{_ROW - 6}" font-weight="600" fill="#1f2328">{escape(flat(report.source, 80))}</text>',
            *(line for row, score in enumerate(report.scores, 1) for line in _row(row, score)),
            "</svg>",
            "",
        ]
    )


def _row(row: int, score: Score) -> Iterator[str]:
    top = _ROW * row + 4
    said = f"{score.passed} of {score.asked}"
    yield f'<text x="12" y="{top + 14}" fill="#1f2328">{escape(score.label)}</text>'
    yield f'<rect x="{_LEFT}" y="{top + 2}" width="{_BAR}" height="16" rx="3" fill="#e6e9ed"/>'
    yield f'<rect x="{_LEFT}" y="{top + 2}" width="{_BAR * score.percent / 100:g}" height="16" rx="3" fill="#2563a8"/>'
    yield f'<text x="{_LEFT + _BAR + 10}" y="{top + 14}" fill="#1f2328">{said}</text>'
