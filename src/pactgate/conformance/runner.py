"""Runs rules over recorded sessions. Pure: the same exchanges and the same rules give the same results.

Each message is read once, shown to the rules that selected its role, method and revision, and then dropped. The sessions of one probe
have one report.
Must not: read files, or decide the exit code (`report` does).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pactgate.capture.format import RecordedSession
from pactgate.conformance.composition import Composition
from pactgate.conformance.message import ExchangeView, MessageKind, RecordedMessage
from pactgate.conformance.message_order import MessageOrder
from pactgate.conformance.report import SessionReport, merged, within_scope
from pactgate.conformance.rule import CompositionConflict, CompositionRule, RuleResult, SessionRule
from pactgate.conformance.selection import DOCUMENTED, RuleSelection
from pactgate.conformance.session_state import ReadingOptions, SessionState
from pactgate.protocol.versions import LEGACY_VERSIONS

_ON_MESSAGE = Callable[[RecordedMessage], None]


def run(
    selection: RuleSelection, recorded: Iterable[RecordedSession], options: ReadingOptions
) -> tuple[tuple[SessionReport, ...], tuple[CompositionConflict, ...]]:
    """Check every session, then the conflicts between several servers."""
    composition = Composition()
    sessions: list[SessionReport] = []
    probes: dict[str, int] = {}
    for session in recorded:
        report, subject = judge(selection, session, options)
        earlier = probes.get(report.label) if subject.head.is_probe else None
        if earlier is not None:
            sessions[earlier] = merged(sessions[earlier], report)
            continue
        if subject.head.is_probe:
            probes[report.label] = len(sessions)
        sessions.append(report)
        composition.add(subject)
    for position in probes.values():
        sessions[position] = within_scope(sessions[position])
    conflicts: list[CompositionConflict] = []
    for rule in (rule() for rule in selection.rules if issubclass(rule, CompositionRule) and len(sessions) > 1):
        rule.check(composition)
        conflicts += rule.conflicts
    return tuple(sessions), tuple(conflicts)


def judge(
    selection: RuleSelection, recorded: RecordedSession, options: ReadingOptions
) -> tuple[SessionReport, SessionState]:
    session = SessionState(recorded.head, options, recorded.index)
    audience = _Audience([rule(session) for rule in selection.rules if issubclass(rule, SessionRule)])
    order = MessageOrder()
    for exchange in recorded.exchanges:
        view = session.begin(exchange)
        messages = order.take(view)
        audience.show_exchange(view)
        for message in messages:
            session.note(message)
            audience.show(message)
    for message in order.rest():
        session.note(message)
        audience.show(message)
    session.head = recorded.head
    results = list(audience.results())
    report = SessionReport(
        label=session.head.label,
        era=session.era.value,
        protocol_version=session.negotiated or session.head.protocol_version or _latest(session),
        exchange_count=session.exchange_count,
        results=tuple(result for result in results if result.code in selection.deciding),
        advisory=tuple(result for result in results if result.code not in selection.deciding),
        out_of_scope=tuple(audience.out_of_scope()) if session.head.is_probe else (),
        index=session.index,
    )
    return report, session


def _latest(session: SessionState) -> str | None:
    return max((version for version in session.versions if version is not None), default=None)


class _Audience:
    """The rules of one session, indexed by the messages that they select."""

    def __init__(self, rules: list[SessionRule]) -> None:
        self._rules = rules
        self._watched = frozenset(method for rule in rules for method in rule.methods or ())
        self._turns: dict[str | None, list[Callable[[ExchangeView], None]]] = {}
        self._messages: dict[tuple[str | None, MessageKind, str], list[_ON_MESSAGE]] = {}

    def show_exchange(self, view: ExchangeView) -> None:
        hooks = self._turns.get(view.version)
        if hooks is None:
            hooks = self._turns[view.version] = [
                rule.on_exchange
                for rule in self._covering(view.version)
                if type(rule).on_exchange is not SessionRule.on_exchange
            ]
        for hook in hooks:
            hook(view)

    def show(self, message: RecordedMessage) -> None:
        view, method = message.view, message.method
        key = (view.version, message.kind, method if method in self._watched else "")
        hooks = self._messages.get(key)
        if hooks is None:
            hooks = self._messages[key] = [
                rule.on_message
                for rule in self._covering(view.version)
                if key[1] in rule.selects
                and (rule.methods is None or key[2] in rule.methods)
                and type(rule).on_message is not SessionRule.on_message
            ]
        for hook in hooks:
            hook(message)

    def out_of_scope(self) -> Iterator[str]:
        """The rules that this session can't be subject to. The documented ones always have a result."""
        yield from (rule.code for rule in self._rules if rule.is_out_of_scope and type(rule) not in DOCUMENTED)

    def results(self) -> Iterator[RuleResult]:
        for rule in self._rules:
            rule.at_end()
            yield rule.result()

    def _covering(self, version: str | None) -> Iterator[SessionRule]:
        """The rules that apply to a revision. Where the revision is unknown: those that apply to every legacy one."""
        for rule in self._rules:
            revisions = rule.revisions()
            if version is None:
                covered = [known in revisions for known in LEGACY_VERSIONS]
                if all(covered):
                    yield rule
                elif any(covered):
                    rule.unjudged("The capture does not tell which revision was negotiated.")
            elif version in revisions:
                yield rule
