"""The cost of tracing is measured on real parts."""

from __future__ import annotations

import pytest

from bench import tracing


def test_both_rows_are_measured_and_tracing_costs_more_than_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_TIMES", 500)
    off, all_ = tracing.measure_tracing()
    assert (off.name, all_.name) == (tracing.OFF, tracing.ALL)
    assert 0 <= off.cpu_us < all_.cpu_us
