"""For people who write tools under the contract: `from pactgate import tool`, a function, a file.

`@tool` says what a function promises (category, idempotency, effects, error codes) and leaves the function what it is. What it does not say
is taken for the worst: a tool that changes things, can't be repeated, and may have any effect. A declaration that contradicts itself is
refused with everything that is wrong with it: at once where the file is imported, and with the problems of the whole file where a runner
loads it. `@resource` and `@prompt` serve functions that only read. Must not: import the gateway, or anything that takes time. Enforces the
declarations of S2/MCP-002, S2/MCP-003 and S2/MCP-004.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextvars import ContextVar
from difflib import get_close_matches
from typing import Any, Final, Literal, TypeVar, overload

from msgspec import UNSET, Struct, UnsetType

from pactgate.core.contract import (
    CATEGORIES,
    CODE_PATTERN,
    MAX_CODES,
    READ_ONLY_CATEGORIES,
    Contract,
    DeclaredCode,
    Effect,
)
from pactgate.core.failures import RETRYABLE_ERRORS, ErrorCode

MAX_NAME_CHARS: Final = 64
MAX_DESCRIPTION_CHARS: Final = 1024
MARK: Final = "__pactgate_tool__"
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_CODE: Final = re.compile(CODE_PATTERN)
_STANDARD: Final = frozenset(code.value for code in ErrorCode)
_CHANGES: Final = frozenset({Effect.WRITE, Effect.STATE})
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_READS: Final = Contract("query", True, (Effect.READ, Effect.NETWORK))
"""What a resource or a prompt may do."""

F = TypeVar("F", bound=Callable[..., Any])


class ToolError(Exception):
    """Raise it to fail with a code: one of the standard ones, or one the tool declares in `errors`."""

    def __init__(self, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = str(code)
        self.message = message
        self.details = dict(details or {})


class Retryable(str):
    """In `errors`, the description of an error after which the same call may be made again."""

    __slots__ = ()


Kind = Literal["tool", "resource", "prompt"]


class Declaration(Struct, frozen=True):
    """A function and what was said of it. `contract` is None where `problems` says why; `uri` and `mime_type` are of a resource."""

    function: Callable[..., Any]
    name: str
    title: str | None
    description: str | None
    contract: Contract | None
    problems: tuple[str, ...]
    file: str
    line: int
    kind: Kind = "tool"
    uri: str = ""
    mime_type: str | None = None


class DeclarationError(TypeError):
    """A tool says too little of itself, or contradicts itself."""


collected: Final[ContextVar[list[Declaration] | None]] = ContextVar("collected", default=None)
"""Where a runner gathers what a file declares; None where the file is imported by anybody else."""


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    category: str = ...,
    idempotent: bool = ...,
    effects: Iterable[str] = ...,
    errors: Mapping[str, str] | None = None,
    cache_ttl_ms: int | None = None,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
) -> Callable[[F], F]: ...
def tool(
    function: F | None = None,
    /,
    *,
    category: str | UnsetType = UNSET,
    idempotent: bool | UnsetType = UNSET,
    effects: Iterable[str] | UnsetType = UNSET,
    errors: Mapping[str, str] | None = None,
    cache_ttl_ms: int | None = None,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
) -> F | Callable[[F], F]:
    """Serve a function as a tool under the contract.

    category: `query` and `scan` only look, `mutation` changes something, `execution` runs something. Default: mutation.
    idempotent: whether calling it again with the same arguments leaves things as they were after the first call. Default: no.
    effects: all it does beside answering: `filesystem.read`, `filesystem.write`, `network`, `process`, `state`; an empty list for nothing.
    Default: anything its category allows; `pactgate check FILE` proposes a declaration from what calls were seen to do.
    errors: the codes it fails with beside the standard ones, each with a description; `Retryable("...")` where a retry may help.
    cache_ttl_ms: how long a result may be given again to the same caller for the same arguments.
    name, title, description: instead of the function's name, none, and the first part of its docstring.
    """

    def declare(wrapped: F) -> F:
        words = _Words(category, idempotent, effects, errors, cache_ttl_ms)
        found = words.problems()
        contract = None if found else words.contract()
        return _declared(wrapped, "tool", name, title, description, contract, found)

    return declare if function is None else declare(function)


def resource(
    uri: str,
    /,
    *,
    mime_type: str | None = None,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
) -> Callable[[F], F]:
    """Serve what a function returns as a resource: text, bytes, an Image, or a value that becomes JSON.

    uri: its address, as `notes://all`. `{word}` in it makes it a template, and is the parameter of this name.
    """

    def declare(wrapped: F) -> F:
        found = [] if _URI.fullmatch(uri) else [f"{uri!r} is no URI: write it as notes://all or notes://{{number}}."]
        return _declared(wrapped, "resource", name, title, description, _READS, found, uri=uri, mime_type=mime_type)

    return declare


@overload
def prompt(function: F, /) -> F: ...
@overload
def prompt(
    *, name: str | None = None, title: str | None = None, description: str | None = None
) -> Callable[[F], F]: ...
def prompt(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
) -> F | Callable[[F], F]:
    """Serve a function as a prompt. It returns the text of the user's message, or a list of `Message`."""

    def declare(wrapped: F) -> F:
        return _declared(wrapped, "prompt", name, title, description, _READS, [])

    return declare if function is None else declare(function)


def _declared(
    wrapped: F,
    kind: Kind,
    name: str | None,
    title: str | None,
    description: str | None,
    contract: Contract | None,
    found: list[str],
    *,
    uri: str = "",
    mime_type: str | None = None,
) -> F:
    """Note the declaration for the runner that loads the file; raise its problems where nobody does."""
    code = inspect.unwrap(wrapped).__code__
    called = name if name is not None else wrapped.__name__
    about = description if description is not None else summary(wrapped)
    declared = Declaration(
        function=wrapped,
        name=called,
        title=title,
        description=about,
        contract=contract,
        problems=(*_text_problems(called, about), *found),
        file=code.co_filename,
        line=code.co_firstlineno,
        kind=kind,
        uri=uri,
        mime_type=mime_type,
    )
    gathering = collected.get()
    if gathering is not None:
        gathering.append(declared)
    elif declared.problems:
        where = f"{declared.file}:{declared.line}"
        raise DeclarationError(f"{where}: the {kind} {called!r} can't be served: {' '.join(declared.problems)}")
    setattr(wrapped, MARK, declared)
    return wrapped


def summary(function: Callable[..., Any]) -> str:
    """The docstring up to where it describes parameters."""
    text = inspect.getdoc(function) or ""
    return re.split(r"^\s*(?:Args|Arguments|Parameters|Returns|Raises):\s*$|^\s*:\w+", text, maxsplit=1, flags=re.M)[
        0
    ].strip()


class _Words:
    """What was given to `@tool`, whatever it was."""

    def __init__(self, category: Any, idempotent: Any, effects: Any, errors: Any, cache_ttl_ms: Any) -> None:
        given = {"category": category, "idempotent": idempotent, "effects": effects}
        self._assumed: Any = tuple(word for word, value in given.items() if value is UNSET)
        self._category: Any = "mutation" if category is UNSET else category
        self._idempotent = False if idempotent is UNSET else idempotent
        if effects is UNSET:
            effects = [one for one in Effect if one not in _CHANGES or self._category not in READ_ONLY_CATEGORIES]
        is_list = isinstance(effects, Collection) and not isinstance(effects, str)
        self._effects = tuple(map(str, effects)) if is_list else effects
        self._errors = {} if errors is None else errors
        self._cache_ttl_ms = cache_ttl_ms

    def contract(self) -> Contract:
        return Contract(
            self._category,
            self._idempotent,
            tuple(Effect(word) for word in dict.fromkeys(self._effects)),
            tuple(
                DeclaredCode(code, str(text), isinstance(text, Retryable) or code in RETRYABLE_ERRORS)
                for code, text in self._errors.items()
            ),
            UNSET if self._cache_ttl_ms is None else self._cache_ttl_ms,
            assumed=self._assumed,
        )

    def problems(self) -> list[str]:
        found = [*self._word_problems(), *self._effect_problems(), *self._error_problems()]
        return found + ([] if found else [*self._contradictions()])

    def _word_problems(self) -> Iterable[str]:
        if self._category not in CATEGORIES:
            yield f"{self._category!r} is no category: {', '.join(CATEGORIES)}."
        if not isinstance(self._idempotent, bool):
            yield "idempotent is True or False."
        ttl = self._cache_ttl_ms
        if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, int) or ttl < 1):
            yield "cache_ttl_ms is a whole number of milliseconds, at least 1."

    def _effect_problems(self) -> Iterable[str]:
        known = [effect.value for effect in Effect]
        if not isinstance(self._effects, tuple):
            yield f"effects is a list of {', '.join(known)}."
        else:
            for word in self._effects:
                if word not in known:
                    close = get_close_matches(word, known, n=1)
                    yield f"{word!r} is no effect; " + (
                        f"did you mean {close[0]!r}?" if close else f"there are {known}."
                    )

    def _error_problems(self) -> Iterable[str]:
        if not isinstance(self._errors, Mapping):
            yield 'errors is a mapping such as {"NO_SUCH_NOTE": "There is no note with this id."}.'
            return
        if len(self._errors) > MAX_CODES:
            yield f"It declares more than {MAX_CODES} error codes."
        for code, text in self._errors.items():
            yield from _code_problems(code, text, may_retry=self._idempotent is not False)

    def _contradictions(self) -> Iterable[str]:
        is_reader = self._category in READ_ONLY_CATEGORIES
        changes = [word for word in self._effects if word in _CHANGES]
        if is_reader and changes:
            yield f"A {self._category} changes nothing, but it declares {', '.join(changes)}: it is a mutation or an execution."
        if self._cache_ttl_ms is not None and not self._idempotent:
            yield "It is not idempotent, so an answer can't stand for the next one: remove cache_ttl_ms."


def _code_problems(code: Any, text: Any, *, may_retry: bool) -> Iterable[str]:
    if not isinstance(code, str) or not _CODE.fullmatch(code):
        yield f"{code!r} can't be an error code: use capitals, digits and _, a letter first, 64 at most."
        return
    if not isinstance(text, str) or not text.strip():
        yield f"The error code {code} needs a description."
    is_retryable = isinstance(text, Retryable) or code in RETRYABLE_ERRORS
    if code in _STANDARD and is_retryable is not (code in RETRYABLE_ERRORS):
        yield f"{code} is a standard code and not retryable."
    elif is_retryable and not may_retry:
        yield f"It is not idempotent, so no error of it may be retried: {code} can't be Retryable."


def _text_problems(name: str, description: str) -> Iterable[str]:
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME_CHARS:
        yield f"{name!r} can't be its name: use a-z, digits and _, a letter first, {MAX_NAME_CHARS} at most."
    if not description.strip():
        yield "It needs a description: write a docstring that says what it does."
    elif len(description) > MAX_DESCRIPTION_CHARS:
        yield f"Its description has {len(description)} characters; {MAX_DESCRIPTION_CHARS} are allowed."
