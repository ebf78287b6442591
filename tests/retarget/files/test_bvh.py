"""BVH files: bones are where a naive reader has them; each damaged file is corrected, or refused with one sentence."""

import re
from dataclasses import replace

import numpy as np
import pytest

from fabrik_addon.core.rotations import angle_between, matrix_from_quaternion
from fabrik_addon.retarget.files import read_recorded
from fabrik_addon.retarget.files.bvh import parse_bvh
from fabrik_addon.retarget.motion import RetargetError

GOOD = """HIERARCHY
ROOT Hips
{
  OFFSET 0.5 90.0 0.0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT Spine
  {
    OFFSET 0.0 10.5 0.0
    CHANNELS 3 Zrotation Xrotation Yrotation
    End Site
    {
      OFFSET 0.0 10.0 0.0
    }
  }
}
MOTION
Frames: 2
Frame Time: 0.0333333
0.5 90.0 1.5 1.0 2.0 3.0 4.0 5.0 6.0
0.5 90.5 1.5 1.0 2.0 3.0 4.0 -5.5e-3 6.0
"""


# The default values of the channels in both rows.
ROWS = [[0.5, 90.0, 1.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [0.5, 90.5, 1.5, 1.0, 2.0, 3.0, 4.0, -5.5e-3, 6.0]]


def about(axis, degrees):
    """(3, 3) the rotation about a coordinate axis."""
    sine, cosine = np.sin(np.radians(degrees)), np.cos(np.radians(degrees))
    turned = np.eye(3)
    first, second = {"X": (1, 2), "Y": (2, 0), "Z": (0, 1)}[axis]
    turned[[first, second], [first, second]] = cosine
    turned[first, second], turned[second, first] = -sine, sine
    return turned


def posed(rows, order="ZXY"):
    """(F, 2, 3) heads and (F, 2, 3, 3) rotations of both joints from rest, from the numbers of each row; Z up."""
    to_z_up = about("X", 90.0)
    heads, turns = [], []
    for row in rows:
        hips, spine = (
            np.linalg.multi_dot([about(axis, angle) for axis, angle in zip(order, angles, strict=True)])
            for angles in (row[3:6], row[6:9])
        )
        heads.append([to_z_up @ row[:3], to_z_up @ (row[:3] + hips @ [0.0, 10.5, 0.0])])
        turns.append([to_z_up @ turn @ to_z_up.T for turn in (hips, hips @ spine)])
    return np.array(heads), np.array(turns)


def read(content, rate=None):
    """The body in a file that needs no notes."""
    body = parse_bvh(content, rate)
    assert body.notes == ()
    return body


def assert_is(body, rows, **how):
    """Check that the motion has the poses of the rows."""
    motion = body.motion("walk")
    heads, turns = posed(rows, **how)
    np.testing.assert_allclose(motion.heads, heads, atol=1e-9)
    np.testing.assert_allclose(
        matrix_from_quaternion(motion.rotations), turns @ motion.rest[None, :, :3, :3], atol=1e-9
    )


def test_a_good_file():
    body = read(GOOD.encode())
    assert_is(body, ROWS)
    assert (body.names, body.parents.tolist(), body.rate) == (["Hips", "Spine"], [-1, 0], pytest.approx(30, abs=1e-3))
    np.testing.assert_allclose(body.heads, [[0.5, 0.0, 90.0], [0.5, 0.0, 100.5]], atol=1e-12)
    np.testing.assert_allclose(body.tails, [[0.5, 0.0, 100.5], [0.5, 0.0, 110.5]], atol=1e-12)


def test_rotations_are_multiplied_in_the_order_of_their_channels():
    assert_is(
        read(GOOD.replace("Zrotation Xrotation Yrotation", "Yrotation Zrotation Xrotation").encode()), ROWS, order="YZX"
    )


@pytest.mark.parametrize(
    "content",
    [
        GOOD.encode("utf-8-sig"),
        GOOD.encode("utf-16"),
        GOOD.replace("\n", "\r\n").encode(),
        GOOD.replace("\n", "\r").encode(),
        GOOD.replace(".", ",").encode(),
        GOOD.replace("Frames: 2", "Frames: 50").encode(),
        GOOD.replace("Frames: 2", "Frames: many").encode(),
    ],
)
def test_encodings_line_ends_decimal_commas_and_wrong_counts_are_corrected(content):
    body = read(content)
    assert_is(body, ROWS)
    assert body.rate == pytest.approx(30.0, abs=1e-3)


def test_braces_names_and_bones_without_ends():
    text = GOOD.replace("Hips\n{", "Left Hip {").replace("JOINT Spine", "JOINT Left Hip")
    assert read(text.encode()).names == ["Left_Hip", "Left_Hip.001"]
    text = re.sub(r"End Site\s*{[^}]*}", "", GOOD)
    np.testing.assert_allclose(read(text.encode()).tails[1], [0.5, 0.0, 100.6], atol=1e-12)


def test_a_second_root_keeps_its_place():
    head, motion = GOOD.split("MOTION")
    other = "ROOT Prop\n{\n OFFSET 5 6 7\n CHANNELS 3 Zrotation Xrotation Yrotation\n}\n"
    body = read(f"{head}{other}MOTION{motion}".replace(" 6.0\n", " 6.0 0 0 0\n").encode())
    assert body.parents.tolist() == [-1, 0, -1]
    np.testing.assert_allclose(body.positions()[:, 2], [[5.0, -7.0, 6.0]] * 2, atol=1e-12)
    np.testing.assert_allclose(body.positions()[:, :2], posed(ROWS)[0], atol=1e-9)


def test_frames_between_and_beyond_those_of_the_file():
    body = read(GOOD.encode())
    more = body.at(np.array([-3, 0, 1, 9])).motion("walk")
    np.testing.assert_allclose(more.heads, posed(ROWS)[0][[0, 0, 1, 1]], atol=1e-9)
    # The second frame of three is missing.
    filled = replace(body, frames=np.array([0, 2])).at(np.arange(3))
    assert_is(filled.at(np.array([0, 2])), ROWS)
    np.testing.assert_allclose(filled.root[1], filled.root[[0, 2]].mean(axis=0), atol=1e-12)
    before, after = (angle_between(filled.rotations[1], filled.rotations[end]) for end in (0, 2))
    np.testing.assert_allclose(before, after, atol=1e-7)
    assert before[1] == pytest.approx(np.radians(2.5), rel=1e-2)


@pytest.mark.parametrize(("frames", "doubted"), [("2", False), ("1", False), ("many", False), ("50", True)])
def test_missing_frames_give_a_warning(frames, doubted):
    """Fixed: a file that ends between two lines was read as if it were whole."""
    body = read(GOOD.replace("Frames: 2", f"Frames: {frames}").encode())
    assert body.doubts == ("The header gives 50 frames, but there are only 2: export it again",) * doubted


def test_more_numbers_than_channels_give_a_warning():
    """If a joint's channels are missing, all joints after it get the numbers of others."""
    body = parse_bvh(GOOD.replace("3 Zrotation Xrotation Yrotation", "0").encode())
    assert body.doubts == ("Lines have 9 numbers, but the joints have 6 channels: check the poses",)


def test_a_pose_at_rest_may_have_decimal_commas_in_its_offsets_only():
    rest = GOOD.partition("0.5 90.0 1.5")[0] + "0 90 0 0 0 0 0 0 0\n"
    assert_is(read(rest.replace(".", ",").encode()), [[0, 90, 0, 0, 0, 0, 0, 0, 0]])


@pytest.mark.parametrize("time", ["0", "1.0", "0.0", "nan"])
def test_one_pose_needs_no_frame_time(time):
    one = GOOD.replace("0.0333333", time).rpartition("0.5 90.5")[0]
    body = read(one.encode())
    assert_is(body, ROWS[:1])
    assert body.rate in ((0.0,) if time != "1.0" else (0.0, 1.0))


def test_names_that_are_no_utf_8_are_kept():
    assert read(GOOD.replace("Hips", "H\u00fcfte").encode("latin-1")).names[0] == "H\u00fcfte"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (GOOD, "", "the file is empty"),
        (GOOD, "{}", "not a BVH file"),
        ("MOTION", "END", "no MOTION with a Frame Time"),
        ("-5.5e-3", "nan", "line 20: 'nan' is not a number"),
        ("-5.5e-3", "-inf", "line 20: '-inf' is not a number"),
        ("-5.5e-3", "1,5", "line 20: '1,5' is not a number"),
        (" -5.5e-3 6.0\n", "", "line 20 has 7 of 9 numbers"),
        ("10.5", "nan", "'nan' in an OFFSET is not a number"),
        ("-5.5e-3", "5-3", "line 20: '5-3' is not a number"),
        ("0.0 10.5 0.0", "0.0 10.5", "joint 'Spine' has no OFFSET of three numbers"),
        ("OFFSET 0.0 10.5 0.0", "", "joint 'Spine' has no OFFSET of three numbers"),
        ("ROOT Hips\n{", "", "the braces of its joints do not match"),
        (GOOD[GOOD.index("0.5 90.0 1.5") :], "", "there are no frames"),
        ("3 Zrotation Xrotation", "3 Zrotation Zrotation", "Zrotation Zrotation Yrotation are unknown or repeated"),
        ("3 Zrotation Xrotation", "3 Zrotation Wrotation", "Zrotation Wrotation Yrotation are unknown or repeated"),
        ("0.0333333", "33.3", "its Frame Time is '33.3', but must be in seconds"),
        ("0.0333333", "0", "its Frame Time is '0'"),
        ("0.0333333", "-0.03", "its Frame Time is '-0.03'"),
        ("0.0333333", "nan", "its Frame Time is 'nan'"),
    ],
)
def test_what_cannot_be_corrected_is_refused(old, new, message):
    assert old in GOOD
    with pytest.raises(RetargetError, match=re.escape(message)) as refused:
        parse_bvh(GOOD.replace(old, new, 1).encode())
    assert "\n" not in str(refused.value)


def test_a_chosen_rate_replaces_the_frame_time():
    body = read(GOOD.replace("0.0333333", "0").encode(), 50.0)
    assert body.rate == 50.0
    assert_is(body, ROWS)


def one_axis(joint, text=GOOD):
    """A file whose second joint has only these channels, and their numbers in each row."""
    names, values = joint
    text = text.replace("3 Zrotation Xrotation Yrotation\n    End", f"{len(names.split())} {names}\n    End")
    return text.replace("4.0 5.0 6.0", values).replace("4.0 -5.5e-3 6.0", values).encode()


# A joint with one degree of freedom, such as a knee, may have one channel.
@pytest.mark.parametrize(
    ("channels", "values", "whole", "moved"),
    [
        ("Xrotation", "30", {"X": 30.0}, 0.0),
        ("Yrotation Xrotation", "20 30", {"X": 30.0, "Y": 20.0}, 0.0),
        ("Zposition Yrotation", "7 30", {"Y": 30.0}, 7.0),
    ],
)
def test_missing_channels_of_a_joint_are_at_rest(channels, values, whole, moved):
    motion = read(one_axis((channels, values))).motion("walk")
    order = "YXZ"
    angles = [whole.get(axis, 0.0) for axis in order]
    for row, heads, turned in zip(ROWS, motion.heads, matrix_from_quaternion(motion.rotations), strict=True):
        hips = np.linalg.multi_dot([about(axis, angle) for axis, angle in zip("ZXY", row[3:6], strict=True)])
        spine = hips @ np.linalg.multi_dot([about(axis, angle) for axis, angle in zip(order, angles, strict=True)])
        to_z_up = about("X", 90.0)
        np.testing.assert_allclose(heads[1], to_z_up @ (row[:3] + hips @ [0.0, 10.5, moved]), atol=1e-9)
        np.testing.assert_allclose(turned[1], to_z_up @ spine @ to_z_up.T @ motion.rest[1, :3, :3], atol=1e-9)


def test_positions_below_the_root_that_are_all_zero_mean_the_offset():
    channels = "Xposition Yposition Zposition Zrotation Xrotation Yrotation"
    rows = [[*row[:6], 4.0, 5.0, 6.0] for row in ROWS]
    for position in ("0 0 0", "0 10.5 0"):
        assert_is(read(one_axis((channels, f"{position} 4 5 6"))), rows)


def test_radians_are_read_as_radians_if_the_body_moves_farther_than_such_degrees_allow():
    walk = GOOD.replace("0.5 90.5 1.5", "0.5 90.5 61.5").replace("6.0\n", "-6.1\n")
    body = parse_bvh(walk.encode())
    assert body.notes == ("its rotations are in radians; converted them to degrees",)
    rows = np.array(ROWS)
    rows[1, 2], rows[:, 8] = 61.5, -6.1
    rows[:, 3:] = np.degrees(rows[:, 3:])
    assert_is(body, rows)
    # A person who stands still may be within six degrees of the rest pose, and others have larger angles.
    assert parse_bvh(GOOD.encode()).notes == ()
    assert parse_bvh(walk.replace("-6.1", "-16.1").encode()).notes == ()


@pytest.mark.parametrize(("times", "doubted"), [(1, False), (2, True), (4, True)])
def test_repeated_frames_give_a_warning(tmp_path, times, doubted):
    """Fixed: a file with each frame twice was half as fast, without a warning. A body may stand still first."""
    rows = [f"0 {0.01 * frame:.3f} 0 {frame} 0 0" for frame in range(30) for _ in range(times)]
    joint = "CHANNELS 6 Xposition Yposition Zposition Xrotation Yrotation Zrotation\nEnd Site\n{\nOFFSET 0 1 0\n}\n}\n"
    head = f"HIERARCHY\nROOT hips\n{{\nOFFSET 0 0 0\n{joint}MOTION\nFrames: {19 + len(rows)}\nFrame Time: 0.01\n"
    (tmp_path / "a.bvh").write_text(head + "\n".join([rows[0]] * 19 + rows))
    found = ["frames repeat the one before" in doubt for doubt in read_recorded(tmp_path / "a.bvh").doubts]
    assert found == [True] * doubted
