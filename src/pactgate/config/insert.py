"""One more server in the text of a configuration file, everything else in it untouched: comments, order, spelling.

The new text is read again and compared: the same settings as before, and the new entry; otherwise nothing is changed, and the lines to
paste by hand are given. Must not: write files, or judge what an entry says.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from pactgate.config.problems import ConfigFindings, FilePosition
from pactgate.config.reader import Format, read
from pactgate.config.tree import ConfigNode

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/|[{}\[\],]|[^\s{}\[\],"/]+|/', re.DOTALL)
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_LISTS: Final = ("mcpServers", "servers")


class InsertError(Exception):
    """`why` is a sentence; `lines` are what to paste by hand, if that would help."""

    def __init__(self, why: str, lines: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.lines = lines


def new_file(form: Format, name: str, entry: dict[str, Any]) -> str:
    """A configuration of one server."""
    if form is not Format.JSON:
        return f"{_LISTS[0]}:\n" * (form is Format.YAML) + snippet(form, _LISTS[0], name, entry)
    return json.dumps({"mcpServers": {name: entry}}, indent=2, ensure_ascii=False) + "\n"


def insert_server(text: str, form: Format, name: str, entry: dict[str, Any]) -> str:
    """The text with one more server. Raises CantInsert."""
    before = _read(text, form)
    if before is None:
        raise InsertError("The file can't be read as it is; `pactgate check` says why.")
    if any(name in _names(before, key) for key in _LISTS):
        raise InsertError(f"There is a server {name} already. Choose another name, or remove it first.")
    key = next((key for key in _LISTS if key in before.value), _LISTS[0])
    inserted = {Format.JSON: _into_json, Format.YAML: _into_yaml, Format.TOML: _into_toml}[form](
        text, before, key, name, entry
    )
    after = _read(inserted, form) if inserted is not None else None
    if inserted is None or after is None or _plain(after) != _with_entry(_plain(before), key, name, entry):
        raise InsertError(
            f"The file is written in a way that can't be added to safely. Paste this under {key} yourself:",
            snippet(form, key, name, entry),
        )
    return inserted


def snippet(form: Format, key: str, name: str, entry: dict[str, Any]) -> str:
    """The entry as one would write it into a file of this format."""
    if form is Format.YAML:
        return "".join(f"{line}\n" for line in _yaml_lines("  ", name, entry))
    if form is Format.TOML:
        return _toml_table(key, name, entry)
    return f"{_json(name)}: {_inline(entry)}"


def _into_json(text: str, root: ConfigNode, key: str, name: str, entry: dict[str, Any]) -> str | None:
    holder = root.value.get(key)
    if holder is None:
        return _append(text, root, f"{_json(key)}: {{ {_json(name)}: {_inline(entry)} }}")
    return _append(text, holder, f"{_json(name)}: {_inline(entry)}") if isinstance(holder.value, dict) else None


def _append(text: str, holder: ConfigNode, member: str) -> str | None:
    """One more member at the end of an object, on a line of its own where the others have theirs."""
    start = _offset(text, holder.place)
    last, end = start, None
    depth = 0
    for token in _TOKEN.finditer(text, start):
        word = token.group()
        if word[:2] in ("//", "/*"):
            continue
        depth += (word in "{[") - (word in "}]") if len(word) == 1 else 0
        if depth == 0:
            end = token.start()
            break
        last = token.end() - 1
    if end is None:
        return None
    is_first, has_comma = last == start, text[last] == ","
    between = text[last + 1 : end]
    comma = "" if is_first or has_comma else ","
    if "\n" not in between:  # all on one line, or nothing there yet
        return f"{text[: last + 1]}{comma} {member}{between if between.strip() or not is_first else ' '}{text[end:]}"
    indent = _indent_of(text, holder, end)
    rest = between.rstrip(" \t")
    rest = rest if rest.endswith("\n") else between
    return f"{text[: last + 1]}{comma}{rest}{indent}{member}\n{text[end - (len(between) - len(rest)) :]}"


def _indent_of(text: str, holder: ConfigNode, end: int) -> str:
    """That of the members already there, else one step more than the closing brace."""
    for member in holder.value.values():
        if member.key_place is not None:
            line: str = text.split("\n")[member.key_place.line - 1]
            return line[: len(line) - len(line.lstrip())]
    line = text[text.rfind("\n", 0, end) + 1 : end]
    return line[: len(line) - len(line.lstrip())] + "  "


def _into_yaml(text: str, root: ConfigNode, key: str, name: str, entry: dict[str, Any]) -> str | None:
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    holder = root.value.get(key)
    if holder is None:
        return "\n".join([*lines, f"{key}:", *_yaml_lines("  ", name, entry), ""])
    if not isinstance(holder.value, dict) or not holder.value or holder.key_place is None:
        return None
    places = [member.key_place for member in holder.value.values() if member.key_place is not None]
    later = [
        member.key_place.line
        for member in root.value.values()
        if member.key_place is not None and member.key_place.line > holder.key_place.line
    ]
    at = min(later) - 1 if later else len(lines)
    while at > 0 and (not lines[at - 1].strip() or re.match(r"#|---|\.\.\.", lines[at - 1])):
        at -= 1  # blank lines and comments at the margin belong to what follows
    indent = " " * (places[0].column - 1) if places else "  "
    return "\n".join([*lines[:at], *_yaml_lines(indent, name, entry), *lines[at:], ""])


def _into_toml(text: str, root: ConfigNode, key: str, name: str, entry: dict[str, Any]) -> str | None:
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{gap}{_toml_table(key, name, entry)}"


def _yaml_lines(indent: str, name: str, entry: dict[str, Any]) -> list[str]:
    return [f"{indent}{name}:", *(f"{indent}  {key}: {_json(value)}" for key, value in entry.items())]


def _toml_table(key: str, name: str, entry: dict[str, Any]) -> str:
    lines = [f"[{key}.{name}]"]
    lines += [f"{word} = {_json(value)}" for word, value in entry.items() if not isinstance(value, dict)]
    for word, value in entry.items():
        if isinstance(value, dict):
            lines += [f"[{key}.{name}.{word}]", *(f"{_toml_key(one)} = {_json(held)}" for one, held in value.items())]
    return "".join(f"{line}\n" for line in lines)


def _toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _json(key)


def _inline(entry: dict[str, Any]) -> str:
    return f"{{ {', '.join(f'{_json(key)}: {_json(value)}' for key, value in entry.items())} }}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _read(text: str, form: Format) -> ConfigNode | None:
    found = ConfigFindings("")
    root = read(text, form, found)
    return root if root is not None and isinstance(root.value, dict) and not found.problems else None


def _names(root: ConfigNode, key: str) -> dict[str, Any]:
    holder = root.value.get(key)
    return holder.value if holder is not None and isinstance(holder.value, dict) else {}


def _plain(node: ConfigNode) -> Any:
    if isinstance(node.value, dict):
        return {key: _plain(member) for key, member in node.value.items()}
    return [_plain(item) for item in node.value] if isinstance(node.value, list) else node.value


def _with_entry(settings: dict[str, Any], key: str, name: str, entry: dict[str, Any]) -> dict[str, Any]:
    held = settings.get(key)
    return {**settings, key: {**(held if isinstance(held, dict) else {}), name: entry}}


def _offset(text: str, place: FilePosition | None) -> int:
    line, column = place or (1, 1)
    return sum(len(one) + 1 for one in text.split("\n")[: line - 1]) + column - 1
