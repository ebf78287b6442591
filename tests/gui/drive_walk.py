"""Drives two complete workflows of a new user, and counts the actions; run by `test_gui.py`."""

import sys
import time
from pathlib import Path

import bpy
import gui_drive as g
import numpy as np

SAMPLES = Path(bpy.data.filepath).parent
sys.path.insert(0, str(Path(__file__).parents[1]))
# An extension is installed by dropping its zip onto the window and pressing OK.
INSTALL = ["drop the zip", "OK"]


class Walk:
    """The actions so far, and their duration."""

    def __init__(self, name, *before):
        self.name, self.done, self.began = name, list(before), time.time()

    def does(self, what):
        self.done.append(what)

    def end(self, most):
        seconds = time.time() - self.began
        print(f"WALK {self.name}: {len(self.done)} actions, {seconds:.0f} s: {', '.join(self.done)}", flush=True)
        assert len(self.done) <= most, self.done


def rig():
    return bpy.data.objects["Rig"]


def hand():
    return rig().matrix_world @ rig().pose.bones["hand.L"].tail


def steps():
    g.area().spaces.active.overlay.show_cursor = False
    yield 1.0
    yield from to_the_first_drag()
    yield from with_targets()
    yield from search_finds_it()
    yield from pages()
    yield from to_a_baked_take()


def to_the_first_drag():
    walk = Walk("first drag", *INSTALL)
    g.goto(*g.center())
    yield
    g.key("TAB", ctrl=True)
    walk.does("Pose mode")
    yield 1.5
    assert rig().mode == "POSE", "the rig that is open is not the one that is posed"
    bone = rig().pose.bones["hand.L"]
    x, y = g.view_xy(rig().matrix_world @ bone.center)
    g.goto(x, y)
    yield 0.5
    before = hand()
    g.key("F")
    walk.does("F over a hand")
    yield 1.0
    yield from g.drag_to(x + 40, y + 130, steps=6)
    yield 1.0
    show_tab("FABRIK Pose")
    yield 1.5
    save("guide_drag.png", left=0.30)
    g.click()
    walk.does("move the mouse and click")
    yield 1.0
    assert (hand() - before).length > 0.1, "the hand did not go along"
    assert rig().data.bones.active.name == "hand.L", rig().data.bones.active
    walk.end(most=5)


def with_targets():
    """The tab with pins and targets, for the manual."""
    with g.override():
        bpy.ops.fabrik.pin(bones="foot.L,foot.R")
        for bone in ("hand.L", "head"):
            bpy.ops.fabrik.add_effector(bone=bone)
    rig().fabrik.live = True
    yield 1.5
    save("pose_panel.png", left=0.0, rtype="UI")
    with g.override():
        rig().fabrik.live = False
        rig().fabrik.effectors.clear()
    yield 0.5


def search_finds_it():
    """F3 and a word find the operator."""
    g.goto(*g.center())
    yield
    g.key("F3")
    yield 1.0
    g.text("human lim")
    yield 1.5
    g.shot("walk_search.png")
    g.key("RET")
    yield 2.0
    assert "fabrik_limit" in rig().pose.bones["forearm.L"], "search did not run the preset"


def pages():
    """The page in the preferences is drawn."""
    with g.override():
        bpy.ops.screen.userpref_show(section="ADDONS")
    yield 2.0
    with bpy.context.temp_override(window=bpy.context.window_manager.windows[-1]):
        bpy.ops.preferences.addon_show(module="bl_ext.user_default.fabrik")
    yield 2.0
    g.shot("preferences.png")
    with bpy.context.temp_override(window=bpy.context.window_manager.windows[-1]):
        bpy.ops.wm.window_close()
    yield 1.0


def to_a_baked_take():
    path = write_a_c3d()
    walk = Walk("C3D to a baked take")
    with g.override():
        bpy.ops.fabrik.import_markers("INVOKE_DEFAULT", filepath=str(path))
    walk.does("drop the file")
    yield 1.5
    g.key("RET")
    walk.does("OK")
    for _ in range(90):
        yield 1.0
        if baked():
            break
    assert baked(), "the dropped file was not baked"
    assert "take" in bpy.data.collections
    show_tab("FABRIK Motion")
    walk.does("the tab")
    yield 1.5
    save("sidebar.png", left=0.30)
    save("markers_panel.png", left=0.0, rtype="UI")
    walk.end(most=3)
    yield from g.find_button("fabrik.export_report", xfrac=0.7, step=8)


def write_a_c3d():
    """Write the sample recording as a C3D file."""
    from bl_ext.user_default.fabrik.markers.clip import to_z_up
    from bl_ext.user_default.fabrik.markers.files.any_file import read_markers
    from support.c3d_files import C3d

    clip = to_z_up(read_markers(SAMPLES / "walk.trc"))
    places = 1000.0 * clip.positions[:120]
    away = np.isnan(places).any(axis=2)
    content = C3d(np.nan_to_num(places), np.where(away, -1.0, 0.0), clip.names, rate=clip.rate)
    path = Path(g.OUT) / "take.c3d"
    path.write_bytes(content.bytes())
    return path


def baked():
    return rig().fabrik.capture.action is not None


def show_tab(name):
    g.area().spaces.active.show_region_ui = True
    g.redraw()
    g.region(rtype="UI").active_panel_category = name


def save(name, left, rtype=""):
    """Save a picture of the viewport, or a region of it without a strip at the left."""
    whole = bpy.data.images.load(g.shot(name))
    width, height = whole.size
    colors = np.array(whole.pixels[:], dtype=np.float32).reshape(height, width, 4)
    bpy.data.images.remove(whole)
    place = g.region(rtype=rtype) if rtype else g.area()
    x = place.x + round(left * place.width), place.x + place.width
    cut = colors[place.y : place.y + place.height, slice(*x)]
    picture = bpy.data.images.new("cut", cut.shape[1], cut.shape[0])
    picture.pixels = np.ascontiguousarray(cut).ravel()
    picture.file_format, picture.filepath_raw = "PNG", str(Path(g.OUT) / name)
    picture.save()
    bpy.data.images.remove(picture)


g.run(steps, limit=480.0)
