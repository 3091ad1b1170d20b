"""Output for people: lines, errors, warnings, a spinner. Colour is used on a terminal only.

Text of an upstream or a file goes through `core.display` first, so that no control sequence reaches the terminal.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO

from pactgate.core.display import flat, visible

_LINE_CHARS: Final = 2000
_QUIET_S: Final = 1.0
"""A shorter wait shows no spinner."""
_WORD_CHARS: Final = 8
_INDENT: Final = 2
_NARROWEST: Final = 20
_FRAMES: Final = "|/-\\"
Tell = Callable[[str], None]
"""Shows a message in place of the one before."""
_STYLES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def has_colour(stream: TextIO) -> bool:
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def paint(text: str, style: str, stream: TextIO) -> str:
    """Our own text in colour, where the stream has colour. Must not be used for text that is not escaped."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if has_colour(stream) else text


def prepare_output() -> None:
    """Escape characters that the terminal's encoding lacks, and replace closed streams by /dev/null."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # This takes the closed descriptor, the lowest free one, so that no socket gets it and receives our output.
            setattr(sys, name, open(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def say(text: str = "") -> None:
    """Print sentences, wrapped on a terminal."""
    for line in visible(text).splitlines() or [""]:
        print(wrapped(line, sys.stdout, indent=len(line) - len(line.lstrip()) + _INDENT))


def say_as_it_is(text: str) -> None:
    """Print what a server or a setting says, with its own lines."""
    print(visible(text))


def say_json(value: Any) -> None:
    """ASCII only, so that no control character reaches a terminal."""
    print(json.dumps(value, indent=2))


def compact(value: Any) -> str:
    """The value as JSON on one line, for people."""
    return json.dumps(value, ensure_ascii=False)


def problem(message: str, hint: str = "") -> None:
    """Print an error and what to do about it on standard error, after everything that was printed before it."""
    _complain("error:", "red", message)
    for line in visible(hint).splitlines():
        print(wrapped(line, sys.stderr, indent=len(line) - len(line.lstrip()) + _INDENT), file=sys.stderr)


def warning(message: str) -> None:
    _complain("warning:", "yellow", message)


def _complain(word: str, style: str, message: str) -> None:
    sys.stdout.flush()
    lines = visible(f"{word} {message}").splitlines()
    text = "\n".join(wrapped(line, sys.stderr, indent=_INDENT) for line in lines)
    print(paint(word, style, sys.stderr) + text[len(word) :], file=sys.stderr)


def without_name(server: str, reason: str) -> str:
    """A reason for a line that names the server already."""
    return reason.removeprefix(f"{server} ")


def columns() -> int:
    """The width of the terminal."""
    from shutil import get_terminal_size  # half a MiB that a gateway does not need

    return get_terminal_size().columns


def wrapped(text: str, stream: TextIO, *, used: int = 0, indent: int = 0) -> str:
    """A line broken between words where `stream` is a terminal. `used` places of its first line are taken, further ones are indented."""
    if not is_terminal(stream):
        return text
    import textwrap  # only what a terminal shows is wrapped

    width = max(columns(), indent + _NARROWEST)
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=" " * used,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return "\n".join(lines)[used:]


def say_note(text: str) -> None:
    """Print a line about the output that is not part of it, on standard error."""
    sys.stdout.flush()
    print(visible(text), file=sys.stderr, flush=True)


def title(text: str) -> None:
    print(paint(flat(text, _LINE_CHARS), "bold", sys.stdout))


def item(word: str, style: str, text: str, hint: str = "", *, width: int = _WORD_CHARS) -> None:
    """Print a line of a list: a word in colour, a text, and a hint below. On a terminal the text is wrapped."""
    used = width + 3
    shown = [wrapped(flat(line, _LINE_CHARS), sys.stdout, used=used, indent=used) for line in (text, hint)]
    print(f"  {paint(f'{word:<{width}}', style, sys.stdout)} {shown[0]}")
    if hint:
        print(f"  {' ' * width} {shown[1]}")


@contextmanager
def spinner(message: str) -> Iterator[Tell]:
    """Show after the first second that something is still running, where standard error is a terminal; yields what changes the message."""
    messages = deque([message], maxlen=1)
    if not is_terminal(sys.stderr):
        yield messages.append
        return
    done = threading.Event()
    turning = threading.Thread(target=_turn, args=(messages, done), daemon=True)
    turning.start()
    try:
        yield messages.append
    finally:
        done.set()
        turning.join()


def _turn(messages: deque[str], done: threading.Event) -> None:
    turns, pause_s = 0, _QUIET_S
    while not done.wait(pause_s):
        pause_s = 0.1
        sys.stderr.write(f"\r\x1b[K{_FRAMES[turns % len(_FRAMES)]} {flat(messages[-1], 70)}")
        sys.stderr.flush()
        turns += 1
    if turns:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
