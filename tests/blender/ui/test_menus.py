"""Menus, which Blender's search also uses: their entries."""

from types import SimpleNamespace

import bpy
import pytest
from support import scenes
from support.layouts import Layout

from fabrik_addon.blender.ui import entries

pytestmark = pytest.mark.usefixtures("clean_scene")


def listed(draw):
    menu = SimpleNamespace(layout=Layout())
    draw(menu, bpy.context)
    return menu.layout.texts()


def test_operators_can_be_found_in_the_menu():
    rig = scenes.make_rig()
    scenes.make_active(rig)
    assert {"Enter Pose Mode", "Apply Human Limits", "Import Mocap Markers", "Bake to Keyframes"} <= set(
        listed(entries.FABRIK_MT_menu.draw)
    )
    bpy.ops.object.mode_set(mode="POSE")
    found = listed(entries.FABRIK_MT_menu.draw)
    assert found[:3] == ["Drag Bone", "Pin Bones", "Add Target"]
    assert {"Retarget Animation", "Add Hold", "Hold Planted Feet", "Update Trails"} <= set(found)
    assert len(set(found)) == len(found)


def test_the_menu_is_shown_only_with_a_rig():
    for menu, draw in entries.ENTRIES[:3]:
        assert draw in vars(getattr(bpy.types, menu).draw)["_draw_funcs"]
        assert listed(draw) == []
    scenes.make_active(scenes.make_rig())
    assert listed(entries.ENTRIES[0][1]) == ["FABRIK"]


def test_files_are_imported_from_the_file_menu():
    assert listed(entries.ENTRIES[3][1]) == ["Motion Capture (.trc, .c3d, .csv, .npy, .npz, .mvnx, .bvh)"]
