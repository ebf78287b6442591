"""A rig's support and its floor, checked by the sample person's skin and by world positions."""

from pathlib import Path

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix, Vector
from support import scenes

from benchmarks.natural_rigs import open_metarig
from fabrik_addon.blender.goals.body import floor_of, support_of
from fabrik_addon.human.rest_body import convex_hull

FEET = ("foot.L", "foot.R")
HUMAN = Path(__file__).parents[3] / "sample_rigs" / "human.blend"


@pytest.fixture
def human(clean_scene):
    bpy.ops.wm.open_mainfile(filepath=str(HUMAN))
    return bpy.data.objects["Rig"]


def in_world(rig, points):
    world = np.array(rig.matrix_world)
    return np.asarray(points) @ world[:3, :3].T + world[:3, 3]


def skin(rig):
    """(N, 3) the corners of the mesh in world space, as it is posed."""
    (mesh,) = [child for child in rig.children if child.type == "MESH"]
    posed = mesh.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return np.array([(posed.matrix_world @ vertex.co)[:] for vertex in posed.data.vertices])


def area(corners):
    """Area of an outline (N, 3) seen from above; positive if it is counter-clockwise."""
    x, y = corners[:, 0], corners[:, 1]
    return 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))


class TestSupport:
    def test_the_support_of_both_feet_has_the_size_of_their_skin(self, human):
        sole = skin(human)
        sole = sole[sole[:, 2] < 0.06]
        corners = in_world(human, support_of(human, FEET).corners)
        assert np.allclose(corners.min(axis=0)[:2], sole.min(axis=0)[:2], atol=0.015)
        assert np.allclose(corners.max(axis=0)[:2], sole.max(axis=0)[:2], atol=0.015)
        assert np.allclose(corners[:, 2], 0.0, atol=1e-6)
        assert area(corners) > 0.0

    def test_the_sole_of_one_foot_is_the_support(self, human):
        one, both = (support_of(human, pinned).corners for pinned in (FEET[:1], FEET))
        assert 0.01 < area(one) < 0.3 * area(both)
        assert one[:, 0].min() > 0.0

    def test_a_pinned_toe_counts_as_its_foot(self, human):
        assert np.allclose(support_of(human, ("toe.L",)).corners, support_of(human, ("foot.L",)).corners)

    def test_the_support_is_at_the_pins_of_feet_that_were_posed_away(self, human):
        bpy.context.view_layer.objects.active = human
        bpy.ops.fabrik.pin(bones=",".join(FEET))
        before = support_of(human, FEET).corners
        human.pose.bones["hips"].location = (0.3, 0.2, 0.1)
        human.pose.bones["thigh.L"].rotation_quaternion = (0.9, 0.3, 0.2, 0.1)
        bpy.context.view_layer.update()
        assert np.allclose(support_of(human, FEET).corners, before, atol=1e-5)

    def test_the_outline_moves_with_a_lifted_foot(self, human):
        human.pose.bones["thigh.L"].rotation_mode = "XYZ"
        human.pose.bones["thigh.L"].rotation_euler = (-0.6, 0.0, 0.0)
        before = support_of(human, FEET).corners
        bpy.context.view_layer.update()
        after = support_of(human, FEET).corners
        assert after[:, 1].min() < before[:, 1].min() - 0.3
        assert after[:, 1].max() == pytest.approx(before[:, 1].max(), abs=1e-6)

    def test_no_support_without_pinned_feet_or_balance(self, human):
        assert support_of(human, ()) is None
        assert support_of(human, ("hand.L",)) is None
        human.fabrik.balance = "OFF"
        assert support_of(human, FEET) is None

    def test_pins_as_low_as_the_feet_bear_weight_too(self, human):
        """The front paws of an animal, which are named as no human's bones; a human's hand on the floor."""
        assert support_of(human, (*FEET, "hand.L")) is None, "a hand higher up holds the body, which may lean"
        bpy.context.view_layer.objects.active = human
        bpy.ops.fabrik.pin(bones=",".join(FEET))
        down = scenes.Vector((0.3, -0.45, 0.05)) - human.pose.bones["hand.L"].tail
        bpy.ops.fabrik.drag(bone="hand.L", translation=down)
        feet = support_of(human, FEET).corners
        tail = np.array(human.pose.bones["hand.L"].tail)
        on_three = support_of(human, (*FEET, "hand.L")).corners
        assert np.linalg.norm(on_three[:, :2] - tail[:2], axis=1).min() < 1e-5
        assert area(on_three) > 1.5 * area(feet)

    def test_any_rig_balances_over_its_pins(self, clean_scene):
        posts = [
            (f"post{n}", "", (x, y, 1.0), (x, y, 0.0)) for n, (x, y) in enumerate([(0, 0), (2, 0), (2, 1), (0, 1)])
        ]
        table = scenes.make_rig(posts, "Table")
        names = [name for name, *_ in posts]
        assert support_of(table, names) is None
        table.fabrik.balance = "ON"
        assert area(support_of(table, names).corners) == pytest.approx(2.0)
        assert support_of(table, names[:2]) is None

    def test_up_is_the_worlds_z_axis(self, human):
        human.matrix_world = Matrix.LocRotScale((3.0, -2.0, 5.0), Euler((0.4, -0.3, 1.0)), (2.0, 2.0, 2.0))
        bpy.context.view_layer.update()
        support = support_of(human, FEET)
        up = human.matrix_world.to_3x3() @ scenes.Vector(support.up)
        assert np.allclose(up.normalized(), (0.0, 0.0, 1.0), atol=1e-6)
        corners = in_world(human, support.corners)
        assert np.ptp(corners[:, 2]) < 1e-5


class TestFloor:
    def test_there_is_no_floor_unless_it_is_on(self, human):
        assert floor_of(human) is None

    @pytest.mark.parametrize("scale", [1.0, 0.5])
    def test_a_height_in_the_world_is_met(self, human, scale):
        human.fabrik.use_floor, human.fabrik.floor_height = True, 0.25
        human.matrix_world = Matrix.LocRotScale((3.0, -2.0, 5.0), Euler((0.4, -0.3, 1.0)), (scale,) * 3)
        bpy.context.view_layer.update()
        floor = floor_of(human)
        on_it = np.array(floor.normal) * floor.height
        assert in_world(human, on_it[None])[0, 2] == pytest.approx(0.25, abs=1e-5)
        assert np.linalg.norm(floor.normal) == pytest.approx(1.0)

    def test_soles_hands_and_knees_are_kept_above_the_floor(self, human):
        human.fabrik.use_floor = True
        points = floor_of(human).points
        assert {name for name, _ in points} >= {"foot.L", "foot.R", "hand.L", "hand.R", "shin.L", "shin.R"}
        places = [human.data.bones[name].matrix_local @ scenes.Vector(place) for name, place in points]
        assert min(place.z for place in places) == pytest.approx(0.0, abs=1e-6)

    def test_rigs_that_are_not_human_have_no_points(self, clean_scene):
        table = scenes.make_rig([("board", "", (0, 0, 1), (0, 0, 0))], "Table")
        table.fabrik.use_floor = True
        assert floor_of(table).points == ()


def test_the_heel_bones_of_a_rig_are_between_its_floor_points(clean_scene):
    """Fixed: the guessed heel was half as wide as Rigify's, so feet sank 15 mm into the floor."""
    rig = open_metarig()
    rig.fabrik.use_floor = True
    bones = rig.data.bones
    own = [each for each in floor_of(rig).points if each[0] in {"foot.L", "toe.L"}]
    of_foot = [(bones[name].matrix_local @ Vector(at)).xy[:] for name, at in own]
    heel = bones["heel.02.L"]
    outline = convex_hull(np.array([*of_foot, heel.head_local.xy[:], heel.tail_local.xy[:]]))
    assert {tuple(corner) for corner in outline} <= set(of_foot)
