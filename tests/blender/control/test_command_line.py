"""Control rigs on the command line and in operators for recordings: they are set up if they have not been."""

import bpy
import pytest
from support import scenes
from support.control_rigs import hand_made, only_ik
from support.rigify import open_rigify, rigify_file

from fabrik_addon.blender.command_line import open_rig, run_command
from fabrik_addon.blender.rig.keyframes import curves

pytestmark = pytest.mark.usefixtures("clean_scene")


def keyed(path):
    """The bones with keys of a file's rig; the file must contain its controls."""
    bpy.ops.wm.open_mainfile(filepath=str(path))
    rig = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    assert len(rig.fabrik.control.carriers)
    return {curve.data_path.split('"')[1] for curve in curves(rig) if curve.data_path.startswith("pose.bones")}


@pytest.mark.one_blender
def test_a_generated_rigify_is_baked_by_its_controls(tmp_path, request, capfd):
    walk = request.config.rootpath / "sample_rigs" / "walk.trc"
    arguments = [rigify_file("Basic.basic_human"), walk, "--samples", 1, 15, "--output", tmp_path / "walk.blend"]
    assert run_command(list(map(str, arguments))) == 0
    printed = capfd.readouterr().out
    assert float(printed.split("RMS ")[1].split()[0]) < 5.0
    assert "Note: " in printed
    assert "are posed with controls" in printed
    assert {"thigh_fk.L", "upper_arm_fk.R", "spine_fk", "torso"} <= keyed(tmp_path / "walk.blend")


# Blender's BVH importer leaves its file open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_generated_rigify_gets_another_armature_s_motion(tmp_path, recording, capfd):
    arguments = [rigify_file("Basic.basic_human"), recording("bvh/dab.bvh"), "--range", 1, 10]
    assert run_command([*map(str, arguments), "--output", str(tmp_path / "dab.blend")], "retarget") == 0
    assert "are posed with controls" in capfd.readouterr().out
    assert {"thigh_fk.L", "upper_arm_fk.R"} <= keyed(tmp_path / "dab.blend")


@pytest.mark.parametrize(("bone", "kind"), [("eye.L", "DAMPED_TRACK"), ("shin.L", "IK")])
def test_bones_without_controls_do_not_make_a_control_rig(tmp_path, bone, kind):
    """An eye that tracks an object, and a leg that follows an empty: all bones are posed by their own channels."""
    rig = scenes.make_rig((*scenes.PERSON, ("eye.L", "head", (0.03, -0.1, 1.7), (0.03, -0.15, 1.7))))
    rig.pose.bones[bone].constraints.new(kind).target = scenes.empty_at((0.1, -1.0, 0.1))
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "rig.blend"))
    rig, notes = open_rig(tmp_path / "rig.blend", "")
    setup = rig.fabrik.control
    assert (len(setup.carriers), setup.place, setup.uncarried, notes) == (0, "", "", [])


@pytest.mark.parametrize("made", [hand_made, only_ik])
def test_legs_on_ik_of_their_controls(tmp_path, made):
    made()
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "rig.blend"))
    rig, notes = open_rig(tmp_path / "rig.blend", "")
    assert len(rig.fabrik.control.carriers) > 10
    assert "are posed with controls" in notes[0]


@pytest.mark.one_blender
def test_matching_markers_sets_up_the_rig(request):
    rig = open_rigify("Basic.basic_human")
    bpy.ops.fabrik.import_markers(filepath=str(request.config.rootpath / "sample_rigs" / "walk.trc"), last=5)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.fabrik.match_markers()
    assert {entry.bone for entry in rig.fabrik.capture.markers} <= set(rig.fabrik.control.carriers.keys())


@pytest.mark.one_blender
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_retargeting_sets_up_the_rig(recording, tmp_path):
    first, motion = recording("bvh/dab.bvh").read_text().split("MOTION\n")
    _, *lines = motion.splitlines()
    short = tmp_path / "short.bvh"
    short.write_text("\n".join([first + "MOTION", "Frames: 20", *lines[:21]]) + "\n")
    rig = open_rigify("Basic.basic_human")
    assert bpy.ops.fabrik.retarget(source=str(short)) == {"FINISHED"}
    assert {"thigh_fk.L", "upper_arm_fk.R"} <= {curve.data_path.split('"')[1] for curve in curves(rig)}


def test_targets_on_controls_are_baked_without_a_set_up():
    """A bake sets up the rig first, so a target on the end of a tentacle's controls can be reached."""
    chain = [
        (f"{kind}{i}", f"{kind}{i - 1}" if i else "", (0, 0, 0.2 * i), (0, 0, 0.2 * i + 0.2))
        for kind in ("control", "skin")
        for i in range(5)
    ]
    rig = scenes.make_rig(chain)
    for i in range(5):
        rig.data.bones[f"control{i}"].use_deform = False
        copy = rig.pose.bones[f"skin{i}"].constraints.new("COPY_TRANSFORMS")
        copy.target, copy.subtarget = rig, f"control{i}"
    target = scenes.empty_at((0.3, 0.2, 0.7))
    scenes.make_active(rig)
    bpy.ops.fabrik.add_effector(bone="control4", target=target.name)
    assert bpy.ops.fabrik.bake(frame_start=1, frame_end=2) == {"FINISHED"}
    bpy.context.scene.frame_set(2)
    assert (rig.pose.bones["skin4"].tail - target.location).length < 1e-3
