"""Work in steps on a rig that is changed in another window at the same time."""

import bpy
import pytest
from support import scenes

from fabrik_addon.blender.ui.operators.base import Watch


@pytest.fixture
def rig(clean_scene):
    made = scenes.make_rig()
    scenes.make_active(made)
    return made


@pytest.fixture
def watch(rig):
    made = Watch(rig)
    yield made
    made.stop()


def test_work_continues_after_unrelated_changes(rig, watch):
    rig.name, rig.location = "Renamed", (1.0, 2.0, 3.0)
    scenes.empty_at((0.0, 0.0, 0.0))
    bpy.context.view_layer.update()
    assert watch.why_lost() == ""


def test_deleting_the_rig_stops_the_work(rig, watch):
    bpy.data.objects.remove(rig)
    assert watch.why_lost() == "'Rig' was deleted during processing"


def test_editing_the_rig_s_bones_stops_the_work(rig, watch):
    bpy.ops.object.mode_set(mode="EDIT")
    assert "The mode of 'Rig' changed" in watch.why_lost()


@pytest.mark.parametrize("way", ["undo", "redo"])
def test_undo_stops_the_work(rig, way):
    for message in ("before", "after"):
        bpy.ops.ed.undo_push(message=message)
    if way == "redo":
        bpy.ops.ed.undo()
    watch = Watch(bpy.data.objects["Rig"])
    getattr(bpy.ops.ed, way)()
    watch.stop()
    assert watch.why_lost() == "An undo or redo happened while 'Rig' was being processed"


def test_a_stopped_watch_leaves_no_handlers(rig):
    before = [list(handlers) for handlers in (bpy.app.handlers.undo_post, bpy.app.handlers.redo_post)]
    watch = Watch(rig)
    watch.stop()
    assert [list(handlers) for handlers in (bpy.app.handlers.undo_post, bpy.app.handlers.redo_post)] == before
