"""Warnings for retargeted motions that differ from the source, none for good ones, and the reference pose."""

from dataclasses import replace

import numpy as np
import pytest
from support import humans, motions, walker
from support.steps import retarget

from fabrik_addon.core import Ball, Fixed
from fabrik_addon.core.rotations import product, quaternion_from_matrix, quaternion_from_rotation_vector
from fabrik_addon.human.preset import human_limits
from fabrik_addon.retarget.goals import RetargetSettings
from fabrik_addon.retarget.pairs import find_pairs

ROWS = humans.human(arms=45.0, bend=5.0, fingers=False)
PERSON = motions.skeleton_of(ROWS)
FRAMES = 40


def posed(**rotations):
    """The person's local rotations (F, J, 4): rotation vectors in degrees, (3,) or (F, 3), by bone; __ for a dot."""
    local = np.tile([1.0, 0.0, 0.0, 0.0], (FRAMES, len(PERSON), 1))
    for name, degrees in rotations.items():
        vectors = np.broadcast_to(np.radians(degrees), (FRAMES, 3))
        local[:, PERSON.index(name.replace("__", "."))] = quaternion_from_rotation_vector(vectors)
    return local


def walked():
    """A person who swings arms and legs."""
    swing = 30.0 * np.sin(np.linspace(0.0, 4.0 * np.pi, FRAMES))[:, None] * (1.0, 0.0, 0.0)
    knee = np.maximum(swing, 0.0)
    return posed(thigh__L=swing, thigh__R=-swing, shin__L=knee, shin__R=knee, upper_arm__L=-swing, upper_arm__R=swing)


def source(local, *, rest=True):
    roots = np.tile(PERSON.rest[0, :3, 3], (FRAMES, 1))
    return motions.motion_of(PERSON, local, roots) if rest else motions.in_no_rest(PERSON, local, roots)


def doubts(motion, target=PERSON, **how):
    return retarget(motion, target, how.pop("settings", RetargetSettings()), **how).doubts


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        humans.in_proportion(humans.human(arms=0.0, fingers=False), 0.8, 1.2),
        humans.in_proportion(humans.human(arms=80.0, fingers=False), 1.2, 0.8),
    ],
)
@pytest.mark.parametrize("rest", [True, False])
def test_a_walk_on_other_people_gives_no_warning(rows, rest):
    assert doubts(source(walked(), rest=rest), motions.skeleton_of(rows, 100.0, motions.about_z(90.0))) == ()


@pytest.mark.parametrize("rest", [True, False])
def test_a_recording_of_legs_alone_moves_the_legs(rest):
    """Fixed: it was refused, since up was unknown without a head."""
    rows = [row for row in ROWS if row.name.partition(".")[0] in {"hips", "thigh", "shin", "foot", "toe"}]
    legs, local = motions.skeleton_of(rows), walked()
    places = [PERSON.index(name) for name in legs.names]
    roots = np.tile(PERSON.rest[0, :3, 3], (FRAMES, 1))
    make = motions.motion_of if rest else motions.in_no_rest
    found = retarget(make(legs, local[:, places], roots), PERSON, RetargetSettings())
    assert [doubt.partition(":")[0] for doubt in found.doubts] == [
        "No bone of the source is known for the head, the trunk, the left arm and the right arm"
    ]
    for name in legs.names:
        assert rotations_off(found, local, name).max() < 1.0, name


@pytest.mark.parametrize(("roll", "doubted"), [(0.0, False), (25.0, False), (45.0, True), (90.0, True)])
def test_hinges_that_do_not_fit_the_rolls_of_bones_give_a_warning(roll, doubted):
    rows = humans.human(arms=45.0, fingers=False, rolls={"shin.L": roll})
    limits = {**human_limits(humans.rest_bones(ROWS)).limits}
    found = doubts(source(walked()), motions.skeleton_of(rows), limits=limits)
    hinges = [doubt for doubt in found if doubt.startswith("Hinge axes differ from those of the joints: shin.L (")]
    assert bool(hinges) is doubted


@pytest.mark.parametrize("size", [1.0, 100.0])
@pytest.mark.parametrize(("factor", "doubted"), [(0.5, True), (0.7, False), (1.0, False), (1.3, False), (2.0, True)])
def test_a_walk_at_another_rate_gives_a_warning(size, factor, doubted):
    """The sample person, in meters or centimeters."""
    skeleton, local = walker.skeleton(), walker.true_rotations()
    motion = motions.motion_of(skeleton, local, walker.true_matrices()[:, 0, :3, 3])
    motion = replace(motion, rate=factor * walker.RATE, heads=size * motion.heads, lengths=size * motion.lengths)
    rest = np.array(motion.rest)
    rest[:, :3, 3] *= size
    found = [doubt for doubt in doubts(replace(motion, rest=rest), skeleton) if "steps per second" in doubt]
    assert [doubt.startswith(f"The walk of {motion.name} has ") for doubt in found] == [True] * doubted


@pytest.mark.parametrize(("axes", "doubted"), [([0, 1, 2], False), ([0, 2, 1], True)])
def test_locations_with_another_up_axis_than_rotations_give_a_warning(axes, doubted):
    """The body walked up a wall."""
    skeleton, roots = walker.skeleton(), walker.true_matrices()[:, 0, :3, 3]
    found = doubts(motions.motion_of(skeleton, walker.true_rotations(), roots[:, axes]), skeleton)
    assert any("have different up axes" in doubt for doubt in found) is doubted


@pytest.mark.parametrize(("axes", "doubted"), [([0, 1, 2], False), ([0, 2, 1], True), ([2, 1, 0], True)])
@pytest.mark.parametrize("bend", [1.0, 40.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_locations_of_someone_who_stands_with_another_up_axis_give_a_warning(axes, doubted, bend, sign):
    """Fixed: the feet were a leg's length below the floor."""
    bent = bend * (1.0 - np.cos(np.linspace(0.0, 9.0, FRAMES)))[:, None] * (1.0, 0.0, 0.0)
    local = posed(**{f"{part}__{side}": by * bent for part, by in (("thigh", -0.5), ("shin", 1.0)) for side in "LR"})
    roots = np.tile(PERSON.rest[0, :3, 3], (FRAMES, 1))
    feet = motions.motion_of(PERSON, local, roots).heads[:, [PERSON.index("foot.L"), PERSON.index("foot.R")], 2]
    roots[:, 2] -= feet.min(axis=1) - feet[0, 0]
    found = doubts(motions.motion_of(PERSON, local, (roots * [1.0, 1.0, sign if doubted else 1.0])[:, axes]))
    assert any("have different up axes" in doubt for doubt in found) is doubted


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("far", [0.0, 0.05, 1.6])
def test_cuts_give_a_warning(size, far):
    """Fixed: a body that jumped by 1.6 m gave none."""
    skeleton, roots = walker.skeleton(), walker.true_matrices()[:100, 0, :3, 3].copy()
    roots[60:] += far
    motion = motions.motion_of(skeleton, walker.true_rotations()[:100], roots)
    rest = np.array(motion.rest)
    rest[:, :3, 3] *= size
    sized = replace(motion, heads=size * motion.heads, lengths=size * motion.lengths, rest=rest, rate=walker.RATE)
    found = [doubt for doubt in doubts(sized, skeleton) if "jumps to another location" in doubt]
    assert ["as at a cut, on frame 61: " in doubt for doubt in found] == [True] * (far > 0.5)


@pytest.mark.parametrize(("factor", "doubted"), [(0.1, False), (1.0, False), (3.0, True), (10.0, True)])
def test_a_dance_at_another_rate_gives_a_warning(factor, doubted):
    """Arms swing 4.5 times per second, which is much for people: a motion at 10 times its rate was no walk."""
    swing = 60.0 * np.sin(np.linspace(0.0, 12.0 * np.pi, FRAMES))[:, None] * (1.0, 0.0, 0.5)
    motion = source(posed(upper_arm__L=swing, upper_arm__R=-swing, spine=0.2 * swing))
    found = [doubt for doubt in doubts(replace(motion, rate=factor * motion.rate), PERSON) if "frame rate" in doubt]
    assert [doubt.startswith("Hands, feet and head swing ") for doubt in found] == [True] * doubted


@pytest.mark.parametrize("factor", [0.01, 0.1, 1.0, 10.0, 100.0])
def test_locations_in_other_units_than_bones_give_a_warning(factor):
    """The hips slid by meters, or not at all, while the legs walked."""
    skeleton, roots = walker.skeleton(), walker.true_matrices()[:, 0, :3, 3]
    found = doubts(motions.motion_of(skeleton, walker.true_rotations(), factor * roots), skeleton)
    assert any("above the origin: if locations and bone lengths" in doubt for doubt in found) == (factor != 1.0)
    # A root that stays in place, at hip height or at the origin, is usual.
    for place in (roots[:1], 0.0 * roots[:1]):
        motion = motions.motion_of(skeleton, walker.true_rotations(), np.repeat(place, len(roots), axis=0))
        assert not any("above the origin" in doubt for doubt in doubts(motion, skeleton))


def test_limits_that_hold_the_trunk_give_a_warning():
    motion = source(posed(spine=(0.0, 0.0, 60.0)))
    (doubt,) = doubts(motion, limits={"spine": Fixed()})
    assert doubt.startswith("Far from the source's directions: the ")
    assert "line across the shoulders (60°) and the trunk (4" in doubt
    assert doubt.endswith("check that the limits of spine allow these rotations")
    assert doubts(motion, limits={"spine": Ball(1.2)}) == ()


def test_hips_far_from_those_of_the_source_give_a_warning():
    limits = {f"{part}.{side}": Fixed() for part in ("thigh", "shin") for side in "LR"}
    found = doubts(source(posed(thigh__L=(-80.0, 0.0, 0.0), thigh__R=(-80.0, 0.0, 0.0))), limits=limits)
    assert any(doubt.startswith("Far from their positions in the source: ") and "hips (" in doubt for doubt in found)


SIDES = str.maketrans("LR", "RL")


@pytest.mark.parametrize("parts", [{"thigh", "shin", "foot", "toe"}, {"shoulder", "upper_arm", "forearm", "hand"}])
@pytest.mark.parametrize("rest", [True, False])
def test_swapped_sides_of_a_map_give_a_warning(parts, rest):
    """Fixed: with swapped arms, the chest was rotated by 180 degrees, without a warning."""
    motion = source(walked(), rest=rest)
    swapped = [
        replace(pair, source=pair.source.translate(SIDES)) if pair.bone.partition(".")[0] in parts else pair
        for pair in find_pairs(motion, PERSON)
    ]
    (doubt,) = doubts(motion, pairs=swapped)
    assert doubt.startswith("The source's feet or shoulders point backward: check that left and right")


@pytest.mark.parametrize("part", ["", "shoulder upper_arm forearm hand"])
def test_a_rig_with_swapped_bone_names_gives_a_warning(part):
    swapped = humans.named(
        ROWS, lambda name: name.translate(SIDES) if name[-2:-1] == "." and name[:-2] in (part or name) else name
    )
    (doubt,) = doubts(source(walked()), motions.skeleton_of(swapped))
    assert doubt.startswith("The rig's feet or shoulders point backward: check that left and right")


def test_a_limb_that_follows_a_wrong_bone_gives_a_warning():
    motion = source(posed(forearm__L=(-90.0, 0.0, 0.0)))
    pairs = [replace(pair, source=pair.source.replace("forearm.L", "hand.L")) for pair in find_pairs(motion, PERSON)]
    (doubt,) = doubts(motion, pairs=pairs)
    assert doubt.startswith("Far from the source's directions: the left upper arm (")
    assert "; check the bone mapping, or set Rest Frame" in doubt


def test_arms_without_a_source_give_a_warning():
    motion = source(walked())
    pairs = [pair for pair in find_pairs(motion, PERSON) if "arm" not in pair.bone and "hand" not in pair.bone]
    (doubt,) = doubts(motion, pairs=pairs)
    assert doubt.startswith("No bone of the source is known for the left arm and the right arm: ")


def test_other_proportions_than_the_sources_give_a_warning():
    target = motions.skeleton_of(humans.in_proportion(ROWS, 1.0, 0.3))
    (doubt,) = doubts(source(walked()), target)
    sizes = "the arms (0.3 times the source's)"
    assert doubt.startswith(f"Compared with the legs, the rig's sizes differ from the source's: {sizes}")


def test_a_source_that_never_stands_upright_gives_a_warning():
    """Its trunk is bent to the ground on all frames, and its rest pose is not a pose of a body."""
    bent = posed(hips=(50.0, 0.0, 0.0), thigh__L=(-50.0, 0.0, 0.0), thigh__R=(-50.0, 0.0, 0.0))
    found = retarget(source(bent, rest=False), PERSON, RetargetSettings())
    assert found.reference.pose.startswith("leaning by ")
    assert any(doubt.startswith("The source leans by ") for doubt in found.doubts)


@pytest.mark.parametrize("most", [0.0, 1.6, 6.0, 7.0])
def test_joints_that_hardly_leave_the_rest_pose_give_a_warning(most):
    """Radians read as degrees are such small angles. A rest pose alone or a single frame gives no warning."""
    swing = np.linspace(-most, most, FRAMES)[:, None] * (1.0, 0.0, 0.0)
    motion = source(posed(hips=swing, spine=-swing, upper_arm__L=swing))
    found = [doubt for doubt in doubts(motion) if "not radians" in doubt]
    assert [f"by at most {most}° from its rest pose" in doubt for doubt in found] == [True] * (0.0 < most < 6.3)
    still = replace(motion, rotations=motion.rotations[:1], heads=motion.heads[:1])
    assert not [doubt for doubt in doubts(still) if "radians" in doubt]


def test_someone_who_lies_and_has_no_rest_pose_gives_a_warning():
    local = walked()
    local[:, 0] = product(quaternion_from_rotation_vector(np.radians([-90.0, 0.0, 0.0])), local[:, 0])
    assert not any("as its rest pose" in doubt for doubt in doubts(source(local)))
    low = motions.in_no_rest(PERSON, local, np.tile([0.0, 0.0, 0.1], (FRAMES, 1)))
    (doubt,) = doubts(low)
    assert doubt.startswith("On most frames the source points sideways or down, but was assumed to be upright: ")


def kicked(standing):
    """A person who kicks and rotates hips and shoulders against each other, except for one frame."""
    sway = np.sin(np.linspace(0.3, 9.0, FRAMES))[:, None]
    parts = {
        "hips": (-10.0, 30.0, 5.0),
        "spine": (20.0, -25.0, 10.0),
        "chest": (-15.0, 25.0, 0.0),
        "thigh__L": (-90.0, 10.0, 20.0),
        "shin__L": (40.0, 0.0, 0.0),
        "upper_arm__L": (40.0, 0.0, 50.0),
        "upper_arm__R": (-60.0, 0.0, 30.0),
    }
    moved = {name: (0.75 + 0.25 * sway) * np.array(vector) for name, vector in parts.items()}
    for vectors in moved.values():
        vectors[standing] = 0.0
    return posed(**moved)


def rotations_off(found, local, name):
    """(F,) degrees between a bone's rotation and that of the source, whose skeleton is the rig's."""
    bone = PERSON.index(name)
    own, _ = motions.turned_by(PERSON, found.solution.rotations, found.solution.root_location)
    wanted, _ = motions.turned_by(PERSON, local)
    return motions.degrees_between(own[:, bone], wanted[:, bone])


def test_the_frame_on_which_the_whole_body_stands_is_the_reported_reference():
    """One frame of a kick is a T pose; others have their thighs and feet nearer to the rig's."""
    local = kicked(standing=23)
    found = retarget(source(local, rest=False), PERSON, RetargetSettings(places=0.0))
    assert found.reference.frame == 23
    assert found.reference.pose == "standing upright, its arms in an A pose"
    for name in ("hips", "spine", "chest", "thigh.L"):
        assert rotations_off(found, local, name).max() < 0.1


@pytest.mark.parametrize("others", [{"spine": 40.0, "chest": -40.0}, {"upper_arm.L": -80.0, "upper_arm.R": -80.0}])
def test_a_straight_trunk_and_level_arms_show_the_reference_frame(others):
    """On the other frames, the legs are nearer to those of the rig. Fixed: of a loop, another frame was used."""
    is_other = np.arange(FRAMES) != 12
    moved = others | {"thigh.L": 4.0 * ~is_other, "thigh.R": -4.0 * ~is_other}
    degrees = {
        name.replace(".", "__"): (by * is_other if name in others else by)[:, None] * (1.0, 0.0, 0.0)
        for name, by in moved.items()
    }
    assert retarget(source(posed(**degrees), rest=False), PERSON, RetargetSettings()).reference.frame == 12


@pytest.mark.parametrize("reference", [None, 5, 17, 31])
def test_hips_and_chest_face_as_the_source_does_with_any_reference_frame(reference):
    """If the person never stands, hips and shoulders of the reference frame are each compared with the rig's."""
    local = kicked(standing=slice(0, 0))
    found = retarget(source(local, rest=False), PERSON, RetargetSettings(places=0.0, reference=reference))
    _, wanted = motions.turned_by(PERSON, local)
    _, heads = motions.turned_by(PERSON, found.solution.rotations, found.solution.root_location)
    for part in ("thigh", "upper_arm"):
        left, right = (PERSON.index(f"{part}.{side}") for side in "LR")
        lines = [points[:, left] - points[:, right] for points in (heads, wanted)]
        cosine = (lines[0] * lines[1]).sum(axis=1) / np.prod(np.linalg.norm(lines, axis=2), axis=0)
        # Collars move the shoulders as well.
        assert np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))).max() < (0.1 if part == "thigh" else 6.0)


def test_up_is_where_heads_are_on_most_frames():
    """The body is rotated as a whole by 90 degrees on 15 of 40 frames."""
    local = walked()
    local[:15, 0] = product(quaternion_from_rotation_vector(np.radians([-90.0, 0.0, 0.0])), local[:15, 0])
    found = retarget(source(local, rest=False), PERSON, RetargetSettings(places=0.0))
    assert found.reference.frame >= 15
    assert found.doubts == ()


def test_someone_who_stands_on_a_few_frames_shows_which_axis_is_up():
    """Fixed: standing on 6 of 40 frames, and lying on the others, came out upside down: lying was seen as standing."""
    local = walked()
    local[6:, 0] = product(quaternion_from_rotation_vector(np.radians([-90.0, 0.0, 0.0])), local[6:, 0])
    found = retarget(source(local, rest=False), PERSON, RetargetSettings(places=0.0))
    assert found.reference.frame < 6
    assert found.doubts == ()


def test_someone_who_walks_across_the_up_axis_of_the_file_stands():
    """Fixed: the warning about lying was wrong for a file with another up axis."""
    local, roots = walked(), np.tile(PERSON.rest[0, :3, 3], (FRAMES, 1))
    roots[:, 1] -= np.linspace(0.0, 3.0, FRAMES)
    motion = motions.in_no_rest(PERSON, local, roots)
    turn = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
    rest, heads = motion.rest.copy(), motion.heads @ turn.T
    rest[:, :3] = turn @ rest[:, :3]
    rotations = product(quaternion_from_matrix(turn), motion.rotations)
    assert doubts(replace(motion, rest=rest, heads=heads, rotations=rotations)) == ()


def test_a_rest_pose_that_lies_is_raised_if_the_motion_stands():
    """Some files have a rest pose with Y up, and a motion with Z up. Fixed: such a person was lying."""
    motion = source(walked())
    lying = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
    rest = motion.rest.copy()
    rest[:, :3] = lying @ rest[:, :3]
    wanted = retarget(motion, PERSON, RetargetSettings())
    found = retarget(replace(motion, rest=rest), PERSON, RetargetSettings())
    assert found.doubts == ()
    np.testing.assert_allclose(np.abs((found.solution.rotations * wanted.solution.rotations).sum(axis=2)), 1.0)
    np.testing.assert_allclose(found.solution.root_location, wanted.solution.root_location, atol=1e-6)
