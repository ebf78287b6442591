"""Labels as people write them, their marker sets, and their positions on a rig."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import humans

from fabrik_addon.human import naming_schemes
from fabrik_addon.human.naming_schemes import FINGER_JOINTS, Role
from fabrik_addon.markers.files.any_file import read_markers
from fabrik_addon.markers.mapping.labels import (
    PRESETS,
    Matched,
    NamingError,
    is_unlabelled,
    match,
    parts_of,
)
from fabrik_addon.markers.mapping.landmarks import LANDMARKS
from fabrik_addon.markers.mapping.marker_map import check_map

DATA = Path(os.environ.get("FABRIK_TEST_DATA", Path(__file__).parents[4] / "shared" / "data"))

SETS = {
    "PLUG_IN_GAIT": (
        "LFHD RFHD LBHD RBHD C7 T10 CLAV STRN RBAK LSHO LUPA LELB LFRM LWRA LWRB LFIN RSHO RUPA RELB RFRM "
        "RWRA RWRB RFIN LASI RASI LPSI RPSI LTHI LKNE LTIB LANK LHEE LTOE RTHI RKNE RTIB RANK RHEE RTOE"
    ),
    "VICON_41": (
        "RFHD LFHD RBHD LBHD C7 T10 CLAV STRN RBAC LSHO LUPA LELB LFRM LWRA LWRB LFIN RSHO RUPA RELB RFRM "
        "RWRA RWRB RFIN LFWT RFWT LBWT RBWT LTHI LKNE LSHN LANK LHEE LTOE LMT5 RTHI RKNE RSHN RANK RHEE RTOE "
        "RMT5"
    ),
    "HELEN_HAYES": (
        "R.ASIS L.ASIS V.Sacral R.Thigh.Upper R.Thigh.Front R.Thigh.Rear L.Thigh.Upper L.Thigh.Front "
        "L.Thigh.Rear R.Shank.Upper R.Shank.Front R.Shank.Rear R.Heel R.Midfoot.Sup R.Midfoot.Lat R.Toe.Tip "
        "Sternum R.Acromium R.Bicep R.Elbow R.Wrist.Med R.Wrist.Lat R.Toe.Lat R.Toe.Med R.Temple Top.Head "
        "R.Knee.Lat R.Ankle.Med"
    ),
    "RAJAGOPAL": (
        "RACR LACR C7 CLAV RASH RPSH RLEL RMEL RUA1 RUA2 RUA3 RFAsuperior RFAradius RFAulna LUA1 LFAradius "
        "LFAulna LLEL RASI LASI RPSI LPSI LHJC RHJC RTH1 RTH2 RTH3 RLFC RMFC RKJC RTB1 RTB2 RTB3 RLMAL RMMAL "
        "RAJC RCAL RTOE RMT5"
    ),
    "OPENPOSE": (
        "Hip RHip RKnee RAnkle RBigToe RSmallToe RHeel LHip LKnee LAnkle LBigToe LSmallToe LHeel Neck Head "
        "Nose RShoulder RElbow RWrist LShoulder LElbow LWrist"
    ),
    "MEDIAPIPE": (
        "nose left_eye_inner left_eye left_eye_outer right_eye left_ear mouth_left mouth_right left_shoulder "
        "right_shoulder left_elbow left_wrist left_pinky left_index left_thumb left_hip right_hip left_knee "
        "left_ankle left_heel left_foot_index right_foot_index head_center neck_center hips_center"
    ),
}


def rig(scheme="ours", **pose):
    """The parts of a person named in a scheme, and its bones at rest."""
    rest = humans.rest_bones(humans.named(humans.human(**pose), humans.SCHEMES[scheme]))
    return parts_of(naming_schemes.match(rest)), rest


def places(matched: Matched, rest) -> dict[str, np.ndarray]:
    """The position of each marker in armature space."""
    found = {}
    for marker in matched.markers:
        bone = rest[marker.bone]
        ends = {"HEAD": (0.0, 0.0, 0.0), "TAIL": (0.0, bone.length, 0.0)}
        found[marker.marker] = bone.head + bone.axes @ np.array(marker.offset or ends[marker.point])
    return found


def rigidly_off(measured: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """(N,) distances of points from the expected ones after the best rigid fit."""
    start, end = measured - measured.mean(axis=0), wanted - wanted.mean(axis=0)
    u, _spread, vt = np.linalg.svd(end.T @ start)
    rotation = u @ np.diag([1.0, 1.0, np.linalg.det(u @ vt)]) @ vt
    return np.linalg.norm(end - start @ rotation.T, axis=1)


class TestSets:
    @pytest.mark.parametrize("key", SETS)
    def test_a_set_is_recognized_and_completely_known(self, key: str) -> None:
        labels = SETS[key].split()
        parts, rest = rig()
        matched = match(labels, parts, rest)
        assert matched.unmatched == ()
        assert matched.preset == key
        assert [marker.marker for marker in matched.markers] == labels
        check_map(matched.markers, labels, rest)

    @pytest.mark.parametrize("key", SETS)
    def test_half_of_a_set_is_recognized(self, key: str) -> None:
        labels = SETS[key].split()
        assert match([*labels[1::2], "*1", "Prop", "Channel12"], {}).preset == key

    def test_every_landmark_of_a_set_exists(self) -> None:
        named = {name for preset in PRESETS.values() for name in (*preset.sided.values(), *preset.middle.values())}
        assert named <= set(LANDMARKS)
        assert set(LANDMARKS) - named == set()

    @pytest.mark.parametrize("labels", [[], ["Channel1", "Channel2"], ["*1", "*2", "*3"], ["LASI", "RASI"]])
    def test_nothing_is_recognized(self, labels: list[str]) -> None:
        assert match(labels, {}).preset is None
        assert match(["Channel1", "*2"], rig()[0]) == ((), ("Channel1", "*2"), None)

    def test_an_unknown_set(self) -> None:
        with pytest.raises(NamingError, match="no marker set 'MINE'"):
            match(["LASI"], {}, preset="MINE")

    def test_a_given_set(self) -> None:
        """The same label means the hip's center in one set and the pelvis's front in another."""
        parts, rest = rig()
        keypoint, skin = (match(["L_Hip"], parts, rest, preset=key).markers[0] for key in ("OPENPOSE", "HELEN_HAYES"))
        assert keypoint.offset != skin.offset


class TestLabels:
    @pytest.mark.parametrize(
        "label",
        [
            "LKNE", "lkne", "L_KNE", "l.kne", "KNE_L", "KNE.L", "Left_KNE", "LeftKne", "KneLeft", "L-KNE", "L KNE",
            "Bob:LKNE", "a:b:L_KNE", "Bob_LKNE", "skeleton1_LKNE", "lt_kne",
        ],
    )  # fmt: skip
    def test_one_marker_in_many_spellings(self, label: str) -> None:
        parts, rest = rig()
        (marker,) = match([label], parts, rest, preset="PLUG_IN_GAIT").markers
        (plain,) = match(["LKNE"], parts, rest, preset="PLUG_IN_GAIT").markers
        assert (marker.bone, marker.offset, marker.weight) == (plain.bone, plain.offset, plain.weight)

    @pytest.mark.parametrize(
        ("cut", "whole"),
        [("RSHO", "R.Shoulder"), ("RTHI", "R.Thigh"), ("RSHA", "R.Shank"), ("VSAC", "V.Sacral"), ("LWRI", "L.Wrist")],
    )
    def test_labels_of_four_letters(self, cut: str, whole: str) -> None:
        parts, rest = rig()
        one, other = (match([label], parts, rest, preset="HELEN_HAYES").markers[0] for label in (cut, whole))
        assert (one.bone, one.offset) == (other.bone, other.offset)

    def test_duplicate_labels(self) -> None:
        labels = ["LASI", "LASI_2", "Bob:LASI", "L_ASI", "RASI"]
        matched = match(labels, rig()[0], preset="PLUG_IN_GAIT")
        assert [marker.marker for marker in matched.markers] == ["LASI", "RASI"]
        assert matched.unmatched == ("LASI_2", "Bob:LASI", "L_ASI")

    def test_labels_with_the_same_meaning_in_all_other_sets_are_assigned(self) -> None:
        labels = [*SETS["PLUG_IN_GAIT"].split(), "R.Bicep", "L_Eye", "RLFC"]
        assert match(labels, rig()[0]).unmatched == ()

    def test_labels_with_different_meanings_in_other_sets_are_not_assigned(self) -> None:
        """In some sets a hip is the front of the pelvis, in others the joint."""
        assert match([*SETS["VICON_41"].split(), "L_Hip"], rig()[0]).unmatched == ("L_Hip",)

    @pytest.mark.parametrize(
        "label", ["*12", "*Unnamed_3", "Bob:*7", "Unlabeled 4", "unlabelled_12", "U_12", "U7", "*"]
    )
    def test_unlabelled(self, label: str) -> None:
        assert is_unlabelled(label)
        assert match([label], rig()[0], preset="PLUG_IN_GAIT").unmatched == (label,)

    @pytest.mark.parametrize("label", ["LUPA", "C7", "U", "UpperLip", "LASI"])
    def test_labelled(self, label: str) -> None:
        assert not is_unlabelled(label)

    @given(
        st.lists(
            st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
            | st.sampled_from(SETS["PLUG_IN_GAIT"].split()),
            max_size=12,
            unique=True,
        )
    )
    def test_any_labels(self, labels: list[str]) -> None:
        matched = match(labels, rig()[0])
        found = [marker.marker for marker in matched.markers]
        assert sorted([*found, *matched.unmatched]) == sorted(labels)


class TestParts:
    def test_one_bone_a_role(self) -> None:
        roles = {
            "hips": Role("hips"), "spine": Role("spine"), "spine.001": Role("spine"), "chest": Role("chest"),
            "upper_chest": Role("chest"), "thigh.L": Role("thigh", "L"), "thigh.L.001": Role("thigh", "L"),
        }  # fmt: skip
        parts = parts_of(roles)
        assert parts[Role("spine")] == "spine"
        assert parts[Role("chest")] == "upper_chest"
        assert parts[Role("thigh", "L")] == "thigh.L"

    def test_a_spine_without_a_chest(self) -> None:
        roles = {"Spine": Role("spine"), "Spine1": Role("spine"), "Spine2": Role("spine")}
        assert parts_of(roles) == {Role("spine"): "Spine", Role("chest"): "Spine2"}

    def test_missing_parts(self) -> None:
        """Without feet, hands and collar bones, their markers are assigned to the bones above them if possible."""
        parts, rest = rig()
        few = {
            role: bone for role, bone in parts.items() if role.part not in {"toe", "shoulder", "hand", "finger", "foot"}
        }
        matched = match(["LSHO", "LTOE", "LFIN", "LHEE", "LWRA"], few, rest, preset="PLUG_IN_GAIT")
        assert {marker.marker: marker.bone for marker in matched.markers} == {
            "LSHO": parts[Role("chest")],
            "LWRA": parts[Role("forearm", "L")],
        }
        assert matched.unmatched == ("LTOE", "LFIN", "LHEE")

    def test_a_rig_that_is_not_a_person(self) -> None:
        assert match(["LASI", "RASI", "LKNE"], {}).unmatched == ("LASI", "RASI", "LKNE")

    def test_without_a_rest_pose_markers_are_at_the_ends(self) -> None:
        parts, _rest = rig()
        matched = match(SETS["OPENPOSE"].split(), parts)
        points = {marker.marker: (marker.bone, marker.point) for marker in matched.markers}
        assert points["LKnee"] == (parts[Role("thigh", "L")], "TAIL")
        assert points["LWrist"] == (parts[Role("forearm", "L")], "TAIL")
        assert points["LHip"] == (parts[Role("hips")], "HEAD")
        assert {point for _bone, point in points.values()} <= {"HEAD", "TAIL"}


# One marker of each pair; the other one must be on the opposite side.
PAIRED = ["ASI", "KNE", "ANK", "HEE", "TOE", "SHO", "ELB", "WRA", "WRB", "FIN", "FHD", "THI", "TIB"]


class TestPlaces:
    @pytest.mark.parametrize("scheme", humans.SCHEMES)
    def test_rigs_of_every_naming_scheme_get_the_same_map(self, scheme: str) -> None:
        labels = SETS["PLUG_IN_GAIT"].split()
        parts, rest = rig(scheme)
        plain_parts, plain_rest = rig()
        found = places(match(labels, parts, rest), rest)
        expected = places(match(labels, plain_parts, plain_rest), plain_rest)
        assert found.keys() == expected.keys()
        for label, place in found.items():
            np.testing.assert_allclose(place, expected[label], atol=1e-9, err_msg=label)

    @pytest.mark.parametrize("rolls", [37.0, -90.0, 180.0])
    def test_however_bones_are_rolled(self, rolls: float) -> None:
        labels = SETS["PLUG_IN_GAIT"].split()
        straight, rolled = (rig(arms=45.0, bend=4.0, rolls=angle) for angle in (None, rolls))
        found, expected = (places(match(labels, *one), one[1]) for one in (rolled, straight))
        for label, place in found.items():
            np.testing.assert_allclose(place, expected[label], atol=1e-9, err_msg=label)

    @given(arms=st.floats(0.0, 85.0), bend=st.floats(0.0, 20.0))
    def test_sides_are_mirrored(self, arms: float, bend: float) -> None:
        parts, rest = rig(arms=arms, bend=bend)
        labels = [f"{side}{name}" for side in "LR" for name in PAIRED]
        found = places(match(labels, parts, rest, preset="PLUG_IN_GAIT"), rest)
        for name in PAIRED:
            np.testing.assert_allclose(found[f"L{name}"], found[f"R{name}"] * [-1, 1, 1], atol=1e-9, err_msg=name)

    @given(scale=st.sampled_from([0.01, 1.0, 100.0]), turn=st.floats(-np.pi, np.pi), arms=st.floats(0.0, 85.0))
    def test_offsets_rotate_and_grow_with_the_rig(self, scale: float, turn: float, arms: float) -> None:
        rows = humans.human(arms=arms)
        turned = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]])
        moved = [
            humans.Row(row.name, row.parent, scale * turned @ row.head, scale * turned @ row.tail, turned @ row.x_axis)
            for row in rows
        ]
        labels = SETS["PLUG_IN_GAIT"].split()
        both = []
        for some in (rows, moved):
            rest = humans.rest_bones(some)
            both.append(places(match(labels, parts_of(naming_schemes.match(rest)), rest), rest))
        for label, place in both[0].items():
            np.testing.assert_allclose(both[1][label], scale * turned @ place, atol=1e-7 * scale, err_msg=label)

    @pytest.mark.parametrize("arms", [0.0, 45.0, 85.0])
    def test_offsets_are_at_the_landmarks_of_the_body(self, arms: float) -> None:
        """A person who faces -Y with the left at +X, meters."""
        parts, rest = rig(arms=arms)
        found = places(match([*SETS["PLUG_IN_GAIT"].split(), "LMT5", "Top.Head", "L_index_tip"], parts, rest), rest)
        thigh, shin, foot, elbow = (rest[parts[Role(part, "L")]].head for part in ("thigh", "shin", "foot", "forearm"))
        front, left, up = -1, 0, 2
        assert found["LASI"][1] * front > thigh[1] * front + 0.03
        assert found["LPSI"][1] * front < thigh[1] * front - 0.05
        assert 0.03 < found["LASI"][up] - thigh[up] < 0.12
        assert 0.03 < found["LKNE"][left] - shin[left] < 0.08
        assert found["LHEE"][1] > foot[1] + 0.03
        assert found["LHEE"][up] < foot[up]
        assert found["LTOE"][1] < foot[1] - 0.08
        assert found["LMT5"][left] > found["LTOE"][left] > found["LASI"][left] * 0.2
        # The thumb's side of the wrist is in front for any pose of the arm.
        assert (found["LWRA"] - found["LWRB"])[1] * front > 0.05
        across = found["LELB"] - elbow
        outward = np.array([np.sin(np.radians(arms)), 0.0, np.cos(np.radians(arms))])
        assert across @ outward > 0.02
        assert found["Top.Head"][up] > found["LFHD"][up] > found["C7"][up] > found["T10"][up]
        assert found["CLAV"][1] * front > found["C7"][1] * front + 0.1
        last = rest[parts[Role("finger", "L", "index", 3)]]
        np.testing.assert_allclose(found["L_index_tip"], last.head + last.length * last.axes[:, 1], atol=1e-9)

    def test_knuckles_have_the_same_places_without_finger_bones(self) -> None:
        """Fixed: they all were at the tail of the hand, even the thumb's, so that hands were too long for the body."""
        labels = [f"left_hand_{finger}_{joints[0]}" for finger, joints in FINGER_JOINTS.items()]
        both = []
        for fingers in (True, False):
            rest = humans.rest_bones(humans.human(fingers=fingers))
            both.append(places(match(labels, parts_of(naming_schemes.match(rest)), rest), rest))
        for label in labels:
            assert np.linalg.norm(both[0][label] - both[1][label]) < 0.03

    def test_arms_stretched_out_to_the_front(self) -> None:
        """Arms that point forward and slightly up, so that the thumbs are on top."""
        parts, rest = rig(fingers=False)
        rise, ahead = np.radians(5.0), np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
        ahead = np.array([[1, 0, 0], [0, np.cos(rise), np.sin(rise)], [0, -np.sin(rise), np.cos(rise)]]) @ ahead
        shoulder = rest["upper_arm.L"].head
        for name in ("upper_arm.L", "forearm.L", "hand.L"):
            bone = rest[name]
            rest[name] = replace(bone, head=shoulder + ahead @ (bone.head - shoulder), axes=ahead @ bone.axes)
        found = places(match(["LWRA", "LWRB", "LELB"], parts, rest), rest)
        np.testing.assert_allclose(
            rest["hand.L"].head - shoulder, [0, -0.54 * np.cos(rise), 0.54 * np.sin(rise)], atol=1e-9
        )
        assert (found["LWRA"] - found["LWRB"])[2] > 0.05

    @pytest.mark.parametrize(
        ("name", "share"),
        [
            ("gait2354_subject01_static.trc", 1.0),
            ("gait2354_subject01_walk1.trc", 1.0),
            ("Pose2Sim_markers.trc", 1.0),
            ("MACsample.c3d", 1.0),
            ("PiG_Motion3_FF.c3d", 1.0),
            ("golfswing.c3d", 0.0),
        ],
    )
    def test_real_files(self, name: str, share: float) -> None:
        if not (DATA / name).is_file():
            pytest.skip(f"{DATA / name} is not there")
        labels = [label for label in read_markers(DATA / name).names if not is_unlabelled(label)]
        parts, rest = rig()
        assert len(match(labels, parts, rest).markers) == share * len(labels)

    def test_on_each_bone_landmarks_are_arranged_as_on_a_person(self) -> None:
        """The markers of the static trial, moved onto their guesses rigidly for each bone."""
        path = DATA / "gait2354_subject01_static.trc"
        if not path.is_file():
            pytest.skip(f"{path} is not there")
        clip = read_markers(path)
        parts, rest = rig(arms=60.0)
        guesses = places(match(clip.names, parts, rest), rest)
        for stems, most in (
            (["R.ASIS", "L.ASIS", "V.Sacral"], 0.02),
            (["R.Thigh.Upper", "R.Thigh.Front", "R.Thigh.Rear", "R.Knee.Lat", "R.Knee.Med"], 0.02),
            (["R.Shank.Upper", "R.Shank.Front", "R.Shank.Rear", "R.Ankle.Lat", "R.Ankle.Med"], 0.02),
            (["R.Heel", "R.Midfoot.Sup", "R.Midfoot.Lat", "R.Toe.Lat", "R.Toe.Med"], 0.03),
        ):
            measured = np.array([np.nanmedian(clip.positions[:, clip.names.index(name)], axis=0) for name in stems])
            off = rigidly_off(measured, np.array([guesses[name] for name in stems]))
            assert np.sqrt((off**2).mean()) < most, stems
