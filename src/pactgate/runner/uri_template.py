"""Finds the resource or template that a URI means. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeVar
from urllib.parse import unquote

_VARIABLE: Final = re.compile(r"\{(\w+)\}")
_KEPT: Final = 1000

Offer = TypeVar("Offer")


def find_by_uri(
    uri: str, resources: Mapping[str, Offer], templates: Mapping[str, Offer]
) -> tuple[Offer, dict[str, str]] | None:
    """What serves a URI, and the values of its variables: each is one part of the path. Resources go before templates."""
    if uri in resources:
        return resources[uri], {}
    for template, offer in templates.items():
        found = _pattern(template).fullmatch(uri)
        if found is not None:
            return offer, {name: unquote(value) for name, value in found.groupdict().items()}
    return None


@lru_cache(maxsize=_KEPT)
def _pattern(template: str) -> re.Pattern[str]:
    parts = _VARIABLE.split(template)
    return re.compile("".join(f"(?P<{part}>[^/?#]+)" if at % 2 else re.escape(part) for at, part in enumerate(parts)))
