"""The state of a recorded session at one message: its eras, the handshake, capabilities, lists, and open requests.

The runner updates it before it shows a message to the rules, so all rules share one reading of the session. Everything kept is
bounded, or as large as the server's own catalog. Must not: check anything.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from pactgate.capture.format import Body, RecordedExchange, SessionHead, Side
from pactgate.conformance.bounded import BoundedDict, Key, UsedIds, id_key
from pactgate.conformance.input_required import InputRequiredTracker
from pactgate.conformance.message import META, ExchangeView, RecordedMessage, Role, as_list, as_object
from pactgate.conformance.methods import LISTS
from pactgate.protocol.headers import VERSION_HEADER
from pactgate.protocol.modern import PROTOCOL_VERSION_KEY
from pactgate.protocol.versions import KNOWN_VERSIONS, LATEST_MODERN, LEGACY_VERSIONS, MODERN_VERSIONS, Era

_STDIO: Final = "stdio"


class ReadingOptions(Struct, frozen=True):
    """How a session is read. `era` overrides what the capture says."""

    era: Era | None = None
    allow_missing_initialized: bool = False


class ListedItem(Struct, frozen=True):
    """One listed tool, prompt, resource or template, with the message and the position it was listed at."""

    definition: Body
    message: RecordedMessage
    number: int


class ListedItems:
    """The results of one list method. `items` are those of the latest listing, `ever` has every name that was ever listed."""

    def __init__(self) -> None:
        self.items: dict[str, ListedItem] = {}
        self.names: list[str] = []
        self.ever: dict[str, ListedItem] = {}
        self.is_whole = False
        self._started = False
        self._given: BoundedDict[bool] = BoundedDict()

    def has_given(self, cursor: Any) -> bool:
        """Whether a page named this cursor as the next one. True also where the bounded memory can't tell."""
        return (isinstance(cursor, str) and cursor in self._given) or self._given.has_forgotten

    def page(self, answer: RecordedMessage, member: str, identity: str) -> None:
        if "cursor" not in answer.request_params() or not self._started:
            self.items, self.names = {}, []
        self._started = True
        for number, definition in enumerate(as_list(answer.result.get(member))):
            name = as_object(definition).get(identity)
            if isinstance(name, str):
                item = ListedItem(definition, answer, number)
                self.names.append(name)
                self.items[name] = item
                self.ever[name] = item
        following = answer.result.get("nextCursor")
        self.is_whole = following is None
        if isinstance(following, str):
            self._given[following] = True


class SessionState:
    """One session up to the current message. The head is complete only at the end."""

    def __init__(self, head: SessionHead, options: ReadingOptions, index: int = 0) -> None:
        self.head = head
        self.index = index
        self.options = options
        self.exchange_count = 0
        self.eras: set[Era] = set()
        self.versions: set[str | None] = set()
        self.has_http = False
        self.saw_server_message = False
        self.initialize: RecordedMessage | None = None
        self.handshake: RecordedMessage | None = None
        """The successful response to initialize."""
        self.is_initialized = False
        self.discovery: RecordedMessage | None = None
        """The latest successful response to server/discover."""
        self.negotiated: str | None = None
        self.lists: dict[str, ListedItems] = {method: ListedItems() for method in LISTS}
        self.open: BoundedDict[RecordedMessage] = BoundedDict()
        """Requests without a response so far, by sender and id."""
        self.cancelled: BoundedDict[RecordedMessage] = BoundedDict()
        """Cancellation notifications, by sender and id of the request."""
        self.input_required = InputRequiredTracker()
        self.client_ids: list[UsedIds] = []
        self._ids: dict[Side, UsedIds] = {}
        self._new_ids()

    @property
    def era(self) -> Era:
        if self.options.era is not None:
            return self.options.era
        if self.initialize is not None:
            return Era.LEGACY
        if Era.MODERN in self.eras:
            return Era.MODERN
        return self.head.era or Era.LEGACY

    @property
    def has_server_messages(self) -> bool:
        """Whether the capture shows what the server sent on its own: our recorder always does."""
        return self.head.capture_version is not None or self.saw_server_message

    @property
    def http_is_unknown(self) -> bool:
        return not self.has_http and self.head.transport != _STDIO

    def is_covered(self, revisions: tuple[str, ...]) -> bool:
        """Whether traffic of one of these revisions may be in the session."""
        return any(version in revisions for version in self.versions if version is not None) or (
            None in self.versions and any(version in revisions for version in LEGACY_VERSIONS)
        )

    @property
    def advertised(self) -> Body | None:
        """The server's capabilities from the head of the capture, else from the server's own messages, else None."""
        if self.head.capabilities is not None:
            return self.head.capabilities
        for answer in (self.handshake, self.discovery):
            if answer is not None and isinstance(answer.result.get("capabilities"), dict):
                return as_object(answer.result["capabilities"])
        return None

    @property
    def declared(self) -> Body | None:
        """The capability block of the capture. In a modern session without one, what the server advertised."""
        is_block = self.head.capabilities is not None or self.era is not Era.MODERN
        return self.head.capabilities if is_block else self.advertised

    @property
    def client_capabilities(self) -> Body | None:
        """The capabilities that a legacy client declared in its handshake."""
        declared = None if self.initialize is None else self.initialize.params.get("capabilities")
        return declared if isinstance(declared, dict) else None

    def is_page(self, answer: RecordedMessage) -> bool:
        """Whether a list result belongs to a listing. The response to a cursor that a probe invented does not."""
        params = answer.request_params()
        return not self.head.is_probe or "cursor" not in params or self.lists[answer.method].has_given(params["cursor"])

    def begin(self, exchange: RecordedExchange) -> ExchangeView:
        self.exchange_count += 1
        self.has_http = self.has_http or exchange.http is not None
        era = self._era_of(exchange)
        self.eras.add(era)
        if era is Era.LEGACY:
            self.negotiated = _agreed(exchange) or self.negotiated
        view = ExchangeView(exchange, era, self._version_of(exchange, era))
        self.versions.add(view.version)
        return view

    def note(self, message: RecordedMessage) -> None:
        """Update the state with a message: pair a response with its request, detect repeated ids, read lists and the handshake."""
        if message.sender is Side.SERVER and message.role is not Role.RESPONSE:
            self.saw_server_message = True
        if message.role is Role.REQUEST:
            self._note_request(message)
        elif message.role is Role.NOTIFICATION:
            self._note_notice(message)
        else:
            self._note_answer(message)

    def _note_request(self, message: RecordedMessage) -> None:
        if message.method == "initialize" and message.sender is Side.CLIENT and not message.is_modern:
            if self.handshake is not None:
                self._new_ids()
            self.initialize, self.handshake, self.is_initialized = message, None, False
        key = message.key
        if key is None:
            return
        place = (message.sender, key)
        is_new = self._ids[message.sender].add(key)
        message.is_repeated_id = place in self.open if message.is_modern else not is_new
        self.open[place] = message

    def _note_notice(self, message: RecordedMessage) -> None:
        if message.method == "notifications/initialized" and message.sender is Side.CLIENT:
            self.is_initialized = self.handshake is not None
        elif message.method == "notifications/cancelled":
            key = id_key(message.params.get("requestId"))
            if key is not None:
                self.cancelled[(message.sender, key)] = message

    def _note_answer(self, message: RecordedMessage) -> None:
        paired = _partner(message)
        key = message.key
        found = self.open.pop((message.sender.other, key), None) if key is not None else None
        message.request = paired or found
        if paired is not None and paired is not found and paired.key is not None:
            self.open.pop((paired.sender, paired.key), None)
        if message.is_modern and message.result.get("resultType") == "input_required":
            self.input_required.ask(message)
        if message.request is None or not message.is_success:
            return
        method = message.method
        if message.request is self.initialize:
            self.handshake = message
            self.negotiated = _version(message.result) or self.negotiated
        elif method == "server/discover":
            self.discovery = message
        elif method in LISTS and message.sender is Side.SERVER and self.is_page(message):
            self.lists[method].page(message, *LISTS[method])

    def _era_of(self, exchange: RecordedExchange) -> Era:
        if self.options.era is not None:
            return self.options.era
        request = exchange.request
        if isinstance(request, dict) and exchange.sender is Side.CLIENT:
            if PROTOCOL_VERSION_KEY in as_object(as_object(request.get("params")).get(META)):
                return Era.MODERN
            if request.get("method") == "initialize":
                return Era.LEGACY
        headers = exchange.http.request_headers.get(VERSION_HEADER) if exchange.http is not None else None
        if headers and (headers[0] in KNOWN_VERSIONS or self.initialize is None):
            return Era.LEGACY if headers[0] in LEGACY_VERSIONS else Era.MODERN
        return self.era

    def _version_of(self, exchange: RecordedExchange, era: Era) -> str | None:
        request = exchange.request
        if era is Era.MODERN:
            params = as_object(request.get("params")) if isinstance(request, dict) else {}
            named = as_object(params.get(META)).get(PROTOCOL_VERSION_KEY)
            return named if isinstance(named, str) and named in MODERN_VERSIONS else LATEST_MODERN
        said = self.negotiated or self.head.protocol_version
        return said if said in LEGACY_VERSIONS else None

    def _new_ids(self) -> None:
        self._ids = {party: UsedIds() for party in Side}
        self.client_ids.append(self._ids[Side.CLIENT])

    def has_sent(self, sender: Side, key: Key) -> bool:
        """Whether this side sent a request with this id. True also where the bounded memory can't tell."""
        ledger = self._ids[sender]
        return key in ledger or ledger.has_forgotten

    def ids_are_complete(self, sender: Side) -> bool:
        return not self._ids[sender].has_forgotten


def _partner(answer: RecordedMessage) -> RecordedMessage | None:
    """The request of the same exchange. In a batch it is found by its id."""
    if answer.frame is not None:
        return None
    view = answer.view
    if isinstance(view.exchange.request, dict) and not isinstance(view.exchange.response, list):
        return view.messages[0] if view.messages[0].role is not Role.RESPONSE else None
    return view.requests.get(answer.key)


def _agreed(exchange: RecordedExchange) -> str | None:
    """The revision that an initialize exchange agrees on, which is needed before its messages are read."""
    request, response = exchange.request, exchange.response
    if isinstance(request, dict) and request.get("method") == "initialize" and isinstance(response, dict):
        return _version(response.get("result"))
    return None


def _version(result: Any) -> str | None:
    version = as_object(result).get("protocolVersion")
    return version if isinstance(version, str) and version in LEGACY_VERSIONS else None
