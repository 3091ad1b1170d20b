"""Reads the text of a file in any format into plain values.

The reader notes the position of each value by its path, for messages and for the editor. Must not: know any setting, or import
the readers of formats that are not asked for.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from pactgate.config.problems import ConfigFindings, LineIndex, UnreadableError


class Format(StrEnum):
    JSON = "json"
    YAML = "yaml"
    TOML = "toml"


FORMATS: Final = {
    ".json": Format.JSON,
    ".jsonc": Format.JSON,
    ".yaml": Format.YAML,
    ".yml": Format.YAML,
    ".toml": Format.TOML,
}
"""Formats by file suffix, in the order of the search."""


def read(text: str, form: Format, found: ConfigFindings) -> Any:
    """The values, or None when the text is not of its format. The problems go to `found`."""
    found.lines = LineIndex(text)
    try:
        return _read(text, form, found)
    except UnreadableError as stop:
        found.add_at(stop.place, (), stop.message, stop.hint)
        return None


def _read(text: str, form: Format, found: ConfigFindings) -> Any:
    if form is Format.YAML:
        from pactgate.config.yaml_text import read_yaml

        return read_yaml(text, found)
    if form is Format.TOML:
        from pactgate.config.toml_text import read_toml

        return read_toml(text, found)
    from pactgate.config.json_text import read_json

    return read_json(text, found)
