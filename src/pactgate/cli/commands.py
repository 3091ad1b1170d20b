"""The command tree: names, options, help. Each command hands over to the file of its family and returns its exit code."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from pactgate import __version__
from pactgate.cli import terminal
from pactgate.cli.audit import app as audit
from pactgate.cli.compliance import app as compliance
from pactgate.cli.config_command import app as settings
from pactgate.cli.gateway_options import Json as _Json
from pactgate.cli.gateway_options import Token as _Token
from pactgate.cli.gateway_options import Url as _Url
from pactgate.cli.gateway_options import ask as _ask

_EXAMPLES: Final = """\
\b
Examples:
  pactgate serve                                  the demo, when there is no configuration
  pactgate serve --config pactgate.jsonc          your servers behind one endpoint
  pactgate tools                                  what can be called
  pactgate call date_facts date=2026-06-21        call it
  pactgate call countdown steps:=3 --json         an argument as JSON, the answer as JSON
  pactgate add weather --openapi weather.yaml     a REST API behind the gateway
  pactgate check                                  is the configuration good?
  pactgate serve --stdio notes.py                 your own tools, in one Python file
  pactgate doctor                                 why does it not work?
  pactgate compliance invariants --capture F      is a recorded session as the protocol wants it?

Exit codes: 0 good, 1 findings or failures, 2 wrong invocation or configuration.
"""

app = typer.Typer(
    name="pactgate",
    help="An MCP gateway: every MCP server behind one endpoint, for clients of either protocol era.",
    epilog=_EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
app.add_typer(compliance, name="compliance")
app.add_typer(audit, name="audit")
app.add_typer(compliance, name="conformance", hidden=True)
app.add_typer(settings, name="config")

_Config = Annotated[
    str | None,
    typer.Option(
        "--config", "-c", metavar="FILE", help="Configuration file. Default: pactgate.* here, else the user's."
    ),
]
_Server = Annotated[str | None, typer.Option("--server", "-s", metavar="ID", help="Only this server.")]


def _version(asked: bool) -> None:
    if asked:
        print(f"pactgate {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def serve(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A Python file of tools, to be served without a configuration.")
    ] = None,
    config: _Config = None,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Serve one client on stdin and stdout instead of HTTP.")
    ] = False,
    host: Annotated[str | None, typer.Option(metavar="HOST", help="Address to listen on. Default 127.0.0.1.")] = None,
    port: Annotated[
        int | None, typer.Option(metavar="PORT", help="Port to listen on. Default 7411; 0 takes a free one.")
    ] = None,
    log_level: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="debug, info, warning or error. Default info.")
    ] = None,
    admin: Annotated[
        bool,
        typer.Option("--admin", help="With --stdio: let that client, and the model behind it, manage the gateway."),
    ] = False,
) -> None:
    """Run the gateway. Without a configuration it serves a demo."""
    from pactgate.cli.options import ServeOptions
    from pactgate.cli.serve import run as run_gateway

    raise typer.Exit(run_gateway(ServeOptions(config, stdio, host, port, log_level, file, admin)))


@app.command()
def check(
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="A Python file of tools, to be checked instead of a configuration."),
    ] = None,
    config: _Config = None,
    live: Annotated[
        bool, typer.Option("--live", help="Connect to every server once, and compare what they offer.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Check the configuration: every problem with its place, or what would be served. Starts nothing without --live."""
    if file is not None:
        from pactgate.cli.tools_file import check_tools

        raise typer.Exit(check_tools(file, as_json=as_json))
    from pactgate.cli import check as family

    raise typer.Exit(family.check(config, is_live=live, as_json=as_json))


@app.command(
    epilog="Examples: pactgate add weather --openapi weather.yaml, pactgate add crm --url https://crm.example/mcp, "
    "pactgate add files -- npx -y @modelcontextprotocol/server-filesystem ."
)
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Id of the server: letters a-z, digits and hyphens.")],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- CMD...]", help="Program to start, with its arguments.")
    ] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Address of an MCP server.")] = None,
    openapi: Annotated[
        str | None, typer.Option(metavar="URL|FILE", help="OpenAPI document of a REST API; shows the tools it makes.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the API is. Default: as the document says.")
    ] = None,
    credential: Annotated[
        list[str] | None,
        typer.Option(metavar="SCHEME=VALUE", help="Credential for a security scheme of the document, as ${VARIABLE}."),
    ] = None,
    config: _Config = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done; write nothing.")] = False,
    as_json: _Json = False,
) -> None:
    """Add a server to the configuration, which is made if there is none. Starts nothing."""
    from pactgate.cli.add import AddOptions
    from pactgate.cli.add import add as add_server

    given = (tuple(command or ()), url, openapi, base_url, tuple(credential or ()))
    raise typer.Exit(add_server(AddOptions(name, *given, config, dry_run, as_json)))


@app.command()
def doctor(config: _Config = None, as_json: _Json = False) -> None:
    """Find out why it does not work: this machine, the configuration, the port, every server. Connects to each server once."""
    from pactgate.cli.doctor import command as family

    raise typer.Exit(family.doctor(config, as_json=as_json))


@app.command()
def servers(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also say what is left out, and why.")] = False,
    url: _Url = None,
    token: _Token = None,
    as_json: _Json = False,
) -> None:
    """List the servers behind the running gateway and how they are, the broken ones first."""
    from pactgate.cli import inspect

    raise typer.Exit(_ask(url, token, lambda client: inspect.servers(client, is_verbose=verbose, as_json=as_json)))


@app.command()
def tools(server: _Server = None, url: _Url = None, token: _Token = None, as_json: _Json = False) -> None:
    """List the tools that can be called, and what kind each is."""
    from pactgate.cli import inspect

    raise typer.Exit(_ask(url, token, lambda client: inspect.tools(client, server=server, as_json=as_json)))


@app.command()
def status(url: _Url = None, token: _Token = None, as_json: _Json = False) -> None:
    """Say how the running gateway is. Exit code 1 when one of its servers is down."""
    from pactgate.cli import inspect

    raise typer.Exit(_ask(url, token, lambda client: inspect.status(client, as_json=as_json)))


@app.command(epilog="Example: pactgate call almanac.convert_units value=26.2 from=mi to=km")
def call(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The tool: almanac__date_facts, almanac.date_facts, or date_facts.")
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Arguments; KEY:=JSON for a value as JSON.")
    ] = None,
    args: Annotated[
        str | None, typer.Option("--args", metavar="JSON", help="All arguments as one JSON object.")
    ] = None,
    server: _Server = None,
    timeout_ms: Annotated[
        int | None,
        typer.Option("--timeout-ms", metavar="MS", min=1, help="Give up, and cancel the call, after this long."),
    ] = None,
    url: _Url = None,
    token: _Token = None,
    as_json: _Json = False,
) -> None:
    """Call a tool and show its answer. Exit code 1 when it failed."""
    from pactgate.cli import call as family

    try:
        code = _ask(
            url,
            token,
            lambda client: family.call(
                client, name, arguments or [], server=server, args=args, timeout_ms=timeout_ms, as_json=as_json
            ),
        )
    except family.BadArgumentsError as wrong:
        terminal.problem(str(wrong))
        raise typer.Exit(2) from None
    raise typer.Exit(code)


@app.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Examples: pactgate record -o session.json -- npx -y my-server; pactgate record --url http://127.0.0.1:8000/mcp --port 9000",
)
def record(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND", help="The server to start, with its arguments.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The capture. Default: session.json, or the next free name."
        ),
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="An HTTP server instead of a command.")
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="PORT", min=0, max=65535, help="Where clients find it on 127.0.0.1; 0 takes a free port."
        ),
    ] = 0,
    label: Annotated[
        str | None, typer.Option("--label", metavar="TEXT", help="What to call the server in the capture.")
    ] = None,
) -> None:
    """Stand between a client and a server and write a capture of what passes. Nothing on the wire is changed."""
    from pactgate.cli import record as family

    if (url is None) == (not command):
        terminal.problem("Name one server: a command behind --, or --url.")
        raise typer.Exit(2)
    if url is not None:
        raise typer.Exit(family.record_url(url, port, output, label))
    raise typer.Exit(family.record_command(command or [], output, label))


@app.command(
    epilog="Examples: pactgate replay session.json; pactgate replay session.json --against http://127.0.0.1:8000/mcp",
)
def replay(
    capture: Annotated[str, typer.Argument(metavar="FILE", help="The capture.")],
    target: Annotated[
        list[str] | None, typer.Argument(metavar="[URL | -- COMMAND]", help="With --against: the server to ask.")
    ] = None,
    against: Annotated[
        bool, typer.Option("--against", help="Play its requests at a server and show where the answers differ.")
    ] = False,
    port: Annotated[
        int | None, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Serve over HTTP, not stdio.")
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="N|LABEL", help="Which one, where the capture has several.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="'NAME: VALUE'", help="With --against URL: send this.")
    ] = None,
    as_json: _Json = False,
) -> None:
    """Serve a capture as if it were the server, or play it at a server and compare. Requests are sent as recorded."""
    from pactgate.cli import replay as family

    raise typer.Exit(
        family.replay(capture, session, target or [], header or [], against=against, port=port, as_json=as_json)
    )


@app.command(epilog="Example: pactgate probe almanac.date_facts date=2026-11-16")
def probe(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Arguments; KEY:=JSON for a value as JSON.")
    ] = None,
    args: Annotated[
        str | None, typer.Option("--args", metavar="JSON", help="All arguments as one JSON object.")
    ] = None,
    server: _Server = None,
    yes: Annotated[bool, typer.Option("--yes", help="Also a tool that is not declared safe to repeat.")] = False,
    url: _Url = None,
    token: _Token = None,
    as_json: _Json = False,
) -> None:
    """Call an idempotent tool twice and compare: exit code 0 the same, 1 different, 2 not safe to try."""
    from pactgate.cli import probe as family
    from pactgate.cli.call import BadArgumentsError

    try:
        code = _ask(
            url,
            token,
            lambda client: family.probe(
                client, name, arguments or [], server=server, args=args, is_sure=yes, as_json=as_json
            ),
        )
    except BadArgumentsError as wrong:
        terminal.problem(str(wrong))
        raise typer.Exit(2) from None
    raise typer.Exit(code)


@app.command(epilog="Example: pactgate explain 0248e0a6-3af6-4db4-8d33-d87a7cab4540")
def explain(
    request_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="The request id of a call. Left out: the last calls.")
    ] = None,
    log: Annotated[
        str | None,
        typer.Option("--audit", metavar="FILE", help="An audit log to look into. Default: that of the configuration."),
    ] = None,
    config: _Config = None,
    url: _Url = None,
    token: _Token = None,
    as_json: _Json = False,
) -> None:
    """Tell the story of one call: who, what, how far it came, what ended it, what to do next."""
    from pactgate.cli import explain as family

    if request_id is None:
        raise typer.Exit(_ask(url, token, lambda client: family.latest(client, as_json=as_json)))
    known, found = request_id, _audit_log(log, config)
    raise typer.Exit(_ask(url, token, lambda client: family.explain(client, known, log=found, as_json=as_json)))


@app.command(epilog="Example: pactgate learn files --for 60")
def learn(
    server: Annotated[str, typer.Argument(metavar="SERVER", help="The id of a server with a command.")],
    for_s: Annotated[
        float,
        typer.Option("--for", metavar="SECONDS", min=0, max=3600, help="Also serve it alone for so long, to be used."),
    ] = 0,
    config: _Config = None,
    as_json: _Json = False,
) -> None:
    """Run a server under observation (strace) and propose its effects, to be put into its entry."""
    from pactgate.cli import learn as family

    raise typer.Exit(family.learn(server, config_file=config, for_s=for_s, as_json=as_json))


def run_command(words: list[str]) -> int:
    """The exit code of a command line."""
    try:
        app(args=words, prog_name="pactgate")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0
    return 0


def _audit_log(file: str | None, config: str | None) -> Any:
    """The audit log to look into, if there is one."""
    from pathlib import Path

    from pactgate.cli.audit import NoLogError, configured_log
    from pactgate.config.problems import ConfigurationError

    if file is not None:
        return Path(file)
    try:
        return configured_log(config)
    except (NoLogError, ConfigurationError):
        return None
