"""Objects by name, if one of this file and a linked one have the same name."""

from types import SimpleNamespace

import bpy
import pytest
from support import limited, scenes
from support.layouts import Layout

from fabrik_addon.blender.goals.effectors import check_followed
from fabrik_addon.blender.ui.operators.motion import FABRIK_OT_add_hold

pytestmark = pytest.mark.usefixtures("clean_scene")

BOTH_ORDERS = pytest.mark.parametrize("linked_first", [True, False], ids=["linked-first", "own-first"])


@pytest.fixture
def twins(tmp_path):
    """A function that creates a data-block and links another one with its name from a file."""

    def make(thing, *, linked_first):
        name, path = thing().name, tmp_path / "library.blend"
        bpy.ops.wm.save_as_mainfile(filepath=str(path))
        if linked_first:
            linked = limited.bring(path, name, link=True)
            return thing(), linked
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        own = thing()
        with bpy.data.libraries.load(str(path), link=True) as (_, wanted):
            wanted.objects = [name]
        (linked,) = wanted.objects
        bpy.context.scene.collection.objects.link(linked)
        return own, linked

    return make


@BOTH_ORDERS
def test_targets_of_equal_names_are_accepted(twins, linked_first):
    both = twins(lambda: scenes.empty_at((0, 0, 1)), linked_first=linked_first)
    assert len({thing.name for thing in both}) == 1
    rig = scenes.make_rig()
    for target in both:
        rig.fabrik.effectors.clear()
        scenes.aim(rig, "head", target)
        check_followed(bpy.context.scene, rig)
        rig.fabrik.capture.markers.clear()
        marker = rig.fabrik.capture.markers.add()
        marker.bone, marker.target = "head", target
        check_followed(bpy.context.scene, rig, "MARKERS")


@BOTH_ORDERS
def test_a_name_means_the_local_object(twins, linked_first):
    own, _ = twins(lambda: scenes.empty_at((0, 0, 1)), linked_first=linked_first)
    scenes.make_active(scenes.make_rig())
    bpy.ops.fabrik.add_effector(bone="head", target=own.name)
    assert bpy.context.object.fabrik.effectors[0].target == own


@BOTH_ORDERS
def test_a_marker_armature_is_the_local_one(twins, linked_first):
    own, _ = twins(lambda: scenes.make_rig(name="Markers"), linked_first=linked_first)
    rig = scenes.make_rig()
    scenes.make_active(rig)
    bpy.ops.fabrik.match_markers(take="Markers")
    assert rig.fabrik.capture.take_armature == own


@BOTH_ORDERS
def test_a_source_is_the_local_object(twins, linked_first):
    own, _ = twins(lambda: scenes.make_rig(name="Walker"), linked_first=linked_first)
    own.keyframe_insert("location", frame=3)
    own.keyframe_insert("location", frame=7)
    scenes.make_active(scenes.make_rig())
    assert bpy.ops.fabrik.retarget(source="Walker") == {"FINISHED"}
    assert "5 frames of 'Walker'" in bpy.context.object.fabrik.capture.last_result


@BOTH_ORDERS
def test_a_hold_s_dialogue_asks_for_a_bone_where_the_own_object_has_some(twins, linked_first):
    kinds = iter((scenes.make_rig, lambda name: scenes.empty_at((0, 0, 1), name)))
    own, linked = twins(lambda: next(kinds)(name="Prop"), linked_first=linked_first)
    assert (own.type, linked.type) == ("EMPTY", "ARMATURE")
    about = bpy.ops.fabrik.add_hold.get_rna_type()
    dialogue = SimpleNamespace(layout=Layout(), bl_rna=about, target="Prop")
    FABRIK_OT_add_hold.draw(dialogue, bpy.context)
    assert about.properties["target"].name in dialogue.layout.texts()
    assert about.properties["target_bone"].name not in dialogue.layout.texts()
