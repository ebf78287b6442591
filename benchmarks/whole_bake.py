"""The whole bake in Blender: compared with `nla.bake` of Blender's IK, and with keyframe_insert on every frame."""

from statistics import median

import bpy
import numpy as np
from support import scenes

from benchmarks import cases
from benchmarks.tables import Aim, Part, clock, table
from fabrik_addon.blender.bake.bake import bake

BONES = 9
FRAMES = 5000
HUMAN_FRAMES = 10_000
# keyframe_insert gets slower with every key that already exists, so fewer frames favor it.
INSERTED_FRAMES = 1000
REPEATS = 3
STAGES = ("sample", "solve", "write")
HEADER = ("what", "frames", "sample s", "solve s", "write s", "together s", "ms a frame", "times ours")


def measure():
    """A chain by three methods, then the sample person inside its limits."""
    case = cases.free_chain(BONES)
    positions = case.motion(np.random.default_rng(6), FRAMES, every=50)
    _follow(case, positions)
    case.solver().solve(positions[:10])
    rounds = [(_bake(case), _nla_bake(case), _keyframe_insert(case)) for _ in range(REPEATS)]
    ours = sorted((timings for timings, _, _ in rounds), key=lambda timings: sum(timings.values()))[REPEATS // 2]
    frame = sum(ours.values()) / FRAMES
    baked = median(seconds for _, seconds, _ in rounds) / FRAMES
    inserted = median(seconds for _, _, seconds in rounds) / INSERTED_FRAMES
    person = _person()
    rows = [
        _row(f"this: chain of {BONES}", FRAMES, ours, frame),
        ("Blender's IK and nla.bake", f"{FRAMES:,}", *_plain(baked, FRAMES), f"{baked / frame:.0f}"),
        (
            "Blender's IK and keyframe_insert",
            INSERTED_FRAMES,
            *_plain(inserted, INSERTED_FRAMES),
            f"{inserted / frame:.0f}",
        ),
        _row("this: human.blend, 5 goals, limits", HUMAN_FRAMES, person, None),
    ]
    aims = [
        Aim.at_least(
            "Chain of 9: speed relative to nla.bake of Blender's IK",
            20,
            baked / frame,
            other=f"{1000 * baked:.3g} ms a frame",
        ),
        Aim.at_least(
            "Chain of 9: speed relative to a loop of keyframe_insert",
            100,
            inserted / frame,
            other=f"{1000 * inserted:.3g} ms a frame",
        ),
        Aim.at_most("human.blend: whole bake, per frame", 1.0, 1000 * sum(person.values()) / HUMAN_FRAMES, "ms"),
    ]
    return Part(table("The whole bake: empties with keys to keyframed bones", HEADER, rows), tuple(aims))


def _follow(case, positions):
    """Give a case's ends animated empties to follow."""
    world = positions @ np.array(case.armature.matrix_world.to_3x3()).T + np.array(
        case.armature.matrix_world.translation
    )
    markers = scenes.import_positions(world, list(case.ends))
    for end in case.ends:
        scenes.aim(case.armature, end, markers[end])
    scenes.make_active(case.armature)


def _bake(case):
    """Seconds of this add-on's bake by stage, into a new action."""
    case.armature.animation_data_clear()
    for constraint in list(case.armature.pose.bones[case.ends[0]].constraints):
        case.armature.pose.bones[case.ends[0]].constraints.remove(constraint)
    scenes.reset(case.armature)
    return bake(bpy.context, case.armature, frame_start=1, frame_end=FRAMES).timings


def _person():
    case = cases.human()
    _follow(case, case.motion(np.random.default_rng(7), HUMAN_FRAMES, every=100))
    return bake(bpy.context, case.armature, frame_start=1, frame_end=HUMAN_FRAMES).timings


def _keyframe_insert(case):
    """Seconds of solving with Blender's IK and inserting keys bone by bone and frame by frame."""
    rig = _with_blender_ik(case)
    with clock() as c:
        for frame in range(1, INSERTED_FRAMES + 1):
            bpy.context.scene.frame_set(frame)
            turns = [_local_matrix(rig, bone) for bone in rig.pose.bones]
            for bone, turn in zip(rig.pose.bones, turns, strict=True):
                bone.rotation_quaternion = turn.to_quaternion()
                bone.keyframe_insert("rotation_quaternion", frame=frame)
    return c.seconds


def _local_matrix(rig, bone):
    """The channel values that give a bone the pose found by Blender's IK."""
    return rig.convert_space(pose_bone=bone, matrix=bone.matrix, from_space="POSE", to_space="LOCAL")


def _nla_bake(case):
    """Seconds of Blender's bake of Blender's IK."""
    _with_blender_ik(case)
    bpy.ops.object.mode_set(mode="POSE")
    with clock() as c:
        bpy.ops.nla.bake(frame_start=1, frame_end=FRAMES, only_selected=False, visual_keying=True, bake_types={"POSE"})
    bpy.ops.object.mode_set(mode="OBJECT")
    return c.seconds


def _with_blender_ik(case):
    """The armature without keys, whose end bone follows its effector's target by Blender's IK."""
    rig = case.armature
    rig.animation_data_clear()
    scenes.reset(rig)
    constraints = rig.pose.bones[case.ends[0]].constraints
    if not constraints:
        constraints.new("IK").target = rig.fabrik.effectors[0].target
    return rig


def _row(name, frames, timings, frame):
    seconds = [f"{timings[stage]:.2f}" for stage in STAGES]
    total = sum(timings.values())
    return name, f"{frames:,}", *seconds, f"{total:.2f}", f"{1000 * total / frames:.3f}", "1" if frame else ""


def _plain(seconds_a_frame, frames):
    return "", "", "", f"{seconds_a_frame * frames:.1f}", f"{1000 * seconds_a_frame:.3f}"
