"""`pactgate policy`: what the permissions of a configuration allow, for whom and by which rule, before or while it is in force."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from pactgate.cli import terminal
from pactgate.cli.call import read_arguments
from pactgate.cli.chosen_gateway import gateway_client
from pactgate.cli.config_file import find_config, load_config
from pactgate.cli.errors import CommandError
from pactgate.cli.shared_options import arguments_option, config_option, gateway_options, json_option
from pactgate.cli.table import Column, fits, show_table
from pactgate.config.model import Config
from pactgate.core.context import AppliedRule
from pactgate.core.principal import OF_KEYS, Principal, PrincipalKind
from pactgate.core.values import Tool
from pactgate.policy.permissions.comparison import ALWAYS, ClassReach, class_label, class_pairs, compare, reach_of
from pactgate.policy.permissions.rules import Denied, Grant, Permissions, class_of
from pactgate.policy.permissions.selection import Subject
from pactgate.protocol.messages import encode_json

_STYLES: Final = {"yes": "green", "if": "yellow", "no": "red"}
_MEMBERS: Final = ("groups", "issuer", "key", "token", "client", "subject", "scopes", "roles")
_WHO: Final = ("key", "token", "subject")


def with_tools(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options that say whose tools are meant."""
    file_option = click.option(
        "--tools", "file", metavar="FILE", help="Use these tools: what `pactgate tools --json` prints."
    )
    live_option = click.option("--live", is_flag=True, help="Connect to the servers once, and use their tools.")
    return file_option(live_option(gateway_options(function)))


@click.group()
def policy() -> None:
    """Show what the permissions of the configuration allow.

    Tools are those of the running gateway, of --tools FILE, or, with --live, of the servers themselves.
    """


@policy.command("test", epilog="Example: pactgate policy test --as groups=finance crm.refund amount:=900")
@click.argument("name", metavar="TOOL")
@click.argument("words", metavar="[KEY=VALUE]...", nargs=-1)
@click.option(
    "--as",
    "who",
    metavar="WHO",
    default="",
    help="The client, as groups=a+b,issuer=URL,key=NAME,token=NAME. Default: one without any.",
)
@arguments_option
@config_option
@with_tools
@json_option
def test(
    *, name: str, words: Sequence[str], who: str, args: str | None, config: str | None, as_json: bool, **source: Any
) -> int:
    """Show whether a client may call a tool, and by which rule.

    The exit code is 1 when it may not.

    TOOL is a full name, as crm.refund. KEY=VALUE is an argument; KEY:=JSON gives its value as JSON.
    """
    settings = _settings(config)
    tool = _tool(name, settings, **source)
    principal = read_client(who)
    if not settings.permissions:
        return _say_verdict({"tool": name, "allowed": True, "why": "No permissions are configured."}, as_json=as_json)
    permissions = Permissions(settings)
    key = permissions.key_of(principal)
    found = permissions.decide(key, Subject.of(tool))
    listed = isinstance(found, Grant)
    decided = found.decide(encode_json(read_arguments(words, args, {}))) if isinstance(found, Grant) else found
    denied = decided if isinstance(decided, Denied) else None
    facts: dict[str, Any] = {
        "tool": name,
        "class": class_of(principal, settings.callers),
        "allowed": denied is None,
        "listed": listed,
        "rule": decided.applied.number,
        "place": decided.applied.place,
        "policyRevision": permissions.revision,
    }
    if denied is not None:
        facts |= {
            "told": denied.say or ("These arguments are not permitted." if listed else "The tool does not exist.")
        }
        if denied.trouble:
            facts["undecided"] = denied.trouble
    return _say_verdict(facts, as_json=as_json)


@policy.command("matrix")
@config_option
@with_tools
@json_option
def matrix(*, config: str | None, as_json: bool, **source: Any) -> int:
    """Show which class of clients may call which tool.

    `if` depends on the arguments, or on more of the client than its class.
    """
    settings = _settings(config)
    tools = read_tools(settings, **source)
    permissions = Permissions(settings) if settings.permissions else None
    classes = [name for name, _ in class_pairs(settings.callers, settings.callers)]
    rows = [[reach_of(permissions, name, tool) for name in classes] for tool in tools]
    if as_json:
        cells = [dict(zip(map(class_label, classes), map(_facts, row), strict=True)) for row in rows]
        terminal.say_json(
            {
                "policyRevision": None if permissions is None else permissions.revision,
                "classes": [*map(class_label, classes)],
                "tools": {tool.full_name: cell for tool, cell in zip(tools, cells, strict=True)},
            }
        )
    elif permissions is None:
        terminal.say("No permissions are configured: every client may call every tool.")
    else:
        _show_matrix([*map(class_label, classes)], tools, rows)
    return 0


def _show_matrix(classes: Sequence[str], tools: Sequence[Tool], rows: Sequence[Sequence[ClassReach]]) -> None:
    """A column for each class; on a terminal that is too narrow for them, the names of the classes by answer."""
    answers = [(tool.full_name, [reach.answer for reach in row]) for tool, row in zip(tools, rows, strict=True)]
    columns = [Column("TOOL"), *(Column(name, _STYLES) for name in classes)]
    if fits(columns, longest=max((len(name) for name, _ in answers), default=0)):
        show_table(columns, ([name, *row] for name, row in answers))
        return
    columns = [Column("TOOL"), *(Column(word.upper(), is_long=True, wraps=True) for word in ("yes", "if"))]
    named = ((name, [*zip(classes, row, strict=True)]) for name, row in answers)
    show_table(
        columns,
        (
            [name, *(", ".join(one for one, answer in row if answer == word) for word in ("yes", "if"))]
            for name, row in named
        ),
    )


@policy.command("diff", epilog="Example: pactgate policy diff main.json branch.json --forbid-widening")
@click.argument("old")
@click.argument("new")
@click.option("--forbid-widening", is_flag=True, help="Exit with 1 if a class gains something, or may gain it.")
@with_tools
@json_option
def diff(*, old: str, new: str, forbid_widening: bool, as_json: bool, **source: Any) -> int:
    """Show which class of clients gains or loses what.

    OLD and NEW are configurations. The tools are those that the new configuration sees. Rules are compared by their patterns too: for
    prompts, resources, and tools that servers may list later.
    """
    before, after = load_config(Path(old)), load_config(Path(new))
    changes = _changes(before, after, read_tools(after, **source))
    is_wider = any(change["change"] != "loses" for change in changes)
    if as_json:
        terminal.say_json({"changes": changes, "widens": is_wider})
    elif not changes:
        terminal.say("No class gains or loses anything.")
    else:
        shown = ("class", "change", "name", "before", "after", "rule")
        styles = {"gains": "red", "differs": "red", "loses": "yellow"}
        columns = [Column(name.upper(), styles if name == "change" else {}) for name in shown]
        show_table(columns, ([one[name] for name in shown] for one in changes))
    return 1 if is_wider and forbid_widening else 0


def _changes(before: Config, after: Config, tools: Iterable[Tool]) -> list[dict[str, Any]]:
    old, new = (Permissions(config) if config.permissions else None for config in (before, after))
    both = [(_recategorised(tool, before), _recategorised(tool, after)) for tool in tools]
    return [
        {
            "class": " -> ".join(dict.fromkeys(map(class_label, classes))),
            "change": "differs" if change.gains and change.loses else "gains" if change.gains else "loses",
            "name": change.name,
            "before": change.before.answer,
            "after": change.after.answer,
            "rule": ", ".join(_spell(clause.applied) for clause in change.after.clauses) or _spell(AppliedRule()),
        }
        for classes in class_pairs(before.callers, after.callers)
        for change in compare(classes, old, new, both)
    ]


def _facts(reach: ClassReach) -> dict[str, Any]:
    return {
        "answer": reach.answer,
        "rules": [clause.applied.number for clause in reach.clauses],
        "conditions": [str(clause) for clause in reach.clauses if clause.terms != ALWAYS],
    }


def read_client(text: str) -> Principal:
    """`groups=a+b,issuer=URL,key=ci`: the client that is meant."""
    given: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, separator, value = part.partition("=")
        if name not in _MEMBERS or not separator:
            raise CommandError(
                f"{part!r} says nothing of a client.", f"Write it as groups=finance+ops. Known: {', '.join(_MEMBERS)}."
            )
        if name in given or (name in _WHO and not given.keys().isdisjoint(_WHO)):
            raise CommandError(
                f"{part!r}: a client has one of each, and one of {', '.join(_WHO)}.", "Write groups as groups=a+b."
            )
        given[name] = value
    several = {name: frozenset(filter(None, given.get(name, "").split("+"))) for name in ("groups", "scopes", "roles")}
    kind, subject, key = PrincipalKind.OAUTH, given.get("subject", ""), given.get("subject", "")
    if "key" in given:
        kind, subject, key = PrincipalKind.KEY, given["key"], f"key:{given['key']}"
    elif "token" in given:
        kind, key = PrincipalKind.TOKEN, given["token"]
    elif not given:
        kind, key = PrincipalKind.ANONYMOUS, "anonymous"
    return Principal(
        key,
        several["roles"],
        kind,
        issuer=given.get("issuer", OF_KEYS if kind is PrincipalKind.KEY else ""),
        subject=subject,
        client_id=given.get("client", ""),
        groups=several["groups"],
        scopes=several["scopes"] if "scopes" in given else None,
    )


def read_tools(settings: Config, *, file: str | None, live: bool, **connection: str | None) -> list[Tool]:
    """The tools that a command is about, with the categories that the configuration gives them."""
    if file is not None:
        rows = _read_file(file)
    elif live:
        rows = _connect(settings)
    else:
        rows = gateway_client(**connection).rows("tools")
    return [_recategorised(_from_row(row), settings) for row in rows if row.get("serverId") and row.get("fullName")]


def _from_row(row: dict[str, Any]) -> Tool:
    import msgspec

    from pactgate.core.contract import Contract

    contract = row.get("contract")
    name, server = str(row["fullName"]), str(row["serverId"])
    return Tool(
        server=server,
        name=name.partition(".")[2],
        full_name=name,
        exposed_name=str(row.get("exposedName") or name),
        definition=encode_json({"annotations": row.get("annotations") or {}}),
        exposed_definition=b"{}",
        digest="",
        contract=msgspec.convert(contract, Contract) if isinstance(contract, dict) else None,
    )


def _recategorised(tool: Tool, settings: Config) -> Tool:
    from msgspec.structs import replace

    from pactgate.catalog.catalog import traits_of
    from pactgate.protocol import messages

    annotations = messages.value(tool.definition)["annotations"]
    return replace(tool, traits=traits_of(tool.full_name, annotations, settings.categories, tool.contract))


def _read_file(file: str) -> list[dict[str, Any]]:
    try:
        rows = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise CommandError(
            f"{file} can't be read: {problem}.", "Make it with: pactgate tools --json > tools.json."
        ) from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise CommandError(f"{file} is no list of tools.", "Make it with: pactgate tools --json > tools.json.")
    return rows


def _connect(settings: Config) -> list[dict[str, Any]]:
    import asyncio

    from pactgate.cli.connect_once import connect_once

    with terminal.spinner("connecting to the servers") as tell:
        return asyncio.run(connect_once(settings, tell)).tools


def _tool(name: str, settings: Config, *, file: str | None, live: bool, **connection: str | None) -> Tool:
    """One tool by its full name. Without a gateway to ask, what is known is its name and what the configuration says of it."""
    try:
        tools = read_tools(settings, file=file, live=live, **connection)
    except CommandError as error:
        if file is not None or live or connection.get("url") is not None:
            raise
        terminal.warning(f"Judged by its name alone, as its annotations are not known: {error.message}")
        tools = []
    found = next((tool for tool in tools if name in (tool.full_name, tool.exposed_name)), None)
    if found is None and tools:
        raise CommandError(f"There is no tool {name!r}.", "`pactgate policy matrix` lists all.", exit_code=1)
    if found is None and name.partition(".")[0] not in settings.servers:
        raise CommandError(f"{name!r} is no full name of a tool.", "Write it as server.tool.")
    return found or _recategorised(_from_row({"fullName": name, "serverId": name.partition(".")[0]}), settings)


def _settings(config: str | None) -> Config:
    path = find_config(config)
    if path is None:
        raise CommandError("There is no configuration here.", "Give a file with --config.")
    return load_config(path)


def _say_verdict(facts: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        terminal.say_json(facts)
        return 0 if facts["allowed"] else 1
    terminal.title(f"{facts['tool']}: {'allowed' if facts['allowed'] else 'denied'}")
    rows = (
        ("class", facts.get("class") or "none" if "class" in facts else ""),
        ("why", facts.get("why") or _spell(AppliedRule(facts["rule"], facts["place"]))),
        ("in lists", ("yes" if facts["listed"] else "no") if "listed" in facts else ""),
        ("undecided", facts.get("undecided", "")),
        ("client is told", facts.get("told", "")),
    )
    for label, text in rows:
        if text:
            terminal.item(label, "dim", text, width=15)
    return 0 if facts["allowed"] else 1


def _spell(rule: AppliedRule) -> str:
    if rule.number is None:
        return "no rule allows it"
    return f"rule {rule.number} ({rule.place})" if rule.place else f"rule {rule.number}"
