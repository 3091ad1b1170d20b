"""Rules that have no effect, or another one than their words say, are problems with a place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pactgate.config.load import load
from tests.config.writing import loaded, problems, written

SERVERS = {"crm": {"url": "http://127.0.0.1:1/mcp"}, "files": {"url": "http://127.0.0.1:2/mcp"}}


def settings(*rules: dict[str, Any], callers: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    classes = {"finance": {"groups": ["finance"]}, "rest": {}} if callers is None else callers
    return {"mcpServers": SERVERS, "callers": classes, "permissions": [*rules], **more}


ALL = {"allow": "*", "to": ["finance", "rest"]}


def test_the_rules_of_the_design_are_accepted(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        settings(
            {
                "allow": ["crm.get_*", "category:query", "server:files", "annotation:readOnly", "effect:network"],
                "to": ["finance"],
            },
            {"allow": "crm.refund", "to": "finance", "when": "arguments.amount < 500", "say": "Ask Ann."},
            {"deny": "category:execution", "to": "*", "unless": "'oncall' in caller.groups", "say": "Ask on-call."},
            {"allow": "crm+file:///public/*", "to": "rest"},
        ),
    )
    assert config.warnings == ()
    assert [rule.say for rule in config.permissions] == [None, "Ask Ann.", "Ask on-call.", None]


def test_each_rule_knows_its_place_in_the_file(tmp_path: Path) -> None:
    rules = [{"allow": "*", "to": "*"}, {"deny": "a.x", "to": "*"}]
    text = json.dumps({"mcpServers": SERVERS, "permissions": rules}, indent=1)
    config = load(written(tmp_path, text), environ={})
    assert config.rule_places == ("pactgate.json:11:3", "pactgate.json:15:3")


@pytest.mark.parametrize(
    ("rule", "path", "word"),
    [
        ({"allow": "*", "to": ["finanse"]}, "permissions[1].to[0]", '"finance"'),
        ({"allow": "*", "to": "finanse"}, "permissions[1].to", '"finance"'),
        ({"allow": "*"}, "permissions[1].to", "missing"),
        ({"allow": "*", "to": []}, "permissions[1].to", "never applies"),
        ({"allow": [], "to": "*"}, "permissions[1].allow", "never applies"),
        ({"to": "*"}, "permissions[1]", "either allow or deny"),
        ({"allow": "*", "deny": "*", "to": "*"}, "permissions[1]", "either allow or deny"),
        ({"allow": ["server:crn"], "to": "*"}, "permissions[1].allow[0]", '"crm"'),
        ({"allow": "category:qury", "to": "*"}, "permissions[1].allow", '"query"'),
        ({"allow": "annotation:readonly", "to": "*"}, "permissions[1].allow", '"readOnly"'),
        ({"allow": "effect:net", "to": "*"}, "permissions[1].allow", "network"),
        ({"allow": "categori:query", "to": "*"}, "permissions[1].allow", '"category"'),
        ({"allow": "pactgate.config_set", "to": "*"}, "permissions[1].allow", "role admin"),
        ({"allow": "*", "to": "*", "when": "arguments.amount <"}, "permissions[1].when", "CEL"),
        ({"allow": "*", "to": "*", "when": "amount < 5"}, "permissions[1].when", "arguments.*, caller.*"),
        ({"allow": "*", "to": "*", "unless": "caller.groups == 'x'"}, "permissions[1].unless", "list"),
        ({"allow": "*", "to": "*", "unless": "caller.issuer < 5"}, "permissions[1].unless", "no types"),
        ({"allow": "*", "to": "*", "when": "tool.category == 'querry'"}, "permissions[1].when", "query, mutation"),
        ({"allow": "*", "to": "*", "when": "'oauth2' != caller.kind"}, "permissions[1].when", "oauth"),
        ({"allow": "*", "to": "*", "when": "1 < 2"}, "permissions[1].when", "always the same"),
        ({"allow": "crm.*", "to": "*", "say": "no"}, "permissions[1].say", "Nobody is ever told"),
        ({"allow": "crm.*", "to": "*", "sey": "no"}, "permissions[1].sey", '"say"'),
    ],
)
def test_a_rule_that_says_nothing_or_nonsense_is_refused_with_its_place(
    rule: dict[str, Any], path: str, word: str, tmp_path: Path
) -> None:
    [problem] = problems(tmp_path, settings(ALL, rule))
    assert problem.path == path
    assert word in f"{problem.message} {problem.hint}"
    assert problem.line is not None


@pytest.mark.parametrize(
    ("denial", "rule", "is_shadowed"),
    [
        ({"deny": "server:crm", "to": "*"}, {"allow": "crm.get_*", "to": "finance"}, True),
        ({"deny": "crm.*", "to": ["finance", "rest"]}, {"allow": "crm.get_?", "to": "finance"}, True),
        ({"deny": "*", "to": "finance"}, {"allow": ["crm.x", "category:query"], "to": "finance"}, True),
        ({"deny": "crm.*", "to": "finance"}, {"allow": "crm.x", "to": "*"}, False),
        ({"deny": "crm.*", "to": "*"}, {"allow": ["crm.x", "files.y"], "to": "*"}, False),
        ({"deny": "crm.*", "to": "*"}, {"allow": "server:crm", "to": "*"}, False),  # resources are left
        ({"deny": "crm.g?t", "to": "*"}, {"allow": "crm.g*t", "to": "*"}, False),
        ({"deny": "crm.*", "to": "*", "when": "caller.kind == 'key'"}, {"allow": "crm.x", "to": "*"}, False),
        ({"deny": "crm.*", "to": "*"}, {"deny": "crm.x", "to": "*"}, True),
        ({"deny": "crm.*", "to": "*"}, {"deny": "crm.x", "to": "*", "say": "Never."}, False),
    ],
)
def test_a_rule_of_which_everything_is_denied_never_applies(
    denial: dict[str, Any], rule: dict[str, Any], is_shadowed: bool, tmp_path: Path
) -> None:
    given = settings(denial, rule, {"allow": "files.z", "to": ["finance", "rest"]})
    if is_shadowed:
        [problem] = problems(tmp_path, given)
        assert (problem.path, problem.message) == ("permissions[1]", "This rule never applies.")
        assert "permissions[0]" in problem.hint
    else:
        assert loaded(tmp_path, given).permissions


@pytest.mark.parametrize("pattern", ["crn.get_*", "get_order", "crn+file:///*", "z*"])
def test_a_pattern_that_no_server_can_match_is_a_warning(pattern: str, tmp_path: Path) -> None:
    [warning] = loaded(tmp_path, settings(ALL, {"allow": pattern, "to": "*"})).warnings
    assert warning.path == "permissions[1].allow"


IDP, OTHER = "https://idp.example", "https://other.example"
AUTH = {
    "tokens": {"ops": {"token": "9c1e7b52d04f8a63-ops"}},
    "issuers": [{"issuer": one, "audiences": ["gateway"]} for one in (IDP, OTHER)],
}


def classes(**callers: Any) -> dict[str, Any]:
    return settings({"allow": "*", "to": [*callers]}, callers=callers, auth=AUTH)


@pytest.mark.parametrize(
    ("first", "late"),
    [
        ({}, {"groups": ["x"]}),
        ({"groups": ["x", "y"], "issuer": IDP}, {"groups": ["x"], "issuer": IDP}),
        ({"issuer": IDP}, {"issuer": IDP, "groups": ["x"]}),
        ({"keys": ["k"], "tokens": ["ops"]}, {"tokens": ["ops"]}),
        ({}, {"groups": ["x"], "tokens": ["ops"]}),
        ({"keys": ["k"]}, {"issuer": IDP, "tokens": ["ops"]}),
        ({"keys": ["k"]}, {"issuer": IDP, "keys": ["ops"]}),
        ({"keys": ["k"]}, {"issuer": "keys", "tokens": ["ops"]}),
        ({"keys": ["k"]}, {"issuer": "socket", "groups": ["x"]}),
    ],
)
def test_a_class_that_nobody_can_be_of_is_refused(first: dict[str, Any], late: dict[str, Any], tmp_path: Path) -> None:
    found = problems(tmp_path, classes(first=first, late=late))
    assert {(one.path, one.message) for one in found} == {("callers.late", "No client can be of this class.")}


@pytest.mark.parametrize(
    ("first", "late"),
    [
        ({"groups": ["x"], "issuer": IDP}, {"groups": ["x", "y"], "issuer": IDP}),
        ({"groups": ["x"], "issuer": IDP}, {"groups": ["x"], "issuer": OTHER}),
        ({"keys": ["k"]}, {"keys": ["k"], "tokens": ["ops"]}),
        ({"issuer": "keys", "keys": ["k"], "groups": ["x"]}, {"issuer": "keys"}),
        ({"issuer": "socket"}, {"groups": ["x"], "keys": ["k"]}),
    ],
)
def test_a_class_that_somebody_can_be_of_is_accepted(
    first: dict[str, Any], late: dict[str, Any], tmp_path: Path
) -> None:
    assert loaded(tmp_path, classes(first=first, late=late)).warnings == ()


def test_an_issuer_of_a_class_is_one_of_those_that_are_configured(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, classes(one={"issuer": f"{IDP}/"}))
    assert (problem.path, problem.hint) == ("callers.one.issuer", f'Did you mean "{IDP}"?')


def test_groups_of_no_issuer_are_warned_about_where_there_are_several(tmp_path: Path) -> None:
    """The provider of a partner may know a group of the same name."""
    [warning] = loaded(tmp_path, classes(one={"groups": ["finance"]})).warnings
    assert warning.path == "callers.one.groups"


def test_a_class_names_tokens_that_exist(tmp_path: Path) -> None:
    auth = {"tokens": {"ops": {"token": "9c1e7b52d04f8a63-ops"}}}
    for name in ("ops", "anonymous", "local", "library", "generated"):
        assert loaded(
            tmp_path, settings({"allow": "*", "to": "one"}, callers={"one": {"tokens": [name]}}, auth=auth)
        ).callers
    [problem] = problems(
        tmp_path, settings({"allow": "*", "to": "one"}, callers={"one": {"tokens": ["opps"]}}, auth=auth)
    )
    assert (problem.path, problem.hint) == ("callers.one.tokens[0]", 'Did you mean "ops"?')


def test_a_class_that_no_rule_names_is_a_warning(tmp_path: Path) -> None:
    [warning] = loaded(tmp_path, settings({"allow": "*", "to": "finance"})).warnings
    assert (warning.path, warning.message) == ("callers.rest", "No rule is for this class.")


def test_rules_can_not_be_changed_at_run_time() -> None:
    """Only the operator's file gives rights: a client with the role admin can't give itself more."""
    from pactgate.config.change import is_settable

    assert not is_settable(("permissions",))
    assert not is_settable(("callers", "finance", "groups"))
