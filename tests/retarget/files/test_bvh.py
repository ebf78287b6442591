"""BVH files before Blender reads them: each damaged one is corrected, or refused with one sentence."""

import re

import pytest

from fabrik_addon.retarget.files import bvh
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


def checked_bvh(content, rate=None):
    """The text of a file that needs no notes."""
    text, notes, _ = bvh.checked_bvh(content, rate)
    assert notes == ()
    return text


def numbers(text):
    """The rows of numbers of a checked file."""
    return [[float(cell) for cell in line.split()] for line in text.split("Frame Time: ")[1].splitlines()[1:]]


def test_a_good_file_does_not_change():
    assert checked_bvh(GOOD.encode()) == GOOD


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
    assert checked_bvh(content) == GOOD


@pytest.mark.parametrize(("frames", "doubted"), [("2", False), ("1", False), ("many", False), ("50", True)])
def test_missing_frames_give_a_warning(frames, doubted):
    """A file that ends between two lines was read as if it were whole."""
    _, notes, doubts = bvh.checked_bvh(GOOD.replace("Frames: 2", f"Frames: {frames}").encode())
    assert notes == ()
    assert doubts == ("The header gives 50 frames, but there are only 2: export it again",) * doubted


def test_a_pose_at_rest_may_have_decimal_commas_in_its_offsets_only():
    rest = GOOD.partition("0.5 90.0 1.5")[0] + "0 90 0 0 0 0 0 0 0\n"
    assert numbers(checked_bvh(rest.replace(".", ",").encode())) == [[0, 90, 0, 0, 0, 0, 0, 0, 0]]
    assert "OFFSET 0.0 10.5 0.0" in checked_bvh(rest.replace(".", ",").encode())


@pytest.mark.parametrize("time", ["0", "1.0", "0.0", "nan"])
def test_one_pose_needs_no_frame_time(time):
    one = GOOD.replace("0.0333333", time).rpartition("0.5 90.5")[0]
    assert "\nFrames: 1\nFrame Time: 0\n0.5 90.0 1.5 " in checked_bvh(one.encode())


def test_names_that_are_no_utf_8_are_kept():
    assert "ROOT H\u00fcfte" in checked_bvh(GOOD.replace("Hips", "H\u00fcfte").encode("latin-1"))


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
        checked_bvh(GOOD.replace(old, new, 1).encode())
    assert "\n" not in str(refused.value)


def test_a_chosen_rate_replaces_the_frame_time():
    checked = checked_bvh(GOOD.replace("0.0333333", "0").encode(), 50.0)
    assert "Frame Time: 0.02\n" in checked
    assert numbers(checked) == numbers(GOOD)


def one_axis(joint, text=GOOD):
    """A file whose second joint has only these channels, and their numbers in each row."""
    names, values = joint
    text = text.replace("3 Zrotation Xrotation Yrotation\n    End", f"{len(names.split())} {names}\n    End")
    return text.replace("4.0 5.0 6.0", values).replace("4.0 -5.5e-3 6.0", values).encode()


# A joint with one degree of freedom, such as a knee, may have one channel. The order of the missing axes does not
# matter, since their angles are zero.
@pytest.mark.parametrize(
    ("channels", "values", "whole"),
    [
        ("Xrotation", "30", {"Xrotation": 30.0}),
        ("Yrotation Xrotation", "20 30", {"Yrotation": 20.0, "Xrotation": 30.0}),
        ("Zposition Yrotation", "7 30", {"Zposition": 7.0, "Yrotation": 30.0}),
    ],
)
def test_missing_channels_of_a_joint_are_at_rest(channels, values, whole):
    checked = checked_bvh(one_axis((channels, values)))
    names = checked.split("CHANNELS")[2].split("\n")[0].split()
    assert int(names[0]) == len(names) - 1
    assert names[1 : 1 + len(channels.split())] == channels.split()
    rest = {"Xposition": 0.0, "Yposition": 10.5, "Zposition": 0.0} if "position" in channels else {}
    usual = rest | dict.fromkeys(("Xrotation", "Yrotation", "Zrotation"), 0.0) | whole
    for row in numbers(checked):
        assert row[:3] in ([0.5, 90.0, 1.5], [0.5, 90.5, 1.5])
        assert dict(zip(names[1:], row[6:], strict=True)) == usual


def test_positions_below_the_root_that_are_all_zero_mean_the_offset():
    channels = "Xposition Yposition Zposition Zrotation Xrotation Yrotation"
    checked = checked_bvh(one_axis((channels, "0 0 0 4 5 6")))
    assert [row[6:] for row in numbers(checked)] == [[0.0, 10.5, 0.0, 4.0, 5.0, 6.0]] * 2
    kept = one_axis((channels, "0 10.5 0 4 5 6"))
    assert checked_bvh(kept).encode() == kept


def test_radians_are_read_as_radians_if_the_body_moves_farther_than_such_degrees_allow():
    walk = GOOD.replace("0.5 90.5 1.5", "0.5 90.5 61.5").replace("6.0\n", "-6.1\n")
    text, notes, _ = bvh.checked_bvh(walk.encode())
    assert notes == ("its rotations are in radians; converted them to degrees",)
    assert [row[:3] for row in numbers(text)] == [[0.5, 90.0, 1.5], [0.5, 90.5, 61.5]]
    assert numbers(text)[0][3:] == pytest.approx(
        [57.29578, 114.591559, 171.887339, 229.183118, 286.478898, -349.504255]
    )
    # A person who stands still may be within six degrees of the rest pose, and others have larger angles.
    assert bvh.checked_bvh(GOOD.encode())[1] == ()
    assert bvh.checked_bvh(walk.replace("-6.1", "-16.1").encode())[1] == ()
