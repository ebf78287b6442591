"""Files that are dropped: the suggested armature, and one import that goes on to keys or changes nothing."""

import bpy
import pytest
from support.formats import FORMATS, write_format
from support.takes import active_human

from fabrik_addon.blender.rig.keyframes import curves


def keyed_frames(rig):
    return {len(curve.keyframe_points) for curve in curves(rig)}


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_goes_from_the_import_to_keys(tmp_path, name):
    rig = active_human()
    before = (bpy.context.object, rig.mode, bpy.context.scene.frame_current, set(bpy.context.selected_objects))
    path = write_format(tmp_path, name)
    assert bpy.ops.fabrik.import_markers(filepath=str(path), rig="Rig") == {"FINISHED"}
    assert keyed_frames(rig) == {30}
    assert (bpy.context.object, rig.mode, bpy.context.scene.frame_current, set(bpy.context.selected_objects)) == before
