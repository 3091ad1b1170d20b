"""The command tree: each command's name and one-line help. A command's module is imported when the command runs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from pactgate import __version__
from pactgate.cli.errors import CommandError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

INTERRUPTED: Final = 130
_EPILOG: Final = """\
\b
Examples:
  pactgate serve                               run the demo
  pactgate add files -- npx -y some-server     add a server of your own
  pactgate add weather --openapi weather.yaml  add a REST API
  pactgate serve --config pactgate.jsonc       serve your servers
  pactgate serve --stdio notes.py              serve a file of Python tools
  pactgate tools                               list the tools
  pactgate call date_facts date=2026-06-21     call a tool
  pactgate call countdown steps:=3             give an argument as JSON
  pactgate doctor                              find out what does not work

\b
Shell completion: eval "$(pactgate completion bash)", also zsh and fish.
Exit codes: 0 good, 1 failures, 2 wrong invocation or configuration.
"""


class LazyCommand(NamedTuple):
    """Where a command is defined (`module:name`), and its one-line help."""

    target: str
    help: str
    is_hidden: bool = False


COMMANDS: Final[Mapping[str, LazyCommand]] = {
    "serve": LazyCommand("serve:serve", "Run the gateway."),
    "check": LazyCommand("check:check", "Check the configuration."),
    "add": LazyCommand("add:add", "Add a server to the configuration."),
    "remove": LazyCommand("edit_servers:remove", "Remove a server from the configuration."),
    "enable": LazyCommand("edit_servers:enable", "Let the gateway use a server again."),
    "disable": LazyCommand("edit_servers:disable", "Keep a server without using it."),
    "reload": LazyCommand("edit_servers:reload", "Have the running gateway read its configuration now."),
    "import": LazyCommand("clients:import_servers", "Take over the servers that MCP clients have."),
    "connect": LazyCommand("connect:connect", "Let an MCP client use the gateway."),
    "disconnect": LazyCommand("connect:disconnect", "Give a client its file back."),
    "clients": LazyCommand("clients:list_clients", "List the MCP clients on this machine."),
    "doctor": LazyCommand("doctor.command:doctor", "Find out why something does not work."),
    "servers": LazyCommand("inspect:servers", "List the servers of the running gateway."),
    "tools": LazyCommand("inspect:tools", "List the tools that can be called."),
    "prompts": LazyCommand("entries:prompts", "List the prompts."),
    "prompt": LazyCommand("entries:prompt", "Get a prompt and show its messages."),
    "resources": LazyCommand("entries:resources", "List the resources and templates."),
    "read": LazyCommand("entries:read", "Read a resource."),
    "status": LazyCommand("inspect:status", "Show the status of the running gateway."),
    "call": LazyCommand("call:call", "Call a tool and show its result."),
    "probe": LazyCommand("probe:probe", "Call an idempotent tool twice and compare the results."),
    "explain": LazyCommand("explain:explain", "Explain a call, or list the last calls."),
    "top": LazyCommand("top:top", "Watch the traffic of the running gateway."),
    "logs": LazyCommand("logs:logs", "Show what a server wrote to stderr, and its log messages."),
    "config": LazyCommand("config_command:config", "Read and change settings of the running gateway."),
    "keys": LazyCommand("keys:keys", "Make, list, rotate and revoke API keys."),
    "token": LazyCommand("make_token:make_token", "Make a token for the configuration."),
    "views": LazyCommand("views:views", "List views, or propose one from recorded sessions."),
    "policy": LazyCommand("policy:policy", "Show what the permissions allow, and to whom."),
    "login": LazyCommand("login:login", "Sign in to a server that wants OAuth."),
    "logout": LazyCommand("login:logout", "Forget the sign-in to a server."),
    "auth": LazyCommand("auth:auth", "Check a token, and show the sign-ins at servers."),
    "lock": LazyCommand("lock:lock", "Pin the definitions of servers, compare them, approve changes."),
    "audit": LazyCommand("audit:audit", "Check and read the audit log."),
    "learn": LazyCommand("learn:learn", "Run a server under observation and propose its effects."),
    "record": LazyCommand("record:record", "Record a session between a client and a server."),
    "replay": LazyCommand("replay:replay", "Replay a recorded session, as a server or against one."),
    "compliance": LazyCommand("compliance:compliance", "Check recorded sessions against the protocol."),
    "conformance": LazyCommand("compliance:compliance", "The same as compliance.", is_hidden=True),
    "completion": LazyCommand("commands:completion", "Print the completion script for a shell."),
}


class LazyGroup(click.Group):
    """A group that lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, lazy in COMMANDS.items() if not lazy.is_hidden]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        lazy = COMMANDS.get(cmd_name)
        if lazy is None:
            return None
        module, _, name = lazy.target.partition(":")
        command: click.Command = getattr(import_module(f"pactgate.cli.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].help) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem  # the shell asks, never a command that runs

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=COMMANDS[name].help) for name in names]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(
    cls=LazyGroup,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, message="pactgate %(version)s", help="Show the version.")
def app() -> None:
    """An MCP gateway: every MCP server behind one endpoint, for clients of every protocol version."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the completion script for a shell.

    \b
    bash: add to ~/.bashrc:                   eval "$(pactgate completion bash)"
    zsh:  add to ~/.zshrc:                    eval "$(pactgate completion zsh)"
    fish: add to ~/.config/fish/config.fish:  pactgate completion fish | source
    """
    from click.shell_completion import get_completion_class  # as above

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(app, {}, "pactgate", "_PACTGATE_COMPLETE").source())
    return 0


def _show_usage(error: click.ClickException) -> int:
    """Show a wrong invocation like every other error, with the command whose help says more."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"`{context.command_path} --help` shows how to use it." if context is not None else ""
    if isinstance(error, click.NoSuchOption) and context is not None and context.info_name == "add":
        hint = "Options of the server's own program come after --, as in: pactgate add time -- uvx mcp-server-time --local-timezone UTC"
    CommandError(error.format_message(), hint, exit_code=error.exit_code).show()
    return error.exit_code


def run_command(words: list[str]) -> int:
    """Run a command line and return its exit code."""
    try:
        code: Any = app.main(words, prog_name="pactgate", standalone_mode=False)
    except CommandError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        return _show_usage(error)
    except click.Abort:
        return INTERRUPTED
    return code if isinstance(code, int) else 0
