"""Drives live posing and the overlay of goals on the sample person; run by `test_gui.py`.

Leaves goals_overlay.png, goals_missed.png and pose_panel.png for the manual.
"""

from math import radians
from pathlib import Path

import bpy
import gui_drive as g
import numpy as np
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


def pixels(name, rtype="WINDOW", box=(0.0, 0.0, 1.0, 1.0)):
    """The picture of a region of the viewport as (height, width, 3) floats; it is kept under the name as well."""
    whole = bpy.data.images.load(g.shot(name))
    width, height = whole.size
    colors = np.array(whole.pixels[:], dtype=np.float32).reshape(height, width, 4)
    bpy.data.images.remove(whole)
    place = g.region(rtype=rtype)
    x = (place.x + round(box[end] * place.width) for end in (0, 2))
    y = (place.y + round(box[end] * place.height) for end in (1, 3))
    cut = colors[slice(*y), slice(*x)]
    save(name, cut)
    return cut[..., :3]


def save(name, colors):
    height, width, _ = colors.shape
    cut = bpy.data.images.new("cut", width, height)
    cut.pixels = np.ascontiguousarray(colors).ravel()
    cut.file_format, cut.filepath_raw = "PNG", str(Path(g.OUT) / name)
    cut.save()
    bpy.data.images.remove(cut)


def orange(picture):
    red, green, blue = np.moveaxis(picture, -1, 0)
    return int(((red > 0.8) & (green > 0.3) & (green < 0.6) & (blue < 0.25)).sum())


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
    yield 1.0
    yield from live_follows_a_target_moved_with_g()
    yield from undo_takes_both_back()
    yield from scrubbing_follows()
    yield from rendering_with_live_on()
    yield from live_goes_on_after_a_render()
    yield from errors_show()
    yield from take_pictures()


def live_follows_a_target_moved_with_g():
    """Live is switched on by its button; then G, mouse, click on the target of a hand."""
    g.area().spaces.active.show_region_ui = True
    yield 1.0
    g.region(rtype="UI").active_panel_category = "FABRIK"
    yield 1.0
    yield from g.find_button("fabrik.live", step=6)
    g.click()
    yield 0.8
    assert rig().fabrik.live, "the button does not switch live on"
    choose(target("hand.L"))
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
    """Keys on a target; the playhead is moved by arrow keys and by playback."""
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


def rendering_with_live_on():
    """An animation is rendered in a window's background job while a target is moved: nothing crashes."""
    scene = bpy.context.scene
    scene.camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    scene.collection.objects.link(scene.camera)
    scene.camera.location, scene.camera.rotation_euler = (0.0, -4.0, 1.0), (radians(90), 0.0, 0.0)
    scene.render.engine = "CYCLES"
    scene.cycles.samples = 4
    scene.render.resolution_x = scene.render.resolution_y = 96
    scene.render.filepath = str(Path(g.OUT) / "render_")
    scene.frame_start, scene.frame_end = 1, 6
    ended = []
    bpy.app.handlers.render_complete.append(lambda *_: ended.append(True))
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
    while len(bpy.context.window_manager.windows) > 1:
        with bpy.context.temp_override(window=bpy.context.window_manager.windows[-1]):
            bpy.ops.wm.window_close()
        yield 0.5


def live_goes_on_after_a_render():
    """The next move of a target is followed again."""
    bpy.context.scene.frame_set(12)
    target("hand.L").location.z += 0.01
    yield 0.8
    assert rig().fabrik.live
    assert gap("hand.L") < NEAR, "after the render live is dead"


def errors_show():
    """A target out of reach has an orange cross, a line and a label; the switch hides all of it."""
    met = pixels("goals_met.png")
    ball = target("hand.L")
    before = ball.location.copy()
    ball.location += Vector((0.35, -0.2, 0.25))
    yield 0.8
    missed = pixels("goals_missed.png")
    assert orange(missed) > orange(met) + 150, "a goal that is missed does not stand out"
    bpy.context.scene.fabrik_show_goals = False
    g.area().tag_redraw()
    yield 0.8
    assert orange(pixels("goals_off.png")) < orange(missed) - 150, "the switch hides nothing"
    bpy.context.scene.fabrik_show_goals = True
    ball.location = before
    yield 0.8


def take_pictures():
    """For the manual: a lunge with both feet pinned, a bend target for a knee, and the panels."""
    choose(rig())
    mode("POSE")
    g.area().spaces.active.show_region_ui = True
    yield 1.0
    g.shot("live_window.png")
    pixels("live_view.png")


g.run(steps)
