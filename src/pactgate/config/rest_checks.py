"""What single values of a REST endpoint must be: base URLs, path templates, media types, hosts that may be called.

Each check takes one text and returns a `ValueFault` or None. Pure. Must not: resolve anything. Enforces S4/F4 for REST servers and
the static half of T10: a template can't leave its base URL by itself.
"""

from __future__ import annotations

import re
from typing import Final

from pactgate.config.problems import ValueFault, show
from pactgate.config.value_checks import check_url

PLACEHOLDER: Final = re.compile(r"\{([^{}/]{1,200})\}")
_LITERAL: Final = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*")
_HIDDEN_BREAK: Final = re.compile(r"%(?:2f|5c|00|0a|0d)", re.IGNORECASE)
_DOTS: Final = re.compile(r"(?:\.|%2e){1,2}", re.IGNORECASE)
_MEDIA_TYPE: Final = re.compile(
    r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+*-]+(?:\s*;\s*[A-Za-z0-9_.-]+=[\x21-\x7e ]+)?"
)
_HOST: Final = re.compile(r"(?:[A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]+\]?)")


def check_base_url(text: str) -> ValueFault | None:
    """A URL under which paths are called: no query, no dot segments."""
    fault = check_url(text)
    if fault is not None:
        return fault
    if "?" in text:
        return ValueFault("A base URL has no query.", "Write query parameters under parameters.")
    path = text.partition("://")[2].partition("/")[2]
    if not _LITERAL.fullmatch(path):
        return ValueFault("A base URL is written out: it has no placeholders.", "Write the path it leads to.")
    return _check_segments(path)


def check_path_template(text: str) -> ValueFault | None:
    """A path with `{placeholders}`, which can't lead anywhere but below its base."""
    if not text.startswith("/"):
        return ValueFault(f"{show(text)} is not a path.", "Begin it with a slash.")
    if text.startswith("//"):
        return ValueFault("A path that begins with two slashes names a host.", "Begin it with one.")
    literal = PLACEHOLDER.sub("x", text)
    if not _LITERAL.fullmatch(literal):
        return ValueFault(
            f"{show(text)} has characters that can't stand in a path.",
            "Percent-encode them; queries belong under parameters, and {name} has no braces inside.",
        )
    names = PLACEHOLDER.findall(text)
    if len(names) != len(set(names)):
        return ValueFault("One placeholder stands twice in this path.", "Give each a name of its own.")
    return _check_segments(literal)


def check_media_type(text: str) -> ValueFault | None:
    if not _MEDIA_TYPE.fullmatch(text):
        return ValueFault(f"{show(text)} is not a media type.", "Write it as application/json.")
    return None


def check_egress_host(text: str) -> ValueFault | None:
    if not _HOST.fullmatch(text):
        return ValueFault(f"{show(text)} is not a host.", "Write a name or an address, without scheme and port.")
    return None


def _check_segments(path: str) -> ValueFault | None:
    if any(_DOTS.fullmatch(segment) for segment in path.split("/")) or _HIDDEN_BREAK.search(path):
        return ValueFault("A path here has no dot segments and no encoded slashes.", "Write the path it leads to.")
    return None
