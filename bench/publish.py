"""`python -m bench publish`: writes the figures of the latest runs into docs/performance.json, .svg, .md and the README.

It measures nothing: it takes the newest files of bench/results (or the named ones) and writes their medians. It replaces only
the text between its marks. The committed JSON is enough to make the other files again, and a test compares them with it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.figures import summary
from bench.pages import BEGIN, END, README_BEGIN, README_END, figures_page, headline, panels
from bench.picture import draw
from bench.report import RESULTS

ROOT: Final = Path(__file__).resolve().parent.parent
DOCS: Final = ROOT / "docs"
README: Final = ROOT / "README.md"
_DESCRIPTION: Final = "CPU time per tool call: this gateway beside nginx and other MCP gateways, and the goals"


class PublishError(Exception):
    """Nothing can be published; the message has the reason."""


def newest(kind: str, folder: Path = RESULTS) -> Path | None:
    """The latest results of a kind. A run of some workloads only, or a short one, is not published."""
    return max((path for path in folder.glob(f"*-{kind}.json") if _is_whole(path)), default=None)


def _is_whole(path: Path) -> bool:
    options = json.loads(path.read_text()).get("options", {})
    return not (options.get("quick") or options.get("only") or options.get("seconds"))


def render_picture(figures: dict[str, Any]) -> str:
    return draw(panels(figures), _DESCRIPTION)


def render_page(figures: dict[str, Any], page: str) -> str:
    """docs/performance.md with the tables of these figures."""
    return _between(page, BEGIN, END, figures_page(figures))


def render_readme(figures: dict[str, Any], page: str) -> str:
    """The README with the main figures."""
    return _between(page, README_BEGIN, README_END, headline(figures))


def _between(page: str, begin: str, end: str, text: str) -> str:
    before, begun, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise PublishError(f"the page lacks the lines {begin!r} and {end!r} that the figures go between")
    return f"{before}{begin}\n{text}\n{end}{after}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench publish", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for kind in ("run", "peers", "soak"):
        parser.add_argument(
            f"--{kind}", type=Path, default=newest(kind), help="a file of results (default: the newest)"
        )
    options = vars(parser.parse_args(arguments))
    if options["run"] is None:
        print("bench: no results of `make bench` yet", file=sys.stderr)
        return 2
    figures = summary({kind: json.loads(path.read_text()) for kind, path in options.items() if path})
    try:
        write(figures)
    except PublishError as problem:
        print(f"bench: {problem}", file=sys.stderr)
        return 2
    print("written: docs/performance.json, docs/performance.svg, the figures of docs/performance.md and README.md")
    return 0


def write(figures: dict[str, Any]) -> None:
    """Write the figures to all four files; to none of them when a page lacks its marks."""
    page = DOCS / "performance.md"
    text, readme = render_page(figures, page.read_text()), render_readme(figures, README.read_text())
    (DOCS / "performance.json").write_text(json.dumps(figures, indent=1) + "\n")
    (DOCS / "performance.svg").write_text(render_picture(figures))
    page.write_text(text)
    README.write_text(readme)
