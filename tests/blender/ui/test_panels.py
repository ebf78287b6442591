"""The sidebar: when each panel is shown, and its texts. `drive_panels.py` checks what they draw."""

import re
from pathlib import Path
from types import SimpleNamespace

import bpy
import pytest
from support import limited, scenes
from support.layouts import SIDEBAR, Layout, drawn, width_of

from fabrik_addon.blender.rig.keyframes import curves
from fabrik_addon.blender.settings.motion import BAD, FAIR, TAKE_DOUBTS, TAKE_STATIC
from fabrik_addon.blender.settings.rig import rig_settings, state_of_take
from fabrik_addon.blender.settings.why_not import rig_at_hand
from fabrik_addon.blender.ui import panels
from fabrik_addon.blender.ui.panels import base
from fabrik_addon.blender.ui.panels.base import fitted, next_in_motion, next_in_pose, short_lines

pytestmark = pytest.mark.usefixtures("clean_scene")

SAMPLES = Path(__file__).parents[3] / "sample_rigs"
PANELS = [kind for kind in panels.CLASSES if issubclass(kind, bpy.types.Panel)]
TABS = {"FABRIK Pose", "FABRIK Motion"}
# The first panel of each tab shows the next step in every state.
FIRST = {"FABRIK_PT_drag", "FABRIK_PT_take"}
POSING = {kind.__name__ for kind in PANELS if kind.bl_category == "FABRIK Pose"}


def there():
    """The panels that Blender shows in the current scene."""
    shown = {kind.__name__ for kind in PANELS if not hasattr(kind, "poll") or kind.poll(bpy.context)}
    return {kind.__name__ for kind in PANELS if {kind.__name__, getattr(kind, "bl_parent_id", kind.__name__)} <= shown}


@pytest.mark.parametrize("panel", PANELS)
def test_panels_are_in_the_sidebar_s_two_tabs(panel):
    assert getattr(bpy.types, panel.__name__).is_registered
    assert (panel.bl_space_type, panel.bl_region_type) == ("VIEW_3D", "UI")
    assert panel.bl_category in TABS
    parent = getattr(bpy.types, getattr(panel, "bl_parent_id", panel.__name__))
    assert parent.bl_category == panel.bl_category


@pytest.fixture
def made():
    made = scenes.make_rig()
    scenes.make_active(made)
    return made


def cut_off():
    """The texts of each visible panel that are too wide for a sidebar of Blender's default width."""
    found = {kind.__name__: drawn(kind).cut(SIDEBAR) for kind in PANELS if kind.__name__ in there()}
    return {panel: texts for panel, texts in found.items() if texts}


class TestTextsFit:
    def test_a_text_that_does_not_fit_is_found(self):
        layout = Layout(split=True)
        layout.label(text="short", icon="INFO")
        layout.column().label(text="a line that is quite a bit wider than the sidebar", icon="INFO")
        layout.prop(bpy.context.scene.render, "resolution_percentage", text="A property's name")
        two = layout.row()
        two.label(text="a row with two labels")
        two.label(text="both too wide together")
        split = layout.split(factor=0.2)
        split.label(text="first of a split")
        split.label(text="second")
        found = layout.cut(SIDEBAR)
        assert [texts[0] for texts in found] == [
            "a line that is quite a bit wider than the sidebar",
            "A property's name",
            "a row with two labels",
            "first of a split",
        ]

    def test_without_a_rig(self):
        assert cut_off() == {}

    @pytest.mark.parametrize("kind", ["BALL", "HINGE", "FIXED", "POLYGON"])
    def test_on_a_limited_bone(self, made, kind):
        assert cut_off() == {}
        bpy.ops.object.mode_set(mode="POSE")
        made.data.bones.active = made.data.bones["forearm.L"]
        bpy.ops.fabrik.set_limit(bones="forearm.L", type=kind, slide=(1.0, 1.5))
        assert cut_off() == {}

    def test_with_targets_and_pins(self, made):
        bpy.ops.object.mode_set(mode="POSE")
        made.data.bones.active = made.data.bones["forearm.L"]
        made.fabrik.drag.reach, made.fabrik.preferred_pose = "BONES", "KEPT"
        bpy.ops.fabrik.add_effector()
        made.fabrik.effectors[0].point = "OFFSET"
        made.fabrik.live = True
        assert cut_off() == {}
        bpy.ops.fabrik.pin()
        bpy.context.scene.use_preview_range, made.fabrik.bake.key_angle = True, 0.1
        assert cut_off() == {}

    def test_long_names_in_lists(self, made):
        source = scenes.make_rig(name="Source")
        scenes.make_active(made)
        bpy.ops.object.mode_set(mode="POSE")
        made.pose.bones["forearm.L"].name = long = "DEF-forearm_with_a_long_name.001.L"
        made.data.bones.active = made.data.bones[long]
        bpy.ops.fabrik.add_effector()
        kept, made.fabrik.retarget.source = made.fabrik, source
        pair, carrier = kept.retarget.pairs.add(), kept.control.carriers.add()
        pair.name = carrier.name = long
        pair.source, carrier.control = "mixamorig:LeftForeArmTwistJoint", "forearm_with_a_long_name_fk.L"
        kept.control.use = False
        marker = kept.capture.markers.add()
        marker.name, marker.bone, marker.target = "Performer:Left.Elbow.Outside", long, source
        take = bpy.data.collections.new("subject_04_walking_at_normal_speed_trial_12")
        take[TAKE_STATIC] = True
        bpy.context.scene.collection.children.link(take)
        assert cut_off() == {}
        texts = {text for kind in PANELS if kind.__name__ in there() for text in drawn(kind).texts()}
        assert {text for text in texts if re.fullmatch("fore.*….*1.L", text)}
        assert {text for text in texts if re.fullmatch("Left.*….*Joint", text)}


class TestPolls:
    def test_without_an_armature_the_first_panels_say_what_to_select(self):
        assert there() == FIRST
        scenes.make_active(scenes.empty_at((0, 0, 0)))
        assert there() == FIRST
        assert next_in_pose(rig_at_hand(bpy.context)) == "Select an armature"

    def test_controls_that_cannot_be_used_are_not_shown(self, made):
        plain = FIRST | POSING - {"FABRIK_PT_control_rig"}
        assert there() == plain
        bpy.ops.object.mode_set(mode="POSE")
        made.data.bones.active = made.data.bones[0]
        bpy.ops.fabrik.add_effector()
        assert there() >= plain | {"FABRIK_PT_bake"}

    def test_a_rig_with_constrained_bones_must_first_be_set_up_as_a_control_rig(self, made):
        made.pose.bones["head"].constraints.new("LIMIT_ROTATION")
        assert "FABRIK_PT_control_rig" not in there()
        made.pose.bones["forearm.L"].constraints.new("COPY_ROTATION").target = scenes.empty_at((0, 0, 1))
        scenes.make_active(made)
        assert "FABRIK_PT_control_rig" in there()
        assert "control rig" in next_in_pose(made)
        button = bpy.ops.fabrik.use_control_rig.get_rna_type().name
        first = next(kind for kind in PANELS if kind.__name__ == "FABRIK_PT_drag")
        assert button in drawn(first).texts()
        made.fabrik.control.carriers.add().name = "forearm.L"
        assert "FABRIK_PT_control_rig" in there()
        assert button not in drawn(first).texts()
        assert next_in_pose(made) == "Enter Pose mode to drag bones"

    def test_in_edit_mode_the_first_panels_say_to_leave_it(self, made):
        bpy.ops.object.mode_set(mode="EDIT")
        assert there() == FIRST
        assert next_in_pose(made) == "Leave Edit mode first"
        assert next_in_motion(bpy.context, made)[0] == "Leave Edit mode first", "its panels for motion are hidden too"

    def test_on_a_linked_armature_panels_tell_to_override_it(self, made, tmp_path):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "source.blend"))
        own = limited.override(tmp_path / "source.blend", "Rig")
        assert there() > FIRST
        scenes.make_active(own)
        linked = own.override_library.reference
        bpy.context.scene.collection.objects.link(linked)
        scenes.make_active(linked)
        assert there() == FIRST
        assert "make a library override of it first" in next_in_pose(linked)
        assert "make a library override of it first" in next_in_motion(bpy.context, linked)[0]

    @pytest.mark.parametrize("end", ["target", "bend_target"])
    def test_the_panels_stay_on_a_rig_while_its_target_is_active(self, made, end):
        empty = scenes.empty_at((0, 0, 1))
        setattr(made.fabrik.effectors.add(), end, empty)
        scenes.make_active(empty)
        assert rig_at_hand(bpy.context) == made
        assert there() > FIRST
        made.fabrik.live = True
        assert bpy.ops.fabrik.remove_effector.poll(), "its operators work there too"

    @pytest.mark.parametrize("bound", ["parent", "modifier"])
    def test_the_panels_stay_on_a_rig_while_its_skin_is_active(self, made, bound):
        """People who click a person select the mesh."""
        skin = bpy.data.objects.new("Skin", bpy.data.meshes.new("Skin"))
        bpy.context.scene.collection.objects.link(skin)
        if bound == "parent":
            skin.parent, skin.parent_type = made, "ARMATURE"
        else:
            skin.modifiers.new("Armature", "ARMATURE").object = made
        scenes.make_active(skin)
        assert rig_at_hand(bpy.context) == made
        assert there() > FIRST
        assert bpy.ops.fabrik.pose_mode() == {"FINISHED"}
        assert (bpy.context.object, made.mode) == (made, "POSE")

    @pytest.mark.parametrize("was_posed", [False, True])
    def test_a_hidden_rig_does_not_enter_pose_mode(self, made, was_posed):
        """Fixed: Blender's operator ended with a traceback."""
        if was_posed:
            bpy.ops.object.mode_set(mode="POSE")
        made.hide_viewport = True
        with pytest.raises(RuntimeError, match=r"^Error: 'Rig' is hidden: make it visible first\n$"):
            bpy.ops.fabrik.pose_mode()
        assert made.mode == ("POSE" if was_posed else "OBJECT")

    def test_a_mesh_without_a_rig_in_the_scene_has_none(self, made):
        skin = bpy.data.objects.new("Skin", bpy.data.meshes.new("Skin"))
        bpy.context.scene.collection.objects.link(skin)
        scenes.make_active(skin)
        assert rig_at_hand(bpy.context) == skin
        skin.parent, skin.parent_type = made, "ARMATURE"
        bpy.context.scene.collection.objects.unlink(made)
        assert rig_at_hand(bpy.context) == skin

    def test_finding_the_rig_checks_only_armatures(self, made):
        """Each redraw looks for the rig about twenty times. Checking thousands of objects would take too long."""
        empty = scenes.empty_at((0, 0, 1))
        made.fabrik.effectors.add().target = empty
        scenes.make_active(empty)
        few = scenes.steps_of(lambda: rig_at_hand(bpy.context))
        for place in range(50):
            scenes.empty_at((place, 0.0, 0.0))
        scenes.make_active(empty)
        assert rig_at_hand(bpy.context) == made
        # Looking at one object takes several instructions.
        assert scenes.steps_of(lambda: rig_at_hand(bpy.context)) < few + 50

    def test_the_rig_is_found_after_rigs_are_added_and_removed(self, made):
        empty = scenes.empty_at((0, 0, 1))
        made.fabrik.effectors.add().target = empty
        scenes.make_active(empty)
        assert rig_at_hand(bpy.context) == made
        bpy.data.armatures.remove(made.data)
        assert rig_at_hand(bpy.context) == empty
        other = scenes.make_rig(name="Other")
        other.fabrik.effectors.add().bend_target = empty
        scenes.make_active(empty)
        assert rig_at_hand(bpy.context) == other
        bpy.context.scene.collection.objects.unlink(other)
        assert rig_at_hand(bpy.context) == empty


class TestWalk:
    """From a recording to keys, each panel appears when it is needed, and the line at the top names the next step."""

    @pytest.fixture
    def person(self):
        bpy.ops.wm.open_mainfile(filepath=str(SAMPLES / "human.blend"))
        rig = bpy.data.objects["Rig"]
        scenes.make_active(rig)
        return rig

    def step(self, rig):
        assert cut_off() == {}
        return next_in_motion(bpy.context, rig)[0]

    def motion(self):
        return there() - POSING - {"FABRIK_PT_take"}

    def test_the_hint_shows_the_next_step(self, person):
        assert self.step(person).startswith("Import markers or poses here")
        assert not self.motion()
        bpy.ops.fabrik.import_markers(filepath=str(SAMPLES / "walk.trc"), last=12)
        take = bpy.data.collections["walk"]
        assert person.fabrik.capture.take == take
        assert (self.step(person), state_of_take(person, take)) == ("Match the markers to bones", "NEW")
        assert self.motion() == {"FABRIK_PT_marker_list"}
        bpy.ops.fabrik.match_markers()
        assert self.step(person).startswith("Calibrate")
        assert state_of_take(person, take) == "MATCHED"
        assert self.motion() >= {"FABRIK_PT_calibration", "FABRIK_PT_bake"}
        bpy.context.object.fabrik.capture.refine = False
        bpy.ops.fabrik.calibrate_markers()
        assert (self.step(person)[:4], state_of_take(person, take)) == ("Bake", "CALIBRATED")
        (first,) = (kind for kind in PANELS if kind.__name__ == "FABRIK_PT_take")
        assert "Calibrated" in drawn(first).texts(), "how far a take has come is read whole"
        assert "FABRIK_PT_marker_report" not in self.motion()
        bpy.context.object.fabrik.bake.action = "NLA"
        bpy.ops.fabrik.bake()
        assert self.step(person).startswith("Baked")
        assert state_of_take(person, take) == "BAKED"
        assert "FABRIK_PT_marker_report" in self.motion()
        assert rig_settings(person).capture.action == person.animation_data.nla_tracks[-1].strips[-1].action

    def test_motion_editing_is_in_sight_after_a_bake(self, person):
        """In a window 1,000 pixels high, even if the panels of the steps before it were opened by hand."""
        bpy.ops.fabrik.import_markers(filepath=str(SAMPLES / "walk.trc"), last=12)
        bpy.ops.fabrik.match_markers()
        bpy.context.object.fabrik.capture.refine = False
        bpy.ops.fabrik.calibrate_markers()
        bpy.ops.fabrik.bake()
        tab = [kind for kind in PANELS if kind.__name__ in there() - POSING]
        names = [kind.__name__ for kind in tab]
        above = tab[: names.index("FABRIK_PT_edit")]
        heights = {kind.__name__: 22 * drawn(kind).lines for kind in above}
        assert sum(30 + height for height in heights.values()) < 900, heights
        opened = [kind.__name__ for kind in above if "DEFAULT_CLOSED" not in getattr(kind, "bl_options", ())]
        assert sum(heights[name] for name in opened) < 300, heights

    def test_a_new_calibration_asks_for_another_bake(self, person):
        bpy.ops.fabrik.import_markers(filepath=str(SAMPLES / "walk.trc"), last=12)
        bpy.ops.fabrik.match_markers()
        bpy.ops.fabrik.bake()
        bpy.context.object.fabrik.capture.refine = False
        bpy.ops.fabrik.calibrate_markers()
        assert self.step(person) == "Bake the take to keyframes"
        assert state_of_take(person, bpy.data.collections["walk"]) == "CALIBRATED"

    def test_a_bake_without_calibration_also_completes_the_step(self, person):
        bpy.ops.fabrik.import_markers(filepath=str(SAMPLES / "walk.trc"), last=12)
        bpy.ops.fabrik.match_markers()
        bpy.ops.fabrik.bake()
        assert self.step(person) == "Baked: see the report below"

    def test_another_armature_can_be_selected_as_the_source(self, person):
        source = scenes.make_rig(name="Source")
        scenes.make_active(person)
        assert "as the source in the panel Retarget" in self.step(person)
        person.fabrik.retarget.source = source
        assert self.step(person).startswith("Press Retarget")
        assert next_in_motion(bpy.context, person)[1] == "fabrik.retarget", "the panel Retarget is folded at first"
        assert "FABRIK_PT_from_armature" in self.motion()
        for frame in (1, 12):
            source.pose.bones["hips"].keyframe_insert("location", frame=frame)
        bpy.ops.fabrik.retarget()
        assert self.step(person).startswith("Retargeted")

    def test_a_take_is_not_baked_by_another_armature_s_motion(self, person):
        source = scenes.make_rig(name="Source")
        source.pose.bones["hips"].keyframe_insert("location", frame=1)
        scenes.make_active(person)
        bpy.ops.fabrik.import_markers(filepath=str(SAMPLES / "walk.trc"), last=12)
        bpy.ops.fabrik.match_markers()
        bpy.ops.fabrik.retarget(source="Source")
        assert state_of_take(person, bpy.data.collections["walk"]) == "MATCHED"

    def test_a_take_without_motion_is_static_and_not_chosen(self, person):
        bpy.ops.fabrik.import_markers(filepath=str(SAMPLES / "walk.trc"), last=2)
        still = bpy.data.collections["walk"]
        assert state_of_take(person, still) == "STATIC"
        bpy.ops.fabrik.import_markers(filepath=str(SAMPLES / "walk.trc"), last=30)
        moving = bpy.data.collections["walk.001"]
        capture = person.fabrik.capture
        assert capture.take == moving
        bpy.ops.fabrik.follow_take(take=still.name)
        assert capture.take == still
        bpy.ops.fabrik.match_markers(take=capture.take.name)
        assert (state_of_take(person, still), state_of_take(person, moving)) == ("MATCHED", "NEW")

    def test_all_panels_show_the_highlighted_take(self, person):
        """Fixed: hint, list of markers, calibration, bake and report were those of the first take."""
        takes = []
        for first in (1, 200):
            bpy.ops.fabrik.import_markers(filepath=str(SAMPLES / "walk.trc"), first=first, last=first + 11)
            assert self.step(person) == "Match the markers to bones"
            assert self.motion() - {"FABRIK_PT_edit"} == {"FABRIK_PT_marker_list"}
            takes.append(person.fabrik.capture.take)
            bpy.ops.fabrik.match_markers()
            bpy.context.object.fabrik.capture.refine = False
            bpy.ops.fabrik.calibrate_markers()
            bpy.ops.fabrik.bake()
            assert self.step(person).startswith("Baked")
            assert person.animation_data.action.name == takes[-1].name
        assert [each.name for each in takes] == ["walk", "walk.001"]
        capture = person.fabrik.capture
        before = self.of_take(capture)
        bpy.ops.fabrik.follow_take(take="walk")
        assert self.step(person).startswith("Baked")
        assert {marker.target for marker in capture.markers} == set(takes[0].objects)
        assert capture.report.name == "walk FABRIK report.csv"
        assert self.of_take(capture) != before
        bpy.ops.fabrik.bake()
        assert person.animation_data.action.name == "walk.002"
        bpy.ops.fabrik.follow_take(take="walk.001")
        assert self.of_take(capture) == before
        assert {state_of_take(person, each) for each in takes} == {"BAKED"}

    def test_match_warnings_are_shown(self, person):
        """Fixed: they were shown only in the report after the bake."""
        bpy.ops.fabrik.import_markers(filepath=str(SAMPLES / "walk.trc"), last=12)
        person.fabrik.capture.take[TAKE_DOUBTS] = "A doubt"
        bpy.ops.fabrik.match_markers()
        assert "A doubt" in drawn(panels.motion.FABRIK_PT_take).texts()

    def test_warnings_of_a_bake_from_targets_are_shown(self, person):
        """Fixed: below the result, no panel said that locked curves had kept their keys."""
        bpy.ops.fabrik.add_effector(bone="hand.L")
        person.fabrik.effectors[0].target.keyframe_insert("location", frame=1)
        person.pose.bones["upper_arm.L"].keyframe_insert("rotation_quaternion", frame=1)
        for curve in curves(person):
            curve.lock = True
        bpy.context.scene.frame_end = 2
        person.fabrik.bake.action = "CURRENT"
        bpy.ops.fabrik.bake()
        shown = " ".join(drawn(panels.motion.FABRIK_PT_take).texts())
        assert "were not changed: upper_arm.L" in shown

    def test_auto_keying_is_shown_next_to_spread(self, person):
        """Fixed: after the drag, the message reported that only one frame had changed."""
        person.pose.bones["hips"].keyframe_insert("location", frame=1)
        edit = panels.motion.FABRIK_PT_edit
        assert "Auto Keying" not in drawn(edit).texts()
        person.fabrik.drag.spread = 10
        assert "Auto Keying" in drawn(edit).texts()

    @staticmethod
    def of_take(capture):
        """Each marker's empty, bone, position and error, the results, and the report."""
        rows = [(each.target.name, each.bone, tuple(each.offset), each.error, each.worst) for each in capture.markers]
        results = capture.calibrated, capture.calibration_doubts, capture.last_result, capture.doubts
        return rows, results, capture.worst_frame, capture.report.as_string()


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
    assert marker.state == state


def test_keys_can_be_inserted_once_something_is_posed(made):
    """Fixed: the button was enabled before anything was posed, and then refused."""

    def is_enabled():
        columns = [each for each in drawn(panels.pose.FABRIK_PT_drag).children if isinstance(each, Layout)]
        (column,) = (each for each in columns if each.texts() == ["Keyframe Solved Bones"])
        return column.enabled

    bpy.ops.object.mode_set(mode="POSE")
    assert not is_enabled()
    made.fabrik.key_bones = "WHOLE"
    assert is_enabled()
    made.fabrik.key_bones = "POSED"
    bpy.ops.fabrik.drag(bone="forearm.L", translation=(0.0, -0.1, 0.1))
    assert is_enabled()
    bpy.ops.fabrik.key_pose()
    assert not is_enabled()
    bpy.ops.fabrik.pin(bones="shin.L")
    assert is_enabled()


@pytest.mark.parametrize("sentence", ["", "short", "a sentence of several words " * 6, "x" * 60])
def test_long_sentences_are_wrapped_between_words(sentence):
    lines = short_lines(sentence, 200.0)
    assert " ".join(lines).split() == sentence.split()
    assert all(width_of(line) <= 200.0 or " " not in line for line in lines)


@pytest.mark.parametrize("width", [220, 280, 400])
def test_sentences_are_wrapped_to_the_width_of_the_sidebar(width, monkeypatch):
    """Fixed: in a sidebar narrower than Blender's initial one, the lines were cut off."""
    styles, region = bpy.context.preferences.ui_styles, SimpleNamespace(type="UI", width=width)
    preferences = SimpleNamespace(ui_styles=styles, system=SimpleNamespace(ui_scale=1.0))
    context = SimpleNamespace(region=region, preferences=preferences)
    monkeypatch.setattr(base, "bpy", SimpleNamespace(context=context))
    layout = Layout()
    base.draw_lines(layout, "Import markers or poses here, or an .fbx armature with File ▸ Import", "INFO")
    assert len(layout.texts()) > 1
    assert layout.cut(SIDEBAR + width - 280) == []


@pytest.mark.parametrize("most", [20.0, 45.0, 80.0, 200.0])
@pytest.mark.parametrize("name", ["hips", "mixamorig:LeftForeArm", "DEF-upper_arm.L.001"])
def test_names_are_shortened_in_the_middle_until_they_fit(name, most):
    short = fitted(name, most)
    assert width_of(short) <= most
    if width_of(name) <= most:
        assert short == name
    elif "…" in short and len(short) > 1:
        head, tail = short.split("…")
        assert name.removeprefix("mixamorig:").removeprefix("DEF-").startswith(head)
        assert name.endswith(tail)
        assert len(tail) >= len(head)
