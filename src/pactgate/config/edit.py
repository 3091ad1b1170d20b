"""Edits the text of a configuration in its own format: puts one value, adds one server or item, or removes one of them.

Everything else in the text stays as it is: comments, order, spelling. The new text is read back, and it counts only if it says
what the old text said and the change; else the edit raises EditError. Must not: write files, or know any setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pactgate.config.problems import ConfigFindings, EditError, Path, ValuePosition
from pactgate.config.reader import Format, read
from pactgate.config.text_edit import TextEditor, block_text, nested

SERVER_KEYS: Final = ("mcpServers", "servers")
_NOT_EDITABLE: Final = "The file is written in a way that can't be edited without touching the rest."


def put(text: str, form: Format, path: Sequence[str], value: Any) -> str:
    """The text with this value at this path, in place of an older value or added. An empty text gets its first setting."""
    if form is Format.YAML and _is_blank(text, form):
        edited = f"{text.rstrip()}\n{block_text('', nested(path, value))}\n".lstrip("\n")
        return _read_back(edited, form, nested(path, value))
    if form is Format.JSON and _is_blank(text, form):
        text = "{\n}\n"
    root, positions = _read(text, form)
    wanted = _with(root, path, value)
    editor = TextEditor(text, root, positions, form)
    edited = _put_toml(text, path, value) if form is Format.TOML else editor.put(path, value)
    return _read_back(edited, form, wanted)


def append(text: str, form: Format, path: Sequence[str], item: dict[str, Any]) -> str:
    """The text with one more item at the end of the list at this path, which may not be there yet."""
    root, positions = ({}, {}) if _is_blank(text, form) else _read(text, form)
    held = value_at(root, path)
    if not held:
        return put(text, form, path, [item])
    if not isinstance(held, list):
        raise EditError(f"{path[-1]} is not a list.")
    wanted = _with(root, path, [*held, item])
    editor = TextEditor(text, root, positions, form)
    edited = _append_toml(text, path, item) if form is Format.TOML else editor.append(path, item)
    return _read_back(edited, form, wanted)


def remove(text: str, form: Format, path: Sequence[str | int]) -> str:
    """The text without this key and its value, or without this item of a list."""
    root, positions = _read(text, form)
    wanted = _without(root, path)
    editor = TextEditor(text, root, positions, form)
    edited = _remove_toml(text, path) if form is Format.TOML else editor.remove(path)
    return _read_back(edited, form, wanted)


def value_at(values: Any, path: Sequence[str]) -> Any:
    """The value at this path of keys; None if there is none."""
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def add_server(text: str, form: Format, name: str, entry: dict[str, Any]) -> str:
    """The text with one more server. The error has the lines to paste by hand, where that helps."""
    given = {} if _is_blank(text, form) else _read(text, form)[0]
    key = next((key for key in SERVER_KEYS if key in given), SERVER_KEYS[0])
    if any(name in servers for one in SERVER_KEYS if isinstance(servers := given.get(one), dict)):
        raise EditError(f"There is a server {name} already. Choose another name, or remove it first.")
    try:
        return put(text, form, (key, name), entry)
    except EditError as problem:
        raise EditError(f"{problem.why} Add this by hand:", put("", form, (key, name), entry)) from None


def _is_blank(text: str, form: Format) -> bool:
    """Whether the text has no settings; in YAML it may have comments."""
    lines = (line.strip() for line in text.splitlines())
    return not any(line and (form is not Format.YAML or not line.startswith("#")) for line in lines)


def _read(text: str, form: Format) -> tuple[dict[str, Any], dict[Path, ValuePosition]]:
    found = ConfigFindings("")
    root = read(text, form, found)
    if found.problems or not isinstance(root, dict):
        raise EditError("The file can't be read as it is; `pactgate check` says why.")
    return root, found.positions


def _read_back(edited: str, form: Format, wanted: Any) -> str:
    found = ConfigFindings("")
    if read(edited, form, found) != wanted or found.problems:
        raise EditError(_NOT_EDITABLE)
    return edited


def _with(values: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    if not isinstance(values, dict | None):
        raise EditError(f"{path[0]} has no place: the value around it is not an object.")
    held = values or {}
    return {**held, path[0]: _with(held.get(path[0]), path[1:], value)}


def _without(values: Any, path: Sequence[str | int]) -> Any:
    key = path[0]
    if isinstance(values, list) and isinstance(key, int) and len(path) == 1:
        return values[:key] + values[key + 1 :]
    if not isinstance(values, dict) or key not in values:
        raise EditError(f"{key} is not in the file.")
    others = {one: value for one, value in values.items() if one != key}
    return others if len(path) == 1 else {**values, key: _without(values[key], path[1:])}


def _put_toml(text: str, path: Sequence[str], value: Any) -> str:
    document = _parse_toml(text)
    table = document
    for key in path[:-1]:
        if key not in table:
            table[key] = _new_toml_table(table, is_super_table=True)
        table = table[key]
    try:
        table[path[-1]] = value
    except ValueError:
        raise EditError("TOML has no spelling for this value.") from None
    return _toml_text(document)


def _append_toml(text: str, path: Sequence[str], item: dict[str, Any]) -> str:
    import tomlkit

    document = _parse_toml(text)
    items = document
    for key in path:
        items = items[key]
    items.append(tomlkit.item(item))
    return _toml_text(document)


def _remove_toml(text: str, path: Sequence[str | int]) -> str:
    document = _parse_toml(text)
    tables = [document]
    for key in path[:-1]:
        tables.append(tables[-1][key])
    del tables[-1][path[-1]]
    if (
        len(tables) > 1 and not tables[-1] and isinstance(path[-1], str)
    ):  # a table that only the headers of others named is gone with them
        tables[-2][path[-2]] = _new_toml_table(tables[-2])
    return _toml_text(document)


def _parse_toml(text: str) -> Any:
    import tomlkit  # here: a gateway that only reads its file never needs it
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text)
    except TOMLKitError:  # tomlkit refuses some files that tomllib reads
        raise EditError(_NOT_EDITABLE) from None


def _new_toml_table(around: Any, *, is_super_table: bool | None = None) -> Any:
    """An empty table; an inline one within an inline table, which can't have others."""
    import tomlkit
    from tomlkit.items import InlineTable

    return tomlkit.inline_table() if isinstance(around, InlineTable) else tomlkit.table(is_super_table)


def _toml_text(document: Any) -> str:
    import tomlkit

    return tomlkit.dumps(document)
