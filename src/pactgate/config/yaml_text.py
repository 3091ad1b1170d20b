"""YAML as a tree with places. Composed, never constructed: no tag can make an object, and plain words mean what YAML 1.2 says
(`no` is a text, not false; `1:30` is not 90).

Bounded: depth and number of values are counted while reading and again while aliases are followed, so a file that
multiplies itself ends as a problem.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from pactgate.config.problems import ConfigFindings, FilePosition, Path, show
from pactgate.config.tree import (
    MAX_DEPTH,
    MAX_VALUES,
    ConfigNode,
    LineIndex,
    UnreadableError,
    note_duplicate,
    require_encodable,
)

_TAG: Final = "tag:yaml.org,2002:"
_MAX_DIGITS: Final = 300


class _Loader(Reader, Scanner, Parser, Composer, BaseResolver):
    """PyYAML up to the composer, with the core schema of YAML 1.2 and our bounds."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)
        self._depth = 0
        self._values = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._depth += 1
        self._values += 1
        if self._depth > MAX_DEPTH:
            raise UnreadableError(
                f"This is nested more than {MAX_DEPTH} levels deep.", "", _place(parent.start_mark if parent else None)
            )
        if self._values > MAX_VALUES:
            raise UnreadableError(f"There are more than {MAX_VALUES} values in this file.")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


_INTEGER: Final = re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_TRUE: Final = frozenset({"true", "True", "TRUE"})
_FALSE: Final = frozenset({"false", "False", "FALSE"})
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})


def _whole(pattern: re.Pattern[str] | frozenset[str]) -> re.Pattern[str]:
    text = pattern.pattern if isinstance(pattern, re.Pattern) else "|".join(map(re.escape, sorted(pattern)))
    return re.compile(rf"(?:{text})\Z")


# In this order: the first that matches a plain scalar gives its tag.
for _name, _words, _firsts in (
    ("null", _NULL, ["~", "n", "N", ""]),
    ("bool", _TRUE | _FALSE, list("tTfF")),
    ("int", _INTEGER, list("-+0123456789")),
    ("float", _FLOAT, list("-+.0123456789")),
):
    _Loader.add_implicit_resolver(_TAG + _name, _whole(_words), _firsts)


def read_yaml(text: str, found: ConfigFindings) -> ConfigNode:
    root = _compose(text)
    if root is None:
        raise UnreadableError("The file is empty.", "An empty configuration is {}.")
    return _Tree(found).node(root, (), None)


def _compose(text: str) -> yaml.Node | None:
    try:
        loader = _Loader(text)
        try:
            return loader.get_single_node()
        finally:
            loader.dispose()
    except ReaderError as error:
        place = LineIndex(text).place(error.position)
        raise UnreadableError(
            "This character can't stand in a YAML file.", "Remove it, or write it as an escape.", place
        ) from None
    except yaml.MarkedYAMLError as error:
        what = ", ".join(part for part in (error.context, error.problem) if part)
        raise UnreadableError(
            f"This is not YAML: {what}.", "", _place(error.problem_mark or error.context_mark)
        ) from None
    except (yaml.YAMLError, ValueError, OverflowError):
        # PyYAML lets these out of escapes and directives that name impossible characters or numbers.
        raise UnreadableError("This is not YAML: an escape or directive has an impossible number.") from None


class _Tree:
    """Follows a composed document, aliases included, and counts what it passes."""

    def __init__(self, found: ConfigFindings) -> None:
        self._found = found
        self._values = 0

    def node(self, source: yaml.Node, path: Path, key_place: FilePosition | None) -> ConfigNode:
        place = _place(source.start_mark)
        self._values += 1
        if self._values > MAX_VALUES or len(path) > MAX_DEPTH:
            raise UnreadableError(
                "The aliases of this file multiply it beyond all bounds.", "Write the values out.", place
            )
        value: Any = None
        if isinstance(source, MappingNode) and source.tag == _TAG + "map":
            value = self._mapping(source, path)
        elif isinstance(source, SequenceNode) and source.tag == _TAG + "seq":
            value = [self.node(item, (*path, index), None) for index, item in enumerate(source.value)]
        elif isinstance(source, ScalarNode):
            value = _scalar(source, place)
        else:
            raise _foreign_tag(source, place)
        return ConfigNode(value, place, key_place)

    def _mapping(self, source: MappingNode, path: Path) -> dict[str, ConfigNode]:
        members: dict[str, ConfigNode] = {}
        for key_node, value_node in source.value:
            place = _place(key_node.start_mark)
            if not isinstance(key_node, ScalarNode) or key_node.tag != _TAG + "str":
                self._found.add(path, place, "A key must be a text.", "Put the key in quotes.")
                continue
            key = key_node.value
            require_encodable(key, place)
            if key in members:
                note_duplicate(self._found, (*path, key), place, members[key].key_place)
                continue
            members[key] = self.node(value_node, (*path, key), place)
        return members


def _scalar(source: ScalarNode, place: FilePosition | None) -> Any:
    text: str = source.value
    kind = source.tag.removeprefix(_TAG)
    if kind == "str":
        require_encodable(text, place)
        return text
    if kind == "null" and text in _NULL:
        return None
    if kind == "bool" and text in _TRUE | _FALSE:
        return text in _TRUE
    if kind == "int" and _INTEGER.fullmatch(text) and len(text) <= _MAX_DIGITS:
        return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
    if kind == "float" and _FLOAT.fullmatch(text):
        return float(text.casefold().replace(".inf", "inf").replace(".nan", "nan"))
    if kind in ("null", "bool", "int", "float"):
        raise UnreadableError(
            "This can't be read as a number or word of YAML.", "Put it in quotes if it is a text.", place
        )
    raise _foreign_tag(source, place)


def _foreign_tag(source: yaml.Node, place: FilePosition | None) -> UnreadableError:
    return UnreadableError(
        f"The tag {show(source.tag)} can't be used here.", "Write plain values, without tags.", place
    )


def _place(mark: Any) -> FilePosition | None:
    return FilePosition(mark.line + 1, mark.column + 1) if mark is not None else None
