"""One value put into the text of a configuration, in whatever format it is written; everything else stays as it was, comments too.

Pure: text in, text out. An editor looks for the place and may misjudge an unusual one, so whoever uses the result reads it back and
compares; see `keep`. Must not: reformat, or know any setting.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

from pactgate.config.problems import Path
from pactgate.config.reader import Format

_BLANK: Final = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*.*?\*/)*+", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SCALAR: Final = re.compile(r"[^\s,\]}/]+")
_REST_OF_LINE: Final = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/[ \t]*)?(?=\r?\n)")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_TOML_HEADER: Final = re.compile(r"[ \t]*\[(?P<key>[^\[\]\n]+)\][ \t]*(?:#.*)?$", re.MULTILINE)
_TOML_ANY_HEADER: Final = re.compile(r"^[ \t]*\[", re.MULTILINE)
_TOML_TAIL: Final = re.compile(
    r"(?P<value>(?:\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[^#\n\"'])*?)(?P<rest>[ \t]*(?:#[^\n]*)?)$"
)


class EditError(Exception):
    """The text has no place for the value that this editor could be sure of."""


class _Member(NamedTuple):
    start: int
    end: int


def put(text: str, form: Format, path: Path, value: Any) -> str:
    """The text with this value at this path, in place of what is there, or added."""
    editors = {Format.JSON: _put_json, Format.YAML: _put_yaml, Format.TOML: _put_toml}
    return editors[form](text, tuple(map(str, path)), value)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _nested(path: tuple[str, ...], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


# JSON and JSONC.


def _put_json(text: str, path: tuple[str, ...], value: Any) -> str:
    at = _skip(text, 0)
    for depth, key in enumerate(path):
        members, close = _members(text, at)
        if key not in members:
            return _add_json(text, at, close, members, f"{_dump(key)}: {_dump(_nested(path[depth + 1 :], value))}")
        at, end = members[key]
    return text[:at] + _dump(value) + text[end:]


def _add_json(text: str, at: int, close: int, members: dict[str, _Member], member: str) -> str:
    """After the last member, behind a comment on its line; on the same line where the whole table is on one."""
    if not members:
        indent = _indent(text, at)
        if "\n" in text[at:close]:
            return f"{text[: at + 1]}\n{indent}  {member}{text[at + 1 :]}"
        return f"{text[: at + 1]}{member}{text[at + 1 :]}"
    last = list(members.values())[-1].end
    comma = _skip(text, last)
    if text[comma] == ",":
        head, after = text[: comma + 1], comma + 1
    else:
        head, after = text[:last] + ",", last
    rest = _REST_OF_LINE.match(text, after)
    if rest is None or "\n" not in text[at:close]:
        return f"{head} {member}{text[after:]}"
    first = next(iter(members.values())).start
    return f"{head}{rest.group()}\n{_indent(text, first)}{member}{text[rest.end() :]}"


def _indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _members(text: str, at: int) -> tuple[dict[str, _Member], int]:
    """The values of the object that begins here by their keys, and where it ends."""
    if text[at : at + 1] != "{":
        raise EditError
    members: dict[str, _Member] = {}
    at = _skip(text, at + 1)
    while text[at : at + 1] == '"':
        end = _json_end(text, at)
        key = json.loads(text[at:end])
        at = _skip(text, _skip(text, end) + 1)
        end = _json_end(text, at)
        members[key] = _Member(at, end)
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at : at + 1] == "," else at
    return members, at


def _json_end(text: str, at: int) -> int:
    """Where the value that begins here ends."""
    if text[at : at + 1] not in ("{", "["):
        scalar = _STRING.match(text, at) or _SCALAR.match(text, at)
        if scalar is None:
            raise EditError
        return scalar.end()
    depth = 0
    while at < len(text):
        at = _skip(text, at)
        sign = text[at : at + 1]
        if sign == '"':
            at = _json_end(text, at)
            continue
        depth += (sign in ("{", "[")) - (sign in ("}", "]"))
        at += 1
        if depth == 0:
            return at
    raise EditError


# YAML: values are written as JSON, which is YAML.


def _put_yaml(text: str, path: tuple[str, ...], value: Any) -> str:
    import yaml

    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    if node is None:
        return f"{text.rstrip()}\n{_yaml_pair(path[0], _nested(path[1:], value))}\n".lstrip("\n")
    for depth, key in enumerate(path):
        if not isinstance(node, yaml.MappingNode):
            raise EditError
        found = [one for name, one in node.value if name.value == key]
        if not found:
            return _add_yaml(text, node, _yaml_pair(key, _nested(path[depth + 1 :], value)))
        node = found[0]
    start, end = node.start_mark.index, _yaml_end(text, node)
    return text[:start] + _dump(value) + text[end:]


def _add_yaml(text: str, node: Any, pair: str) -> str:
    if node.flow_style:
        close = node.end_mark.index - 1
        separator = ", " if node.value else ""
        return f"{text[:close].rstrip()}{separator}{pair}{text[close:]}"
    line_end = text.find("\n", _yaml_end(text, node.value[-1][1]))
    line_end = len(text) if line_end < 0 else line_end
    indent = " " * node.value[0][0].start_mark.column
    return f"{text[:line_end]}\n{indent}{pair}{text[line_end:]}"


def _yaml_end(text: str, node: Any) -> int:
    """The end of a value without what only stands behind it: a block ends where its last value does."""
    if not isinstance(node.value, str) and not node.flow_style and node.value:
        last = node.value[-1]
        return _yaml_end(text, last[1] if isinstance(last, tuple) else last)
    start: int = node.start_mark.index
    return start + len(text[start : node.end_mark.index].rstrip())


def _yaml_pair(key: str, value: Any) -> str:
    return f"{key if _PLAIN_KEY.fullmatch(key) else _dump(key)}: {_dump(value)}"


# TOML.


def _put_toml(text: str, path: tuple[str, ...], value: Any) -> str:
    """In the table's own lines, at its header, or as a new table at the end."""
    table, key = path[:-1], path[-1]
    wanted = {_toml_path(table), ".".join(table)}
    for header in _TOML_HEADER.finditer(text):
        if header["key"].strip() in wanted:
            following = _TOML_ANY_HEADER.search(text, header.end())
            end = following.start() if following else len(text)
            return text[: header.end()] + _put_pair(text[header.end() : end], key, value) + text[end:]
    if not table:
        first = _TOML_ANY_HEADER.search(text)
        end = first.start() if first else len(text)
        return _put_pair("\n" + text[:end], key, value).removeprefix("\n") + text[end:]
    return f"{text.rstrip()}\n\n[{_toml_path(table)}]\n{_toml_path((key,))} = {_toml(value)}\n".lstrip("\n")


def _put_pair(lines: str, key: str, value: Any) -> str:
    names = "|".join(re.escape(name) for name in (_toml_path((key,)), _dump(key), f"'{key}'"))
    for pair in re.finditer(rf"^[ \t]*(?:{names})[ \t]*=[ \t]*", lines, re.MULTILINE):
        line_end = lines.find("\n", pair.end())
        line = lines[pair.end() : line_end if line_end >= 0 else len(lines)]
        tail = _TOML_TAIL.match(line)
        if tail is None:
            raise EditError
        return lines[: pair.end()] + _toml(value) + lines[pair.end() + tail.end("value") :]
    body = lines.rstrip()
    return f"{body}\n{_toml_path((key,))} = {_toml(value)}{lines[len(body) :] or chr(10)}"


def _toml_path(path: tuple[str, ...]) -> str:
    return ".".join(part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else _dump(part) for part in path)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        pairs = ", ".join(f"{_toml_path((str(key),))} = {_toml(item)}" for key, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return _dump(value)
