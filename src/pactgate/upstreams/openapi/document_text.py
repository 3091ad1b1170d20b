"""Reads the text of an OpenAPI document, JSON or YAML, as plain values within bounds.

An alias of YAML is the value itself and not a copy. Keys are strings, as OpenAPI wants them (`200:` is "200").
Must not: read files, or know what the values mean.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pactgate.config.problems import UnreadableError
from pactgate.core.display import flat

MAX_DEPTH: Final = 100
MAX_VALUES: Final = 2_000_000
MAX_DOCUMENT_BYTES: Final = 32 * 1024 * 1024


class DocumentError(Exception):
    """Something of a document can't be used; `why` is a clause that continues a sentence about it."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class UnreadableDocumentError(DocumentError):
    """The document as a whole can't be used."""


def read_text(data: bytes) -> Any:
    """The values of a document. Raises UnreadableDocumentError."""
    if len(data) > MAX_DOCUMENT_BYTES:
        raise UnreadableDocumentError(f"has more than {MAX_DOCUMENT_BYTES // 1024 // 1024} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableDocumentError("is not UTF-8 text") from None
    start = text.lstrip()[:1]
    if not start:
        raise UnreadableDocumentError("is empty")
    if start == "<":
        raise UnreadableDocumentError("is a web page; give the address of the OpenAPI document itself, JSON or YAML")
    return _read_json(text) if start in "{[" else _read_yaml(text)


def _read_json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as problem:
        raise UnreadableDocumentError(f"is not JSON: {flat(str(problem), 200)}") from None
    except RecursionError:
        raise UnreadableDocumentError("is nested too deep") from None


def _read_yaml(text: str) -> Any:
    from pactgate.config.yaml_text import read_yaml_values  # here: most gateways never need YAML

    try:
        return read_yaml_values(text, max_depth=MAX_DEPTH, max_values=MAX_VALUES)
    except UnreadableError as problem:
        where = f" in line {problem.place.line}" if problem.place is not None else ""
        raise UnreadableDocumentError(f"can't be read{where}: {flat(problem.message, 200)}") from None
