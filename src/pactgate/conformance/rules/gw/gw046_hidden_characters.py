"""GW-046."""

from __future__ import annotations

from typing import Any

from pactgate.conformance.message import FROM_SERVER, RESULTS, RecordedMessage, as_list
from pactgate.conformance.methods import LISTS
from pactgate.conformance.rule import SessionRule, pointer, texts_in
from pactgate.core.hidden_characters import MAX_TEXTS, find_hidden


class HiddenCharacters(SessionRule):
    """What a server tells of itself has no invisible characters.

    What it checks
        Names, titles, descriptions and schemas of tools, prompts, resources and templates, and the `instructions` of the
        server, hold no control characters, no marks of direction, no zero-width characters, no fillers and no tags. Joiners
        between letters of scripts that need them, and in emoji, are fine.

    Why
        A model reads what a person who approves the tool can't see.

    How to fix
        Remove them; look at the place with a hex viewer, since an editor will not show it.

    Reference
        Tools, Security Considerations; Unicode Technical Report 36; all revisions.
    """

    code = "GW-046"
    spec = "server/tools#security-considerations"
    category = "security"
    selects = RESULTS & FROM_SERVER
    methods = frozenset({*LISTS, "initialize", "server/discover"})

    def on_message(self, message: RecordedMessage) -> None:
        self.seen += 1
        if message.method in LISTS:
            member = LISTS[message.method][0]
            for number, item in enumerate(as_list(message.result.get(member))):
                self._check(message, pointer("result", member, number), item)
        else:
            self._check(message, "/result/instructions", message.result.get("instructions"))

    def _check(self, message: RecordedMessage, place: str, value: Any) -> None:
        for at, text in texts_in(value, place, MAX_TEXTS, with_names=True):
            found = find_hidden(text)
            if found is not None:
                self.fault(message, at, f"The text holds the invisible character {found}.")
