"""The states of a server follow the table and nothing else."""

from __future__ import annotations

import pytest

from pactgate.catalog.lifecycle import TRANSITIONS, IllegalTransitionError, Trigger, next_status
from pactgate.core.values import ServerStatus


@pytest.mark.requirement("S0/ECO-201")
def test_a_disabled_server_can_only_be_enabled() -> None:
    assert [trigger for status, trigger in TRANSITIONS if status is ServerStatus.DISABLED] == [Trigger.ENABLED]
    assert next_status(ServerStatus.DISABLED, Trigger.ENABLED) is ServerStatus.DISCONNECTED


@pytest.mark.requirement("S0/ECO-200")
def test_only_an_attempt_leads_to_connected() -> None:
    ways = {status for (status, trigger), after in TRANSITIONS.items() if after is ServerStatus.CONNECTED}
    assert ways == {ServerStatus.CONNECTING}


def test_every_state_can_be_stopped_or_is_disabled() -> None:
    for status in ServerStatus:
        if status is not ServerStatus.DISABLED:
            assert next_status(status, Trigger.STOPPED) is ServerStatus.DISCONNECTED
            assert next_status(status, Trigger.DISABLED) is ServerStatus.DISABLED


def test_a_step_without_a_row_is_refused() -> None:
    with pytest.raises(IllegalTransitionError):
        next_status(ServerStatus.DISABLED, Trigger.CONNECTED)
