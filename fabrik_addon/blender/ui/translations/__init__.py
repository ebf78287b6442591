"""The interface in other languages: each is a .po file of this folder, which translators' tools open.

Blender looks up what it draws by itself; what is put together here goes through `said`.
"""

import ast
from pathlib import Path
from typing import Final, TypeAlias

import bpy

_Table: TypeAlias = dict[tuple[str, str], str]

# Blender's contexts: operators' labels have one of their own.
CONTEXTS: Final = ("*", "Operator")


def said(text: str, **values: object) -> str:
    """A text in the language of Blender's interface, with values put in where it has their names in braces."""
    translated: str = bpy.app.translations.pgettext_iface(text)
    return translated.format(**values) if values else translated


def start() -> None:
    """Let Blender know all languages."""
    files = sorted(Path(__file__).parent.glob("*.po"))
    bpy.app.translations.register(__name__, {file.stem: table(file.read_text(encoding="utf-8")) for file in files})


def stop() -> None:
    """Let it forget them."""
    bpy.app.translations.unregister(__name__)


def table(text: str) -> _Table:
    """A .po file's entries as Blender wants them; a text that has no translation yet is left out."""
    found: _Table = {}
    message = ""
    for line in text.splitlines():
        keyword, _, quoted = line.partition(" ")
        if keyword == "msgid":
            message = ast.literal_eval(quoted)
        elif keyword == "msgstr" and message and quoted != '""':
            found.update({(context, message): ast.literal_eval(quoted) for context in CONTEXTS})
    return found
