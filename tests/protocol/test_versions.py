"""Which revision belongs to which era, and which method exists where."""

from __future__ import annotations

import pytest

from pactgate.protocol import versions
from pactgate.protocol.versions import Era


@pytest.mark.parametrize(
    ("version", "era"),
    [
        ("2024-11-05", Era.LEGACY),
        ("2025-03-26", Era.LEGACY),
        ("2025-06-18", Era.LEGACY),
        ("2025-11-25", Era.LEGACY),
        ("2026-07-28", Era.MODERN),
        ("2026-07-29", None),
        ("", None),
        ("DRAFT", None),
    ],
)
def test_a_revision_belongs_to_one_era_or_is_unknown(version: str, era: Era | None) -> None:
    assert versions.era_of(version) is era
    assert (version in versions.KNOWN_VERSIONS) == (era is not None)


def test_the_newest_of_each_era_is_the_last_of_its_list() -> None:
    assert (versions.LATEST_LEGACY, versions.LATEST_MODERN) == ("2025-11-25", "2026-07-28")
    assert list(versions.KNOWN_VERSIONS) == sorted(versions.KNOWN_VERSIONS)


@pytest.mark.parametrize("version", versions.LEGACY_VERSIONS)
def test_a_legacy_version_that_is_asked_for_is_given(version: str) -> None:
    assert versions.negotiate(version) == version


@pytest.mark.parametrize("version", ["2026-07-28", "1.0", "2099-01-01", ""])
def test_any_other_version_is_answered_with_the_newest_legacy_one(version: str) -> None:
    assert versions.negotiate(version) == "2025-11-25"


@pytest.mark.parametrize(
    ("method", "in_legacy", "in_modern"),
    [
        ("initialize", True, False),
        ("ping", True, False),
        ("logging/setLevel", True, False),
        ("resources/subscribe", True, False),
        ("resources/unsubscribe", True, False),
        ("server/discover", False, True),
        ("subscriptions/listen", False, True),
        ("tools/call", True, True),
        ("resources/read", True, True),
        ("completion/complete", True, True),
        ("Tools/Call", False, False),
        ("sampling/createMessage", False, False),
        ("notifications/initialized", False, False),
    ],
)
def test_a_method_exists_in_the_revisions_that_define_it(method: str, in_legacy: bool, in_modern: bool) -> None:
    assert {versions.exists(method, version) for version in versions.LEGACY_VERSIONS} == {in_legacy}
    assert {versions.exists(method, version) for version in versions.MODERN_VERSIONS} == {in_modern}
    assert not versions.exists(method, "2031-01-01")


def test_what_is_cached_or_mirrored_are_modern_methods() -> None:
    for method in versions.CACHEABLE | versions.NAMED_BY.keys():
        assert versions.exists(method, versions.LATEST_MODERN)


@pytest.mark.parametrize("method", ["com.example/do", "x/y", "tool/call", "tools/calls", "résumé/read", "x/ﬁle"])
def test_a_method_no_revision_has_may_be_one_of_an_extension(method: str) -> None:
    assert versions.is_foreign(method)


@pytest.mark.parametrize(
    "method",
    [
        *versions.METHODS,
        "Tools/Call",
        "tools/call\n",
        "\ufefftools/call",
        "tools\u00ad/call",
        "\uff54\uff4f\uff4f\uff4c\uff53\uff0f\uff43\uff41\uff4c\uff4c",
        "resource\u017f/read",
        "logging/setlevel",
        "SAMPLING/createMessage",
        "notifications/Initialized",
        "task\u200bs/anything",
        "x/" + "y" * 1000,
    ],
)
def test_what_looks_like_a_method_of_the_protocol_is_none_of_an_extension(method: str) -> None:
    assert not versions.is_foreign(method)
