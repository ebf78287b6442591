"""Every text of the interface has a translation in each language, and Blender finds it."""

import re

import bpy
import pytest
from support.texts import all_texts

from fabrik_addon.blender.ui import translations

LANGUAGES = {
    file.stem: translations.table(file.read_text(encoding="utf-8"))
    for file in translations.Path(translations.__file__).parent.glob("*.po")
}


@pytest.fixture(params=sorted(LANGUAGES))
def language(request):
    return request.param


def test_every_text_is_translated(language):
    known = {message for _context, message in LANGUAGES[language]}
    missing = {text: where for text, where in all_texts().items() if text not in known}
    assert not missing, f"add to {language}.po"


def test_nothing_is_translated_that_nobody_sees(language):
    assert not {message for _context, message in LANGUAGES[language]} - set(all_texts())


def test_values_stay_in_their_places(language):
    for (_context, message), translated in LANGUAGES[language].items():
        assert sorted(re.findall(r"{[^}]*}", message)) == sorted(re.findall(r"{[^}]*}", translated)), message
        assert translated[-1] != "." or message[-1] == "."


def test_what_has_no_translation_yet_is_left_in_english():
    text = (
        'msgid ""\nmsgstr "Language: xx"\n\nmsgid "Drag \\"it\\""\nmsgstr "Zieh \\"es\\""\n\nmsgid "Pin"\nmsgstr ""\n'
    )
    assert translations.table(text) == {(context, 'Drag "it"'): 'Zieh "es"' for context in ("*", "Operator")}


def test_blender_shows_them():
    view = bpy.context.preferences.view
    before = view.language
    try:
        view.language = "de_DE"
    except TypeError:
        pytest.skip("this Blender has no languages")
    view.use_translate_interface = True
    try:
        assert translations.said("Press F over a bone and move") == "F über einem Bone drücken und bewegen"
        assert translations.said("Seen on {share:.0f} % of the frames", share=99.6) == "Auf 100 % der Bilder gesehen"
    finally:
        view.language = before
