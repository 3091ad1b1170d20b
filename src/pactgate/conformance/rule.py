"""What a rule is, what it finds, and how a verdict comes about. One rule, one file, under `rules`.

A rule is a class: its docstring says what must hold, why, and how to mend it; its class members say where it applies. For each
session one instance is made, shown every message in order, and asked for its verdict at the end. It keeps what it needs, never
the messages themselves, so a session of any length can be judged. A rule that lacks the evidence says so (`not_judged`).
Must not: read files, clocks or the network, or know another rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from inspect import cleandoc
from typing import Any, ClassVar, Final

from msgspec import Struct

from pactgate.conformance.composition import Composition
from pactgate.conformance.message import EVERY_ROLE, ExchangeView, RecordedMessage, Role
from pactgate.conformance.session_state import SessionState
from pactgate.core.display import flat
from pactgate.protocol.versions import KNOWN_VERSIONS

SHOWN_EVIDENCE: Final = 20
"""Places one verdict names; the rest are counted."""
SECTIONS: Final = ("What it checks", "Why", "How to fix", "Reference")
_SHOWN_CHARS: Final = 60


class RequirementLevel(StrEnum):
    """The specification's keyword."""

    MUST = "must"
    SHOULD = "should"


class CheckStatus(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    NOT_APPLICABLE = "not_applicable"
    NOT_JUDGED = "not_judged"


class CompositionSeverity(StrEnum):
    """Of what was found between sessions: a hazard counts, a warning and an info are shown."""

    CONFLICT = "hazard"
    WARNING = "warning"
    INFO = "info"


class RequiredEvidence(StrEnum):
    """Evidence that not every capture has, in the words in which its absence is reported."""

    NOTHING = ""
    HTTP = "the capture has no HTTP headers and statuses"
    SERVER_MESSAGES = "the capture does not say what the server sent on its own"


class Evidence(Struct, frozen=True):
    """A place: the exchange by its index, a JSON pointer inside it, and what is wrong there."""

    exchange: int
    pointer: str
    message: str
    level: RequirementLevel = RequirementLevel.MUST


class RuleResult(Struct, frozen=True):
    """The verdict of one rule on one session."""

    code: str
    slug: str
    category: str
    level: RequirementLevel
    status: CheckStatus
    message: str
    evidence: tuple[Evidence, ...] = ()
    count: int = 0
    notes: tuple[str, ...] = ()


class CompositionConflict(Struct, frozen=True):
    """What can fail only when servers coexist: what it is about, and which servers share it."""

    code: str
    kind: str
    subject: str
    servers: tuple[str, ...]
    severity: CompositionSeverity
    message: str


class Rule:
    """What all rules have. `since` and `until` are the first and the last revision it holds in."""

    code: ClassVar[str]
    category: ClassVar[str]
    level: ClassVar[RequirementLevel] = RequirementLevel.MUST
    since: ClassVar[str] = KNOWN_VERSIONS[0]
    until: ClassVar[str] = KNOWN_VERSIONS[-1]

    @classmethod
    def slug(cls) -> str:
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    @classmethod
    def title(cls) -> str:
        """What must hold, in one line."""
        return cleandoc(cls.__doc__ or "").splitlines()[0]

    @classmethod
    def sections(cls) -> dict[str, str]:
        """The paragraphs of the docstring by their headings."""
        found: dict[str, list[str]] = {}
        heading = ""
        for line in cleandoc(cls.__doc__ or "").splitlines()[1:]:
            if line in SECTIONS:
                heading = line
                found[heading] = []
            elif heading and line.strip():
                found[heading].append(line.strip())
        return {name: " ".join(lines) for name, lines in found.items()}

    @classmethod
    def revisions(cls) -> tuple[str, ...]:
        return KNOWN_VERSIONS[KNOWN_VERSIONS.index(cls.since) : KNOWN_VERSIONS.index(cls.until) + 1]


class SessionRule(Rule):
    """A rule about one session. `roles` and `methods` say which messages it is shown (None: all of them)."""

    needs: ClassVar[RequiredEvidence] = RequiredEvidence.NOTHING
    roles: ClassVar[frozenset[Role]] = EVERY_ROLE
    methods: ClassVar[frozenset[str] | None] = None

    def __init__(self, session: SessionState) -> None:
        self.session = session
        self.seen = 0
        """How much there was to judge; a rule that saw nothing can't pass."""
        self._faults: list[Evidence] = []
        self._fault_count = 0
        self._notes: dict[str, None] = {}
        self._unjudged: dict[str, None] = {}

    def on_exchange(self, view: ExchangeView) -> None:
        """An exchange begins."""

    def on_message(self, message: RecordedMessage) -> None:
        """A message passes."""

    def at_end(self) -> None:
        """The session is over; everything it says of itself is known now."""

    def fault(
        self, where: RecordedMessage | ExchangeView, pointer: str, text: str, level: RequirementLevel | None = None
    ) -> None:
        """Something breaks the rule. `pointer` leads on from the message, or from the exchange."""
        self._fault_count += 1
        if len(self._faults) < SHOWN_EVIDENCE:
            self._faults.append(Evidence(where.index, where.pointer + pointer, text, level or self.level))

    def note(self, text: str) -> None:
        """Worth saying, and no breach."""
        if len(self._notes) < SHOWN_EVIDENCE:
            self._notes[text] = None

    def unjudged(self, reason: str) -> None:
        """Something the rule is about could not be judged."""
        if len(self._unjudged) < SHOWN_EVIDENCE:
            self._unjudged[reason] = None

    def not_applicable(self) -> str:
        """Why the rule has nothing to say where it saw nothing."""
        if self.session.exchange_count and not self.session.is_covered(self.revisions()):
            span = self.since if self.since == self.until else f"{self.since} to {self.until}"
            return f"Nothing in this session is of {span}."
        return "Nothing in this session is subject to this rule."

    def result(self) -> RuleResult:
        level, message, count = self.level, self.title(), self._fault_count
        status, notes = CheckStatus.PASS, [*self._notes]
        if self._faults:
            status = CheckStatus.FAIL
            level = min((fault.level for fault in self._faults), key=list(RequirementLevel).index)
            worst = next(fault for fault in self._faults if fault.level is level)
            message = worst.message + (f" ({count} places)" if count > 1 else "")
        elif not self.seen and not self._is_moot() and (self._unjudged or self._lacks_evidence()):
            status = CheckStatus.NOT_JUDGED
            message = _sentence(self.needs) if self._lacks_evidence() else next(iter(self._unjudged))
        elif not self.seen:
            status, message = CheckStatus.NOT_APPLICABLE, self.not_applicable()
        if status in (CheckStatus.PASS, CheckStatus.FAIL):
            notes += [f"Not judged in part: {reason}" for reason in self._unjudged]
        return RuleResult(
            self.code, self.slug(), self.category, level, status, message, tuple(self._faults), count, tuple(notes)
        )

    def _is_moot(self) -> bool:
        """HTTP is no matter where there was none."""
        return self.needs is RequiredEvidence.HTTP and not self.session.has_http and not self.session.http_is_unknown

    def _lacks_evidence(self) -> bool:
        if self.needs is RequiredEvidence.HTTP:
            return self.session.is_covered(self.revisions()) and self.session.http_is_unknown
        if self.needs is RequiredEvidence.SERVER_MESSAGES:
            return self.session.is_covered(self.revisions()) and not self.session.has_server_messages
        return False


class CompositionRule(Rule):
    """A rule about sessions side by side. `kind` names what it finds in reports."""

    kind: ClassVar[str]
    category: ClassVar[str] = "composition"

    @classmethod
    def check(cls, composition: Composition) -> Iterator[CompositionConflict]:
        raise NotImplementedError

    @classmethod
    def conflict(
        cls,
        subject: str,
        servers: Iterable[str],
        message: str,
        severity: CompositionSeverity = CompositionSeverity.CONFLICT,
    ) -> CompositionConflict:
        return CompositionConflict(cls.code, cls.kind, subject, tuple(servers), severity, message)


def quoted(value: Any) -> str:
    """A value of the capture in a sentence: one line, cut."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    shown = value[: 2 * _SHOWN_CHARS] if isinstance(value, str) else value
    return flat(json.dumps(shown, ensure_ascii=False, default=str), _SHOWN_CHARS)


def pointer(*parts: str | int) -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
