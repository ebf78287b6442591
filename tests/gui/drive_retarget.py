"""Drives *Motion ▸ Retarget* as people do: a BVH file imported, matched, retargeted; run by `test_gui.py`.

Leaves retarget_panel.png and retarget_done.png for the manual.
"""

import sys
from math import cos, pi, radians, sin
from pathlib import Path

import bpy
import gui_drive as g
import numpy as np
from mathutils import Euler

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.sidebar import open_folds, open_panels

# The joints of a BVH file in a T pose: name, parent, offset in centimeters; Y up.
JOINTS = (
    ("Hips", "", (0, 95, 0)),
    ("Spine", "Hips", (0, 12, 0)), ("Spine1", "Spine", (0, 14, 0)), ("Neck", "Spine1", (0, 24, 0)),
    ("Head", "Neck", (0, 10, 0)),
    ("LeftShoulder", "Spine1", (3, 20, 0)), ("LeftArm", "LeftShoulder", (14, 0, 0)),
    ("LeftForeArm", "LeftArm", (28, 0, 0)), ("LeftHand", "LeftForeArm", (26, 0, 0)),
    ("RightShoulder", "Spine1", (-3, 20, 0)), ("RightArm", "RightShoulder", (-14, 0, 0)),
    ("RightForeArm", "RightArm", (-28, 0, 0)), ("RightHand", "RightForeArm", (-26, 0, 0)),
    ("LeftUpLeg", "Hips", (9, -2, 0)), ("LeftLeg", "LeftUpLeg", (0, -43, 0)), ("LeftFoot", "LeftLeg", (0, -42, 0)),
    ("LeftToeBase", "LeftFoot", (0, -6, 13)),
    ("RightUpLeg", "Hips", (-9, -2, 0)), ("RightLeg", "RightUpLeg", (0, -43, 0)),
    ("RightFoot", "RightLeg", (0, -42, 0)), ("RightToeBase", "RightFoot", (0, -6, 13)),
)  # fmt: skip
FRAMES = 60


def squat_and_wave(frame):
    """By joint, degrees about Z, X and Y, and the distance that the hips are lowered: knees bend, and one arm waves."""
    bend = radians(55.0) * 0.5 * (1.0 - cos(2.0 * pi * frame / FRAMES))
    turns = {"LeftArm": (-75, 0, 0), "RightArm": (-35, 0, 0), "RightForeArm": (-60 + 25 * sin(pi * frame / 5), 0, 0)}
    for side in ("Left", "Right"):
        turns[f"{side}UpLeg"] = (0, -np.degrees(bend), 0)
        turns[f"{side}Leg"] = (0, 2 * np.degrees(bend), 0)
        turns[f"{side}Foot"] = (0, -np.degrees(bend), 0)
    return turns, 85.0 * (1.0 - cos(bend))


def bvh_text():
    """The text of a BVH file."""
    lines = ["HIERARCHY"]

    def write(name, depth):
        pad = "  " * depth
        offset = next(each[2] for each in JOINTS if each[0] == name)
        children = [each[0] for each in JOINTS if each[1] == name]
        place = "6 Xposition Yposition Zposition" if not depth else "3"
        lines.append(f"{pad}{'JOINT' if depth else 'ROOT'} {name}")
        lines.append(pad + "{")
        lines.append(f"{pad}  OFFSET {' '.join(map(str, offset))}")
        lines.append(f"{pad}  CHANNELS {place} Zrotation Xrotation Yrotation")
        for child in children:
            write(child, depth + 1)
        if not children:
            tip = (
                (0, 0, 7) if "Toe" in name else (0, 16, 0) if name == "Head" else (16 if "Left" in name else -16, 0, 0)
            )
            lines.extend([f"{pad}  End Site", pad + "  {", f"{pad}    OFFSET {' '.join(map(str, tip))}", pad + "  }"])
        lines.append(pad + "}")

    write("Hips", 0)
    lines += ["MOTION", f"Frames: {FRAMES}", "Frame Time: 0.0333333"]
    written = [line.split()[1] for line in lines if line.split()[0] in {"ROOT", "JOINT"}]
    for frame in range(FRAMES):
        turns, down = squat_and_wave(frame)
        values = [0.0, 95.0 - down, 0.0]
        for name in written:
            values += turns.get(name, (0, 0, 0))
        lines.append(" ".join(f"{value:.4f}" for value in values))
    return "\n".join(lines) + "\n"


def rig():
    return bpy.data.objects["Rig"]


def kept():
    return rig().fabrik.retarget


def look(place, distance, turn, tilt=80.0):
    view = g.area().spaces.active.region_3d
    view.view_perspective = "PERSP"
    view.view_location, view.view_distance = place, distance
    view.view_rotation = Euler((radians(tilt), 0.0, radians(turn))).to_quaternion()


def steps():
    space = g.area().spaces.active
    space.show_region_toolbar = space.show_gizmo = False
    space.overlay.show_text = space.overlay.show_cursor = False
    look((0.6, 0.0, 0.85), 4.6, 20.0)
    yield 0.5
    yield from import_the_file()
    yield from choose_the_source()
    yield from match()
    yield from stop_on_the_way()
    yield from retarget()
    yield from take_pictures()


def import_the_file():
    path = Path(g.OUT) / "wave.bvh"
    path.write_text(bvh_text(), encoding="utf-8")
    with g.override():
        bpy.ops.preferences.addon_enable(module="io_anim_bvh")
        bpy.ops.import_anim.bvh(
            filepath=str(path), global_scale=0.01, update_scene_fps=True, update_scene_duration=True
        )
    source = bpy.data.objects["wave"]
    source.location.x = 1.3
    yield 1.0


def choose_the_source():
    with g.override():
        bpy.ops.object.select_all(action="DESELECT")
        bpy.context.view_layer.objects.active = rig()
        rig().select_set(True)
    open_panels("FABRIK_PT_from_armature")
    open_folds()
    g.area().spaces.active.show_region_ui = True
    yield 1.0
    g.region(rtype="UI").active_panel_category = "FABRIK Motion"
    yield 1.0
    kept().source = bpy.data.objects["wave"]
    yield 1.0
    g.shot("retarget_source.png")


def match():
    yield from g.find_button("fabrik.match_bones", xfrac=0.3, step=6)
    g.click()
    yield 1.0
    assert len(kept().pairs) == 22, [pair.name for pair in kept().pairs]


def stop_on_the_way():
    """Esc leaves everything as it was."""
    with g.override():
        bpy.ops.fabrik.retarget("INVOKE_DEFAULT")
    g.key("ESC")
    yield 1.5
    action = rig().animation_data.action if rig().animation_data else None
    assert action is None, "Esc did not stop the retargeting"


def retarget():
    yield from g.find_button("fabrik.retarget", xfrac=0.4, step=6)
    g.click()
    for _ in range(60):
        yield 1.0
        if rig().fabrik.capture.last_result:
            break
    assert "60 frames of 'wave'" in rig().fabrik.capture.last_result, rig().fabrik.capture.last_result
    bpy.context.scene.frame_set(30)
    low = rig().pose.bones["hips"].head.z
    bpy.context.scene.frame_set(1)
    assert rig().pose.bones["hips"].head.z - low > 0.2, "the rig does not squat"


def take_pictures():
    bpy.context.scene.frame_set(27)
    g.goto(*g.center())
    yield 1.5
    g.shot("retarget_panel.png")
    g.area().spaces.active.show_region_ui = False
    yield 1.5
    g.shot("retarget_done.png")


g.run(steps, limit=240.0)
