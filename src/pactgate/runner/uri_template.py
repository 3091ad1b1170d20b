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
    """What serves a URI, and the values of its variables. Resources go before templates.

    Each value is one part of the path, also when it is decoded: who puts it into the name of a file stays in the folder.
    """
    if uri in resources:
        return resources[uri], {}
    for template, offer in templates.items():
        found = _pattern(template).fullmatch(uri)
        if found is not None:
            values = {name: unquote(value) for name, value in found.groupdict().items()}
            if all(map(_is_one_part, values.values())):
                return offer, values
    return None


def _is_one_part(value: str) -> bool:
    return value not in (".", "..") and not {"/", "\0"} & set(value)


@lru_cache(maxsize=_KEPT)
def _pattern(template: str) -> re.Pattern[str]:
    parts = _VARIABLE.split(template)
    return re.compile("".join(f"(?P<{part}>[^/?#]+)" if at % 2 else re.escape(part) for at, part in enumerate(parts)))
