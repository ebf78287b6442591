"""Live posing of a generated Rigify human: five goals, through its controls."""

import bpy
import numpy as np
import pytest
from mathutils import Vector
from support import scenes
from support.rigify import open_rigify

pytestmark = pytest.mark.usefixtures("clean_scene")

GOALS = {"hand_ik.L": (0.1, -0.3, 0.2), "hand_ik.R": (-0.1, -0.2, 0.1), "head": (0.0, -0.05, -0.02)}
FEET = ("foot_ik.L", "foot_ik.R")


def test_five_goals_live():
    rig = open_rigify("Basic.basic_human")
    bpy.ops.fabrik.use_control_rig()
    kept = rig.fabrik.control
    bones = {name: rig.pose.bones[kept.controls[name].stands_for] for name in (*GOALS, *FEET)}
    bpy.ops.fabrik.pin(bones=",".join(FEET))
    feet = {name: np.array(bones[name].matrix) for name in FEET}
    targets = {name: scenes.empty_at(bones[name].tail, name) for name in GOALS}
    bpy.context.view_layer.objects.active = rig
    for name, target in targets.items():
        bpy.ops.fabrik.add_effector(bone=name, target=target.name)
    rig.fabrik.live = True
    bpy.context.view_layer.update()
    for share in (0.25, 0.5, 0.75, 1.0):
        for name, target in targets.items():
            target.location += 0.25 * Vector(GOALS[name])
        bpy.context.view_layer.update()
        bpy.context.view_layer.update()
        for name, target in targets.items():
            assert np.array(bones[name].tail) == pytest.approx(np.array(target.location), abs=5e-4), (share, name)
        for name, place in feet.items():
            assert np.array(bones[name].matrix) == pytest.approx(place, abs=1e-4), (share, name)
    assert all(rig.path_resolve(row.name) == row.ik for row in kept.switches)
    rig.fabrik.live = False
