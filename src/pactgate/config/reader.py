"""Reads the text of a file in any format into a tree with positions.

Must not: know any setting, or import the readers of formats that are not asked for.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pactgate.config.problems import ConfigFindings
from pactgate.config.tree import ConfigNode, UnreadableError


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


def read(text: str, form: Format, found: ConfigFindings) -> ConfigNode | None:
    """The tree, or None when the text is not of its format. The problems go to `found`."""
    try:
        return _read(text, form, found)
    except UnreadableError as stop:
        found.add((), stop.place, stop.message, stop.hint)
        return None


def _read(text: str, form: Format, found: ConfigFindings) -> ConfigNode:
    if form is Format.YAML:
        from pactgate.config.yaml_text import read_yaml

        return read_yaml(text, found)
    if form is Format.TOML:
        from pactgate.config.toml_text import read_toml

        return read_toml(text, found)
    from pactgate.config.json_text import read_json

    return read_json(text, found)
