"""The sample person's capsules against its skin, and drags, live posing and Solve that keep out of the body."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix
from support import scenes
from support.takes import active_human

from fabrik_addon.blender.goals.body import collision_of, fitted
from fabrik_addon.blender.goals.effectors import add_effector, pin_bones
from fabrik_addon.blender.posing.drag import DragSettings, begin_drag
from fabrik_addon.blender.posing.solve import solve_frame
from fabrik_addon.blender.rig.armature import read_trees
from fabrik_addon.blender.ui.overlays.goals import capsule_lines
from fabrik_addon.blender.ui.overlays.handlers import forget, shown_rigs
from fabrik_addon.core.kernel.bounds import closest

pytestmark = pytest.mark.one_blender

SHARES = np.linspace(0.0, 1.0, 61)[:, None, None]
# Meters. The hand starts next to the hips and moves to the other side, through the belly.
THROUGH = (-1.0, 0.1, 0.1)
# To the side and down: the trunk leans, and its other side meets the hanging arm.
LEANING = (0.5, -0.1, -0.8)


@pytest.fixture
def human(clean_scene):
    rig = active_human()
    pin_bones(rig, ["foot.L", "foot.R"])
    return rig


def axes(rig):
    """(2, C, 3) the ends of the axes of capsules as the rig is posed, and their radii (C,)."""
    bpy.context.view_layer.update()
    capsules, ends = fitted(rig).capsules, []
    for each in capsules:
        matrix = np.array(rig.pose.bones[each.bone].matrix)
        ends.append(np.array([each.start, each.end]) @ matrix[:3, :3].T + matrix[:3, 3])
    return np.swapaxes(ends, 0, 1), np.array([each.radius for each in capsules])


def deepest(rig):
    """The deepest overlap of a pair of capsules, in meters."""
    (ends, radii), (one, two) = axes(rig), np.array(fitted(rig).pairs).T
    return (radii[one] + radii[two] - closest(ends[:, one], ends[:, two])[0]).max()


def test_the_capsules_are_near_the_skin(human):
    """Most of the skin is within 1.5 cm of the nearest capsule's surface; between parts it is farther inside."""
    (start, end), radii = axes(human)
    (mesh,) = [child for child in human.children if child.type == "MESH"]
    skin = np.array([vertex.co[:] for vertex in mesh.data.vertices])
    points = start + SHARES[::6] * (end - start)
    distances = np.linalg.norm(skin[:, None, None] - points, axis=-1).min(axis=1) - radii
    outside = distances.min(axis=1)
    assert np.mean(np.abs(outside) < 0.015) > 0.7
    assert np.percentile(outside, 5) > -0.025


def test_nothing_overlaps_at_rest(human):
    assert deepest(human) < 0.0


def drag(rig, shift, settings=None):
    """The deepest overlaps of the rig with itself: during a drag of the hand, and after release."""
    held = begin_drag(bpy.context, rig, "hand.L", settings=settings)
    depths = []
    for share in np.arange(1, 51) / 50:
        held.step(held.start + share * np.array(shift))
        depths.append(deepest(rig))
    held.finish(bpy.context)
    return max(depths), deepest(rig)


def test_a_dragged_hand_stays_out_of_the_body(human):
    human.fabrik.free_limbs_hang = False
    during, after = drag(human, THROUGH)
    assert during < 5e-3
    assert after < 1e-4


@pytest.mark.parametrize("switch", [True, False])
def test_a_hanging_arm_stays_out_of_the_trunk(human, switch):
    """A trunk that leans to the side moves its side against the hanging arm."""
    human.fabrik.bake.self_collision = "AUTO" if switch else "OFF"
    during, after = drag(human, LEANING)
    if switch:
        assert during < 5e-3
        assert after < 1e-4
    else:
        assert during > 0.02


def test_without_capsules_the_hand_goes_through_the_body(human):
    human.fabrik.bake.self_collision = "OFF"
    assert drag(human, THROUGH)[0] > 0.02


def test_an_arm_that_is_dragged_alone_stays_out_of_the_trunk(human):
    """The trunk does not follow: its capsules do not move."""
    during, after = drag(human, (-0.75, 0.05, 0.1), DragSettings(reach="BONES", bones=3))
    assert during < 5e-3
    assert after < 1e-4


def test_a_solved_and_a_live_rig_stay_out_of_the_body(human):
    target = add_effector(bpy.context, human, "hand.L").target
    target.location = (0.0, 0.0, 1.15)
    solve_frame(bpy.context, human)
    assert deepest(human) < 1e-3
    human.fabrik.live = True
    target.location = (-0.03, 0.0, 1.1)
    assert deepest(human) < 1e-3
    human.fabrik.bake.self_collision = "OFF"
    assert deepest(human) > 0.01


def test_other_rigs_and_rigs_with_self_collision_off_have_no_capsules(human):
    (tree,) = read_trees(human)
    assert collision_of(human, tree.skeleton) is not None
    human.fabrik.bake.self_collision = "OFF"
    assert collision_of(human, tree.skeleton) is None
    bpy.ops.object.mode_set(mode="OBJECT")
    assert fitted(scenes.make_rig(scenes.SNAKE, "Snake")) is None


def test_capsules_are_drawn_if_switched_on(human):
    assert not capsule_lines(human)
    human.fabrik.show_capsules = True
    (start, end), radii = axes(human)
    points, lines = start + SHARES * (end - start), capsule_lines(human)
    assert len(lines) == len(radii)
    for line, own, radius in zip(lines, points.swapaxes(0, 1), radii, strict=True):
        far = np.linalg.norm(line.points[:, None] - own, axis=-1).min(axis=1)
        assert far == pytest.approx(radius, rel=2e-3)
    human.fabrik.bake.self_collision = "OFF"
    assert not capsule_lines(human)


def test_capsules_are_drawn_without_pins_too(human):
    """Fixed: they were drawn only if a rig in the file had pins or targets."""
    human.fabrik.effectors.clear()
    forget()
    assert shown_rigs(bpy.context) == []
    human.fabrik.show_capsules = True
    assert shown_rigs(bpy.context) == [human]


def test_a_redraw_searches_for_meshes_only_after_objects_were_added(human):
    """Fixed: searching 10,000 objects took 6 ms at each redraw."""
    human.fabrik.show_capsules = True
    (mesh,) = [child for child in human.children if child.type == "MESH"]
    shown_rigs(bpy.context)
    (before, *_) = [line.points for line in capsule_lines(human)]
    larger = mesh.copy()
    larger.data = mesh.data.copy()
    larger.data.transform(Matrix.Scale(1.3, 4))
    unseen = next(line.points for line in capsule_lines(human))
    assert np.array_equal(unseen, before)
    bpy.context.collection.objects.link(larger)
    bpy.context.view_layer.update()
    shown_rigs(bpy.context)
    assert not np.array_equal(next(line.points for line in capsule_lines(human)), before)
    bpy.data.objects.remove(larger)
    assert np.array_equal(next(line.points for line in capsule_lines(human)), before)
