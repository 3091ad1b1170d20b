"""LINT-002."""

from __future__ import annotations

import re
from typing import Final

from pactgate.conformance.rule import DefinitionRule, quoted

_MAX_CHARS: Final = 64
_ACCEPTED: Final = re.compile(r"[A-Za-z0-9_-]*")


class ToolNameRefused(DefinitionRule):
    """Tool names have at most 64 characters, and only letters, digits, _ and -.

    What it checks
        The name of each listed tool. The specification also allows dots and 128 characters (GW-040); many clients pass names
        on to a model API as they are.

    Why
        The APIs of OpenAI and Anthropic refuse the whole request for one such name, so that no tool of any server works. Clients
        that put the name of the server in front have even less room.

    How to fix
        Rename the tool, in at most about 40 characters.

    Reference
        Tools, Tool Names; the limits of the model APIs for function names; all revisions.
    """

    code = "LINT-002"
    spec = "server/tools#tool-names"

    def at_end(self) -> None:
        for _, name, item, place in self.definitions():
            self.seen += 1
            if len(name) > _MAX_CHARS:
                text = f"The name {quoted(name)} has {len(name)} characters; clients refuse more than {_MAX_CHARS}."
                self.fault(item.message, f"{place}/name", text)
            elif not _ACCEPTED.fullmatch(name):
                text = (
                    f"The name {quoted(name)} has characters that clients refuse: only A-Z, a-z, 0-9, _ and - are safe."
                )
                self.fault(item.message, f"{place}/name", text)
