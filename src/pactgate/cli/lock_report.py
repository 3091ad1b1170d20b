"""What `pactgate lock` says of differences: lines for people, JSON, and SARIF 2.1.0 for code scanning."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from pactgate import __version__
from pactgate.catalog.definition_diff import DefinitionChange
from pactgate.catalog.definition_pins import LockFinding
from pactgate.cli import terminal
from pactgate.core.display import flat, visible

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_STYLES: Final = {"changed": "red", "unknown": "red", "removed": "yellow", "unreachable": "yellow"}
_RULES: Final = {
    "changed": "A definition is not the one that was approved.",
    "unknown": "A definition was never approved.",
    "removed": "An approved definition is not offered any more.",
    "unreachable": "A server could not be asked.",
}
_INDENT: Final = 13
_MEMBER_CHARS: Final = 100
_HELP: Final = "`pactgate lock diff` shows how it differs, `pactgate lock accept` approves it, `pactgate lock` pins everything anew."


class DefinitionDifference(NamedTuple):
    """A difference from the lock file, with what to know about it."""

    finding: LockFinding
    changes: Sequence[DefinitionChange] = ()

    def as_dict(self) -> dict[str, Any]:
        changes = [
            {"member": visible(one.member), "text": one.text, "isAlarming": one.is_alarming} for one in self.changes
        ]
        return {**self.finding._asdict(), "changes": changes}


def show_differences(found: Sequence[DefinitionDifference]) -> None:
    for one in found:
        finding = one.finding
        what = f"another {finding.name}" if finding.entries == "server" and finding.name else finding.entries
        terminal.item(finding.change, _STYLES[finding.change], f"{finding.full_name} ({what})")
        for change in one.changes:
            style, member = "red" if change.is_alarming else "dim", flat(change.member, _MEMBER_CHARS)
            used = _INDENT + len(member) + 2
            text = terminal.wrapped(visible(change.text), sys.stdout, used=used, indent=_INDENT + 2)
            print(f"{' ' * _INDENT}{terminal.paint(member, style, sys.stdout)}: {text}")


def as_json(found: Sequence[DefinitionDifference], unreachable: dict[str, str], file: Path) -> dict[str, Any]:
    is_ok = not found and not unreachable
    return {"ok": is_ok, "file": str(file), "findings": [one.as_dict() for one in found], "unreachable": unreachable}


def as_sarif(found: Sequence[DefinitionDifference], unreachable: dict[str, str], file: Path) -> dict[str, Any]:
    """Each difference is a result at the lock file: the server has no line in the repository."""
    uri, rules = quote(file.name), list(_RULES)
    results = [_result(one.finding.change, one.finding.full_name, str(one.finding), uri) for one in found]
    results += [
        _result("unreachable", id_, f"{id_} could not be asked: {why}", uri) for id_, why in unreachable.items()
    ]
    driver = {
        "name": "pactgate",
        "version": __version__,
        "rules": [_rule(rule) for rule in rules],
    }
    run = {"tool": {"driver": driver}, "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(change: str) -> dict[str, Any]:
    text = {"text": _RULES[change]}
    return {"id": f"lock-{change}", "shortDescription": text, "fullDescription": text, "help": {"text": _HELP}}


def _result(change: str, name: str, message: str, uri: str) -> dict[str, Any]:
    return {
        "ruleId": f"lock-{change}",
        "ruleIndex": list(_RULES).index(change),
        "level": "warning" if change in ("removed", "unreachable") else "error",
        "message": {"text": visible(message)},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}},
                "logicalLocations": [{"fullyQualifiedName": visible(name)}],
            }
        ],
        "partialFingerprints": {"pactgate/v1": sha256(f"{change}\n{name}".encode()).hexdigest()},
    }
