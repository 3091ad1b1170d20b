"""LINT-004."""

from __future__ import annotations

from typing import Final

from pactgate.conformance.rule import DefinitionRule, quoted
from pactgate.conformance.schemas import encoded

_DESCRIPTION_CHARS: Final = 1024
_MAX_TOOLS: Final = 128
_MAX_BYTES: Final = 100_000
"""About 25,000 tokens."""


class DefinitionsLarge(DefinitionRule):
    """Tool definitions are small: descriptions of at most 1,024 characters, 128 tools, 100,000 bytes in all.

    What it checks
        The length of each tool's description, the number of tools, and the size of all definitions as JSON, which is always
        noted.

    Why
        The chat API of OpenAI refuses descriptions of more than 1,024 characters and more than 128 tools; Claude Code cuts
        descriptions at 2,048. Every definition is part of every request to the model: 100,000 bytes are about 25,000 tokens.

    How to fix
        Move examples and manuals to a resource or a prompt. Offer fewer tools, or several servers.

    Reference
        Tools, Data Types; the limits of the model APIs for functions; all revisions.
    """

    code = "LINT-004"
    spec = "server/tools#tool"

    def at_end(self) -> None:
        size_bytes, last = 0, None
        for _, name, item, place in self.definitions():
            self.seen += 1
            size_bytes += len(encoded(item.definition) or b"")
            text = item.definition.get("description")
            if isinstance(text, str) and len(text) > _DESCRIPTION_CHARS:
                said = f"The description of {quoted(name)} has {len(text)} characters, more than {_DESCRIPTION_CHARS}."
                self.fault(item.message, f"{place}/description", said)
            last = item.message, place
        if last is None:
            return
        self.note(f"The definitions of {self.seen} tool{'s' * (self.seen != 1)} have {size_bytes} bytes.")
        if self.seen > _MAX_TOOLS:
            self.fault(*last, f"There are {self.seen} tools, more than {_MAX_TOOLS}.")
        if size_bytes > _MAX_BYTES:
            self.fault(*last, f"All tool definitions together have {size_bytes} bytes, more than {_MAX_BYTES}.")
