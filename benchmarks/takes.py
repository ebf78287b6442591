"""Takes on the sample person: the cost of each stage by length, and the quality of variants."""

import time
from dataclasses import replace
from pathlib import Path

import bpy
import numpy as np
from support.recordings import DATA
from support.steps import calibrate, refined

from benchmarks.tables import Aim, Part, table
from fabrik_addon.blender.rig.armature import read_rest, read_trees
from fabrik_addon.blender.settings.limit_properties import read_limits
from fabrik_addon.core.rotations import angle_between
from fabrik_addon.human.naming_schemes import match as match_bones
from fabrik_addon.markers.clip import to_z_up
from fabrik_addon.markers.feet import lift_off_floor
from fabrik_addon.markers.files.any_file import read_markers
from fabrik_addon.markers.mapping.labels import match, parts_of
from fabrik_addon.markers.solving.course import fill_gaps, solve_every_frame
from fabrik_addon.markers.solving.outliers import Recording, reject_outliers, smooth_jumps
from fabrik_addon.markers.steps import finish

SAMPLES = Path(__file__).parents[1] / "sample_rigs"
LENGTHS = (400, 2_000)
# The sample walk, which is the first take, is also measured at this length.
LONGEST = 10_000
MOST_MS = 2.0
MOST_CALIBRATION = 3.0
# Found in FABRIK_TEST_DATA: surface markers by three labs, and joint keypoints.
FILES = ("gait2354_subject01_walk1.trc", "MACsample.c3d", "PiG_Motion3_FF.c3d", "Pose2Sim_markers.trc")


class Person:
    """The sample person's bones and limits."""

    def __init__(self):
        bpy.ops.wm.open_mainfile(filepath=str(SAMPLES / "human.blend"), load_ui=False)
        rig = next(thing for thing in bpy.context.scene.objects if thing.type == "ARMATURE")
        self.skeleton = max((tree.skeleton for tree in read_trees(rig, at_rest=True)), key=len)
        self.limits = read_limits(rig, self.skeleton.names)
        self.rest = read_rest(rig)
        self.parts = parts_of(match_bones(self.rest))

    def matched(self, labels):
        """The markers whose labels give a bone."""
        return match(labels, self.parts, self.rest, None).markers

    def calibrated(self, clip):
        """A clip's calibration, and the seconds of the processor that it took."""
        mapping = self.matched(clip.names)
        began = time.process_time()
        found = refined(calibrate(self.skeleton, mapping, clip, limits=self.limits), clip, limits=self.limits)
        return found, time.process_time() - began


def measure_takes():
    """Milliseconds per frame, by stage."""
    person, rows = Person(), []
    for clip in clips():
        found, seconds = person.calibrated(clip)
        for frames in LENGTHS if rows else (*LENGTHS, LONGEST):
            stages, _ = _solved(person, found, _tiled(found.targets(clip), frames), clip.rate)
            cells = (f"{1000.0 * stage / frames:.2f}" for stage in (*stages, sum(stages)))
            rows.append((clip.source, len(found.markers), f"{frames:,}", f"{seconds:.1f}", *cells))
    header = (
        "take",
        "markers",
        "frames",
        "calibration s",
        "each frame",
        "outliers",
        "gaps",
        "jumps",
        "together ms a frame",
    )
    title = "Takes on human.blend, played forward and backward: the processor's time by stage"
    most = max(float(row[-1]) for row in rows)
    aims = (
        Aim.at_most("Recordings: time per frame, all stages, slowest", MOST_MS, most, "ms"),
        Aim.at_most("Recordings: calibration, slowest", MOST_CALIBRATION, max(float(row[3]) for row in rows), "s"),
    )
    return Part(table(title, header, rows), aims)


def measure_variants():
    """The errors of takes and of variants of them."""
    person, rows = Person(), []
    for clip in clips():
        for name, vary in VARIANTS:
            varied = vary(clip)
            found, _ = person.calibrated(varied)
            _, solution = _solved(person, found, found.targets(varied), varied.rate)
            steps = np.degrees(angle_between(solution.rotations[1:], solution.rotations[:-1])).max(axis=0)
            rms = np.sqrt(np.nanmean(solution.errors**2))
            floor = lift_off_floor(found.poses) - lift_off_floor(solution)
            bone = solution.skeleton.names[int(steps.argmax())]
            figures = f"{1000.0 * rms:.1f}", f"{steps.max():.0f} ({bone})", f"{1000.0 * np.abs(floor).max():.0f}"
            rows.append((clip.source, name, len(solution.errors), *figures))
    header = ("take", "variant", "frames", "RMS mm", "largest turn a frame, degrees", "feet to the floor mm")
    return table("Variants of takes on human.blend", header, rows)


def clips():
    """The sample walk, and other available recordings."""
    files = [SAMPLES / "walk.trc", *(DATA / name for name in FILES)]
    return [to_z_up(read_markers(file)) for file in files if file.exists()]


def _tiled(targets, frames):
    """(F, M, 3) a take, repeated forward and backward until it is long enough."""
    both = np.concatenate([targets, targets[::-1]])
    return np.concatenate([both] * (frames // len(both) + 1))[:frames]


def _solved(person, found, targets, rate):
    """Seconds of the processor for each stage, and the poses."""
    recording, clock = Recording(found.solver(person.limits), targets, None, rate), time.process_time
    times = [clock()]
    finish(solve_every_frame(recording, steady=True))
    times.append(clock())
    reject_outliers(recording)
    times.append(clock())
    finish(fill_gaps(recording, "SOLVE"))
    times.append(clock())
    smooth_jumps(recording)
    recording.measure(solved=True)
    times.append(clock())
    return np.diff(times), recording.solution


def _with_gaps(clip):
    """One sample in ten is missing, and each marker for half a second."""
    rng, positions = np.random.default_rng(3), np.array(clip.positions)
    positions[rng.random(positions.shape[:2]) < 0.1] = np.nan
    longest = min(round(0.5 * clip.rate), len(positions) // 4)
    for marker in range(len(clip.names)):
        first = int(rng.integers(1, len(positions) - longest))
        positions[first : first + longest, marker] = np.nan
    return replace(clip, positions=positions)


def _mirrored(clip):
    """Left and right swapped in space and in labels whose first letter gives the side."""
    swap = {"L": "R", "R": "L", "l": "r", "r": "l"}
    names = tuple(swap.get(name[0], name[0]) + name[1:] for name in clip.names)
    known = set(clip.names)
    names = tuple(new if new in known else old for new, old in zip(names, clip.names, strict=True))
    return replace(clip, names=names, positions=clip.positions * [-1.0, 1.0, 1.0])


def _slower(clip):
    """The recording with only every second frame."""
    return replace(clip, positions=clip.positions[::2], rate=clip.rate / 2.0)


VARIANTS = (("as it is", lambda clip: clip), ("gaps", _with_gaps), ("mirrored", _mirrored), ("half the rate", _slower))
