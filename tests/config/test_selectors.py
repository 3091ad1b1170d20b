"""What a selector covers, and which servers can have something of it."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.selectors import check_selector, matches, read_selector, servers_of

PATTERNS = st.text(alphabet="ab.*?+", min_size=1, max_size=8)
NAMES = st.text(alphabet="ab.+", min_size=1, max_size=8)


@given(PATTERNS, NAMES)
def test_patterns_are_those_of_the_shell_without_brackets(pattern: str, name: str) -> None:
    assert matches(pattern, name) == fnmatchcase(name, pattern)


def test_a_name_of_any_length_is_matched_in_one_pass() -> None:
    """URIs are the client's. If each star were tried at each place again, this would take years."""
    assert not matches("*/*/*/*private*", "a/" * 50_000)


@given(PATTERNS, PATTERNS, NAMES)
def test_what_covers_a_pattern_matches_whatever_it_matches(wide: str, narrow: str, name: str) -> None:
    if read_selector(wide).covers(read_selector(narrow)) and matches(narrow, name):
        assert matches(wide, name)


@given(PATTERNS, st.lists(st.sampled_from(["a", "b", "ab"]), unique=True), NAMES)
def test_a_name_of_a_server_that_a_pattern_can_not_mean_is_not_matched(
    pattern: str, servers: list[str], name: str
) -> None:
    for server in servers:
        for full in (f"{server}.{name}", f"{server}+{name}"):
            if server not in servers_of(read_selector(pattern), servers):
                assert not matches(pattern, full)


@pytest.mark.parametrize(
    "text", ["crm.get_*", "crm+file:///*", "crm+x:y", "server:crm", "category:scan", "annotation:openWorld", "*"]
)
def test_selectors_of_every_kind_are_accepted(text: str) -> None:
    assert check_selector(text) is None


@pytest.mark.parametrize("text", ["group:x", "category:", "effect:fly", "annotation:ReadOnly", "pactgate.explain"])
def test_other_words_are_refused(text: str) -> None:
    assert check_selector(text) is not None
