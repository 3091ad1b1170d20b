"""What is denied does not exist, on every path by which a client can ask for it (D24)."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
from msgspec.structs import replace

from pactgate.config.model import ResponseSection
from pactgate.config.sections.audit import AuditSection
from pactgate.config.sections.auth import Auth, Token
from pactgate.config.sections.cache import Cache, CacheRule
from pactgate.config.sections.limits import Limits, Timeouts
from pactgate.config.sections.listen import ListenSection
from pactgate.core.events import PermissionUndecided
from pactgate.core.failures import ENVELOPE_KEY
from pactgate.policy.permissions.rules import Permissions
from pactgate.protocol.versions import Era
from tests.pipeline.conftest import Inside, open_gateway, text_of
from tests.support.asking import SAID, asker, asking
from tests.support.callers import caller
from tests.support.eventually import eventually
from tests.support.hearers import Ear, changing, legacy_caller, listening, modern_caller
from tests.support.permitted import ALLOWED, allow, config_with, deny, grouped, listed, permitting, some, written
from tests.support.raw_http import RawClient, get, post
from tests.support.servers import UNLIMITED, scripted

DENIED, UNKNOWN = "say", "sax"
SPELLINGS = ("a.{}", "a__{}", "{}")
ADMIN = frozenset({"admin"})


@asynccontextmanager
async def guarded(*rules: Any, **settings: Any) -> AsyncIterator[Inside]:
    """Servers `a` and `b`; the class `some` may use ALLOWED of `a`."""
    async with open_gateway(
        changing("a", "legacy"),
        changing("b", "modern"),
        rate_limits=UNLIMITED,
        **permitting(allow(*ALLOWED), *rules),
        **settings,
    ) as inside:
        await inside.ask("tools/list")
        yield inside


async def heard(inside: Inside, server: str = "a") -> list[str]:
    """The names of the tools that the server was really asked to run."""
    reply = await inside.call(f"{server}.heard", who=some())
    said = json.loads(text_of(reply))
    return [each["params"]["name"] for each in said if each["method"] == "tools/call"]


async def test_lists_have_what_the_rules_allow_and_are_private_to_the_client() -> None:
    async with guarded() as inside:
        for scope, prefix in ((None, "a__"), ("a", "")):
            who = some(scope=scope)
            reply = await inside.ask("tools/list", who=who)
            assert sorted(listed(reply, "tools")) == sorted(
                f"{prefix}{name}" for name in ("heard", "steps", "later", "add")
            )
            assert b'"cacheScope":"private"' in (reply.result or b"")
            assert listed(await inside.ask("prompts/list", who=who), "prompts") == [f"{prefix}poem"]
            uris = listed(await inside.ask("resources/list", who=who), "resources", "uri")
            assert [uri for uri in uris if not uri.startswith("pactgate:")] == ["data://a" if scope else "a+data://a"]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("era", Era)
async def test_a_call_of_a_denied_tool_is_answered_like_that_of_a_name_nobody_has(spelling: str, era: Era) -> None:
    async with guarded() as inside:
        denied = await inside.call(spelling.format(DENIED), {"level": "info", "text": "x"}, who=some(era))
        unknown = await inside.call(spelling.format(UNKNOWN), {"level": "info", "text": "x"}, who=some(era))
        assert written(denied) == written(unknown).replace(UNKNOWN.encode(), DENIED.encode())
        assert denied.error is not None
        assert denied.error.data["failure_mode"] == "unknown_tool"
        assert DENIED not in await heard(inside)


async def test_a_call_at_the_path_of_one_server_does_not_reach_a_denied_tool() -> None:
    async with guarded() as inside:
        denied = await inside.call(DENIED, {"level": "info", "text": "x"}, who=some(scope="a"))
        unknown = await inside.call(UNKNOWN, {"level": "info", "text": "x"}, who=some(scope="a"))
        assert written(denied) == written(unknown).replace(UNKNOWN.encode(), DENIED.encode())
        assert DENIED not in await heard(inside)


async def test_tool_invoke_does_not_reach_a_denied_tool() -> None:
    async with guarded() as inside:
        who = some(roles=ADMIN)
        given = [{"name": f"a.{name}", "arguments": {"level": "info", "text": "x"}} for name in (DENIED, UNKNOWN)]
        denied, unknown = [await inside.call("pactgate.tool_invoke", one, who=who) for one in given]
        assert written(denied) == written(unknown).replace(UNKNOWN.encode(), DENIED.encode())
        allowed = await inside.call("pactgate.tool_invoke", {"name": "a.steps"}, who=who)
        assert text_of(allowed) == "steps"
        assert DENIED not in await heard(inside)


async def test_the_library_does_not_reach_a_denied_tool() -> None:
    async with guarded(allow("a.steps", to="rest")) as inside:
        assert (await inside.gateway.invoke("a.steps"))["success"] is True
        answer = await inside.gateway.invoke(f"a.{DENIED}", {"level": "info", "text": "x"})
        assert answer["error"]["context"]["failure_mode"] == "unknown_tool"
        assert DENIED not in await heard(inside)


async def test_suggestions_and_candidates_name_nothing_that_is_denied() -> None:
    """`say` is offered by both servers and denied on both: neither an ambiguity nor a near name may tell."""
    async with guarded() as inside:
        for name in ("say", "a.sayy", "steps_", "only", "b.only", "b.nothing"):
            reply = await inside.call(name, who=some())
            assert reply.error is not None
            said = json.dumps([reply.error.message, reply.error.data])
            assert "b." not in said.replace(name, "")
            assert "a.say" not in said.replace(name, "")
        assert "a.steps" in (await inside.call("a.stepz", who=some())).error.message  # type: ignore[union-attr]


async def test_a_bare_name_means_the_only_server_that_has_it_for_this_client() -> None:
    async with guarded(allow("a.say")) as inside:
        assert text_of(await inside.call("say", {"level": "info", "text": "x"}, who=some())) == "say"


async def test_a_denied_prompt_does_not_exist() -> None:
    async with guarded(deny("a.poem")) as inside:
        denied = await inside.ask("prompts/get", who=some(), params={"name": "a.poem"})
        unknown = await inside.ask("prompts/get", who=some(), params={"name": "a.pain"})
        assert written(denied) == written(unknown).replace(b"pain", b"poem")
        ref = {"ref": {"type": "ref/prompt", "name": "a.poem"}, "argument": {"name": "x", "value": ""}}
        assert (await inside.ask("completion/complete", who=some(), params=ref)).error is not None


async def test_completions_of_an_allowed_prompt_and_resource_are_given() -> None:
    async with guarded() as inside:
        for ref in ({"type": "ref/prompt", "name": "a.poem"}, {"type": "ref/resource", "uri": "a+data://a"}):
            given = {"ref": ref, "argument": {"name": "x", "value": ""}}
            assert (await inside.ask("completion/complete", who=some(), params=given)).result is not None


@pytest.mark.parametrize(
    "uri", ["a+data://b", "data://b", "b+data://a", "a+data://a/../b", "a+data://a/%2e%2e/b", "a+data://c"]
)
async def test_a_denied_resource_can_not_be_read_completed_or_watched(uri: str) -> None:
    async with guarded() as inside:
        unknown = "a+data://q" if uri.startswith("a+") else "data://q"
        denied = await inside.ask("resources/read", who=some(), params={"uri": uri})
        nobody = await inside.ask("resources/read", who=some(), params={"uri": unknown})
        assert written(denied) == written(nobody).replace(unknown.encode(), uri.encode())
        ref = {"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "x", "value": ""}}
        assert (await inside.ask("completion/complete", who=some(), params=ref)).error is not None
        ear = Ear()
        watcher = replace(legacy_caller(ear), principal=some().principal)
        assert (await inside.ask("resources/subscribe", who=watcher, params={"uri": uri})).error is not None
        assert (await inside.ask("resources/read", who=some(), params={"uri": "a+data://a"})).result is not None


async def test_a_listen_is_not_granted_for_a_denied_resource() -> None:
    async with guarded() as inside:
        ear = Ear()
        who = replace(modern_caller(ear), principal=some().principal)
        async with listening(inside, who, {"resourceSubscriptions": ["a+data://a", "a+data://b"]}):
            [honoured] = ear.of("notifications/subscriptions/acknowledged")
            assert honoured["notifications"] == {"resourceSubscriptions": ["a+data://a"]}


async def test_a_task_of_a_tool_that_is_denied_now_does_not_exist() -> None:
    who = some(Era.MODERN, scope="a", capabilities={"extensions": {"io.modelcontextprotocol/tasks": {}}})
    server = changing(
        "a",
        "modern",
        capabilities={"extensions": {"io.modelcontextprotocol/tasks": {}}},
        methods=["tasks/get", "tasks/cancel"],
    )
    async with open_gateway(server, **permitting(allow("a.later"))) as inside:
        assert b'"taskId"' in ((await inside.call("later", who=who)).result or b"")
        assert (await inside.ask("tasks/get", who=who, params={"taskId": "t1"})).result is not None
        await inside.gateway.reload(replace(inside.gateway.config, permissions=(allow("a.other"),)))
        gone = await inside.ask("tasks/get", who=who, params={"taskId": "t1"})
        never = await inside.ask("tasks/get", who=who, params={"taskId": "t2"})
        assert gone.error is not None
        assert written(gone) == written(never).replace(b"t2", b"t1")
        assert (await inside.ask("tasks/cancel", who=who, params={"taskId": "t1"})).error is not None


async def test_methods_outside_the_protocol_pass_only_to_a_server_that_is_allowed_whole() -> None:
    server = replace(
        changing("a", "legacy", methods=["x/y"], capabilities={"experimental": {"x": {}}}), extensions=("x/*",)
    )
    async with open_gateway(server, **permitting(allow("a.heard", "server:a"))) as inside:
        assert (await inside.ask("x/y", who=some(Era.LEGACY, scope="a"), params={})).result is not None
        await inside.gateway.reload(replace(inside.gateway.config, permissions=(allow("a.*"),)))
        assert (await inside.ask("x/y", who=some(Era.LEGACY, scope="a"), params={})).error is not None


async def test_a_cached_result_is_not_given_to_a_client_that_has_lost_the_tool() -> None:
    cache = Cache(tools={"files.echo": CacheRule()})
    async with open_gateway(scripted(), cache=cache, **permitting(allow("files.*"))) as inside:
        for _ in range(2):
            reply = await inside.call("files.echo", {"text": "kept"}, who=some())
        assert json.loads(reply.result or b"")["_meta"][ENVELOPE_KEY]["cached"] is True
        await inside.gateway.reload(replace(inside.gateway.config, permissions=(allow("files.pid"),)))
        assert (await inside.call("files.echo", {"text": "kept"}, who=some())).error is not None


async def test_pages_of_a_large_result_go_with_the_right_to_the_tool() -> None:
    small, text = ResponseSection(max_response_bytes=4096), "x" * 50_000
    result = json.dumps({"content": [], "structuredContent": {"text": text}})
    async with open_gateway(scripted(), response=small, **permitting(allow("files.*"))) as inside:
        reply = await inside.call("files.raw", {"text": result}, who=some())
        uri = json.loads(reply.result or b"")["_meta"][ENVELOPE_KEY]["failure"]["resultUri"]
        assert (await inside.ask("resources/read", who=some(), params={"uri": uri})).result is not None
        await inside.gateway.reload(replace(inside.gateway.config, permissions=(allow("files.pid"),)))
        assert (await inside.ask("resources/read", who=some(), params={"uri": uri})).error is not None


async def test_a_reload_that_takes_a_right_away_is_felt_by_the_next_call_and_list() -> None:
    async with guarded() as inside:
        assert text_of(await inside.call("a.steps", who=some())) == "steps"
        await inside.gateway.reload(replace(inside.gateway.config, permissions=(allow("a.heard"),)))
        assert (await inside.call("a.steps", who=some())).error is not None
        assert listed(await inside.ask("tools/list", who=some()), "tools") == ["a__heard"]


async def test_a_suspended_call_ends_when_its_client_loses_the_tool_and_can_not_be_resumed() -> None:
    who = asker(Era.MODERN, key="some")
    async with open_gateway(asking(), **permitting(allow("asking.*"))) as inside:
        first = json.loads(
            (await inside.call("asking.ask", {"method": "elicitation/create", "params": FORM}, who=who)).result or b""
        )
        assert first["resultType"] == "input_required"
        assert inside.gateway.bridge.suspended_count == 1
        await inside.gateway.reload(replace(inside.gateway.config, permissions=(allow("asking.other"),)))
        assert inside.gateway.bridge.suspended_count == 0
        again = await inside.call(
            "asking.ask",
            {"method": "elicitation/create", "params": FORM},
            who=who,
            requestState=first["requestState"],
            inputResponses={"input-1": SAID},
        )
        assert again.error is not None
        assert again.error.data["failure_mode"] == "unknown_tool"


FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


async def test_a_subscription_ends_with_the_right_to_read() -> None:
    async with guarded() as inside:
        ear = Ear()
        watcher = replace(legacy_caller(ear), principal=some().principal)
        assert (await inside.ask("resources/subscribe", who=watcher, params={"uri": "a+data://a"})).result is not None
        assert inside.gateway.changes.facts()["subscriptions"] == 1
        await inside.gateway.reload(replace(inside.gateway.config, permissions=(allow("a.heard"),)))
        assert inside.gateway.changes.facts()["subscriptions"] == 0


async def test_a_change_is_announced_only_to_clients_whose_list_has_changed() -> None:
    async with guarded() as inside:
        some_ear, other_ear = Ear(), Ear()
        who = replace(modern_caller(some_ear), principal=some().principal)
        inside.gateway.changes.flush()
        async with listening(inside, who, {"toolsListChanged": True}):
            await inside.gateway.reload(
                replace(inside.gateway.config, permissions=(allow(*ALLOWED), allow("a.*", to="rest")))
            )
            async with listening(inside, modern_caller(other_ear), {"toolsListChanged": True}):
                await inside.call("a.add", {"name": "fresh"}, who=some())
                await other_ear.until_heard("notifications/tools/list_changed")
                assert some_ear.of("notifications/tools/list_changed") == []
                await inside.gateway.reload(replace(inside.gateway.config, permissions=(allow("a.fresh"),)))
                await some_ear.until_heard("notifications/tools/list_changed")


async def test_a_rule_with_a_text_says_it_instead() -> None:
    async with guarded(deny("a.say", say="Ask the on-call engineer.")) as inside:
        reply = await inside.call("a.say", who=some())
        assert text_of(reply) == "Ask the on-call engineer."
        failure = json.loads(reply.result or b"")["_meta"][ENVELOPE_KEY]["failure"]
        assert (failure["failure_mode"], failure["code"], failure["verdict"]) == (
            "forbidden",
            "PERMISSION_DENIED",
            "did_not_run",
        )


async def test_a_condition_on_arguments_is_checked_at_every_call_and_its_text_told() -> None:
    rule = allow("files.echo", when="arguments.amount < 500", say="Above 500 ask Ann.")
    async with open_gateway(scripted(), **permitting(rule)) as inside:
        assert listed(await inside.ask("tools/list", who=some()), "tools") == ["files__echo"]
        assert text_of(await inside.call("files.echo", {"amount": 499.5, "text": "x"}, who=some())) == "x"
        for arguments in ({"amount": 500}, {}, {"amount": None}, None):
            assert text_of(await inside.call("files.echo", arguments, who=some())) == "Above 500 ask Ann."
        assert inside.events == [event for event in inside.events if not isinstance(event, PermissionUndecided)]
        assert text_of(await inside.call("files.echo", {"amount": "1"}, who=some())) == "Above 500 ask Ann."
        [event] = [event for event in inside.events if isinstance(event, PermissionUndecided)]
        assert (event.rule, event.name) == (1, "files.echo")


async def test_groups_of_the_client_decide_where_a_condition_names_them() -> None:
    rules = (allow("files.*", to="*"), deny("files.echo", to="*", unless="'oncall' in caller.groups"))
    async with open_gateway(scripted(), **permitting(*rules)) as inside:
        assert text_of(await inside.call("files.echo", {"text": "x"}, who=grouped("oncall"))) == "x"
        assert (await inside.call("files.echo", {"text": "x"}, who=grouped("dev"))).error is not None
        assert "files__echo" not in listed(await inside.ask("tools/list", who=grouped()), "tools")


async def test_the_rule_that_decided_is_in_envelope_and_history_but_not_told_of_what_does_not_exist() -> None:
    async with guarded(rule_places=("pactgate.json:7:5",)) as inside:
        envelope = json.loads((await inside.call("a.steps", who=some())).result or b"")["_meta"][ENVELOPE_KEY]
        assert envelope["rule"] == 1
        stories = inside.gateway.observers.stories
        told = stories.get(envelope["requestId"])
        assert told is not None
        assert (told["rule"], told["ruleAt"], told["policyRevision"]) == (
            1,
            "pactgate.json:7:5",
            envelope["policyRevision"],
        )
        denied = await inside.call("a.say", who=some())
        assert denied.error is not None
        id_ = denied.error.data["requestId"]
        whole, own = stories.get(id_), stories.get(id_, "some")
        assert whole is not None
        assert own is not None
        assert whole["policyRevision"] == envelope["policyRevision"]
        assert own["policyRevision"] is None


async def test_the_audit_log_names_the_rule_and_the_revision_of_allowed_and_denied_calls(tmp_path: Path) -> None:
    rules = (deny("a.say"), allow("a.touch", when="arguments.name == 'x'"))
    audit = AuditSection(file=str(tmp_path / "audit.jsonl"))
    places = tuple(f"pactgate.json:{line}:5" for line in (6, 7, 8))
    async with guarded(*rules, audit=audit, rule_places=places) as inside:
        await inside.gateway.open_audit()
        for name in ("a.steps", "a.say", "a.touch", "b.say"):
            await inside.call(name, {"name": "y"}, who=some())
        revision = Permissions(inside.gateway.config).revision
    records = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    calls = {one.get("requested") or one["tool"]: one for one in records if one.get("kind") == "call"}
    assert {name: (one.get("rule"), one.get("ruleAt")) for name, one in calls.items()} == {
        "a.steps": (1, places[0]),
        "a.say": (2, places[1]),
        "a.touch": (3, places[2]),
        "b.say": (None, None),
    }
    assert {one["policyRevision"] for one in calls.values()} == {revision}


async def test_without_rules_nothing_is_noted_and_no_condition_engine_is_loaded() -> None:
    async with open_gateway(scripted()) as inside:
        envelope = json.loads((await inside.call("files.echo", {"text": "x"})).result or b"")["_meta"][ENVELOPE_KEY]
        assert "rule" not in envelope
        assert "policyRevision" not in envelope


async def test_a_server_of_which_nothing_is_allowed_does_not_exist_over_http() -> None:
    """Neither its path, nor a row of the API, the health check, the instructions or the status resource."""
    listen = ListenSection(port=0)
    auth = Auth(tokens={"some": Token(token="s" * 32), "ops": Token(token="o" * 32, roles=("admin",))})
    async with open_gateway(
        changing("a", "legacy"), changing("b", "legacy"), listen=listen, auth=auth, **permitting(allow("a.heard"))
    ) as inside:
        address = await inside.gateway.serve_http()
        await inside.gateway.connections.settle()
        port = int(address.rpartition(":")[2])

        async def fetch(path: str, token: str = "s") -> Any:
            async with RawClient(port) as client:
                return await client.ask(get(path, authorization=f"Bearer {token * 32}"))

        assert [row["serverId"] for row in (await fetch("/api/servers")).json["servers"]] == ["a"]
        (tool,) = (await fetch("/api/tools")).json["tools"]
        assert (tool["fullName"], "allowedFor" in tool) == ("a.heard", False)
        assert all(row["allowedFor"]["rest"] == "no" for row in (await fetch("/api/tools", "o")).json["tools"])
        assert (await fetch("/api/status")).json["serverCount"] == 1
        assert [row["serverId"] for row in (await fetch("/health")).json["servers"]] == ["a"]
        assert (await fetch("/metrics")).status == 404
        assert (await fetch("/metrics", "o")).status == 200
        assert len((await fetch("/api/servers", "o")).json["servers"]) == 2
        answers = {}
        for name in ("b", "c"):
            async with RawClient(port) as client:
                body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
                answers[name] = await client.ask(post(body, f"/mcp/{name}", authorization=f"Bearer {'s' * 32}"))
        assert answers["b"].status == 404
        assert answers["b"].json == answers["c"].json
        for method in ("server/discover", "tools/list", "resources/list"):
            assert '"b' not in ((await inside.ask(method, who=some())).result or b"").decode()
        status = await inside.ask("resources/read", who=some(), params={"uri": "pactgate://status"})
        assert b'\\"b\\"' not in (status.result or b"")


@pytest.mark.parametrize("path", ["status", "/api/status", "/api/servers", "/api/tools", "/health"])
async def test_facts_about_the_gateway_count_and_name_nothing_that_is_denied(path: str) -> None:
    """Neither the tools of a server nor settings for tools of others tell how many there are, or which."""
    settings: dict[str, Any] = {
        "timeouts": Timeouts(tool_overrides={"a.say": 1000, "b.*": 1000, "a.st*": 1000}),
        "limits": Limits(tool_array_limits={"a.say": 5}),
        "auth": Auth(tokens={"some": Token(token="s" * 32)}),
        "listen": ListenSection(port=0),
    }
    async with guarded(**settings) as inside:
        if path == "status":
            reply = await inside.ask("resources/read", who=some(), params={"uri": "pactgate://status"})
            facts = json.loads(json.loads(reply.result or b"")["contents"][0]["text"])
        else:
            port = int((await inside.gateway.serve_http()).rpartition(":")[2])
            async with RawClient(port) as client:
                facts = (await client.ask(get(path, authorization=f"Bearer {'s' * 32}"))).json
        assert "a.say" not in json.dumps(facts)
        assert "b." not in json.dumps(facts)
        if "tools" in facts:
            assert sorted(row["fullName"] for row in facts["tools"]) == ["a.add", "a.heard", "a.later", "a.steps"]
        if "servers" in facts:
            assert [(row["serverId"], row["toolCount"]) for row in facts["servers"]] == [("a", 4)]
        if "timeouts" in facts:
            assert facts["timeouts"]["toolOverrides"] == {"a.st*": 1000}


async def test_the_api_tells_a_client_no_more_of_a_denied_call_than_of_one_of_a_name_nobody_has() -> None:
    """Neither the rows of `/api/calls`, which the console shows, nor the trace of one call."""
    async with guarded() as inside:
        stories, told = inside.gateway.observers.stories, []
        for name in (DENIED, UNKNOWN):
            reply = await inside.call(f"a.{name}", who=some())
            assert reply.error is not None
            trace = stories.get(reply.error.data["requestId"], "some")
            text = json.dumps([stories.latest(1, "some"), trace]).replace(UNKNOWN, DENIED)
            told.append(re.sub(r'"(requestId|time)": "[^"]*"|\d+\.\d+', "", text))
        assert told[0] == told[1]


async def test_while_a_server_is_away_its_denied_names_are_as_unknown_as_before() -> None:
    async with guarded(allow("b.only")) as inside:
        before = await inside.call("say", who=some())
        await inside.gateway.connections.set_enabled("b", False)
        assert written(await inside.call("say", who=some())) == written(before)
        denied, unknown = [await inside.call(f"b.{name}", who=some()) for name in (DENIED, UNKNOWN)]
        assert written(denied) == written(unknown).replace(UNKNOWN.encode(), DENIED.encode())
        await eventually(lambda: "b" in inside.gateway.connections.servers)


def different(number: int) -> Any:
    """A client that no other one is like."""
    made = caller(key=f"c{number}")
    groups = frozenset({f"g{number}", *(["oncall"] if number % 2 else [])})
    return replace(made, principal=replace(made.principal, subject=f"s{number}", groups=groups))


async def test_clients_for_whom_the_same_conditions_hold_share_a_catalog() -> None:
    rules = (allow("files.*", to="*"), deny("files.echo", to="*", unless="'oncall' in caller.groups"))
    async with open_gateway(scripted(), **permitting(*rules)) as inside:
        surfaces = inside.gateway.connections.surfaces
        assert len({id(surfaces.of(different(number))) for number in range(300)}) == 2


async def test_many_different_clients_keep_a_bounded_number_of_catalogs() -> None:
    rules = (allow("files.*", to="*", when="caller.subject != tool.name"),)
    async with open_gateway(scripted(), **permitting(*rules)) as inside:
        surfaces = inside.gateway.connections.surfaces
        made = [ref(surfaces.of(different(number))) for number in range(300)]
        gc.collect()
        assert sum(catalog() is not None for catalog in made) == surfaces.held == 256


def test_the_revision_changes_with_the_rules_and_not_with_their_place() -> None:
    one, other = config_with(allow("a.*")), config_with(allow("a.*"), rule_places=("x.json:1:1",))
    assert Permissions(one).revision == Permissions(other).revision
    assert Permissions(one).revision != Permissions(config_with(allow("a.x"))).revision


async def test_administrators_see_which_class_may_call_a_tool_and_others_do_not() -> None:
    rules = (allow("a.heard", to="rest"), allow("b.heard", when="arguments.n < 5", to="rest"))
    async with guarded(*rules) as inside:
        await inside.gateway.discover()
        rows = {row["fullName"]: row["allowedFor"]["rest"] for row in inside.gateway.snapshot()["tools"]}
    assert (rows.pop("a.heard"), rows.pop("b.heard")) == ("yes", "if")
    assert set(rows.values()) == {"no"}
