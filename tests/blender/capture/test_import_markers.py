"""Marker recordings as animated empties, from clips and through the operator."""

from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from support.scenes import write_trc

from fabrik_addon.blender.capture.import_markers import (
    ImportMarkersError,
    choose_performer,
    import_clip,
)
from fabrik_addon.blender.rig import keyframes
from fabrik_addon.blender.settings.motion import MARKER_NAME
from fabrik_addon.blender.ui.entries import FABRIK_FH_markers
from fabrik_addon.core.errors import FabrikError
from fabrik_addon.markers.clip import Clip, ClipError, part_of
from fabrik_addon.markers.signals import resample

pytestmark = pytest.mark.usefixtures("clean_scene")

TRC_HEADER = """PathFileType\t4\t(X/Y/Z)\t{name}
DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames
{rate}\t{rate}\t3\t2\t{units}\t{rate}\t1\t3
Frame#\tTime\tHEAD\t\t\tTOE\t\t
\t\tX1\tY1\tZ1\tX2\tY2\tZ2

"""


def wandering_clip(frames=30, markers=4, rate=100.0, gaps=0.3, seed=0, up_axis="Z"):
    """A clip of markers that wander, with a share of the samples missing, the last marker never seen."""
    rng = np.random.default_rng(seed)
    positions = rng.normal(size=(1, markers, 3)) + np.cumsum(rng.normal(size=(frames, markers, 3)) * 0.01, axis=0)
    positions[rng.random((frames, markers)) < gaps] = np.nan
    positions[:, -1] = np.nan
    return Clip(tuple(f"M{index}" for index in range(markers)), rate, positions, up_axis=up_axis, source="walk.trc")


def shown(collection, frames):
    """(F, M, 3) world positions of the empties as Blender evaluates them."""
    result = []
    for frame in frames:
        bpy.context.scene.frame_set(int(np.floor(frame)), subframe=float(frame % 1.0))
        graph = bpy.context.evaluated_depsgraph_get()
        result.append([tuple(empty.evaluated_get(graph).matrix_world.translation) for empty in collection.objects])
    return np.array(result)


def digest():
    """A digest of everything in a file that an import may change."""
    scene = bpy.context.scene
    blocks = [
        sorted(block.name for block in kind) for kind in (bpy.data.objects, bpy.data.collections, bpy.data.actions)
    ]
    render = (scene.render.fps, scene.render.fps_base, scene.frame_start, scene.frame_end)
    return blocks, render, (scene.frame_current, scene.frame_subframe)


@pytest.fixture
def trc(tmp_path):
    """Writes a file with two markers and three frames, Y up; the second marker is not seen on frame 2."""

    def write(name="walk.trc", rate=60, units="mm"):
        rows = ("1\t0\t0\t1700\t0\t100\t50\t200", "2\t0.01\t0\t1700\t10\t\t\t", "3\t0.02\t0\t1700\t20\t100\t50\t220")
        path = tmp_path / name
        path.write_text(TRC_HEADER.format(name=name, rate=rate, units=units) + "\n".join(rows) + "\n")
        return str(path)

    return write


def test_markers_are_where_the_clip_has_them():
    clip = wandering_clip()

    collection = import_clip(bpy.context, clip, start_frame=5)

    seen = clip.seen
    np.testing.assert_allclose(shown(collection, np.arange(5, 35))[seen], clip.positions[seen], atol=1e-6)


def test_keys_are_only_where_a_marker_is_seen():
    clip = wandering_clip()

    collection = import_clip(bpy.context, clip)

    for index, empty in enumerate(collection.objects):
        found = list(keyframes.curves(empty))
        assert [curve.data_path for curve in found] == ["location"] * 3
        for curve in found:
            np.testing.assert_array_equal(keyframes.keys(curve)[:, 0], 1 + np.flatnonzero(clip.seen[:, index]))
            assert all(key.interpolation == "LINEAR" for key in curve.keyframe_points)


def test_the_collection_and_the_empties_are_named_and_marked():
    taken = bpy.data.objects.new("M1", None)

    collection = import_clip(bpy.context, wandering_clip())

    assert collection.name == "walk"
    assert collection in list(bpy.context.scene.collection.children)
    assert [empty[MARKER_NAME] for empty in collection.objects] == ["M0", "M1", "M2", "M3"]
    assert taken.name == "M1"
    assert {empty.type for empty in collection.objects} == {"EMPTY"}
    assert [empty.empty_display_size for empty in collection.objects] == pytest.approx([0.02] * 4)


def test_empties_are_at_their_positions_on_the_current_frame():
    clip = wandering_clip(gaps=0.0)
    bpy.context.scene.frame_set(11)

    collection = import_clip(bpy.context, clip)
    bpy.context.view_layer.update()

    places = [tuple(empty.matrix_world.translation) for empty in collection.objects]
    np.testing.assert_allclose(places[:3], clip.positions[10, :3], atol=1e-6)


def test_y_up_clips_are_converted_to_z_up():
    clip = wandering_clip(up_axis="Y", gaps=0.0)

    collection = import_clip(bpy.context, clip)

    x, y, z = np.moveaxis(clip.positions[:, :3], -1, 0)
    np.testing.assert_allclose(shown(collection, range(1, 31))[:, :3], np.stack((x, -z, y), axis=-1), atol=1e-6)


def test_scale_applies_to_positions():
    clip = wandering_clip(gaps=0.0)

    collection = import_clip(bpy.context, clip, scale=2.5)

    np.testing.assert_allclose(shown(collection, range(1, 31))[:, :3], 2.5 * clip.positions[:, :3], atol=1e-5)


@pytest.mark.parametrize("rate", [24.0, 60.0, 59.94, 119.88, 0.5, 1000.0])
def test_the_scene_gets_the_clip_s_rate(rate):
    import_clip(bpy.context, wandering_clip(rate=rate), timing="SET_SCENE_RATE")

    render = bpy.context.scene.render
    assert render.fps / render.fps_base == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize("rate", [100.0, 12.0])
def test_keeping_time_resamples_to_the_scene_s_frames(rate):
    scene, clip = bpy.context.scene, wandering_clip(rate=rate, gaps=0.0)
    scene.render.fps, scene.render.fps_base = 24, 1.0

    collection = import_clip(bpy.context, clip, timing="KEEP_TIME", start_frame=10)

    assert (scene.render.fps, scene.render.fps_base) == (24, 1.0)
    wanted = resample(clip, 24.0).positions
    assert len(wanted) == 1 + np.floor(29 * 24.0 / rate)
    np.testing.assert_allclose(shown(collection, 10 + np.arange(len(wanted)))[:, :3], wanted[:, :3], atol=1e-5)


def test_keeping_frames_ignores_the_rate():
    scene, clip = bpy.context.scene, wandering_clip(rate=100.0, gaps=0.0)
    scene.render.fps, scene.render.fps_base = 24, 1.0

    collection = import_clip(bpy.context, clip, timing="KEEP_FRAMES", start_frame=-10)

    assert (scene.render.fps, scene.render.fps_base) == (24, 1.0)
    np.testing.assert_allclose(shown(collection, range(-10, 20))[:, :3], clip.positions[:, :3], atol=1e-6)


def test_the_scene_s_range_is_widened_but_not_narrowed():
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 20, 25

    import_clip(bpy.context, wandering_clip(frames=30), start_frame=2)
    assert (scene.frame_start, scene.frame_end) == (2, 31)

    import_clip(bpy.context, wandering_clip(frames=3), start_frame=10)
    assert (scene.frame_start, scene.frame_end) == (2, 31)


def test_a_static_recording_leaves_the_scene_s_range_to_the_motion():
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 25
    standing = Clip(("M0", "M1"), 100.0, np.ones((300, 2, 3)), source="standing.trc")

    import_clip(bpy.context, standing)
    assert (scene.frame_start, scene.frame_end) == (1, 25)

    import_clip(bpy.context, wandering_clip(frames=151))
    assert (scene.frame_start, scene.frame_end) == (1, 151)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clip": Clip((), 100.0, np.empty((5, 0, 3)), source="none.trc")}, "none.trc: there are no markers"),
        ({"clip": Clip(("A",), 100.0, np.empty((0, 1, 3)), source="none.trc")}, "none.trc: there are no markers"),
        ({"clip": wandering_clip(rate=1e6)}, "walk.trc: the frame rate is 1000000.0, but must be above 0"),
        ({"start_frame": 2_000_000}, "walk.trc: frames 2000000 to 2000029 are outside Blender's range"),
        ({"scale": 0.0}, "scale must be a positive number, not 0.0"),
        ({"scale": float("nan")}, "scale must be a positive number, not nan"),
    ],
)
def test_files_that_cannot_be_imported_change_nothing(changes, message):
    before = digest()
    arguments = {"clip": wandering_clip(), **changes}

    with pytest.raises(ImportMarkersError, match=message):
        import_clip(bpy.context, arguments.pop("clip"), **arguments)

    assert digest() == before


def test_operator_imports_a_file(trc):
    assert bpy.ops.fabrik.import_markers(filepath=trc(), up_axis="Y") == {"FINISHED"}

    collection = bpy.data.collections["walk"]
    expected = [[(0.0, 0.0, 1.7), (0.1, -0.2, 0.05)], [(0.0, -0.02, 1.7), (0.1, -0.22, 0.05)]]
    np.testing.assert_allclose(shown(collection, (1, 3)), expected, atol=1e-6)
    assert bpy.context.scene.render.fps == 60


def test_operator_lets_units_axis_scale_and_start_be_chosen(trc):
    bpy.ops.fabrik.import_markers(filepath=trc(), units="cm", up_axis="Z", scale=0.1, start_frame=100)

    np.testing.assert_allclose(shown(bpy.data.collections["walk"], (100,))[0, 0], (0.0, 1.7, 0.0), atol=1e-6)


def test_operator_imports_several_files(trc, tmp_path):
    trc("walk.trc"), trc("run.trc")

    files = [{"name": "walk.trc"}, {"name": "run.trc"}]
    assert bpy.ops.fabrik.import_markers(directory=str(tmp_path), files=files) == {"FINISHED"}

    assert {"walk", "run"} <= set(bpy.data.collections.keys())


def test_operator_refuses_two_rates_for_one_scene(trc, tmp_path):
    trc("walk.trc", rate=60), trc("run.trc", rate=100)
    files = [{"name": "walk.trc"}, {"name": "run.trc"}]
    before = digest()

    with pytest.raises(RuntimeError, match=r"different frame rates \(60 to 100 fps\)"):
        bpy.ops.fabrik.import_markers(directory=str(tmp_path), files=files)

    assert digest() == before
    assert bpy.ops.fabrik.import_markers(directory=str(tmp_path), files=files, timing="KEEP_TIME") == {"FINISHED"}


def two_performers(name="two.trc"):
    """A clip with the same markers for Anna and Bob, and one without a performer."""
    names = ("Anna:LASI", "Anna:RASI", "Bob:LASI", "Bob:RASI")
    positions = np.arange(4 * 5 * 3, dtype=float).reshape(5, 4, 3)
    return Clip(names, 50.0, positions, up_axis="Z", source=name)


def test_one_of_two_performers_is_chosen():
    chosen = choose_performer(two_performers(), "Bob")
    assert chosen.names == ("LASI", "RASI")
    np.testing.assert_array_equal(chosen.positions, two_performers().positions[:, 2:])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "two.trc has 2 performers, Anna and Bob: choose one"),
        ("Cy", "there is no performer 'Cy': choose Anna, Bob"),
    ],
)
def test_one_of_two_performers_has_to_be_chosen(name, sentence):
    with pytest.raises(FabrikError, match=sentence):
        choose_performer(two_performers(), name)


def test_a_file_of_markers_is_not_read_as_poses(tmp_path):
    """Fixed: the message wrongly named pickled Python objects."""
    path = tmp_path / "two.trc"
    write_trc(path, two_performers().names, two_performers().positions + 1.0)
    with pytest.raises(RuntimeError, match=r"two\.trc: it has no poses: import its markers, or"):
        bpy.ops.fabrik.import_markers(filepath=str(path), holds="ARMATURE")


def test_operator_asks_for_the_performer(tmp_path):
    path = tmp_path / "two.trc"
    write_trc(path, two_performers().names, two_performers().positions + 1.0)
    before = digest()
    with pytest.raises(RuntimeError, match=r"two\.trc has 2 performers, Anna and Bob: choose one"):
        bpy.ops.fabrik.import_markers(filepath=str(path))
    assert digest() == before
    for name in ("Anna", "Bob"):
        assert bpy.ops.fabrik.import_markers(filepath=str(path), performer=name) == {"FINISHED"}
        assert [empty[MARKER_NAME] for empty in bpy.data.collections[f"two {name}"].objects] == ["LASI", "RASI"]


def test_a_part_of_a_recording_is_imported():
    clip = wandering_clip(frames=20, rate=100.0)
    part = part_of(clip, 3, 12)
    np.testing.assert_array_equal(part.positions, clip.positions[2:12])
    assert part.rate == 100.0
    assert part_of(clip).positions.shape == clip.positions.shape
    assert part_of(clip, 5).frame_count == 16


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        ((0, 5), "there are no frames 0 to 5: choose a range within 1 to 20"),
        ((5, 4), "no frames 5 to 4"),
        ((1, 21), "no frames 1 to 21"),
    ],
)
def test_a_part_outside_the_recording_is_refused(choice, sentence):
    with pytest.raises(ClipError, match=sentence):
        part_of(wandering_clip(frames=20), *choice)


def test_operator_imports_a_part(trc):
    bpy.ops.fabrik.import_markers(filepath=trc(), first=2, last=3, start_frame=7)
    curve = keyframes.curves(bpy.data.objects["HEAD"])[0]
    assert keyframes.keys(curve)[:, 0].tolist() == [7, 8]


def test_nothing_is_left_in_the_scene_but_its_rate_and_range(trc):
    bpy.ops.fabrik.import_markers(filepath=trc(), up_axis="Z", timing="KEEP_FRAMES", start_frame=5, first=2)
    assert list(bpy.context.scene.keys()) == []


def test_a_changed_rate_is_reported_with_the_name_of_the_take(trc, capfd):
    path = trc()
    bpy.context.scene.render.fps = 24
    bpy.ops.fabrik.import_markers(filepath=path)
    told = capfd.readouterr().out
    assert "fps (was 24)" in told
    assert f"as {bpy.context.scene.collection.children[0].name!r}" in told
    bpy.ops.fabrik.import_markers(filepath=path)
    assert "before" not in capfd.readouterr().out


def test_files_can_be_dropped_on_the_viewport_only():
    handler = FABRIK_FH_markers
    assert bpy.types.FileHandler.bl_rna_get_subclass_py(handler.__name__) is handler
    operator = bpy.ops.fabrik.import_markers.get_rna_type()
    assert {"filepath", "directory", "files"} <= set(operator.properties.keys())
    assert handler.bl_import_operator == "fabrik.import_markers"
    assert handler.bl_file_extensions == ".trc;.c3d;.csv;.npy;.npz;.mvnx;.bvh"
    areas = [SimpleNamespace(area=SimpleNamespace(type=kind)) for kind in ("VIEW_3D", "FILE_BROWSER")]
    assert [handler.poll_drop(each) for each in areas] == [True, False]
    assert not handler.poll_drop(SimpleNamespace(area=None))


@pytest.mark.parametrize(
    ("name", "markers"), [("PiG_Motion3_FF.c3d", 25), ("MACsample.c3d", None), ("golfswing.c3d", None)]
)
def test_real_c3d_files(recording, name, markers):
    assert bpy.ops.fabrik.import_markers(filepath=str(recording(name))) == {"FINISHED"}
    empties = bpy.data.collections[name.removesuffix(".c3d")].objects
    assert markers is None or len(empties) == markers
    seen = [empty for empty in empties if len(keyframes.curves(empty)[0].keyframe_points)]
    assert len(seen) > 5
    places = np.array([empty.location for empty in seen])
    assert 0.3 < np.ptp(places, axis=0).max() < 10.0


@pytest.mark.parametrize("content", ["", "PathFileType\t4\n", "rubbish"])
def test_the_operator_reports_invalid_files_and_changes_nothing(trc, tmp_path, content):
    good = trc("good.trc")
    (tmp_path / "bad.trc").write_text(content)
    before = digest()

    for arguments in (
        {"filepath": str(tmp_path / "bad.trc")},
        {"directory": str(tmp_path), "files": [{"name": "good.trc"}, {"name": "bad.trc"}]},
    ):
        with pytest.raises(RuntimeError, match=r"bad\.trc: ") as caught:
            bpy.ops.fabrik.import_markers(**arguments)
        assert len(str(caught.value).strip().splitlines()) == 1

    assert digest() == before
    assert good


def test_operator_names_a_missing_file(tmp_path):
    with pytest.raises(RuntimeError, match=r"none\.trc: there is no such file"):
        bpy.ops.fabrik.import_markers(filepath=str(tmp_path / "none.trc"))


def test_operator_leaves_mode_selection_and_active_object():
    active = bpy.data.objects.new("Active", bpy.data.meshes.new("Mesh"))
    bpy.context.scene.collection.objects.link(active)
    bpy.context.view_layer.objects.active = active
    active.select_set(True)

    import_clip(bpy.context, wandering_clip())

    assert bpy.context.view_layer.objects.active == active
    assert bpy.context.selected_objects == [active]


def test_a_static_recording_leaves_the_scene_s_rate_to_the_motion(trc, tmp_path):
    names, standing = ("M0", "M1"), np.ones((30, 2, 3))
    write_trc(tmp_path / "standing.trc", names, standing, 50.0)
    bpy.ops.fabrik.import_markers(filepath=str(tmp_path / "standing.trc"))
    write_trc(tmp_path / "walk.trc", names, standing + np.arange(30.0)[:, None, None], 120.0)
    bpy.ops.fabrik.import_markers(filepath=str(tmp_path / "walk.trc"))
    assert bpy.context.scene.render.fps / bpy.context.scene.render.fps_base == pytest.approx(120.0)


def test_a_scene_with_animation_keeps_its_frame_rate(trc):
    """Fixed: an import changed the speed of existing animation."""
    scene = bpy.context.scene
    bpy.ops.mesh.primitive_cube_add()
    bpy.context.object.keyframe_insert("location", frame=1)
    rate = scene.render.fps, scene.render.fps_base
    bpy.ops.fabrik.import_markers(filepath=trc())
    assert (scene.render.fps, scene.render.fps_base) == rate
    bpy.data.actions.remove(bpy.context.scene.objects["Cube"].animation_data.action)
