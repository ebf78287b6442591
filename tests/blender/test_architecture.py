"""The ways through the source that `docs/architecture.md` leads are those that Blender takes: every stop is called."""

import re
import sys
from pathlib import Path

import bpy
import pytest
from support import limited, scenes
from support.dragging import person
from support.viewports import ESC, mouse, pressing

ROOT = Path(__file__).parents[2]
ADDON = f"{ROOT / 'fabrik_addon'}/"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
# Stops of other ways: of a command line, a control rig, Blender's start, a drop of a file.
ELSEWHERE = {
    "blender/bake/command_line.py:main",
    "blender/control/writer.py:ControlWriter.write",
    "blender/ui/keymap.py:start",
    "blender/posing/live.py:start",
    "blender/ui/file_handler.py:FABRIK_FH_markers",
    "markers/files/c3d.py:parse_c3d",
}

pytestmark = [
    pytest.mark.usefixtures("clean_scene"),
    pytest.mark.skipif("config.option.extension_zip", reason="the page is about the checkout"),
]


def stops(heading):
    """What a chapter of the page names, in its order; a class stands for any of its methods."""
    chapter = re.search(rf"## {heading}.*?(?=\n## |\Z)", PAGE, re.DOTALL)[0]
    return list(dict.fromkeys(re.findall(r"`([\w/]+\.py:[\w.]+)`", chapter)))


class Walk:
    """Notes which functions of the add-on are called."""

    def __init__(self):
        self.called = set()

    def __enter__(self):
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _note(self, frame, event, _argument):
        if event == "call" and frame.f_code.co_filename.startswith(ADDON):
            self.called.add(f"{frame.f_code.co_filename.removeprefix(ADDON)}:{frame.f_code.co_qualname}")

    def missed(self, heading):
        """The stops of a chapter that were not called."""
        return [
            stop
            for stop in stops(heading)
            if stop not in ELSEWHERE and not any(call == stop or call.startswith(f"{stop}.") for call in self.called)
        ]


def test_a_drag():
    rig = person()
    limited.select(rig, ["forearm.L"], active="forearm.L")
    with pressing() as press, Walk() as walk:
        for last in (mouse("RET", 0, 0), ESC):
            drag = press()[-1]
            drag.modal(bpy.context, mouse("MOUSEMOVE", 40, 60))
            drag.modal(bpy.context, last)
        scenes.aim(rig, "forearm.L", scenes.empty_at((0.4, -0.3, 1.2)))
        bpy.ops.fabrik.solve()
        rig.fabrik.live = True
        bpy.context.view_layer.update()
        rig.fabrik.live = False
    assert walk.missed("A drag") == []


def test_a_marker_file_and_a_bake():
    bpy.ops.wm.open_mainfile(filepath=str(ROOT / "sample_rigs" / "human.blend"))
    rig = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    scenes.make_active(rig)
    with Walk() as walk:
        bpy.ops.fabrik.import_markers(filepath=str(ROOT / "sample_rigs" / "walk.trc"), last=6)
        bpy.ops.fabrik.match_markers()
        bpy.ops.fabrik.calibrate_markers(refine=False)
        bpy.ops.fabrik.bake(plant_feet=True)
        scenes.aim(rig, "hand.L", scenes.empty_at((0.4, -0.3, 1.2)))
        bpy.ops.fabrik.bake(source="EFFECTORS", frame_start=1, frame_end=2)
    assert walk.missed("A marker file") == walk.missed("A bake") == []


def test_a_limit():
    rig = person()
    limited.select(rig, ["forearm.L"], active="forearm.L")
    scenes.aim(rig, "forearm.L", scenes.empty_at((0.4, -0.3, 1.2)))
    with Walk() as walk:
        bpy.ops.fabrik.set_limit(type="HINGE", low=0.0, high=1.0)
        bpy.ops.fabrik.solve()
    assert walk.missed("A limit") == []
