"""The table of methods agrees with what the gateway itself serves."""

from __future__ import annotations

from pactgate.conformance.methods import CHANGE_SIGNALS, INPUT_METHODS, INPUT_TAKERS, LISTS, REVISIONS
from pactgate.protocol.versions import KNOWN_VERSIONS, METHODS


def test_what_the_gateway_serves_exists_in_the_same_revisions() -> None:
    assert {method: REVISIONS[method] for method in METHODS} == METHODS


def test_every_revision_is_a_known_one_and_every_method_has_one() -> None:
    for revisions in REVISIONS.values():
        assert revisions
        assert revisions <= set(KNOWN_VERSIONS)


def test_the_smaller_tables_name_methods_of_the_large_one() -> None:
    assert {*LISTS, *CHANGE_SIGNALS, *CHANGE_SIGNALS.values(), *INPUT_METHODS, *INPUT_TAKERS} <= REVISIONS.keys()
    assert LISTS.keys() == CHANGE_SIGNALS.keys()
