"""One client's file: reads its servers, and adds or removes one entry without touching anything else in it.

Must not: write files, or know what an entry means.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pactgate.config.clients.table import Client, Key
from pactgate.config.edit import append, put, remove, value_at
from pactgate.config.file_access import read_regular_file
from pactgate.config.problems import ConfigFindings, EditError, UnreadableError
from pactgate.config.reader import FORMATS, Format, read

MAX_BYTES: Final = 16 * 1024 * 1024
"""Clients keep their history in the same file."""


class ClientFile:
    """A file as it is now; one that does not exist has no servers."""

    def __init__(self, client: Client, path: Path, data: bytes | None) -> None:
        """Raises UnreadableError."""
        self.client = client
        self.path = path
        self.data = data
        self._format = FORMATS.get(path.suffix.lower(), Format.JSON)
        try:
            self._text = (data or b"").decode("utf-8-sig")
        except UnicodeDecodeError:
            raise UnreadableError("This is not UTF-8 text.") from None
        self._root = self._read() if self._text.strip() else {}
        self._key = self._servers_key()

    @classmethod
    def open(cls, client: Client, path: Path) -> ClientFile:
        """Raises UnreadableError."""
        data = read_regular_file(path, MAX_BYTES + 1) if path.exists() else None
        if data is not None and len(data) > MAX_BYTES:
            raise UnreadableError(f"The file is larger than {MAX_BYTES} bytes.")
        return cls(client, path, data)

    def servers(self, folder: Path | None = None) -> dict[str, dict[str, Any]]:
        """The entries by their names; those of one project are in some user's files, too."""
        found = _entries(value_at(self._root, self._key))
        if self.client.local_key and folder is not None:
            key = [part.replace("{folder}", str(folder)) for part in self.client.local_key]
            found = {**found, **_entries(value_at(self._root, key))}
        return found

    def with_entry(self, name: str, entry: Mapping[str, Any]) -> str:
        """The text with this entry, in place of one of the same name. Raises EditError."""
        if not self.client.as_list:
            return put(self._text, self._format, (*self._key, name), dict(entry))
        if name in self.servers():
            raise EditError(f"There is an entry {name} already.")
        return append(self._text, self._format, self._key, {"name": name, **entry})

    def without_entry(self, name: str) -> str:
        """The text without this entry. Raises EditError."""
        if not self.client.as_list:
            return remove(self._text, self._format, (*self._key, name))
        items = value_at(self._root, self._key) or []
        index = next((at for at, item in enumerate(items) if isinstance(item, dict) and item.get("name") == name), None)
        if index is None:
            raise EditError(f"There is no entry {name}.")
        return remove(self._text, self._format, (*self._key, index))

    def with_question(self, id_: str, description: str) -> str:
        """The text with a question for a secret under `inputs`, as VS Code asks it. Raises EditError."""
        held = value_at(self._root, ("inputs",))
        questions = held if isinstance(held, list) else []
        if any(isinstance(one, dict) and one.get("id") == id_ for one in questions):
            return self._text
        question = {"id": id_, "type": "promptString", "description": description, "password": True}
        return put(self._text, self._format, ("inputs",), [*questions, question])

    def changed(self, text: str) -> ClientFile:
        mark = b"\xef\xbb\xbf" if (self.data or b"").startswith(b"\xef\xbb\xbf") else b""
        return ClientFile(self.client, self.path, mark + text.encode())

    def _read(self) -> dict[str, Any]:
        found = ConfigFindings(str(self.path))
        root = read(self._text, self._format, found)
        if found.problems:
            first = found.problems[0]
            raise UnreadableError(f"{first.message} (line {first.line})" if first.line else first.message, first.hint)
        if not isinstance(root, dict):
            raise UnreadableError("It is not an object.")
        return root

    def _servers_key(self) -> Key:
        newer = self.client.newer_key
        return newer if newer and isinstance(value_at(self._root, newer), dict) else self.client.key


def _entries(held: Any) -> dict[str, dict[str, Any]]:
    if isinstance(held, list):
        held = {item["name"]: item for item in held if isinstance(item, dict) and isinstance(item.get("name"), str)}
    if not isinstance(held, dict):
        return {}
    return {name: entry for name, entry in held.items() if isinstance(entry, dict)}
