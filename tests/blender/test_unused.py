"""Enabled but not used, the add-on has no handlers, draws nothing, and adds or saves no data."""

import re
from pathlib import Path

import bpy
import pytest
from support import limited, scenes
from support.layouts import drawn

import fabrik_addon
from fabrik_addon.blender.settings.in_use import LISTENERS, keep_overrides, seen
from fabrik_addon.blender.settings.limit_properties import read_settings, write_settings
from fabrik_addon.blender.settings.why_not import rig_at_hand, shown_motion, why_no_bake, why_no_mapped, why_no_solve
from fabrik_addon.blender.ui import panels
from fabrik_addon.blender.ui.overlays import handlers as drawing
from fabrik_addon.blender.ui.panels.base import next_in_motion, next_in_pose
from fabrik_addon.core import Hinge

pytestmark = pytest.mark.usefixtures("clean_scene")

ALLOWED = {"load_post", "save_pre"}
WATCHED = ("depsgraph_update_post", "frame_change_post", "undo_post", "redo_post")
SOURCES = Path(fabrik_addon.__file__).parent / "blender"


def handlers():
    """Blender's handler lists that contain functions of the add-on."""
    names = (name for name in dir(bpy.app.handlers) if isinstance(getattr(bpy.app.handlers, name), list))
    own = fabrik_addon.__name__
    return {
        name
        for name in names
        for function in getattr(bpy.app.handlers, name)
        if getattr(function, "__module__", "").startswith(own)
    }


def redraw():
    """Call all functions of a redraw, with panels' polls and hints."""
    context = bpy.context
    at_hand = rig_at_hand(context)
    drawing.shown_rigs(context)
    drawing.shows_limits(context)
    shown_motion(context)
    for ask in (why_no_solve, why_no_mapped, why_no_bake, next_in_pose):
        ask(at_hand)
    next_in_motion(context, at_hand)
    for panel in panels.CLASSES:
        if hasattr(panel, "poll"):
            panel.poll(context)


def look(rig):
    """Redraw in both modes and with an active empty."""
    empty = scenes.empty_at((0, 0, 0))
    for active, mode in ((rig, "POSE"), (rig, "OBJECT"), (empty, "OBJECT")):
        scenes.make_active(active)
        bpy.ops.object.mode_set(mode=mode)
        redraw()
        getattr(rig, "fabrik_stiffness_of_selected", None)


@pytest.mark.parametrize("active", ["rig", "empty"])
def test_a_redraw_does_not_look_at_all_objects(active):
    """A scene with 1,000 objects more takes as many instructions."""
    rig, empty = scenes.make_rig(), scenes.empty_at((0, 0, 0))
    scenes.make_active(rig if active == "rig" else empty)
    few = scenes.steps_of(redraw)
    for number in range(1000):
        bpy.context.collection.objects.link(bpy.data.objects.new(f"Other {number}", None))
    assert scenes.steps_of(lambda: [thing for thing in bpy.data.objects if thing.type == "MESH"]) > 1000
    assert scenes.steps_of(redraw) == few
    assert handlers() <= ALLOWED
    assert LISTENERS


def test_enabling_the_add_on_adds_only_handlers_for_files():
    fabrik_addon.unregister()
    fabrik_addon.register()
    assert handlers() <= ALLOWED
    assert LISTENERS


def test_drawing_the_interface_adds_no_handlers_and_no_data():
    rigs = [scenes.make_rig(name=name) for name in ("One", "Two")]
    look(rigs[0])
    bpy.context.view_layer.update()
    assert handlers() <= ALLOWED
    assert LISTENERS
    assert not [rig.name for rig in rigs if rig.is_property_set("fabrik")]
    assert not [(rig.name, bone.name) for rig in rigs for bone in rig.pose.bones if bone.keys()]


def test_reading_unset_settings_gives_their_defaults():
    rig, other = scenes.make_rig(name="One"), scenes.make_rig(name="Two")
    unset, made = seen(rig), other.fabrik

    def compare(one, two):
        for name in [each.identifier for each in two.bl_rna.properties]:
            if name in ("rna_type", "name"):
                continue
            first, second = getattr(one, name), getattr(two, name)
            if isinstance(second, bpy.types.PropertyGroup):
                compare(first, second)
            elif hasattr(second, "add"):
                assert len(first) == len(second) == 0
            elif hasattr(second, "foreach_get"):
                assert tuple(first) == tuple(second), name
            else:
                assert first == second, name

    compare(unset, made)
    assert not rig.is_property_set("fabrik")


def used(use):
    """A function that uses a feature on a new rig."""
    rig = scenes.make_rig()
    scenes.make_active(rig)
    if use == "effectors":
        bpy.ops.object.mode_set(mode="POSE")
        bpy.ops.fabrik.pin(bones="hips")
    elif use == "errors":
        rig.fabrik.capture.markers.add()
        rig.fabrik.capture.show_errors = True
    elif use == "motion":
        rig.fabrik.show_trails = True
    else:
        bpy.context.scene.fabrik_show_limits = True
    return rig


@pytest.mark.parametrize("use", ["effectors", "errors", "motion", "limits"])
def test_overlays_are_drawn_after_the_first_use_and_in_files_that_use_the_add_on(use, tmp_path):
    assert LISTENERS
    used(use)
    assert not LISTENERS
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "used.blend"))
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    assert LISTENERS
    assert handlers() <= ALLOWED
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "used.blend"))
    assert not LISTENERS


def test_a_rig_that_was_live_leaves_nothing_in_the_next_file():
    rig = scenes.make_rig()
    scenes.aim(rig, "forearm.L", scenes.empty_at((0.4, -0.3, 1.2)))
    rig.fabrik.live = True
    assert handlers() >= set(WATCHED)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    assert handlers() <= ALLOWED


def test_one_stiffness_is_one_property():
    """Fixed: it made eight properties."""
    rig = scenes.make_rig()
    bone = rig.pose.bones["head"]
    limited.select(rig, ("head",), active="head")
    rig.fabrik_stiffness_of_selected = 0.5
    assert [*bone.keys()] == ["fabrik_stiffness"]
    limited.write_limit(bone, Hinge("X", 0.0, 1.0))
    assert read_settings(bone).stiffness == 0.5
    write_settings(rig.pose.bones["spine"], read_settings(rig.pose.bones["spine"]))
    assert not rig.pose.bones["spine"].keys()


def test_results_of_a_bake_are_saved(tmp_path):
    """The summary and the warnings of a bake are saved with the file."""
    kept = scenes.make_rig().fabrik
    kept.capture.last_result, kept.capture.doubts = "b", "c"
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "rig.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "rig.blend"))
    kept = bpy.data.objects["Rig"].fabrik
    assert (kept.capture.last_result, kept.capture.doubts) == ("b", "c")


def test_saving_leaves_linked_originals_as_they_were(tmp_path):
    scenes.make_rig()
    scenes.make_rig(name="Other")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "source.blend"))
    own = limited.override(tmp_path / "source.blend", "Rig")
    original = own.override_library.reference
    keep_overrides()
    assert not original.is_property_set("fabrik")
    # Blender 4.5 itself makes the settings of both when it compares them.
    own.property_unset("fabrik")
    own.fabrik.influence = 0.5
    for _ in range(2):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
        assert not original.is_property_set("fabrik"), "what it is lent is taken back"
        assert handlers() <= ALLOWED
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    (again,) = [rig for rig in bpy.data.objects if rig.override_library is not None and rig.type == "ARMATURE"]
    assert again.fabrik.influence == 0.5


def test_no_getter_of_a_property_reads_the_context():
    getters = set()
    for path in SOURCES.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"\bget=(\w+)", text):
            found = re.search(rf"def {name}\(.*?(?=\n\n\n|\Z)", text, flags=re.DOTALL)
            if found is not None:
                getters.add(name)
                assert "bpy.context" not in found[0], f"{path.name}: {name}"
    assert getters >= {"_stiffness"}


def test_the_first_panels_draw_an_unused_rig():
    rig = scenes.make_rig()
    scenes.make_active(rig)
    for panel in (panels.pose.FABRIK_PT_drag, panels.motion.FABRIK_PT_take):
        assert drawn(panel).texts()
