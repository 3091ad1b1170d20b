"""Renders the kept results as the page of scores and its picture. Pure but for reading docs/gateways. Must not: play anything."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bench.gateways.kinds import GATEWAYS, ScoredGateway
from bench.gateways.score import RESULTS
from bench.picture import Bar, Panel, draw

_ALL: Final = "all"
_NOT_IN_ANCHORS: Final = re.compile(r"[^\w\- ]")
_TICKS: Final = tuple((float(value), f"{value} %") for value in (0, 25, 50, 75, 100))
_INTRO: Final = """\
# Scores of gateways

![The share of the checks that each gateway passes](gateways.svg)

What arrives at the other end of a gateway? [The gateway profile](gateway-profile.md) was played against gateways that install from
the package indexes, this one included. [The checks](gateway-checks.md) say for each finding why it matters. A number is the checks
that passed of those that could be asked: a gateway of one server is not asked about collisions, one of HTTP servers not about
processes. Compare families rather than sums.

Each gateway runs with the defaults of its documentation, except that it listens on 127.0.0.1, may reach servers on this machine, and has
no rate limits. The commands below are exact: `make profile ARGS="--only fastmcp"` installs the same version and runs it again. Most
findings have the level ADVICE: the specification leaves the matter open, and clients rely on it. Of each finding of a lost or changed
message one exchange was read by hand in the recording. Where the maintainers say that a behaviour is intended or known, it has the link.
A finding that is wrong or unfair is a bug of the check; please tell us.

"""


def results() -> list[tuple[ScoredGateway, dict[str, Any]]]:
    """The gateways that were scored, in their order, with what was found."""
    paths = [(gateway, RESULTS / f"{gateway.name}.json") for gateway in GATEWAYS]
    return [(gateway, json.loads(path.read_text(encoding="ascii"))) for gateway, path in paths if path.is_file()]


def scores(found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {score["label"]: score for score in found["scores"]}


def page() -> str:
    scored = results()
    families = list(dict.fromkeys(label for _, found in scored for label in scores(found)))
    families.sort(key=lambda label: label == _ALL)
    lines = [_INTRO, _row(["gateway", "version", *(label.split()[0].rstrip(",") for label in families)])]
    lines.append(_row(["---"] * (len(families) + 2)))
    for gateway, found in scored:
        cells = [_cell(scores(found).get(label)) for label in families]
        lines.append(_row([f"[{gateway.title}](#{_anchor(gateway.title)})", found["version"], *cells]))
    lines.append("\n")
    lines += [line for gateway, found in scored for line in _section(gateway, found)]
    return "".join(lines).rstrip() + "\n"


def picture() -> str:
    scored = results()
    panels = [
        Panel(title, "checks that passed, of those that could be asked", tuple(_bars(scored, label)), _TICKS)
        for title, label in (("All checks", _ALL), ("Fidelity: what arrives as it was sent", "fidelity"))
    ]
    return draw(panels, "The share of the checks of the gateway profile that each gateway passes")


def _bars(scored: list[tuple[ScoredGateway, dict[str, Any]]], label: str) -> Iterator[Bar]:
    for gateway, found in scored:
        score = scores(found)[label]
        kind = "ours" if gateway.is_ours else "reference" if gateway.name == "nginx" else "other"
        yield Bar(gateway.title, score["percent"], f"{score['passed']} of {score['asked']}", kind)


def _cell(score: Mapping[str, Any] | None) -> str:
    return f"{score['passed']} of {score['asked']}" if score is not None and score["asked"] else "-"


def _section(gateway: ScoredGateway, found: Mapping[str, Any]) -> Iterator[str]:
    registry, package = gateway.package.split(":")
    place = {"pypi": "PyPI", "npm": "npm", "system": "a package of the system", "ours": "this repository"}[registry]
    yield f"## {gateway.title}\n\n`{package}` {found['version']}, {place}; "
    yield f"{found['profile']}; {found['date']}, {found['seconds']} s.\n\n"
    exports = "".join(f"export {name}={value}\n" for name, value in gateway.setup.items() if name != "NODE_OPTIONS")
    yield f"```console\n{exports}{gateway.command}\n```\n\n" + (f"{gateway.remark}\n\n" if gateway.remark else "")
    failed = [result for result in found["results"] if result["status"] in ("fail", "error")]
    if failed:
        yield _row(["check", "level", "what came"]) + _row(["---"] * 3)
    for result in failed:
        said = result["message"].replace("`", "'")
        note = gateway.notes.get(result["id"], "")
        link = f"[{result['id']}](gateway-checks.md#{result['id'].lower()})"
        yield _row([link, result["level"].upper(), f"`{said}`" + (f"<br>{note}" if note else "")])
    unasked = [result["id"] for result in found["results"] if result["status"] == "not_applicable"]
    if unasked:
        yield f"\nNot asked: {', '.join(unasked)}.\n"
    yield "\n"


def _anchor(title: str) -> str:
    """As GitHub makes it from a heading."""
    return _NOT_IN_ANCHORS.sub("", title.lower()).replace(" ", "-")


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
