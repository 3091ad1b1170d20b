"""LINT-001."""

from __future__ import annotations

from pactgate.conformance.rule import DefinitionRule, quoted


class DescriptionMissing(DefinitionRule):
    """Every tool and every prompt has a description.

    What it checks
        `description` of each listed tool and prompt is a text that is not empty.

    Why
        A model chooses by the description. Without one it guesses by the name, and some clients show the tool without a line.

    How to fix
        Say in one sentence what it does, what it needs and what it returns.

    Reference
        Tools, Data Types; Prompts, Data Types; all revisions. The specification does not require it.
    """

    code = "LINT-001"
    spec = "server/tools#tool"
    lists = ("tools/list", "prompts/list")

    def at_end(self) -> None:
        for kind, name, item, place in self.definitions():
            self.seen += 1
            text = item.definition.get("description")
            if not isinstance(text, str) or not text.strip():
                self.fault(item.message, place, f"The {kind} {quoted(name)} has no description.")
