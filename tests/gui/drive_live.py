"""Drives live posing on the sample person: moved targets, undo, scrubbing, playback, a render; run by `test_gui.py`."""

from math import radians
from pathlib import Path

import bpy
import gui_drive as g
from mathutils import Euler, Vector

ENDS = ("hand.L", "hand.R", "foot.L", "foot.R", "head")
NEAR = 2e-3


def rig():
    return bpy.data.objects["Rig"]


def target(bone):
    return next(each.target for each in rig().fabrik.effectors if each.bone == bone)


def gap(bone):
    """World distance from a bone's tail to its target."""
    return (rig().matrix_world @ rig().pose.bones[bone].tail - target(bone).matrix_world.translation).length


def look(place, distance, turn, tilt=80.0):
    view = g.area().spaces.active.region_3d
    view.view_perspective = "PERSP"
    view.view_location, view.view_distance = place, distance
    view.view_rotation = Euler((radians(tilt), 0.0, radians(turn))).to_quaternion()


def mode(name):
    with g.override():
        bpy.ops.object.mode_set(mode=name)


def choose(thing):
    """Make an object the only selected one, in Object mode."""
    mode("OBJECT")
    for other in bpy.context.view_layer.objects:
        other.select_set(other == thing)
    bpy.context.view_layer.objects.active = thing


def prepare():
    space = g.area().spaces.active
    space.show_region_toolbar = False
    space.show_gizmo = False
    space.overlay.show_text = False
    space.overlay.show_cursor = False
    choose(rig())
    mode("POSE")
    with g.override():
        for bone in ENDS:
            bpy.ops.fabrik.add_effector(bone=bone)
    for effector in rig().fabrik.effectors:
        effector.target.empty_display_size = 0.06
    look((0.0, 0.0, 0.95), 3.2, 25.0)


def steps():
    prepare()
    yield 0.5
    yield from live_follows_a_target_moved_with_g()
    yield from undo_takes_both_back()
    yield from scrubbing_follows()
    yield from knees_come_after()
    yield from rendering_with_live_on()


def live_follows_a_target_moved_with_g():
    """Live is on; a click on a hand selects its target, not the rig that is drawn in front; then G, mouse, click."""
    rig().fabrik.live = True
    mode("OBJECT")
    yield 0.5
    g.goto(*g.view_xy(target("hand.L").matrix_world.translation))
    yield
    g.click()
    yield 0.5
    assert bpy.context.selected_objects == [target("hand.L")], bpy.context.selected_objects
    with g.override():
        bpy.ops.ed.undo_push(message="live is on")
    g.goto(*g.center())
    yield
    start = target("hand.L").location.copy()
    g.key("G")
    yield
    yield from g.drag_to(g._pos[0] - 60, g._pos[1] + 50)  # noqa: SLF001  nothing else says where the cursor is
    yield
    moved = (target("hand.L").matrix_world.translation - start).length
    assert moved > 0.05, "the target does not move with G"
    assert gap("hand.L") < NEAR, f"while it is moved, the hand is {gap('hand.L'):.4f} m away"
    g.click()
    yield 0.8
    assert gap("hand.L") < NEAR
    assert all(gap(bone) < NEAR for bone in ENDS), "the other ends have left their targets"


def undo_takes_both_back():
    moved = rig().pose.bones["hand.L"].tail.copy()
    g.key("Z", ctrl=True)
    yield 1.0
    assert gap("hand.L") < NEAR
    assert (rig().pose.bones["hand.L"].tail - moved).length > 0.03, "Ctrl-Z leaves the pose"
    g.key("Z", ctrl=True, shift=True)
    yield 1.0
    assert (rig().pose.bones["hand.L"].tail - moved).length < NEAR, "redo does not bring the pose"


def scrubbing_follows():
    """A target has keys, and the playhead is moved by arrow keys and by playback."""
    hand = target("hand.R")
    for frame, shift in ((1, (0.0, 0.0, 0.0)), (20, (0.05, -0.25, 0.25))):
        place = hand.location + Vector(shift)
        hand.location = place
        hand.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_set(1)
    yield
    tips = []
    for _ in range(4):
        g.key("RIGHT_ARROW")
        yield 0.5
        assert gap("hand.R") < NEAR, f"on frame {bpy.context.scene.frame_current}"
        tips.append(rig().pose.bones["hand.R"].tail.copy())
    assert (tips[-1] - tips[0]).length > 0.01, "scrubbing moves nothing"
    with g.override():
        bpy.ops.screen.animation_play()
    yield 2.0
    with g.override():
        bpy.ops.screen.animation_cancel(restore_frame=False)
    yield 0.5
    assert gap("hand.R") < NEAR, "playback leaves the hand behind"
    bpy.context.scene.frame_set(12)
    yield


def knees_come_after():
    """Hips are lowered from straight legs in one move. The knees need several poses to catch up."""
    # Look them up by name, because adding one moves the others in memory.
    others = [effector.name for effector in rig().fabrik.effectors if not effector.bone.startswith("foot")]
    for name in others:
        rig().fabrik.effectors[name].enabled = False
    yield 0.5
    choose(rig())
    mode("POSE")
    with g.override():
        bpy.ops.fabrik.add_effector(bone="hips", point="HEAD")
    hips, root = rig().fabrik.effectors[-1], rig().fabrik.root
    rig().fabrik.root = "FREE"
    yield 0.5
    hips.target.location.z -= 0.01
    yield 0.8
    gap = (rig().matrix_world @ rig().pose.bones["hips"].head - hips.target.matrix_world.translation).length
    assert gap < 1e-4, f"the hips stay {gap:.4f} m short"
    hips.enabled, rig().fabrik.root = False, root
    for name in others:
        rig().fabrik.effectors[name].enabled = True
    yield 0.5


def prepare_render(scene):
    """A small, short animation."""
    scene.camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    scene.collection.objects.link(scene.camera)
    scene.camera.location, scene.camera.rotation_euler = (0.0, -4.0, 1.0), (radians(90), 0.0, 0.0)
    scene.render.engine = "CYCLES"
    scene.cycles.samples = 4
    scene.render.resolution_x = scene.render.resolution_y = 96
    scene.render.filepath = str(Path(g.OUT) / "render_")
    scene.frame_start, scene.frame_end = 1, 6


def rendering_with_live_on():
    """An animation is rendered in a window's background job while a target is moved: nothing crashes."""
    scene = bpy.context.scene
    prepare_render(scene)
    ended = []
    bpy.app.handlers.render_complete.append(lambda *_: ended.append(True))
    bpy.context.preferences.view.render_display_type = "NONE"
    with g.override():
        bpy.ops.render.render("INVOKE_DEFAULT", animation=True)
    busy = 0
    for step in range(200):
        target("hand.L").location.z += 0.001 if step % 2 else -0.001
        busy += bpy.app.is_job_running("RENDER")
        yield 0.1
        if ended and not bpy.app.is_job_running("RENDER"):
            break
    assert ended, "the render does not end"
    assert busy, "the render was over before it could be disturbed"
    assert len(list(Path(g.OUT).glob("render_*.png"))) == 6
    for picture in Path(g.OUT).glob("render_*.png"):
        picture.unlink()
    scene.frame_set(12)
    target("hand.L").location.z += 0.01
    yield 0.8
    assert rig().fabrik.live
    assert gap("hand.L") < NEAR, "after the render live is dead"


g.run(steps, limit=480.0)
