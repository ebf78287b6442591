"""The rigs that the benchmarks measure on, each an armature in a fresh scene, with targets that it can reach."""

from dataclasses import dataclass
from math import radians
from pathlib import Path

import bpy
import numpy as np
from support import scenes
from support.families import ball, hinge
from support.rigs import points_of, random_rotations

from fabrik_addon.blender.rig.armature import read_trees
from fabrik_addon.blender.settings.limit_properties import read_limits, write_settings
from fabrik_addon.blender.settings.limit_values import settings_of
from fabrik_addon.core import Effector, Options, Skeleton, Solver, forward_kinematics

HUMAN = Path(__file__).parents[1] / "sample_rigs" / "human.blend"
HUMAN_ENDS = ("head", "hand.L", "hand.R", "toe.L", "toe.R")
BONE = 0.09
_MOST_BEND = 0.8
_PLACES = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))


@dataclass(frozen=True)
class Case:
    """An armature, its limits, and the bones whose tails are to reach targets."""

    name: str
    armature: bpy.types.Object
    skeleton: Skeleton
    limits: dict
    ends: tuple[str, ...]

    @property
    def effectors(self):
        return [Effector(end) for end in self.ends]

    @property
    def size(self):
        """The longest path from the root to an effector."""
        paths = [self.skeleton.path(self.skeleton.index(end)) for end in self.ends]
        return max(float(self.skeleton.lengths[path].sum()) for path in paths)

    def solver(self, **options):
        return Solver(self.skeleton, self.effectors, limits=self.limits, options=Options(**options))

    def points(self, rotations):
        """([F,] E, 3) positions of the effectors in poses."""
        return points_of(self.skeleton, forward_kinematics(self.skeleton, rotations), self.effectors)

    def poses(self, rng, frames):
        """(F, J, 4) poses inside the limits; without limits, all bones are rotated slightly."""
        poses = random_rotations(rng, (frames, len(self.skeleton)), _MOST_BEND)
        if self.limits:
            poses[:] = (1.0, 0.0, 0.0, 0.0)
        for name, limit in self.limits.items():
            poses[:, self.skeleton.index(name)] = limit.sample(rng.random((frames, 3)))
        return poses

    def targets(self, rng, frames):
        """(F, E, 3) effector positions in random poses, each frame separately."""
        return self.points(self.poses(rng, frames))

    def motion(self, rng, frames, every):
        """(F, E, 3) effector positions in a smooth motion through random poses at regular frames."""
        keys = self.poses(rng, frames // every + 2)
        time = np.arange(frames) / every
        before = time.astype(int)
        share = (time - before)[:, None, None]
        share = share * share * (3.0 - 2.0 * share)
        first, last = keys[before], keys[before + 1]
        last = np.where((first * last).sum(axis=-1, keepdims=True) < 0, -last, last)
        between = (1.0 - share) * first + share * last
        return self.points(between / np.linalg.norm(between, axis=-1, keepdims=True))


def new_scene():
    """An empty file with factory settings."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)


def free_chain(bones):
    """A chain of equal bones without limits."""
    return _made(f"chain of {bones}", row_of_bones("b", "", (0, 0, 0), (0, 0, BONE), bones), {}, (f"b{bones - 1}",))


def hinge_chain(bones, low, high):
    """A chain whose bones rotate about X, between two angles in degrees."""
    rows = row_of_bones("b", "", (0, 0, 0), (0, 0, BONE), bones)
    limits = {row[0]: hinge("X", low, high) for row in rows}
    return _made(f"{bones} hinges {low:g}…{high:g}°", rows, limits, (f"b{bones - 1}",))


def arm():
    """Shoulder, elbow and wrist."""
    rows = [
        ("upper arm", "", (0, 0, 0), (0, 0, 0.3)),
        ("forearm", "upper arm", (0, 0, 0.3), (0, 0, 0.55)),
        ("hand", "forearm", (0, 0, 0.55), (0, 0, 0.65)),
    ]
    limits = {"upper arm": ball(100, (-90, 90)), "forearm": hinge("X", 0, 150), "hand": ball(60, (-80, 80))}
    return _made("arm, limits", rows, limits, ("hand",))


def tree():
    """A trunk and five limbs of ten bones each, with balls and hinges in turn, and a goal at the end of each limb."""
    rows = row_of_bones("trunk", "", (0, 0, 0), (0, 0, 0.05), 10)
    for limb, (x, y) in enumerate(_PLACES):
        start = np.array((0.05 * x, 0.05 * y, 0.5))
        step = np.array((x, y, 1.0 - abs(x) - abs(y))) * 0.05
        rows += row_of_bones(f"limb{limb}-", "trunk9", tuple(start), tuple(step), 10)
    limits = {row[0]: ball(25, (-20, 20)) if row[0].startswith("trunk") else ball(45, (-45, 45)) for row in rows}
    limits |= {f"limb{limb}-{bone}": hinge("X", -10, 70) for limb in range(5) for bone in range(1, 10, 2)}
    return _made("tree of 60, limits", rows, limits, tuple(f"limb{limb}-9" for limb in range(5)))


def human():
    """The sample person with the limits that are in the file."""
    bpy.ops.wm.open_mainfile(filepath=str(HUMAN))
    rig = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    skeleton = read_trees(rig)[0].skeleton
    return Case("human.blend, 5 goals, limits", rig, skeleton, read_limits(rig, skeleton.names), HUMAN_ENDS)


def add_blender_ik(case, iterations):
    """Put Blender's IK on a case's ends, inside boxes about its limits.

    Returns:
        The target empties and the constraints.
    """
    for name, limit in case.limits.items():
        _limit_ik(case.armature.pose.bones[name], limit)
    empties, constraints = [], []
    for end in case.ends:
        empties.append(scenes.empty_at((0, 0, 0), f"{end} goal"))
        constraint = case.armature.pose.bones[end].constraints.new("IK")
        constraint.target, constraint.chain_count, constraint.iterations = empties[-1], 0, iterations
        constraints.append(constraint)
    return empties, constraints


def _limit_ik(bone, limit):
    """Blender's limits of rotation about a bone's X, Y and Z: a swing toward +Z is about +X, one toward +X about -Z."""
    if hasattr(limit, "angles"):
        right, front, left, back = limit.angles
        ranges = {"x": (-back, front), "y": limit.twist, "z": (-right, left)}
    else:
        ranges = {limit.axis.lower(): (limit.low, limit.high)}
    for axis in "xyz":
        setattr(bone, f"lock_ik_{axis}", axis not in ranges)
        low, high = ranges.get(axis, (0.0, 0.0))
        setattr(bone, f"use_ik_limit_{axis}", high - low < radians(360))
        # Blender's minimum is never above 0, and its maximum never below 0.
        setattr(bone, f"ik_min_{axis}", min(low, 0.0))
        setattr(bone, f"ik_max_{axis}", max(high, 0.0))


def row_of_bones(name, parent, start, step, count):
    """(name, parent, head, tail) rows of bones end to end."""
    start, step = np.array(start), np.array(step)
    ends = [tuple(start + step * place) for place in range(count + 1)]
    names = [parent, *(f"{name}{place}" for place in range(count))]
    return [(names[place + 1], names[place], ends[place], ends[place + 1]) for place in range(count)]


def _made(name, rows, limits, ends):
    new_scene()
    rig = scenes.make_rig(rows)
    for bone, limit in limits.items():
        write_settings(rig.pose.bones[bone], settings_of(limit))
    return Case(name, rig, read_trees(rig)[0].skeleton, limits, ends)
