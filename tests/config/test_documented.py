"""Every table of settings is frozen, camelCase in files, and refuses keys it does not know."""

from __future__ import annotations

import msgspec
import pytest

from pactgate.config.documented import Documented


class Sample(Documented, frozen=True, kw_only=True):
    some_value: int = 1


def test_files_spell_settings_in_camel_case_and_nothing_else() -> None:
    assert msgspec.convert({"someValue": 2}, Sample) == Sample(some_value=2)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"some_value": 2}, Sample)


def test_a_table_of_settings_can_not_be_changed() -> None:
    with pytest.raises(AttributeError):
        Sample().some_value = 3  # type: ignore[misc]
