"""The base classes of rules, and what a rule reports. Each rule has its own file under `rules`.

A rule is a class: its docstring says what must hold, why, and how to fix it; its class members say where it applies. The runner makes
one instance for each session, shows it every message in order, and asks for its result at the end. A rule keeps what it needs, never
whole messages, so a session of any length can be checked. A rule without enough evidence reports `not_judged`.
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

from pactgate.capture.format import Side
from pactgate.conformance.composition import Composition, RecordedServer
from pactgate.conformance.message import EVERYTHING, ExchangeView, MessageKind, RecordedMessage
from pactgate.conformance.methods import LISTS
from pactgate.conformance.session_state import ListedItem, SessionState
from pactgate.core.display import flat
from pactgate.protocol.versions import KNOWN_VERSIONS, LATEST_LEGACY, LATEST_MODERN

SHOWN_EVIDENCE: Final = 20
"""Places that one result names; further ones are counted."""
SECTIONS: Final = ("What it checks", "Why", "How to fix", "Reference")
_SHOWN_CHARS: Final = 60
_SPECIFICATION: Final = "https://modelcontextprotocol.io/specification"


class RequirementLevel(StrEnum):
    """The keyword of the specification (RFC 2119), or advice, where the specification allows what clients in use refuse."""

    MUST = "must"
    SHOULD = "should"
    ADVICE = "advice"


class CheckStatus(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    NOT_APPLICABLE = "not_applicable"
    NOT_JUDGED = "not_judged"
    ERROR = "error"
    """The check itself failed. Only checks that act, those of the gateway profile, can."""


class CompositionSeverity(StrEnum):
    """How serious a conflict between servers is: `hazard` fails the run, `warning` and `info` are shown."""

    CONFLICT = "hazard"
    WARNING = "warning"
    INFO = "info"


class RequiredEvidence(StrEnum):
    """Evidence that not every capture has. The value is the sentence that reports its absence."""

    NOTHING = ""
    HTTP = "the capture has no HTTP headers and statuses"
    SERVER_MESSAGES = "the capture does not say what the server sent on its own"


class Evidence(Struct, frozen=True):
    """A place in the capture (the index of an exchange and a JSON pointer inside it), and what is wrong there."""

    exchange: int
    pointer: str
    message: str
    level: RequirementLevel = RequirementLevel.MUST
    session: int = 0
    """The session of the capture that the exchange belongs to."""


class RuleResult(Struct, frozen=True, rename={"code": "id", "slug": "rule"}):
    """The result of one rule for one session."""

    code: str
    slug: str
    category: str
    level: RequirementLevel
    status: CheckStatus
    message: str
    evidence: tuple[Evidence, ...] = ()
    count: int = 0
    notes: tuple[str, ...] = ()


class CompositionConflict(Struct, frozen=True, rename={"code": "id"}):
    """A problem that exists only between several servers: its subject, and the servers involved."""

    code: str
    kind: str
    subject: str
    servers: tuple[str, ...]
    severity: CompositionSeverity
    message: str


class Rule:
    """What all rules have. `since` and `until` are the first and the last protocol revision that the rule applies to."""

    code: ClassVar[str]
    category: ClassVar[str]
    spec: ClassVar[str] = ""
    """The section that the rule rests on: a page of the specification with an anchor, or a whole URL."""
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
        """The paragraphs of the docstring by their headings. Those that it lacks are those of the base class."""
        found: dict[str, list[str]] = {}
        for kind in reversed(cls.__mro__):
            heading = ""
            for line in cleandoc(vars(kind).get("__doc__") or "").splitlines()[1:]:
                if line in SECTIONS:
                    heading = line
                    found[heading] = []
                elif heading and line.strip():
                    found[heading].append(line.strip())
        return {name: " ".join(found[name]) for name in SECTIONS if name in found}

    @classmethod
    def url(cls) -> str | None:
        """The address of the section that the rule rests on. Rules for both eras link to the latest legacy revision."""
        if not cls.spec or cls.spec.startswith("https://"):
            return cls.spec or None
        version = LATEST_MODERN if cls.since == LATEST_MODERN else LATEST_LEGACY
        return f"{_SPECIFICATION}/{version}/{cls.spec}"

    @classmethod
    def revisions(cls) -> tuple[str, ...]:
        return KNOWN_VERSIONS[KNOWN_VERSIONS.index(cls.since) : KNOWN_VERSIONS.index(cls.until) + 1]


class SessionRule(Rule):
    """A rule about one session. `selects` and `methods` (None: all) name the messages that the rule sees."""

    needs: ClassVar[RequiredEvidence] = RequiredEvidence.NOTHING
    selects: ClassVar[frozenset[MessageKind]] = EVERYTHING
    methods: ClassVar[frozenset[str] | None] = None
    must_since: ClassVar[str] = KNOWN_VERSIONS[0]
    """The first revision in which a breach is one of a MUST; in earlier ones it is one of a SHOULD."""
    if_nothing: ClassVar[str] = ""
    """The reason that is reported when the rule checked nothing, where the rule can say more than the usual."""

    def __init__(self, session: SessionState) -> None:
        self.session = session
        self.seen = 0
        """How many things the rule checked; a rule that checked nothing can't pass."""
        self._faults: list[Evidence] = []
        self._fault_count = 0
        self._notes: dict[str, None] = {}
        self._unjudged: dict[str, None] = {}
        self.prepare()

    def prepare(self) -> None:
        """Called at the start of the session: set up what the rule remembers."""

    def on_exchange(self, view: ExchangeView) -> None:
        """Called at the start of each exchange."""

    def on_message(self, message: RecordedMessage) -> None:
        """Called for each selected message, in the order in which messages passed."""

    def at_end(self) -> None:
        """Called at the end of the session, when its head is complete."""

    def fault(
        self,
        where: RecordedMessage | ExchangeView,
        pointer: str,
        text: str,
        level: RequirementLevel | None = None,
        *,
        by: Side | None = None,
    ) -> None:
        """Report a breach. `pointer` is relative to the message, or to the exchange. `by` is the side that is at fault.

        Without `by` it is the sender of the message, or the server for an exchange. The breaches of a probe are on purpose and are
        not reported.
        """
        if by is None:
            by = where.sender if isinstance(where, RecordedMessage) else Side.SERVER
        if by is Side.CLIENT and self.session.head.is_probe:
            return
        self._fault_count += 1
        if len(self._faults) < SHOWN_EVIDENCE:
            level = level or self._level_in(where.version)
            self._faults.append(
                Evidence(
                    exchange=where.index,
                    pointer=where.pointer + pointer,
                    message=text,
                    level=level,
                    session=self.session.index,
                )
            )

    def note(self, text: str) -> None:
        """Report a remark that is not a breach."""
        if len(self._notes) < SHOWN_EVIDENCE:
            self._notes[text] = None

    def unjudged(self, reason: str) -> None:
        """Report that something could not be checked, and why."""
        if len(self._unjudged) < SHOWN_EVIDENCE:
            self._unjudged[reason] = None

    def not_applicable(self) -> str:
        """The reason that is reported when the rule checked nothing."""
        if self.if_nothing:
            return self.if_nothing
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

    def _level_in(self, version: str | None) -> RequirementLevel:
        """Where the revision is unknown, it is a legacy one."""
        earlier = KNOWN_VERSIONS[: KNOWN_VERSIONS.index(self.must_since)]
        return RequirementLevel.SHOULD if (version or LATEST_LEGACY) in earlier else self.level

    @property
    def is_out_of_scope(self) -> bool:
        """Whether the rule is about another transport or other revisions than those of this session."""
        return not self.seen and (self._is_moot() or not self.session.is_covered(self.revisions()))

    def _is_moot(self) -> bool:
        """Whether the rule needs HTTP and the session used none."""
        return self.needs is RequiredEvidence.HTTP and not self.session.has_http and not self.session.http_is_unknown

    def _lacks_evidence(self) -> bool:
        lacks = {
            RequiredEvidence.HTTP: self.session.http_is_unknown,
            RequiredEvidence.SERVER_MESSAGES: not self.session.has_server_messages,
        }
        return lacks.get(self.needs, False) and self.session.is_covered(self.revisions())


class HttpRule(SessionRule):
    """A rule about HTTP headers and statuses, which matter since Streamable HTTP."""

    category = "http"
    needs = RequiredEvidence.HTTP
    since = "2025-03-26"


class LegacyRule(SessionRule):
    """A rule about sessions with a handshake."""

    until = LATEST_LEGACY


class ModernRule(SessionRule):
    """A rule about requests that carry their own protocol version."""

    since = LATEST_MODERN


class DefinitionRule(SessionRule):
    """A rule about listed definitions, which the specification allows: advice. `lists` names the list methods."""

    category = "definitions"
    level = RequirementLevel.ADVICE
    if_nothing = "Nothing was listed."
    lists: ClassVar[tuple[str, ...]] = ("tools/list",)

    def definitions(self) -> Iterator[tuple[str, str, ListedItem, str]]:
        """Each item of the latest listing: its kind, its name, the item, and the pointer to it in its message."""
        for method in self.lists:
            member = LISTS[method][0]
            for name, item in self.session.lists[method].items.items():
                yield member.removesuffix("s"), name, item, pointer("result", member, item.number)


class CompositionRule(Rule):
    """A rule about several servers. `kind` names the conflict in reports."""

    kind: ClassVar[str]
    category: ClassVar[str] = "composition"

    def __init__(self) -> None:
        self.conflicts: list[CompositionConflict] = []

    def check(self, composition: Composition) -> None:
        raise NotImplementedError

    def conflict(
        self,
        subject: str,
        servers: Iterable[RecordedServer],
        message: str,
        severity: CompositionSeverity | None = None,
    ) -> None:
        """Report a conflict, as severe as the level of the rule unless `severity` says otherwise."""
        labels = tuple(server.label for server in servers)
        usual = CompositionSeverity.CONFLICT if self.level is RequirementLevel.MUST else CompositionSeverity.WARNING
        self.conflicts.append(CompositionConflict(self.code, self.kind, subject, labels, severity or usual, message))


def quoted(value: Any) -> str:
    """A value of the capture for a sentence: one line, cut to a bound."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    shown = value[: 2 * _SHOWN_CHARS] if isinstance(value, str) else value
    return flat(json.dumps(shown, ensure_ascii=False, default=str), _SHOWN_CHARS)


def pointer(*parts: str | int) -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def texts_in(value: Any, place: str, most: int, *, with_names: bool = False) -> Iterator[tuple[str, str]]:
    """Every text inside a value with its place, member names included on demand. Looks at no more than `most` values."""
    waiting = [(place, value)]
    for _ in range(most):
        if not waiting:
            return
        at, held = waiting.pop()
        if isinstance(held, str):
            yield at, held
        elif isinstance(held, dict):
            if with_names:
                yield from ((at + pointer(quoted(name)), name) for name in held)
            waiting += [(at + pointer(name), below) for name, below in reversed(held.items())]
        elif isinstance(held, list):
            waiting += [(at + pointer(n), held[n]) for n in range(len(held) - 1, -1, -1)]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
