"""Every check of the profile in the order of their codes. The classes below are the list. Codes are never used again."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Final

from pactgate.conformance.gateway.check import Check


def _checks() -> Iterator[type[Check]]:
    for found in walk_packages(__path__, f"{__name__}."):
        for value in vars(import_module(found.name)).values():
            if isinstance(value, type) and issubclass(value, Check) and "code" in vars(value):
                yield value


CHECKS: Final[tuple[type[Check], ...]] = tuple(sorted(_checks(), key=lambda check: check.code))
BY_CODE: Final[dict[str, type[Check]]] = {check.code: check for check in CHECKS}
