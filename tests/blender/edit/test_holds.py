"""Holds: a bone stays where it is from one frame to another, eased in and out, and can be let go."""

import bpy
import numpy as np
import pytest
from support import scenes, takes
from support.dragging import farthest_outside
from support.takes import go_to

from fabrik_addon.blender.edit.contacts import find_contacts
from fabrik_addon.blender.edit.take import Take, tree_of

FRAMES = np.arange(1, 102)
FIRST, LAST, EASE = 40, 60, 12
HELD = (FRAMES >= FIRST) & (FRAMES <= LAST)
OUTSIDE = (FRAMES <= FIRST - EASE) | (FRAMES >= LAST + EASE)

pytestmark = pytest.mark.usefixtures("clean_scene")


@pytest.fixture
def walk():
    rig = takes.walking_human()
    go_to(50)
    return rig


def hold(**options):
    assert bpy.ops.fabrik.add_hold(first=FIRST, last=LAST, ease=EASE, **options) == {"FINISHED"}


def tails(rig, bone):
    place = rig.pose.bones.find(bone)
    posed = takes.poses(rig, FRAMES)[:, place]
    return (posed @ (0.0, rig.pose.bones[bone].length, 0.0, 1.0))[:, :3], posed[:, :3, :3]


def test_a_hand_stays_where_it_is_here_and_nothing_changes_beyond(walk):
    before, turned = tails(walk, "hand.R")
    was = takes.poses(walk, FRAMES)
    hold(bone="hand.R")
    after, turns = tails(walk, "hand.R")
    assert np.abs(after[HELD] - before[49]).max() < 1e-4
    assert np.abs(turns[HELD] - turned[49]).max() < 1e-3
    now = takes.poses(walk, FRAMES)
    assert np.array_equal(now[OUTSIDE], was[OUTSIDE])
    feet = [walk.pose.bones.find(bone) for bone in ("foot.L", "foot.R")]
    assert np.abs(now - was)[:, feet].max() < 1e-4
    assert takes.accelerations(now[..., :3, 3]).max() < 1.5 * takes.accelerations(was[..., :3, 3]).max()
    go_to(45)
    assert farthest_outside(walk, but=("toe.L", "toe.R")) < 1e-4


def moving_table(way):
    table = scenes.empty_at((0, 0, 0), "Table")
    for frame, x in ((1, 0.0), (101, way)):
        table.location.x = x
        table.keyframe_insert("location", frame=frame)
    return table


def test_it_stays_with_an_object_that_moves(walk):
    table = moving_table(0.2)
    before, _ = tails(walk, "hand.R")
    hold(bone="hand.R", target="Table")
    after, _ = tails(walk, "hand.R")
    moved = []
    for frame in FRAMES:
        go_to(int(frame))
        moved.append(np.array(table.matrix_world.translation))
    there = np.array(moved) - moved[49]
    assert np.abs(after - before[49] - there)[HELD].max() < 1e-4
    assert np.abs(there[HELD]).max() > 0.01


def test_what_can_not_be_kept_is_said(walk, capfd):
    """In the held frames the table goes farther than an arm is long."""
    hold(bone="hand.L")
    assert "could not follow" not in capfd.readouterr().out
    moving_table(8.0)
    hold(bone="hand.R", target="Table")
    assert "'hand.R' could not follow" in capfd.readouterr().out


def test_removing_gives_the_motion_back(walk):
    keys = takes.curves(walk)
    hold(bone="hand.R")
    assert [each.name for each in walk.fabrik.holds] == ["hand.R 40-60"]
    bpy.ops.fabrik.remove_hold(index=0)
    assert not len(walk.fabrik.holds)
    assert max(np.abs(now - keys[path]).max() for path, now in takes.curves(walk).items()) < 1e-6


def test_what_is_held_stays_while_other_bones_are_dragged(walk):
    hold(bone="hand.R", hold_rotation=False)
    before, _ = tails(walk, "hand.R")
    bpy.ops.fabrik.drag(bone="chest", translation=(0.0, 0.03, 0.0), spread=15)
    after, _ = tails(walk, "hand.R")
    assert np.abs(after - before).max() < 1e-4


def test_feet_that_stand_become_holds(walk):
    take = Take(walk, tree_of(walk, "hips"))
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 101
    contacts = find_contacts(scene, walk, take, FRAMES.astype(float))
    assert {contact.bone for contact in contacts} == {"foot.L", "foot.R"}
    bpy.ops.fabrik.hold_contacts()
    assert len(walk.fabrik.holds) == len(contacts)
    for contact in contacts:
        rows = slice(int(contact.first) - 1, int(contact.last))
        ankle = takes.poses(walk, FRAMES)[rows, walk.pose.bones.find(contact.bone), :3, 3]
        assert np.abs(ankle - ankle[0]).max() < 5e-3


def test_feet_are_held_whatever_else_the_rig_has(walk):
    """A bone of its own before the body's in the armature, without keys."""
    animation = walk.animation_data
    action, slot, world = animation.action, animation.action_slot, walk.matrix_world.copy()
    rig = scenes.make_rig((("prop", "", (1, 0, 0), (1, 0, 1)),), "Whole")
    rig.matrix_world = world
    walk.select_set(True)
    rig.select_set(True)
    bpy.ops.object.join()
    assert rig.data.bones[0].name == "prop"
    rig.animation_data_create().action = action
    rig.animation_data.action_slot = slot
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 101
    bpy.ops.fabrik.hold_contacts()
    assert {hold.bone for hold in rig.fabrik.holds} == {"foot.L", "foot.R"}


@pytest.mark.parametrize(
    "options",
    [{"bone": "tail"}, {"bone": "hand.R", "target": "Nowhere"}, {"bone": "hand.R", "first": 60, "last": 40}],
)
def test_what_makes_no_sense_changes_nothing(walk, options):
    before = scenes.digest()
    with pytest.raises(RuntimeError):
        bpy.ops.fabrik.add_hold(**{"first": FIRST, "last": LAST, **options})
    assert scenes.digest() == before
