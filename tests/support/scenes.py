"""Scenes for the Blender tests: a small person, targets within its reach, and the contents of a scene."""

import gc
import sys

import bpy
import numpy as np
from mathutils import Quaternion, Vector

from fabrik_addon.blender.capture.import_markers import import_clip
from fabrik_addon.blender.rig import keyframes
from fabrik_addon.markers.clip import Clip

# Name, parent, head and tail; meters. The arms begin next to the spine's tail, and no limb is straight.
PERSON = (
    ("hips", "", (0, 0, 1.0), (0, 0, 1.15)),
    ("spine", "hips", (0, 0, 1.15), (0, 0.02, 1.45)),
    ("head", "spine", (0, 0.02, 1.45), (0, 0, 1.75)),
    ("upper_arm.L", "spine", (0.18, 0.02, 1.42), (0.45, 0.04, 1.40)),
    ("forearm.L", "upper_arm.L", (0.45, 0.04, 1.40), (0.70, 0.0, 1.40)),
    ("upper_arm.R", "spine", (-0.18, 0.02, 1.42), (-0.45, 0.04, 1.40)),
    ("forearm.R", "upper_arm.R", (-0.45, 0.04, 1.40), (-0.70, 0.0, 1.40)),
    ("thigh.L", "hips", (0.1, 0, 0.95), (0.1, -0.03, 0.5)),
    ("shin.L", "thigh.L", (0.1, -0.03, 0.5), (0.1, 0, 0.08)),
    ("thigh.R", "hips", (-0.1, 0, 0.95), (-0.1, -0.03, 0.5)),
    ("shin.R", "thigh.R", (-0.1, -0.03, 0.5), (-0.1, 0, 0.08)),
)
SNAKE = tuple((f"link {n}", f"link {n - 1}" if n else "", (0, n, 0), (0, n + 1, 0)) for n in range(5))
HEIGHT = 1.75
MODES = ("QUATERNION", "AXIS_ANGLE", "XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
ENDS = ("head", "forearm.L", "forearm.R", "shin.L", "shin.R")
# The default options of a retarget.
RETARGETED = {"places": 1.0, "hands_in_world": 0.0, "reference": -1}


def make_rig(bones=PERSON, name="Rig", mode="QUATERNION"):
    """An armature object of (name, parent, head, tail) rows, active, in Object mode."""
    rig = bpy.data.objects.new(name, bpy.data.armatures.new(name))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    edit = rig.data.edit_bones
    for bone, parent, head, tail in bones:
        made = edit.new(bone)
        made.head, made.tail, made.roll = head, tail, 0.3
        made.parent = edit.get(parent)
        made.use_connect = bool(parent) and (made.parent.tail - made.head).length < 1e-6
    bpy.ops.object.mode_set(mode="OBJECT")
    for place, bone in enumerate(rig.pose.bones):
        bone.rotation_mode = MODES[place % len(MODES)] if mode == "MIXED" else mode
    rig.data.bones.active = None
    bpy.context.view_layer.update()
    return rig


def place(rig, location=(0.4, -1.3, 0.2), turn=0.7, scale=1.0):
    """Move and rotate the rig in the world."""
    rig.location, rig.scale = location, (scale,) * 3
    rig.rotation_euler = (0.1, -0.2, turn)
    bpy.context.view_layer.update()
    return rig


def make_active(thing):
    """Make an object the active one, and the only one selected."""
    for other in bpy.context.view_layer.objects:
        other.select_set(other == thing)
    bpy.context.view_layer.objects.active = thing


def smooth_motion(rig, frames, seed=0, most=0.6, travel=0.0):
    """Smooth random poses: (F, N, 4) rotations in the order of pose bones, and (F, 3) locations of the first root."""
    rng = np.random.default_rng(seed)
    phase = np.linspace(0.0, 2.0 * np.pi, frames)[:, None, None]
    count = len(rig.pose.bones)
    waves = np.sin(phase + rng.uniform(0, 2 * np.pi, (count, 3))) * rng.uniform(-most, most, (count, 3))
    turns = np.array([[Quaternion(Vector(wave), Vector(wave).length) for wave in row] for row in waves])
    moves = travel * np.linspace(0.0, 1.0, frames)[:, None] * np.array([0.2, -1.0, 0.1])
    return turns, moves


def pose(rig, turns, move=(0.0, 0.0, 0.0)):
    """Pose every bone by (N, 4) quaternions, in its own rotation mode."""
    for bone, turn in zip(rig.pose.bones, map(Quaternion, turns), strict=True):
        if bone.rotation_mode == "QUATERNION":
            bone.rotation_quaternion = turn
        elif bone.rotation_mode == "AXIS_ANGLE":
            axis, angle = turn.to_axis_angle()
            bone.rotation_axis_angle = (angle, *axis)
        else:
            bone.rotation_euler = turn.to_euler(bone.rotation_mode)
    root = rig.pose.bones[0]
    root.location = root.bone.matrix_local.to_3x3().transposed() @ Vector(move)
    bpy.context.view_layer.update()


def reset(rig):
    """Put the rig into its rest pose."""
    pose(rig, [(1, 0, 0, 0)] * len(rig.pose.bones))


def record(rig, points, turns, moves):
    """(F, M, 3) world positions of (bone, point in its frame) pairs while the rig moves; the rig ends at rest."""
    rows = []
    for turn, move in zip(turns, moves, strict=True):
        pose(rig, turn, move)
        rows.append([rig.matrix_world @ (rig.pose.bones[bone].matrix @ Vector(point)) for bone, point in points])
    reset(rig)
    return np.array(rows)


def tail_points(rig, bones=ENDS):
    """The tails of bones as (bone, point) pairs."""
    return [(bone, (0.0, rig.data.bones[bone].length, 0.0)) for bone in bones]


def import_positions(positions, names, rate=24.0, **options):
    """Marker empties by name, from (F, M, 3) world positions, NaN if not seen."""
    clip = Clip(tuple(names), rate, positions, up_axis="Z", source="test.trc")
    collection = import_clip(bpy.context, clip, **options)
    return {empty["fabrik_marker"]: empty for empty in collection.objects}


def aim(rig, bone, target, point="TAIL", offset=(0, 0, 0), **options):
    """Add an effector by hand."""
    effector = rig.fabrik.effectors.add()
    effector.name, effector.bone, effector.point, effector.offset = bone, bone, point, offset
    effector.target = target
    for name, value in options.items():
        setattr(effector, name, value)
    return effector


def steps_of(call):
    """The number of instructions that Python executes for a call, without garbage collection."""
    count = 0

    def trace(frame, event, _argument):
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    call()
    gc.disable()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
        gc.enable()
    return count


def empty_at(location, name="Target"):
    """An empty in the scene."""
    made = bpy.data.objects.new(name, None)
    made.location = location
    bpy.context.scene.collection.objects.link(made)
    bpy.context.view_layer.update()
    return made


def walking_rig(frames=12, seed=0, mode="QUATERNION", travel=0.0, hidden=(), **where):
    """A person with an effector at each end, and the markers of a smooth motion.

    hidden: (frames, marker) index pairs that are not seen. Returns the rig and (F, M, 3) marker positions.
    """
    rig = place(make_rig(mode=mode), **where)
    positions = record(rig, tail_points(rig), *smooth_motion(rig, frames, seed, travel=travel))
    for rows, column in hidden:
        positions[rows, column] = np.nan
    markers = import_positions(positions, ENDS)
    for bone in ENDS:
        aim(rig, bone, markers[bone])
    make_active(rig)
    return rig, positions


def evaluated_tails(rig, bones, frame):
    """(N, 3) armature-space tails that Blender evaluates from the keys on a frame."""
    bpy.context.scene.frame_set(frame)
    shown = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return np.array([shown.pose.bones[bone].tail for bone in bones])


def digest():
    """Everything of a file that a failed operation could have changed, as plain values to compare."""
    scene, layer = bpy.context.scene, bpy.context.view_layer
    layer.update()
    return {
        "scene": (scene.name, scene.frame_current, scene.frame_subframe, scene.frame_start, scene.frame_end),
        "rate": (scene.render.fps, scene.render.fps_base),
        "active": layer.objects.active and (layer.objects.active.name, layer.objects.active.mode),
        "objects": {thing.name: _object(thing) for thing in bpy.data.objects},
        "actions": {action.name: _action(action) for action in bpy.data.actions},
        "collections": {group.name: group.objects.keys() for group in bpy.data.collections},
        "armatures": {data.name: [bone.name for bone in data.bones] for data in bpy.data.armatures},
    }


def _object(thing):
    bones = {bone.name: _pose_bone(bone) for bone in thing.pose.bones} if thing.pose else {}
    animation = thing.animation_data
    return {
        "matrix": np.array(thing.matrix_world).tolist(),
        "chosen": thing.select_get() if thing.name in bpy.context.view_layer.objects else None,
        "action": animation and animation.action and animation.action.name,
        "bones": bones,
        "effectors": [_values(effector) for effector in thing.fabrik.effectors],
        "markers": [_values(marker) for marker in thing.fabrik.capture.markers],
        "settings": (_values(thing.fabrik), _values(thing.fabrik.bake), _values(thing.fabrik.capture)),
        "properties": sorted(thing.keys()),
    }


def _pose_bone(bone):
    names = ("location", "rotation_quaternion", "rotation_axis_angle", "rotation_euler", "scale")
    return [bone.rotation_mode, *([*getattr(bone, name)] for name in names)]


def _values(group):
    """The plain properties of a property group."""
    plain = [kind for kind in group.bl_rna.properties if kind.type != "COLLECTION" and not kind.is_readonly]
    found = {kind.identifier: getattr(group, kind.identifier) for kind in plain}
    return {name: tuple(value) if hasattr(value, "__len__") else repr(value) for name, value in found.items()}


def _action(action):
    """The curves of an action by path, as the owner that has it sees them."""
    animated = [thing for thing in bpy.data.objects if thing.animation_data]
    owner = next((thing for thing in animated if thing.animation_data.action == action), None)
    if owner is None:
        return None
    return {(curve.data_path, curve.array_index): keyframes.keys(curve).tolist() for curve in keyframes.curves(owner)}


def write_trc(path, names, positions, rate=50.0, units="mm"):
    """Write (F, M, 3) world positions as a TRC file with Y up; blank for NaN."""
    factor = {"mm": 1000.0, "m": 1.0}[units]
    frames, count = positions.shape[:2]
    lines = [
        f"PathFileType\t4\t(X/Y/Z)\t{path.name}",
        "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames",
        f"{rate}\t{rate}\t{frames}\t{count}\t{units}\t{rate}\t1\t{frames}",
        "Frame#\tTime\t" + "\t\t\t".join(names) + "\t\t",
        "\t\t" + "\t".join(f"{axis}{place + 1}" for place in range(count) for axis in "XYZ"),
        "",
    ]
    for row, points in enumerate(positions):
        cells = ["" if np.isnan(point).any() else f"{value * factor:.6f}" for point in points for value in _y_up(point)]
        lines.append("\t".join([str(row + 1), f"{row / rate:.6f}", *cells]))
    path.write_text("\n".join(lines) + "\n")


def _y_up(point):
    x, y, z = point
    return x, z, -y
