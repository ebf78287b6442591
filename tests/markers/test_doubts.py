"""Warnings about a bake: a sentence for each, and none if all is well."""

import numpy as np
import pytest
from support import humans, motions, walker
from support.poses import rotation

from fabrik_addon.core import Solution, Status
from fabrik_addon.core.rotations import (
    matrix_from_quaternion,
    product,
    quaternion_from_matrix,
    quaternion_from_rotation_vector,
)
from fabrik_addon.human.naming_schemes import match
from fabrik_addon.markers.doubts import matching_doubts, placing_doubts, posture_doubts, result_doubts
from fabrik_addon.markers.report import Report, csv_text

BONES = ["hips", "spine", "chest", "neck", "head"] + [
    f"{part}.{side}" for side in "LR" for part in ("upper_arm", "forearm", "hand", "thigh", "shin", "foot")
]
ROLES = match(BONES)
# Meters: the size of the rig of a person 1.75 m tall, from end to end.
PERSON = 2.37


def report(errors: float, **limits: float) -> Report:
    """A report of ten frames and two markers that all have the same error."""
    return Report(np.full((10, 2), errors), ["a", "b"], range(10), [Status.FITTED] * 10, limits=limits)


class TestMatching:
    def test_a_marker_on_every_limb_gives_no_warning(self) -> None:
        assert list(matching_doubts(BONES, {bone: bone for bone in BONES}, ROLES)) == []

    def test_markers_of_a_cart_give_warnings(self) -> None:
        labels = [f"Cart{number}" for number in range(40)] + ["LASI", "RASI", "C7"]
        few, bare = matching_doubts(labels, {"LASI": "hips", "RASI": "hips", "C7": "chest"}, ROLES)
        assert few.startswith("Only 3 of 43 labeled markers are on bones: ")
        assert bare.startswith("No marker is on the head, the left arm, the right arm, the left leg, and 1 more: ")

    def test_markers_on_legs_alone_give_a_warning(self) -> None:
        legs = {bone: bone for bone in BONES if bone.startswith(("hips", "thigh", "shin", "foot"))}
        (bare,) = matching_doubts(list(legs), legs, ROLES)
        assert bare.startswith("No marker is on the head, the trunk, the left arm and the right arm: ")

    def test_hips_without_markers_give_a_warning(self) -> None:
        """The hips were 14 degrees off on a walk without these markers, with RMS 4 mm."""
        on_bones = {bone: bone for bone in BONES if bone != "hips"}
        (bare,) = matching_doubts(list(on_bones), on_bones, ROLES)
        assert bare.startswith("No marker is on the hips: ")

    def test_ends_of_limbs_without_markers_give_a_warning(self) -> None:
        """As with the 17 keypoints of COCO, which end at the ankles."""
        on_bones = {bone: bone for bone in BONES if not bone.startswith(("foot", "forearm", "hand"))}
        (bare,) = matching_doubts(list(on_bones), on_bones, ROLES)
        assert bare.startswith("No marker is on the left forearm, the right forearm, the left foot and the right foot:")

    def test_limbs_without_labels_give_no_warning(self) -> None:
        on_bones = {bone: bone for bone in BONES}
        assert list(matching_doubts([*BONES, *(f"*{n}" for n in range(99)), "V_Mid_ASIS"], on_bones, ROLES)) == []

    def test_a_rig_without_arms_misses_none(self) -> None:
        roles = {bone: role for bone, role in ROLES.items() if not bone.startswith(("upper", "fore", "hand"))}
        assert list(matching_doubts(list(roles), {bone: bone for bone in roles}, roles)) == []


class TestPlaces:
    """Markers that are moved by (forward, left, up), in meters, on a rig of 1.5 m."""

    def test_markers_near_the_positions_of_their_labels(self) -> None:
        moved = {"LASI": (0.05, 0, 0), "RASI": (0, 0, 0.04), "LHEE": (0, -0.14, 0), "C7": (0.01, 0, 0)}
        assert list(placing_doubts({}, {}, 1.5)) == []
        assert (
            list(
                placing_doubts(vectors(moved), at_origin(moved), 1.5, {"LASI": "RASI", "RASI": "LASI", "LHEE": "RHEE"})
            )
            == []
        )

    @pytest.mark.parametrize(("off", "named"), [(0.2, "LHEE and RASI"), (0.04, "LHEE")])
    def test_misplaced_markers_give_a_warning(self, off: float, named: str) -> None:
        moved = vectors({"LASI": (0.05, 0, 0), "RASI": (off, 0, 0), "LHEE": (0, 0, 0.3), "C7": (0.01, 0, 0)})
        (doubt,) = placing_doubts(moved, at_origin(moved), 1.5)
        assert doubt.startswith(f"Markers are far from the usual positions for their labels: {named}; check")
        assert list(placing_doubts(moved, at_origin(moved), 15.0)) == []

    @pytest.mark.parametrize(
        ("left", "right", "named"),
        [
            ((0.06, 0.05, 0), (0.06, -0.05, 0), ""),
            ((0.06, 0.05, 0), (0.01, -0.02, 0), ""),
            ((0.06, 0.08, 0), (0.06, 0.03, 0), "LTOE"),
            # The bone of both markers is rotated about the up axis.
            ((0.06, 0, 0), (-0.06, 0, 0), ""),
            ((0, 0, 0.02), (0, 0, -0.06), "RTOE"),
        ],
    )
    def test_a_marker_unlike_that_of_the_other_side_gives_a_warning(self, left, right, named) -> None:
        """Both feet of a rig may be longer than the person's, but not only one of them."""
        moved = vectors({"LTOE": left, "RTOE": right, "C7": (0, 0, 0.01)})
        doubts = list(placing_doubts(moved, at_origin(moved), 1.5, {"LTOE": "RTOE", "RTOE": "LTOE"}))
        assert [doubt.split(": ")[1].split(";")[0] for doubt in doubts] == [named] * bool(named)

    @pytest.mark.parametrize(("left", "right", "doubted"), [(0.05, -0.06, False), (0.03, -0.03, False), (0, 0, True)])
    def test_two_markers_that_do_not_lie_on_their_sides_give_a_warning(self, left, right, doubted) -> None:
        """A mirrored marker of the head or pelvis tilts the bone, so that both markers are half as far off."""
        usual = vectors({"LFHD": (0.1, 0.07, 1.6), "RFHD": (0.1, -0.07, 1.6)})
        places = vectors({"LFHD": (0.1, left, 1.6), "RFHD": (0.1, right, 1.6)})
        doubts = list(placing_doubts(places, usual, 1.5, {"LFHD": "RFHD", "RFHD": "LFHD"}))
        assert [": LFHD and RFHD; check" in doubt for doubt in doubts] == [True] * doubted


def at_origin(moved):
    """The usual positions from which markers at `moved` have moved by that vector."""
    return dict.fromkeys(moved, np.zeros(3))


def vectors(moved):
    """Arrays for tuples."""
    return {label: np.array(vector, dtype=float) for label, vector in moved.items()}


class TestPosture:
    """The markers of a person raise the trunk of a rig with four legs. The fit may be good, but the rig is wrong."""

    # Degrees about X from a level trunk, along -Y, to an upright one.
    @pytest.mark.parametrize(("raised", "doubted"), [(0.0, False), (20.0, False), (80.0, True), (95.0, True)])
    @pytest.mark.parametrize("feet", [True, False])
    def test_an_animal_that_stands_upright(self, raised: float, doubted: bool, feet: bool) -> None:
        rows = [row for row in humans.human(fingers=False) if feet or row.name[:4] not in ("foot", "toe.")]
        level, hip = about_x(90.0), np.array([0.0, 0.0, 1.0])
        legs = ("hips", "thigh", "shin", "foot", "toe")
        rows = [
            row
            if row.name.partition(".")[0] in legs
            else humans.Row(
                row.name,
                row.parent,
                hip + level @ (row.head - hip),
                hip + level @ (row.tail - hip),
                level @ row.x_axis,
            )
            for row in rows
        ]
        solution = posed(motions.skeleton_of(rows), raised)
        assert ["an animal with four legs" in doubt for doubt in doubts_of(solution)] == [True] * doubted

    @pytest.mark.parametrize("standing", [0, 5])
    def test_someone_who_lies_down_gives_no_warning(self, standing: int) -> None:
        """Those who lie on all frames do, because the up axis may be wrong."""
        skeleton = motions.skeleton_of(humans.human(fingers=False))
        solution = Solution.empty(skeleton, 30, 0)
        solution.rotations[:], solution.root_location[:] = [1.0, 0.0, 0.0, 0.0], skeleton.rest[0, :3, 3]
        rest = skeleton.rest[0, :3, :3]
        solution.rotations[standing:, 0] = quaternion_from_matrix(rest.T @ about_x(-90.0) @ rest)
        found = list(posture_doubts(solution, np.tile(np.eye(4), (30, 1, 1))))
        assert ["lies or crawls" in doubt for doubt in found] == [True] * (standing == 0)

    @pytest.mark.parametrize("degrees", [90.0, -90.0, 180.0])
    def test_a_rig_that_lies_at_rest(self, degrees: float) -> None:
        """Fixed: a rig with Y up whose object is not rotated lay on its back, without a warning."""
        world = np.tile(np.eye(4), (3, 1, 1))
        world[:, :3, :3] = about_x(degrees)
        solution = posed(motions.skeleton_of(humans.human(fingers=False)), 0.0)
        (doubt,) = posture_doubts(solution, world)
        assert doubt.startswith("The rig does not stand upright at rest: ")

    @pytest.mark.parametrize(
        ("tilt", "bent", "doubted"), [(30, 0, True), (-40, 0, True), (10, 0, False), (30, 30, False)]
    )
    def test_a_straight_body_that_leans_in_a_tilted_volume(self, tilt: float, bent: float, doubted: bool) -> None:
        """Nobody leans that far without bending."""
        skeleton = motions.skeleton_of(humans.human(fingers=False))
        solution, rest = posed(skeleton, bent), skeleton.rest[0, :3, :3]
        tilted = quaternion_from_matrix(rest.T @ about_x(tilt) @ rest)
        solution.rotations[:, 0] = product(tilted, solution.rotations[:, 0])
        assert [doubt.startswith("The person is straight but leans by ") for doubt in doubts_of(solution)] == [
            True
        ] * doubted

    @pytest.mark.parametrize("raised", [0.0, 30.0, -30.0])
    def test_a_person(self, raised: float) -> None:
        assert doubts_of(posed(motions.skeleton_of(humans.human(fingers=False)), raised)) == []


@pytest.mark.parametrize(("hips", "shoulders", "doubted"), [
    pytest.param(1.0, 1.0, False, id="as usual"),
    pytest.param(1.2, 1.2, True, id="one axis is stretched"),
    pytest.param(0.8, 0.8, True, id="one axis is compressed"),
    pytest.param(1.3, 1.0, False, id="wide hips"),
    pytest.param(0.9, 1.2, False, id="broad shoulders"),
])  # fmt: skip
def test_a_body_that_is_wider_than_the_rig_gives_a_warning(hips: float, shoulders: float, doubted: bool) -> None:
    """Fixed: an axis across a walker's direction had another scale, and no limb changes its length."""
    usual = {"LASI": [0.1, 0.12, 1.0], "RASI": [0.1, -0.12, 1.0], "LSHO": [0.0, 0.19, 1.4], "RSHO": [0.0, -0.19, 1.4]}
    usual = {label: np.array(place) for label, place in usual.items()}
    places = {label: place * [1.0, hips if "ASI" in label else shoulders, 1.0] for label, place in usual.items()}
    others = {"LASI": "RASI", "RASI": "LASI", "LSHO": "RSHO", "RSHO": "LSHO"}
    parts = {"LASI": "hips", "RASI": "hips", "LSHO": "shoulder", "RSHO": "shoulder"}
    found = list(placing_doubts(places, usual, 1.7, others, parts))
    assert [doubt.startswith("The person is") for doubt in found] == [True] * doubted


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("degrees", [0.0, 10.0, -13.0, 20.0, -20.0])
def test_a_walker_whose_floor_is_tilted_gives_a_warning(axis: int, degrees: float) -> None:
    """Fixed: up to 20 degrees were silent, since people who stand may lean as far."""
    skeleton, rotations = walker.skeleton(), walker.true_rotations()
    solution = Solution.empty(skeleton, len(rotations), 0)
    solution.rotations[:], solution.root_location[:] = rotations, walker.true_matrices()[:, 0, :3, 3]
    matrices = np.tile(np.eye(4), (len(rotations), 1, 1))
    matrices[:, :3, :3] = rotation(np.radians(degrees) * np.eye(3)[axis])
    found = [doubt for doubt in posture_doubts(solution, matrices) if "straight but leans" in doubt]
    assert len(found) == (degrees != 0.0)


def about_x(degrees):
    """(3, 3) a rotation about X."""
    return matrix_from_quaternion(quaternion_from_rotation_vector(np.radians([degrees, 0.0, 0.0])))


def posed(skeleton, raised):
    """A solution of three frames with the trunk raised by some degrees about X, and the legs as at rest."""
    solution = Solution.empty(skeleton, 3, 0)
    solution.rotations[:], solution.root_location[:] = [1.0, 0.0, 0.0, 0.0], skeleton.rest[0, :3, 3]
    for name, degrees in (("hips", -raised), ("thigh.L", raised), ("thigh.R", raised)):
        bone = skeleton.index(name)
        rest = skeleton.rest[bone, :3, :3]
        solution.rotations[:, bone] = quaternion_from_matrix(rest.T @ about_x(degrees) @ rest)
    return solution


def doubts_of(solution):
    return list(posture_doubts(solution, np.tile(np.eye(4), (3, 1, 1))))


class TestResult:
    def test_all_is_well(self) -> None:
        assert list(result_doubts(report(0.012, head=50.0, neck=2.0), PERSON, ["head", "neck"])) == []

    def test_bones_at_their_limits(self) -> None:
        at_limits = report(0.005, head=97.0, neck=51.0, chest=10.0)
        (doubt,) = result_doubts(at_limits, PERSON, ["head", "neck", "chest"])
        assert doubt.startswith("At their limits on most frames: head (97 %) and neck (51 %); ")

    def test_bones_without_markers_may_be_at_their_limits(self) -> None:
        """Fixed: markers do not show how neck and spine share a bend, so their limits keep nothing from its markers."""
        assert list(result_doubts(report(0.005, neck=97.0, upper_chest=88.0), PERSON, ["head", "chest"])) == []

    def test_markers_that_were_often_left_out(self) -> None:
        errors, outliers = np.full((20, 3), 0.005), np.zeros((20, 3), dtype=bool)
        outliers[:3, 0], outliers[:1, 1], outliers[5:11, 2] = True, True, True
        errors[outliers] = 1.0
        often = Report(errors, ["RKNE", "RTHI", "RTIB"], range(20), [Status.FITTED] * 20, outliers=outliers)
        (doubt,) = result_doubts(often, PERSON, [])
        assert doubt.startswith("Often left out as outliers: RTIB (30 %) and RKNE (15 %); ")
        assert often.total.rms == pytest.approx(0.005)

    def test_another_person_gives_a_warning(self) -> None:
        (doubt,) = result_doubts(report(0.085), PERSON, [])
        assert doubt.startswith("RMS 85 mm is high: ")

    def test_far_off_depends_on_the_size_of_the_rig(self) -> None:
        """A rig in centimeters is a hundred times as large, and so are its errors."""
        assert list(result_doubts(report(0.85), 240.0, [])) == []
        (doubt,) = result_doubts(report(0.012), 0.24, [])
        assert doubt.startswith("RMS 12 mm is high: ")

    def test_bones_that_constraints_move_are_the_reason(self) -> None:
        assert list(result_doubts(report(0.005), PERSON, [], moved=["shin.L"])) == []
        (doubt,) = result_doubts(report(0.085, head=97.0), PERSON, ["head"], moved=["shin.L", "shin.R"])
        assert doubt.startswith("RMS 85 mm is high because constraints move shin.L and shin.R: press ")

    @pytest.mark.parametrize("doubts", [(), ("It may be, or not", "a second")])
    def test_warnings_are_in_the_file(self, doubts: tuple[str, ...]) -> None:
        some = Report(np.zeros((1, 1)), ["a"], [1], [Status.SOLVED], doubts=doubts)
        assert csv_text(some).count("warning,") == len(doubts)
