"""The compiled decision is that of a naive interpreter, for random rules, callers, tools and arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.model import Config
from pactgate.config.sections.permissions import CallerClass, PermissionRule
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.core.values import Tool, Traits
from pactgate.policy.permissions.rules import Denied, Grant, Permissions, class_of
from pactgate.policy.permissions.selection import SelectedEntries, Subject
from pactgate.protocol.messages import encode_json

SERVERS: Final = ("crm", "files")
CLASSES: Final = ("finance", "ci", "rest")
GROUPS: Final = ("finance", "oncall", "dev")
SELECTORS: Final = (
    "*",
    "crm.*",
    "crm.get_?",
    "files.list",
    "server:crm",
    "server:files",
    "category:query",
    "annotation:readOnly",
    "annotation:destructive",
)
Values = Mapping[str, Any]
CONDITIONS: Final[dict[str, Callable[[Principal, Tool, Values], bool]]] = {
    "arguments.amount < 5": lambda who, tool, given: given.get("amount") is not None and given["amount"] < 5,
    "has(arguments.note)": lambda who, tool, given: given.get("note") is not None,
    "arguments.note == 'x'": lambda who, tool, given: given.get("note") == "x",
    "'oncall' in caller.groups": lambda who, tool, given: "oncall" in who.groups,
    "tool.category == 'query'": lambda who, tool, given: tool.traits.category == "query",
    "tool.server == 'crm' && arguments.amount > 2": lambda who, tool, given: (
        tool.server == "crm" and given.get("amount") is not None and given["amount"] > 2
    ),
}


def tool(server: str, name: str, category: str, annotations: dict[str, bool]) -> Tool:
    return Tool(
        server,
        name,
        f"{server}.{name}",
        f"{server}__{name}",
        encode_json({"annotations": annotations}),
        b"{}",
        "",
        traits=Traits(category=category, is_read_only=category == "query"),
    )


TOOLS = st.builds(
    tool,
    st.sampled_from(SERVERS),
    st.sampled_from(["get_a", "get_ab", "list", "run"]),
    st.sampled_from(["query", "mutation", "execution"]),
    st.dictionaries(st.sampled_from(["readOnlyHint", "destructiveHint"]), st.booleans()),
)
CONDITION = st.none() | st.sampled_from(sorted(CONDITIONS))


def rules_with(*selectors: str) -> st.SearchStrategy[list[PermissionRule]]:
    return st.lists(
        st.builds(
            lambda is_allow, selected, to, when, unless, say: PermissionRule(
                allow=selected if is_allow else None,
                deny=None if is_allow else selected,
                to=tuple(to),
                when=when,
                unless=unless,
                say=say,
            ),
            st.booleans(),
            st.lists(st.sampled_from(selectors), min_size=1, max_size=3).map(tuple),
            st.lists(st.sampled_from([*CLASSES, "*"]), min_size=1, max_size=2),
            CONDITION,
            CONDITION,
            st.none() | st.just("no"),
        ),
        max_size=6,
    )


RULES = rules_with(*SELECTORS)
PRINCIPALS = st.builds(
    lambda groups, token: Principal(
        token or "x", kind=PrincipalKind.TOKEN if token else PrincipalKind.OAUTH, groups=frozenset(groups)
    ),
    st.sets(st.sampled_from(GROUPS)),
    st.sampled_from(["", "ci", "other"]),
)
ARGUMENTS = st.fixed_dictionaries(
    {}, optional={"amount": st.integers(0, 8) | st.none(), "note": st.sampled_from(["x", "y"]), "other": st.just([1])}
)


CALLERS: Final = {
    "finance": CallerClass(groups=("finance",)),
    "ci": CallerClass(tokens=("ci",)),
    "rest": CallerClass(),
}


def config(rules: list[PermissionRule]) -> Config:
    return Config(callers=CALLERS, permissions=tuple(rules))


def class_name(who: Principal) -> str:
    if "finance" in who.groups:
        return "finance"
    return "ci" if who.kind is PrincipalKind.TOKEN and who.key == "ci" else "rest"


def selected(text: str, one: Tool) -> bool:
    kind, _, value = text.partition(":")
    if not value:
        return fnmatchcase(one.full_name, text)
    hints = {
        "readOnlyHint": b'"readOnlyHint":true' in one.definition,
        "kept": b'"destructiveHint":false' in one.definition,
    }
    is_read_only = hints["readOnlyHint"] and one.traits.is_read_only
    return {
        "server": one.server == value,
        "category": one.traits.category == value,
        "annotation": is_read_only if value == "readOnly" else not is_read_only and not hints["kept"],
    }[kind]


def naive(rules: list[PermissionRule], who: Principal, one: Tool, given: Values) -> bool:
    """Deny by default, deny overrides allow; a rule applies if it is for the class, selects the tool, and its conditions are met."""
    allowed = False
    for rule in rules:
        words = rule.allow or rule.deny or ()
        is_for = bool({"*", class_name(who)} & set(rule.classes))
        is_met = (rule.when is None or CONDITIONS[rule.when](who, one, given)) and not (
            rule.unless is not None and CONDITIONS[rule.unless](who, one, given)
        )
        if is_for and is_met and any(selected(text, one) for text in words):
            if rule.deny is not None:
                return False
            allowed = True
    return allowed


@given(RULES, PRINCIPALS, st.lists(TOOLS, max_size=5, unique_by=lambda one: one.full_name), ARGUMENTS)
def test_a_compiled_decision_is_that_of_a_naive_interpreter(
    rules: list[PermissionRule], who: Principal, tools: list[Tool], given_: dict[str, Any]
) -> None:
    permissions = Permissions(config(rules))
    key = permissions.key_of(who)
    for server in SERVERS:
        own = [one for one in tools if one.server == server]
        grants = permissions.grants(key, SelectedEntries(server, [Subject.of(one) for one in own]))
        for at, one in enumerate(own):
            compiled = grants.get(at)
            alone = permissions.decide(key, Subject.of(one))
            assert (compiled is None) == isinstance(alone, Denied), "what is listed is what a single look-up grants"
            is_allowed = compiled is not None and not isinstance(compiled.decide(encode_json(given_)), Denied)
            assert is_allowed == naive(rules, who, one, given_)
            if isinstance(alone, Grant) and compiled is not None:
                assert alone.decide(encode_json(given_)) == compiled.decide(encode_json(given_))


@given(RULES, PRINCIPALS, st.lists(TOOLS, max_size=5))
def test_a_server_with_something_that_is_allowed_can_be_reached(
    rules: list[PermissionRule], who: Principal, tools: list[Tool]
) -> None:
    permissions = Permissions(config(rules))
    key = permissions.key_of(who)
    for one in tools:
        if isinstance(permissions.decide(key, Subject.of(one)), Grant):
            assert permissions.may_reach(key, one.server)
        if permissions.has_whole(key, one.server):
            assert isinstance(permissions.decide(key, Subject.of(one)), Grant)


@given(RULES, PRINCIPALS, TOOLS, st.sampled_from(["x", [1], {"a": 1}, True]))
def test_a_type_error_never_allows_what_no_type_allows(
    rules: list[PermissionRule], who: Principal, one: Tool, odd: Any
) -> None:
    """Whatever the type of an argument, a rule with a condition on it that can't be decided allows nothing."""
    permissions = Permissions(config(rules))
    found = permissions.decide(permissions.key_of(who), Subject.of(one))
    if isinstance(found, Grant):
        decided = found.decide(encode_json({"amount": odd}))
        if not isinstance(decided, Denied):
            assert decided.is_allow
            assert decided.when is None or "amount" not in decided.when.source


@pytest.mark.parametrize(
    ("principal", "name"),
    [
        (Principal("ci"), "ci"),
        (Principal("ci", kind=PrincipalKind.OAUTH), "rest"),
        (Principal("key:ci", kind=PrincipalKind.KEY, subject="ci"), "machine"),
        (Principal("ci", kind=PrincipalKind.OAUTH, issuer="https://idp", groups=frozenset({"g"})), "staff"),
        (Principal("ci", kind=PrincipalKind.OAUTH, issuer="https://other", groups=frozenset({"g"})), "rest"),
        (Principal("anonymous", kind=PrincipalKind.ANONYMOUS), "rest"),
    ],
)
def test_a_caller_is_of_the_first_class_whose_members_all_match(principal: Principal, name: str) -> None:
    callers = {
        "ci": CallerClass(tokens=("ci",)),
        "machine": CallerClass(keys=("ci",)),
        "staff": CallerClass(groups=("g", "h"), issuer="https://idp"),
        "rest": CallerClass(),
    }
    assert class_of(principal, callers) == name
