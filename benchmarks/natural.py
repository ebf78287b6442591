"""Natural poses and smooth drags, measured step by step."""

import bpy
import numpy as np

from benchmarks import cases
from benchmarks.natural_paths import METHODS, NOW, Path3, follow, mirrored, open_human
from benchmarks.natural_rigs import RIGS, named
from benchmarks.tables import Aim, Part, table
from fabrik_addon.human.masses import body_masses

# Degrees: a bone that rotates by more in a step of a centimeter jumps visibly.
JUMP = 8.0
# The limit for a straight limb: 20° for half a centimeter, since its bend grows with the root of the distance.
STRAIGHT_JUMP = 28.0

PATHS = (
    Path3("head forward and down 45 cm", "head", ((0.0, -0.25, -0.45),)),
    Path3("head down 50 cm", "head", ((0.0, 0.0, -0.5),)),
    Path3("chest forward and down", "upper_chest", ((0.0, -0.3, -0.3),)),
    Path3("hand across, down, forward", "hand.L", ((-0.5, -0.25, 0.1), (-0.5, -0.3, -0.3), (-0.3, -0.5, -0.3))),
    Path3("hand far out of reach", "hand.L", ((0.9, -0.9, 0.4),)),
    Path3("hips down 40 cm", "hips", ((0.0, 0.0, -0.4),), point="HEAD"),
    Path3("hips aside and forward", "hips", ((0.15, -0.1, -0.1),), point="HEAD"),
    Path3("foot forward and up", "foot.L", ((0.0, -0.4, 0.4),), pinned=("foot.R",)),
    Path3("hand across the middle", "hand.L", ((-1.1, -0.35, 0.2),)),
)
LINES = (
    Path3("70 cm to the front", "hand.L", ((0.0, -0.7, 0.0),)),
    Path3("90 cm up", "hand.L", ((0.0, 0.0, 0.9),)),
    Path3("behind the hip", "hand.L", ((-0.5, 0.25, 0.0),)),
    Path3("to the floor in front of the feet", "hand.L", ((-0.5, -0.4, -0.9),)),
)
# The largest allowed movements of hips and center of mass, in centimeters; None: not checked.
LINE_AIMS = ((2.0, None), (2.0, None), (2.0, None), (None, 6.0))
SMOOTHNESS = (
    "largest turn of a bone a step", "in reach, straight limbs apart", "in reach, at a straight limb",
    f"steps above {JUMP:g}°", "turns back", "closes to", "worst mm short in reach", "steps in reach",
    "worst mm a pin is off",
)  # fmt: skip


def measure_paths():
    """Drags there and back: how far bones rotate, and whether they return."""
    rig, rows, aims = open_human(), [], []
    for path in PATHS:
        for method, make in METHODS.items():
            track = follow(rig, path, path.there_and_back(), make)
            rows.append((path.name, method, *_smoothness(track)))
            if method in NOW:
                aims += _smooth_aims(f"{path.name}, {method}", track)
    title = "Natural: the sample person, dragged and by live, in steps of 1 cm, feet pinned"
    return Part(table(title, ("there and back", "solved", *SMOOTHNESS), rows), tuple(aims))


def measure_other_rigs():
    """Drags there and back on rigs of other makers, limited by the human preset."""
    rows, aims = [], []
    for kind, (open_rig, names) in RIGS.items():
        rig = open_rig()
        for path in PATHS:
            for method, make in NOW.items():
                track = follow(rig, named(path, names), path.there_and_back(), make)
                rows.append((kind, path.name, method, *_smoothness(track)))
                aims += _smooth_aims(f"{kind}, {path.name}, {method}", track)
    title = "Natural: the same on other rigs, limited by the human preset"
    return Part(table(title, ("rig", "there and back", "solved", *SMOOTHNESS), rows), tuple(aims))


def _smoothness(track):
    turns, reach = track.turns.max(axis=1), track.in_reach
    worst = 1000.0 * track.errors[reach].max(initial=0.0)
    bent, straight = _turns_in_reach(track)
    return (
        f"{turns.max():.1f}°",
        f"{bent.max(initial=0.0):.1f}°",
        f"{straight.max(initial=0.0):.1f}°",
        f"{(turns > JUMP).sum()} of {len(turns)}",
        track.reversals(),
        f"{track.closing:.2f}°",
        f"{worst:.2f}",
        f"{reach.sum()} of {len(reach)}",
        f"{1000.0 * track.pin_errors.max():.2f}",
    )


def _turns_in_reach(track):
    """The largest rotation of a bone in each step in reach, degrees: without straight limbs, and with them."""
    turns, straight = track.turns[track.both_in_reach], track.at_straight_limb[track.both_in_reach]
    return np.where(straight, 0.0, turns).max(axis=1), np.where(straight, turns, 0.0).max(axis=1)


def _smooth_aims(name, track):
    bent, straight = _turns_in_reach(track)
    return [
        Aim.at_most(f"Steps in reach that rotate a bone by more than {JUMP:g}°", 0, (bent > JUMP).sum(), "", case=name),
        Aim.at_most("Largest step at a straight limb", STRAIGHT_JUMP, straight.max(initial=0.0), "°", case=name),
        Aim.at_most("Steps that rotate a bone back", 0, track.reversals(), "", case=name),
        Aim.at_most("There and back: difference between the first and last pose", 0.1, track.closing, "°", case=name),
        Aim.at_most("Distance of a pin from its position", 0.5, 1000.0 * track.pin_errors.max(), "mm", case=name),
    ]


def measure_lines():
    """A hand moves in a straight line: how far the rest of the body moves."""
    rig, rows, aims = open_human(), [], []
    for path, most in zip(LINES, LINE_AIMS, strict=True):
        for method, make in METHODS.items():
            track = follow(rig, path, path.out(), make)
            moved = [100.0 * distance for distance in _travels(rig, track)]
            rows.append(
                (path.name, method, *(f"{distance:.1f}" for distance in moved), f"{1000 * track.errors[-1]:.2f}")
            )
        aims += [
            Aim.at_most(f"Hand in a straight line: {what} by", limit, distance, "cm", case=path.name)
            for what, limit, distance in zip(("hips move", "center of mass moves"), most, moved, strict=True)
            if limit is not None
        ]
    header = ("the hand goes", "solved", "hips go cm", "center of mass goes cm, seen from above", "mm short")
    return Part(table("Natural: a hand in a straight line, feet pinned", header, rows), tuple(aims))


def _travels(rig, track):
    """Distances in meters that the hips' head and, seen from above, the center of mass move."""
    masses = body_masses({bone.name: bone.length for bone in rig.data.bones})
    share = np.array([masses[name].share for name in track.names])
    along = np.array([masses[name].center * rig.data.bones[name].length for name in track.names])
    centers = track.matrices[..., :3, 3] + along[:, None] * track.matrices[..., :3, 1]
    middle = share @ centers
    hips = track.matrices[:, track.names.index("hips"), :3, 3]
    return [float(np.linalg.norm(each[-1] - each[0])) for each in (hips, middle[:, :2])]


def measure_sides():
    """Drag the left side, and the right side by the mirror image; the poses should be mirror images."""
    rig, rows, aims = open_human(), [], []
    size = max(bone.tail_local.z for bone in rig.data.bones)
    for method, make in METHODS.items():
        worst = []
        for path in (path for path in (*PATHS, *LINES) if path.bone.endswith(".L")):
            own = follow(rig, path, path.out(), make)
            other = follow(rig, mirrored(path), mirrored(path).out(), make)
            worst.append(_unlike(own, other) / size)
        rows.append((method, len(worst), f"{max(worst):.1e}"))
    aims.append(Aim.at_most("Left and right mirrored: difference of joints, relative to size", 1e-4, max(worst), ""))
    return Part(table("Natural: left and right", ("solved", "paths", "joints apart, of the size"), rows), tuple(aims))


def _unlike(own, other):
    """The largest distance of one track's joints from the mirror image of the other's, in meters."""
    flips = {"L": "R", "R": "L"}
    names = [f"{name[:-1]}{flips[name[-1]]}" if name[-2:] in {".L", ".R"} else name for name in own.names]
    places = [other.names.index(name) for name in names]
    mirror = other.matrices[:, places][..., :3, 3] * np.array([-1.0, 1.0, 1.0])
    return float(np.linalg.norm(own.matrices[..., :3, 3] - mirror, axis=-1).max())


def measure_cost():
    """The cost of a step if five goals are met, and if one of them cannot be: human and tree."""
    rows, aims = [], []
    for make, least, most in ((cases.human, 5.0, 16.0), (cases.tree, 10.0, 30.0)):
        case = make()
        rig, ends = case.armature, case.ends
        bpy.context.view_layer.objects.active = rig
        bpy.ops.object.mode_set(mode="POSE")
        for where, reach in (("in reach", 0.15), ("out of reach", 0.9)):
            path = Path3("", ends[1], (), tuple(end for end in ends if end != ends[1]))
            for method, make_drag in METHODS.items():
                track = follow(rig, path, _loop(reach * case.size), make_drag)
                chosen = track.in_reach == (where == "in reach")
                times = 1000.0 * np.percentile(track.seconds[chosen], (50, 99)) if chosen.any() else (np.nan, np.nan)
                rows.append((case.name, where, method, int(chosen.sum()), *(f"{time:.1f}" for time in times)))
            for what, limit, time in zip(("median", "99th percentile"), (least, most), times, strict=True):
                aims.append(Aim.at_most(f"{case.name}, a step {where}: {what}", limit, time, "ms"))
    header = ("rig", "where", "solved", "steps", "median ms", "99th percentile ms")
    return Part(table("Natural: from the mouse to posed bones, five goals", header, rows), tuple(aims))


def _loop(reach):
    """(200, 3) shifts along a closed curve that begins and ends at zero."""
    angle = np.linspace(0.0, 2.0 * np.pi, 200)
    return reach / 2 * np.stack([np.cos(angle) - 1.0, -np.sin(angle), 0.5 * np.sin(2.0 * angle)], axis=1)
