"""The whole bake in Blender: from marker empties to keyframes."""

import bpy
import numpy as np
from benchmarks.tables import table
from support import scenes

from fabrik_addon.blender.bake import bake

FRAMES = 1000


def measure_bake():
    """20 bones × 1,000 frames, with joint markers and with three markers a bone."""
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
    spent = [result.timings[stage] for stage in ("sample", "solve", "write")]
    figures = [*(f"{seconds:.2f}" for seconds in spent), f"{sum(spent):.2f}", f"{1000 * sum(spent) / FRAMES:.2f}"]
    return [name, *figures, f"{1000 * result.report.total().rms:.1f}"]


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
    """The tests' small person with hands, feet and a longer spine."""
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


MEASURES = [("bake", measure_bake)]
