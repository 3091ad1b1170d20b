"""A change that gives somebody more is never missed, whichever class, condition, pattern or group it is made by."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.model import Config
from pactgate.config.sections.permissions import CallerClass, PermissionRule
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.core.values import Tool
from pactgate.policy.permissions.comparison import Change, class_pairs, compare, reach_of
from pactgate.policy.permissions.rules import Grant, Permissions, class_of
from pactgate.policy.permissions.selection import Subject
from pactgate.protocol.messages import encode_json
from tests.policy.permissions.test_rules import ARGUMENTS, PRINCIPALS, SELECTORS, TOOLS, rules_with, tool
from tests.support.permitted import allow, deny

CLASSES = st.permutations(
    [
        ("finance", CallerClass(groups=("finance",))),
        ("ci", CallerClass(tokens=("ci",))),
        ("dev", CallerClass(groups=("dev", "oncall"))),
    ]
).flatmap(lambda all_: st.sampled_from([dict(all_), dict(all_[:2]), {**dict(all_), "rest": CallerClass()}]))
URIS = st.sampled_from(["crm+file:///a", "crm+file:///secret/a", "files+x:1", "crm.get_prompt"])
RULES = rules_with(*SELECTORS, "crm+*", "crm+file:///*", "crm+file:///secret/*", "*secret*", "crm.*a", "files+x:?")
CONFIGS = st.builds(lambda callers, rules: Config(callers=callers, permissions=tuple(rules)), CLASSES, RULES)


@st.composite
def changed(draw: st.DrawFn) -> tuple[Config, Config]:
    """A configuration, and one with other rules or with some rules less and more, and perhaps with other classes."""
    old = draw(CONFIGS)
    kept = tuple(rule for rule in old.permissions if draw(st.booleans()))
    more = tuple(draw(RULES))[: draw(st.integers(0, 2))]
    callers = draw(st.just(old.callers) | CLASSES)
    return old, Config(callers=callers, permissions=(*more, *kept))


def permissions_of(config: Config) -> Permissions | None:
    return Permissions(config) if config.permissions else None


def changes(old: Config, new: Config, *tools: Tool) -> dict[tuple[str | None, str | None], list[Change]]:
    both = [(one, one) for one in tools]
    return {
        pair: [*compare(pair, permissions_of(old), permissions_of(new), both)]
        for pair in class_pairs(old.callers, new.callers)
    }


def is_allowed(config: Config, who: Principal, subject: Subject, arguments: bytes) -> bool:
    permissions = permissions_of(config)
    if permissions is None:
        return True
    found = permissions.decide(permissions.key_of(who), subject)
    return isinstance(found, Grant) and isinstance(found.decide(arguments), type(permissions.rules[0]))


REAL = PRINCIPALS.filter(lambda who: who.kind is not PrincipalKind.TOKEN or not who.groups)
"""Tokens of the configuration have no groups."""


@given(changed(), REAL, TOOLS, st.none() | URIS, ARGUMENTS)
def test_who_may_do_more_than_before_is_of_a_class_that_gains(
    both: tuple[Config, Config], who: Principal, one: Tool, uri: str | None, given_: dict[str, Any]
) -> None:
    old, new = both
    subject = Subject.of(one) if uri is None else Subject(uri.split("+")[0].split(".")[0], uri)
    arguments = encode_json(given_)
    found = changes(old, new, one)[class_of(who, old.callers), class_of(who, new.callers)]
    was, now = is_allowed(old, who, subject, arguments), is_allowed(new, who, subject, arguments)
    assert was or not now or any(change.gains for change in found)
    assert now or not was or any(change.loses for change in found)


@given(CONFIGS, TOOLS)
def test_nothing_differs_between_equal_configurations(config: Config, one: Tool) -> None:
    assert not any(changes(config, config, one).values())


def of(*rules: PermissionRule, **callers: CallerClass) -> Config:
    return Config(callers=callers, permissions=rules)


GET, DROP = tool("crm", "get_a", "query", {}), tool("crm", "drop", "mutation", {})
ALL, LOW, HIGH = allow("*", to="*"), "arguments.amount < 5", "arguments.amount < 9"


@pytest.mark.parametrize(
    ("old", "new", "gains", "loses"),
    [
        ([ALL], [ALL, deny("crm.drop", to="*")], [], ["crm.drop"]),
        ([ALL, deny("crm.drop", to="*", when=LOW)], [allow("*", to="*", when=LOW)], ["crm.drop"], ["crm.get_a", "crm.drop"]),
        ([allow("crm.drop", to="*", when=LOW)], [allow("crm.drop", to="*", when=HIGH)], ["crm.drop"], ["crm.drop"]),
        ([ALL, deny("*secret*", to="*")], [ALL], ["*secret*"], []),
        ([allow("crm.*", to="*")], [allow("server:crm", to="*")], ["server:crm"], []),
        ([allow("server:crm", to="*")], [allow("crm.*", to="*")], [], ["server:crm"]),
        ([allow("crm.get_a", to="*")], [allow("crm.get_*", to="*")], ["crm.get_*"], []),
        ([allow("crm.*", to="*")], [allow("crm.*", "crm.get_*", to="*")], [], []),
        ([ALL, deny("crm.x_*", to="*")], [ALL, deny("crm.x*", to="*")], [], ["crm.x*"]),
        ([], [ALL], [], []),
        ([], [allow("crm.*", to="*")], [], ["*"]),
    ],
)  # fmt: skip
def test_a_class_gains_and_loses(
    old: list[PermissionRule], new: list[PermissionRule], gains: list[str], loses: list[str]
) -> None:
    found = [change for some in changes(of(*old), of(*new), GET, DROP).values() for change in some]
    assert ([one.name for one in found if one.gains], [one.name for one in found if one.loses]) == (gains, loses)


@pytest.mark.parametrize(
    ("before", "after", "pair"),
    [
        ({"one": CallerClass(groups=("g",))}, {"one": CallerClass(groups=("g", "h"))}, (None, "one")),
        ({"one": CallerClass(tokens=("ci",))}, {"one": CallerClass(tokens=("ci", "anonymous"))}, (None, "one")),
        ({"one": CallerClass(keys=("k",))}, {"one": CallerClass(keys=("k", "l"))}, (None, "one")),
        ({"one": CallerClass(issuer="https://a", groups=("g",))}, {"one": CallerClass(groups=("g",))}, (None, "one")),
    ],
)
def test_who_comes_into_a_class_gains_what_it_has(
    before: dict[str, CallerClass], after: dict[str, CallerClass], pair: tuple[str | None, str | None]
) -> None:
    rules = (allow("crm.*", to="one"),)
    found = changes(Config(callers=before, permissions=rules), Config(callers=after, permissions=rules), GET)
    assert [one.gains for one in found[pair]] == [True]
    assert not found["one", "one"]


def test_an_order_of_classes_matters_to_those_who_would_be_of_both() -> None:
    one, two = ("one", CallerClass(groups=("g",))), ("two", CallerClass(groups=("h",)))
    assert ("one", "two") in class_pairs(dict([one, two]), dict([two, one]))
    assert class_pairs(dict([one, two]), dict([one, two])) == [("one", "one"), ("two", "two"), (None, None)]


def test_a_view_of_a_class_is_no_right() -> None:
    assert class_pairs({"one": CallerClass(view="v")}, {"one": CallerClass()}) == [("one", "one")]


def test_what_a_class_has_depends_on_conditions_but_on_none_that_is_about_the_tool() -> None:
    rules = (
        allow("crm.*", to="*", when="tool.category == 'query'"),
        allow("crm.drop", to="*", when="'g' in caller.groups"),
    )
    permissions = Permissions(of(*rules))
    assert [reach_of(permissions, None, one).answer for one in (GET, DROP)] == ["yes", "if"]
    assert [*map(str, reach_of(permissions, None, DROP).clauses)] == ["allow when 'g' in caller.groups"]
