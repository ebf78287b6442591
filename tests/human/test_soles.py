"""The points of a human's bones that touch the floor."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support import humans

from fabrik_addon.human.rest_body import RestBody, RestBone, convex_hull, floor_points, soles_of


@pytest.fixture
def bones():
    return humans.rest_bones(humans.human(fingers=False))


def places(bones, points):
    """(N, 3) positions of the soles' points, armature space."""
    return np.array([bones[name].head + bones[name].axes @ place for name, place in points])


def test_a_sole_has_four_corners_around_the_joints_of_the_foot(bones):
    found = soles_of(RestBody(bones))
    assert found.keys() == {"foot.L", "foot.R"}
    for side, sign in (("L", 1.0), ("R", -1.0)):
        heel, left, right, tip = places(bones, found[f"foot.{side}"])
        foot, toe = bones[f"foot.{side}"], bones[f"toe.{side}"]
        assert np.allclose([heel[2], left[2], right[2], tip[2]], 0.0, atol=1e-9)
        assert heel[1] > foot.head[1], "the heel is behind the ankle, and the person looks along -Y"
        assert tip[1] < toe.head[1] < heel[1]
        assert left[0] > toe.head[0] > right[0]
        assert sign * toe.head[0] > 0.0
        assert 0.2 < np.linalg.norm(left - right) / np.linalg.norm(tip - heel) < 0.5


def test_without_toes_the_foot_has_all_corners(bones):
    few = {name: bone for name, bone in bones.items() if not name.startswith("toe")}
    assert {name for points in soles_of(RestBody(few)).values() for name, _ in points} == {"foot.L", "foot.R"}


def test_soles_move_with_the_rig(bones):
    """For a rotated rig far from the origin, the soles are the same points on bones, at the lowest joint's height."""
    spin = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    moved = {
        name: RestBone(bone.parent, spin @ (bone.head + np.array((0.0, 0.0, 7.0))), spin @ bone.axes, bone.length)
        for name, bone in bones.items()
    }
    before, after = (
        np.concatenate([places(rig, points) for points in soles_of(RestBody(rig)).values()]) for rig in (bones, moved)
    )
    lifted = after @ spin - before
    assert np.allclose(lifted, lifted[0])
    assert np.allclose(lifted[0, :2], 0.0)


def test_rigs_that_are_not_human_have_none():
    tail = {"one": RestBone("", np.zeros(3), np.eye(3), 1.0), "two": RestBone("one", np.ones(3), np.eye(3), 1.0)}
    assert soles_of(RestBody(tail)) == {}
    assert floor_points(RestBody(tail)) == ()


def test_hands_and_knees_are_on_the_floor_too(bones):
    found = [name for name, _ in floor_points(RestBody(bones))]
    assert {"hand.L", "hand.R", "shin.L", "shin.R", "foot.L", "toe.R"} <= set(found)
    assert len(found) == 16


def test_a_foot_has_points_at_both_edges_of_heel_and_toes(bones):
    """Fixed: a foot that rolled over its edge went 27 mm through the floor at the heel."""
    of_foot = [point for point in floor_points(RestBody(bones)) if point[0] in {"foot.L", "toe.L"}]
    across, along, up = places(bones, of_foot).T
    assert np.allclose(up, 0.0, atol=1e-9)
    is_end = [np.abs(along - end) < 0.02 for end in (along.max(), along.min())]
    heel, tip = sorted((np.ptp(across[at]) for at in is_end), reverse=True)
    assert [at.sum() for at in is_end] == [2, 2]
    assert heel == pytest.approx(np.ptp(across[~np.any(is_end, axis=0)]), rel=0.05)
    assert tip == pytest.approx(0.5 * heel, rel=0.05)


@given(hnp.arrays(np.float64, st.tuples(st.integers(3, 12), st.just(2)), elements=st.integers(-20, 20).map(float)))
def test_the_hull_is_convex_wound_one_way_and_holds_all_points(points):
    hull = convex_hull(points)
    assert {tuple(corner) for corner in hull} <= {tuple(point) for point in points}
    edges = np.roll(hull, -1, axis=0) - hull
    sides = edges[:, None, 0] * (points - hull[:, None])[..., 1] - edges[:, None, 1] * (points - hull[:, None])[..., 0]
    assert (sides >= 0.0).all() or len(hull) < 3
