"""MVNX: segments as an armature, compared with the positions in the file, and documents that are refused."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.poses import MVN, mvn_positions, mvnx_text

from fabrik_addon.human.naming_schemes import match
from fabrik_addon.retarget.files import read_recorded
from fabrik_addon.retarget.motion import RetargetError

FRAMES = 6
# From MVN's axes, X to the front, to ours, -Y to the front.
TO_FRONT = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


def motion(seed=2):
    rng = np.random.default_rng(seed)
    orientations = rng.normal(loc=(3.0, 0.0, 0.0, 0.0), size=(FRAMES, len(MVN), 4))
    orientations /= np.linalg.norm(orientations, axis=2, keepdims=True)
    return orientations, rng.normal(loc=(0.0, 0.0, 1.0), scale=0.01, size=(FRAMES, 3))


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def mvnx(tmp_path):
    return tmp_path / "walk.mvnx"


def test_segments_are_where_the_file_has_them(mvnx):
    orientations, pelvis = motion()
    body = read_recorded(written(mvnx, mvnx_text(orientations, pelvis)))
    assert sorted(body.names) == sorted(MVN)
    assert (body.rate, body.frames.tolist(), body.notes) == (240.0, [*range(FRAMES)], ())
    truth = mvn_positions(orientations, pelvis) @ TO_FRONT.T
    order = [list(MVN).index(name) for name in body.names]
    np.testing.assert_allclose(body.positions(), truth[:, order], atol=1e-6)


def test_the_rest_is_a_t_pose_on_the_floor_that_faces_the_front(mvnx):
    body = read_recorded(written(mvnx, mvnx_text(*motion())))
    at, tail = (dict(zip(body.names, ends, strict=True)) for ends in (body.heads, body.tails))
    # Soles are 2 cm under the toes.
    np.testing.assert_allclose(at["LeftToe"], (0.09, -0.16, 0.02), atol=1e-12)
    np.testing.assert_allclose(tail["LeftToe"], (0.09, -0.23, 0.02), atol=1e-12)
    np.testing.assert_allclose(at["LeftHand"] - at["LeftUpperArm"], (0.54, 0.0, 0.0), atol=1e-12)
    np.testing.assert_allclose(tail["Head"] - at["Head"], (0.0, 0.0, 0.17), atol=1e-12)
    np.testing.assert_allclose(tail["Pelvis"], at["L5"], atol=1e-12)


def test_bones_are_known_by_their_names(mvnx):
    roles = match(read_recorded(written(mvnx, mvnx_text(*motion()))).names)
    parts = {name: role.part for name, role in roles.items()}
    assert [parts[name] for name in ("Pelvis", "L5", "L3", "T12", "T8")] == ["hips", "spine", "spine", "spine", "chest"]
    assert (roles["LeftUpperArm"].part, roles["LeftUpperArm"].side) == ("upper_arm", "L")
    assert len(roles) == len(MVN)


@pytest.mark.parametrize("still", [False, True])
def test_quaternions_with_the_scalar_last_are_recognized_by_the_positions(mvnx, still):
    orientations, pelvis = motion()
    if still:
        orientations[:] = 1.0, 0.0, 0.0, 0.0
    text = mvnx_text(orientations, pelvis)

    def scalar_last(found):
        numbers = found[1].split()
        turned = [" ".join([*numbers[at + 1 : at + 4], numbers[at]]) for at in range(0, len(numbers), 4)]
        return f"<orientation>{' '.join(turned)}</orientation>"

    right = read_recorded(written(mvnx, text))
    body = read_recorded(written(mvnx, re.sub("<orientation>(.*?)</orientation>", scalar_last, text)))
    assert (right.notes, body.notes) == ((), ("its quaternions are x y z w; read them in this order",))
    np.testing.assert_allclose(body.positions(), right.positions(), atol=1e-12)
    np.testing.assert_allclose(body.rotations, right.rotations, atol=1e-12)


def test_single_frames_other_rates_and_incomplete_frames_are_read(mvnx):
    orientations, pelvis = motion()
    orientations[2, 3], pelvis[4] = np.nan, np.nan
    body = read_recorded(written(mvnx, mvnx_text(orientations, pelvis)), rate=60.0)
    assert (body.rate, body.frames.tolist()) == (60.0, [0, 1, 3, 5])
    assert body.notes[0].startswith("left out 2 incomplete frames")
    one = mvnx_text(orientations[:1], pelvis[:1])
    assert read_recorded(written(mvnx, one)).frames.tolist() == [0]
    assert read_recorded(written(mvnx, one.replace('"240"', '"59,94"'))).rate == 59.94


@pytest.mark.parametrize("missing", ["segments", "joints", "points"])
def test_without_segments_joints_or_points_positions_show_the_lengths(mvnx, missing):
    orientations, pelvis = motion()
    text = mvnx_text(orientations, pelvis)
    whole = read_recorded(written(mvnx, text))
    body = read_recorded(written(mvnx, re.sub(f"<{missing}>.*?</{missing}>", "", text)))
    assert (body.names, body.notes) == (whole.names, ())
    np.testing.assert_allclose(body.positions(), whole.positions(), atol=1e-6)
    np.testing.assert_allclose(body.heads - body.heads[0], whole.heads - whole.heads[0], atol=1e-6)
    ways, others = (each.tails - each.heads for each in (body, whole))
    cosines = (ways * others).sum(axis=1) / (np.linalg.norm(ways, axis=1) * np.linalg.norm(others, axis=1))
    # Ends of toes and hands are unknown now; a toe has the direction of its foot.
    assert cosines.min() > 0.9


def test_without_segments_what_follows_the_body_is_a_prop(mvnx):
    text = re.sub("<segments>.*</segments>", "", mvnx_text(*motion()))
    text = text.replace("</orientation>", " 1 0 0 0</orientation>").replace("</position>", " 1 2 3</position>")
    body = read_recorded(written(mvnx, text))
    assert (sorted(body.names), body.notes) == (sorted(MVN), ("left out unconnected segments: Prop1",))


def test_props_and_fingers_are_left_out(mvnx):
    text = mvnx_text(*motion())
    fingers = '<fingerTrackingSegmentsLeft><segment label="LeftCarpus"/></fingerTrackingSegmentsLeft>'
    body = read_recorded(written(mvnx, text.replace("<joints>", f"{fingers}<joints>")))
    assert body.notes == ("left out 1 finger segments",)
    body = read_recorded(written(mvnx, text.replace('label="Head"', 'label="Hat"')))
    assert "Hat" not in body.names
    assert body.notes == ("left out unconnected segments: Hat",)


def without(text, missing):
    """The document without some segments and their joints."""
    names = list(MVN)
    for name in missing:
        text = re.sub(rf'<segment id="\d+" label="{name}">.*?</segment>', "", text)
        text = re.sub(rf"<joint label=\"\w+\">(?:(?!</joint>).)*>{name}/.*?</joint>", "", text)

    def kept(match):
        values = np.array(match[2].split()).reshape(len(names), -1)
        rows = [row for row, name in zip(values, names, strict=True) if name not in missing]
        return f"<{match[1]}>{' '.join(np.ravel(rows))}</{match[1]}>"

    return re.sub(r"<(orientation|position)>(.*?)</\1>", kept, text)


@pytest.mark.parametrize("missing", [["L3", "T12"], ["Neck", "LeftShoulder", "RightToe"]])
def test_segments_follow_the_nearest_segment_that_is_there(mvnx, missing):
    """Fixed: half the body was left out."""
    orientations, pelvis = motion()
    # Bones above missing ones must not bend, since the distance across a bent spine changes.
    orientations[:] = orientations[:, :1]
    text = mvnx_text(orientations, pelvis)
    whole = read_recorded(written(mvnx, text))
    body = read_recorded(written(mvnx, without(text, missing)))
    assert (sorted(body.names), body.notes) == (sorted(set(MVN) - set(missing)), ())
    places = [list(whole.names).index(name) for name in body.names]
    np.testing.assert_allclose(body.positions(), whole.positions()[:, places], atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: len(text) // 2], "it is not a complete MVNX document"),
        (lambda text: "hello", "it is not a complete MVNX document"),
        (
            lambda text: text.replace('frameRate="240"', 'frameRate="fast"'),
            "its frameRate is 'fast': choose the frame rate",
        ),
        (lambda text: text.replace('frameRate="240"', ""), "its frameRate is ''"),
        (lambda text: text.replace('type="normal"', 'type="tpose"'), "it has no frames of the type normal"),
        (lambda text: text.replace("<segment ", "<other "), "it is not a complete MVNX document"),
        (lambda text: text.replace("</orientation>", " 1</orientation>"), "frame 0 has 93 numbers as its orientation"),
        (lambda text: text.replace("<position>", "<position>x "), "its position 'x .*' does not consist of numbers"),
        (
            lambda text: re.sub("<position>[^<]*</position>|<points>.*?</points>", "", text, flags=re.DOTALL),
            "its frames have no position: export it with Orientation and Position",
        ),
        (
            lambda text: text.replace("<connector2>Head", "<connector2>Pelvis"),
            "its joints form a loop, or connect no seg",
        ),
        (lambda text: re.sub('label="[A-Z]', 'label="x', text), "its joints form a loop, or connect no segments"),
    ],
)
def test_damaged_files_are_refused(mvnx, change, message):
    text = change(mvnx_text(*motion()))
    with pytest.raises(RetargetError, match=rf"^walk\.mvnx: {message}") as caught:
        read_recorded(written(mvnx, text))
    assert "\n" not in str(caught.value)


def test_without_positions_the_body_stays_in_place_on_the_floor(mvnx):
    orientations, pelvis = motion()
    placed = read_recorded(written(mvnx, mvnx_text(orientations, pelvis)))
    body = read_recorded(written(mvnx, re.sub("<position>[^<]*</position>", "", mvnx_text(orientations, pelvis))))
    assert body.doubts == (
        "Its frames have no position, so the body stays in place: export it with Orientation and Position",
    )
    np.testing.assert_allclose(body.rotations, placed.rotations, atol=1e-12)
    positions = body.positions()
    np.testing.assert_allclose(positions[..., 2].min(axis=1), body.heads[:, 2].min(), atol=1e-9)
    np.testing.assert_allclose(positions[:, 0, :2], 0.0, atol=1e-12)


def numbered(text, step=1.0, kept=range(FRAMES)):
    """The document with only some of its frames, which have their index and their time in milliseconds."""
    head, *frames = re.split('<frame time="0" index="0" type="normal">', text)
    last, tail = frames[-1].split("</frames>")
    frames = [*frames[:-1], last]
    starts = [f'<frame time="{1000 * step * place / 240:.0f}" index="{place}" type="normal">' for place in kept]
    rows = [start + frames[place] for start, place in zip(starts, kept, strict=True)]
    return f"{head}{''.join(rows)}</frames>{tail}"


def test_frames_that_are_missing_are_gaps(mvnx):
    """Fixed: the frames after a gap followed at once, so that the body jumped and was too early."""
    text = mvnx_text(*motion())
    whole = read_recorded(written(mvnx, numbered(text)))
    body = read_recorded(written(mvnx, numbered(text, kept=[0, 1, 4, 5])))
    assert (whole.frames.tolist(), whole.notes, whole.doubts) == ([*range(FRAMES)], (), ())
    assert (body.frames.tolist(), body.notes) == ([0, 1, 4, 5], ("2 frames are missing; left gaps for them",))
    np.testing.assert_allclose(body.rotations, whole.rotations[[0, 1, 4, 5]], atol=1e-12)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_times_of_few_frames_in_whole_milliseconds_give_no_warning(mvnx, count):
    """Fixed: 4 ms between two frames were 250 Hz."""
    body = read_recorded(written(mvnx, numbered(mvnx_text(*motion()), kept=range(count))))
    assert (len(body.frames), body.doubts) == (count, ())


@pytest.mark.parametrize("rate", [None, 60.0])
def test_times_that_contradict_the_rate_give_a_warning(mvnx, rate):
    body = read_recorded(written(mvnx, numbered(mvnx_text(*motion()), step=4.0)), rate=rate)
    said = "The file has two frame rates, 240 and 60."
    assert [doubt.startswith(said) for doubt in body.doubts] == [True] * (rate is None)


@pytest.mark.parametrize("still", [False, True])
def test_positions_in_other_axes_than_the_orientations_give_a_warning(mvnx, still):
    """Fixed: a body whose positions were Y up moved sideways without a warning."""
    orientations, pelvis = motion()
    if still:
        orientations[:] = 1.0, 0.0, 0.0, 0.0

    def y_up(found):
        places = np.array(found[1].split(), dtype=float).reshape(-1, 3) @ [[1, 0, 0], [0, 0, -1], [0, 1, 0]]
        return f"<position>{' '.join(map(str, places.ravel()))}</position>"

    body = read_recorded(written(mvnx, re.sub("<position>(.*?)</position>", y_up, mvnx_text(orientations, pelvis))))
    assert body.doubts == (
        "The positions of its segments do not match their orientations: export both in the same axes and units",
    )


def test_decimal_commas_are_read(mvnx):
    text = mvnx_text(*motion())
    commas = re.sub("<(orientation|position)>.*?</", lambda found: found[0].replace(".", ","), text)
    whole, body = (read_recorded(written(mvnx, each)) for each in (text, commas))
    np.testing.assert_array_equal(body.positions(), whole.positions())


def test_locations_in_millimeters_are_refused(mvnx):
    orientations, pelvis = motion()
    with pytest.raises(RetargetError, match=r"its body moves \d+ m per second: export locations in meters"):
        read_recorded(written(mvnx, mvnx_text(orientations, 1000.0 * pelvis)))
    with pytest.raises(RetargetError, match=r"its body is \d+ m above or below the origin: export locations in meters"):
        read_recorded(written(mvnx, mvnx_text(orientations[:1], 1000.0 * pelvis[:1])))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_not_expanded(mvnx, encoding):
    """A billion laughs: ten entities, each ten times the one before."""
    grown = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    text = mvnx_text(*motion(), head=f'<!DOCTYPE mvnx [<!ENTITY a0 "ha">{grown}]>').replace("UTF-8", encoding)
    mvnx.write_bytes(text.replace("Anna", "&a9;").encode(encoding))
    with pytest.raises(RetargetError, match=r"^walk\.mvnx: it declares entities, which MVN does not write"):
        read_recorded(mvnx)


def test_a_doctype_without_entities_is_read(mvnx):
    """MVN writes one in a comment, with the remark that it can be used."""
    doctype = '<!DOCTYPE mvnx SYSTEM "http://www.xsens.com/mvn/mvnx/schema.dtd">\n'
    body = read_recorded(written(mvnx, mvnx_text(*motion(), head=doctype)))
    plain = read_recorded(written(mvnx, mvnx_text(*motion())))
    np.testing.assert_array_equal(body.positions(), plain.positions())


def test_the_first_of_several_people_is_read_with_a_warning(mvnx):
    """Fixed: the frames of the second one were appended to those of the first."""
    text = mvnx_text(*motion())
    alone = read_recorded(written(mvnx, text))
    other = text[text.index("<subject") : text.index("</mvnx>")].replace("Anna", "Bert").replace("0.1", "0.2")
    both = read_recorded(written(mvnx, text.replace("</mvnx>", f"{other}</mvnx>")))
    np.testing.assert_array_equal(both.positions(), alone.positions())
    np.testing.assert_array_equal(both.heads, alone.heads)
    assert both.doubts == ("Used the first of 2 people: export each of them to a file of its own",)


@given(content=st.binary(max_size=100))
def test_any_bytes_are_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "walk.mvnx"
    path.write_bytes(content)
    with pytest.raises(RetargetError, match=r"^walk\.mvnx: "):
        read_recorded(path)
