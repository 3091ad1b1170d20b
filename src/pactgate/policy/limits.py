"""Limits on the arguments of a call: items of an array, characters of a string, levels of nesting, bytes.

The arguments are the first level; every array or object inside another is one more; other values are none. With a limit of 10 the
eleventh level is refused. Keys count as strings. The check looks at every item of every array, in time linear in the arguments.
Must not: recurse, change anything, or repeat a value. Enforces S1/LIMIT-001, S1/LIMIT-003 and S1/LIMIT-004.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Raw, Struct

from pactgate.config.sections.limits import Limits
from pactgate.core.failures import ErrorCode, GatewayFailure, Kind
from pactgate.policy.json_paths import Step, dotted, pointer
from pactgate.protocol.json_limits import count_openings, has_long_run, has_more_values
from pactgate.protocol.messages import PARSE_ERROR
from pactgate.protocol.unread import arguments_of

MAX_ERRORS: Final = 20
_MAX_CHARACTER_BYTES: Final = 12
"""Of one character in JSON: two escapes."""


class Bounds(Struct, frozen=True, gc=False):
    """The limits for the arguments of one tool."""

    max_array: int
    max_string: int
    max_depth: int
    max_bytes: int


class BodyLimits(Struct, frozen=True, gc=False):
    """The limits of a whole message, whichever tool it calls."""

    max_values: int
    max_string: int


class LimitError(Struct, frozen=True, gc=False):
    """One limit that was exceeded. `path` and `pointer` are empty where the whole request is too large."""

    code: ErrorCode
    path: str
    pointer: str
    limit: int
    actual: int

    @property
    def message(self) -> str:
        return f"{self.path or 'the request'} has {self.actual} {_UNITS[self.code]}; at most {self.limit} are allowed"

    def facts(self) -> dict[str, Any]:
        """The error as it is shown to callers."""
        return {
            "code": self.code.value,
            "path": self.path,
            "pointer": self.pointer,
            "limit": self.limit,
            "actual": self.actual,
            "message": self.message,
        }


_UNITS: Final = {
    ErrorCode.ARRAY_TOO_LARGE: "items",
    ErrorCode.STRING_TOO_LONG: "characters",
    ErrorCode.OBJECT_TOO_DEEP: "levels",
    ErrorCode.REQUEST_TOO_LARGE: "bytes",
}

_Trail = tuple[Any, Step] | None
"""The place of a value: the trail of its holder, and the last step. A linked list, so that nothing is copied on the way down."""


def bounds_for(full_name: str, bare_name: str, settings: Limits) -> Bounds:
    """The bounds of a tool. Its own array limit replaces the general one, larger or smaller; the full name wins over the bare name."""
    own = settings.tool_array_limits
    max_array = own.get(full_name, own.get(bare_name, settings.max_array_size))
    return Bounds(max_array, settings.max_string_length, settings.max_object_depth, settings.max_request_bytes)


def too_many_bytes(limit: int, actual: int) -> LimitError:
    return LimitError(ErrorCode.REQUEST_TOO_LARGE, "", "", limit, actual)


def check_body(body: bytes, limits: BodyLimits) -> GatewayFailure | None:
    """The limit that a large message certainly breaks, found on its bytes before anything is decoded.

    None says nothing: a smaller excess is found in the decoded arguments, and `read_batch` has bounds of its own.
    """
    if body.startswith(b"["):
        return None
    if has_more_values(body, limits.max_values):
        why = f"The message has more than {limits.max_values} values"
        return _refused_unread(
            why, limits.max_values, number=PARSE_ERROR
        )  # as for too many levels: it is no message yet
    run_bytes = limits.max_string * _MAX_CHARACTER_BYTES
    if len(body) > 2 * run_bytes and has_long_run(body, run_bytes):
        arguments = arguments_of(body)
        if arguments is not None and has_long_run(arguments, run_bytes):
            why = f"A string in the arguments has more than {limits.max_string} characters"
            return _refused_unread(why, limits.max_string, code=ErrorCode.STRING_TOO_LONG)
    return None


def _refused_unread(
    why: str, limit: int, *, code: ErrorCode | None = None, number: int | None = None
) -> GatewayFailure:
    return GatewayFailure(
        Kind.LIMIT_EXCEEDED,
        f"{why}; it was refused without being read.",
        code=code,
        number=number,
        details={"limit": limit},
    )


def is_small(text: bytes | Raw, bounds: Bounds) -> bool:
    """Whether arguments of these bytes are too small for any array, string or nesting to exceed its bound (fast path)."""
    if len(text) > bounds.max_string:
        return False
    written = bytes(text)
    opened = count_openings(written, bounds.max_depth + 1)
    return opened <= bounds.max_depth and (opened <= 1 or written.count(b",") < bounds.max_array)


def check(arguments: Any, bounds: Bounds) -> tuple[LimitError, ...]:
    """The limits that decoded arguments exceed, at most `MAX_ERRORS`, in the order they are written."""
    if type(arguments) is dict and _is_within(arguments, bounds):
        return ()
    return tuple(_Search(bounds).errors_in(arguments))


def _is_within(arguments: dict[str, Any], bounds: Bounds) -> bool:
    """Decide without naming places, level by level: this runs for every call, and nearly always the answer is yes."""
    max_string = bounds.max_string
    level: list[Any] = [arguments]
    for _ in range(bounds.max_depth):
        below: list[Any] = []
        for holder in level:
            if type(holder) is dict:
                holder = (*holder, *holder.values())
            elif len(holder) > bounds.max_array:
                return False
            for value in holder:
                if type(value) is str:
                    if len(value) > max_string:
                        return False
                elif type(value) is dict or type(value) is list:
                    below.append(value)
        if not below:
            return True
        level = below
    return False


class _Search:
    """Finds the errors with their places: depth first, on an explicit stack."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._found: list[LimitError] = []

    def errors_in(self, arguments: Any) -> list[LimitError]:
        waiting: list[tuple[Any, _Trail, int]] = [(arguments, None, 1)]
        while waiting and len(self._found) < MAX_ERRORS:
            value, trail, level = waiting.pop()
            if type(value) is str:
                self._check_text(value, trail)
                continue
            if level == self._bounds.max_depth + 1:
                self._add(ErrorCode.OBJECT_TOO_DEEP, trail, self._bounds.max_depth, level - 1 + _levels_of(value))
            waiting.extend(reversed(self._parts_of(value, trail, level + 1)))
        return self._found[:MAX_ERRORS]

    def _parts_of(self, value: Any, trail: _Trail, level: int) -> list[tuple[Any, _Trail, int]]:
        """The values inside that must be checked. A key that is too long is reported at the place of its value."""
        if type(value) is dict:
            for key in value:
                self._check_text(key, (trail, key))
            steps: Iterable[tuple[Step, Any]] = value.items()
        elif type(value) is list:
            if len(value) > self._bounds.max_array:
                self._add(ErrorCode.ARRAY_TOO_LARGE, trail, self._bounds.max_array, len(value))
            steps = enumerate(value)
        else:
            return []
        return [(part, (trail, step), level) for step, part in steps if type(part) in _LOOKED_AT]

    def _check_text(self, text: str, trail: _Trail) -> None:
        if len(text) > self._bounds.max_string:
            self._add(ErrorCode.STRING_TOO_LONG, trail, self._bounds.max_string, len(text))

    def _add(self, code: ErrorCode, trail: _Trail, limit: int, actual: int) -> None:
        if len(self._found) >= MAX_ERRORS:
            return
        steps: list[Step] = []
        while trail is not None:
            trail, step = trail
            steps.append(step)
        steps.reverse()
        self._found.append(LimitError(code, dotted(steps), pointer(steps), limit, actual))


_LOOKED_AT: Final = (str, dict, list)


def _levels_of(value: Any) -> int:
    """How many levels of arrays and objects a value has, itself included."""
    levels, level = 0, [value]
    while level:
        levels += 1
        level = [
            part
            for holder in level
            for part in (holder.values() if type(holder) is dict else holder)
            if type(part) is dict or type(part) is list
        ]
    return levels
