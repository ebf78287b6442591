"""BVH files before Blender reads them: each spoilt one is corrected, or refused in one sentence."""

import re

import pytest

from fabrik_addon.retarget.files.bvh import checked_bvh
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
