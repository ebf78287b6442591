"""Takes of other armatures on rigs, compared with a plain copy of their rotations."""

import resource
import time

import bpy
import numpy as np
from support import humans
from support.recordings import DATA
from support.steps import retarget

from benchmarks.retarget_rigs import RIGS, TAKES, body, motion, open_named
from benchmarks.tables import Aim, Part, table
from fabrik_addon.blender.retarget import add_recorded, retarget_from
from fabrik_addon.blender.rig.keyframes import curves, keys
from fabrik_addon.core import forward_kinematics
from fabrik_addon.core.kernel.joint_limits import legal_pose
from fabrik_addon.core.rotations import angle_between, quaternion_from_matrix
from fabrik_addon.markers.feet import drift
from fabrik_addon.markers.steps import finish
from fabrik_addon.retarget.alignment import leg_length
from fabrik_addon.retarget.files import read_recorded
from fabrik_addon.retarget.goals import RetargetSettings, RigFloor, find_soles
from fabrik_addon.retarget.pairs import find_bodies

COPY = RetargetSettings(places=0.0, plant_feet=False)
LIMBS = (("upper_arm", "forearm"), ("forearm", "hand"), ("thigh", "shin"), ("shin", "foot"))
TOUCHES = (
    (("hand", "L"), ("hand", "R")),
    *((("hand", hand), touched) for hand in "LR" for touched in (("head", ""), ("thigh", "L"), ("thigh", "R"))),
)
# The number of frames of a long take, and how it is retargeted.
WHOLE = (2500, 10000)
HOW = {"places": 1.0, "hands_in_world": 0.0, "reference": -1}
# Hands touch if they are nearer than this fraction of the legs' length.
TOUCHING = 0.15
HEADER = (
    "take", "rig", "by", "drift of standing feet mm", "below the floor mm", "limbs' ways off, median °",
    "outside limits °", "turns more than the source, ° a frame", "hands that touch, off by mm", "ms a frame",
)  # fmt: skip


def measure_retarget():
    """Measure feet, floor, limbs, limits, jumps and time for each take on each rig."""
    rows, aims = [], []
    for take in TAKES:
        for rig in RIGS:
            if motion(take) is None:
                return Part(table("Retargeting: not measured, FABRIK_TEST_DATA has no bvh", HEADER, []))
            skeleton, limits = body(rig)
            began = time.process_time()
            found = retarget(motion(take), skeleton, RetargetSettings(), limits=limits)
            spent = 1000.0 * (time.process_time() - began) / len(motion(take))
            copied = retarget(motion(take), skeleton, COPY)
            copy = Figures(take, skeleton, limits, copied, found.stances)
            own = Figures(take, skeleton, limits, found, found.stances)
            rows += [(take, rig, "copy", *copy.row, "-"), (take, rig, "retargeted", *own.row, f"{spent:.2f}")]
            aims += own.aims(f"{take} onto {rig}", copy)
    return Part(table("Retargeting, beside a plain copy of rotations", HEADER, rows), tuple(aims))


def measure_retarget_whole():
    """The whole operator: a repeated dance on a rig, sampled, solved, written; and its memory."""
    path = DATA / "bvh" / "dance.bvh"
    header = (
        "frames",
        "bones",
        "ms a frame, all together",
        "sampled",
        "solved",
        "written",
        "most memory of the process so far, MB",
    )
    title = "Retargeting a long take, stage by stage (CPU; shares by the clock)"
    if not path.exists():
        return Part(table(f"{title}: not measured, FABRIK_TEST_DATA has no bvh", header, []))
    rows, spent = [], {}
    for frames in WHOLE:
        rig = open_named(humans.mixamo)
        source = add_recorded(bpy.context, read_recorded(path), path.stem)
        lengthen(source, frames)
        began = time.process_time()
        result = finish(retarget_from(bpy.context, rig, source, (1, frames), HOW, {}))
        spent[frames] = 1000.0 * (time.process_time() - began) / frames
        clock = sum(result.timings.values())
        stages = [f"{100.0 * result.timings[stage] / clock:.0f} %" for stage in ("sample", "solve", "write")]
        rows.append((frames, len(result.trees[0].bones), f"{spent[frames]:.2f}", *stages, f"{most_memory():.0f}"))
    aim = Aim.at_most(f"Retargeting {WHOLE[-1]:,} frames, whole operator", 1.5, spent[WHOLE[-1]], "ms a frame")
    return Part(table(title, header, rows), (aim,))


def most_memory():
    """The peak memory of the process, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def lengthen(source, frames):
    """Repeat an armature's motion until there are enough frames."""
    for curve in curves(source):
        values = np.resize(keys(curve)[:, 1], frames)
        points = curve.keyframe_points
        points.add(frames - len(points))
        points.foreach_set("co", np.column_stack((np.arange(1, frames + 1), values)).ravel())
        curve.update()


class Figures:
    """How well one take is retargeted to one rig."""

    def __init__(self, take, skeleton, limits, found, stances):
        source, self.skeleton, self.limits, self.found = motion(take), skeleton, limits, found
        self.source_body, self.target = find_bodies(source, skeleton)
        self.matrices = forward_kinematics(skeleton, found.solution.rotations, found.solution.root_location)
        self.drift, self.depth = self._feet(stances)
        self.ways = self._ways(source)
        legal = legal_pose(skeleton, limits, found.solution.rotations)
        self.outside = float(np.degrees(angle_between(found.solution.rotations, legal).max()))
        self.turns = self._turns(source)
        self.touch = self._touch(source)

    def _point(self, bone, offset):
        matrix = self.matrices[:, self.skeleton.index(bone)]
        return matrix[:, :3, 3] + matrix[:, :3, :3] @ offset

    def _feet(self, stances):
        soles, drifts, depths = find_soles(self.target), [0.0], [0.0]
        for stance in stances:
            place = self._point(stance.point.bone, stance.point.offset)
            drifts.append(drift(place[stance.first : stance.last + 1]))
        floor = RigFloor.of(self.target, soles)
        for foot, sole in soles.items():
            points = [
                self._point(foot, sole.heel),
                self._point(foot, sole.ball),
                self._point(foot, sole.ball + sole.aside),
                self._point(foot, sole.ball - sole.aside),
                self._point(sole.toe or foot, sole.tip),
            ]
            depths.append(max(float(-floor.above(point).min()) for point in points))
        return 1000.0 * max(drifts), 1000.0 * max(depths)

    def _ways(self, source):
        names, angles = list(source.names), []
        for upper, lower in LIMBS:
            for side in "LR":
                bones = [
                    [body.named(part, side)[0] for part in (upper, lower)] for body in (self.source_body, self.target)
                ]
                theirs = source.heads[:, names.index(bones[0][1])] - source.heads[:, names.index(bones[0][0])]
                own = self._point(bones[1][1], np.zeros(3)) - self._point(bones[1][0], np.zeros(3))
                theirs = theirs @ self.found.axes.T
                cosine = (own * theirs).sum(axis=1) / np.linalg.norm(own, axis=1) / np.linalg.norm(theirs, axis=1)
                angles.append(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
        return float(np.median(angles))

    def _turns(self, source):
        names, more = list(source.names), []
        for pair in self.found.pairs:
            own = quaternion_from_matrix(self.matrices[:, self.skeleton.index(pair.bone), :3, :3])
            theirs = source.rotations[:, names.index(pair.source)]
            more.append(angle_between(own[1:], own[:-1]) - angle_between(theirs[1:], theirs[:-1]))
        return float(np.degrees(np.max(more)))

    def _touch(self, source):
        """Errors in millimeters of hands that should be near one another, the head or a hip; None if none should be."""
        names, bodies, off = list(source.names), (self.source_body, self.target), []
        legs = [leg_length(body) for body in bodies]
        for one, other in TOUCHES:
            theirs, own = ([body.named(*each)[0] for each in (one, other)] for body in bodies)
            apart = source.heads[:, names.index(theirs[0])] - source.heads[:, names.index(theirs[1])]
            wanted = np.linalg.norm(apart, axis=1) * legs[1] / legs[0]
            found = np.linalg.norm(self._point(own[0], np.zeros(3)) - self._point(own[1], np.zeros(3)), axis=1)
            off += np.abs(found - wanted)[wanted < TOUCHING * legs[1]].tolist()
        return 1000.0 * max(off) if off else None

    @property
    def row(self):
        """The figures as they are shown."""
        figures = (self.drift, self.depth, self.ways, self.outside, self.turns, self.touch)
        return tuple("-" if figure is None else f"{figure:.1f}" for figure in figures)

    def aims(self, case, copy):
        """The aims, with the figures of copied rotations as the other method's."""
        for what, most, name, unit in (
            ("Drift of planted feet", 5.0, "drift", "mm"),
            ("Depth below the floor", 5.0, "depth", "mm"),
            ("Directions of limbs differ, median", 8.0, "ways", "°"),
            ("Rotation outside limits", 0.01, "outside", "°"),
            ("Error of the distance of hands that touch", 30.0, "touch", "mm"),
            ("Rotation from frame to frame in excess of the source", 20.0, "turns", "°"),
        ):
            own, copied = getattr(self, name), getattr(copy, name)
            if own is not None:
                other = "" if copied is None else f"{copied:.3g} {unit} (copied rotations)"
                yield Aim.at_most(what, most, own, unit, case=case, other=other)
