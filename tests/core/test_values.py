"""The values that travel are frozen."""

from __future__ import annotations

import pytest

from pactgate.core.principal import Principal
from pactgate.core.values import ServerStatus
from tests.support.callers import caller


def test_a_caller_can_not_be_changed_on_its_way() -> None:
    with pytest.raises(AttributeError):
        caller().principal = Principal("somebody else")  # type: ignore[misc]


def test_the_states_of_a_server_are_spelt_as_the_requirement_document_spells_them() -> None:
    assert [status.value for status in ServerStatus] == ["connected", "disconnected", "connecting", "error", "disabled"]
