"""Lookalike names (homoglyphs): names that case-insensitive programs or people confuse.

The table is small and does not cover Unicode: letters of other alphabets that look like Latin ones, digits that look like letters,
invisible characters. Pure: names are compared here and never changed.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# Code points, because an editor shows these characters like the letters they imitate.
_DRAWN_AS: Final = {
    "a": "\u0430\u03b1\u0251",  # Cyrillic, Greek, Latin
    "b": "\u042c\u044c",
    "c": "\u0441\u03f2\u1d04",
    "d": "\u0501\u0257",
    "e": "\u0435\u0454\u212e\u04bd",
    "f": "\u0192\u03dd",
    "g": "\u0261\u0581\u018d",
    "h": "\u04bb\u0570",
    "i": "\u0456\u03b9\u0131\u0269\u026a",
    "j": "\u0458\u03f3",
    "k": "\u043a\u03ba",
    "l": "\u04cf\u04c0\u01c0\u0406\u0399|I1",
    "m": "\u043c",
    "n": "\u03b7\u0578\u057c",
    "o": "\u043e\u03bf\u03c3\u0585\u04e9" + "0",
    "p": "\u0440\u03c1",
    "q": "\u051b\u0566",
    "r": "\u0433\u1d26",
    "s": "\u0455\ua731",
    "t": "\u0442\u03c4",
    "u": "\u03c5\u057d\u1d1c",
    "v": "\u03bd\u0475",
    "w": "\u051d\u0461\u03c9",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03b3\u04af",
    "z": "\u1d22",
    "A": "\u0410\u0391\u13aa",
    "B": "\u0412\u0392\u13f4",
    "C": "\u0421\u03f9\u13df",
    "E": "\u0415\u0395\u13ac",
    "G": "\u050c",
    "H": "\u041d\u0397\u13bb",
    "J": "\u0408\u037f",
    "K": "\u041a\u039a\u13e6",
    "M": "\u041c\u039c\u13b7",
    "N": "\u039d",
    "O": "\u041e\u039f\u0555",
    "P": "\u0420\u03a1\u13e2",
    "Q": "\u051a",
    "S": "\u0405\u13da\u054f",
    "T": "\u0422\u03a4\u13a2",
    "V": "\u0474\u13d9",
    "W": "\u051c\u13b3",
    "X": "\u0425\u03a7",
    "Y": "\u0423\u03a5\u04ae",
    "Z": "\u0396\u13c3",
    "-": "\u2010\u2012\u2013\u2014\u2015\u2212\u2043\u02d7",
    ".": "\u00b7\u2027\u3002\u0660\u06d4",
    "_": "\u203f",
}
_LATIN: Final = str.maketrans({other: letter for letter, others in _DRAWN_AS.items() for other in others})
_NOT_DRAWN: Final = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u2800\u3164\ufe00-\ufe0f\uffa0]")
_BETWEEN_WORDS: Final = re.compile(r"[\s_-]+")


def fold(name: str) -> str:
    """The name in lower case and Unicode form NFKC, as a case-insensitive comparison sees it."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).strip()


def separated(name: str) -> str:
    """The folded name with normalized separators: `a.b` equals `a__b`, and `a-b` equals `a_b`."""
    return _one_separator(fold(name))


def drawn(name: str) -> str:
    """The skeleton of a name: names with the same skeleton look alike, although every character may differ."""
    shown = _NOT_DRAWN.sub("", unicodedata.normalize("NFKC", name)).translate(_LATIN)
    return _one_separator(fold(shown).translate(_LATIN)).replace("rn", "m").replace("vv", "w")


def _one_separator(name: str) -> str:
    return ".".join(_BETWEEN_WORDS.sub("_", part) for part in name.replace("__", ".").split("."))
