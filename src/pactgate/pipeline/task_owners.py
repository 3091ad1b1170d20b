"""Whose tasks are whose: a task belongs to the caller whose request created it.

All callers of a server may share one session with it, so the server can't tell them apart. The gateway remembers who got which task, and
answers any other task id as one that does not exist. A task lives as long as the session it was created in; a modern server over HTTP
has no sessions, so its tasks outlive a lost connection. Bounded: tasks of one subject and in all; a subject's oldest goes first, then the
oldest of the subject with most. A modern client has no session that leads to the replica that knows its tasks, so the ids it sees do.
Must not: ask a server anything.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Raw, Struct

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import HandleOwner
from pactgate.protocol import messages
from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import Era
from pactgate.state.owned_ids import OWNER_END
from pactgate.upstreams.dialer import Session

MAX_TASKS: Final = 10_000
MAX_TASKS_OF_ONE: Final = 1000
MAX_ID_CHARS: Final = 1024
_SHOWN_CHARS: Final = 100


class _Handle(Struct):
    taskId: str  # noqa: N815 - the wire's spelling


class _Created(Struct):
    """A result that creates a task: its handle is a member of a legacy result, and the result itself in the modern era."""

    task: Raw = Raw(b"{}")
    resultType: str = "complete"  # noqa: N815


class _TaskList(Struct):
    tasks: list[Raw]


_handle: Final = msgspec.json.Decoder(_Handle)
_created: Final = msgspec.json.Decoder(_Created)
_task_list: Final = msgspec.json.Decoder(_TaskList)


class _Owner(NamedTuple):
    handle: HandleOwner
    tool: str | None
    """The full name of the tool whose call created the task."""


class _Task(NamedTuple):
    place: int
    """The session, or the server, that knows the task."""
    id: str


class TaskOwners:
    """Every task that was given to a caller, by where it lives and its id."""

    def __init__(self, *, owned_id: str = "", max_tasks: int = MAX_TASKS, max_of_one: int = MAX_TASKS_OF_ONE) -> None:
        """`owned_id` leads other replicas to this one; without others it is empty."""
        self._mark = f"{owned_id}{OWNER_END}" if owned_id else ""
        self._max_tasks = max_tasks
        self._max_of_one = max_of_one
        self._owners: dict[_Task, _Owner] = {}
        self._of_subject: dict[str, dict[_Task, None]] = {}
        self._sessions: WeakKeyDictionary[Session, int] = WeakKeyDictionary()
        self._servers: dict[str, int] = {}
        self._places = 0

    def __len__(self) -> int:
        return len(self._owners)

    def note(self, session: Session, owner: HandleOwner, result: bytes, tool: str | None = None) -> bool:
        """Remember the task that a result creates, and whether it creates one. The first owner of an id stays its owner."""
        id_ = created_task(result)
        if id_ is None:
            return False
        task = _Task(self._place(session), id_)
        if len(id_) > MAX_ID_CHARS or task in self._owners:
            return True
        own = self._of_subject.setdefault(owner.subject, {})
        if len(own) >= self._max_of_one:
            self._forget(next(iter(own)))
        elif len(self._owners) >= self._max_tasks:
            busiest = max(self._of_subject.values(), key=lambda tasks: len(tasks))
            self._forget(next(iter(busiest)))
        self._of_subject.setdefault(owner.subject, {})[task] = None
        self._owners[task] = _Owner(owner, tool)
        return True

    def shown(self, era: Era, result: bytes) -> bytes:
        """A result about a task with the id that its client is to use."""
        if not self._mark or era is Era.LEGACY:
            return result
        members = messages.members(result)
        if not bytes(members.get("taskId", b"")).startswith(b'"'):
            return result
        return encode_json({**members, "taskId": self._mark + _handle.decode(result).taskId})

    def of_server(self, era: Era, id_: str) -> str:
        """The id that the server gave the task which a client names. One of another replica stays as it is, and is nobody's here."""
        return id_ if era is Era.LEGACY else id_.removeprefix(self._mark)

    def require(self, session: Session, owner: HandleOwner, id_: str, tools: Collection[str] | None = None) -> None:
        """Raise for a task of somebody else exactly as for one that does not exist.

        `tools` are those the owner may use now, if not all: the task of another one does not exist either.
        """
        if not self._owns(session, owner, id_, tools):
            raise GatewayFailure(
                Kind.INVALID_PARAMS, f"There is no task {id_[:_SHOWN_CHARS]!r}.", server=session.peer.server
            )

    def only_own(
        self, session: Session, owner: HandleOwner, result: bytes, tools: Collection[str] | None = None
    ) -> bytes:
        """A list of tasks with those of this owner alone, and of tools that it may use now."""
        try:
            listed = _task_list.decode(result).tasks
            own = [raw for raw in listed if self._owns(session, owner, _handle.decode(raw).taskId, tools)]
        except msgspec.DecodeError as problem:
            raise GatewayFailure(
                Kind.MALFORMED_RESULT,
                f"{session.peer.server} answered tasks/list with a result that breaks the protocol: {problem}",
                server=session.peer.server,
                operation="tasks/list",
            ) from problem
        return result if len(own) == len(listed) else encode_json({**messages.members(result), "tasks": own})

    def forget(self, subject: str) -> None:
        """Let go of the tasks of a subject that may no longer call: nobody owns them from now on."""
        for task in tuple(self._of_subject.get(subject, ())):
            self._forget(task)

    def _owns(self, session: Session, owner: HandleOwner, id_: str, tools: Collection[str] | None) -> bool:
        held = self._owners.get(_Task(self._place(session), id_))
        if held is None or held.handle != owner:
            return False
        return tools is None or held.tool is None or held.tool in tools

    def _place(self, session: Session) -> int:
        known: Any = self._servers if session.is_modern_http else self._sessions
        key: Any = session.peer.server if session.is_modern_http else session
        place = known.get(key)
        if place is None:
            self._places = place = known[key] = self._places + 1
        return int(place)

    def _forget(self, task: _Task) -> None:
        subject = self._owners.pop(task).handle.subject
        own = self._of_subject[subject]
        del own[task]
        if not own:
            del self._of_subject[subject]


def created_task(result: bytes) -> str | None:
    """The id of the task a result creates."""
    try:
        read = _created.decode(result)
        return _handle.decode(result if read.resultType == "task" else read.task).taskId
    except msgspec.DecodeError:
        return None
