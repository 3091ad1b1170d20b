"""Lists: all pages, one order, names that are unique and can be used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Final

from pactgate.conformance.gateway.check import Check, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute, ScriptedSide
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.gateway.under_test import is_named, read_list
from pactgate.conformance.rule import Evidence, RequirementLevel


def names_in(recording: CheckRecording) -> Iterator[tuple[ClientRoute, list[str], int]]:
    """The names of each whole list, page after page, and where it ended."""
    pages: dict[str, list[str]] = {}
    for exchange in recording.exchanges("tools/list"):
        result = plain_value(exchange.response).get("result")
        members = result if isinstance(result, dict) else {}
        entries = members.get("tools")
        names = pages.setdefault(exchange.request.who, [])
        names += [str(entry.get("name")) for entry in entries or () if isinstance(entry, dict)]
        if not isinstance(members.get("nextCursor"), str):
            yield exchange.route, pages.pop(exchange.request.who), exchange.index


class ListCheck(Check):
    """A client of each era lists the tools so many `times`."""

    times: ClassVar[int] = 1

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            for _ in range(self.times):
                await read_list(await lab.client(route), "tools/list", lab.record_on(route))


class PagesLeftOut(Check):
    """Every page of a server is listed.

    What it checks
        A server lists its tools in pages of three; a client of the gateway finds all of them.

    Why
        Tools on later pages are missing without a word, and nobody knows why the model does not use them.

    How to fix
        Follow `nextCursor` until there is none.

    Reference
        Pagination: clients should treat a missing nextCursor as the end; all revisions.
    """

    code = "GWP-060"
    spec = "server/utilities/pagination"
    level = RequirementLevel.SHOULD
    servers = ("pg",)
    tools = tuple(ScriptedTool(name=f"gwp060{part}_@") for part in "abcdefgh")

    async def play(self, lab: Lab) -> None:
        for route in lab.routes(self):
            await read_list(await lab.client(route), "tools/list", lab.record_on(route))

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for route, listed, index in names_in(recording):
            wanted = [f"gwp060{part}_pg" for part in "abcdefgh"]
            missing = [name for name in wanted if not any(is_named(shown, name) for shown in listed)]
            if missing:
                yield self.evidence(
                    index, "/result/tools", f"{route}: {len(missing)} of 8 are missing: {', '.join(missing)}"
                )


class OrderVaries(ListCheck):
    """A list has the same order each time.

    What it checks
        A client lists the tools three times; the names come in the same order.

    Why
        Prompt caches compare text from its beginning: a list that moves makes every request of the model expensive.

    How to fix
        Sort, or keep the order of configuration; never that of the answers.

    Reference
        Tools, Listing Tools: servers should return tools in a deterministic order; 2026-07-28.
    """

    code = "GWP-061"
    spec = "server/tools#listing-tools"
    level = RequirementLevel.SHOULD
    tools = (ScriptedTool(name="gwp061a_@"), ScriptedTool(name="gwp061b_@"))

    times = 3

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        first: dict[str, list[str]] = {}
        for route, listed, index in names_in(recording):
            known = first.setdefault(str(route), listed)
            if known != listed and sorted(known) == sorted(listed):
                yield self.evidence(index, "/result/tools", f"{route}: the same names came in another order")


class ListVariesByConnection(Check):
    """A list does not depend on the connection.

    What it checks
        Two clients without any difference list the tools in turns, twice each; all four lists have the same names.

    Why
        A client that sees other tools after it connects again calls what is not there.

    How to fix
        Make the list from what is configured and who asks, and from nothing else.

    Reference
        Statelessness: lists must not depend on the connection in 2026-07-28; clients of other revisions rely on it.
    """

    code = "GWP-062"
    spec = "server/tools#listing-tools"
    level = RequirementLevel.SHOULD
    tools = (ScriptedTool(name="gwp062a_@"), ScriptedTool(name="gwp062b_@"))

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            clients = [await lab.new_client(route), await lab.new_client(route)]
            for client in clients * 2:
                await read_list(client, "tools/list", lab.record_on(route))

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        first: dict[str, list[str]] = {}
        for route, listed, index in names_in(recording):
            known = first.setdefault(str(route), listed)
            if set(known) != set(listed):
                other = sorted(set(known) ^ set(listed))[:5]
                yield self.evidence(index, "/result/tools", f"{route}: not in both lists: {', '.join(other)}")


class NamesCollide(ListCheck):
    """No name is listed twice.

    What it checks
        The servers behind the gateway have a tool of the same name; in the list of the gateway each name stands once.

    Why
        A client that gets two tools of one name refuses both, or calls either.

    How to fix
        Put the id of the server before the names.

    Reference
        Tools, Tool Names: names should be unique within a server; 2025-11-25 and later.
    """

    code = "GWP-063"
    spec = "server/tools#tool-names"
    level = RequirementLevel.SHOULD
    tools = (ScriptedTool(name="gwp063same"),)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for route, listed, index in names_in(recording):
            twice = sorted({name for name in listed if listed.count(name) > 1})
            if twice:
                yield self.evidence(index, "/result/tools", f"{route}: listed more than once: {', '.join(twice[:5])}")


class CollidingToolsLost(Check):
    """Tools of one name on several servers can all be called.

    What it checks
        Every server has a tool of the same name; a client calls everything that the gateway lists for it, and each server is called
        once.

    Why
        Where names collide, gateways keep one of the tools, often another one each time.

    How to fix
        Keep all of them apart by the id of the server.

    Reference
        Tools, Tool Names: aggregators should disambiguate names; 2026-07-28.
    """

    code = "GWP-064"
    spec = "server/tools#tool-names"
    level = RequirementLevel.SHOULD
    needs_gateway = True
    tools = (ScriptedTool(name="gwp064same"),)

    async def play(self, lab: Lab) -> None:
        lab.require_aggregate()
        for route in lab.addresses(self):
            client, listing = await lab.client(route), lab.gateway.listing(route)
            names = listing.entries.get("tools/list", {}) if listing is not None else {}
            for name in names:
                if is_named(name, "gwp064same"):
                    await client.call(lab.record_on(route), name, label="same")
            for server in lab.connected(self, route.era):
                await client.call(
                    lab.record_on(route), lab.exposed(server, "gwpready_@"), label=f"there {server.server}"
                )

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for era in dict.fromkeys(exchange.route.era for exchange in recording.exchanges("same")):
            calls = [exchange for exchange in recording.exchanges("same") if exchange.route.era == era]
            servers = [e for e in recording.exchanges() if e.request.label.startswith("there") and e.route.era == era]
            good = [exchange for exchange in calls if "result" in plain_value(exchange.response)]
            if len(good) != len(servers):
                text = f"{era} client: {len(servers)} servers have the tool, {len(good)} answered"
                yield self.evidence(calls[-1].index, "", text)
        hit = [frame.who for frame in recording.frames if frame.side is ScriptedSide.SERVER and not frame.is_sent]
        eras = {exchange.route.era for exchange in recording.exchanges("same")}
        for server in sorted(set(hit)):
            if hit.count(server) > len(eras):
                yield self.evidence(0, "", f"{server} was called {hit.count(server)} times, by {len(eras)} clients")
        if not eras:
            yield self.evidence(0, "", "no tool of this name is listed")


_USABLE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class NamesUnusable(ListCheck):
    """The names that are listed can be used by models.

    What it checks
        Every listed name of our tools has 1 to 64 characters out of letters, digits, `_` and `-`.

    Why
        The APIs of models accept such names only. A gateway that puts `server.` or `server:` before them makes tools that can be
        seen and not used.

    How to fix
        Join with `_` or `-`, and shorten what becomes too long.

    Reference
        Tools, Tool Names allow 128 characters and a dot; clients in use accept 64 and no dot.
    """

    code = "GWP-065"
    spec = "server/tools#tool-names"
    tools = (ScriptedTool(name="gwp065_a_name_of_forty_characters_____@"),)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for route, listed, index in names_in(recording):
            for name in listed:
                if "gwp" in name.lower() and not _USABLE.fullmatch(name):
                    yield self.evidence(index, "/result/tools", f"{route}: {name[:100]!r} is no name for a model")
                    break


class CallsGoAstray(Check):
    """A call reaches its server, and no other.

    What it checks
        A client calls the tool of each server by its listed name; exactly this server gets exactly one call.

    Why
        A call that is sent twice acts twice; one at another server acts on other data.

    How to fix
        Send each call once, to the server whose tool it is.

    Reference
        Nothing in the specification lets an intermediary send a call twice; all revisions.
    """

    code = "GWP-067"
    spec = "server/tools#calling-tools"
    tools = (ScriptedTool(name="gwp067_@"),)

    async def play(self, lab: Lab) -> None:
        for route in lab.routes(self):
            client, tool = await lab.client(route), lab.exposed(route, self.tools[0].name)
            await client.call(lab.record_on(route), tool, label=f"gwp067_{route.server}")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        servers = dict.fromkeys(exchange.route.server for exchange in recording.exchanges())
        for server in servers:
            calls = [exchange for exchange in recording.exchanges() if exchange.route.server == server]
            got = len(recording.at_server(server, f"gwp067_{server}", is_sent=False))
            if got != len(calls):
                yield self.evidence(calls[-1].index, "", f"{server} was sent {got} calls for {len(calls)}")
