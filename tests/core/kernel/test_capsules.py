"""Self-collision: distances of segments, the rows of pairs that are near, and drags without self-intersection."""

import numpy as np
import pytest
from core.test_drag import FEET, HAND, LIMITS, lead, person, skeleton, straight, turns
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fabrik_addon.core import Effector, forward_kinematics
from fabrik_addon.core.arrays import falloff, lengths
from fabrik_addon.core.drag import DragSolver
from fabrik_addon.core.edit import EditModel, EditSolver, KnownPose
from fabrik_addon.core.kernel.bodies import Bodies, joint_axes
from fabrik_addon.core.kernel.bounds import Capsule, Capsules, SelfCollision, closest, nearest
from fabrik_addon.core.kernel.posture import Masses
from fabrik_addon.core.rotations import angle_between, quaternion_from_rotation_vector

# Two capsules side by side on the trunk, and one on each part of the limbs.
CAPSULES = (
    Capsule("hips", (-0.05, 0.0, 0.0), (-0.05, 0.15, 0.0), 0.1),
    Capsule("hips", (0.05, 0.0, 0.0), (0.05, 0.15, 0.0), 0.1),
    Capsule("spine", (-0.05, 0.0, 0.0), (-0.05, 0.35, 0.0), 0.1),
    Capsule("spine", (0.05, 0.0, 0.0), (0.05, 0.35, 0.0), 0.1),
    *(Capsule(f"upper_arm.{side}", (0.0, 0.12, 0.0), (0.0, 0.28, 0.0), 0.04) for side in "LR"),
    *(Capsule(f"forearm.{side}", (0.0, 0.0, 0.0), (0.0, 0.21, 0.0), 0.04) for side in "LR"),
    *(Capsule(f"thigh.{side}", (0.0, 0.15, 0.0), (0.0, 0.42, 0.0), 0.06) for side in "LR"),
    *(Capsule(f"shin.{side}", (0.0, 0.0, 0.0), (0.0, 0.42, 0.0), 0.05) for side in "LR"),
)
JOINED = {("hips", "spine"), ("spine", "upper_arm"), ("upper_arm", "forearm"), ("hips", "thigh"), ("thigh", "shin")}
PAIRS = tuple(
    (one, two)
    for one in range(len(CAPSULES))
    for two in range(one + 1, len(CAPSULES))
    if CAPSULES[one].bone != CAPSULES[two].bone
    and tuple(CAPSULES[each].bone.partition(".")[0] for each in (one, two)) not in JOINED
)
COLLISION = SelfCollision(CAPSULES, PAIRS)
# A continued drag stays out of the body within a millimeter; the remaining error is corrected by the next moves.
DEPTH = 1e-3
points = hnp.arrays(np.float64, (2, 2, 3), elements=st.floats(-1.0, 1.0, width=32))


def brute_force(first, second, count=201):
    """The smallest distance between grid points on two segments (2, 3), and the largest error of that distance."""
    shares = np.linspace(0.0, 1.0, count)[:, None]
    one, two = first[0] + shares * (first[1] - first[0]), second[0] + shares * (second[1] - second[0])
    off = max(np.linalg.norm(first[1] - first[0]), np.linalg.norm(second[1] - second[0])) / (count - 1)
    return np.linalg.norm(one[:, None] - two, axis=-1).min(), off


@given(points)
def test_the_distance_of_segments_is_that_of_their_nearest_points(ends):
    first, second = ends
    (distance,), (one,), (two,) = closest(first[:, None], second[:, None])
    least, off = brute_force(first, second)
    assert least - off - 1e-6 <= distance <= least + 1e-6
    apart = first[0] + one * (first[1] - first[0]) - second[0] - two * (second[1] - second[0])
    assert distance == pytest.approx(np.linalg.norm(apart), abs=1e-6)


@given(points, st.floats(-2.0, 2.0))
def test_the_distance_of_parallel_segments_is_that_of_their_nearest_points(ends, factor):
    first, second = ends
    second = second[0] + np.array([[0.0, 0.0, 0.0], factor * (first[1] - first[0])])
    least, off = brute_force(first, second)
    (distance,), *_ = closest(first[:, None], second[:, None])
    assert least - off - 1e-6 <= distance <= least + 1e-6


@given(points)
def test_the_nearest_point_of_a_segment_is_at_right_angles_or_at_its_end(ends):
    (start, end), point = ends[0], ends[1, 0]
    (share,) = nearest(ends[0][:, None], point[None])
    least, _ = brute_force(ends[0], np.array([point, point]))
    assert np.linalg.norm(start + share * (end - start) - point) <= least + 1e-9


def body(local=None):
    """The bodies of the person, its capsules, and a pose in which both forearms are near the trunk and each other."""
    bones = skeleton()
    bodies = Bodies(bones, range(len(bones)), [joint_axes(LIMITS.get(name), 1.0) for name in bones.names], True)
    capsules = Capsules(bodies, COLLISION)
    capsules.carry(np.tile([1.0, 0.0, 0.0, 0.0], (len(bones), 1)), bones.rest[0, :3, 3])
    if local is None:
        vectors = np.zeros((len(bones), 3))
        vectors[[bones.index(f"upper_arm.{side}") for side in "LR"]] = (0.3, 0.2, -0.5), (0.2, 0.1, 0.6)
        vectors[[bones.index(f"forearm.{side}") for side in "LR"]] = (1.2, 0.0, 0.4), (1.4, 0.0, -0.2)
        vectors[bones.index("thigh.L")] = (-1.2, 0.2, 0.1)
        local = quaternion_from_rotation_vector(vectors)
    return bodies, capsules, bodies.pose(local, bones.rest[0, :3, 3])


def test_rows_are_the_derivatives_of_gaps():
    bodies, capsules, pose = body()
    rows = capsules.rows(pose, bodies.motions(pose), 10.0)
    assert len(rows.gaps) > len(PAIRS)
    size, steps = 1e-6, np.eye(bodies.columns)
    keys = rows.keys.tolist()
    for column, step in enumerate(steps):
        ends = []
        for sign in (1.0, -1.0):
            moved = bodies.pose(*bodies.moved(pose, sign * size * step))
            found = capsules.rows(moved, bodies.motions(moved), 10.0)
            gaps = dict(zip(found.keys.tolist(), found.gaps, strict=True))
            ends.append(np.array([gaps.get(key, np.nan) for key in keys]))
        slope = (ends[0] - ends[1]) / (2.0 * size)
        known = ~np.isnan(slope)
        assert known.mean() > 0.95
        assert -rows.rows[known, column] == pytest.approx(slope[known], abs=1e-4)


def test_the_forces_of_rows_are_their_transpose():
    """Forces at points that touch do the same work as multipliers of the rows."""
    bodies, capsules, pose = body()
    motions = bodies.motions(pose)
    rows = capsules.rows(pose, motions, 0.2)
    pushes = np.linspace(1.0, 2.0, len(rows.gaps))
    at, on, forces = capsules.contacts.forces(pushes)
    work = np.einsum("nx,nxd->d", forces, bodies.shifts(pose, motions, at, on))
    assert work == pytest.approx(-pushes @ rows.rows, abs=1e-12)


def deepest(solver, found):
    """The deepest overlap of capsules in each pose, in meters."""
    return deepest_of(solver.skeleton, [each.rotations for each in found], [each.root_location for each in found])


def deepest_of(bones, rotations, locations):
    """The deepest overlap in poses (N, J, 4) with roots (N, 3), in meters."""
    on, one, two = [bones.index(each.bone) for each in CAPSULES], *np.array(PAIRS).T
    radii = np.array([each.radius for each in CAPSULES])
    posed = forward_kinematics(bones, np.array(rotations), np.array(locations))[:, on]
    # (N, 2, C, 3) the ends of the capsules' axes.
    ends = np.array([[each.start for each in CAPSULES], [each.end for each in CAPSULES]])
    ends = np.einsum("ncij,ecj->neci", posed[..., :3, :3], ends) + posed[:, None, :, :3, 3]
    distances, *_ = closest(ends[:, :, one], ends[:, :, two])
    return (radii[one] + radii[two] - distances).max(axis=1).clip(min=0.0)


WAYS = {
    "into the belly": (-0.6, 0.05, -0.1),
    "across the chest": (-0.9, -0.1, 0.1),
    "through the back": (-0.9, 0.1, -0.1),
    "to the other arm": (-1.1, 0.0, 0.0),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_hand_does_not_go_into_the_body(way):
    shift = np.array(WAYS[way])
    solver, rest, at = person(collision=COLLISION)
    found = lead(solver, rest, at, straight(shift))
    assert deepest(solver, found).max() < DEPTH
    assert turns(found).max() < 12.0
    assert max(each.errors[FEET].max() for each in found) < 1e-5
    free, *_ = person()
    assert deepest(solver, lead(free, rest, at, straight(shift))).max() > 0.02


def test_a_hand_with_a_goal_inside_the_body_stops_at_the_surface():
    solver, _, at = person(collision=COLLISION)
    targets = at.copy()
    targets[HAND] = (0.03, 0.0, 1.25)
    for target in np.linspace(at[HAND], targets[HAND], 60):
        targets[HAND] = target
        solver.solve(targets)
    found = solver.solve(targets, settled=True)
    hand = solver.points(found.rotations, found.root_location)[HAND]
    assert deepest(solver, [found])[0] < 1e-5
    # The forearm's capsule ends beyond its tip: the tip is its radius above the trunk's surface.
    assert found.errors[HAND] < 0.2
    assert lengths(hand - targets[HAND]) == pytest.approx(found.errors[HAND])


def test_overlaps_at_the_start_become_no_deeper_and_nothing_jumps():
    solver, rest, at = person()
    inside = lead(solver, rest, at, straight(np.array((-0.55, 0.05, -0.1))))[-1]
    start = deepest(solver, [inside])[0]
    assert start > 0.02
    held, *_ = person(collision=COLLISION)
    held.prefer(inside.rotations, inside.root_location)
    held.begin(inside.rotations, inside.root_location)
    targets = held.points(inside.rotations, inside.root_location)
    still = held.solve(targets)
    assert turns([inside, still]).max() < 0.1
    still_feet = np.zeros((2, 3))
    found = [held.solve(targets + np.vstack([shift, still_feet])) for shift in straight(np.array((-0.2, 0.05, 0.0)))]
    assert deepest(held, found).max() < start + DEPTH
    assert turns([inside, *found]).max() < 12.0


def test_a_capsule_of_a_missing_bone_does_not_move():
    """The capsule is a pillar in front of the hand, in armature space."""
    pillar = Capsule("", (0.3, -0.5, 0.5), (0.3, -0.5, 2.0), 0.1)
    arm = Capsule("forearm.L", (0.0, 0.0, 0.0), (0.0, 0.21, 0.0), 0.04)
    solver, rest, at = person(collision=SelfCollision((pillar, arm), ((0, 1),)))
    found = lead(solver, rest, at, straight(np.array((-0.4, -0.5, 0.1))))
    bone, shares = solver.skeleton.index("forearm.L"), np.linspace(0.0, 0.21, 50)[:, None]
    for each in found:
        matrix = forward_kinematics(solver.skeleton, each.rotations, each.root_location)[bone]
        along = matrix[:3, 3] + shares * matrix[:3, 1]
        assert lengths(along[:, :2] - (0.3, -0.5)).min() > 0.14 - DEPTH


def test_rows_of_frames_are_those_of_each_pose():
    bones = skeleton()
    bodies, capsules, pose = body()
    random = np.random.default_rng(2)
    local = np.array([bodies.moved(pose, random.normal(0.0, 0.2, bodies.columns))[0] for _ in range(4)])
    roots = np.tile(bones.rest[0, :3, 3], (4, 1))
    many = bodies.pose(local, roots)
    rows, gaps = capsules.sides(many, bodies.motions(many), 0.3)
    for frame in range(4):
        single = bodies.pose(local[frame], roots[frame])
        found = capsules.rows(single, bodies.motions(single), 0.3)
        closest_ones = found.keys % 5 == 0
        near = np.isfinite(gaps[frame])
        assert gaps[frame][near] == pytest.approx(found.gaps[closest_ones])
        assert rows[frame][near] == pytest.approx(found.rows[closest_ones])


def test_frames_that_follow_a_dragged_one_keep_the_hand_out_of_the_body():
    """The hand goes to the other side through the belly, all frames at once, and no joint jumps."""
    bones, count = skeleton(), 41
    masses = Masses(np.full(len(bones), 0.1), np.full(len(bones), 0.5), np.ones(len(bones)))
    effectors = [Effector("forearm.L", priority=1), Effector("shin.L"), Effector("shin.R")]
    rotations = np.tile([1.0, 0.0, 0.0, 0.0], (count, len(bones), 1))
    roots = np.tile(bones.rest[0, :3, 3], (count, 1))
    shares = falloff(np.arange(float(count)), 20.0, 20.0, 20.0, 20.0)
    found = {}
    for name, collision in {"on": COLLISION, "off": None}.items():
        model = EditModel(bones, effectors, masses, LIMITS, bones.names, True, collision)
        solver = EditSolver(model, rotations, roots, shares)
        targets, turning = solver.own_points.copy(), np.full(solver.own_rotations.shape, np.nan)
        targets[:, 0] += shares[:, None] * (-0.9, 0.1, -0.1)
        drag = DragSolver(bones, effectors, masses, limits=LIMITS, root="FREE", collision=collision)
        drag.prefer(rotations[20], roots[20])
        drag.begin(*drag.preferred)
        pose = drag.solve(targets[20], settled=True)
        known = KnownPose(20, pose.rotations, pose.root_location)
        found[name] = solver.over_time(targets, turning, np.arange(float(count)), 20.0, known)
        assert angle_between(found[name].rotations[20], known.rotations).max() < 1e-3
    depths = {name: deepest_of(bones, poses.rotations, poses.roots) for name, poses in found.items()}
    assert depths["off"].max() > 0.02
    assert depths["on"].max() < DEPTH
    assert found["on"].errors[:, 1:].max() < 1e-3
    turned = np.degrees(angle_between(found["on"].rotations[1:], found["on"].rotations[:-1]).max(axis=1))
    assert np.abs(np.diff(turned)).max() < 5.0
