"""The sidebar: which panels are there when, and what people read. `drive_panels.py` looks at what they draw."""

import bpy
import pytest
from support import limited, scenes

from fabrik_addon.blender.settings.why_not import why_no_rig
from fabrik_addon.blender.ui.marker_state import BAD, FAIR, marker_state
from fabrik_addon.blender.ui.panels import limits, markers, rig

pytestmark = pytest.mark.usefixtures("clean_scene")

PANELS = [kind for module in (rig, limits, markers) for kind in module.CLASSES if issubclass(kind, bpy.types.Panel)]
ALWAYS = "FABRIK_PT_markers"
WITHOUT_RIG = "FABRIK_PT_no_rig"


def there():
    """The panels that Blender shows in the scene as it stands."""
    context = bpy.context
    return {kind.__name__ for kind in PANELS if not hasattr(kind, "poll") or kind.poll(context)}


@pytest.mark.parametrize("panel", PANELS)
def test_panels_are_in_the_sidebar_s_fabrik_tab(panel):
    assert getattr(bpy.types, panel.__name__).is_registered
    assert (panel.bl_space_type, panel.bl_region_type, panel.bl_category) == ("VIEW_3D", "UI", "FABRIK")
    parent = getattr(panel, "bl_parent_id", ALWAYS)
    assert parent in {each.__name__ for each in PANELS}


@pytest.fixture
def made():
    made = scenes.make_rig()
    scenes.make_active(made)
    return made


class TestPolls:
    def test_without_an_armature_one_panel_says_what_to_select(self):
        assert there() == {WITHOUT_RIG, ALWAYS}
        scenes.make_active(scenes.empty_at((0, 0, 0)))
        assert there() == {WITHOUT_RIG, ALWAYS}
        assert why_no_rig(bpy.context.object) == "Select an armature"

    def test_on_an_armature_all_the_others_are_there(self, made):
        assert there() == {kind.__name__ for kind in PANELS} - {WITHOUT_RIG}
        bpy.ops.object.mode_set(mode="POSE")
        assert there() == {kind.__name__ for kind in PANELS} - {WITHOUT_RIG}

    def test_in_edit_mode_one_panel_says_to_leave_it(self, made):
        bpy.ops.object.mode_set(mode="EDIT")
        assert there() == {WITHOUT_RIG, ALWAYS}
        assert why_no_rig(made) == "Leave Edit mode first"

    def test_on_a_linked_armature_one_panel_says_to_override_it(self, made, tmp_path):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "source.blend"))
        own = limited.override(tmp_path / "source.blend", "Rig")
        assert WITHOUT_RIG not in there()
        scenes.make_active(own)
        linked = own.override_library.reference
        bpy.context.scene.collection.objects.link(linked)
        scenes.make_active(linked)
        assert there() == {WITHOUT_RIG, ALWAYS}
        assert "make a library override of it first" in why_no_rig(linked)


def kinds():
    """What Blender knows of the settings and the operators."""
    settings = bpy.types.Object.bl_rna.properties["fabrik"].fixed_type
    yield from (settings, settings.properties["effectors"].fixed_type, settings.properties["bake"].fixed_type)
    for name in dir(bpy.ops.fabrik):
        yield getattr(bpy.ops.fabrik, name).get_rna_type()


def items(prop):
    return prop.enum_items if prop.type == "ENUM" else ()


def test_every_property_and_operator_has_a_name_and_a_tooltip_without_a_full_stop():
    assert len(list(kinds())) >= 3 + 5
    for kind in kinds():
        shown = [prop for prop in kind.properties if prop.identifier not in {"rna_type", "name"} and not prop.is_hidden]
        texts = [prop.description for prop in shown] + [item.description for prop in shown for item in items(prop)]
        texts += [kind.description] if "_OT_" in kind.identifier else []
        assert all(prop.name for prop in shown)
        assert all(text and not text.endswith(".") for text in texts), kind.identifier


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ({"bone": ""}, "FREE"),
        ({"bone": "nobody"}, "GONE"),
        ({"target": None}, "GONE"),
        ({"enabled": False}, "OFF"),
        ({"weight": 0.0}, "OFF"),
        ({"error": -1.0}, "READY"),
        ({"error": 0.9 * FAIR}, "GOOD"),
        ({"error": 1.1 * FAIR}, "FAIR"),
        ({"error": 1.1 * BAD}, "BAD"),
    ],
)
def test_a_marker_s_state(made, values, state):
    marker = made.fabrik.capture.markers.add()
    marker.bone, marker.target = "hips", scenes.empty_at((0, 0, 0))
    for name, value in values.items():
        setattr(marker, name, value)
    assert marker_state(made, marker) == state


@pytest.mark.parametrize("sentence", ["", "short", "a sentence of several words " * 6, "x" * 60])
def test_sentences_are_cut_between_words_into_lines_that_fit(sentence):
    lines = rig.short_lines(sentence)
    assert " ".join(lines).split() == sentence.split()
    assert all(len(line) <= 40 or " " not in line for line in lines)
