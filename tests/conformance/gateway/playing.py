"""Runs of checks without a gateway and behind ours, strictly set, with proxies that break what a switch says."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pactgate.conformance.gateway import lab, under_test
from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.faults import neighbours
from pactgate.conformance.gateway.checks.names import change
from pactgate.conformance.gateway.checks.progress import cancelling, given_up
from pactgate.conformance.gateway.dialects import DIALECTS
from pactgate.conformance.gateway.fleet import Fleet
from pactgate.conformance.gateway.gateway_process import GatewayProcess, free_port
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.run import RunPlan, run
from pactgate.conformance.gateway.runner import play, play_one
from pactgate.conformance.gateway.under_test import GatewayUnderTest
from tests.conformance.gateway.strict_gateway import COMMAND, IDENTITY
from tests.support import leaving_gateway
from tests.support.breaking_proxy import BreakingProxy, Switch

HTTP = ("lh", "mh", "dh", "pg")
OURS = f"{sys.executable} -m pactgate serve --config {{config}} --port {{port}}"
WAIT_S = 20


class Playground:
    """Servers, perhaps a gateway, and proxies before and behind it."""

    def __init__(self, fleet: Fleet, urls: dict[str, str], proxies: list[BreakingProxy], *, is_direct: bool) -> None:
        self._fleet = fleet
        self._urls = urls
        self._proxies = proxies
        self._is_direct = is_direct

    async def play(self, check: type[Check], switch: Switch | None = None) -> CheckRecording:
        """The recording of one check, while the proxies break this."""
        before, behind = self._proxies[1:], self._proxies[:1]
        chosen = switch or Switch()
        for proxy in behind if chosen.is_behind else before:
            proxy.switch = chosen
        try:
            async with self._listed(servers_of(check)) as gateway:
                return await play_one(check(), Lab(gateway, self._fleet.logs, {}), self._fleet.logs, WAIT_S)
        finally:
            for proxy in self._proxies:
                proxy.switch = Switch()

    async def play_all(self, checks: Sequence[type[Check]]) -> tuple[CheckRecording, ...]:
        """The recordings of a run of these checks, while the proxies break nothing."""
        async with self._listed(self._urls) as gateway:
            return (await play(gateway, self._fleet.logs, checks, {}, lambda text: None)).checks

    @asynccontextmanager
    async def _listed(self, tags: Collection[str]) -> AsyncIterator[GatewayUnderTest]:
        urls = {tag: url for tag, url in self._urls.items() if tag in tags}
        gateway = GatewayUnderTest(urls, IDENTITY, is_direct=self._is_direct)
        try:
            await gateway.wait(WAIT_S, lambda text: None)
            yield gateway
        finally:
            await gateway.close()


@asynccontextmanager
async def playground(
    folder: Path, checks: Collection[type[Check]], *, gateway: bool, tags: Collection[str] = (*HTTP, "ls")
) -> AsyncIterator[Playground]:
    """Without a gateway, a proxy stands before each server; with ours, one before it, and one between it and a server."""
    async with AsyncExitStack() as stack:
        tags = [tag for tag in tags if gateway or tag in HTTP]
        fleet = Fleet(folder, checks, tags)
        stack.push_async_callback(fleet.close)
        await fleet.start()
        proxies = [_proxy(stack, fleet.urls["lh"])]
        if not gateway:
            proxies += [_proxy(stack, fleet.urls[tag]) for tag in tags]
            urls = {tag: proxy.url for tag, proxy in zip(tags, proxies[1:], strict=True)}
            yield Playground(fleet, urls, proxies, is_direct=True)
            return
        fleet.urls["lh"] = proxies[0].url
        port, config = str(free_port()), folder / "gateway.json"
        config.write_text(DIALECTS["pactgate"].write(fleet.entries()))
        process = GatewayProcess(folder / "gateway.log")
        stack.push_async_callback(process.close)
        await process.start(COMMAND, {"config": str(config), "port": port})
        proxies.append(_proxy(stack, f"http://127.0.0.1:{port}/mcp"))
        yield Playground(fleet, dict.fromkeys(tags, proxies[1].url), proxies, is_direct=False)


async def play_started(check: type[Check], *, leaves: bool) -> CheckRecording:
    """One check of a gateway that the run starts and stops: ours, or one that leaves behind what it has started."""
    start = f"{sys.executable} {leaving_gateway.__file__} {OURS}" if leaves else OURS
    plan = RunPlan(checks=[check], dialect="pactgate", start=start)
    with TemporaryDirectory() as folder:
        return (await run(plan, Path(folder), lambda text: None, lambda path, text: None)).checks[0]


def servers_of(check: type[Check]) -> tuple[str, ...]:
    """For what is the same on every route, one server of each era is enough."""
    if check.family not in (Family.PROGRESS, Family.ASKING, Family.TRACING):
        return (*HTTP, "ls")
    return ("lh", *[tag for tag in ("mh", "ls") if tag in check.servers and (tag == "mh" or len(check.servers) == 1)])


@contextmanager
def without_patience() -> Iterator[None]:
    """Waits that are long for the sake of slow gateways are short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(change, "WAIT_S", 0.5)
        patch.setattr(cancelling, "WAIT_S", 0.5)
        patch.setattr(given_up, "_ANSWER_S", 0.3)
        patch.setattr(neighbours, "UNDER_WAY_S", 0.1)
        patch.setattr(neighbours, "BACK_S", 3.0)
        patch.setattr(neighbours, "FAULTY_S", 1.0)
        patch.setattr(neighbours, "_PAUSE_S", 0.05)
        patch.setattr(lab, "_POLL_S", 0.01)
        patch.setattr(under_test, "_POLL_S", 0.05)
        patch.setattr(under_test, "REST_S", 0.3)
        yield


def _proxy(stack: AsyncExitStack, url: str) -> BreakingProxy:
    proxy = BreakingProxy(url)
    stack.callback(proxy.close)
    return proxy
