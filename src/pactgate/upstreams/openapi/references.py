"""Resolves the `$ref`s of an OpenAPI document: inside it, or to a file beside it.

A value is kept with its file, because a reference is relative to that. Chains and the number of files are bounded. Must not: open
files itself, or follow a reference out of the document's folder or onto the network, where a document could make it read secrets.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from pactgate.core.display import flat
from pactgate.upstreams.openapi.document_text import DocumentError, UnreadableDocumentError

MAX_CHAIN: Final = 30
MAX_FILES: Final = 100
_SHOWN_CHARS: Final = 120

ReadFile = Callable[[str], Any]
"""From the name of a file, relative to the document's folder, to its values. Raises UnreadableDocumentError."""


class DocumentNode(NamedTuple):
    """A value and its file; `file` is "" for the document itself."""

    value: Any
    file: str = ""

    def inside(self, *steps: Any) -> DocumentNode:
        """A value further in, None where there is none."""
        value = self.value
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        return DocumentNode(value, self.file)

    def members(self) -> dict[str, Any]:
        return self.value if isinstance(self.value, dict) else {}

    def items(self) -> list[DocumentNode]:
        return [DocumentNode(one, self.file) for one in self.value] if isinstance(self.value, list) else []

    def text(self, name: str) -> str | None:
        value = self.members().get(name)
        return value if isinstance(value, str) else None

    def is_set(self, name: str) -> bool:
        return self.members().get(name) is True


class References:
    """One document and the files it refers to."""

    def __init__(self, root: Any, read_file: ReadFile | None = None) -> None:
        self.root = DocumentNode(root)
        self._read_file = read_file
        self._files: dict[str, Any] = {"": root}
        self._known: dict[tuple[str, str], tuple[str, DocumentNode]] = {}

    def follow(self, spot: DocumentNode) -> DocumentNode:
        """The value behind any number of references. Raises DocumentError."""
        for _ in range(MAX_CHAIN):
            reference = spot.members().get("$ref")
            if not isinstance(reference, str):
                return spot
            spot = self.locate(reference, spot.file)[1]
        raise DocumentError("it refers to itself, or through too many others")

    def locate(self, reference: str, file: str) -> tuple[str, DocumentNode]:
        """The target of a reference in a file, with a key that is the same for all spellings. Raises DocumentError."""
        known = self._known.get((file, reference))
        if known is None:
            known = self._known[file, reference] = self._locate(reference, file)
        return known

    def _locate(self, reference: str, file: str) -> tuple[str, DocumentNode]:
        shown = flat(reference, _SHOWN_CHARS)
        name, _, pointer = reference.partition("#")
        target = self._file_of(unquote(name), file, shown) if name else file
        steps = [step.replace("~1", "/").replace("~0", "~") for step in unquote(pointer).split("/")]
        if steps[0]:
            raise DocumentError(f"its reference {shown} is not a JSON Pointer")
        value = self._values_of(target, shown)
        for step in steps[1:]:
            value = _member(value, step, shown)
        return f"{target}#{'/'.join(step.replace('~', '~0').replace('/', '~1') for step in steps)}", DocumentNode(
            value, target
        )

    def _file_of(self, name: str, file: str, shown: str) -> str:
        if ":" in name or name.startswith("/") or "\\" in name or not name.isprintable():
            raise DocumentError(f"its reference {shown} leads to another host or folder, and nothing is fetched")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(file), name))
        if path.startswith("../") or path in ("..", "."):
            raise DocumentError(f"its reference {shown} leads out of the document's folder")
        return path

    def _values_of(self, file: str, shown: str) -> Any:
        if file not in self._files:
            if self._read_file is None:
                raise DocumentError(f"its reference {shown} leads to another document, and nothing is fetched")
            if len(self._files) > MAX_FILES:
                raise DocumentError(f"the document refers to more than {MAX_FILES} files")
            try:
                self._files[file] = self._read_file(file)
            except UnreadableDocumentError as problem:
                raise DocumentError(f"{flat(file, _SHOWN_CHARS)}, which it refers to, {problem.why}") from None
        return self._files[file]


def _member(value: Any, step: str, shown: str) -> Any:
    if isinstance(value, dict) and step in value:
        return value[step]
    if isinstance(value, list) and step.isascii() and step.isdecimal() and int(step[:9]) < len(value):
        return value[int(step[:9])]
    raise DocumentError(f"its reference {shown} leads nowhere")
