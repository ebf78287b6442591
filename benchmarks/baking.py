"""The whole bake in Blender: from marker empties to keyframes."""

import tracemalloc
from pathlib import Path

import bpy
import numpy as np
from support import scenes

from benchmarks.tables import Aim, Part, table
from fabrik_addon.blender.bake.bake import bake
from fabrik_addon.blender.rig.armature import read_trees
from fabrik_addon.blender.settings.limit_properties import read_limits
from fabrik_addon.core import forward_kinematics
from fabrik_addon.core.kernel.joint_limits import legal_pose

ROOT = Path(__file__).parents[1]
FRAMES = 1000
TAKE_FRAMES = 10_000
MARKERS = 40
_STAGES = ("sample", "solve", "write")
_TAKE_HEADER = (
    "frames",
    *(f"{stage} s" for stage in _STAGES),
    "ms a frame: solve",
    "together",
    "RMS mm",
    "MB beside the result",
    "MB of it",
)


def measure_bake():
    """20 bones and 1,000 frames, with joint markers or with three markers on each bone."""
    rows = [_row("joints: 20 markers", 1), _row("body: 40 markers", 2)]
    return table(
        f"Bake: 20 bones × {FRAMES:,} frames, marker empties to keyframes",
        ("markers", "sample s", "solve s", "write s", "together s", "ms a frame", "RMS mm"),
        rows,
    )


def _row(name, markers_a_bone):
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    rig = scenes.place(scenes.make_rig(_person_of_twenty()))
    rng = np.random.default_rng(1)
    points = _points(rig, markers_a_bone, rng)
    positions = scenes.record(rig, points, *scenes.smooth_motion(rig, FRAMES, travel=3.0))
    positions += rng.normal(size=positions.shape) * 0.002
    names = [f"m{index}" for index in range(len(points))]
    markers = scenes.import_positions(positions, names)
    for marker, (bone, point) in zip(names, points, strict=True):
        scenes.aim(rig, bone, markers[marker], "OFFSET", point)
    rig.fabrik.root = "FREE"
    scenes.make_active(rig)
    result = bake(bpy.context, rig, frame_start=1, frame_end=FRAMES)
    spent = [result.timings[stage] for stage in _STAGES]
    figures = [*(f"{seconds:.2f}" for seconds in spent), f"{sum(spent):.2f}", f"{1000 * sum(spent) / FRAMES:.2f}"]
    return [name, *figures, f"{1000 * result.report.total.rms:.1f}"]


def _points(rig, markers_a_bone, rng):
    """One marker at each tail, or several scattered about each bone."""
    if markers_a_bone == 1:
        return scenes.tail_points(rig, [bone.name for bone in rig.data.bones])
    return [
        (bone.name, tuple(rng.normal(size=3) * 0.05 + [0.0, bone.length / 2, 0.0]))
        for bone in rig.data.bones
        for _ in range(markers_a_bone)
    ]


def _person_of_twenty():
    """The small person of the tests, with hands, feet and a longer spine."""
    ends = {"forearm.L": "hand.L", "forearm.R": "hand.R", "shin.L": "foot.L", "shin.R": "foot.R"}
    rows = list(scenes.PERSON)
    tails = {name: np.array(tail) for name, _, _, tail in rows}
    for parent, name in ends.items():
        step = np.array((0, -0.15, -0.04)) if "foot" in name else np.array((0.1 if name.endswith("L") else -0.1, 0, 0))
        rows.append((name, parent, tuple(tails[parent]), tuple(tails[parent] + step)))
    for parent, name, step in (
        ("foot.L", "toe.L", (0, -0.06, 0)),
        ("foot.R", "toe.R", (0, -0.06, 0)),
        ("head", "crown", (0, 0, 0.1)),
        ("hand.L", "finger.L", (0.08, 0, 0)),
        ("hand.R", "finger.R", (-0.08, 0, 0)),
    ):
        tail = next(np.array(row[3]) for row in rows if row[0] == parent)
        rows.append((name, parent, tuple(tail), tuple(tail + step)))
    return rows


def measure_take():
    """A long recording: 40 markers on 22 limited bones, with two lengths, and the growth of memory."""
    takes = {frames: _take(frames) for frames in (TAKE_FRAMES // 10, TAKE_FRAMES)}
    text = table(
        "Bake of a take: human.blend with its limits, 40 markers with noise, gaps and outliers",
        _TAKE_HEADER,
        [_take_row(frames, *take) for frames, take in takes.items()],
    )
    result, beside, _ = takes[TAKE_FRAMES]
    solving, together = (1000.0 * seconds / TAKE_FRAMES for seconds in _solve_and_all(result))
    slope = np.log(beside / takes[TAKE_FRAMES // 10][1]) / np.log(10.0)
    what = f"Recording of {TAKE_FRAMES:,} frames, 40 markers, 22 bones"
    aims = (
        Aim.at_most(f"{what}: solve, per frame", 0.5, solving, "ms"),
        Aim.at_most(f"{what}: whole bake, per frame", 1.0, together, "ms"),
        Aim.at_most(f"{what}: memory in addition to the result, slope", 0.1, slope, ""),
    )
    return Part(text, aims)


def _take(frames):
    """The result of a bake of the take, and the peak memory of another one, since measuring memory takes time."""
    result = bake(bpy.context, _marked_human(frames), frame_start=1, frame_end=frames)
    rig = _marked_human(frames)
    tracemalloc.start()
    _kept = bake(bpy.context, rig, frame_start=1, frame_end=frames)
    own, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return result, most - own, own


def _solve_and_all(result):
    """Seconds of the solve, and of the whole bake."""
    return result.timings["solve"], sum(result.timings.values())


def _take_row(frames, result, beside, own):
    spent = [result.timings[stage] for stage in _STAGES]
    each = [1000.0 * seconds / frames for seconds in _solve_and_all(result)]
    rms = 1000.0 * result.report.total.rms
    seconds = [f"{value:.2f}" for value in (*spent, *each)]
    return [f"{frames:,}", *seconds, f"{rms:.1f}", f"{beside / 1e6:.0f}", f"{own / 1e6:.0f}"]


def _marked_human(frames):
    """The sample person with 40 markers of a smooth motion: 2 mm of noise, 2 % hidden, some far off."""
    bpy.ops.wm.open_mainfile(filepath=str(ROOT / "sample_rigs" / "human.blend"))
    rig = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    (tree,) = read_trees(rig)
    skeleton, rng = tree.skeleton, np.random.default_rng(1)
    bones = [place for place in range(len(skeleton)) for _ in range(2)][:MARKERS]
    points = [rng.normal(size=3) * 0.05 + (0.0, skeleton.lengths[bone] / 2.0, 0.0) for bone in bones]
    motion = scenes.smooth_motion(rig, frames, most=0.3)[0]
    names = [bone.name for bone in rig.pose.bones]
    turns = motion[:, [names.index(name) for name in skeleton.names]]
    limits = read_limits(rig, skeleton.names)
    matrices = forward_kinematics(skeleton, legal_pose(skeleton, limits, turns))
    columns = zip(bones, points, strict=True)
    positions = np.stack([(matrices[:, bone] @ (*point, 1.0))[:, :3] for bone, point in columns], axis=1)
    positions += rng.normal(size=positions.shape) * 0.002
    positions[rng.random(positions.shape[:2]) < 0.02] = np.nan
    positions[rng.random(positions.shape[:2]) < 0.001] += 0.5
    labels = [f"m{place}" for place in range(len(bones))]
    markers = scenes.import_positions(positions, labels)
    rig.fabrik.root = "FREE"
    for label, bone, point in zip(labels, bones, points, strict=True):
        entry = rig.fabrik.capture.markers.add()
        entry.name, entry.bone, entry.point, entry.offset = label, skeleton.names[bone], "OFFSET", point
        entry.target = markers[label]
    return rig
