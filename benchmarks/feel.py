"""What an animator notices: whether a pose depends on the path to it, the cost of fast moves, and targets out of reach.

Everything is measured with drags and live rigs, as users work. `benchmarks/run.py feel`.
"""

import json
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path
from time import perf_counter

import bpy
import numpy as np
from mathutils import Vector
from support import scenes

from benchmarks import cases
from benchmarks.natural_paths import FEET, Dragged, Path3, follow, open_human, pin_only, present
from benchmarks.tables import Aim, Part, table
from fabrik_addon.blender.goals.body import fitted
from fabrik_addon.blender.goals.effectors import add_effector
from fabrik_addon.blender.posing.drag import DragSettings, begin_drag
from fabrik_addon.blender.rig.armature import read_trees
from fabrik_addon.blender.settings.limit_properties import read_limits
from fabrik_addon.core import Effector, Options, Solver, forward_kinematics
from fabrik_addon.core.rotations import angle_between

GOALS = Path(__file__).with_name("feel_goals.json")
BALANCES = {"on": "AUTO", "off": "OFF"}
# The dragged bone, its end, and the pinned bones.
GRIPS = {
    "hand.L": Path3("", "hand.L", ()),
    "hand.R": Path3("", "hand.R", ()),
    "foot.L": Path3("", "foot.L", (), pinned=("foot.R",)),
    "head": Path3("", "head", ()),
    "hips": Path3("", "hips", (), point="HEAD"),
}
GOALS_EACH = 9
# Meters: an ordinary drag is not longer.
NEAR = 0.5
# Degrees: poses that differ by more are not the same.
SAME_POSE, SAME_PLAY = 5.0, 1.0
# Meters. A goal missed by less than the first is met; people see a miss of more than the second.
MET, SEEN = 1e-3, 0.03
# The length of a step, in meters.
STEP, LARGE_STEP, SMALL_STEP, BALANCE_STEP = 0.03, 0.15, 0.015, 0.06
DETOUR = 0.2
FRAMES = 60
MOVES = 15
BALANCE_GOALS = 25
HANDS = ("hand.L", "hand.R")
# For each hand, the number of goals that are drawn at once, and the number of draws.
HAND_GOALS, HAND_DRAWS = 25, 10
# Meters: the allowed overlap of capsules.
DEPTH = 5e-3


class Keeper:
    """Restores the pose of a rig: rotations and locations of its bones."""

    def __init__(self, rig):
        self._kept = [(bone, bone.rotation_quaternion.copy(), bone.location.copy()) for bone in rig.pose.bones]

    def restore(self):
        for bone, rotation, location in self._kept:
            bone.rotation_quaternion, bone.location = rotation, location
        bpy.context.view_layer.update()


def reachable_goals(kind):
    """By bone, (G, 3) goals within its reach.

    kind: "near" its position, "anywhere" with both feet pinned, or "hands", which are many. The file stores them, so
    that they do not change with the solver. If it does not exist, they are drawn again.
    """
    if not GOALS.exists():
        rig, grips = open_human(), list(enumerate(GRIPS.items()))
        near = {bone: _drawn_goals(rig, grip, GOALS_EACH, NEAR, seed) for seed, (bone, grip) in grips}
        anywhere = {
            bone: _drawn_goals(rig, grip, BALANCE_GOALS, np.inf, 100 + seed)
            for seed, (bone, grip) in grips
            if grip.pinned == FEET
        }
        hands = {
            bone: [
                goal
                for draw in range(HAND_DRAWS)
                for goal in _drawn_goals(rig, GRIPS[bone], HAND_GOALS, np.inf, 1000 + HAND_DRAWS * seed + draw)
            ]
            for seed, bone in enumerate(HANDS)
        }
        kinds = {"near": near, "anywhere": anywhere, "hands": hands}
        GOALS.write_text(json.dumps(kinds) + "\n", encoding="utf-8")
    kept = json.loads(GOALS.read_text(encoding="utf-8"))[kind]
    return {bone: np.array(goals) for bone, goals in kept.items()}


def _drawn_goals(rig, grip, count, within, seed):
    """[count][3] positions of the dragged point in legal poses, in which the pins hold and nothing is below the floor.

    Poses are random ones inside the limits, near rest or far from it, after the solver has moved the pinned bones back.
    Only points within some meters of the current one are used.
    """
    rng, (tree,), drawn = np.random.default_rng(seed), read_trees(rig), 1000
    skeleton, limits = tree.skeleton, read_limits(rig)
    start = np.tile([1.0, 0.0, 0.0, 0.0], (drawn, len(skeleton), 1))
    for name, limit in limits.items():
        share, turns = rng.random((drawn, 1)), limit.sample(rng.random((drawn, 3)))
        turns = share * np.where(turns[:, :1] < 0.0, -turns, turns) + (1.0 - share) * (1.0, 0.0, 0.0, 0.0)
        start[:, skeleton.index(name)] = turns / np.linalg.norm(turns, axis=-1, keepdims=True)
    pinned = [rig.pose.bones[name] for name in grip.pinned]
    pins = [Effector(bone.name, rotation_weight=1.0) for bone in pinned]
    found = Solver(skeleton, pins, limits=limits, root="FREE", options=Options(restarts=0)).solve(
        np.tile([bone.tail for bone in pinned], (drawn, 1, 1)),
        start=start,
        target_rotations=np.tile([bone.matrix.to_quaternion() for bone in pinned], (drawn, 1, 1)),
    )
    matrices = forward_kinematics(skeleton, found.rotations, found.root_location)
    ends = matrices[..., :3, 3] + np.array(skeleton.lengths)[:, None] * matrices[..., :3, 1]
    heads = matrices[..., :3, 3]
    points = (heads if grip.point == "HEAD" else ends)[:, skeleton.index(grip.bone)]
    bone = rig.pose.bones[grip.bone]
    near = np.linalg.norm(points - (bone.head if grip.point == "HEAD" else bone.tail), axis=1) < within
    chosen = near & (found.errors.max(axis=1) < 1e-5) & (np.minimum(heads, ends)[..., 2].min(axis=1) > -MET)
    if chosen.sum() < count:
        raise RuntimeError(f"only {chosen.sum()} of {drawn} random poses keep the pins and stay above the floor")
    return np.round(points[chosen][:count], 4).tolist()


def measure_paths():
    """Four paths from one pose to each goal, and the differences between the poses after release."""
    goals, rig, rows, aims = reachable_goals("near"), open_human(), [], []
    keeper = Keeper(rig)
    for balance, kind in BALANCES.items():
        rig.fabrik.balance = kind
        angles, apart = [], []
        for bone, points in goals.items():
            for goal in points:
                poses, errors = zip(*(_dragged_to(rig, keeper, GRIPS[bone], way, goal) for way in WAYS), strict=True)
                if max(errors) < MET:
                    pairs = [_unlike(*pair) for pair in combinations(poses, 2)]
                    angles.append(max(angle for angle, _ in pairs))
                    apart.append(max(distance for _, distance in pairs))
        differ = 100.0 * np.mean(np.array(angles) > SAME_POSE)
        median, worst = np.percentile(angles, (50, 100))
        met = f"{len(angles)} of {sum(map(len, goals.values()))}"
        rows.append((balance, met, f"{differ:.0f} %", f"{median:.1f}°", f"{worst:.0f}°", f"{100.0 * max(apart):.0f}"))
        aims.append(Aim.at_most("Goals whose pose depends on the path", 5, differ, "%", case=f"balance {balance}"))
    header = (
        "balance", "goals met by all four", f"joints differ by more than {SAME_POSE:g}°", "median", "worst",
        "worst joint cm apart",
    )  # fmt: skip
    title = "Feel: the same goal straight, by a detour, in large and in small steps, after release"
    return Part(table(title, header, rows), tuple(aims))


def _steps(corners, size):
    """(N, 3) the path from the first of some points through the others, in steps of at most a given size."""
    legs = [
        begin + (end - begin) * np.arange(1, count + 1)[:, None] / count
        for begin, end in pairwise(corners)
        for count in [max(1, int(np.ceil(np.linalg.norm(end - begin) / size)))]
    ]
    return np.concatenate(legs)


def _by_a_detour(start, goal):
    side = np.cross(goal - start, (0.3, 0.5, 0.8))
    return _steps((start, 0.5 * (start + goal) + DETOUR * side / np.linalg.norm(side), goal), STEP)


WAYS = (
    lambda start, goal: _steps((start, goal), STEP),
    _by_a_detour,
    lambda start, goal: _steps((start, goal), LARGE_STEP),
    lambda start, goal: _steps((start, goal), SMALL_STEP),
)


def measure_self_collision():
    """Hands dragged to random goals: how many bodies overlap themselves on release."""
    rig, rows, aims = open_human(), [], []
    keeper, goals = Keeper(rig), reachable_goals("hands")
    for switch in (False, True):
        rig.fabrik.bake.self_collision = "AUTO" if switch else "OFF"
        found, seconds = [], []
        for bone, points in goals.items():
            for goal in points:
                pin_only(rig, GRIPS[bone])
                drag = begin_drag(bpy.context, rig, bone, settings=DragSettings(root="FREE"))
                for location in _steps((drag.start, goal), STEP):
                    began = perf_counter()
                    drag.step(location)
                    seconds.append(perf_counter() - began)
                drag.finish(bpy.context)
                bpy.context.view_layer.update()
                error = np.linalg.norm(rig.matrix_world @ rig.pose.bones[bone].tail - Vector(goal))
                found.append((*_depths(rig, goal, bone[-2:]), error))
                keeper.restore()
        depths, goal_depths, errors = np.array(found).T
        outside = goal_depths <= 0.0
        deep = 100.0 * np.mean(depths[outside] > DEPTH)
        missed = 100.0 * np.mean(errors[outside] > MET)
        rows.append(
            ("on" if switch else "off", f"{outside.sum()} of {len(found)}", f"{deep:.1f} %",
             f"{1000.0 * max(depths[outside].max(), 0.0):.0f}", f"{missed:.1f} %", f"{1000.0 * np.median(seconds):.1f}")
        )  # fmt: skip
    aims.append(Aim.at_most(f"Hands deeper than {1000.0 * DEPTH:g} mm in the body on release", 1, deep, "%"))
    header = (
        "self-collision", "goals outside the body", f"deeper than {1000.0 * DEPTH:g} mm", "deepest mm",
        "missed by more than 1 mm", "ms a step, median",
    )  # fmt: skip
    return Part(table("Feel: hands dragged straight to random goals, feet pinned", header, rows), tuple(aims))


def _depths(rig, goal, side):
    """Depths in meters: of the rig's overlap with itself, and of a hand's goal (3,) inside all but its own arm."""
    collision = fitted(rig)
    shares = np.linspace(0.0, 1.0, 61)[:, None]
    along, radii = [], np.array([each.radius for each in collision.capsules])
    for each in collision.capsules:
        matrix = np.array(rig.pose.bones[each.bone].matrix)
        ends = np.array([each.start, each.end]) @ matrix[:3, :3].T + matrix[:3, 3]
        along.append(ends[0] + shares * (ends[1] - ends[0]))
    arm = {f"{part}{side}" for part in ("upper_arm", "forearm", "hand")}
    apart = [np.linalg.norm(along[one][:, None] - along[two], axis=-1).min() for one, two in collision.pairs]
    depths = radii[np.array(collision.pairs)].sum(axis=1) - apart
    others = [row for row, each in enumerate(collision.capsules) if each.bone not in arm]
    goal_depths = radii[others] - np.linalg.norm(np.array(along)[others] - goal, axis=-1).min(axis=1)
    return depths.max(), goal_depths.max()


def _dragged_to(rig, keeper, grip, way, goal):
    """The pose in which a drag to a goal ends, and its distance from the goal in meters; restores the rig."""
    pin_only(rig, grip)
    drag = begin_drag(bpy.context, rig, grip.bone, point=grip.point, settings=DragSettings(root="FREE"))
    for location in way(drag.start, goal):
        drag.step(location)
    drag.finish(bpy.context)
    bpy.context.view_layer.update()
    bone, pose = rig.pose.bones[grip.bone], present(rig)
    error = np.linalg.norm(rig.matrix_world @ (bone.head if grip.point == "HEAD" else bone.tail) - Vector(goal))
    keeper.restore()
    return pose, error


def _unlike(pose, other):
    """The largest differences of a joint between two poses, in degrees and in meters."""
    degrees = np.degrees(angle_between(pose[0], other[0])).max()
    return degrees, np.linalg.norm(pose[1][:, :3, 3] - other[1][:, :3, 3], axis=1).max()


def measure_play():
    """A live rig with keyed targets: playing forward compared with other orders of the same frames."""
    rows, aims = [], []
    for bones in (("hand.L",), ("hand.L", "hand.R", "head")):
        rig = open_human()
        pin_only(rig, Path3("", "", ()))
        keeper, frames = Keeper(rig), range(1, FRAMES + 1)
        for seed, bone in enumerate(bones):
            _key_target(add_effector(bpy.context, rig, bone).target, seed)
        forward, _ = _played(rig, keeper, frames)
        jumps = {}
        for frame in frames[4::5]:
            jumps |= {frame: _played(rig, keeper, (1, frame))[0][frame]}
        orders = {
            "backward": _played(rig, keeper, frames[::-1]),
            "every second frame": _played(rig, keeper, frames[::2]),
        }
        orders["a jump from the first frame"] = jumps, None
        for order, (found, times) in orders.items():
            turned = np.array([_unlike(found[frame], forward[frame])[0] for frame in found])
            differ = 100.0 * np.mean(turned > SAME_PLAY)
            spent = (
                ("", "") if times is None else [f"{1000.0 * value:.1f}" for value in np.percentile(times, (50, 100))]
            )
            rows.append((len(bones), order, f"{differ:.0f} %", f"{turned.max():.2f}°", *spent))
            aims.append(
                Aim.at_most(
                    "Live frames played in another order: difference in rotation",
                    SAME_PLAY,
                    turned.max(),
                    "°",
                    case=f"{len(bones)} targets, {order}",
                )
            )
    header = (
        "targets", "against forward", f"frames that differ by more than {SAME_PLAY:g}°", "worst", "ms a frame, median",
        "most",
    )  # fmt: skip
    return Part(table(f"Feel: {FRAMES} frames of a live rig in other orders, feet pinned", header, rows), tuple(aims))


def _key_target(target, seed):
    """Move a target along a smooth closed loop, half a meter wide."""
    time, start = np.linspace(0.0, 2.0 * np.pi, FRAMES, endpoint=False), np.array(target.location)
    first, second = np.random.default_rng(seed).uniform(-0.25, 0.25, (2, 3))
    for frame, shift in enumerate(np.outer(np.sin(time), first) + np.outer(1.0 - np.cos(2.0 * time), 0.5 * second), 1):
        target.location = start + shift
        target.keyframe_insert("location", frame=frame)


def _played(rig, keeper, frames):
    """The poses on frames in the given order, and the seconds for each frame after the first one."""
    rig.fabrik.live = False
    keeper.restore()
    bpy.context.scene.frame_set(frames[0])
    rig.fabrik.live = True
    poses, seconds = {}, []
    for frame in frames:
        began = perf_counter()
        bpy.context.scene.frame_set(frame)
        seconds.append(perf_counter() - began)
        poses[frame] = present(rig)
    rig.fabrik.live = False
    return poses, seconds[1:]


def measure_cost():
    """One move of the mouse by 1 cm, and one by 20 cm."""
    rows, aims = [], []
    for name, make in {
        "hips": lambda: (open_human(), GRIPS["hips"]),
        "hand": lambda: (open_human(), GRIPS["hand.L"]),
        "hand, four pins": lambda: (open_human(), Path3("", "hand.L", (), pinned=(*FEET, "hand.R", "head"))),
        "tree of 60, limits, four pins": _limited_tree,
    }.items():
        rig, grip = make()
        keeper, directions = Keeper(rig), np.random.default_rng(3).normal(size=(MOVES, 3))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        spent = {size: [_one_move(rig, keeper, grip, size * way) for way in directions] for size in (0.01, 0.2)}
        figures = [f"{1000.0 * value:.1f}" for times in spent.values() for value in (np.median(times), max(times))]
        ratio = np.median(spent[0.2]) / np.median(spent[0.01])
        rows.append((name, *figures, f"{ratio:.1f}"))
        aims.append(Aim.at_most("Time of a move of 20 cm, relative to one of 1 cm", 4, ratio, "times", case=name))
    header = ("dragged", "1 cm: median ms", "most", "20 cm: median ms", "most", "ratio of medians")
    return Part(table(f"Feel: one move, {MOVES} directions", header, rows), tuple(aims))


def _limited_tree():
    case = cases.tree()
    scenes.make_active(case.armature)
    bpy.ops.object.mode_set(mode="POSE")
    return case.armature, Path3("", case.ends[1], (), pinned=tuple(end for end in case.ends if end != case.ends[1]))


def _one_move(rig, keeper, grip, shift):
    """Seconds from the mouse to posed bones, after a first small move that prepares the solvers."""
    pin_only(rig, grip)
    drag = begin_drag(bpy.context, rig, grip.bone, point=grip.point, settings=DragSettings(root="FREE"))
    drag.step(drag.start + 1e-3 * shift)
    bpy.context.view_layer.update()
    began = perf_counter()
    drag.step(drag.start + shift)
    bpy.context.view_layer.update()
    seconds = perf_counter() - began
    drag.cancel()
    keeper.restore()
    return seconds


# Meters by which the mouse jitters.
TREMBLES = np.tile([(1e-3, 0.0, 0.0), (0.0, 0.0, 0.0)], (6, 1))
# Degrees: a pose that rotates by less counts as unchanged.
UNMOVED = 1e-3
OUT_OF_REACH = {
    "hand": Path3("", "hand.L", ((1.1, -1.1, 0.5),)),
    "hips": Path3("", "hips", ((0.9, -0.9, 0.3),), point="HEAD"),
    "head": Path3("", "head", ((0.2, -1.4, 0.3),)),
}


def measure_out_of_reach():
    """The mouse moves beyond reach, then jitters by a millimeter."""
    rig, rows, aims = open_human(), [], []
    for name, path in OUT_OF_REACH.items():
        shifts = np.concatenate([path.out(), path.out()[-1] + TREMBLES])
        tracks = {}
        for balance, kind in BALANCES.items():
            rig.fabrik.balance = kind
            tracks[balance] = follow(rig, path, shifts, Dragged)
        solved = [_solved_errors(rig, path, shifts, track) for track in tracks.values()]
        best = np.min([*solved, *(track.errors for track in tracks.values())], axis=0)
        for balance, track in tracks.items():
            out = ~track.in_reach
            more = 1000.0 * (track.errors - best)[out]
            turned = track.turns[-len(TREMBLES) :].max(axis=1)
            rows.append(
                (name, balance, f"{1000.0 * track.errors[-1]:.0f}", f"{1000.0 * best[-1]:.0f}",
                 f"{np.median(more):.1f}", f"{more.max():.1f}", track.reversals(), f"{turned.max():.2f}°",
                 f"{(turned < UNMOVED).sum()} of {len(turned)}",
                 *(f"{1000.0 * value:.1f}" for value in np.percentile(track.seconds[out], (50, 99))))
            )  # fmt: skip
            case = f"{name}, balance {balance}"
            aims.append(Aim.at_most("Out of reach: steps that rotate a bone back", 0, track.reversals(), "", case=case))
            aims.append(
                Aim.at_most(
                    "Out of reach: distance from the target in addition to that of the best pose, median",
                    5,
                    np.median(more),
                    "mm",
                    case=case,
                )
            )
    header = (
        "dragged", "balance", "mm short at the end", "the best", "mm shorter than the best: median", "most",
        "turns back", "largest turn as it trembles", "trembles ignored", "ms a move, median", "99th percentile",
    )  # fmt: skip
    text = table("Feel: out of reach, in steps of 1 cm, feet pinned", header, rows)
    return Part(
        f"{text}\nThe best of both drags and of the solver, from rest and from the drags' poses.\n", tuple(aims)
    )


def _solved_errors(rig, path, shifts, track):
    """(N,) meters by which the solver, which has no balance, misses each step, from rest or from a drag's pose."""
    (tree,) = read_trees(rig)
    effectors = [Effector(name, rotation_weight=1.0) for name in path.pinned]
    effectors.append(Effector(path.bone, (0.0, 0.0, 0.0) if path.point == "HEAD" else None, priority=1))
    bones = [rig.pose.bones[effector.bone] for effector in effectors]
    points = [bone.tail for bone in bones[:-1]] + [bones[-1].head if path.point == "HEAD" else bones[-1].tail]
    targets = np.tile(points, (len(shifts), 1, 1))
    targets[:, -1] += shifts
    solve = partial(
        Solver(tree.skeleton, effectors, limits=read_limits(rig), root="FREE").solve,
        targets,
        target_rotations=np.tile([bone.matrix.to_quaternion() for bone in bones], (len(targets), 1, 1)),
    )
    places = [track.names.index(name) for name in tree.skeleton.names]
    locations = track.matrices[1:, places[0], :3, 3]
    found = solve(), solve(start=track.rotations[1:, places], start_location=locations)
    # Solutions that release a pin do not count.
    return np.min(
        [np.where(each.errors[:, :-1].max(axis=1) < MET, each.errors[:, -1], np.inf) for each in found], axis=0
    )


def measure_balance():
    """The goals that are missed although they are in reach with pinned feet and within the limits."""
    goals, rig, rows, aims = reachable_goals("anywhere"), open_human(), [], []
    keeper, way = Keeper(rig), lambda start, goal: _steps((start, goal), BALANCE_STEP)
    missed = {balance: [] for balance in BALANCES}
    for bone, points in goals.items():
        for goal in points:
            for balance, kind in BALANCES.items():
                rig.fabrik.balance = kind
                missed[balance].append(_dragged_to(rig, keeper, GRIPS[bone], way, goal)[1])
    for balance, errors in missed.items():
        shares = [100.0 * np.mean(np.array(errors) > least) for least in (MET, SEEN)]
        rows.append((balance, len(errors), *(f"{share:.0f} %" for share in shares)))
    lost = 100.0 * np.mean((np.array(missed["on"]) > MET) & (np.array(missed["off"]) <= MET))
    aims.append(Aim.at_most("Reachable goals missed because of balance", 4, lost, "%"))
    header = ("balance", "reachable goals", "missed by more than 1 mm", "by more than 3 cm")
    text = table("Feel: what balance costs in reach, feet pinned", header, rows)
    return Part(f"{text}\nTaken away by balance: {lost:.0f} %.\n", tuple(aims))
