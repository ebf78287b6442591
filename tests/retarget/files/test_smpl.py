"""Poses of SMPL, SMPL-H and SMPL-X: joint positions, up axis, sizes, rates, and files that are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.poses import SMPL, SMPL_PARENTS, UPRIGHT, places, rotation

from fabrik_addon.human.naming_schemes import match
from fabrik_addon.markers.files.reading import IN_PLACE
from fabrik_addon.retarget.files import holds_poses, read_recorded
from fabrik_addon.retarget.motion import RetargetError

NAMES = SMPL.split()
FRAMES = 5
# By the file's up axis, the rotation from its world to Z up.
WORLDS = {
    "Z": np.eye(3),
    "Y": np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]),
    "-Y": np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]),
}


def motion(seed=1, joints=22, up="Z"):
    """(F, J, 3) poses and (F, 3) locations of an upright person, in a world with the given up axis.

    Y is down in front of a camera, which is some meters away along Z.
    """
    rng = np.random.default_rng(seed)
    poses = rng.normal(scale=0.3, size=(FRAMES, joints, 3))
    poses[:, 0] = {"Z": UPRIGHT, "Y": [0.0, 0.4, 0.0], "-Y": [np.pi, 0.0, 0.0]}[up]
    away = np.array([0.0, 0.0, 4.0 * (up == "-Y")])
    return poses, rng.normal(size=(1, 3)) + away + np.zeros((FRAMES, 1))


def saved(path, **arrays):
    np.savez(path, **arrays)
    return path


def in_rest_axes(body):
    """(N, 3) the body's heads at rest in SMPL's own axes, Y up."""
    return body.heads @ WORLDS["Y"]


@pytest.fixture
def npz(tmp_path):
    return tmp_path / "walk.npz"


class TestPlaces:
    @pytest.mark.parametrize("up", WORLDS)
    @pytest.mark.parametrize("joints", [22, 24, 52, 55])
    def test_joints_are_where_the_models_have_them(self, npz, up, joints):
        """Compared with rotation matrices joint by joint, in the file's own world, for any up axis."""
        poses, trans = motion(joints=joints, up=up)
        body = read_recorded(saved(npz, poses=poses.reshape(FRAMES, -1), trans=trans, mocap_framerate=120.0))
        assert (body.rate, body.names[:22]) == (120.0, NAMES)
        truth = places(in_rest_axes(body)[:22], SMPL_PARENTS, rotation(poses[:, :22]), trans) @ WORLDS[up].T
        found = body.positions()[:, :22]
        lift = (found - truth)[0, 0]
        np.testing.assert_allclose(lift[:2], 0.0, atol=1e-9)
        np.testing.assert_allclose(found - lift, truth, atol=1e-9)

    def test_each_finger_uses_its_own_rotations(self, npz):
        poses, trans = motion(joints=55)
        body = read_recorded(saved(npz, poses=poses.reshape(FRAMES, -1), trans=trans, mocap_frame_rate=30))
        assert len(body.names) == 52
        names = list(body.names)
        order = [22, *range(25, 55)][1:]
        whole = np.concatenate([poses[:, :22], poses[:, order]], axis=1)
        truth = places(in_rest_axes(body), body.parents, rotation(whole), trans)
        found = body.positions()
        np.testing.assert_allclose(found - found[:, :1], truth - truth[:, :1], atol=1e-9)
        assert [names[int(parent)] for parent in body.parents[[22, 23, 24]]] == [
            "left_wrist",
            "left_index1",
            "left_index2",
        ]
        assert names[22:25] == ["left_index1", "left_index2", "left_index3"]
        assert names[37:40] == ["right_index1", "right_index2", "right_index3"]

    def test_at_zero_it_is_a_t_pose_that_faces_the_front(self, npz):
        body = read_recorded(saved(npz, poses=np.tile(UPRIGHT.tolist() + [0.0] * 153, (1, 1)), trans=np.zeros((1, 3))))
        at = dict(zip(body.names, body.positions()[0], strict=True))
        np.testing.assert_allclose(body.positions()[0] - at["pelvis"], body.heads - body.heads[0], atol=1e-12)
        assert at["left_wrist"][0] > at["left_elbow"][0] > at["left_shoulder"][0] > 0.0 > at["right_shoulder"][0]
        assert at["left_foot"][1] < at["left_ankle"][1] - 0.1
        assert 1.4 < at["head"][2] - at["left_foot"][2] < 1.6
        np.testing.assert_allclose(at["left_shoulder"][2], at["left_wrist"][2])

    @pytest.mark.parametrize(("joint", "vector", "moved", "way"), [
        ("left_shoulder", (0, 0, -np.pi / 2), "left_elbow", (0, 0, -1)),
        ("right_shoulder", (0, 0, np.pi / 2), "right_elbow", (0, 0, -1)),
        ("left_knee", (np.pi / 2, 0, 0), "left_ankle", (0, 1, 0)),
        ("right_hip", (-np.pi / 2, 0, 0), "right_knee", (0, -1, 0)),
        ("left_elbow", (0, -np.pi / 2, 0), "left_wrist", (0, -1, 0)),
    ])  # fmt: skip
    def test_limbs_bend_as_people_do(self, npz, joint, vector, moved, way):
        """Arms down, heel to the back, knee to the front, forearm to the front: facing -Y."""
        poses = np.zeros((1, 24, 3))
        poses[0, 0], poses[0, NAMES.index(joint)] = UPRIGHT, vector
        body = read_recorded(saved(npz, poses=poses.reshape(1, -1), trans=np.zeros((1, 3)), mocap_framerate=60))
        at = dict(zip(body.names, body.positions()[0], strict=True))
        step = at[moved] - at[joint]
        np.testing.assert_allclose(step / np.linalg.norm(step), way, atol=0.12)

    def test_bones_are_known_by_their_names(self, npz):
        poses, trans = motion(joints=52)
        body = read_recorded(saved(npz, poses=poses.reshape(FRAMES, -1), trans=trans))
        roles = match(body.names)
        assert roles["left_shoulder"].part == "upper_arm"
        assert (roles["right_thumb2"].finger, roles["right_thumb2"].number) == ("thumb", 2)
        assert len(roles) == 52


class TestKeys:
    # xrmocap, smplcodec, EDGE, WHAM (whose `pose` and `trans` are in the camera's axes), Inter-X.
    @pytest.mark.parametrize(("own", "trans", "hands", "others"), [
        ("fullpose", "transl", (), ()), ("bodyPose", "bodyTranslation", ("leftHandPose", "rightHandPose"), ()),
        ("smpl_poses", "smpl_trans", (), ()), ("pose_world", "trans_world", (), ("pose", "trans")),
        ("poses", "trans", ("pose_lhand", "pose_rhand"), ()), ("pose", "trans", (), ()),
    ])  # fmt: skip
    def test_other_programs_have_other_names(self, npz, own, trans, hands, others):
        poses, moved = motion(joints=52)
        parts = {own: poses[:, :22], trans: moved, "frameRate": np.float32(60.0)}
        parts |= {name: poses[:, first : first + 15] for name, first in zip(hands, (22, 37), strict=False)}
        parts |= {name: np.zeros((FRAMES, count)) for name, count in zip(others, (72, 3), strict=False)}
        body = read_recorded(saved(npz, **parts))
        assert holds_poses(npz)
        whole = read_recorded(saved(npz, poses=poses[:, : 52 if hands else 22], trans=moved, fps=60))
        np.testing.assert_allclose(body.positions(), whole.positions(), atol=1e-12)
        assert body.rate == 60.0

    def test_a_first_axis_of_one_person_is_left_out_and_several_people_are_refused(self, npz):
        """The shapes of SLAHMR: (people, frames, ...), and (people, 16) for `betas`."""
        poses, trans = motion()
        parts = {"root_orient": poses[:, 0], "pose_body": poses[:, 1:].reshape(FRAMES, -1), "trans": trans}
        whole = read_recorded(saved(npz, **parts, fps=30)).positions()
        body = read_recorded(
            saved(npz, **{key: part[None] for key, part in parts.items()}, betas=np.ones((1, 16)), fps=30)
        )
        np.testing.assert_allclose(body.positions(), whole, atol=1e-12)
        saved(npz, **{key: np.stack([part, part]) for key, part in parts.items()})
        with pytest.raises(RetargetError, match="it has 2 people: save each of them in a file of its own"):
            read_recorded(npz)

    @pytest.mark.parametrize(("root", "own", "trans"), [
        ("root_orient", "pose_body", "trans"), ("global_orient", "body_pose", "transl"),
    ])  # fmt: skip
    @pytest.mark.parametrize("hands", [True, False])
    def test_poses_are_split_into_parts(self, npz, root, own, trans, hands):
        poses, moved = motion(joints=52)
        parts = {root: poses[:, 0], own: poses[:, 1:22].reshape(FRAMES, -1), trans: moved, "mocap_frame_rate": 50}
        if hands:
            parts["pose_hand"] = poses[:, 22:].reshape(FRAMES, -1)
        body = read_recorded(saved(npz, **parts))
        whole = read_recorded(
            saved(npz, poses=poses[:, : 52 if hands else 22].reshape(FRAMES, -1), trans=moved, fps=50)
        )
        np.testing.assert_allclose(body.positions(), whole.positions(), atol=1e-12)
        assert body.rate == whole.rate == 50.0

    def test_components_of_hands_are_left_out(self, npz):
        poses, trans = motion()
        parts = {"root_orient": poses[:, 0], "pose_body": poses[:, 1:].reshape(FRAMES, -1), "trans": trans}
        body = read_recorded(saved(npz, **parts, pose_hand=np.zeros((FRAMES, 24)), fps=30))
        assert len(body.names) == 22
        assert body.notes[0] == "left out the hands, because they don't have rotations of 15 joints each"

    def test_parts_without_frames_are_refused(self, npz):
        poses = np.zeros((0, 90))
        saved(npz, root_orient=poses[:, :3], pose_body=poses[:, :63], pose_hand=poses, trans=poses[:, :3])
        with pytest.raises(RetargetError, match="it has 0 poses of 52 joints"):
            read_recorded(npz)

    @pytest.mark.parametrize("flip", [(-1.0, 1.0, 1.0), (-1.0, -1.0, -1.0), (1.5, 1.5, 1.5)])
    def test_matrices_that_mirror_or_scale_are_refused(self, npz, flip):
        poses, trans = motion()
        saved(npz, poses=rotation(poses) * np.array(flip), trans=trans)
        with pytest.raises(RetargetError, match="its poses have matrices that mirror or scale instead of rotating"):
            read_recorded(npz)

    def test_matrices_and_vectors_are_the_same(self, npz):
        poses, trans = motion(joints=24)
        found = [
            read_recorded(saved(npz, poses=each, trans=trans)).positions()
            for each in (poses.reshape(FRAMES, -1), poses, rotation(poses))
        ]
        np.testing.assert_allclose(found[1], found[0], atol=1e-12)
        np.testing.assert_allclose(found[2], found[0], atol=1e-9)

    @pytest.mark.parametrize("rate", [None, 60.0])
    def test_two_rates_give_a_warning(self, npz, rate):
        """Frames are often left out by tools that keep the old rate beside the new one."""
        poses, trans = motion()
        path = saved(npz, poses=poses.reshape(FRAMES, -1), trans=trans, mocap_framerate=120.0, fps=30)
        found = [doubt for doubt in read_recorded(path, rate=rate).doubts if "two frame rates, 120 and 30 Hz" in doubt]
        assert len(found) == (rate is None)

    def test_a_given_rate_is_used_and_a_missing_one_is_reported(self, npz):
        poses, trans = motion()
        path = saved(npz, poses=poses.reshape(FRAMES, -1), trans=trans)
        assert read_recorded(path).rate == 30.0
        assert any("rate is unknown; assumed 30" in doubt for doubt in read_recorded(path).doubts)
        assert (read_recorded(path, rate=59.94).rate, read_recorded(path, rate=59.94).doubts) == (59.94, ())

    def test_without_locations_the_body_does_not_travel(self, npz):
        poses, _ = motion()
        body = read_recorded(saved(npz, poses=poses.reshape(FRAMES, -1), mocap_framerate=30))
        assert np.ptp(body.root, axis=0).max() == 0.0
        assert body.notes == ("it has no location of the body (trans); the body stays in place", IN_PLACE)

    def test_a_given_axis_is_used(self, npz):
        poses, trans = motion(up="Y")
        path = saved(npz, poses=poses.reshape(FRAMES, -1), trans=trans)
        lying = read_recorded(path, "Z").positions()
        assert lying[0, NAMES.index("head"), 2] - lying[0, 0, 2] < 0.3
        np.testing.assert_allclose(read_recorded(path, "Y").positions(), read_recorded(path).positions())

    def test_a_lying_person_has_z_up_and_a_warning(self, npz):
        poses, trans = motion()
        poses[:, 0] = [0.0, 0.0, np.pi / 2]
        body = read_recorded(saved(npz, poses=poses.reshape(FRAMES, -1), trans=trans, mocap_framerate=30))
        assert body.doubts == ("The up axis is unknown; assumed Z: choose the other one if the person is not upright",)
        np.testing.assert_allclose(body.positions()[:, 0, :2], trans[:, :2])

    @pytest.mark.parametrize("key", ["mocap_framerate", "mocap_frame_rate", "fps"])
    def test_upright_people_need_no_note_with_any_key_of_the_rate(self, npz, key):
        poses, trans = motion(up="Y")
        saved(npz, poses=poses.reshape(FRAMES, -1), trans=trans, **{key: 30})
        assert read_recorded(npz).notes == ()

    # The file's up axis; trunk and chest, Z up; degrees of bend of shoulders, hips and knees; meters of travel.
    # Upside down along Y means that Y points down, as in front of a camera.
    @pytest.mark.parametrize(("up", "trunk", "chest", "bends", "travel"), [
        pytest.param(up, *case, id=f"{name}, {up}")
        for name, ups, *case in (
            ("supine", "ZY", (0, 1, 0), (0, 0, 1), (0, 0, 0), 0.0),
            ("prone", "ZY", (0, -1, 0), (0, 0, -1), (0, 0, 0), 0.0),
            ("plank", "ZY", (0, -0.98, 0.2), (0, -0.2, -0.98), (90, 0, 0), 0.0),
            ("crawls", "ZY", (0, 1, 0), (0, 0, -1), (90, 90, 90), 3.0),
            ("handstand", "Z", (0, 0, -1), (0, 1, 0), (180, 0, 0), 0.0),
        )
        for up in ups
    ])  # fmt: skip
    @pytest.mark.parametrize("stands", [0, 10])
    def test_up_is_the_axis_on_whose_floor_someone_lies_crawls_or_is_upside_down(
        self, npz, up, trunk, chest, bends, travel, stands
    ):
        """Fixed: all frames were rotated upright without a message. Some people stand on the first 10 of 50 frames."""
        shoulder, hip, knee = np.radians(bends)
        poses, world = np.zeros((50, 22, 3)), WORLDS[up].T
        poses[:, [1, 2], 0], poses[:, [4, 5], 0] = -hip, knee
        poses[:, 16, 1], poses[:, 17, 1] = -shoulder, shoulder
        poses[:stands, 1:] = 0.0
        y, z = (np.array(each, dtype=float) / np.linalg.norm(each) for each in (trunk, chest))
        turned = rotation(poses)
        turned[:, 0] = np.stack([np.cross(y, z), y, z], axis=1)
        turned[:stands, 0] = rotation(UPRIGHT)
        root = np.linspace(0.0, travel, 50)[:, None] * [0.0, 1.0, 0.0] + [0.2, 0.3, 0.0]
        rest = in_rest_axes(read_recorded(saved(npz, poses=np.zeros((1, 66)))))
        truth = places(rest, SMPL_PARENTS, turned, root)
        lift = np.array([0.0, 0.0, 1.0]) * (0.06 - truth[..., 2].min(axis=1))[:, None]
        turned[:, 0] = world @ turned[:, 0]
        # The pelvis is below `trans`, along Y.
        saved(npz, poses=turned, trans=(root + lift) @ world.T + [0.0, 0.22 * (up == "Y"), 0.0], fps=30)
        body = read_recorded(npz)
        off = body.positions() - truth - lift[:, None]
        assert np.abs(off - off[:1, :1]).max() < 1e-9
        assert "rotated upright" not in " ".join(body.notes)

    def test_files_with_poses_are_distinguished_from_those_with_markers(self, npz):
        poses, trans = motion()
        assert holds_poses(saved(npz, poses=poses, trans=trans))
        assert not holds_poses(saved(npz, marker_data=trans[:, None]))


class TestSize:
    @pytest.mark.parametrize("size", [0.8, 1.0, 1.15])
    @pytest.mark.parametrize("jitter", [0.0, 0.02])
    def test_the_size_follows_from_planted_feet(self, npz, size, jitter):
        """A walking person: legs swing, and the lower foot stays; also with jitter, in radians."""
        count = 120
        phase = 2.0 * np.pi * np.arange(count) / 30.0
        poses = np.zeros((count, 22, 3))
        poses[:, 0] = UPRIGHT
        poses[:, 1, 0], poses[:, 2, 0] = 0.4 * np.sin(phase), -0.4 * np.sin(phase)
        poses[:, 4, 0], poses[:, 5, 0] = (0.8 * np.maximum(0.0, sign * np.cos(phase)) for sign in (-1.0, 1.0))
        still = read_recorded(saved(npz, poses=poses.reshape(count, -1), trans=np.zeros((count, 3)), fps=30))
        rest = in_rest_axes(still)
        legs = size * places(rest, SMPL_PARENTS, rotation(poses), np.zeros((count, 3)))[:, [10, 11]]
        trans = np.zeros((count, 3))
        for frame in range(1, count):
            lower = legs[frame - 1, :, 2].argmin()
            trans[frame] = trans[frame - 1] + legs[frame - 1, lower] - legs[frame, lower]
        trans += [0.3, 0.2, 0.0]
        trans[:, 2] = -legs[:, :, 2].min(axis=1)
        poses[:, 1:] += np.random.default_rng(8).normal(scale=jitter, size=poses[:, 1:].shape)
        body = read_recorded(saved(npz, poses=poses.reshape(count, -1), trans=trans, fps=30))
        assert np.ptp(trans[:, 1]) > 1.5
        assert np.linalg.norm(body.heads[4] - body.heads[1]) == pytest.approx(
            size * np.linalg.norm(still.heads[4] - still.heads[1]), rel=0.02
        )
        np.testing.assert_allclose(np.diff(body.root[:, :2], axis=0), np.diff(trans[:, :2], axis=0), atol=1e-12)
        # The lowest ankle or ball is as high above the floor as at rest.
        low = (body.positions()[:, [7, 8, 10, 11]] - body.heads[[7, 8, 10, 11]])[..., 2].min(axis=1)
        assert np.quantile(low, 0.05) == pytest.approx(0.0, abs=0.005 + jitter)


class TestCrooked:
    def test_incomplete_frames_are_left_out(self, npz):
        poses, trans = motion()
        poses[1, 3, 0], trans[3, 2] = np.nan, np.inf
        body = read_recorded(saved(npz, poses=poses.reshape(FRAMES, -1), trans=trans, fps=30))
        assert body.frames.tolist() == [0, 2, 4]
        assert body.notes[0].startswith("left out 2 incomplete frames")

    @pytest.mark.parametrize(("arrays", "message"), [
        ({"poses": np.zeros((4, 30))}, "it has 4 poses of 10 joints: export 22, 24, 52, 55 joints, as SMPL has"),
        ({"poses": np.zeros((4, 71))}, r"its poses has the shape \(4, 71\): export rotation vectors"),
        ({"poses": np.zeros((0, 72))}, "it has 0 poses of 24 joints"),
        ({"poses": np.zeros((4, 72)), "trans": np.zeros((3, 3))}, r"its trans has the shape \(3, 3\)"),
        ({"poses": np.zeros((4, 72)), "trans": np.zeros((3, 4))}, r"its trans has the shape \(3, 4\)"),
        ({"poses": np.full((4, 72), np.nan)}, "it has no frame whose numbers are all finite"),
        ({"poses": np.full((4, 72), np.inf)}, "it has no frame whose numbers are all finite"),
        ({"poses": np.array([{}], dtype=object)}, "it contains pickled Python objects, which may run code"),
        ({"results": np.array([{}], dtype=object)}, "it has neither poses nor root_orient and pose_body: choose"),
        ({"root_orient": np.zeros((4, 3)), "pose_body": np.zeros((3, 63))}, "its parts have different numbers"),
        ({"poses": np.array(["a"])}, "its poses are not numbers"),
        ({"poses": np.full((4, 72), 30.0)}, "its poses has angles of more than two turns: export radians"),
        ({"poses": np.zeros((4, 72)), "trans": np.zeros((4, 3)).astype("U3")}, "its trans has the shape"),
        ({"poses": np.zeros((4, 72)), "trans": np.full((4, 3), 930.0)}, "its body is 930 m above or below the origin"),
        ({"poses": np.zeros((4, 72)), "trans": np.eye(4, 3), "fps": 240}, "its body moves 339 m per second: export"),
    ])  # fmt: skip
    def test_refused(self, npz, arrays, message):
        with pytest.raises(RetargetError, match=rf"^walk\.npz: {message}") as caught:
            read_recorded(saved(npz, **arrays))
        assert "\n" not in str(caught.value)

    def test_a_file_of_another_kind_is_not_called_a_pickle(self, npz):
        npz.write_bytes(b"hello")
        with pytest.raises(RetargetError, match=r"^walk\.npz: it is truncated or not a file of arrays"):
            read_recorded(npz)

    # The keys of AMASS's SMPL-X files (stage ii) and of smplx with an expression; `gender` is bytes, text or an object.
    @pytest.mark.parametrize("gender", [b"male", "female", None])
    @pytest.mark.parametrize("betas", [(10,), (16,), (1, 300), (FRAMES, 10)])
    def test_files_as_amass_writes_them(self, npz, gender, betas):
        poses, trans = motion(joints=55)
        flat = poses.reshape(FRAMES, -1)
        others = {
            "gender": np.array(gender), "surface_model_type": np.array("smplx"), "betas": np.zeros(betas),
            "num_betas": np.array(betas[-1]), "dmpls": np.zeros((FRAMES, 8)), "markers_latent": np.ones((67, 3)),
            "latent_labels": np.array(["ARIEL"] * 67), "pose_jaw": flat[:, 66:69], "pose_eye": flat[:, 69:75],
            "expression": np.ones((FRAMES, 10)), "mocap_time_length": np.array(2.5), "trans": trans,
        }  # fmt: skip
        parts = {"root_orient": flat[:, :3], "pose_body": flat[:, 3:66], "pose_hand": flat[:, 75:]}
        bodies = [
            read_recorded(saved(npz, **others, **each))
            for each in (
                {"poses": flat, "mocap_frame_rate": np.array(120.0)} | parts,
                {"poses": flat, "mocap_framerate": np.array([120])},
                parts | {"mocap_framerate": np.array("120")},
                parts | {"mocap_framerate": np.array(b"120.0")},
            )
        ]
        assert [(body.rate, len(body.names), body.notes) for body in bodies] == [(120.0, 52, ())] * 4
        for body in bodies[1:]:
            np.testing.assert_allclose(body.positions(), bodies[0].positions(), atol=1e-12)

    @pytest.mark.parametrize("rate", [1.0 / 120.0, 120000.0, 0.0, np.nan, -30.0])
    def test_invalid_rates_are_replaced_by_a_default_with_a_warning(self, npz, rate):
        body = read_recorded(saved(npz, poses=np.zeros((4, 72)), trans=np.zeros((4, 3)), mocap_framerate=rate))
        assert body.rate == 30.0
        assert any("rate is unknown; assumed 30" in doubt for doubt in body.doubts)

    @given(cut=st.floats(0.0, 0.999))
    def test_cut_off(self, tmp_path_factory, cut):
        path = saved(tmp_path_factory.mktemp("cut") / "walk.npz", poses=np.zeros((2, 72)))
        content = path.read_bytes()
        path.write_bytes(content[: int(cut * len(content))])
        with pytest.raises(RetargetError, match=r"^walk\.npz: "):
            read_recorded(path)

    def test_missing_files_and_invalid_options_are_refused(self, npz):
        with pytest.raises(RetargetError, match="there is no such file"):
            read_recorded(npz)
        with pytest.raises(RetargetError, match="the up axis is 'X': it must be Y or Z"):
            read_recorded(npz, "X")
        with pytest.raises(RetargetError, match="the frame rate must be a positive number of Hz, not -1"):
            read_recorded(npz, rate=-1)
