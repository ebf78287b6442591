"""Menus, in which Blender's search looks as well: what is in them, and where."""

import bpy
import pytest
from support import scenes

from fabrik_addon.blender.ui import menus

pytestmark = pytest.mark.usefixtures("clean_scene")


class Listed:
    """Stands in for a menu's layout, which there is none of without a window: notes what is put into it."""

    def __init__(self):
        self.layout, self.found = self, []

    def operator(self, name, text=""):
        group, operator = name.split(".")
        kind = getattr(getattr(bpy.ops, group), operator).get_rna_type()
        self.found.append(text or kind.name)

    def menu(self, name):
        self.found.append(getattr(bpy.types, name).bl_label)

    def separator(self):
        pass


def listed(draw):
    listing = Listed()
    draw(listing, bpy.context)
    return listing.found


def test_what_people_search_for_is_in_the_menu():
    rig = scenes.make_rig()
    scenes.make_active(rig)
    assert {"Pose Mode", "Human Preset", "Import Markers", "Bake"} <= set(listed(menus.FABRIK_MT_menu.draw))
    bpy.ops.object.mode_set(mode="POSE")
    found = listed(menus.FABRIK_MT_menu.draw)
    assert found[:3] == ["Drag", "Pin", "Add Effector"]
    assert len(set(found)) == len(found)


def test_the_menu_is_where_there_is_a_rig():
    for menu, draw in menus.ENTRIES[:3]:
        assert draw in vars(getattr(bpy.types, menu).draw)["_draw_funcs"]
        assert listed(draw) == []
    scenes.make_active(scenes.make_rig())
    assert listed(menus.ENTRIES[0][1]) == ["FABRIK"]


def test_files_are_imported_from_the_file_menu():
    assert listed(menus.ENTRIES[-1][1]) == ["Motion-capture Markers (.trc, .c3d)"]
