"""Keypoints in CSV files and NumPy arrays: names, units, axes and rates that files do not give, and refused files."""

import io
import pickle
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.keypoints import array, csv_text, person, y_down, y_up

from fabrik_addon.markers.clip import ChoiceError, MarkerFileError, to_z_up
from fabrik_addon.markers.files.any_file import read_markers
from fabrik_addon.markers.files.keypoints import hand_names, names_of
from fabrik_addon.markers.files.reading import IN_PLACE
from fabrik_addon.markers.mapping.labels import landmarks_of

_ORDERS = {
    "mediapipe": "nose left_eye_inner left_eye left_eye_outer right_eye_inner right_eye right_eye_outer left_ear"
    " right_ear mouth_left mouth_right left_shoulder right_shoulder left_elbow right_elbow left_wrist right_wrist"
    " left_pinky right_pinky left_index right_index left_thumb right_thumb left_hip right_hip left_knee right_knee"
    " left_ankle right_ankle left_heel right_heel left_foot_index right_foot_index",
    "coco": "nose left_eye right_eye left_ear right_ear left_shoulder right_shoulder left_elbow right_elbow left_wrist"
    " right_wrist left_hip right_hip left_knee right_knee left_ankle right_ankle",
    "halpe": "nose left_eye right_eye left_ear right_ear left_shoulder right_shoulder left_elbow right_elbow left_wrist"
    " right_wrist left_hip right_hip left_knee right_knee left_ankle right_ankle head neck hip left_big_toe"
    " right_big_toe left_small_toe right_small_toe left_heel right_heel",
    "body_25": "nose neck right_shoulder right_elbow right_wrist left_shoulder left_elbow left_wrist mid_hip right_hip"
    " right_knee right_ankle left_hip left_knee left_ankle right_eye left_eye right_ear left_ear left_big_toe"
    " left_small_toe left_heel right_big_toe right_small_toe right_heel",
    "h36m": "hip right_hip right_knee right_ankle left_hip left_knee left_ankle mid_spine neck nose head left_shoulder"
    " left_elbow left_wrist right_shoulder right_elbow right_wrist",
    "smpl": "pelvis left_hip right_hip spine1 left_knee right_knee spine2 left_ankle right_ankle spine3 left_ball"
    " right_ball neck left_collar right_collar head_joint left_shoulder right_shoulder left_elbow right_elbow"
    " left_wrist right_wrist left_hand right_hand",
    "extra": "nose right_eye left_eye right_ear left_ear left_big_toe left_small_toe left_heel right_big_toe"
    " right_small_toe right_heel left_thumb_tip left_index_tip left_middle_tip left_ring_tip left_pinky_tip"
    " right_thumb_tip right_index_tip right_middle_tip right_ring_tip right_pinky_tip",
}
ORDERS = {key: order.split() for key, order in _ORDERS.items()}
MEDIAPIPE, COCO, HALPE, BODY_25, H36M, SMPL, EXTRA = ORDERS.values()
SMPL_45 = [*SMPL, *EXTRA]
RTMPOSE_HAND = [
    "hand_root",
    *(
        f"{finger}{n}"
        for finger in ["thumb", "forefinger", "middle_finger", "ring_finger", "pinky_finger"]
        for n in (1, 2, 3, 4)
    ),
]
FRAMES = 40


def saved(path: Path, points) -> Path:
    np.save(path, points)
    return path


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


class TestArrays:
    @pytest.mark.parametrize(
        "order", [MEDIAPIPE, COCO, HALPE, BODY_25, H36M, SMPL, SMPL_45, SMPL[:22]], ids=lambda order: str(len(order))
    )
    @pytest.mark.parametrize(("unit", "factor"), [("m", 1.0), ("cm", 100.0), ("mm", 1000.0)])
    @pytest.mark.parametrize("axes", [np.asarray, y_up, y_down])
    def test_layout_units_and_axes_are_found(self, tmp_path, order, unit, factor, axes):
        truth = array(order, FRAMES)
        clip = read_markers(saved(tmp_path / "walk.npy", factor * axes(truth)))
        assert (clip.names, clip.units, clip.rate) == (tuple(order), unit, 30.0)
        np.testing.assert_allclose(to_z_up(clip).positions, truth, atol=1e-9)
        assert any("rate is unknown; assumed 30" in doubt for doubt in clip.doubts)

    def test_an_adult_in_inches_gives_a_warning(self, tmp_path):
        """In centimeters, the same numbers are those of an infant."""
        clip = read_markers(saved(tmp_path / "a.npy", y_up(array(COCO)) / 0.0254))
        start = "The units are unknown; assumed cm, so the person measures 0.59 m"
        assert any(doubt.startswith(start) for doubt in clip.doubts)
        clip = read_markers(saved(tmp_path / "a.npy", y_up(array(COCO)) / 0.0254), units="in")
        np.testing.assert_allclose(to_z_up(clip).positions, array(COCO), atol=1e-9)
        assert not any("units" in doubt for doubt in clip.doubts)

    def test_positions_relative_to_the_hips_give_a_note(self, tmp_path):
        """Someone who lies looks like someone who stands, since the floor is unknown."""
        points = y_up(array(COCO))
        hips = points[:, [COCO.index("left_hip"), COCO.index("right_hip")]].mean(axis=1)
        assert IN_PLACE not in read_markers(saved(tmp_path / "a.npy", points)).notes
        relative = saved(tmp_path / "a.npy", points - hips[:, None])
        assert IN_PLACE in read_markers(relative).notes
        assert IN_PLACE not in read_markers(relative, up_axis="Y").notes

    def test_given_rate_units_and_axis_are_used(self, tmp_path):
        truth = array(COCO)
        clip = read_markers(saved(tmp_path / "a.npy", y_up(truth)), units="cm", up_axis="Y", rate=60.0)
        assert (clip.rate, clip.units, clip.up_axis) == (60.0, "cm", "Y")
        np.testing.assert_allclose(to_z_up(clip).positions, truth / 100.0, atol=1e-12)
        assert not any("rate" in said for said in (*clip.notes, *clip.doubts))

    @pytest.mark.parametrize("order", [COCO, H36M], ids=["coco", "h36m"])
    @given(noise=st.floats(0.0, 0.03), lost=st.floats(0.0, 0.5), seed=st.integers(0, 2**32 - 1))
    def test_seventeen_points_are_distinguished_by_bones(self, order, noise, lost, seed):
        rng = np.random.default_rng(seed)
        points = array(order) + rng.normal(scale=noise, size=(FRAMES, 17, 3))
        points[rng.random((FRAMES, 17)) < lost] = np.nan
        assert names_of(points, None) == tuple(order)

    def test_points_that_fit_no_layout_need_a_given_one(self, tmp_path):
        points = np.random.default_rng(3).normal(size=(5, 17, 3))
        path = saved(tmp_path / "odd.npy", points)
        with pytest.raises(ChoiceError) as caught:
            read_markers(path)
        assert caught.value.choices == ("COCO", "H36M")
        assert str(caught.value) == (
            "odd.npy: it has 17 points without names: choose their layout, COCO or Human3.6M "
            "(--layout coco|h36m on the command line)"
        )
        assert read_markers(path, "m", "Z", "h36m").names == tuple(H36M)
        with pytest.raises(
            MarkerFileError, match=r"^odd\.npy: it has 17 points, but the layout HALPE has 26 or 136: choose"
        ):
            read_markers(path, layout="HALPE")

    @pytest.mark.parametrize(
        "shape",
        [
            pytest.param(lambda points: points[:, None], id="F1N3"),
            pytest.param(lambda points: points[None], id="1FN3"),
            pytest.param(lambda points: points.reshape(len(points), -1), id="flat rows"),
            pytest.param(lambda points: np.append(points, np.ones_like(points[..., :1]), axis=2), id="confidence"),
            pytest.param(lambda points: points.astype(np.float32), id="single precision"),
        ],
    )
    def test_arrays_of_several_shapes_are_read(self, tmp_path, shape):
        truth = array(MEDIAPIPE)
        np.testing.assert_allclose(read_markers(saved(tmp_path / "a.npy", shape(truth))).positions, truth, atol=1e-6)

    @pytest.mark.parametrize("none", [0.0, np.nan, -1.0])
    def test_points_without_confidence_are_not_seen(self, tmp_path, none):
        points = np.concatenate([array(COCO), np.full((FRAMES, 17, 1), 0.8)], axis=2)
        points[3:9, 4] = 7.0, 7.0, 7.0, none
        clip = read_markers(saved(tmp_path / "a.npy", points))
        assert np.argwhere(~clip.seen).tolist() == [[frame, 4] for frame in range(3, 9)]

    def test_a_confidence_that_no_point_has_does_not_count(self, tmp_path):
        points = np.concatenate([array(COCO), np.zeros((FRAMES, 17, 1))], axis=2)
        assert read_markers(saved(tmp_path / "a.npy", points)).seen.all()

    def test_one_frame(self, tmp_path):
        truth = array(COCO, 1)
        for points in (truth, truth[0]):
            np.testing.assert_allclose(read_markers(saved(tmp_path / "a.npy", points)).positions, truth)

    def test_values_that_are_not_numbers_are_not_seen(self, tmp_path):
        points = array(COCO)
        points[3, 4], points[5, 6], points[7, 8, 1] = np.nan, np.inf, np.nan
        seen = read_markers(saved(tmp_path / "a.npy", points)).seen
        assert np.argwhere(~seen).tolist() == [[3, 4], [5, 6], [7, 8]]

    def test_hands_are_read_and_the_face_is_not(self, tmp_path):
        """FreeMoCap's order: body, right hand, left hand, 478 points of the face."""
        body, joints = array(MEDIAPIPE), person()
        right, left = (
            joints[f"{side}_wrist"][:, None] + np.arange(21)[:, None] * [0.0, 0.0, -0.005] for side in ("right", "left")
        )
        whole = np.concatenate([body, right, left, np.tile(body[:, :1], (1, 478, 1)) + 0.01], axis=1)
        clip = read_markers(saved(tmp_path / "mediapipe_skeleton_3d.npy", 1000.0 * whole))
        assert len(clip.names) == 33 + 42
        assert "left out 478 points that belong to no bone" in clip.notes
        np.testing.assert_allclose(clip.positions[:, clip.names.index("left_hand_wrist")], left[:, 0])
        np.testing.assert_allclose(clip.positions[:, clip.names.index("right_hand_pinky_tip")], right[:, 20])
        found = landmarks_of(clip.names)
        assert found["left_hand_index_pip"] == ("L", "index 2")
        assert found["right_hand_thumb_cmc"] == ("R", "thumb 1")

    def test_hands_of_the_other_order_go_to_their_own_wrists(self, tmp_path):
        body, joints = array(MEDIAPIPE), person()
        hands = [
            joints[f"{side}_wrist"][:, None] + np.arange(21)[:, None] * [0.0, 0.0, -0.005] for side in ("left", "right")
        ]
        clip = read_markers(saved(tmp_path / "a.npy", np.concatenate([body, *hands], axis=1)))
        np.testing.assert_allclose(clip.positions[:, clip.names.index("left_hand_wrist")], hands[0][:, 0])
        np.testing.assert_allclose(clip.positions[:, clip.names.index("right_hand_wrist")], hands[1][:, 0])

    @pytest.mark.parametrize(
        ("points", "message"),
        [
            (array(COCO)[..., :2], "it contains points in two dimensions: export frames"),
            (np.zeros((4, 17, 3)), "no marker is visible on any frame"),
            (array(COCO) * [1.0, 1.0, 0.0], "its points lie in a plane, like those of an image"),
            (array(COCO) * 1e6, r"its units are unknown, and 1.5e\+06 is not a person's size in m, cm or mm"),
            (array(COCO) * 0.01, r"its units are unknown, and 0.015 is not a person's size in m, cm or mm"),
            (
                array(COCO)[:, :11],
                "it has 11 points without names, and no known layout has this number: export a CSV file",
            ),
            (np.zeros(7), r"it contains an array of shape \(7,\): export frames"),
            (np.zeros((0, 17, 3)), r"it contains an array of shape \(0, 17, 3\): export frames"),
            (np.array(["a", "b"]), "it is not an array of numbers"),
            (array(COCO) * 1j, "it is not an array of numbers"),
        ],
    )
    def test_refused(self, tmp_path, points, message):
        with pytest.raises(MarkerFileError, match=rf"^a\.npy: {message}") as caught:
            read_markers(saved(tmp_path / "a.npy", points))
        assert "\n" not in str(caught.value)

    def test_image_coordinates_are_refused(self, tmp_path):
        points = y_down(array(MEDIAPIPE))
        low = points.min(axis=(0, 1))
        shares = (points - low) / np.ptp(points, axis=(0, 1)).max()
        with pytest.raises(MarkerFileError, match="its points are image coordinates"):
            read_markers(saved(tmp_path / "a.npy", shares))


class TestPickles:
    def test_pickles_are_never_loaded(self, tmp_path):
        """Loading this pickle would create a file."""
        made = tmp_path / "made"

        class Bad:
            def __reduce__(self):
                return Path.touch, (made,)

        boxed = io.BytesIO()
        np.save(boxed, np.array([Bad()], dtype=object), allow_pickle=True)
        for name, content in (
            ("a.npy", boxed.getvalue()), ("a.npy", pickle.dumps(Bad())), ("a.pkl", pickle.dumps(Bad())),
        ):  # fmt: skip
            (tmp_path / name).write_bytes(content)
            with pytest.raises(MarkerFileError, match=rf"^{name}: it contains pickled Python objects, which may run"):
                read_markers(tmp_path / name)
        assert not made.exists()

    @given(cut=st.floats(0.0, 0.999))
    def test_arrays_that_are_cut_off(self, tmp_path_factory, cut):
        file = io.BytesIO()
        np.save(file, array(COCO, 3))
        content = file.getvalue()
        path = tmp_path_factory.mktemp("cut") / "a.npy"
        path.write_bytes(content[: int(cut * len(content))])
        with pytest.raises(MarkerFileError, match=r"^a\.npy: "):
            read_markers(path)


class TestHeader:
    @pytest.mark.parametrize("lost", [0, 5, 50])
    def test_a_column_without_a_name_is_refused(self, tmp_path, lost):
        """Fixed: all columns after it had the names of their neighbors, and the person came out jumbled."""
        head, rows = csv_text(COCO, array(COCO)).split("\n", 1)
        names = head.split(",")
        assert len(names) == 51
        text = ",".join(names[:lost] + names[lost + 1 :])
        with pytest.raises(MarkerFileError, match="its header names 50 columns, but the first row has 51"):
            read_markers(written(tmp_path / "a.csv", f"{text}\n{rows}"), rate=30.0)
        # Empty cells at the ends of rows are not columns.
        empty = rows.replace("\n", ",\n")
        assert read_markers(written(tmp_path / "a.csv", f"{head}\n{empty}"), rate=30.0).names == tuple(COCO)


class TestMirrored:
    @pytest.mark.parametrize(
        "order", [MEDIAPIPE, COCO, HALPE, BODY_25, H36M, SMPL, SMPL_45], ids=lambda order: str(len(order))
    )
    def test_mirrored_axes_give_a_warning(self, tmp_path, order):
        """Two axes of the file are swapped."""
        text = csv_text([f"body_{name}" for name in order], array(order))
        assert not read_markers(written(tmp_path / "a.csv", text), rate=30.0).doubts
        text = csv_text([f"body_{name}" for name in order], array(order)[..., [0, 2, 1]])
        (doubt,) = read_markers(written(tmp_path / "a.csv", text), rate=30.0).doubts
        assert doubt.startswith("The body of the person faces backward: ")


class TestTables:
    @pytest.mark.parametrize("ends", [("_x", "_y", "_z"), (".x", ".y", ".z"), ("X", "Y", "Z"), ("_X", "_Y", "_Z")])
    @pytest.mark.parametrize("separator", [",", ";", "\t"])
    def test_names_of_the_header(self, tmp_path, ends, separator):
        truth = array(MEDIAPIPE)
        text = csv_text(MEDIAPIPE, 1000.0 * truth, ends=ends, separator=separator)
        clip = read_markers(written(tmp_path / "mediapipe_body_3d_xyz.csv", text))
        assert (clip.names, clip.units, clip.up_axis) == (tuple(MEDIAPIPE), "mm", "Z")
        np.testing.assert_allclose(clip.positions, truth, atol=1e-8)

    def test_freemocap_by_trajectory(self, tmp_path):
        """Names with the part of the model in front, hands and face by numbers, times in seconds."""
        truth = array(MEDIAPIPE)
        wrist = truth[:, [15]]
        numbered = ["left_hand_0000", "left_hand_0008", "face_0000", "com_full"]
        names = [*(f"body_{name}" for name in MEDIAPIPE), *numbered]
        points = np.concatenate([truth, wrist, wrist - [0.0, 0.0, 0.15], wrist, wrist], axis=1)
        lines = csv_text(names, 1000.0 * points).splitlines()
        lines[0] = f"timestamp,timestamp_by_camera,{lines[0]}"
        lines[1:] = [f"{frame / 25.0:.4f},\"{{'0': 1}}\",{line}" for frame, line in enumerate(lines[1:])]
        clip = read_markers(written(tmp_path / "walk_by_trajectory.csv", "\n".join(lines) + "\n"))
        assert clip.names == (*MEDIAPIPE, "left_hand_wrist", "left_hand_index_tip")
        assert clip.rate == pytest.approx(25.0)
        assert clip.notes == ("left out 2 points that belong to no bone",)
        np.testing.assert_allclose(clip.positions, points[:, :35], atol=1e-8)

    def test_freemocap_by_frame(self, tmp_path):
        """A row for each frame and keypoint; points that are missing on a frame have none."""
        truth = array(MEDIAPIPE, 4)
        rows = ["frame,timestamp,timestamp_by_camera,model,keypoint,x,y,z,reprojection_error"]
        for frame, points in enumerate(truth):
            for name, (x, y, z) in zip(MEDIAPIPE, 1000.0 * points, strict=True):
                if (frame, name) != (2, "nose"):
                    rows.append(f"{frame},{frame / 50},{{}},mediapipe_body,{name},{x},{y},{z},0.1")
            rows.append(f"{frame},{frame / 50},{{}},mediapipe_hand,left_0000,{','.join(map(str, 1000 * points[15]))},")
            rows.append(f"{frame},{frame / 50},{{}},mediapipe_face,0000,1,2,3,")
            rows.append(f"{frame},{frame / 50},{{}},mediapipe_com,head,1,2,3,")
        clip = read_markers(written(tmp_path / "walk_by_frame.csv", "\n".join(rows) + "\n"))
        assert clip.names == (*MEDIAPIPE, "left_hand_wrist")
        assert clip.rate == pytest.approx(50.0)
        assert np.argwhere(~clip.seen).tolist() == [[2, 0]]
        np.testing.assert_allclose(clip.positions[[0, 1, 3], :33], truth[[0, 1, 3]], atol=1e-9)

    def test_freemocap_2_by_frame(self, tmp_path):
        """Hands have the same names on both sides; the rows of other trajectories are not points of the body."""
        truth = array(HALPE, 4)
        near = np.linspace((0.0, 0.0, 0.0), (0.0, 0.02, -0.1), len(RTMPOSE_HAND))
        hands = {side: truth[:, [HALPE.index(f"{side}_wrist")]] + near for side in ("left", "right")}
        rows = ["frame,keypoint,x,y,z,model,trajectory,reprojection_error"]
        for frame in range(4):
            parts = [(HALPE, truth, "body", "3d_xyz"), (HALPE, truth + 0.1, "body", "rigid_3d_xyz")]
            parts += [(["head", "left_foot"], truth - 0.2, "body", "segment_center_of_mass")]
            parts += [(RTMPOSE_HAND, hand, f"{side}_hand", "3d_xyz") for side, hand in hands.items()]
            for names, points, part, trajectory in parts:
                for name, (x, y, z) in zip(names, 1000.0 * points[frame], strict=False):
                    rows.append(f"{frame},{name},{x},{y},{z},rtmpose.{part},{trajectory},")
        clip = read_markers(written(tmp_path / "freemocap_data_by_frame.csv", "\n".join(rows) + "\n"))
        assert clip.names == (*HALPE, *(name for side in hands for name in hand_names(side)))
        np.testing.assert_allclose(clip.positions, np.concatenate([truth, *hands.values()], axis=1), atol=1e-9)

    @pytest.mark.parametrize("scale", [1.0, 1e3, 1e6, 1e9])
    def test_times_in_any_unit_give_the_rate(self, tmp_path, scale):
        lines = csv_text(COCO, array(COCO)).splitlines()
        name = {1.0: "Time (s)", 1e3: "timestamp_ms", 1e6: "time_us", 1e9: "timestamp"}[scale]
        lines = [f"{name},{lines[0]}", *(f"{(7 + n / 24.0) * scale:.3f},{line}" for n, line in enumerate(lines[1:]))]
        clip = read_markers(written(tmp_path / "a.csv", "\n".join(lines) + "\n"))
        assert clip.rate == pytest.approx(24.0, rel=2e-3)

    def test_times_that_skip_frames_leave_gaps(self, tmp_path):
        """A camera stopped for a second, and the whole motion was slowed down."""
        lines, late = csv_text(COCO, array(COCO)).splitlines(), np.where(np.arange(FRAMES) < 15, 0.0, 1.0)
        times = np.arange(FRAMES) / 30.0 + late + np.random.default_rng(1).normal(scale=0.003, size=FRAMES)
        rows = [f"{time:.4f},{line}" for time, line in zip(times, lines[1:], strict=True)]
        clip = read_markers(written(tmp_path / "a.csv", "\n".join([f"time,{lines[0]}", *rows])))
        assert clip.rate == pytest.approx(30.0, rel=0.01)
        assert np.flatnonzero(~clip.seen.any(axis=1)).tolist() == list(range(15, 45))
        assert "30 frames are missing; left gaps for them" in clip.notes

    @pytest.mark.parametrize("word", ["c", "confidence", "likelihood", "Visibility"])
    def test_points_with_confidence_zero_are_not_seen(self, tmp_path, word):
        truth, sure = array(COCO), np.ones((FRAMES, len(COCO)))
        sure[5:9, 3] = 0.0
        points = np.where(sure[..., None] > 0.0, truth, 9.0)
        columns = [f"{name}_{end}" for name in COCO for end in ("x", "y", "z", word)]
        rows = np.concatenate([points, sure[..., None]], axis=2).reshape(FRAMES, -1).tolist()
        lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
        clip = read_markers(written(tmp_path / "a.csv", "\n".join(lines) + "\n"))
        np.testing.assert_array_equal(clip.seen, sure > 0.0)
        np.testing.assert_allclose(to_z_up(clip).positions[sure > 0.0], truth[sure > 0.0], atol=1e-9)

    @pytest.mark.parametrize("header", [None, "x0,y0,z0", "joint_0_x", "pose_0_x"])
    def test_numbered_points_and_no_header_at_all(self, tmp_path, header):
        truth = array(H36M)
        lines = csv_text([f"joint_{n}" for n in range(17)], truth).splitlines()
        if header is None:
            lines = lines[1:]
        elif header.startswith("x0"):
            lines[0] = ",".join(f"{axis}{n}" for n in range(17) for axis in "xyz")
        else:
            lines[0] = lines[0].replace("joint", header.partition("_")[0])
        clip = read_markers(written(tmp_path / "a.csv", "\n".join(lines) + "\n"))
        assert clip.names == tuple(H36M)
        np.testing.assert_allclose(clip.positions, truth, atol=1e-6)

    @pytest.mark.parametrize("ends", ["rx ry rz", "rotation_x rotation_y rotation_z", "qw qx qy qz", "RotX RotY RotZ"])
    @pytest.mark.parametrize("moved", ["x y z", "tx ty tz", "pos_x pos_y pos_z"])
    def test_columns_of_rotations_are_not_read_as_points(self, tmp_path, ends, moved):
        """A file with rotations alone is refused. Next to positions, rotations are left out."""
        names, truth = ["Hips", *COCO], array(["pelvis", *COCO])
        turns = np.full((FRAMES, len(ends.split())), 12.5)
        head = [f"{name}_{end}" for name in names for end in ends.split()]
        rows = np.tile(turns, (1, len(names)))
        text = "\n".join([",".join(head), *(",".join(map(str, row)) for row in rows)]) + "\n"
        with pytest.raises(MarkerFileError, match="it has rotations of bones, such as Hips, but no positions"):
            read_markers(written(tmp_path / "a.csv", text))
        head = [f"{name}_{end}" for name in names for end in (*moved.split(), *ends.split())]
        rows = np.concatenate([truth, np.tile(turns[:, None], (1, len(names), 1))], axis=2).reshape(FRAMES, -1)
        text = "\n".join([",".join(head), *(",".join(map(str, row)) for row in rows)]) + "\n"
        clip = read_markers(written(tmp_path / "a.csv", text))
        assert clip.names == tuple(names)
        np.testing.assert_allclose(clip.positions, truth)

    def test_suffixes_of_sides_are_not_read_as_rotations(self, tmp_path):
        names = ["hip_l", "hip_r", "knee_l", "knee_r", "ankle_l", "ankle_r", "shoulder_l", "shoulder_r", "nose"]
        plain = [f"{'left' if name[-1] == 'l' else 'right'}_{name[:-2]}" for name in names[:-1]] + ["nose"]
        for ends in (("x", "y", "z"), ("_x", "_y", "_z"), ("X", "Y", "Z")):
            clip = read_markers(written(tmp_path / "a.csv", csv_text(names, array(plain), ends=ends)))
            assert clip.names == tuple(names), ends

    @pytest.mark.parametrize("separator", [";", "\t"])
    def test_decimal_commas(self, tmp_path, separator):
        truth = array(COCO)
        text = csv_text(COCO, truth, separator=separator).replace(".", ",")
        np.testing.assert_allclose(read_markers(written(tmp_path / "a.csv", text)).positions, truth, atol=1e-5)

    @pytest.mark.parametrize("tidy", [False, True])
    def test_frames_that_are_missing_stay_gaps(self, tmp_path, tidy):
        truth = array(COCO)
        kept = [frame for frame in range(FRAMES) if not 5 <= frame < 9]
        if tidy:
            rows = [
                f"{frame},{frame / 50},{name},{x},{y},{z}"
                for frame in kept
                for name, (x, y, z) in zip(COCO, truth[frame].tolist(), strict=True)
            ]
            text = "\n".join(["frame,timestamp,keypoint,x,y,z", *rows]) + "\n"
        else:
            head, *lines = csv_text(COCO, truth[kept]).splitlines()
            rows = [f"{frame},{frame / 50},{line}" for frame, line in zip(kept, lines, strict=True)]
            text = "\n".join([f"frame,time,{head}", *rows]) + "\n"
        clip = read_markers(written(tmp_path / "a.csv", text))
        truth[5:9] = np.nan
        np.testing.assert_allclose(clip.positions, truth, atol=1e-5)
        assert clip.rate == pytest.approx(50.0)
        assert clip.notes == ("4 frames are missing; left gaps for them",)

    @pytest.mark.parametrize(("name", "cell"), [("time", "{}"), ("timestamp", "2026-01-05T10:00:{:02d}")])
    def test_times_that_count_frames_or_are_dates_give_no_rate(self, tmp_path, name, cell):
        head, *lines = csv_text(COCO, array(COCO)).splitlines()
        rows = [f"{cell.format(frame)},{line}" for frame, line in enumerate(lines)]
        clip = read_markers(written(tmp_path / "a.csv", "\n".join([f"{name},{head}", *rows])))
        assert (clip.rate, clip.frame_count) == (30.0, FRAMES)
        assert any("rate is unknown" in doubt for doubt in clip.doubts)

    def test_blank_cells_are_not_seen_and_a_row_of_them_is_a_frame(self, tmp_path):
        points = array(COCO)
        points[2], points[5, 1] = np.nan, np.nan
        clip = read_markers(written(tmp_path / "a.csv", csv_text(COCO, points)))
        np.testing.assert_array_equal(clip.seen, np.isfinite(points).all(axis=2))

    def test_a_number_that_was_cut_off_is_not_used(self, tmp_path):
        text = csv_text(COCO, array(COCO, 5))
        row = text.rstrip("\n").rsplit("\n", 1)[1]
        cut = text[: -len(row) - 1] + ",".join(row.split(",")[:7]) + "9"
        clip = read_markers(written(tmp_path / "a.csv", cut))
        assert clip.frame_count == 5
        assert clip.seen[4].tolist() == [True, True] + [False] * 15

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a,b,c\n1,2,3\n", "it has no point columns: add a header such as nose_x, nose_y, nose_z"),
            ("nose_x,nose_y\n1,2\n", "its points have two coordinates: export 3D points"),
            ("nose_x,nose_y,nose_z\n", "there are no frames after the header"),
            ("nose_x,nose_y,nose_z\n1,two,3\n", "line 2, column 2: 'two' is not a number"),
            ("1,2,3,4\n1,2,3,4\n", "it has no header and 4 columns, but each point needs three"),
            ("face_0000_x,face_0000_y,face_0000_z\n1,2,3\n", "none of its points belongs to a bone"),
            ("\x00" * 9, "line 1, column 1: .* is not a number"),
            (",,\n", "it has no point columns"),
        ],
    )
    def test_refused(self, tmp_path, text, message):
        with pytest.raises(MarkerFileError, match=rf"^a\.csv: ({message})") as caught:
            read_markers(written(tmp_path / "a.csv", text))
        assert "\n" not in str(caught.value)

    @given(content=st.binary(max_size=200))
    def test_any_bytes_are_read_or_refused(self, tmp_path_factory, content):
        for suffix in (".csv", ".npy", ".npz"):
            path = tmp_path_factory.mktemp("any") / f"a{suffix}"
            path.write_bytes(content)
            with suppress(MarkerFileError):
                read_markers(path)
