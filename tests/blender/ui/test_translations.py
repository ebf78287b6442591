"""Every text of the interface has a translation in each language, and Blender finds it."""

import re

import bpy
import pytest
from support.messages import all_messages
from support.texts import all_texts

from fabrik_addon.blender.registration import CLASSES
from fabrik_addon.blender.ui import translations
from fabrik_addon.human.naming_schemes import match
from fabrik_addon.markers.doubts import matching_doubts

LANGUAGES = translations.languages()


@pytest.fixture(params=sorted(LANGUAGES))
def language(request):
    return request.param


@pytest.fixture(params=["*", translations.MESSAGE])
def part(request, language):
    """(texts with where they are used, translated texts) of the interface and of messages."""
    texts = all_texts() if request.param == "*" else all_messages()
    return texts, {text for context, text in LANGUAGES[language] if context == request.param}


def test_every_text_is_translated(part):
    texts, known = part
    missing = {text: where for text, where in texts.items() if text not in known}
    assert not missing, 'add these to each .po file; messages with the line: msgctxt "Message"'


def test_only_visible_texts_are_translated(part):
    texts, known = part
    assert not known - set(texts)


def test_translations_keep_the_placeholders_of_values(language):
    for (_context, message), translated in LANGUAGES[language].items():
        # A translation may number values without names, to change their order.
        values, own = (sorted(re.findall(r"{[^}]*}", re.sub(r"{\d+}", "{}", text))) for text in (message, translated))
        assert values == own, message
        assert translated[-1] != "." or message[-1] == "."


@pytest.mark.parametrize(
    ("message", "german"),
    [
        ("'Rig' has no target or pin: add one first", "'Rig' hat weder Ziel noch Pin: erst eines hinzufügen"),
        (
            "Bone 'Head' was not changed: constraint 'Aim' moves it",
            "Knochen 'Head' wurde nicht geändert: Beschränkung 'Aim' bewegt ihn",
        ),
        ("14 bones rotated, 3.2 mm short", "14 Knochen gedreht, 3.2 mm zu kurz"),
        (
            "3 bones rotated, 15.4 cm short: foot.L is at its limit, a pin is 2 mm off",
            "3 Knochen gedreht, 15.4 cm zu kurz: foot.L ist an der Grenze, ein Pin ist 2 mm daneben",
        ),
        (
            "0 of 2 targets met, worst 3.2 cm: foot.R is pinned, 1 not seen",
            "0 von 2 Zielen erreicht, maximaler Abstand 3.2 cm: foot.R ist gepinnt, 1 nicht zu sehen",
        ),
        (
            "36 markers of 'walk' calibrated: RMS 2.2 mm, worst C7 3.4 mm, scaled by 1.2",
            "36 Marker von 'walk' kalibriert: RMS 2.2 mm, maximal C7 3.4 mm, skaliert mit 1.2",
        ),
        ("walk.trc: the file is empty: choose another", "walk.trc: die Datei ist leer: eine andere wählen"),
        (
            "'walk.trc': line 12, column 3: 'x' is not a number: export it again",
            "'walk.trc': Zeile 12, Spalte 3: 'x' ist keine Zahl: erneut exportieren",
        ),
        (
            "22 bones, 60 frames of 'walk': RMS 2.2 mm, worst 7.7 mm (RTIB, frame 1)",
            "22 Knochen, 60 Bilder von 'walk': RMS 2.2 mm, maximal 7.7 mm (RTIB, Bild 1)",
        ),
        (
            "42 markers calibrated: RMS 2 mm, worst C7 3 mm; moved down by 2 cm; detected pose: standing in a T pose",
            "42 Marker kalibriert: RMS 2 mm, maximal C7 3 mm; um 2 cm gesenkt; erkannte Pose: in T-Pose stehend",
        ),
        (
            "No marker is on the head, the left arm and the right leg: these bones only follow their parents",
            "Kein Marker ist auf: Kopf, linker Arm und rechtes Bein: diese Knochen folgen nur ihren Elternknochen",
        ),
        (
            (
                "Far from the source's directions: the line across the hips (60°) and the left shin (4°); "
                "check that the limits of spine allow these rotations"
            ),
            (
                "Weit von den Richtungen der Quelle: Linie zwischen den Hüftgelenken (60°) und linker Unterschenkel "
                "(4°); prüfen, ob die Grenzen von spine diese Rotationen zulassen"
            ),
        ),
        ("Gaps: 5, longest 22 frames (hand.R)", "Lücken: 5, die längste 22 Bilder (hand.R)"),
        ("Limits of 3 bones: ball joint, no limit", "Grenzen von 3 Knochen: Kugelgelenk, keine Grenze"),
        ("Mirrored the limits of 3 bones", "Grenzen gespiegelt: 3 Knochen"),
        (
            "Not changed, because their bone names are unknown: a, and 3 more",
            "Nicht geändert, weil ihre Knochennamen unbekannt sind: a, und 3 weitere",
        ),
        ("Move X 7  (7.0000 m), along global X, [7]", "Bewegen X 7  (7.0000 m), entlang global X, [7]"),
        (
            "take.c3d: Head is not known: what nobody has translated",
            "take.c3d: Head is not known: what nobody has translated",
        ),
    ],
)
def test_a_message_is_translated_by_its_pattern_with_its_values(message, german):
    known = LANGUAGES["de"]
    assert translations.translate(message, lambda text, context: known.get((context, text), text)) == german
    assert translations.translate(message, lambda text, _context: text) == message


def test_warnings_that_name_parts_of_the_body_are_translated_whole(language):
    bones = [f"{part}.{side}" for part in ("forearm", "shin") for side in "LR"]
    known = LANGUAGES[language]
    for on_bones in ({"LASI": "hips"}, {"LASI": "shin.L"}, {"LASI": "forearm.R"}):
        for warning in matching_doubts(["LASI"], on_bones, match(["head", "chest", *bones])):
            german = translations.translate(warning, lambda text, context: known.get((context, text), text))
            assert german != warning
            assert not re.search(r"\b(the|and|left|right|arm|leg|head|trunk)\b", german), german


def test_names_of_bones_are_not_translated():
    (warning,) = matching_doubts(["A", "B"], {"A": "head", "B": "'arm and hand'"}, {}, ["A", "B"])
    german = translations.translate(warning, lambda text, context: LANGUAGES["de"].get((context, text), text))
    assert german.startswith("Die Marker auf head und 'arm and hand' sind ")


def test_every_message_stays_the_same_in_english():
    """In English, messages with any values stay unchanged, even if one pattern contains another."""
    values = ["'Head'", "walk.trc", "3.5", "", "LASI, RASI and 4 more", "a driver rotates it", "1", "2"]
    for text in all_messages():
        message = text.format(*values[: text.count("{}")])
        assert translations.translate(message, lambda known, _context: known) == message


def test_texts_without_a_translation_stay_in_english():
    text = (
        'msgid ""\nmsgstr "Language: xx"\n\nmsgid "Drag \\"it\\""\nmsgstr "Zieh \\"es\\""\n\nmsgid "Pin"\nmsgstr ""\n'
    )
    assert translations.table(text) == {(context, 'Drag "it"'): 'Zieh "es"' for context in ("*", "FABRIK", "Operator")}


@pytest.mark.parametrize("cls", [each for each in CLASSES if not issubclass(each, bpy.types.UIList)])
def test_labels_have_a_context_without_translations_of_blender_s(cls):
    """Blender's catalogue has priority: "Manual" would be a handbook, "Spread" a spray can. See `drive_german.py`."""
    about = cls.bl_rna
    if issubclass(cls, bpy.types.Operator):
        group, operator = cls.bl_idname.split(".")
        about = getattr(getattr(bpy.ops, group), operator).get_rna_type()
    own = [each for each in about.properties if each.identifier in cls.__annotations__]
    assert {each.translation_context for each in own} <= {translations.CONTEXT}
    if issubclass(cls, (bpy.types.Operator, bpy.types.Panel, bpy.types.Menu)):
        assert cls.bl_translation_context == translations.CONTEXT


def test_blender_shows_the_translations():
    view = bpy.context.preferences.view
    before = view.language
    try:
        view.language = "de_DE"
    except TypeError:
        pytest.skip("this Blender has no languages")
    view.use_translate_interface = True
    try:
        assert (
            translations.ui_text("Press F over a bone and move the mouse")
            == "Über einem Knochen F drücken und die Maus bewegen"
        )
        assert (
            translations.ui_message("'Rig' has no hold: add one first")
            == "'Rig' hat keine Fixierung: erst eine hinzufügen"
        )
        assert translations.ui_text("Seen on {share:.0f} % of the frames", share=99.6) == "Auf 100 % der Bilder gesehen"
    finally:
        view.language = before
