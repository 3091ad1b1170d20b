"""Every rule, one per file, in the order of their codes. The files of the packages below are the list.

INV-001 to INV-007, COMP-001 and COMP-002 are the documented ones and decide by default; GW-001 to GW-040 follow the core
invariants of the specification number by number, GW-041 and on are what a gateway or a server can be caught at, GW-101 and on are
about servers side by side, LINT-001 and on are advice on definitions. Codes are never used again.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Final

from pactgate.conformance.rule import Rule

_FAMILIES: Final = ("INV", "COMP", "GW", "LINT")


def _rules() -> Iterator[type[Rule]]:
    for found in walk_packages(__path__, f"{__name__}."):
        for value in vars(import_module(found.name)).values():
            if isinstance(value, type) and issubclass(value, Rule) and value.__module__ == found.name:
                yield value


def _place(rule: type[Rule]) -> tuple[int, str]:
    return _FAMILIES.index(rule.code.partition("-")[0]), rule.code


ALL: Final[tuple[type[Rule], ...]] = tuple(sorted(_rules(), key=_place))
