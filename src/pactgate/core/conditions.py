"""Conditions of permission rules, in CEL (Common Expression Language): the values they name, and whether they hold.

A condition sees only the members of `arguments`, `caller` and `tool` that it names, each of them as one variable, so nothing else of a
call is converted. A member that is absent or null makes a condition false that needs it, except in `has(...)`; a type error raises, and
so does a name that a server which ignores case would read as a named one. CEL has no loops without bounds and no side effects. The engine
is imported with the first condition. Must not: decide anything.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property, lru_cache
from itertools import accumulate, product
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from pactgate.core.contract import CATEGORIES
from pactgate.core.principal import PrincipalKind

Path = tuple[str, ...]

CALLER: Final[Mapping[str, Any]] = {
    "subject": "x",
    "issuer": "x",
    "client": "x",
    "kind": "x",
    "groups": ["x"],
    "scopes": ["x"],
    "roles": ["x"],
}
TOOL: Final[Mapping[str, Any]] = {"name": "x", "server": "x", "category": "x", "readOnly": True}
MEMBERS: Final[Mapping[str, Mapping[str, Any]]] = {"caller": CALLER, "tool": TOOL}
"""What a condition can name beside `arguments`, each with a value of its type."""
_WORDS: Final[Mapping[Path, tuple[str, ...]]] = {
    ("caller", "kind"): tuple(kind.value for kind in PrincipalKind),
    ("tool", "category"): CATEGORIES,
}
"""Members that have one of few values."""
MAX_VALUE_BYTES: Final = 16_384
"""A longer value of one argument is not compared: it would cost the calls of others too much time."""

_MAX_HARMLESS: Final = 256
"""Names of other arguments that are remembered, so that only a new one is looked at."""
_ARGUMENTS: Final = "arguments"
_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*)|(?P<text>[rRbB]{0,2}(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"))"""
    r"|(?P<name>[A-Za-z_]\w*)|(?P<number>\d[\w.]*)|(?P<sign>&&|\|\||[=!<>]=|.)",
    re.DOTALL | re.ASCII,
)
_MACROS: Final = frozenset({"all", "exists", "exists_one", "map", "filter"})
_FUNCTIONS: Final = _MACROS | {
    *("size", "contains", "startsWith", "endsWith", "matches", "has"),
    *("type", "int", "uint", "double", "string", "bytes", "bool", "dyn", "duration", "timestamp"),
    *("getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear"),
    *("getHours", "getMilliseconds", "getMinutes", "getMonth", "getSeconds"),
}
_TYPES: Final = frozenset({"int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"})
_SAMPLES: Final = (1, 1.5, "1", True, [1], ["1"], {"1": 1})
_LITERAL: Final = r"""(?:'[^']*'|"[^"]*"|\d[\d.]*|true|false)"""
_MAX_SAMPLED: Final = 2


class ConditionError(Exception):
    """The condition can't be used, or can't be decided for these values."""


class ConditionToken(NamedTuple):
    kind: str
    text: str


class Condition:
    """One compiled condition. `paths` are the members of `arguments` that it names, `facts` those of `caller` and `tool`."""

    def __init__(self, source: str) -> None:
        """Raises ConditionError."""
        self.source = source
        self._names: dict[Path, str] = {}
        self._presence: dict[Path, str] = {}
        self._values: dict[str, Any] = {}
        self._tokens = [*_tokens(source)]
        rewritten = self._rewrite(self._tokens)
        engine = _engine()
        try:
            self._program = engine.compile(rewritten)
        except ValueError:
            raise ConditionError("this is no CEL expression") from None
        self._context = engine.Context()
        self._context.set_variable_resolver(self._values.get)
        named = (*self._names, *self._presence)
        self.paths = tuple(dict.fromkeys(path[1:] for path in named if path[0] == _ARGUMENTS))
        self.facts = tuple(path for path in self._names if path[0] != _ARGUMENTS)
        self._check_functions()
        self._check_types(rewritten)

    def holds(self, values: Mapping[Path, Any]) -> bool:
        """Whether it is true of these values, by their paths (`("arguments", "amount")`). Raises ConditionError for a type error."""
        self._values.clear()
        for path, name in self._names.items():
            if path in values:
                self._values[name] = values[path]
        for path, name in self._presence.items():
            self._values[name] = values.get(path) is not None
        try:
            found = self._program.execute(self._context)
        except (TypeError, ValueError, ArithmeticError, LookupError, RuntimeError) as problem:
            if any(values.get(path) is None for path in self._names):
                return self._holds_by_operands(values)
            raise ConditionError(_first_sentence(problem)) from None
        if not isinstance(found, bool):
            raise ConditionError("it is neither true nor false")
        return found

    def _holds_by_operands(self, values: Mapping[Path, Any]) -> bool:
        """What is absent makes its own operand of `||` or `&&` false, and hides no type error of another one."""
        is_any, operands = self._operands
        trouble: ConditionError | None = None
        for operand in operands:
            try:
                if operand.holds(values) is is_any:
                    return is_any
            except ConditionError as problem:
                trouble = problem
        if trouble is not None:
            raise trouble
        return bool(operands) and not is_any

    @cached_property
    def _operands(self) -> tuple[bool, tuple[Condition, ...]]:
        """Whether one operand is enough, and the operands; none where there are less than two."""
        is_any, operands = _operands_of(self._tokens)
        return is_any, tuple(map(Condition, operands)) if len(operands) > 1 else ()

    def _rewrite(self, tokens: list[ConditionToken]) -> str:
        """The expression with one variable for each named member, and one for each `has(...)` of a member."""
        parts: list[str] = []
        at, bound = 0, _bound_names(tokens)
        while at < len(tokens):
            kind, text = tokens[at]
            is_member = bool(parts) and parts[-1] == "."
            if kind == "name" and text == "has" and not is_member:
                path, end = _path(tokens, at + 2)
                if path and _is(tokens, at + 1, "(") and _is(tokens, end, ")"):
                    parts.append(self._presence.setdefault(_checked(path), f"_h{len(self._presence)}"))
                    at = end + 1
                    continue
            if kind == "name" and not is_member and text in (_ARGUMENTS, *MEMBERS) and text not in bound:
                path, at = _path(tokens, at)
                parts.append(self._names.setdefault(_checked(path), f"_v{len(self._names)}"))
                continue
            if kind == "name" and not is_member:
                _check_name(text, bound, is_called=_is(tokens, at + 1, "("))
            parts.append(text)
            at += 1
        return " ".join(parts).replace(" . ", ".")

    def _check_functions(self) -> None:
        for name in self._program.functions():
            if name[0].isalpha() and name not in _FUNCTIONS:
                raise ConditionError(f"there is no function {name}")

    def _check_types(self, rewritten: str) -> None:
        """Refuse what is a type error for every type that its arguments may have, and lists that are compared with single values."""
        for path, name in self._names.items():
            shown, words = ".".join(path), _WORDS.get(path)
            is_list = isinstance(MEMBERS.get(path[0], {}).get(path[-1]), list)
            for match in re.finditer(rf"\b{name}\b\s*[=!]=\s*({_LITERAL})|({_LITERAL})\s*[=!]=\s*{name}\b", rewritten):
                if is_list:
                    raise ConditionError(f"{shown} is a list; write 'x' in {shown}")
                if words is not None and (word := (match[1] or match[2])[1:-1]) not in words:
                    raise ConditionError(f"{shown} is never {word!r}; it is {', '.join(words)}")
        last: ConditionError | None = None
        for values in self._samples():
            try:
                self.holds(values)
            except ConditionError as problem:
                last = problem
            else:
                return
        raise ConditionError(f"no types of its values fit: {last}")

    def _samples(self) -> Iterator[dict[Path, Any]]:
        known = {path: MEMBERS[path[0]][path[1]] for path in self._names if path[0] != _ARGUMENTS}
        free = [path for path in (*self._names, *self._presence) if path[0] == _ARGUMENTS]
        if len(free) > _MAX_SAMPLED:
            yield {}  # with more, too many combinations: their types are checked when they come
            return
        for chosen in product(_SAMPLES, repeat=len(free)):
            yield known | dict(zip(free, chosen, strict=True))


compile_condition: Final = lru_cache(maxsize=4096)(Condition)
"""A condition of the configuration is needed by its check and by its rule: compiling costs 0.1 ms, and its check more."""


class ArgumentReader:
    """Reads some members out of the bytes of arguments, and converts nothing else of them."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        heads = dict.fromkeys(path[0] for path in paths)
        self._folded = {head.casefold(): head for head in heads}
        self._harmless = set(heads)
        self._heads = [
            (
                head,
                (head,) in paths,
                ArgumentReader(below) if (below := tuple(p[1:] for p in paths if p[0] == head and p[1:])) else None,
            )
            for head in heads
        ]

    def read(self, arguments: bytes, above: Path = (_ARGUMENTS,)) -> dict[Path, Any]:
        """The values that are there, by path. Raises ConditionError."""
        try:
            found = _object.decode(arguments)
        except msgspec.DecodeError:
            raise ConditionError(f"{'.'.join(above)} is not an object") from None
        for name in found:
            if name not in self._harmless:
                self._require_other(name, above)
        values: dict[Path, Any] = {}
        for head, is_wanted, below in self._heads:
            raw = found.get(head)
            if raw is None:
                continue
            path = (*above, head)
            if is_wanted:
                values[path] = _value(raw, path)
            if below is not None and bytes(raw) != b"null":
                values |= below.read(bytes(raw), path)
        return values

    def _require_other(self, name: str, above: Path) -> None:
        """Many servers ignore the case of names, some only where the exact one is missing."""
        named = self._folded.get(name.casefold())
        if named is not None:
            raise ConditionError(f"a server may read another spelling of {'.'.join((*above, named))} as that")
        if len(self._harmless) < _MAX_HARMLESS:
            self._harmless.add(name)


def _value(raw: Raw, path: Path) -> Any:
    if len(raw) > MAX_VALUE_BYTES:
        raise ConditionError(f"{'.'.join(path)} has more than {MAX_VALUE_BYTES} bytes")
    try:
        return _any.decode(raw)
    except msgspec.DecodeError:
        raise ConditionError(f"{'.'.join(path)} can't be compared") from None


_any: Final = msgspec.json.Decoder()
_object: Final = msgspec.json.Decoder(dict[str, Raw])


@cache
def _engine() -> Any:
    """The compiled part of the package `cel`. Its `__init__` also imports a command line, which costs a second and 30 MiB."""
    package = importlib.util.find_spec("cel")
    found = importlib.machinery.PathFinder.find_spec(
        "cel.cel", package.submodule_search_locations if package is not None else None
    )
    if found is None or found.loader is None:
        raise ConditionError("the package common-expression-language is not installed")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def _tokens(source: str) -> Iterator[ConditionToken]:
    for match in _TOKEN.finditer(source):
        if match.lastgroup != "space":
            yield ConditionToken(str(match.lastgroup), match[0])


def _is(tokens: list[ConditionToken], at: int, text: str) -> bool:
    return at < len(tokens) and tokens[at].text == text


def _path(tokens: list[ConditionToken], at: int) -> tuple[Path, int]:
    """The path that begins at a token, and where it ends; empty where none begins. A method that is called is no member."""
    if at >= len(tokens) or tokens[at].text not in (_ARGUMENTS, *MEMBERS):
        return (), at
    path, at = [tokens[at].text], at + 1
    while at + 1 < len(tokens):
        after = tokens[at + 1]
        if tokens[at].text == "." and after.kind == "name" and not _is(tokens, at + 2, "("):
            path.append(after.text)
            at += 2
        elif tokens[at].text == "[" and _is_plain_text(after) and _is(tokens, at + 2, "]"):
            path.append(after.text[1:-1])
            at += 3
        else:
            break
    return tuple(path), at


def _operands_of(tokens: list[ConditionToken]) -> tuple[bool, list[str]]:
    """The operands of the outermost `||` (any is enough) or `&&`; those of a negation are negated (De Morgan)."""
    is_negated = False
    while _is_group(tokens[(start := int(_is(tokens, 0, "!"))) :]):
        is_negated ^= bool(start)
        tokens = tokens[start + 1 : -1]
    depths = _depths(tokens)
    outer = {token.text for token, depth in zip(tokens, depths, strict=True) if depth == 0}
    operator = "" if "?" in outer else "||" if "||" in outer else "&&"
    operands: list[list[str]] = [[]]
    for token, depth in zip(tokens, depths, strict=True):
        if depth == 0 and token.text == operator:
            operands.append([])
        else:
            operands[-1].append(token.text)
    texts = [" ".join(words) for words in operands]
    return (operator == "||") is not is_negated, [f"!({text})" if is_negated else text for text in texts]


def _is_group(tokens: list[ConditionToken]) -> bool:
    return _is(tokens, 0, "(") and _depths(tokens).index(0) == len(tokens) - 1


def _depths(tokens: list[ConditionToken]) -> list[int]:
    """How many brackets are open after each token."""
    return [*accumulate((token.text in _OPENING) - (token.text in _CLOSING) for token in tokens)]


_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")


def _is_plain_text(token: ConditionToken) -> bool:
    return token.kind == "text" and token.text[0] in "'\"" and "\\" not in token.text and token.text[:3] not in _TRIPLE


_TRIPLE: Final = ("'''", '"""')


def _checked(path: Path) -> Path:
    root = path[0]
    if len(path) == 1:
        raise ConditionError(f"{root} alone can't be used; name a member, as {root}.{_example(root)}")
    known = MEMBERS.get(root)
    if known is not None and (len(path) > 2 or path[1] not in known):
        raise ConditionError(f"{root} has no {'.'.join(path[1:])} (it has {', '.join(known)})")
    return path


def _example(root: str) -> str:
    return "amount" if root == _ARGUMENTS else next(iter(MEMBERS[root]))


def _check_name(name: str, bound: frozenset[str], *, is_called: bool) -> None:
    if name in bound or name in ("true", "false", "null", "in") or name in _TYPES:
        return
    if is_called:
        if name not in _FUNCTIONS:
            raise ConditionError(f"there is no function {name}")
        return
    raise ConditionError(f"{name} is unknown; a condition can name arguments.*, caller.* and tool.*")


def _bound_names(tokens: list[ConditionToken]) -> frozenset[str]:
    """The names that macros such as `all(x, ...)` bring."""
    return frozenset(
        tokens[at + 2].text
        for at, token in enumerate(tokens)
        if token.text in _MACROS and _is(tokens, at + 1, "(") and at + 2 < len(tokens) and tokens[at + 2].kind == "name"
    )


def _first_sentence(problem: Exception) -> str:
    text = str(problem).partition(": ")[0] if isinstance(problem, TypeError) else str(problem)
    return text.partition(". ")[0][:200].rstrip(".") or type(problem).__name__
