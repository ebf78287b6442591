"""Capsules of a person: near the skin of the sample person, and the same on other rigs."""

import numpy as np
import pytest
from support.humans import human, rest_bones

from fabrik_addon.core.kernel.bounds import closest
from fabrik_addon.human.capsules import self_collision, skin_points
from fabrik_addon.human.rest_body import RestBody, floor_points


def in_armature(bones, capsule):
    bone = bones[capsule.bone]
    return bone.head + np.array([capsule.start, capsule.end]) @ bone.axes.T


def gaps(bones, found):
    placed = [in_armature(bones, each) for each in found.capsules]
    result = {}
    for one, two in found.pairs:
        (apart,), *_ = closest(placed[one][:, None], placed[two][:, None])
        result[one, two] = apart - found.capsules[one].radius - found.capsules[two].radius
    return result


@pytest.mark.parametrize("arms", [0.0, 45.0, 80.0])
def test_nothing_overlaps_at_rest(arms):
    bones = rest_bones(human(arms=arms))
    found = self_collision(bones, {})
    assert min(gaps(bones, found).values()) > 0.0
    names = {(found.capsules[one].bone, found.capsules[two].bone) for one, two in found.pairs}
    assert {("chest", "hand.L"), ("hips", "forearm.R")} <= names or {("hand.L", "chest")} <= names
    assert not any({one, two} == {"upper_arm.L", "forearm.L"} or {one, two} == {"hips", "chest"} for one, two in names)


def test_both_sides_are_mirrored():
    bones = rest_bones(human(arms=45.0))
    found = {each.bone: (in_armature(bones, each), each.radius) for each in self_collision(bones, {}).capsules}
    for bone, (ends, radius) in found.items():
        if bone.endswith(".L"):
            other, as_wide = found[bone[:-1] + "R"]
            assert other == pytest.approx(ends * (-1.0, 1.0, 1.0), abs=1e-9)
            assert as_wide == pytest.approx(radius)


def test_capsules_do_not_depend_on_the_unit():
    rows = human(arms=45.0)
    small = self_collision(rest_bones(rows), {})
    bones = rest_bones(rows)
    large = {
        name: type(bone)(bone.parent, 100.0 * bone.head, bone.axes, 100.0 * bone.length) for name, bone in bones.items()
    }
    found = self_collision(large, {})
    assert found.pairs == small.pairs
    assert [each.radius for each in found.capsules] == pytest.approx([100.0 * each.radius for each in small.capsules])


def test_an_oval_trunk_and_round_limbs_are_fitted():
    """Vertices on a cylinder about the forearm and on an oval about the chest, both off their bones."""
    bones = rest_bones(human(arms=45.0))
    random = np.random.default_rng(0)
    angle, share = random.uniform(0.0, 2.0 * np.pi, (2, 4000))
    share /= 2.0 * np.pi
    forearm, chest = bones["forearm.L"], bones["chest"]
    around = 0.05 * (np.cos(angle)[:, None] * forearm.axes[:, 0] + np.sin(angle)[:, None] * forearm.axes[:, 2])
    off = 0.01 * forearm.axes[:, 2]
    arm = forearm.head + off + around + share[:, None] * forearm.length * forearm.axes[:, 1]
    oval = np.stack([0.16 * np.cos(angle), 0.11 * np.sin(angle) - 0.02, 0.2 * share], axis=1) + chest.head
    found = self_collision(bones, {"forearm.L": arm, "chest": oval})
    by_bone = {}
    for each in found.capsules:
        by_bone.setdefault(each.bone, []).append(each)
    (on_arm,) = by_bone["forearm.L"]
    assert on_arm.radius == pytest.approx(0.05, abs=1e-3)
    assert in_armature(bones, on_arm)[0] == pytest.approx(forearm.head + off, abs=2e-3)
    left, right = by_bone["chest"]
    middles = [in_armature(bones, each).mean(axis=0) for each in (left, right)]
    # 95 % of the oval's half axes, the percentile that is used.
    assert middles[0][0] + left.radius == pytest.approx(0.95 * 0.16, abs=4e-3)
    assert left.radius == pytest.approx(0.95 * 0.11, abs=4e-3)
    assert np.mean(middles, axis=0)[1] == pytest.approx(chest.head[1] - 0.02, abs=4e-3)


def test_a_skirt_widens_a_thigh_only_a_little():
    bones = rest_bones(human(arms=45.0))
    angle = np.linspace(0.0, 2.0 * np.pi, 500)
    thigh = bones["thigh.L"]
    skirt = thigh.head + np.stack([np.cos(angle), np.sin(angle), -0.25 + 0.1 * np.sin(9.0 * angle)], axis=1)
    bare, _ = [each for each in self_collision(bones, {}).capsules if each.bone == "thigh.L"]
    clad, _ = [each for each in self_collision(bones, {"thigh.L": skirt}).capsules if each.bone == "thigh.L"]
    assert clad.radius == pytest.approx(1.6 * bare.radius)


def test_outermost_vertices_stay_above_the_floor_and_a_skirt_does_not():
    bones = rest_bones(human(arms=45.0))
    foot, thigh = bones["foot.L"], bones["thigh.L"]
    around = np.random.default_rng(3).normal(size=(400, 3))
    around /= np.linalg.norm(around, axis=1)[:, None]
    skirt = thigh.head + 0.5 * around / np.linalg.norm(around[:, :2], axis=1)[:, None] * (1.0, 1.0, 0.0)
    skin = {"foot.L": foot.head + around * 0.06, "thigh.L": np.concatenate([skirt, thigh.head + around * 0.08])}
    found = skin_points(bones, skin, self_collision(bones, {}))
    for bone, radius in (("foot.L", 0.06), ("thigh.L", 0.08)):
        places = np.array([place for name, place, _ in found if name == bone])
        assert np.linalg.norm(places, axis=1) == pytest.approx(radius)
        lowest = (skin[bone][-400:] - bones[bone].head) @ bones[bone].axes @ around.T
        assert np.abs(lowest.max(axis=0) - (places @ around.T).max(axis=0)).max() < 1e-3


def test_parts_without_vertices_have_their_capsules_at_the_floor():
    bones = rest_bones(human(arms=45.0))
    found = self_collision(bones, {})
    points = skin_points(bones, {}, found)
    for each in found.capsules:
        if not each.bone.startswith(("finger", "f_", "middle")):
            ends = [each.start] if each.bone.startswith("foot") else [each.start, each.end]
            assert {(each.bone, end, each.radius) for end in ends} <= set(points)
    assert skin_points(bones, {}, None) == ()


def test_a_rig_that_is_not_a_human_has_none():
    bones = {name: bone for name, bone in rest_bones(human()).items() if not name.startswith("thigh")}
    assert self_collision(bones, {}) is None


def test_what_is_in_front_of_the_ball_of_a_foot_stays_above_the_floor_with_the_toes():
    bones = rest_bones(human(arms=45.0))
    foot, toe = bones["foot.L"], bones["toe.L"]
    along = np.linspace(0.0, 1.0, 40)[:, None]
    skin = {"foot.L": foot.head + along * (toe.head + toe.axes[:, 1] * toe.length - foot.head)}
    collision = self_collision(bones, {})
    for vertices in ({}, skin):
        points = [*floor_points(RestBody(bones)), *(each[:2] for each in skin_points(bones, vertices, collision))]
        ends = [place[1] for name, place in points if name == "foot.L"]
        assert len(ends) >= 3
        assert max(ends) <= foot.length + 1e-9
        sole = [foot.axes @ place + foot.head for name, place in points if name == "foot.L"]
        assert max((place - toe.head) @ (0.0, -1.0, 0.0) for place in sole if place[2] < toe.head[2]) <= 0.0
