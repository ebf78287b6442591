"""Translates the interface. Each language is a .po file in this folder, which translation tools can edit.

Blender translates labels and tooltips by itself. `ui_text` translates texts and then inserts values. `ui_message`
translates results and errors that already contain values. Their patterns are the entries of the context Message, with
{} for a value.
"""

import ast
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import bpy

from ...settings.declare import CONTEXT

_Table: TypeAlias = dict[tuple[str, str], str]

# Tooltips and sentences use Blender's default context. Names in the undo history use the context of operators.
CONTEXTS: Final[tuple[str, ...]] = ("*", CONTEXT, "Operator")
MESSAGE: Final = "Message"
# Separators between the parts of a message, the widest first.
_JOINTS: Final = ("; ", ": ", ", ")
# The last two parts of a list. An "and" inside a quoted name does not separate them. An apostrophe, as in "source's",
# does not begin a name.
_LAST_TWO: Final = "{} and {}"
_LAST_AND: Final = re.compile(r"(.+) and ((?:[^']|(?<=\w)'(?=\w)|'[^']*')+)")
# The prefix of English locales. A Blender without a window or without languages has no locale.
_ENGLISH: Final = "en_"
# An entry of a .po file: the context, if it has one, the text, and its translation.
_ENTRY: Final = re.compile(r'^(?:msgctxt (".+")\n)?msgid (".+")\nmsgstr (".+")$', re.MULTILINE)
# The number of translated lines in the cache, because panels translate lines at each redraw.
_KEPT: Final = 1024


def ui_text(text: str, **values: object) -> str:
    """A text translated to the language of Blender's interface; values replace their names in braces."""
    found: str = bpy.app.translations.pgettext_iface(text, CONTEXT)
    return found.format(**values) if values else found


def ui_message(message: str) -> str:
    """A message that already contains values, translated to the language of the interface."""
    locale = bpy.app.translations.locale
    if not locale or locale.startswith(_ENGLISH):
        return message
    plain = ui_text(message)
    return translate(message, bpy.app.translations.pgettext_iface) if plain == message else plain


def translate(message: str, look_up: Callable[[str, str], str]) -> str:
    """Translate a message and its values by its pattern, or else part by part. Otherwise return it unchanged.

    look_up: the translation of a pattern in a context.
    """
    core = message.strip(" ,;")
    if (found := _made_by(core)) is not None:
        pattern, values = found
        return message.replace(core, look_up(pattern, MESSAGE).format(*(translate(value, look_up) for value in values)))
    if joint := next((joint for joint in _JOINTS if joint in core), ""):
        return joint.join(translate(part, look_up) for part in _parts(message, joint))
    if ends := _LAST_AND.fullmatch(message):
        return look_up(_LAST_TWO, MESSAGE).format(*(translate(end, look_up) for end in ends.groups()))
    named, opening, figure = message.rpartition(" (")
    return f"{translate(named, look_up)} ({translate(figure, look_up)}" if opening else message


def _parts(message: str, joint: str) -> Iterator[str]:
    """The parts of a message. Adjacent parts that match one pattern stay together, but never all parts."""
    parts = message.split(joint)
    most = len(parts) - 1
    while parts:
        counts = range(min(most, len(parts)), 1, -1)
        count = next((count for count in counts if _made_by(joint.join(parts[:count]))), 1)
        yield joint.join(parts[:count])
        del parts[:count]


@lru_cache(maxsize=_KEPT)
def _made_by(message: str) -> tuple[str, tuple[str, ...]] | None:
    """The pattern of a message, and its values; of several patterns that fit, the one with the longest fixed text."""
    if " " not in message:
        return None
    matches = ((pattern, expression.fullmatch(message)) for pattern, expression in _patterns())
    return next(((pattern, match.groups()) for pattern, match in matches if match), None)


@lru_cache(maxsize=1)
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    """The patterns of all messages, the longest first; read at the first message."""
    known = {text for entries in languages().values() for context, text in entries if context == MESSAGE} - {_LAST_TWO}
    return [
        (text, re.compile("(.*?)".join(map(re.escape, text.split("{}"))), re.DOTALL))
        for text in sorted(known, key=lambda text: (-len(text.replace("{}", "")), text))
    ]


@lru_cache(maxsize=1)
def languages() -> dict[str, _Table]:
    """The translations of each language in Blender's format."""
    return {file.stem: table(file.read_text(encoding="utf-8")) for file in sorted(Path(__file__).parent.glob("*.po"))}


def start() -> None:
    """Register all languages."""
    translations: Any = bpy.app.translations
    translations.register(__name__, languages())


def stop() -> None:
    """Unregister the translations."""
    bpy.app.translations.unregister(__name__)


def table(text: str) -> _Table:
    """A .po file's entries in Blender's format; texts without a translation are left out."""
    found: _Table = {}
    for context, message, translated in _ENTRY.findall(text):
        for each in (ast.literal_eval(context),) if context else CONTEXTS:
            found[each, ast.literal_eval(message)] = ast.literal_eval(translated)
    return found
