"""Poses of a small person that move the least mass: goals, priorities, limits, the floor and balance."""

from dataclasses import replace

import numpy as np
import pytest

from fabrik_addon.core import Ball, Effector, Hinge, Skeleton, forward_kinematics
from fabrik_addon.core.drag import DragSolver
from fabrik_addon.core.kernel.bounds import Capsule, Floor, SelfCollision, Support
from fabrik_addon.core.kernel.posture import Masses
from fabrik_addon.core.kernel.relaxed import HangFrom
from fabrik_addon.core.rotations import angle_between, quaternion_from_matrix

# Name, parent, head, tail. Limbs are bent a little, knees to the front (-Y) and elbows to the back.
ROWS = (
    ("hips", -1, (0, 0, 0.95), (0, 0, 1.1)),
    ("spine", 0, (0, 0, 1.1), (0, 0.01, 1.45)),
    ("upper_arm.L", 1, (0.18, 0, 1.4), (0.42, 0.03, 1.25)),
    ("forearm.L", 2, (0.42, 0.03, 1.25), (0.62, -0.02, 1.1)),
    ("upper_arm.R", 1, (-0.18, 0, 1.4), (-0.42, 0.03, 1.25)),
    ("forearm.R", 4, (-0.42, 0.03, 1.25), (-0.62, -0.02, 1.1)),
    ("thigh.L", 0, (0.09, 0, 0.92), (0.09, -0.03, 0.5)),
    ("shin.L", 6, (0.09, -0.03, 0.5), (0.09, 0, 0.08)),
    ("thigh.R", 0, (-0.09, 0, 0.92), (-0.09, -0.03, 0.5)),
    ("shin.R", 8, (-0.09, -0.03, 0.5), (-0.09, 0, 0.08)),
)
WEIGHTS = (8, 12, 1.0, 0.8, 1.0, 0.8, 5, 2.5, 5, 2.5)
LIMITS = {
    "spine": Ball(0.8, (-0.6, 0.6)),
    **{f"{bone}.{side}": Ball(2.0) for bone in ("upper_arm", "thigh") for side in "LR"},
    **{f"shin.{side}": Hinge("X", -0.1, 2.5) for side in "LR"},
}
HAND, FEET = 0, slice(1, 3)
STEP = 0.01


def skeleton():
    rest = np.tile(np.eye(4), (len(ROWS), 1, 1))
    for row, (_, _, head, tail) in enumerate(ROWS):
        y = np.subtract(tail, head) / np.linalg.norm(np.subtract(tail, head))
        x = np.array([1.0, 0.0, 0.0]) - y[0] * y
        x /= np.linalg.norm(x)
        rest[row, :3, :3], rest[row, :3, 3] = np.stack([x, y, np.cross(x, y)], axis=1), head
    lengths = [np.linalg.norm(np.subtract(tail, head)) for _, _, head, tail in ROWS]
    return Skeleton([row[0] for row in ROWS], [row[1] for row in ROWS], rest, lengths)


def person(stiff=None, limits=LIMITS, hand="forearm.L", foot_weight=0.0, **options):
    """A solver whose first effector is a hand, and whose feet have priority over it; its rest pose and its points.

    foot_weight: of the rotations of the feet.
    """
    bones = skeleton()
    factors = np.ones(len(bones))
    for name, factor in (stiff or {}).items():
        factors[bones.index(name)] = factor
    masses = Masses(np.array(WEIGHTS) / sum(WEIGHTS), np.full(len(bones), 0.5), factors)
    feet = [Effector(f"shin.{side}", rotation_weight=foot_weight) for side in "LR"]
    effectors = [Effector(hand, priority=1), *feet]
    solver = DragSolver(bones, effectors, masses, limits=limits, root="FREE", **options)
    rest = np.tile([1.0, 0.0, 0.0, 0.0], (len(bones), 1))
    return solver, rest, solver.points(rest, bones.rest[0, :3, 3])


def lead(solver, rest, points, way, **options):
    """The poses along a path (N, 3) of shifts of the hand."""
    solver.begin(rest, solver.skeleton.rest[0, :3, 3])
    found = []
    for shift in way:
        targets = points.copy()
        targets[HAND] += shift
        found.append(solver.solve(targets, **options))
    return found


def straight(shift, step=STEP):
    """(N, 3) a straight path, a centimeter a step."""
    count = int(np.ceil(np.linalg.norm(shift) / step))
    return np.outer(np.arange(1, count + 1) / count, shift)


def turns(found):
    """(N - 1,) the largest rotation of a bone from pose to pose, in degrees."""
    poses = np.array([each.rotations for each in found])
    return np.degrees(angle_between(poses[1:], poses[:-1]).max(axis=1))


@pytest.mark.parametrize("shift", [(-0.5, -0.4, 0.0), (0.0, 0.1, 0.6), (-0.6, -0.35, -0.7)])
def test_within_reach_drags_are_exact_and_smooth(shift):
    solver, rest, points = person()
    found = lead(solver, rest, points, straight(np.array(shift)))
    assert max(each.errors.max() for each in found) < 1e-5
    assert turns(found).max() < 8.0


def test_a_single_step_settles_in_the_same_pose_as_many():
    """A hand that jumps by half a meter is there after one solve, in the pose that many small moves lead to."""
    shift = np.array((-0.5, -0.6, 0.1))
    solver, rest, points = person()
    slowly = lead(solver, rest, points, straight(shift))[-1]
    targets = points.copy()
    targets[HAND] += shift
    solver.prefer(rest, solver.skeleton.rest[0, :3, 3])
    solver.begin(rest, solver.skeleton.rest[0, :3, 3])
    found = solver.solve(targets, settled=True)
    assert found.errors.max() < 1e-4
    assert np.degrees(angle_between(found.rotations, slowly.rotations).max()) < 3.0


def test_a_drag_there_and_back_ends_where_it_began():
    solver, rest, points = person()
    out = straight(np.array((-0.5, -0.4, -0.5)))
    last = lead(solver, rest, points, np.concatenate([out, out[-2::-1], np.zeros((3, 3))]))[-1]
    assert np.degrees(angle_between(last.rotations, rest).max()) < 0.1


def test_out_of_reach_feet_stay_and_the_body_does_not_jerk():
    """The goal is half a meter too far, then moves on by centimeters. Feet stay, and the body moves little."""
    solver, rest, points = person()
    found = lead(solver, rest, points, straight(np.array((1.5, -1.0, 0.3))))
    assert found[-1].errors[HAND] > 0.2
    assert max(each.errors[FEET].max() for each in found) < 1e-4
    assert turns(found)[-20:].max() < 3.0


def farthest_steps(solver, found):
    """(N - 1,) the largest distance that a joint or the middle of a bone moves from pose to pose, in meters."""
    poses = np.array([forward_kinematics(solver.skeleton, each.rotations, each.root_location) for each in found])
    joints = poses[..., :3, 3]
    both = np.concatenate([joints, joints + 0.5 * solver.skeleton.lengths[:, None] * poses[..., :3, 1]], axis=1)
    return np.linalg.norm(np.diff(both, axis=0), axis=2).max(axis=1)


def test_easing_slows_bones_down_and_does_not_change_the_result():
    """When a hand is led out of reach, a nearly stretched body moves farther than the hand."""
    way, found = straight(np.array((0.3, -1.5, 0.3))), {}
    for eased in (False, True):
        solver, rest, points = person()
        found[eased] = lead(solver, rest, points, way, eased=eased)
    assert farthest_steps(solver, found[False]).max() > 5.0 * STEP
    assert farthest_steps(solver, found[True]).max() < 4.2 * STEP
    assert any(each.is_held_back for each in found[True])
    assert found[True][-1].errors == pytest.approx(found[False][-1].errors, abs=1e-3)


def test_a_drag_settles_in_the_nearest_pose():
    """The hand of a stretched body is on the line to a far target; no small rotation of a joint brings it nearer."""
    solver, rest, points = person()
    far = np.concatenate([straight(np.array((1.5, -1.0, 0.3))), np.tile([[1.5, -1.0, 0.3]], (8, 1))])
    pose = lead(solver, rest, points, far)[-1]
    error = pose.errors[HAND]
    targets = points.copy()
    targets[HAND] += far[-1]
    random = np.random.default_rng(2)
    for _ in range(12):
        start = pose.rotations + 0.02 * random.normal(size=pose.rotations.shape)
        start /= np.linalg.norm(start, axis=1, keepdims=True)
        solver.begin(start, pose.root_location)
        other = solver.solve(targets)
        assert other.errors[HAND] > error - 2e-3


def test_a_limited_body_comes_to_rest_in_a_few_steps():
    """Fixed: forces of pins were larger than the stiffness along them. The first target took more than 60 steps."""
    limits = {
        "spine": Ball(0.3, (-0.2, 0.2)),
        **{f"upper_arm.{side}": Ball(1.0) for side in "LR"},
        **{f"forearm.{side}": Hinge("X", -2.0, 0.5) for side in "LR"},
        **{f"thigh.{side}": Ball([0.4, 1.0, 0.4, 0.4], (-0.3, 0.3)) for side in "LR"},
        **{f"shin.{side}": Hinge("X", -0.1, 1.5) for side in "LR"},
    }
    for shift in ((-0.15, 0.79, 0.25), (0.64, 1.51, 0.61), (-0.9, -0.7, 1.0)):
        solver, _, points = person(limits=limits, foot_weight=1.0)
        points[HAND] += shift
        turns = np.tile(np.nan, (3, 4))
        turns[FEET] = quaternion_from_matrix(solver.skeleton.rest[[7, 9], :3, :3])
        found = solver.solve_from_preferred(points, turns)
        assert not found.is_held_back
        assert found.steps <= 40


def test_only_the_arm_moves_for_a_near_target():
    """An arm has little mass, so the hips do not move. With the least rotation, the body would tilt."""
    solver, rest, points = person()
    pose = lead(solver, rest, points, straight(np.array((-0.3, -0.3, 0.1))))[-1]
    assert np.linalg.norm(pose.root_location - solver.skeleton.rest[0, :3, 3]) < 0.01


def test_limits_hold():
    solver, rest, points = person()
    pose = lead(solver, rest, points, straight(np.array((-0.6, -0.35, -0.7))))[-1]
    spine = solver.skeleton.index("spine")
    assert angle_between(pose.rotations[spine], rest[spine]) <= 0.8 + 0.6
    shins = [solver.skeleton.index(name) for name in ("shin.L", "shin.R")]
    assert (2.0 * np.arctan2(pose.rotations[shins, 1], pose.rotations[shins, 0]) > -0.1 - 1e-9).all()


def test_stiff_bones_rotate_less_and_rigid_ones_not_at_all():
    way, turned = straight(np.array((-0.5, -0.6, 0.0))), []
    for factor in (1.0, 100.0, np.inf):
        solver, rest, points = person({"spine": factor})
        pose = lead(solver, rest, points, way)[-1]
        spine = solver.skeleton.index("spine")
        turned.append(float(angle_between(pose.rotations[spine], rest[spine])))
    assert turned[1] < 0.5 * turned[0]
    assert turned[2] == 0.0


def test_bones_with_stiff_joints_rotate_less():
    """A stiff bone has the same mass, but rotating it costs more."""
    way, turned = straight(np.array((-0.5, -0.6, 0.0))), []
    for factor in (1.0, 30.0):
        solver, rest, points = person()
        bending = np.ones(len(rest))
        spine = solver.skeleton.index("spine")
        bending[spine] = factor
        harder = DragSolver(
            solver.skeleton,
            [Effector("forearm.L", priority=1), Effector("shin.L"), Effector("shin.R")],
            replace(solver.masses, bending=bending),
            limits=LIMITS,
            root="FREE",
        )
        turned.append(float(angle_between(lead(harder, rest, points, way)[-1].rotations[spine], rest[spine])))
    assert turned[1] < 0.6 * turned[0]


@pytest.mark.parametrize("shift", [(0.0, 0.15, 0.0), (0.0, -0.15, 0.0), (0.15, 0.0, 0.0)])
def test_a_dragged_leg_bends_like_a_relaxed_one(shift):
    """The bend is proportional to the movement of its target, and zero at the start."""
    bones, bent = skeleton(), []
    eased = np.array([1.5 * name.startswith("shin") for name in bones.names])
    for each in (None, eased):
        masses = Masses(np.array(WEIGHTS) / sum(WEIGHTS), np.full(len(bones), 0.5), np.ones(len(bones)), eased=each)
        effectors = [Effector("shin.L", priority=1), Effector("shin.R")]
        solver = DragSolver(bones, effectors, masses, limits=LIMITS, root="FREE")
        rest, points = solver.rotations, solver.points(solver.rotations, solver.location)
        out = straight(np.array(shift))
        found = lead(solver, rest, points, np.concatenate([out, out[-2::-1], np.zeros((3, 3))]))
        assert max(pose.errors.max() for pose in found) < 1e-5
        assert np.degrees(angle_between(found[-1].rotations, rest).max()) < 0.1
        w, x = found[len(out) - 1].rotations[bones.index("shin.L"), :2]
        bent.append(np.degrees(2.0 * np.arctan2(x, w)))
    assert bent[1] > bent[0] + 10.0


def test_a_limb_is_dragged_straight_and_back():
    """A nearly straight arm points at its goal, where the Jacobian shows no way to shorten it."""
    solver, rest, points = person()
    arm = points[HAND] - solver.skeleton.rest[solver.skeleton.index("upper_arm.L"), :3, 3]
    out = straight(0.12 * arm / np.linalg.norm(arm))
    found = lead(solver, rest, points, np.concatenate([out, out[-2::-1], np.zeros((1, 3))]))
    assert max(each.errors.max() for each in found) < 1e-5
    assert np.degrees(angle_between(found[-1].rotations, rest).max()) < 0.1


def test_left_and_right_give_mirrored_poses():
    """If the right hand follows the mirrored path, the joints are mirrored."""
    shift = np.array((-0.4, -0.5, -0.3))
    solver, rest, points = person()
    left = lead(solver, rest, points, straight(shift))[-1]
    other, rest, points = person(hand="forearm.R")
    right = lead(other, rest, points, straight(shift * (-1.0, 1.0, 1.0)))[-1]
    names = [row[0] for row in ROWS]
    flipped = [
        names.index(name[:-1] + {"L": "R", "R": "L"}[name[-1]] if name[-2:] in {".L", ".R"} else name) for name in names
    ]
    own, mirror = (
        forward_kinematics(solver.skeleton, each.rotations, each.root_location)[:, :3, 3] for each in (left, right)
    )
    assert own == pytest.approx(mirror[flipped] * (-1.0, 1.0, 1.0), abs=1e-4)


def test_a_hand_does_not_go_through_the_floor():
    tip = (0.0, float(skeleton().lengths[3]), 0.0)
    floor = Floor((("forearm.L", tip),), (0.0, 0.0, 1.0), 0.4)
    solver, rest, points = person(floor=floor)
    found = lead(solver, rest, points, straight(np.array((-0.4, -0.4, -0.9))))
    heights = [solver.points(each.rotations, each.root_location)[HAND, 2] for each in found]
    assert min(heights) > 0.4 - 1e-3
    assert heights[-1] == pytest.approx(0.4, abs=5e-3)


def center_of_mass(solver, pose):
    away = solver.posture.away(solver.bodies.pose(pose.rotations[solver.bodies.bones], pose.root_location))
    return solver.posture.center_of_mass(away)


def test_balance_keeps_the_center_of_mass_over_the_feet_as_far_as_goals_allow():
    """A far reach forward takes the center of mass past the toes. With a support it stays over them."""
    corners = np.array([(-0.15, -0.05, 0.0), (0.15, -0.05, 0.0), (0.15, 0.1, 0.0), (-0.15, 0.1, 0.0)])
    way, ahead = straight(np.array((-0.5, -0.8, -0.3)), 0.04), []
    for support in (None, Support(corners, (0.0, 0.0, 1.0))):
        solver, rest, points = person(support=support)
        pose = lead(solver, rest, points, way, settled=True)[-1]
        assert pose.errors.max() < 1e-5
        ahead.append(-center_of_mass(solver, pose)[1])
    assert ahead[0] > 0.1
    assert ahead[1] < 0.06


@pytest.mark.parametrize("shift", [(1.5, -1.0, 0.3), (-0.5, -2.2, 0.0)])
def test_balance_is_lost_before_a_goal_is_missed(shift):
    """Out of reach the hand gets as near as without balance."""
    corners, errors = np.array([(-0.15, -0.05, 0.0), (0.15, -0.05, 0.0), (0.15, 0.1, 0.0), (-0.15, 0.1, 0.0)]), []
    for support in (None, Support(corners, (0.0, 0.0, 1.0))):
        solver, rest, points = person(support=support)
        errors.append(lead(solver, rest, points, straight(np.array(shift), 0.04))[-1].errors[HAND])
    assert errors[0] > 0.1
    assert errors[1] < errors[0] + 5e-3


def test_hips_move_back_as_the_body_bends_down():
    """The support is wide enough for a hand before the feet, yet the center of mass stays nearer to its middle."""
    corners = np.array([(-0.3, -0.5, 0.0), (0.3, -0.5, 0.0), (0.3, 0.3, 0.0), (-0.3, 0.3, 0.0)])
    way, hips, middle = straight(np.array((-0.4, -0.6, -0.9))), [], []
    for support in (None, Support(corners, (0.0, 0.0, 1.0))):
        solver, rest, points = person(support=support)
        pose = lead(solver, rest, points, way)[-1]
        assert pose.errors.max() < 1e-5
        hips.append(pose.root_location[1])
        middle.append(center_of_mass(solver, pose)[1])
    assert hips[1] > hips[0]
    assert middle[0] < middle[1] < 0.0


@pytest.mark.parametrize("shift", [(-0.5, -0.4, 0.0), (0.0, 0.1, 0.6), (-0.6, -0.35, -0.7)])
def test_the_pose_does_not_depend_on_the_path_to_the_goal(shift):
    """After a straight path, a detour and a jump, the poses are the same once the joints rest."""
    solver, rest, points = person()
    goal, detour = np.array(shift), np.array((0.1, -0.3, 0.2))
    paths = (straight(goal), np.concatenate([straight(detour), detour + straight(goal - detour)]), goal[None])
    found = []
    for path in paths:
        lead(solver, rest, points, path)
        targets = points.copy()
        targets[HAND] += goal
        found.append(solver.solve(targets, settled=True))
    assert max(each.errors.max() for each in found) < 1e-5
    for other in found[1:]:
        assert np.degrees(angle_between(other.rotations, found[0].rotations).max()) < 0.1


def test_a_goal_out_of_reach_moves_no_other_off_its_target():
    """Two hands of the same priority: one is pulled far out of reach, the other stays at its target."""
    bones = skeleton()
    masses = Masses(np.array(WEIGHTS) / sum(WEIGHTS), np.full(len(bones), 0.5), np.ones(len(bones)))
    effectors = [Effector("forearm.L", priority=1), Effector("forearm.R", priority=1), Effector("shin.L")]
    solver = DragSolver(bones, effectors, masses, limits=LIMITS, root="FREE")
    targets = solver.points(solver.rotations, solver.location)
    targets[0] += (3.0, 0.0, 0.5)
    found = solver.solve(targets, settled=True)
    assert found.errors[0] > 1.0
    assert found.errors[1:].max() < 1e-4


def test_a_lock_holds_and_other_joints_compensate():
    """The spine may rotate about one axis alone; the hand still reaches its target."""
    bones = skeleton()
    spine = bones.index("spine")

    def about_x(rotation):
        kept = np.array([rotation[0], rotation[1], 0.0, 0.0])
        return kept / np.linalg.norm(kept)

    solver, rest, points = person()
    solver.lock({spine: about_x})
    found = lead(solver, rest, points, straight(np.array((-0.5, -0.6, -0.3))))
    assert max(each.errors.max() for each in found) < 1e-4
    assert np.abs([each.rotations[spine, 2:] for each in found]).max() < 1e-12
    assert abs(found[-1].rotations[spine, 1]) > 0.01


@pytest.mark.parametrize("shift", [(-0.5, -0.8, -0.3), (1.5, -1.0, 0.3), (-0.5, -0.7, -1.1)])
def test_the_unit_of_length_does_not_matter(shift):
    """This is tested in reach, out of reach and at the floor, with balance, self-collision and hanging limbs."""
    corners, found = np.array([(-0.15, -0.1, 0.0), (0.1, -0.1, 0.0), (0.1, 0.1, 0.0), (-0.15, 0.1, 0.0)]), []
    hanging, eased = np.zeros((2, len(ROWS)))
    hanging[2:], eased[[2, 4]], eased[[7, 9]] = 1.0, 0.5, 1.0
    for size in (1.0, 0.01, 100.0):
        bones = skeleton()
        rest = bones.rest.copy()
        rest[:, :3, 3] *= size
        scaled = Skeleton(bones.names, bones.parents, rest, bones.lengths * size)
        masses = Masses(
            np.array(WEIGHTS) / sum(WEIGHTS), np.full(len(bones), 0.5), np.ones(len(bones)), None, hanging, eased
        )
        ends = [("forearm.L", 0.35), ("spine", 0.35)]
        capsules = tuple(Capsule(name, (0.0, 0.0, 0.0), (0.0, size * end, 0.0), 0.08 * size) for name, end in ends)
        effectors = [Effector("forearm.L", priority=1), Effector("shin.R")]
        solver = DragSolver(
            scaled,
            effectors,
            masses,
            limits=LIMITS,
            root="FREE",
            floor=Floor((("forearm.L", (0.0, 0.25 * size, 0.0)),), (0.0, 0.0, 1.0), 0.2 * size),
            support=Support(size * corners, (0.0, 0.0, 1.0)),
            hang_from=HangFrom(
                np.tile([1.0, 0.0, 0.0, 0.0], (len(bones), 1)), rest[0, :3, 3], np.array((0.0, 0.0, 1.0))
            ),
            collision=SelfCollision(capsules, ((0, 1),)),
        )
        start = solver.points(solver.rotations, solver.location)
        for way in straight(np.array(shift), 0.04):
            targets = start.copy()
            targets[HAND] += size * way
            pose = solver.solve(targets)
        found.append(pose.rotations)
    assert np.degrees(angle_between(np.array(found[1:]), found[0]).max()) < 1e-4


class TestHolding:
    """The constraint that keeps a body from its targets."""

    def held(self, shift, **options):
        """The constraint that keeps a hand from its target far away, and the hand's error."""
        solver, rest, points = person(**options)
        solver.begin(rest, skeleton().rest[0, :3, 3])
        targets = points.copy()
        targets[HAND] += shift
        return solver.blocking_constraint, solver.solve(targets, settled=True).errors[HAND]

    def arm(self, **options):
        """A solver for a hand, with a fixed root."""
        bones = skeleton()
        masses = Masses(np.array(WEIGHTS) / sum(WEIGHTS), np.full(len(bones), 0.5), np.ones(len(bones)))
        return DragSolver(bones, [Effector("forearm.L")], masses, **options)

    def test_no_constraint_blocks_targets_within_reach(self):
        blocking, error = self.held((0.1, -0.2, 0.1))
        assert error < 1e-4
        assert blocking() is None

    def test_held_feet_stay(self):
        blocking, error = self.held((0.0, 0.0, 1.5), limits={})
        assert error > 0.1
        assert blocking().kind == "GOAL"
        assert blocking().bone in {"shin.L", "shin.R"}

    def test_without_the_blocking_limit_the_hand_gets_nearer(self):
        limits = {"spine": Ball(0.05), "upper_arm.L": Ball(0.1), "forearm.L": Hinge("X", -0.05, 0.05)}
        solver = self.arm(limits=limits, still=["hips"])
        error = solver.solve([[0.3, -0.4, 1.4]], settled=True).errors[0]
        kind, bone, _ = solver.blocking_constraint()
        assert kind == "LIMIT"
        del limits[bone]
        assert self.arm(limits=limits, still=["hips"]).solve([[0.3, -0.4, 1.4]], settled=True).errors[0] < 0.8 * error

    def test_the_floor(self):
        floor = Floor((("forearm.L", (0.0, 0.3, 0.0)),), (0.0, 0.0, 1.0), 0.0)
        blocking, _ = self.held((0.0, -0.2, -1.5), floor=floor)
        assert blocking() == ("FLOOR", "forearm.L", "")

    def test_capsules(self):
        capsules = (
            Capsule("spine", (0.0, 0.0, 0.0), (0.0, 0.3, 0.0), 0.1),
            Capsule("forearm.L", (0.0, 0.0, 0.0), (0.0, 0.25, 0.0), 0.03),
        )
        solver = self.arm(collision=SelfCollision(capsules, ((0, 1),)), still=["hips", "spine"])
        solver.solve([[0.0, 0.0, 1.3]], settled=True)
        assert solver.blocking_constraint() == ("BODY", "spine", "forearm.L")

    def test_the_lengths_of_bones(self):
        solver = self.arm()
        found = solver.solve_from_preferred([[3.0, 0.0, 1.2]], try_passes=True)
        assert found.errors[0] > 1.0
        assert solver.blocking_constraint().kind == "REACH"
