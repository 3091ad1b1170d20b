"""Users read what each gate does in words, not in names of the code."""

from __future__ import annotations

from pactgate.app import build
from pactgate.audit.gate_texts import GATE_TEXTS, gate_text
from pactgate.config.model import Config


def test_every_gate_has_its_words() -> None:
    gates = [gate.name for gate in build(Config(), lambda event: None).tool_call.gates]
    assert set(GATE_TEXTS) == set(gates)


def test_a_gate_that_was_passed_is_told_in_the_past() -> None:
    assert (gate_text("dispatch", is_past=True), gate_text("dispatch", is_past=False)) == (
        "called the server",
        "call the server",
    )
    assert gate_text("unheard_of", is_past=True) == "unheard_of"
