"""How long a string may be before one of a schema's regular expressions is matched against it.

A pattern without look-around and back references takes time linear in the string, at most about `size / 16` nanoseconds per byte, where
`size` is the memory of the compiled pattern. The engine itself tells the size: it refuses to compile a pattern beyond a size limit.
Other patterns backtrack; the engine bounds the number of steps back, and the string must be short.
Must not: match anything. Serves S0/ECO-300.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from jsonschema_rs import Draft202012Validator, FancyRegexOptions, RegexOptions, ValidationError
from msgspec import Struct

from pactgate.core.display import flat

MAX_PATTERN_CHARS: Final = 4000
MAX_SIZE: Final = 2**20
ENGINE: Final = FancyRegexOptions(backtrack_limit=256, size_limit=MAX_SIZE, dfa_size_limit=MAX_SIZE)

_SIZES: Final = (2**10, 2**12, 2**14, 2**16, 2**18, MAX_SIZE)
_SIZE_TIMES_BYTES: Final = 2**29
"""The slowest patterns need 30 milliseconds for a string of so many bytes."""
_MIN_BYTES: Final = 1024
_BACKTRACKING_BYTES: Final = 256
_BACKTRACKING_SIZE: Final = 2**16
_LEADING_LOOK_AHEAD: Final = re.compile(r"\^(?:\(\?[=!][^()]*\))+(?!.*(?:\(\?<?[=!]|\\[1-9k]))", re.DOTALL)
"""`^(?!\\s*$).+`: each look-ahead is tried once, at the start, so the time stays linear."""


class UnsupportedSchemaError(Exception):
    """A schema that the gateway can't use. `reason` continues a sentence about the schema."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Pattern(Struct, frozen=True, gc=False):
    """The memory a compiled pattern needs, and the longest string it may be matched against."""

    size: int
    max_bytes: int


@lru_cache(maxsize=1024)
def measure_pattern(pattern: str) -> Pattern:
    """Raises UnsupportedSchemaError for a pattern that is too long, too large or not a regular expression."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise UnsupportedSchemaError(f"it has a pattern of more than {MAX_PATTERN_CHARS} characters")
    is_linear = _LEADING_LOOK_AHEAD.match(pattern) is not None
    for size in _SIZES:
        if _compiles(pattern, RegexOptions(size_limit=size, dfa_size_limit=MAX_SIZE)) or (
            is_linear and _compiles(pattern, FancyRegexOptions(size_limit=size, dfa_size_limit=MAX_SIZE))
        ):
            return Pattern(size=size, max_bytes=max(_MIN_BYTES, _SIZE_TIMES_BYTES // size))
    if _compiles(pattern, FancyRegexOptions(size_limit=_BACKTRACKING_SIZE, dfa_size_limit=MAX_SIZE)):
        return Pattern(size=_BACKTRACKING_SIZE, max_bytes=_BACKTRACKING_BYTES)
    raise UnsupportedSchemaError(f"its pattern {flat(pattern, 100)} is too large or is not a regular expression")


def _compiles(pattern: str, options: RegexOptions | FancyRegexOptions) -> bool:
    try:
        Draft202012Validator({"pattern": pattern}, pattern_options=options)
    except ValidationError:
        return False
    return True
