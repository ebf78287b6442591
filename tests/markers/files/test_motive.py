"""CSV exports of Motive and of Nexus, and the markers in AMASS's .npz files."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import walker
from support.keypoints import y_up
from support.marker_tables import FRAMES, Motive, nexus_text, of_markers, truth
from support.poses import rotation

from fabrik_addon.markers.clip import MarkerFileError, to_z_up
from fabrik_addon.markers.files.any_file import performers, read_markers


def written(path: Path, text: str, encoding="utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


class TestMotive:
    @pytest.mark.parametrize("version", ["1.21", "1.23", "1.25"])
    @pytest.mark.parametrize(("units", "factor"), [("Meters", 1.0), ("Millimeters", 1000.0), ("Centimeters", 100.0)])
    @pytest.mark.parametrize("axes", [y_up, np.asarray], ids=["Y up", "Z up"])
    def test_markers(self, tmp_path, version, units, factor, axes):
        file = of_markers(version, units, factor, axes=axes)
        clip = read_markers(written(tmp_path / "take.csv", file.text()))
        positions, names = truth()
        assert (clip.names, clip.rate, clip.up_axis) == (tuple(names), 120.0, "Y" if axes is y_up else "Z")
        np.testing.assert_allclose(to_z_up(clip).positions, positions, atol=1e-6)
        assert not clip.notes

    @pytest.mark.parametrize("version", ["1.23", "1.25"])
    @pytest.mark.parametrize("kinds", ["", "Type"])
    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
    def test_without_the_header_information(self, tmp_path, version, kinds, encoding):
        """An option of the export. Fixed: the message was that it has no columns such as nose_x."""
        _, table = of_markers(version).text().split("\n\n", 1)
        file = written(tmp_path / "take.csv", table.replace("Type", kinds, 1), encoding)
        with pytest.raises(MarkerFileError, match="the header has no units: choose them"):
            read_markers(file)
        clip = read_markers(file, units="m")
        positions, names = truth()
        assert (clip.names, clip.rate, clip.doubts) == (tuple(names), pytest.approx(120.0, abs=0.01), ())
        np.testing.assert_allclose(to_z_up(clip).positions, positions, atol=1e-6)

    def test_missing_frames_give_a_warning(self, tmp_path):
        """Fixed: a file that was cut between two rows was read as if it were whole."""
        lines = of_markers().text().splitlines()
        clip = read_markers(written(tmp_path / "take.csv", "\n".join(lines[:-2]) + "\n"))
        said = f"The header gives {FRAMES} frames, but there are only {FRAMES - 2}: export it again"
        assert clip.doubts == (said,)

    def test_skeletons_are_performers(self, tmp_path):
        clip = read_markers(written(tmp_path / "take.csv", of_markers(prefix="Anna:").text()))
        assert performers(clip) == ("Anna",)

    def test_a_rigid_body_is_a_cluster_of_its_measured_markers(self, tmp_path):
        rng = np.random.default_rng(5)
        solved, measured = rng.normal(size=(2, 3, FRAMES, 3))
        measured[0, 2] = np.nan
        file = Motive().add("Rigid Body", "Left Thigh", "Rotation", "XYZW", np.tile([0, 0, 0, 1], (FRAMES, 1)))
        file.add("Rigid Body", "Left Thigh", "Position", "XYZ", rng.normal(size=(FRAMES, 3)))
        file.add("Rigid Body", "Left Thigh", "Mean Marker Error", [""], np.zeros((FRAMES, 1)))
        for place in range(3):
            file.add("Rigid Body Marker", f"Left Thigh:Marker{place + 1}", "Position", "XYZ", solved[place])
            file.add("Rigid Body Marker", f"Left Thigh:Marker{place + 1}", "Marker Quality", [""], np.ones((FRAMES, 1)))
        for place in range(2):
            file.add("Marker", f"Left Thigh:Marker{place + 1}", "Position", "XYZ", measured[place])
        clip = read_markers(written(tmp_path / "take.csv", file.text()), up_axis="Y")
        assert clip.names == ("Left Thigh_1", "Left Thigh_2", "Left Thigh_3")
        np.testing.assert_allclose(clip.positions, np.stack([*measured[:2], solved[2]], axis=1), atol=1e-6)
        assert np.argwhere(~clip.seen).tolist() == [[2, 0]]

    def test_a_rigid_body_alone_has_points_on_its_axes(self, tmp_path):
        half = np.sqrt(0.5)
        pivot = np.random.default_rng(6).normal(size=(FRAMES, 3))
        turned = np.tile([0.0, 0.0, half, half], (FRAMES, 1))
        pivot[3], turned[3] = np.nan, np.nan
        file = Motive(units="Millimeters").add("Rigid Body", "Head", "Rotation", "XYZW", turned)
        file.add("Rigid Body", "Head", "Position", "XYZ", 1000.0 * pivot)
        clip = read_markers(written(tmp_path / "take.csv", file.text()), up_axis="Y")
        assert clip.names == ("Head_1", "Head_2", "Head_3", "Head_4")
        # A quarter turn about Z: X points along Y, and Y along -X.
        ways = 0.05 * np.array([[0, 0, 0], [0, 1, 0], [-1, 0, 0], [0, 0, 1]])
        np.testing.assert_allclose(clip.positions, pivot[:, None] + ways, atol=1e-6)

    def test_bones_are_left_out_with_a_note(self, tmp_path):
        file = of_markers().add("Bone", "Anna:Hip", "Position", "XYZ", np.ones((FRAMES, 3)))
        clip = read_markers(written(tmp_path / "take.csv", file.text()))
        assert len(clip.names) == len(truth()[1])
        assert clip.notes == ("left out the bones of a skeleton: Anna:Hip; export BVH to retarget them",)

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
    def test_encodings_and_one_frame(self, tmp_path, encoding):
        clip = read_markers(written(tmp_path / "take.csv", of_markers().text(1), encoding))
        np.testing.assert_allclose(to_z_up(clip).positions, truth()[0][:1], atol=1e-6)

    def test_frames_that_are_missing_stay_gaps(self, tmp_path):
        lines = of_markers().text().splitlines(keepends=True)
        clip = read_markers(written(tmp_path / "take.csv", "".join([*lines[:-3], *lines[-1:]])))
        seen = truth()[0].copy()
        seen[-3:-1] = np.nan
        np.testing.assert_allclose(to_z_up(clip).positions, seen, atol=1e-6)
        assert clip.notes == ("2 frames are missing; left gaps for them",)

    def test_a_name_with_commas_does_not_hide_the_units(self, tmp_path):
        text = of_markers().text().replace('"Take, one"', "Walk, slow, one")
        np.testing.assert_allclose(
            to_z_up(read_markers(written(tmp_path / "take.csv", text))).positions, truth()[0], atol=1e-6
        )

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda text: text.replace("Meters", "Furlongs"), "the units 'Furlongs' are not known: choose them"),
            (lambda text: text.replace("Length Units,Meters,", ""), "the header has no units: choose them"),
            (lambda text: text.split("Frame,Time")[0], "the header is truncated"),
            (lambda text: text.replace("Marker", "Device"), "the header is truncated"),
            (lambda text: "\n".join(text.splitlines()[:7]) + "\n", "there are no frames after the header"),
            (lambda text: text.replace("\n2,0.016667,", "\n2,0.016667,left"), r"line 10, column 3: 'left"),
        ],
    )
    def test_refused(self, tmp_path, change, message):
        with pytest.raises(MarkerFileError, match=rf"^take\.csv: {message}") as caught:
            read_markers(written(tmp_path / "take.csv", change(of_markers().text())))
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("name", ["", "Marker"])
    def test_markers_without_a_name_of_their_own_stay(self, tmp_path, name):
        positions, names = truth()
        file = of_markers()
        for place in (1, 2):
            file.owners[place] = ("Marker", name, *file.owners[place][2:])
        clip = read_markers(written(tmp_path / "take.csv", file.text()))
        assert len(clip.names) == len(names)
        np.testing.assert_allclose(to_z_up(clip).positions, positions, atol=1e-6)

    def test_another_rate_in_the_times_gives_a_warning(self, tmp_path):
        text = of_markers().text()
        assert not read_markers(written(tmp_path / "take.csv", text)).doubts
        clip = read_markers(
            written(tmp_path / "take.csv", text.replace("Export Frame Rate,120", "Export Frame Rate,60"))
        )
        assert (clip.rate, len(clip.doubts)) == (60.0, 1)
        assert clip.doubts[0].startswith("The file has two frame rates, 60 and 120 Hz; used the first")

    def test_the_times_count_if_only_the_rate_of_the_cameras_is_given(self, tmp_path):
        text = of_markers().text().replace("Export Frame Rate,120.000000,", "")
        clip = read_markers(written(tmp_path / "take.csv", text))
        assert (clip.rate, clip.doubts) == (pytest.approx(120.0, abs=0.01), ())

    def test_a_column_of_time_codes_is_skipped(self, tmp_path):
        """Motive 3 writes it if the cameras have a time code (a file of version 1.24)."""
        text = of_markers().text()
        head, _, rest = text.partition("\nFrame,Time (Seconds),")
        first, *lines = head.splitlines()
        lines = [line.replace(",", ",,", 1) if line else line for line in lines]
        rows = [row.split(",", 2) for row in rest.splitlines()[1:]]
        rows = [f"{frame},{time},15:26:46:12.02,{numbers}" for frame, time, numbers in rows]
        axes = rest.splitlines()[0]
        coded = "\n".join([first, *lines, f"Frame,Time (Seconds),TimeCode,{axes}", *rows]) + "\n"
        clip, plain = (read_markers(written(tmp_path / "take.csv", each)) for each in (coded, text))
        assert (clip.names, clip.rate, clip.notes, clip.doubts) == (plain.names, 120.0, (), ())
        np.testing.assert_array_equal(clip.positions, plain.positions)

    def test_rigid_bodies_on_limbs_don_t_show_a_front(self, tmp_path):
        """Points of a shin's body are as far ahead as those of the foot's."""
        matrices = dict(zip(walker.skeleton().names, np.moveaxis(walker.true_matrices()[:FRAMES], 1, 0), strict=True))
        bones = {"Hips": "hips", "Chest": "upper_chest", "Head": "head"}
        for side in "LR":
            for body, bone in (("Arm", "upper_arm"), ("Thigh", "thigh"), ("Shin", "shin"), ("Foot", "foot")):
                bones[f"{side}{body}"] = f"{bone}.{side}"
        file = Motive()
        for body, bone in bones.items():
            pivots = y_up(matrices[bone][:, :3, 3] + 0.1 * matrices[bone][:, :3, 1])
            file.add("Rigid Body", body, "Rotation", "XYZW", np.tile([0.0, 0.0, 0.0, 1.0], (FRAMES, 1)))
            file.add("Rigid Body", body, "Position", "XYZ", pivots)
        assert read_markers(written(tmp_path / "take.csv", file.text())).doubts == ()

    @pytest.mark.parametrize("order", ["XYZ", "ZYX", "YXZ"])
    def test_angles_of_a_rigid_body_are_read_in_their_order(self, tmp_path, order):
        """Fixed: each rotation is about an axis that the ones before have rotated. Angles were left out."""
        rng = np.random.default_rng(2)
        angles, pivot = rng.uniform(-80.0, 80.0, (FRAMES, 3)), rng.normal(size=(FRAMES, 3))
        file = Motive().add("Rigid Body", "Head", "Rotation", order, angles)
        file.add("Rigid Body", "Head", "Position", "XYZ", pivot)
        text = file.text().replace("Rotation Type,Quaternion", f"Rotation Type,{order}")
        clip = read_markers(written(tmp_path / "take.csv", text), up_axis="Y")
        axes = np.eye(3)
        for axis, angle in zip(order, angles.T, strict=True):
            axes = axes @ rotation(np.radians(angle)[:, None] * np.eye(3)["XYZ".index(axis)])
        ways = 0.05 * np.concatenate([np.zeros((FRAMES, 1, 3)), np.swapaxes(axes, 1, 2)], axis=1)
        np.testing.assert_allclose(clip.positions, pivot[:, None] + ways, atol=1e-6)

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
    @pytest.mark.parametrize("before", [0, 3])
    def test_a_header_may_be_repeated(self, tmp_path, encoding, before):
        """Fixed: before the frames or between them, as in files that were put together. They were refused."""
        lines = of_markers().text().splitlines()
        first = next(place for place, line in enumerate(lines) if line.startswith("0,"))
        lines[first + before : first + before] = ["", *lines[:first]]
        clip = read_markers(written(tmp_path / "take.csv", "\n".join(lines) + "\n", encoding))
        np.testing.assert_allclose(to_z_up(clip).positions, truth()[0], atol=1e-6)

    # The export's settings Rotation Type and Coordinate Space: docs.optitrack.com, Data Export: CSV.
    def test_rotations_of_a_rigid_body_that_are_no_quaternions_are_left_out_with_a_note(self, tmp_path):
        file = of_markers().add("Rigid Body", "Cart", "Rotation", "XYZ", np.full((FRAMES, 3), 45.0))
        file.add("Rigid Body", "Cart", "Position", "XYZ", np.ones((FRAMES, 3)))
        clip = read_markers(written(tmp_path / "take.csv", file.text()))
        assert clip.notes == ("left out the rotations of Cart: export them with Rotation Type Quaternion",)
        assert clip.names[-1] == "Cart_1"

    def test_markers_relative_to_rigid_bodies_are_refused(self, tmp_path):
        file = of_markers()
        local = file.text().replace("Space,Global", "Space,Local")
        assert len(read_markers(written(tmp_path / "take.csv", local)).names) == len(truth()[1])
        file.add("Rigid Body Marker", "Cart:Marker1", "Position", "XYZ", np.ones((FRAMES, 3)))
        with pytest.raises(
            MarkerFileError, match="relative to their rigid bodies: export it with Coordinate Space Glo"
        ):
            read_markers(written(tmp_path / "take.csv", file.text().replace("Space,Global", "Space,Local")))

    def test_bones_alone_are_refused(self, tmp_path):
        file = Motive().add("Bone", "Anna:Hip", "Position", "XYZ", np.ones((FRAMES, 3)))
        with pytest.raises(MarkerFileError, match="it has only the bones of a skeleton: export markers, or export BVH"):
            read_markers(written(tmp_path / "take.csv", file.text()))


class TestNexus:
    @pytest.mark.parametrize(("unit", "factor"), [("mm", 1000.0), ("m", 1.0)])
    @pytest.mark.parametrize("before", ["", "\n\n", "Devices\n1000\n,,Force\nFrame,Sub Frame,Fx\n,,N\n1,0,3\n\n"])
    @pytest.mark.parametrize("extra", [False, True])
    def test_trajectories(self, tmp_path, unit, factor, before, extra):
        after = "\nModel Outputs\n100\n,,Anna:LKneeAngles\nFrame,Sub Frame,X\n,,deg\n101,0,5\n"
        text = nexus_text(unit, factor, before=before, after=after, extra=extra)
        clip = read_markers(written(tmp_path / "walk.csv", text))
        positions, names = truth()
        assert (clip.names, clip.rate) == (tuple(f"Anna:{name}" for name in names), 100.0)
        assert (clip.units, clip.up_axis) == (unit, "Z")
        np.testing.assert_allclose(clip.positions, positions, atol=1e-5)

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
    def test_encodings(self, tmp_path, encoding):
        clip = read_markers(written(tmp_path / "walk.csv", nexus_text(), encoding))
        np.testing.assert_allclose(clip.positions, truth()[0], atol=1e-5)

    @pytest.mark.parametrize("extra", [False, True])
    def test_a_marker_without_a_name_stays(self, tmp_path, extra):
        positions, names = truth()
        text = nexus_text(extra=extra).replace(f"Anna:{names[2]}", "", 1)
        clip = read_markers(written(tmp_path / "walk.csv", text))
        assert clip.names == tuple("*3" if place == 2 else f"Anna:{name}" for place, name in enumerate(names))
        np.testing.assert_allclose(clip.positions, positions, atol=1e-5)

    def test_a_rate_can_be_chosen_if_it_is_unknown(self, tmp_path):
        """Fixed: the message said only that the file should be exported again."""
        file = written(tmp_path / "walk.csv", nexus_text(rate="none"))
        with pytest.raises(MarkerFileError, match="the frame rate is unknown: choose one"):
            read_markers(file)
        assert read_markers(file, rate=100.0).rate == 100.0

    @pytest.mark.parametrize("between", ["", ",,,,\n", "\n\n"])
    def test_the_next_section_ends_the_trajectories(self, tmp_path, between):
        """A spreadsheet fills the empty row between them. Fixed: its files were refused."""
        text = nexus_text(after=f"{between}Model Outputs,,\n100,,\n,,A\nFrame,Sub Frame,X\n,,deg\n101,0,5\n")
        clip = read_markers(written(tmp_path / "walk.csv", text))
        assert clip.notes == ()
        np.testing.assert_allclose(clip.positions, truth()[0], atol=1e-5)

    @pytest.mark.parametrize("between", ["", "\n", "\nModel Outputs\n100\n,,A\nFrame,Sub Frame,X\n,,deg\n101,0,5\n\n"])
    def test_several_sections_of_trajectories_are_refused(self, tmp_path, between):
        """Fixed: two trials in one file: only the first was read, without a warning."""
        file = written(tmp_path / "walk.csv", nexus_text(after=between + nexus_text()))
        with pytest.raises(MarkerFileError, match="it has several sections Trajectories: export each trial to a file"):
            read_markers(file)

    @pytest.mark.parametrize("frame", ["Frame", "Field #"])
    @pytest.mark.parametrize("has_units", [True, False])
    def test_a_file_without_sub_frames(self, tmp_path, frame, has_units):
        """As Vicon Workstation writes it. Fixed: X was read as the sub frame, and the rate was wrong."""
        section, rate, *lines = nexus_text(rate="100,Hz").splitlines()
        lines = [line.split(",", 2) for line in lines]
        lines = [f"{frame if cell == 'Frame' else cell},{rest}" for cell, _, rest in lines]
        if not has_units:
            del lines[2]
        file = written(tmp_path / "walk.csv", "\n".join([section, rate, *lines]) + "\n")
        clip = read_markers(file, units=None if has_units else "mm")
        assert (clip.names, clip.rate, clip.notes) == (tuple(f"Anna:{name}" for name in truth()[1]), 100.0, ())
        np.testing.assert_allclose(clip.positions, truth()[0], atol=1e-5)
        if not has_units:
            with pytest.raises(MarkerFileError, match="the header has no units: choose them"):
                read_markers(file)

    def test_frames_that_are_missing_stay_gaps_and_sub_frames_count(self, tmp_path):
        lines = nexus_text().splitlines(keepends=True)
        clip = read_markers(written(tmp_path / "walk.csv", "".join([*lines[:-2], lines[-1]])))
        assert np.flatnonzero(~clip.seen.any(axis=1)).tolist() == [FRAMES - 2]
        assert clip.notes == ("1 frames are missing; left gaps for them",)
        halves = [f"{101 + row // 2},{row % 2},{line.split(',', 2)[2]}" for row, line in enumerate(lines[-FRAMES:])]
        clip = read_markers(written(tmp_path / "walk.csv", "".join([*lines[:-FRAMES], *halves])))
        assert (clip.rate, clip.notes) == (200.0, ())
        np.testing.assert_allclose(clip.positions, truth()[0], atol=1e-5)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (nexus_text(rate="none"), "the frame rate is unknown: choose one"),
            (nexus_text(unit=""), "the header has no units: choose them"),
            (
                nexus_text().replace("mm,mm,mm\n", "m,m,m\n"),
                r"its markers have several units \(m, mm\): export them with",
            ),
            (
                "Model Outputs\n100\n,,A\nFrame,Sub Frame,X\n,,mm\n1,0,2\n",
                "it has no section Trajectories: export it with",
            ),
            ("Trajectories\n100\n", "the header of its trajectories is truncated"),
            ("Trajectories\n100\n,,A\nFrame,Sub Frame,X,Y\n,,mm,mm\n1,0,2,3\n", "it has no markers with columns X, Y"),
            ("Trajectories\n100\n,,A\nFrame,Sub Frame,X,Y,Z\n,,mm,mm,mm\n", "there are no frames after the header"),
            (
                "Trajectories\n100\n,,A\nFrame,Sub Frame,X,Y,Z\n,,mm,mm,mm\n1,0,,,\n",
                "no marker is visible on any frame",
            ),
        ],
    )
    def test_refused(self, tmp_path, text, message):
        with pytest.raises(MarkerFileError, match=rf"^walk\.csv: {message}") as caught:
            read_markers(written(tmp_path / "walk.csv", text))
        assert "\n" not in str(caught.value)

    @given(cut=st.integers(0, 3000))
    @example(cut=2182)
    def test_cut_off_anywhere(self, tmp_path_factory, cut):
        """Wherever a file ends, its numbers are right, except for a row's last number, which may be truncated."""
        whole = nexus_text()
        ends = [place for place, letter in enumerate(whole) if letter == "\n"]
        path = written(tmp_path_factory.mktemp("cut") / "walk.csv", whole[:cut])
        with suppress(MarkerFileError):
            clip = read_markers(path)
            seen, known = clip.seen.copy(), truth()[0][: clip.frame_count]
            seen[-1, -1] &= not any(whole.rindex(",", 0, end) < cut < end for end in ends[5:])
            np.testing.assert_allclose(clip.positions[seen], known[seen], atol=1e-5)


class TestNpz:
    def test_markers_of_amass(self, tmp_path):
        positions, names = truth()
        for key in ("mocap_framerate", "mocap_frame_rate"):
            gender = {"gender": np.array("neutral", dtype=object)}
            arrays = {"marker_data": positions, "marker_labels": names, key: 120.0, "poses": np.zeros((FRAMES, 156))}
            np.savez(tmp_path / "walk.npz", **arrays, **gender)
            clip = read_markers(tmp_path / "walk.npz")
            assert (clip.names, clip.rate, clip.units, clip.up_axis) == (tuple(names), 120.0, "m", "Z")
            np.testing.assert_allclose(clip.positions, positions)
            assert not clip.notes

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            (
                {"poses": np.zeros((4, 72))},
                r"it has no markers \(marker_data\): if it has poses",
            ),
            ({"marker_data": np.zeros((4, 6))}, r"its markers have the shape \(4, 6\)"),
            ({"marker_data": np.zeros((4, 2, 3))}, "no marker is visible on any frame"),
            ({"marker_data": np.array([{}], dtype=object)}, "it contains pickled Python objects, which may run code"),
            ({"marker_data": np.ones((4, 2, 3)) * [[[0], [9e5]]]}, "its units are unknown"),
        ],
    )
    def test_refused(self, tmp_path, arrays, message):
        np.savez(tmp_path / "walk.npz", **arrays)
        with pytest.raises(MarkerFileError, match=rf"^walk\.npz: {message}"):
            read_markers(tmp_path / "walk.npz")

    def test_cut_off(self, tmp_path):
        np.savez(tmp_path / "walk.npz", marker_data=np.ones((4, 2, 3)))
        content = (tmp_path / "walk.npz").read_bytes()
        for end in range(4, len(content) - 1, 7):
            (tmp_path / "walk.npz").write_bytes(content[:end])
            with pytest.raises(MarkerFileError, match=r"^walk\.npz: it is truncated"):
                read_markers(tmp_path / "walk.npz")
