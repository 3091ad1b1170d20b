"""`python -m bench publish`: the figures of the latest runs, as docs/performance.json, .svg and the tables of .md.

It measures nothing: it takes the newest files of bench/results (or those named) and writes their medians. The words around
the tables are written by hand and stay as they are. From the committed JSON the other two can be made again, and a test
holds them against it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.figures import summary
from bench.pages import BEGIN, END, figures_page, panels
from bench.picture import draw
from bench.report import RESULTS

DOCS: Final = Path(__file__).resolve().parent.parent / "docs"
_DESCRIPTION: Final = "Processor time per tool call: this gateway beside nginx and other MCP gateways, and the aims"


class PublishError(Exception):
    """Nothing can be published, and why."""


def newest(kind: str, folder: Path = RESULTS) -> Path | None:
    """The latest results of a kind; a run of some workloads only, or a quick one, is nothing to publish."""
    return max((path for path in folder.glob(f"*-{kind}.json") if _is_whole(path)), default=None)


def _is_whole(path: Path) -> bool:
    options = json.loads(path.read_text()).get("options", {})
    return not (options.get("quick") or options.get("only") or options.get("seconds"))


def render(figures: dict[str, Any], page: str) -> tuple[str, str]:
    """The picture, and the page with its tables put in place of those it has."""
    before, begun, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not begun or not ended:
        raise PublishError(f"docs/performance.md lacks the lines {BEGIN!r} and {END!r} that the tables go between")
    return draw(panels(figures), _DESCRIPTION), f"{before}{BEGIN}\n{figures_page(figures)}{END}{after}"


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
    found = {kind: json.loads(path.read_text()) for kind, path in options.items() if path}
    figures = summary(found)
    page = DOCS / "performance.md"
    try:
        picture, text = render(figures, page.read_text())
    except PublishError as problem:
        print(f"bench: {problem}", file=sys.stderr)
        return 2
    (DOCS / "performance.json").write_text(json.dumps(figures, indent=1) + "\n")
    (DOCS / "performance.svg").write_text(picture)
    page.write_text(text)
    print("written: docs/performance.json, docs/performance.svg, the tables of docs/performance.md")
    return 0
