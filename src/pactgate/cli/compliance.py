"""`pactgate compliance`: check one capture or many, and explain the rules.

Exit codes: 0 every deciding rule passed; 1 otherwise, also for a capture that can't be read; 2 wrong invocation. The checker is imported
when a command runs. Must not: decide whether a rule passed. Enforces S3/CLI.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import click

from pactgate.cli import terminal
from pactgate.cli.compliance_gateway import gateway
from pactgate.cli.errors import CommandError
from pactgate.cli.shared_options import header_option, json_option
from pactgate.cli.table import Column, show_table
from pactgate.core.display import flat, visible

if TYPE_CHECKING:
    from pactgate.conformance.report import ComplianceReport
    from pactgate.conformance.rule import Rule
    from pactgate.conformance.suite import CheckOutcome

_EXAMPLES: Final = """\
\b
Examples:
  pactgate compliance invariants --capture session.json
  pactgate compliance invariants --live http://127.0.0.1:8000/mcp
  pactgate compliance invariants --live -- npx -y my-server
  pactgate compliance invariants --live --call 'echo={"a": 1}' -- my-server
  pactgate compliance run --config examples/official-conformance.yml
  pactgate compliance rules INV-002

Exit codes: 0 passed, 1 findings or unreadable, 2 wrong invocation.
"""
_BAR_CHARS: Final = 24
_FORMATS: Final = ("text", "json", "junit", "sarif", "markdown", "github")


@click.group(epilog=_EXAMPLES)
def compliance() -> None:
    """Check recorded sessions against the protocol. Nothing is contacted, except with --live."""


@compliance.command(epilog=_EXAMPLES, context_settings={"show_default": True})
@click.argument("target", metavar="[URL | -- COMMAND...]", nargs=-1)
@click.option("--capture", metavar="FILE", help="The capture; - reads standard input.")
@click.option(
    "--live", is_flag=True, help="Probe a server and check what it answers. No tool is called without --call."
)
@click.option(
    "--call",
    "calls",
    metavar="TOOL=JSON",
    multiple=True,
    help="With --live: call this tool with these arguments. Repeatable.",
)
@header_option
@click.option("--output", "-o", metavar="FILE", help="With --live: keep the capture.")
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", help="Format of the report.")
@click.option("--sarif-location", metavar="FILE", help="With --live: the file that annotations are shown at.")
@click.option(
    "--rules",
    metavar="inv|gw|lint|all|CODE,...",
    help="Run only these rules; they decide the exit code. Default: all run, INV and the two conflict rules decide.",
)
@click.option("--baseline", metavar="FILE", help="Rules that are known to fail; a stale entry fails the run.")
@click.option(
    "--fail-on", type=click.Choice(["must", "should", "advice"]), default="must", help="The weakest level that counts."
)
@click.option(
    "--era", type=click.Choice(["auto", "legacy", "modern"]), default="auto", help="Protocol era of the session."
)
@click.option(
    "--not-judged", type=click.Choice(["show", "fail"]), default="show", help="Whether a rule without a result fails."
)
@click.option("--allow-missing-initialized", is_flag=True, help="Don't count a missing notifications/initialized.")
def invariants(
    *,
    target: tuple[str, ...],
    capture: str | None,
    live: bool,
    calls: tuple[str, ...],
    headers: tuple[str, ...],
    output: str | None,
    form: str,
    sarif_location: str | None,
    rules: str | None,
    baseline: str | None,
    fail_on: str,
    era: str,
    not_judged: str,
    allow_missing_initialized: bool,
) -> int:
    """Check a capture of one session or several. With --live, probe a server and check what it answers.

    With --live, URL or COMMAND is the server. It is sent what a good client sends and what a wrong one does: unknown names, cursors and
    versions, wrong types, cancellations, over HTTP also wrong headers. None of it changes anything there.
    """
    from msgspec.structs import replace

    from pactgate.capture.format import CaptureError
    from pactgate.cli.live_target import label, location_of, record_session, target_of
    from pactgate.conformance.baseline import BaselineError, load
    from pactgate.conformance.check import check_capture
    from pactgate.conformance.report import ComplianceReport, ReportFailure
    from pactgate.conformance.selection import UnknownRuleError

    if live is (capture is not None):
        raise CommandError("Give exactly one of: --capture FILE, --live with a server.")
    if not live and (target or headers or calls or output is not None or sarif_location is not None):
        raise CommandError("A server, --call, --header, --output and --sarif-location need --live.")
    server = target_of(target, headers, calls) if capture is None else None
    source = capture or output or (label(server) if server else "")
    location = None if server is None else location_of(server, sarif_location)
    with TemporaryDirectory(prefix="pactgate-") as folder, terminal.spinner(f"checking {source}") as tell:
        try:
            checked = check_capture(
                record_session(server, output, folder, era) if server else source,
                rules=rules,
                era=era,
                allow_missing_initialized=allow_missing_initialized,
                fail_on=fail_on,
                unjudged_fails=not_judged == "fail",
                baseline=() if baseline is None else load(Path(baseline)),
                on_progress=lambda done, total: tell(f"{_bar(done, total)} checking {source}"),
            )
            report = replace(checked, source=source, location=location)
        except (UnknownRuleError, BaselineError) as problem:
            raise CommandError(str(problem)) from None
        except CaptureError as problem:
            failure = ReportFailure(problem.kind.value, problem.message)
            report = ComplianceReport(source, error=failure, location=location)
    if report.error is not None:
        terminal.problem(report.error.message)
    _write(report, form)
    return report.exit_code


@compliance.command(context_settings={"show_default": True})
@click.option("--config", "-c", metavar="FILE", required=True, help="A YAML file with a list of checks.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Format of the report.")
def run(*, config: str, form: str) -> int:
    """Check many captures, each against its expected failures."""
    from pactgate.conformance.suite import SuiteError, read_suite, run_suite

    try:
        checks = read_suite(Path(config))
    except SuiteError as problem:
        raise CommandError(str(problem)) from None
    outcomes = list(run_suite(checks))
    met = sum(outcome.is_met for outcome in outcomes)
    if form == "json":
        _print_json(outcomes)
    else:
        for outcome in outcomes:
            _show_outcome(outcome)
        word, colour = ("PASSED", "green") if met == len(outcomes) else ("FAILED", "red")
        print(f"{terminal.paint(word, colour, sys.stdout)}: {met} of {len(outcomes)} checks as expected.")
    return 0 if met == len(outcomes) else 1


compliance.add_command(gateway)


@compliance.command()
@click.argument("code", metavar="[CODE]", required=False)
@json_option
def rules(*, code: str | None, as_json: bool) -> int:
    """List the rules, or explain the rule CODE."""
    from pactgate.conformance.rules import ALL
    from pactgate.conformance.selection import DOCUMENTED, rule_of

    try:
        chosen = ALL if code is None else (rule_of(code.upper()),)
    except KeyError:
        raise CommandError(f"There is no rule {code!r}.", "`pactgate compliance rules` lists them.") from None
    if as_json:
        described = [_described(rule, decides=rule in DOCUMENTED) for rule in chosen]
        terminal.say_json(described if code is None else described[0])
    elif code is None:
        columns = (Column("CODE"), Column("LEVEL"), Column("SINCE"), Column("UNTIL"), Column("RULE", is_long=True))
        show_table(columns, ([rule.code, rule.level.upper(), rule.since, rule.until, rule.title()] for rule in ALL))
    else:
        _explain(chosen[0])
    return 0


def _write(report: ComplianceReport, form: str) -> None:
    from pactgate.conformance.formats import RENDER, ReportFormat
    from pactgate.conformance.formats.as_text import as_text

    if form == "text":
        if report.error is None:
            sys.stdout.write(as_text(report, lambda text, style: terminal.paint(text, style, sys.stdout)))
        return
    text = RENDER[ReportFormat(form)](report)
    if form == "junit":
        text = text.encode("ascii", "xmlcharrefreplace").decode()  # the same bytes in every terminal encoding
    sys.stdout.write(text)


def _bar(done_bytes: int, total_bytes: int | None) -> str:
    if not total_bytes:
        return f"{done_bytes / 1e6:.0f} MB"
    share = min(done_bytes / total_bytes, 1.0)
    return f"[{'#' * int(share * _BAR_CHARS):<{_BAR_CHARS}}] {share:4.0%} of {total_bytes / 1e6:.0f} MB"


def _show_outcome(outcome: CheckOutcome) -> None:
    word, colour = ("ok", "green") if outcome.is_met else ("FAIL", "red")
    print(f"  {terminal.paint(f'{word:<4}', colour, sys.stdout)}  {flat(outcome.check.name, 200)}")
    if outcome.is_met:
        return
    if outcome.report.error is not None:
        print(f"        {visible(outcome.report.error.message)}")
        return
    wanted, failed = (", ".join(codes) or "nothing" for codes in (outcome.check.fails, outcome.failed))
    print(f"        expected to fail: {wanted}; failed: {failed}")
    for session, result in outcome.report.failures():
        print(f"        {result.code}  {flat(session.label, 60)}: {flat(result.message, 200)}")
    for hazard in outcome.report.conflicts():
        print(f"        {hazard.code}  {flat(hazard.message, 200)}")


def _print_json(outcomes: list[CheckOutcome]) -> None:
    from pactgate.conformance.formats.as_json import as_dict

    checks = [
        {
            "name": outcome.check.name,
            "expected_failures": list(outcome.check.fails),
            "failures": list(outcome.failed),
            "met": outcome.is_met,
            "report": as_dict(outcome.report),
        }
        for outcome in outcomes
    ]
    terminal.say_json({"schema_version": 1, "passed": all(o.is_met for o in outcomes), "checks": checks})


def _described(rule: type[Rule], *, decides: bool) -> dict[str, Any]:
    return {
        "id": rule.code,
        "rule": rule.slug(),
        "category": rule.category,
        "level": rule.level.value,
        "since": rule.since,
        "until": rule.until,
        "decides": decides,
        "title": rule.title(),
        "url": rule.url(),
        "sections": rule.sections(),
    }


def _explain(rule: type[Rule]) -> None:
    import textwrap

    print(f"{terminal.paint(rule.code, 'bold', sys.stdout)}  {rule.slug()}")
    print(f"{rule.category}, {rule.level.upper()}, {rule.since} to {rule.until}\n")
    print(textwrap.fill(rule.title(), 100, break_on_hyphens=False))
    for name, text in rule.sections().items():
        print(f"\n{terminal.paint(name, 'bold', sys.stdout)}")
        print(textwrap.fill(text, 100, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False))
    if rule.url() is not None:
        print(f"  {rule.url()}")
