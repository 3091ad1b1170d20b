"""Edits JSON, JSONC and YAML text at the positions of its values.

The text around an edit is kept byte for byte. A new member goes behind the last one, with the indentation of its neighbours.
Must not: be trusted; an unusual text may defeat it, so `edit` reads every result back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from pactgate.config.json_text import BLANK
from pactgate.config.problems import EditError, Path, ValuePosition
from pactgate.config.reader import Format

_YAML_BLANK: Final = re.compile(r"(?:\s++|#[^\n]*+)*+")
_REST_OF_LINE: Final = re.compile(r"[ \t]*(?:(?://|#)[^\n]*|/\*[^\n]*?\*/[ \t]*)?\r?(?:\n|\Z)")
_COMMENT_LINE: Final = re.compile(r"\r?\n(?P<indent>[ \t]*)#[^\r\n]*")
_YAML_MARK: Final = "An anchor, alias or tag of YAML stands where the edit belongs."
_PLAIN_KEY: Final = re.compile(r"(?!(?:true|false|null)$)[A-Za-z_][A-Za-z0-9_.-]*", re.IGNORECASE)


class _Holder(NamedTuple):
    """An object: where it begins and ends, and the positions of its members."""

    start: int
    end: int
    members: dict[str, ValuePosition]


def value_of(root: Any, path: Sequence[str | int]) -> Any:
    """The value at a path that is there."""
    for key in path:
        root = root[key]
    return root


def nested(path: Sequence[str], value: Any) -> Any:
    """The value within one object for each key of the path."""
    for key in reversed(path):
        value = {key: value}
    return value


def block_text(indent: str, members: dict[str, Any]) -> str:
    """Members of a YAML mapping, one line each: objects as blocks, everything else as JSON, which is YAML."""
    lines = []
    for key, value in members.items():
        if isinstance(value, dict) and value:
            lines += [f"{indent}{_yaml_key(key)}:", block_text(f"{indent}  ", value)]
        elif isinstance(value, list) and value and all(isinstance(item, dict) and item for item in value):
            lines += [f"{indent}{_yaml_key(key)}:", *(_item_text(f"{indent}  ", item) for item in value)]
        else:
            lines.append(f"{indent}{_yaml_key(key)}: {_json(value)}")
    return "\n".join(lines)


def _item_text(indent: str, item: dict[str, Any]) -> str:
    """An item of a YAML list, a mapping in block style."""
    return f"{indent}- {block_text(f'{indent}  ', item).lstrip()}"


class TextEditor:
    """One edit of one text; `root` are its values."""

    def __init__(self, text: str, root: Any, positions: Mapping[Path, ValuePosition], form: Format) -> None:
        self._text = text
        self._root = root
        self._positions = positions
        self._is_yaml = form is Format.YAML
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def put(self, path: Sequence[str], value: Any) -> str:
        held = self._root
        for depth, key in enumerate(path):
            if held is None:  # `mcpServers:` with nothing behind it
                return self._replace(self._position(path[:depth]), nested(path[depth:], value))
            if key not in held:
                return self._add(self._holder(path[:depth], held), key, nested(path[depth + 1 :], value))
            held = held[key]
        return self._replace(self._position(path), value)

    def append(self, path: Sequence[str], item: dict[str, Any]) -> str:
        at = self._position(path)
        if self._text[at.start] == "[":
            close = at.end - 1
            return self._cut(close, close, f", {_json(item)}")
        last = self._position((*path, len(value_of(self._root, path)) - 1))
        indent = self._dash_indent(last)
        end = self._end_of_lines(last.end, len(indent) + 1)
        return self._cut(end, end, f"\n{_item_text(indent, item)}")

    def remove(self, path: Sequence[str | int]) -> str:
        if isinstance(path[-1], int):
            return self._remove_item(path)
        held = self._root
        for key in path[:-1]:
            held = held[key]
        holder = self._holder(path[:-1], held)
        if self._is_flow(holder):
            return self._remove_from_flow(holder, path[-1])
        return self._remove_from_block(holder, path[-1])

    def _remove_item(self, path: Sequence[str | int]) -> str:
        holder = self._position(path[:-1])
        if len(value_of(self._root, path[:-1])) == 1:
            return self._cut(holder.start, holder.end, "[]")
        item = self._position(path)
        indent = self._dash_indent(item)
        line = self._text.rfind("\n", 0, item.start) + 1
        end = self._end_of_lines(item.end, len(indent) + 1)
        return self._cut(line, self._text.find("\n", end) + 1 or len(self._text), "")

    def _dash_indent(self, item: ValuePosition) -> str:
        """The indentation of an item in block style: of the dash before it."""
        before = self._text[self._text.rfind("\n", 0, item.start) + 1 : item.start]
        indent, dash, rest = before.partition("-")
        if indent.strip() or not dash or rest.strip():
            raise EditError("The items of the list do not begin their lines.")
        return indent

    def _position(self, path: Sequence[str | int]) -> ValuePosition:
        position = self._positions.get(tuple(path))
        if position is None:  # a value within an alias stands elsewhere
            raise EditError(_YAML_MARK)
        return position

    def _holder(self, path: Sequence[str | int], held: Mapping[str, Any]) -> _Holder:
        start, end, _ = self._position(path)
        if self._text[start] in "&*!":
            raise EditError(_YAML_MARK)
        return _Holder(start, end, {key: self._position((*path, key)) for key in held})

    def _replace(self, at: ValuePosition, value: Any) -> str:
        if at.start != at.end:
            return self._cut(at.start, at.end, _json(value))
        if isinstance(value, dict) and value:
            indent = "" if at.key_start is None else " " * (self._column(at.key_start) + 2)
            return self._cut(at.start, at.end, "\n" + block_text(indent, value))
        return self._cut(at.start, at.end, f" {_json(value)}")

    def _add(self, holder: _Holder, key: str, value: Any) -> str:
        add = self._add_to_flow if self._is_flow(holder) else self._add_to_block
        return add(holder, key, value)

    def _is_flow(self, holder: _Holder) -> bool:
        return self._text[holder.start] == "{"

    # Objects in braces.

    def _add_to_flow(self, holder: _Holder, key: str, value: Any) -> str:
        text, close = self._text, holder.end - 1
        close_line = text.rfind("\n", 0, close) + 1
        has_lines = close_line > holder.start and not text[close_line:close].strip()
        name = _yaml_key(key) if self._is_yaml else _json(key)
        if has_lines:
            around = text[close_line:close]
            indent = self._member_indent(holder) or f"{around}  "
            step = indent.removeprefix(around) or "  "
            member = f"{indent}{name}: {_json_lines(value, indent, step)}\n"
        else:
            member = f"{name}: {_json(value)}"
        if not holder.members:
            if has_lines:
                return self._cut(close_line, close_line, member)
            comment = text[holder.start + 1 : close].strip() and text[holder.start + 1 : close]
            return self._cut(holder.start + 1, close, member + comment)
        last = list(holder.members.values())[-1].end
        comma = self._comma(last)
        if has_lines:
            separator = "" if comma is not None else ","
            return text[:last] + separator + text[last:close_line] + self._lines(member) + text[close_line:]
        at = last if comma is None else comma + 1
        return self._cut(at, at, f"{',' if comma is None else ''} {member}")

    def _member_indent(self, holder: _Holder) -> str | None:
        """The indentation of the members, if the first of them begins its line."""
        for member in holder.members.values():
            line = self._text.rfind("\n", 0, member.key_start) + 1
            indent = self._text[line : member.key_start]
            return indent if not indent.strip() and line > holder.start else None
        return None

    def _remove_from_flow(self, holder: _Holder, key: str) -> str:
        text, (_, end, start) = self._text, holder.members[key]
        assert start is not None
        names = list(holder.members)
        comma = self._comma(end)
        end = end if comma is None else comma + 1
        line = text.rfind("\n", 0, start) + 1
        rest = _REST_OF_LINE.match(text, end)
        if rest is not None and not text[line:start].strip() and line > holder.start:
            start, end = line, rest.end()
        elif comma is not None:
            end += len(text[end:]) - len(text[end:].lstrip(" \t"))
        index = names.index(key)
        if comma is not None or index == 0:
            return self._cut(start, end, "")
        before = self._comma(holder.members[names[index - 1]].end)
        assert before is not None
        between = text[before + 1 : start]
        return text[:before] + (between if between.strip() or "\n" in between else "") + text[end:]

    def _comma(self, at: int) -> int | None:
        """The offset of the comma behind a value, None where there is none."""
        blank = (_YAML_BLANK if self._is_yaml else BLANK).match(self._text, at)
        end = blank.end() if blank else at
        return end if self._text[end] == "," else None

    # Blocks of YAML.

    def _add_to_block(self, holder: _Holder, key: str, value: Any) -> str:
        column = self._member_column(holder)
        at = self._end_of_lines(holder.end, max(column, 1))  # a comment at the margin belongs to what follows
        return self._cut(at, at, "\n" + block_text(" " * column, {key: value}))

    def _remove_from_block(self, holder: _Holder, key: str) -> str:
        member = holder.members[key]
        line = self._text.rfind("\n", 0, member.key_start) + 1
        if len(holder.members) == 1:
            return self._cut(holder.start, holder.end, "{}")
        if self._text[line : member.key_start].strip():
            raise EditError("The key does not begin its line.")
        end = self._end_of_lines(member.end, self._member_column(holder) + 1)
        return self._cut(line, self._text.find("\n", end) + 1 or len(self._text), "")

    def _member_column(self, holder: _Holder) -> int:
        return self._column(next(iter(holder.members.values())).key_start or 0)

    def _column(self, offset: int) -> int:
        return offset - self._text.rfind("\n", 0, offset) - 1

    def _end_of_lines(self, at: int, min_indent: int) -> int:
        """The end of the line of a value, and of comments below it that are indented at least so far."""
        end = re.compile(r"\r?$", re.MULTILINE).search(self._text, at)
        at = end.start() if end else len(self._text)
        while (comment := _COMMENT_LINE.match(self._text, at)) and len(comment["indent"]) >= min_indent:
            at = comment.end()
        return at

    def _cut(self, start: int, end: int, new: str) -> str:
        return self._text[:start] + self._lines(new) + self._text[end:]

    def _lines(self, new: str) -> str:
        return new.replace("\n", self._newline)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _json_lines(value: Any, indent: str, step: str) -> str:
    """JSON with the members of objects on lines of their own, and lists on one."""
    if not isinstance(value, dict) or not value:
        return _json(value)
    inner = indent + step
    members = ",\n".join(f"{inner}{_json(key)}: {_json_lines(held, inner, step)}" for key, held in value.items())
    return f"{{\n{members}\n{indent}}}"


def _yaml_key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else _json(key)
