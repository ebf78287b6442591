"""The rigs to which motion is retargeted, with other names, rest poses and proportions; and the takes."""

from functools import cache

import bpy
import numpy as np
from support import humans, motions
from support.recordings import DATA

from benchmarks.natural_rigs import built, open_metarig
from fabrik_addon.blender.control.posed_rig import posed_rig
from fabrik_addon.blender.goals.problem import rig_problem
from fabrik_addon.blender.limits.editing import apply_preset
from fabrik_addon.blender.rig.armature import read_trees
from fabrik_addon.core import Effector, solve
from fabrik_addon.retarget.files import read_recorded

TAKES = ("dab", "wave_hello", "dance", "clap", "hands on hips")
# Synthetic takes: two positions, meters, between which the left hand moves; the right one is mirrored.
HANDS = {
    "clap": ((0.30, -0.35, 1.30), (0.04, -0.38, 1.30)),
    "hands on hips": ((0.45, -0.10, 1.00), (0.16, -0.06, 1.02)),
}
FRAMES = 120
SAMPLE = "sample_rigs/human.blend"


@cache
def motion(take):
    """The motion of a take; None if it is missing."""
    if take in HANDS:
        return made(*HANDS[take])
    path = DATA / "bvh" / f"{take}.bvh"
    return read_recorded(path).motion(take) if path.exists() else None


def made(far, near):
    """A person whose hands meet and separate four times."""
    skeleton = motions.skeleton_of(humans.human(arms=45.0, bend=5.0, fingers=False))
    share = 0.5 - 0.5 * np.cos(np.linspace(0.0, 8.0 * np.pi, FRAMES))[:, None]
    left = np.array(far) + share * (np.array(near) - far)
    targets = np.stack([left, left * (-1.0, 1.0, 1.0)], axis=1)
    solution = solve(skeleton, [Effector(f"hand.{side}", (0.0, 0.0, 0.0)) for side in "LR"], targets)
    return motions.motion_of(skeleton, solution.rotations, np.tile(skeleton.rest[0, :3, 3], (FRAMES, 1)))


def open_sample():
    """Open the sample person, who rests in an A pose."""
    bpy.ops.wm.open_mainfile(filepath=SAMPLE)
    return next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")


def open_named(names, arms=0.0, legs_by=1.0, arms_by=1.0):
    """A person with the bone names of a scheme, limbs scaled by factors, and the limits of the preset."""
    rows = humans.in_proportion(humans.human(arms=arms, fingers=False), legs_by, arms_by)
    rig = built(humans.named(rows, names))
    apply_preset(rig, list(rig.pose.bones))
    return rig


RIGS = {
    "sample": open_sample,
    "Rigify's meta-rig": open_metarig,
    "Mixamo": lambda: open_named(humans.mixamo),
    "VRM, legs 0.8": lambda: open_named(humans.vrm_bones, 45.0, legs_by=0.8),
    "Unreal, arms 1.2": lambda: open_named(humans.unreal, 45.0, arms_by=1.2),
    "legs 0.8, arms 1.2": lambda: open_named(humans.ours, 45.0, 0.8, 1.2),
}


@cache
def body(name):
    """The bones and the limits of a rig."""
    rig = RIGS[name]()
    tree = max(read_trees(rig, at_rest=True), key=lambda tree: len(tree.skeleton))
    problem = rig_problem(posed_rig(rig), tree, (), range(len(tree.skeleton)), free_root=True)
    return tree.skeleton, problem.limits
