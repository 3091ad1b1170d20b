"""`pactgate compliance`: judge a capture, many of them, or read what a rule says.

Exit codes: 0 everything that decides passed and there is no hazard; 1 otherwise, also for a capture that can't be read; 2 wrong
invocation. The checker itself is imported only when a command runs. Must not: decide a verdict. Enforces S3/CLI.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pactgate.cli import terminal
from pactgate.cli.table import Column, show_table
from pactgate.core.display import flat, visible

if TYPE_CHECKING:
    from pactgate.cli.live_target import LiveSource
    from pactgate.conformance.report import Report
    from pactgate.conformance.rule import Rule
    from pactgate.conformance.suite import Outcome

_EXAMPLES: Final = """\
\b
Examples:
  pactgate compliance invariants --capture session.json
  pactgate compliance invariants --capture - --format json < session.json
  pactgate compliance invariants --capture session.json --rules all --fail-on should
  pactgate compliance invariants --live http://127.0.0.1:8000/mcp
  pactgate compliance invariants --live -o session.json -- npx -y my-server
  pactgate compliance run --config examples/official-conformance.yml
  pactgate compliance rules INV-002

Exit codes: 0 passed, 1 findings or an unreadable capture, 2 wrong invocation.
"""
_BAR_CHARS: Final = 24
_WRONG: Final = 2

app = typer.Typer(
    help="Judge recorded sessions against the protocol. Nothing is contacted, except with --live.",
    epilog=_EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode=None,
)


class Form(StrEnum):
    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    SARIF = "sarif"
    MARKDOWN = "markdown"


class EraChoice(StrEnum):
    AUTO = "auto"
    LEGACY = "legacy"
    MODERN = "modern"


class LevelChoice(StrEnum):
    MUST = "must"
    SHOULD = "should"


class SuiteForm(StrEnum):
    TEXT = "text"
    JSON = "json"


class Unjudged(StrEnum):
    SHOW = "show"
    FAIL = "fail"


@app.command(epilog=_EXAMPLES)
def invariants(
    target: Annotated[
        list[str] | None, typer.Argument(metavar="[URL | -- COMMAND]", help="With --live: the server to ask.")
    ] = None,
    capture: Annotated[str | None, typer.Option(metavar="FILE", help="The capture; - reads standard input.")] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Ask a server first, by a scripted session that changes nothing.")
    ] = False,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="'NAME: VALUE'", help="With --live URL: a header to send.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="With --live: keep the capture.")
    ] = None,
    form: Annotated[Form, typer.Option("--format", help="How to write the report.")] = Form.TEXT,
    rules: Annotated[
        str | None,
        typer.Option(
            metavar="inv|gw|all|CODE,...",
            help="Run these rules, and let them decide. Default: all run, INV and the two hazards decide.",
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="FILE", help="Rules that are known to fail; a stale entry fails the run.")
    ] = None,
    fail_on: Annotated[LevelChoice, typer.Option(help="The weakest keyword that counts.")] = LevelChoice.MUST,
    era: Annotated[EraChoice, typer.Option(help="Which era the session is of.")] = EraChoice.AUTO,
    not_judged: Annotated[Unjudged, typer.Option(help="What it means that a rule could not judge.")] = Unjudged.SHOW,
    allow_missing_initialized: Annotated[
        bool, typer.Option("--allow-missing-initialized", help="Don't count an absent notifications/initialized.")
    ] = False,
) -> None:
    """Judge a capture: a session, or several side by side. With --live, ask a server and judge what it said."""
    from pactgate.capture.format import CaptureError, Progress
    from pactgate.conformance.baseline import BaselineError, load
    from pactgate.conformance.check import check_capture
    from pactgate.conformance.report import Problem, Report
    from pactgate.conformance.selection import UnknownRuleError

    given = _source(capture, target or [], header or [], output, live=live)

    def judge(on_progress: Progress | None) -> Report:
        return check_capture(
            given if isinstance(given, str) else given.ask(era.value),
            rules=rules,
            era=era.value,
            allow_missing_initialized=allow_missing_initialized,
            fail_on=fail_on.value,
            unjudged_fails=not_judged is Unjudged.FAIL,
            baseline=() if baseline is None else load(Path(baseline)),
            on_progress=on_progress,
        )

    try:
        report = _with_progress(f"judging {given}", judge)
    except (UnknownRuleError, BaselineError) as problem:
        terminal.problem(str(problem))
        raise typer.Exit(_WRONG) from None
    except CaptureError as problem:
        report = Report(str(given), error=Problem(problem.kind.value, problem.message))
        terminal.problem(problem.message)
    finally:
        if not isinstance(given, str):
            given.leave()
    _write(report, form)
    raise typer.Exit(report.exit_code)


@app.command()
def run(
    config: Annotated[str, typer.Option("--config", "-c", metavar="FILE", help="A YAML file with a list of checks.")],
    form: Annotated[SuiteForm, typer.Option("--format", help="How to write the outcome.")] = SuiteForm.TEXT,
) -> None:
    """Judge many captures in one go, each against what is expected of it."""
    from pactgate.conformance.suite import SuiteError, read_suite, run_suite

    try:
        checks = read_suite(Path(config))
    except SuiteError as problem:
        terminal.problem(str(problem))
        raise typer.Exit(_WRONG) from None
    outcomes = list(run_suite(checks))
    if form is SuiteForm.JSON:
        _say_outcomes(outcomes)
    else:
        for outcome in outcomes:
            _show_outcome(outcome)
        met = sum(outcome.is_met for outcome in outcomes)
        word, colour = ("PASSED", "green") if met == len(outcomes) else ("FAILED", "red")
        print(f"{terminal.paint(word, colour, sys.stdout)}: {met} of {len(outcomes)} checks as expected.")
    raise typer.Exit(0 if all(outcome.is_met for outcome in outcomes) else 1)


@app.command()
def rules(
    code: Annotated[str | None, typer.Argument(metavar="CODE", help="One rule, in full.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the rules, or explain one."""
    from pactgate.conformance.rules import ALL
    from pactgate.conformance.selection import BY_CODE, DOCUMENTED

    if code is not None and code.upper() not in BY_CODE:
        terminal.problem(f"There is no rule {code!r}.", "`pactgate compliance rules` lists them.")
        raise typer.Exit(_WRONG)
    chosen = ALL if code is None else (BY_CODE[code.upper()],)
    if as_json:
        described = [_described(rule, decides=rule in DOCUMENTED) for rule in chosen]
        terminal.say_json(described if code is None else described[0])
    elif code is None:
        columns = (
            Column("CODE"),
            Column("LEVEL"),
            Column("SINCE"),
            Column("UNTIL"),
        )
        rows = [[rule.code, rule.level.upper(), rule.since, rule.until, rule.title()] for rule in ALL]
        show_table((*columns, Column("WHAT MUST HOLD", is_long=True)), rows)
    else:
        _explain(chosen[0])
    raise typer.Exit(0)


def _source(
    capture: str | None, words: list[str], headers: list[str], output: str | None, *, live: bool
) -> str | LiveSource:
    """What is to be judged. Ends the command where that is not clear."""
    from pactgate.cli.live_target import BadTargetError, LiveSource

    if not live and capture is not None and not words and output is None and not headers:
        return capture
    try:
        if not live:
            raise BadTargetError("Name a capture with --capture FILE, or a server with --live.")
        if capture is not None:
            raise BadTargetError("--capture and --live are two different things to judge.")
        return LiveSource(words, headers, output)
    except BadTargetError as problem:
        terminal.problem(str(problem), "`pactgate compliance invariants --help` shows how.")
        raise typer.Exit(_WRONG) from None


def _write(report: Report, form: Form) -> None:
    from pactgate.conformance.formats import RENDER, ReportFormat
    from pactgate.conformance.formats.as_text import as_text

    if form is Form.TEXT:
        if report.error is None:
            sys.stdout.write(as_text(report, lambda text, style: terminal.paint(text, style, sys.stdout)))
        return
    text = RENDER[ReportFormat(form.value)](report)
    if form is Form.JUNIT:
        text = text.encode("ascii", "xmlcharrefreplace").decode()  # the same bytes whatever the terminal's encoding
    sys.stdout.write(text)


def _with_progress(message: str, work: Callable[[Callable[[int, int | None], None] | None], Any]) -> Any:
    with terminal.spinner(message) as turning:
        if turning is None:
            return work(None)

        def tell(done_bytes: int, total_bytes: int | None) -> None:
            turning.tell(f"{_bar(done_bytes, total_bytes)} {message}")

        return work(tell)


def _bar(done_bytes: int, total_bytes: int | None) -> str:
    megabytes = f"{done_bytes / 1e6:.0f} MB"
    if not total_bytes:
        return megabytes
    share = min(done_bytes / total_bytes, 1.0)
    return f"[{'#' * int(share * _BAR_CHARS):<{_BAR_CHARS}}] {share:4.0%} of {total_bytes / 1e6:.0f} MB"


def _show_outcome(outcome: Outcome) -> None:
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
    for hazard in outcome.report.hazards():
        print(f"        {hazard.code}  {flat(hazard.message, 200)}")


def _say_outcomes(outcomes: list[Outcome]) -> None:
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
