"""The recorders of a gateway's own connections to clients and servers, as the settings say. All share one `Recorder`.

Without `capture.dir` there are none, and the recording modules are not imported. A disk error ends recordings, never calls.
Must not: be called per request.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pactgate.config.sections.capture import Capture
from pactgate.core.events import CaptureFailed, Emit, Event
from pactgate.core.recording import ConnectionRecorder
from pactgate.core.token_words import is_word

if TYPE_CHECKING:
    from pactgate.capture.recorder import Recorder

CALLERS = "callers"
SERVERS = "servers"
_MAX_TOKENS = 1000


class GatewayRecorders:
    """Made with the gateway; `close` ends the recorder. Where the folder can't be made an event says so and nothing is recorded."""

    def __init__(self, settings: Capture, secrets: Iterable[str], emit: Emit, label: str) -> None:
        self._settings = settings
        self._secrets = dict.fromkeys(secrets)
        self._tokens: deque[str] = deque(maxlen=_MAX_TOKENS)
        """Those before the first recording."""
        self._emit = emit
        self._label = label
        self._recorder: Recorder | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_off = settings.dir is None

    def server(self, server: str, transport: str) -> ConnectionRecorder | None:
        """For a new connection to a server."""
        recorder = self._wanted(SERVERS)
        return None if recorder is None else recorder.connection(server, SERVERS, transport)

    def http_callers(self) -> ConnectionRecorder | None:
        """For all clients that connect over HTTP."""
        recorder = self._wanted(CALLERS)
        return None if recorder is None else recorder.address(self._label, CALLERS, is_shared=True)

    def stdio_caller(self) -> ConnectionRecorder | None:
        recorder = self._wanted(CALLERS)
        return None if recorder is None else recorder.connection(self._label, CALLERS, "stdio")

    def know(self, secrets: Iterable[str]) -> None:
        """Mask these values in captures from now on."""
        fresh = tuple(secrets)
        self._secrets |= dict.fromkeys(fresh)
        if fresh and self._recorder is not None:
            self._recorder.must_put(self._recorder.redaction.know, fresh)

    def know_tokens(self, tokens: Collection[str]) -> None:
        """Mask these tokens of sign-ins."""
        fresh = tuple(token for token in tokens if is_word(token))
        self.know(token for token in tokens if not is_word(token))
        self._tokens.extend(fresh)
        if self._recorder is not None:
            self._recorder.must_put(self._recorder.redaction.know_tokens, fresh)

    async def close(self) -> None:
        recorder, self._recorder = self._recorder, None
        self._is_off = True
        if recorder is not None:
            await asyncio.to_thread(recorder.close)

    def _wanted(self, leg: str) -> Recorder | None:
        if self._is_off or self._settings.dir is None or self._settings.legs not in ("both", leg):
            return None
        if self._recorder is None:
            self._recorder = self._begin(Path(self._settings.dir))
        return self._recorder

    def _begin(self, folder: Path) -> Recorder | None:
        from pactgate.capture.capture_files import CaptureFolder
        from pactgate.capture.recorder import Recorder
        from pactgate.capture.redaction import Redaction

        self._loop = asyncio.get_running_loop()
        try:
            store = CaptureFolder(folder, self._settings.max_files)
        except OSError as problem:
            self._is_off = True
            self._emit(CaptureFailed(f"{folder}: {problem.strerror or problem}"))
            return None
        redaction = Redaction(self._secrets)
        redaction.know_tokens(self._tokens)
        return Recorder(
            store,
            redaction,
            max_file_bytes=self._settings.max_file_bytes,
            emit=self._tell,
            later=self._loop.call_later,
        )

    def _tell(self, event: Event) -> None:
        """Emit an event from the writer thread. At the very end there may be no loop any more."""
        loop = self._loop
        with suppress(RuntimeError):
            if loop is not None:
                loop.call_soon_threadsafe(self._emit, event)
