"""GW-046."""

from __future__ import annotations

import re
from typing import Any, Final

from pactgate.conformance.message import FROM_SERVER, RESULTS, RecordedMessage, as_list
from pactgate.conformance.methods import LISTS
from pactgate.conformance.rule import SessionRule, pointer, texts_in

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls other than tab and line ends
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"  # fillers, joiners, marks of direction
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"  # musical controls, tags, supplementary variation selectors
    "|(?<=[A-Za-z0-9 ])[\u200c\u200d]|[\u200c\u200d](?=[A-Za-z0-9 ])"  # joiners, which only some scripts and emoji need
)
_MAX_TEXTS: Final = 20_000


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
        for at, text in texts_in(value, place, _MAX_TEXTS, with_names=True):
            found = None if text.isascii() and text.isprintable() else _HIDDEN.search(text)
            if found is not None:
                self.fault(message, at, f"The text holds the invisible character {_spelt(found[0])}.")


def _spelt(letter: str) -> str:
    return f"U+{ord(letter):04X}"
