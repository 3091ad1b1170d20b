"""The backoff between attempts."""

from __future__ import annotations

import pytest

from pactgate.catalog.backoff import Backoff


@pytest.mark.requirement("S0/ECO-101")
def test_pauses_grow_are_capped_and_jittered() -> None:
    backoff = Backoff(first_s=1, factor=2, cap_s=30)
    for retry in range(1, 12):
        full = min(30, 2 ** (retry - 1))
        drawn = [backoff.before(retry) for _ in range(50)]
        assert all(full / 2 <= pause <= full for pause in drawn)
        assert len(set(drawn)) > 1


def test_the_pauses_after_failed_series_grow_to_minutes_and_stay_there_for_days() -> None:
    backoff = Backoff()
    for count, full in [(1, 10), (2, 20), (3, 40), (4, 80), (5, 160), (6, 300), (7, 300), (10_000, 300)]:
        drawn = [backoff.after_series(count) for _ in range(50)]
        assert all(full / 2 <= pause <= full for pause in drawn)
        assert len(set(drawn)) > 1
    assert backoff.before(10_000) <= backoff.cap_s
