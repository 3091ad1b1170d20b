"""`pactgate compliance gateway`: play the gateway profile against any gateway, or judge a recorded run again.

Exit codes: 0 every check passed that could be asked; 1 otherwise; 2 wrong invocation, or nothing could be played. What it needs is
imported when it runs. Must not: decide whether a check passed.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pactgate.cli import terminal
from pactgate.cli.errors import CommandError
from pactgate.cli.run_folder import run_folder
from pactgate.cli.running_gateways import temporary_folder
from pactgate.cli.shared_options import header_option
from pactgate.cli.table import Column, show_table

if TYPE_CHECKING:
    from pactgate.conformance.gateway.check import Check
    from pactgate.conformance.gateway.recording import RunRecording
    from pactgate.conformance.gateway.run import RunPlan

_EXAMPLES: Final = """\
\b
Examples:
  pactgate compliance gateway --for pactgate \\
    --start "pactgate serve --config {config} --port {port}"
  pactgate compliance gateway --for fastmcp --url http://127.0.0.1:8000/mcp
  pactgate compliance gateway --url http://127.0.0.1:8000/mcp --only fidelity
  pactgate compliance gateway --from run.json --format markdown

Exit codes: 0 passed, 1 findings, 2 wrong invocation or nothing could be played.
"""
_FORMATS: Final = ("text", "json", "junit", "sarif", "markdown", "github", "svg")
DIALECT_NAMES: Final = (
    *("common", "pactgate", "fastmcp", "1mcp", "litellm", "agentgateway", "docker", "contextforge", "mcp-proxy"),
    *("supergateway", "nginx", "direct"),
)


@click.command(epilog=_EXAMPLES, context_settings={"show_default": True})
@click.option(
    "--url", metavar="URL", default="", help="Where clients reach the gateway. With --start, {port} is replaced."
)
@click.option("--start", metavar="COMMAND", default="", help="Starts the gateway; {config} and {port} are replaced.")
@click.option(
    "--for",
    "dialect",
    type=click.Choice(DIALECT_NAMES),
    default="common",
    metavar="KIND",
    help=f"What the gateway's configuration looks like: {', '.join(DIALECT_NAMES)}.",
)
@header_option
@click.option("--name", default="", help="Name and version of the gateway in the report. Default: what it says itself.")
@click.option("--only", metavar="CODE|FAMILY,...", help="Play only these checks.")
@click.option(
    "--era", type=click.Choice(["both", "legacy", "modern"]), default="both", help="Eras of the scripted clients."
)
@click.option(
    "--servers", metavar="ID,...", default="", help="Start only these servers, for a gateway that one of them breaks."
)
@click.option(
    "--wait",
    "wait_s",
    metavar="SECONDS",
    type=click.FloatRange(1, 3600),
    default=60.0,
    help="How long the tools may take to appear.",
)
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", help="Format of the report.")
@click.option(
    "--fail-on",
    type=click.Choice(["must", "should", "advice"]),
    default="advice",
    help="The weakest level that counts.",
)
@click.option("--output", "-o", metavar="FILE", help="Keep the recording of the run.")
@click.option("--from", "source", metavar="FILE", help="Judge this recording, without a gateway.")
@click.option("--list", "is_list", is_flag=True, help="List the checks.")
def gateway(
    *,
    url: str,
    start: str,
    dialect: str,
    headers: tuple[str, ...],
    name: str,
    only: str | None,
    era: str,
    servers: str,
    wait_s: float,
    form: str,
    fail_on: str,
    output: str | None,
    source: str | None,
    is_list: bool,
) -> int:
    """Test any MCP gateway: servers behind it, clients before it.

    Both are scripted. The servers are started here and ended afterwards. Without
    --start, start the gateway yourself with the configuration that is shown.
    """
    from pactgate.cli.live_target import header
    from pactgate.conformance.formats import RENDER, ReportFormat
    from pactgate.conformance.formats.as_text import as_text
    from pactgate.conformance.gateway import recording
    from pactgate.conformance.gateway.results import judge
    from pactgate.conformance.gateway.run import RunPlan
    from pactgate.conformance.rule import RequirementLevel

    checks = _selected(only)
    if is_list:
        columns = (Column("CODE"), Column("LEVEL"), Column("FAMILY"), Column("CHECK", is_long=True))
        show_table(columns, ([c.code, c.level.upper(), c.family.value, c.title()] for c in checks))
        return 0
    if sum((source is not None, bool(url or start) or dialect == "direct")) != 1:
        raise CommandError("Give a gateway (--url or --start), or a recording (--from).")
    if source is not None:
        try:
            run = recording.load(Path(source))
        except recording.UnreadableRecordingError as problem:
            raise CommandError(str(problem)) from None
    else:
        identity = dict(map(header, headers))
        plan = RunPlan(checks, dialect, url, start, name, identity, wait_s, "" if era == "both" else era, _ids(servers))
        run = _played(plan)
    if output is not None:
        recording.save(run, Path(output))
    report = judge(run, fail_on=RequirementLevel(fail_on))
    if form == "text":
        sys.stdout.write(as_text(report, lambda text, style: terminal.paint(text, style, sys.stdout)))
    else:
        sys.stdout.write(RENDER[ReportFormat(form)](report))
    return report.exit_code


def _selected(only: str | None) -> list[type[Check]]:
    from pactgate.conformance.gateway.check import Family
    from pactgate.conformance.gateway.checks import CHECKS

    if only is None:
        return list(CHECKS)
    words = [word.strip().lower() for word in only.split(",")]
    known = {check.code.lower() for check in CHECKS} | {_short(family) for family in Family}
    if unknown := [word for word in words if word not in known]:
        families = ", ".join(_short(family) for family in Family)
        raise CommandError(
            f"There is no check or family {unknown[0]!r}.", f"Families: {families}. --list shows the checks."
        )
    return [check for check in CHECKS if check.code.lower() in words or _short(check.family) in words]


def _ids(servers: str) -> list[str]:
    from pactgate.conformance.gateway.fleet import SERVERS

    ids = [word.strip() for word in servers.split(",") if word.strip()]
    known = [kind.id for kind in SERVERS.values()]
    if unknown := [id_ for id_ in ids if id_ not in known]:
        raise CommandError(f"There is no server {unknown[0]!r}.", f"Servers: {', '.join(known)}.")
    return ids


def _short(family: str) -> str:
    """The first word of a family, which is enough on a command line."""
    return family.split()[0].rstrip(",")


def _played(plan: RunPlan) -> RunRecording:
    from pactgate.conformance.gateway.client import ClientError
    from pactgate.conformance.gateway.fleet import FleetError
    from pactgate.conformance.gateway.gateway_process import StartError
    from pactgate.conformance.gateway.run import run
    from pactgate.conformance.gateway.under_test import UnreachableError

    def announce(config: Path, written: str) -> None:
        print(f"Start the gateway with this configuration ({config}):\n\n{written}\n", file=sys.stderr, flush=True)

    async def until_ended() -> RunRecording:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await run(plan, folder, tell, announce)

    with run_folder(temporary_folder()) as folder, terminal.spinner("starting") as tell:
        try:
            return asyncio.run(until_ended())
        except asyncio.CancelledError:
            raise CommandError("The run was ended by SIGTERM; nothing is left of it.") from None
        except (FleetError, StartError, UnreachableError, ClientError) as problem:
            raise CommandError(str(problem)) from None
