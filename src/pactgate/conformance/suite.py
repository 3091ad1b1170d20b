"""Checks many captures in one run against expected results: the file of `compliance run`.

A YAML (or JSON) file with `checks`, a list; each has a `capture` (relative to the file), or `live`, a server to record first: a URL or a
command as a list, run in the file's folder (`python` is the interpreter of this process); `calls` names the tools to call there, with
their arguments. It may have `name`, `expect` (`pass`,
the default, or `fails:` with exactly the rules that fail), `rules`, `era`, `fail_on`, `baseline` and `allow_missing_initialized`.
Must not: print, or decide the exit code.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from pactgate.capture.format import CaptureError, CaptureErrorKind
from pactgate.conformance.baseline import BaselineError, load, read_plain
from pactgate.conformance.check import check_capture
from pactgate.conformance.live import record_live
from pactgate.conformance.probe import ProbeTarget
from pactgate.conformance.report import BaselineEntry, ComplianceReport, ReportFailure
from pactgate.conformance.selection import BY_CODE, UnknownRuleError, select
from pactgate.core.failures import GatewayFailure
from pactgate.protocol.versions import Era

_TEXTS: Final = ("name", "capture", "rules", "era", "fail_on", "baseline")
_MEMBERS: Final = frozenset({*_TEXTS, "expect", "allow_missing_initialized", "live", "calls"})
_CHOICES: Final = {"era": ("auto", "legacy", "modern"), "fail_on": ("must", "should", "advice")}


class SuiteError(Exception):
    """The file is not a valid list of checks."""


class SuiteCheck(Struct, frozen=True):
    """One capture or live server, and the rules that are expected to fail: `fails` is empty where all must pass."""

    name: str
    capture: Path | None = None
    live: ProbeTarget | None = None
    fails: tuple[str, ...] = ()
    rules: str | None = None
    era: str = "auto"
    fail_on: str = "must"
    baseline: tuple[BaselineEntry, ...] = ()
    allow_missing_initialized: bool = False


class CheckOutcome(Struct, frozen=True):
    check: SuiteCheck
    report: ComplianceReport

    @property
    def failed(self) -> tuple[str, ...]:
        """The codes of all rules that failed and count, in order."""
        codes = {result.code for _, result in self.report.failures()} | {h.code for h in self.report.conflicts()}
        codes |= {entry.code for entry in self.report.stale}
        return tuple(code for code in BY_CODE if code in codes)

    @property
    def is_met(self) -> bool:
        return self.report.error is None and self.failed == self.check.fails


def read_suite(path: Path) -> tuple[SuiteCheck, ...]:
    try:
        document = read_plain(path)
    except BaselineError as problem:
        raise SuiteError(str(problem)) from None
    checks = document.get("checks") if isinstance(document, dict) else None
    if not isinstance(checks, list) or not checks:
        raise SuiteError(f"{path} has no list of checks.")
    return tuple(_check(path, number, fields) for number, fields in enumerate(checks, 1))


def run_suite(checks: tuple[SuiteCheck, ...]) -> Iterator[CheckOutcome]:
    for check in checks:
        try:
            report = _judge(check)
        except CaptureError as problem:
            report = ComplianceReport(check.name, error=ReportFailure(problem.kind.value, problem.message))
        except GatewayFailure as failure:
            report = ComplianceReport(
                check.name, error=ReportFailure(CaptureErrorKind.UNREADABLE.value, failure.message)
            )
        yield CheckOutcome(check, report)


def _judge(check: SuiteCheck) -> ComplianceReport:
    with tempfile.TemporaryDirectory(prefix="pactgate-") as folder:
        capture = check.capture or Path(folder) / "live.json"
        if check.live is not None:
            era = None if check.era == "auto" else Era(check.era)
            asyncio.run(record_live(check.live, capture, label=check.name, era=era))
        return check_capture(
            capture,
            rules=check.rules,
            era=check.era,
            fail_on=check.fail_on,
            baseline=check.baseline,
            allow_missing_initialized=check.allow_missing_initialized,
        )


def _check(path: Path, number: int, fields: Any) -> SuiteCheck:
    where = f"{path}: check {number}"
    _require_shape(where, fields)
    live = _live(where, fields["live"], path.parent, _calls(where, fields)) if "live" in fields else None
    named = fields.get("capture") or fields["live"]
    rules = fields.get("rules")
    try:
        select(rules)
        baseline = load(path.parent / fields["baseline"]) if "baseline" in fields else ()
    except (UnknownRuleError, BaselineError) as problem:
        raise SuiteError(f"{where}: {problem}") from None
    return SuiteCheck(
        name=fields.get("name", named if isinstance(named, str) else " ".join(named)),
        capture=None if live is not None else path.parent / fields["capture"],
        live=live,
        fails=_fails(where, fields.get("expect", "pass")),
        rules=rules,
        era=fields.get("era", "auto"),
        fail_on=fields.get("fail_on", "must"),
        baseline=baseline,
        allow_missing_initialized=fields.get("allow_missing_initialized", False),
    )


def _require_shape(where: str, fields: Any) -> None:
    if not isinstance(fields, dict):
        raise SuiteError(f"{where} must be an object with a capture.")
    unknown = sorted(fields.keys() - _MEMBERS)
    if unknown:
        raise SuiteError(f"{where} has members that do not exist: {', '.join(unknown)}.")
    for name in _TEXTS:
        if not isinstance(fields.get(name, ""), str) or not fields.get(name, "-"):
            raise SuiteError(f"{where}: {name} must be a string.")
    if ("capture" in fields) == ("live" in fields):
        raise SuiteError(f"{where} needs one of capture and live.")
    if "calls" in fields and "live" not in fields:
        raise SuiteError(f"{where}: calls needs live.")
    for name, choices in _CHOICES.items():
        if fields.get(name, choices[0]) not in choices:
            raise SuiteError(f"{where}: {name} must be one of {', '.join(choices)}.")
    if not isinstance(fields.get("allow_missing_initialized", False), bool):
        raise SuiteError(f"{where}: allow_missing_initialized must be true or false.")


def _calls(where: str, fields: dict[str, Any]) -> tuple[tuple[str, dict[str, Any]], ...]:
    calls = fields.get("calls", {})
    if not isinstance(calls, dict) or not all(isinstance(arguments, dict) for arguments in calls.values()):
        raise SuiteError(f"{where}: calls is an object of tools, each with an object of arguments.")
    return tuple(calls.items())


def _live(where: str, given: Any, folder: Path, calls: tuple[tuple[str, dict[str, Any]], ...]) -> ProbeTarget:
    if isinstance(given, str) and given.startswith(("http://", "https://")):
        return ProbeTarget(url=given, calls=calls)
    if isinstance(given, list) and given and all(isinstance(word, str) for word in given):
        program = sys.executable if given[0] == "python" else given[0]
        return ProbeTarget(command=(program, *given[1:]), cwd=str(folder.resolve()), calls=calls)
    raise SuiteError(f"{where}: live is a URL, or a command as a list of strings.")


def _fails(where: str, expected: Any) -> tuple[str, ...]:
    if expected == "pass":
        return ()
    codes = expected.get("fails") if isinstance(expected, dict) and expected.keys() == {"fails"} else None
    if not isinstance(codes, list) or not codes or not all(isinstance(code, str) for code in codes):
        raise SuiteError(f"{where}: expect is `pass`, or has `fails` with a list of rules.")
    unknown = [code for code in codes if code.upper() not in BY_CODE]
    if unknown:
        raise SuiteError(f"{where}: there is no rule {unknown[0]!r}.")
    wanted = {code.upper() for code in codes}
    return tuple(code for code in BY_CODE if code in wanted)
