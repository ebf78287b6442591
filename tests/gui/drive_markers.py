"""Drives the Motion tab on the sample person: import, match, calibrate, bake; run by `test_gui.py`."""

import sys
from math import radians
from pathlib import Path

import bpy
import gui_drive as g
import numpy as np
from mathutils import Euler

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.sidebar import open_panels

SAMPLES = Path(bpy.data.filepath).parent


def rig():
    return bpy.data.objects["Rig"]


def capture():
    return rig().fabrik.capture


def look(place, distance, turn, tilt=78.0):
    view = g.area().spaces.active.region_3d
    view.view_perspective = "PERSP"
    view.view_location, view.view_distance = place, distance
    view.view_rotation = Euler((radians(tilt), 0.0, radians(turn))).to_quaternion()


def save_part(name, rtype="WINDOW", box=(0.0, 0.0, 1.0, 1.0)):
    """A picture of a region of the viewport; box: its left, bottom, right and top as shares of the region."""
    whole = bpy.data.images.load(g.shot(name))
    width, height = whole.size
    colors = np.array(whole.pixels[:], dtype=np.float32).reshape(height, width, 4)
    bpy.data.images.remove(whole)
    place = g.region(rtype=rtype)
    x = (place.x + round(box[end] * place.width) for end in (0, 2))
    y = (place.y + round(box[end] * place.height) for end in (1, 3))
    cut = colors[slice(*y), slice(*x)]
    picture = bpy.data.images.new("cut", cut.shape[1], cut.shape[0])
    picture.pixels = np.ascontiguousarray(cut).ravel()
    picture.file_format, picture.filepath_raw = "PNG", str(Path(g.OUT) / name)
    picture.save()
    bpy.data.images.remove(picture)


def steps():
    with g.override():
        bpy.context.view_layer.objects.active = rig()
    space = g.area().spaces.active
    space.show_region_toolbar = False
    space.show_gizmo = False
    space.overlay.show_text = False
    space.overlay.show_cursor = False
    look((0.0, 0.2, 0.9), 4.6, -38.0)
    yield from choose_one_of_two()
    yield from drop_a_file()
    yield from show_the_tab()
    yield from match()
    yield from stop_calibrating()
    yield from calibrate()
    yield from bake()
    yield from take_pictures()


def choose_one_of_two():
    """A file with two people's markers asks whose to import, and offers the first."""
    lines = (SAMPLES / "walk.trc").read_text(encoding="utf-8").splitlines(keepends=True)
    row = next(place for place, line in enumerate(lines) if line.startswith("Frame#"))
    cells = lines[row].split("\t")
    labels = [place for place, cell in enumerate(cells) if place > 1 and cell.strip()]
    for count, place in enumerate(labels):
        cells[place] = f"{'Anna' if count < 12 else 'Bob'}:{cells[place]}"
    lines[row] = "\t".join(cells)
    both = Path(g.OUT) / "two.trc"
    both.write_text("".join(lines), encoding="utf-8")
    g.goto(*g.center())
    yield
    with g.override():
        bpy.ops.fabrik.import_markers("INVOKE_DEFAULT", filepath=str(both), rig="")
    yield 1.0
    g.key("RET")
    yield 1.5
    g.shot("markers_performers.png")
    assert "two Anna" not in bpy.data.collections, "nobody was asked for"
    g.key("RET")
    yield 1.5
    assert len(bpy.data.collections["two Anna"].objects) == 12, "these are not Anna's markers"
    with g.override():
        for marker in list(bpy.data.collections["two Anna"].objects):
            bpy.data.objects.remove(marker)
        bpy.data.collections.remove(bpy.data.collections["two Anna"])
    yield 0.5


def drop_a_file():
    """Simulate dropping a file: the operator is invoked with the file, asks in a small dialog, and imports."""
    assert hasattr(bpy.types, "FABRIK_FH_markers")
    g.goto(*g.center())
    yield
    with g.override():
        bpy.ops.fabrik.import_markers("INVOKE_DEFAULT", filepath=str(SAMPLES / "walk.trc"), rig="")
    yield 1.0
    g.shot("markers_dropped.png")
    assert "walk" not in bpy.data.collections, "nothing was asked"
    g.key("RET")
    yield 1.5
    assert len(bpy.data.collections["walk"].objects) > 30, "the dialogue imported nothing"


def show_the_tab():
    open_panels("FABRIK_PT_calibration", "FABRIK_PT_bake")
    g.area().spaces.active.show_region_ui = True
    yield 1.0
    g.region(rtype="UI").active_panel_category = "FABRIK Motion"
    yield 1.0


def match():
    yield from g.find_button("fabrik.match_markers", xfrac=0.3, step=6)
    g.click()
    yield 1.0
    on_bones = [entry for entry in capture().markers if entry.bone]
    assert len(on_bones) >= 0.9 * len(capture().markers), "Match Markers to Bones left many without a bone"


def places():
    """The positions of the markers on the rig."""
    return [(entry.name, entry.point, *entry.offset) for entry in capture().markers]


def stop_calibrating():
    """Esc during the work restores everything."""
    before = places()
    yield from g.find_button("fabrik.calibrate_markers", xfrac=0.4, step=6)
    g.click()
    g.key("ESC")  # at once, since a calibration takes only half a second
    yield 1.0
    g.shot("markers_stopped.png")
    yield 5.0
    assert places() == before, "Esc did not stop the calibration"


def calibrate():
    capture().refine = False
    before = places()
    yield from g.find_button("fabrik.calibrate_markers", xfrac=0.4, step=6)
    g.click()
    for _ in range(60):
        yield 1.0
        if places() != before:
            break
    assert all(entry.point == "OFFSET" for entry in capture().markers if entry.bone), "calibration measured nothing"


def bake():
    """Bake to Keyframes works while the window stays alive."""
    bpy.context.scene.frame_end = 40
    with g.override():
        bpy.ops.fabrik.bake("INVOKE_DEFAULT")
    for _ in range(120):
        yield 1.0
        if capture().report is not None:
            break
    assert capture().report is not None, "the bake has not ended"
    assert rig().animation_data.action is not None
    assert max(entry.error for entry in capture().markers if entry.bone) < 0.03


def take_pictures():
    """For the guide: the baked take with its markers and error lines."""
    capture().show_errors = True
    capture().active_marker = 4
    bpy.context.scene.frame_set(14)
    yield 1.0
    g.goto(*g.center())
    yield 1.0
    g.area().spaces.active.show_region_ui = False
    look(tuple(rig().matrix_world @ rig().pose.bones["hips"].head), 2.6, -38.0)
    yield 1.5
    save_part("markers_baked.png", box=(0.28, 0.02, 0.72, 0.95))


g.run(steps, limit=480.0)
