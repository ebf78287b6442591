"""The number of settings that users see at first; rarely needed ones are in *Advanced*."""

from pathlib import Path

import bpy
import pytest
from support import scenes
from support.layouts import Layout, drawn
from support.texts import properties_of

from fabrik_addon.blender.registration import CLASSES
from fabrik_addon.blender.ui import panels
from fabrik_addon.blender.ui.entries import FABRIK_WT_drag
from fabrik_addon.blender.ui.operators import motion

pytestmark = pytest.mark.usefixtures("clean_scene")

SAMPLES = Path(__file__).parents[3] / "sample_rigs"
PANELS = [kind for kind in panels.CLASSES if issubclass(kind, bpy.types.Panel)]
MOST_SHOWN, MOST_AT_FIRST, MOST_DECLARED = 49, 6, 150


def there():
    return [kind for kind in PANELS if not hasattr(kind, "poll") or kind.poll(bpy.context)]


def at_first():
    """The number of controls of each tab while its panels are folded; controls in headers are counted separately."""
    found = dict.fromkeys(("FABRIK Pose", "FABRIK Motion"), 0)
    for kind in there():
        if "DEFAULT_CLOSED" not in getattr(kind, "bl_options", ()):
            found[kind.bl_category] += sum(not fold for fold, _, _ in drawn(kind).controls)
    return found


def test_the_number_of_declared_settings_is_limited():
    """Properties of settings, of stored data and of operators; those that two classes share count twice."""
    count = 0
    for cls in CLASSES:
        if issubclass(cls, bpy.types.Operator):
            group, operator = cls.bl_idname.split(".")
            count += len(properties_of(getattr(getattr(bpy.ops, group), operator).get_rna_type()))
        elif issubclass(cls, (bpy.types.PropertyGroup, bpy.types.AddonPreferences)):
            count += len(properties_of(cls.bl_rna))
    assert count <= MOST_DECLARED


class Looks:
    """Puts a rig into each state, and records the controls that are drawn."""

    def __init__(self):
        self.settings = set()

    def look(self):
        assert max(at_first().values()) <= MOST_AT_FIRST, at_first()
        self.note(control for kind in there() for control in drawn(kind).controls)

    def note(self, controls):
        for fold, holder, name in controls:
            if holder and "fabrik" in f"{holder}{name}".lower() and not fold.endswith("Advanced"):
                self.settings.add((holder, name))


def as_dialog(operator):
    """The drawing of an operator's dialog."""
    layout = Layout()

    class Shown:
        bl_rna = getattr(bpy.ops.fabrik, operator.bl_idname.split(".")[1]).get_rna_type()

    shown = Shown()
    shown.layout, shown.target, shown.keypoints, shown.performer, shown.files = layout, "", "AUTO", "", ()
    operator.draw(shown, bpy.context)
    return layout.controls


def test_the_number_of_visible_settings_is_limited():
    looks = Looks()
    looks.look()
    bpy.ops.wm.open_mainfile(filepath=str(SAMPLES / "human.blend"))
    rig = bpy.data.objects["Rig"]
    scenes.make_active(rig)
    looks.look()
    bpy.ops.object.mode_set(mode="POSE")
    rig.data.bones.active = rig.data.bones["hand.L"]
    looks.look()
    for kind in ("BALL", "HINGE", "POLYGON"):
        bpy.ops.fabrik.set_limit(bones="hand.L", type=kind, slide=(1.0, 1.5), mass=0.1)
        looks.look()
    rig.fabrik.drag.reach, rig.fabrik.preferred_pose = "BONES", "KEPT"
    bpy.ops.fabrik.pin(bones="foot.L")
    looks.look()
    bpy.ops.fabrik.add_effector()
    effector = rig.fabrik.effectors[-1]
    effector.point, effector.bend_target = "OFFSET", rig
    looks.look()
    source = scenes.make_rig(name="Source")
    scenes.make_active(rig)
    effector.target, rig.fabrik.live = source, True
    looks.look()
    rig.fabrik.live = False
    rig.fabrik.retarget.source = source
    pair = rig.fabrik.retarget.pairs.add()
    pair.source, pair.before = "head", "neck"
    bpy.context.scene.use_preview_range, rig.fabrik.bake.key_angle = True, 0.1
    looks.look()
    rig.fabrik.control.carriers.add().name = "head"
    rig.fabrik.control.switches.add()
    looks.look()
    rig.fabrik.control.carriers.clear()
    bpy.ops.fabrik.import_markers(filepath=str(SAMPLES / "walk.trc"), last=12)
    looks.look()
    bpy.ops.fabrik.match_markers()
    looks.look()
    bpy.context.object.fabrik.capture.refine = False
    bpy.ops.fabrik.calibrate_markers()
    looks.look()
    bpy.ops.fabrik.bake()
    rig.fabrik.drag.spread, rig.fabrik.show_trails = 5, True
    looks.look()
    tool = Layout()
    FABRIK_WT_drag.draw_settings(bpy.context, tool, None)
    looks.note(tool.controls)
    for operator in (motion.FABRIK_OT_import_markers, motion.FABRIK_OT_add_hold):
        looks.note(as_dialog(operator))
    assert 40 < len(looks.settings) <= MOST_SHOWN, sorted(looks.settings)
