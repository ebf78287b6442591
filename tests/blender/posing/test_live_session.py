"""Sessions of live rigs are kept between updates, and replaced if their input has changed."""

import bpy
import numpy as np
import pytest
from support import scenes
from support.limited import write_limit

from fabrik_addon.blender.goals.body import floor_of, masses_of
from fabrik_addon.blender.goals.problem import find_problems
from fabrik_addon.blender.posing.solve import LiveSession
from fabrik_addon.blender.settings.limit_properties import NAMES
from fabrik_addon.core import Ball, FabrikError, Hinge

pytestmark = pytest.mark.usefixtures("clean_scene")

ARM = ("upper_arm.L", "forearm.L")


@pytest.fixture
def rig():
    """A posed person with a free root: a target for a hand, the other hand pinned, and a leg without a goal."""
    made = scenes.make_rig(mode="MIXED")
    scenes.pose(made, scenes.smooth_motion(made, 1, 5)[0][0], (0.1, 0.0, 0.05))
    scenes.aim(made, "forearm.L", scenes.empty_at((0.4, -0.3, 1.2)))
    scenes.aim(made, "forearm.R", None, pin_location=(-0.6, 0.0, 1.3))
    write_limit(made.pose.bones["upper_arm.L"], Ball((1.0, 1.0, 1.0, 1.0)))
    write_limit(made.pose.bones["forearm.L"], Hinge("X", -0.1, 2.0))
    made.pose.bones["upper_arm.L"]["fabrik_slide"] = [0.5, 1.5]
    made.data.bones["forearm.L"].inherit_scale = "NONE"
    made.pose.bones["head"].lock_rotation = (True, True, True)
    made.pose.bones["forearm.R"].lock_rotation = (False, True, True)
    made.pose.bones["forearm.R"].rotation_euler = (0.3, 0.0, 0.0)
    made.pose.bones["shin.R"].constraints.new("COPY_ROTATION").target = made
    made.data.collections.new("all").assign(made.data.bones["spine"])
    return scenes.make_active(made) or made


def gathered(rig):
    """The goals of a rig's only tree, and the input of their session; None without goals."""
    try:
        (goals,) = [each.pins_first() for each in find_problems(rig)]
        return goals, _values(rig, goals)
    except FabrikError:
        return None


def _values(rig, goals):
    skeleton, masses = goals.tree.skeleton, masses_of(rig, goals.tree.skeleton)
    heads = skeleton.rest[:, :3, 3] - skeleton.rest[0, :3, 3]
    return (
        (goals.effectors, dict(goals.limits), list(goals.held), goals.free_root, goals.pinned, goals.bone_names),
        (skeleton.names, skeleton.parents.tolist(), skeleton.inherits_rotation.tolist()),
        (masses.shares.tolist(), masses.centers.tolist(), masses.factors.tolist()),
        [np.round(array, 9).tolist() for array in (skeleton.rest[:, :3, :3], heads, skeleton.lengths)],
        (rig.fabrik.use_floor and floor_of(rig), rig.fabrik.balance, rig.fabrik.bake.self_collision),
    )


class Begun:
    """A session of a rig in its current state, and its input."""

    def __init__(self, rig):
        goals, self.said = gathered(rig)
        self.session = LiveSession(goals, (goals.tree.rotations, goals.tree.root_location))

    def is_right(self, rig):
        """Whether a session is discarded exactly if its input has changed."""
        now = gathered(rig)
        return now is None or self.said == now[1] or not self.session.fits(now[0])


def other(value, prop):
    """Another value of a property."""
    if prop.type == "BOOLEAN":
        return np.logical_not(value).tolist()
    if prop.type == "ENUM":
        return next(item.identifier for item in prop.enum_items if item.identifier != value)
    if prop.type == "STRING":
        return "spine"
    return (np.array(value) + (1 if prop.type == "INT" else 0.1)).tolist()


def properties(thing):
    """The settable properties of an object, except those that handlers watch; matrices follow from other properties."""
    for prop in thing.bl_rna.properties:
        is_of_values = prop.type in {"BOOLEAN", "INT", "FLOAT", "STRING"} or (
            prop.type == "ENUM" and not prop.is_enum_flag and len(prop.enum_items) > 1
        )
        is_matrix = getattr(prop, "is_array", False) and prop.array_dimensions[1] > 0
        if is_of_values and not is_matrix and not prop.is_readonly and prop.identifier != "live":
            yield prop


THINGS = {
    "bone": lambda rig: rig.data.bones["upper_arm.L"],
    "pose bone": lambda rig: rig.pose.bones["upper_arm.L"],
    "held pose bone": lambda rig: rig.pose.bones["head"],
    "bone that another stretches": lambda rig: rig.data.bones["forearm.L"],
    "locked pose bone": lambda rig: rig.pose.bones["forearm.R"],
    "root's pose bone": lambda rig: rig.pose.bones["hips"],
    "constraint": lambda rig: rig.pose.bones["shin.R"].constraints[0],
    "collection": lambda rig: rig.data.collections[0],
    "object": lambda rig: rig,
    "armature": lambda rig: rig.data,
    "settings": lambda rig: rig.fabrik,
    "target": lambda rig: rig.fabrik.effectors[0],
    "pin": lambda rig: rig.fabrik.effectors[1],
    "what is reached": lambda rig: rig.fabrik.effectors[0].target,
}


@pytest.mark.parametrize("what", THINGS)
def test_changes_of_every_setting_are_noticed(rig, what):
    """Each property that Blender shows for a session's input, one after the other."""
    kept, thing = Begun(rig), THINGS[what](rig)
    changed = 0
    for prop in properties(thing):
        name = prop.identifier
        before = getattr(thing, name)
        before = np.array(before).tolist() if getattr(prop, "is_array", False) else before
        try:
            setattr(thing, name, other(before, prop))
        except (AttributeError, TypeError, ValueError):
            continue
        assert kept.is_right(rig), (what, name)
        setattr(thing, name, before)
        changed += 1
    assert changed > 1
    assert kept.is_right(rig)


@pytest.mark.parametrize("name", NAMES.values())
def test_changes_of_custom_properties_are_noticed(rig, name):
    kept, bone = Begun(rig), rig.pose.bones["forearm.L"]
    for value in ("BALL", "X", 0.5, [0.5, 0.9], [0.5, 0.9, 0.1, 0.2, 0.3, 0.4]):
        bone.pop(name, None)
        assert kept.is_right(rig)
        bone[name] = value
        assert kept.is_right(rig)


def in_edit_mode(change):
    """A change of bones at rest."""

    def done(rig):
        bpy.ops.object.mode_set(mode="EDIT")
        change(rig.data.edit_bones)
        bpy.ops.object.mode_set(mode="POSE")

    return done


CHANGES = {
    "Edit mode": lambda _rig: bpy.ops.object.mode_set(mode="EDIT"),
    "a bone that is moved": in_edit_mode(lambda bones: setattr(bones["forearm.L"], "tail", (0.8, 0.1, 1.4))),
    "a bone that is rolled": in_edit_mode(lambda bones: setattr(bones["forearm.L"], "roll", 1.0)),
    "another parent": in_edit_mode(lambda bones: setattr(bones["upper_arm.L"], "parent", bones["hips"])),
    "a new bone": in_edit_mode(lambda bones: setattr(bones.new("new"), "tail", (0.0, 0.0, 1.0))),
    "a bone that goes": in_edit_mode(lambda bones: bones.remove(bones["shin.L"])),
    "a bone by another name": lambda rig: setattr(rig.data.bones["thigh.L"], "name", "leg"),
    "a constraint": lambda rig: setattr(rig.pose.bones["spine"].constraints.new("COPY_ROTATION"), "target", rig),
    "a driver": lambda rig: rig.pose.bones["spine"].driver_add("rotation_quaternion"),
    "a target on a bone": lambda rig: carry(rig, "shin.L"),
    "a target on its own bone": lambda rig: carry(rig, "forearm.L"),
    "a target on the other arm": lambda rig: carry(rig, "forearm.R"),
    "another effector": lambda rig: scenes.aim(rig, "head", scenes.empty_at((0.0, 0.0, 1.8), "Other")),
    "one effector less": lambda rig: rig.fabrik.effectors.remove(1),
    "another order": lambda rig: rig.fabrik.effectors.move(0, 1),
    "something to bend toward": lambda rig: setattr(
        rig.fabrik.effectors[0], "bend_target", rig.fabrik.effectors[0].target
    ),
    "another target": lambda rig: setattr(rig.fabrik.effectors[0], "target", scenes.empty_at((0.1, 0.0, 1.0), "Other")),
    "the rig stretched": lambda rig: setattr(rig, "scale", (1.0, 1.0, 2.0)),
    "the rig elsewhere": lambda rig: scenes.place(rig, scale=2.0),
    "another pose": lambda rig: scenes.pose(rig, scenes.smooth_motion(rig, 1, 9)[0][0], (0.3, 0.2, 0.1)),
}


def carry(rig, bone):
    """Let a bone of the rig carry the target."""
    ball = rig.fabrik.effectors[0].target
    ball.parent, ball.parent_type, ball.parent_bone = rig, "BONE", bone


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes_beyond_properties_are_noticed(rig, change):
    kept = Begun(rig)
    change(rig)
    bpy.context.view_layer.update()
    assert kept.is_right(rig)


def test_the_location_of_a_pinned_root_is_noticed(rig):
    kept = Begun(rig)
    rig.fabrik.root = "FIXED"
    assert kept.is_right(rig)
    rig.pose.bones["hips"].location.x += 0.1
    assert kept.is_right(rig)


def test_posing_changes_nothing_else(rig):
    """The session continues."""
    kept = Begun(rig)
    rig.pose.bones["forearm.L"].rotation_euler.x += 0.4
    rig.pose.bones["hips"].location = (0.2, 0.1, 0.0)
    rig.fabrik.effectors[0].target.location.z += 0.1
    goals, _ = gathered(rig)
    assert kept.session.fits(goals)
