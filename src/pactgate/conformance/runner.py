"""Runs rules over recorded sessions. Pure: the same exchanges and the same rules give the same results.

Each message is read once, shown to the rules that selected its role, method and revision, and then dropped.
Must not: read files, or decide the exit code (`report` does).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from msgspec import Struct

from pactgate.capture.format import RecordedSession
from pactgate.conformance.composition import Composition
from pactgate.conformance.message import ExchangeView, RecordedMessage, Role
from pactgate.conformance.message_order import MessageOrder
from pactgate.conformance.rule import CompositionConflict, CompositionRule, Rule, RuleResult, SessionRule
from pactgate.conformance.session_state import AS_RECORDED, ReadingOptions, SessionState
from pactgate.protocol.versions import LEGACY_VERSIONS

RuleClass = type[Rule]
_ON_MESSAGE = Callable[[RecordedMessage], None]


class SessionResult(Struct, frozen=True):
    """One session and the result of every rule for it."""

    label: str
    era: str
    protocol_version: str | None
    exchange_count: int
    results: tuple[RuleResult, ...]


class RunResult(Struct, frozen=True):
    sessions: tuple[SessionResult, ...]
    conflicts: tuple[CompositionConflict, ...]


def run(
    rules: Sequence[RuleClass], recorded: Iterable[RecordedSession], options: ReadingOptions = AS_RECORDED
) -> RunResult:
    """Check every session, then the conflicts between several servers."""
    of_session = [rule for rule in rules if issubclass(rule, SessionRule)]
    of_composition = [rule for rule in rules if issubclass(rule, CompositionRule)]
    composition = Composition()
    sessions = []
    for session in recorded:
        verdict, subject = judge(of_session, session, options)
        sessions.append(verdict)
        composition.add(subject)
    conflicts = chain.from_iterable(rule.check(composition) for rule in of_composition) if len(sessions) > 1 else ()
    return RunResult(tuple(sessions), tuple(conflicts))


def judge(
    rules: Sequence[type[SessionRule]], recorded: RecordedSession, options: ReadingOptions
) -> tuple[SessionResult, SessionState]:
    session = SessionState(recorded.head, options)
    audience = _Audience([rule(session) for rule in rules])
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
    results = tuple(audience.results())
    version = session.negotiated or session.head.protocol_version or _latest(session)
    verdict = SessionResult(session.head.label, session.era.value, version, session.exchange_count, results)
    return verdict, session


def _latest(session: SessionState) -> str | None:
    return max((version for version in session.versions if version is not None), default=None)


class _Audience:
    """The rules of one session, indexed by the messages that they select."""

    def __init__(self, rules: list[SessionRule]) -> None:
        self._rules = rules
        self._watched = frozenset(method for rule in rules for method in rule.methods or ())
        self._turns: dict[str | None, list[Callable[[ExchangeView], None]]] = {}
        self._messages: dict[tuple[str | None, Role, str], list[_ON_MESSAGE]] = {}

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
        key = (view.version, message.role, method if method in self._watched else "")
        hooks = self._messages.get(key)
        if hooks is None:
            hooks = self._messages[key] = [
                rule.on_message
                for rule in self._covering(view.version)
                if key[1] in rule.roles
                and (rule.methods is None or key[2] in rule.methods)
                and type(rule).on_message is not SessionRule.on_message
            ]
        for hook in hooks:
            hook(message)

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
