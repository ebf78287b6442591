"""Drives the import of all formats: drops, the dialog, a choice of the layout; run by `test_gui.py`.

From the drop to keys on the sample person: a file of each format in two actions (drop, OK); one undo takes it all back.
Leaves format_….png for each, formats_dropped.png, formats_canceled.png and formats_layout.png.
"""

from math import radians
from pathlib import Path

import bpy
import gui_drive as g
import numpy as np
from mathutils import Euler

# Written by `test_gui.py`.
FILES = sorted(Path(g.OUT).glob("formats/*"))
FRAMES = 30
# From a file to keys.
MOST_ACTIONS = 2


def rig():
    return bpy.data.objects["Rig"]


def drop(path, **chosen):
    """Drop a file on the viewport, as its file handler does."""
    g.goto(*g.center())
    yield
    with g.override():
        if chosen:
            bpy.ops.fabrik.import_markers("INVOKE_DEFAULT", filepath=str(path), **chosen)
        else:
            bpy.ops.wm.drop_import_file("INVOKE_DEFAULT", directory=str(path.parent), files=[{"name": path.name}])
    yield 0.8


def blocks():
    return {
        thing.name_full for thing in bpy.data.user_map() if thing.id_type not in {"TEXT", "WINDOWMANAGER", "SCREEN"}
    }


def scene():
    render = bpy.context.scene.render
    return render.fps, render.fps_base, bpy.context.scene.frame_start, bpy.context.scene.frame_end


def steps():
    with g.override():
        bpy.ops.object.select_all(action="DESELECT")
        bpy.context.view_layer.objects.active = rig()
        rig().select_set(True)
        bpy.ops.ed.undo_push(message="Start")
    space = g.area().spaces.active
    space.show_gizmo = False
    view = space.region_3d
    view.view_perspective, view.view_location, view.view_distance = "PERSP", (0.0, -0.4, 0.9), 4.6
    view.view_rotation = Euler((radians(78.0), 0.0, radians(50.0))).to_quaternion()
    assert len(FILES) == 10, FILES
    yield 0.5
    for path in FILES:
        yield from a_file_becomes_keys(path)
    yield from esc_takes_the_import_back()
    yield from a_layout_is_asked_for()
    yield from a_performer_is_asked_for()


def a_file_becomes_keys(path):
    """Drop a file and press OK; then undo."""
    before, actions = (blocks(), scene()), 0
    yield from drop(path)
    actions += 1
    if path == FILES[0]:
        g.shot("formats_dropped.png")
    assert (blocks(), scene()) == before, "nothing was asked"
    g.key("RET")
    actions += 1
    for _ in range(100):
        yield 0.2
        if rig().animation_data and rig().animation_data.action and not g.window().modal_operators:
            break
    assert actions <= MOST_ACTIONS
    told = rig().fabrik.capture.last_result
    assert f"{FRAMES} frames of '{path.stem}'" in told, told
    curves = rig().animation_data.action.layers[0].strips[0].channelbags[0].fcurves
    assert {len(curve.keyframe_points) for curve in curves} == {FRAMES}
    places = []
    for frame in (1, FRAMES // 2):
        bpy.context.scene.frame_set(frame)
        places.append([tuple(bone.tail) for bone in rig().pose.bones])
    assert np.ptp(places, axis=0).max() > 0.1, "nothing moves"
    yield 0.5
    g.shot(f"format_{path.name}.png")
    g.key("Z", ctrl=True)
    yield 0.8
    assert (blocks(), scene()) == before, "one undo does not take the import back"
    assert rig().animation_data is None or rig().animation_data.action is None


def esc_takes_the_import_back():
    before = blocks(), scene(), len(rig().fabrik.capture.markers)
    yield from drop(FILES[0])
    g.key("RET")
    g.key("ESC")
    yield 1.5
    g.shot("formats_canceled.png")
    assert (blocks(), scene(), len(rig().fabrik.capture.markers)) == before, "Esc does not take the import back"


def a_layout_is_asked_for():
    """For 17 points that are no person's, the dialog is shown again with a layout to choose."""
    path = Path(g.OUT) / "odd.npy"
    np.save(path, np.random.default_rng(3).uniform(0.0, 1.7, size=(8, 17, 3)))
    yield from drop(path, rig="")
    g.key("RET")
    yield 1.5
    g.shot("formats_layout.png")
    assert "odd" not in bpy.data.collections, "no layout was asked for"
    g.key("RET")
    yield 1.5
    assert len(bpy.data.collections["odd"].objects) == 17, "the layout that was offered imported nothing"


def a_performer_is_asked_for():
    """Two people in one file: each drop offers the next one, and bakes all its frames."""
    titles, fields, counts, columns, *rows = (Path(g.OUT) / "formats" / "a.trc").read_text().splitlines()
    frame, second, *labels = columns.split("\t")
    labels = [[label and f"{person}:{label}" for label in labels] for person in ("Anna", "Ben")]
    counts = counts.replace("\t42\t", "\t84\t")
    columns = "\t".join([frame, second, *labels[0], "", "", *labels[1]])
    rows = ["\t".join([*row.split("\t"), *row.split("\t")[2:]]) for row in rows]
    path = Path(g.OUT) / "two.trc"
    path.write_text("\n".join([titles, fields, counts, columns, *rows]) + "\n")
    for person in ("Anna", "Ben"):
        yield from drop(path)
        g.key("RET")
        yield 1.5
        g.shot(f"formats_{person}.png")
        assert f"two {person}" not in bpy.data.collections, "no performer was asked for"
        g.key("RET")
        for _ in range(100):
            yield 0.2
            if not g.window().modal_operators:
                break
        told = rig().fabrik.capture.last_result
        # The scene has half the rate of the file, that of the keypoints.
        assert f"{FRAMES // 2} frames of 'two {person}'" in told, told


g.run(steps, limit=240.0)
