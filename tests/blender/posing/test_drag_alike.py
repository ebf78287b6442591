"""The same drag of the sample person gives the same poses for any placement in the scene and any owner of the data."""

from math import radians
from pathlib import Path

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Vector
from support import limited
from support.dragging import active

from fabrik_addon.blender.goals.effectors import pin_bones
from fabrik_addon.blender.posing.drag import begin_drag
from fabrik_addon.blender.rig.armature import read_trees
from fabrik_addon.core.rotations import angle_between

pytestmark = pytest.mark.one_blender

HUMAN = Path(__file__).parents[3] / "sample_rigs" / "human.blend"
SHIFTS = np.linspace(0.0, 1.0, 13)[1:, None] * np.array((0.1, -0.25, -0.45))
# Radians: the allowed difference, since locations and channels have single precision.
ALIKE = 1e-5


def dragged(rig):
    """(N, J, 4) local rotations during a drag of the head with both feet pinned, in proportion to the rig's size."""
    rig = active(rig)
    pin_bones(rig, ("foot.L", "foot.R"))
    drag, poses = begin_drag(bpy.context, rig, "head"), []
    for shift in SHIFTS:
        drag.step(drag.start + np.array(rig.matrix_world.to_3x3() @ Vector(shift)))
        bpy.context.view_layer.update()
        poses.append(read_trees(rig)[0].rotations)
    return np.array(poses)


def opened():
    bpy.ops.wm.open_mainfile(filepath=str(HUMAN))
    return bpy.data.objects["Rig"]


@pytest.fixture(scope="module")
def plain():
    """The drag in the unchanged sample file."""
    return dragged(opened())


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_a_drag_does_not_depend_on_the_object_transform(plain, clean_scene, scale):
    rig = opened()
    rig.matrix_world = (
        Matrix.Translation((3.0, -2.0, 1.0)) @ Matrix.Rotation(radians(70.0), 4, "Z") @ Matrix.Scale(scale, 4)
    )
    bpy.context.view_layer.update()
    assert angle_between(plain, dragged(rig)).max() < ALIKE


def test_an_override_of_a_linked_rig(clean_scene):
    """Without the mesh, which is not linked with the rig: capsules are fitted to it."""
    poses = []
    for make in (opened, lambda: limited.override(HUMAN, "Rig")):
        rig = make()
        rig.fabrik.bake.self_collision = "OFF"
        poses.append(dragged(rig))
    assert angle_between(*poses).max() < ALIKE
