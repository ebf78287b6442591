"""The contents of the goals overlay, and when it is shown, without the drawing itself."""

import sys

import bpy
import numpy as np
import pytest
from mathutils import Vector
from support import limited, scenes

from fabrik_addon.blender.posing.drag import begin_drag
from fabrik_addon.blender.ui.overlays import goals as goal_overlay
from fabrik_addon.blender.ui.overlays import handlers as drawing_handlers
from fabrik_addon.blender.ui.overlays.drawing import COLORS, joined
from fabrik_addon.blender.ui.overlays.goals import GoalView
from fabrik_addon.core import Hinge

ORIGIN, AWAY = np.zeros(3), np.array([0.0, 3.0, 4.0])


@pytest.fixture
def rig(clean_scene):
    """A person in the world with one target, not met."""
    made = scenes.place(scenes.make_rig(), scale=2.0)
    scenes.aim(made, "forearm.L", scenes.empty_at((0.4, -0.3, 1.2)))
    scenes.make_active(made)
    return made


def forms(lines):
    """The number of edges of each solid that is drawn for a goal."""
    return [len(each.rows) for each in lines]


def views(rig):
    bpy.context.view_layer.update()
    return goal_overlay.views(rig)


def lines(rig):
    bpy.context.view_layer.update()
    return goal_overlay.lines_of(rig)


class TestShapes:
    def test_each_kind_of_goal_has_its_own_shape(self):
        kinds = [("TARGET", True), ("TARGET", False), ("PIN", True), ("PIN", False), ("POLE", True)]
        found = [GoalView(goal, ORIGIN, AWAY, 0.1, met).lines for goal, met in kinds]
        outlines = {tuple(np.round(lines[0].points - AWAY, 6).ravel().tolist()) for lines in found}
        assert len(outlines) == 4, "diamond, cross, box and pyramid"
        assert len({tuple(forms(lines)) + tuple(lines[0].points.shape) for lines in found}) == 5

    def test_a_missed_goal_has_a_line_to_its_effector(self):
        lines = GoalView("TARGET", ORIGIN, AWAY, 0.1, met=False).lines
        (line,) = [each for each in lines if len(each.rows) == 1]
        assert np.linalg.norm(line.points[1] - line.points[0]) == pytest.approx(5.0)
        assert {each.color for each in lines} == {COLORS["missed"]}

    @pytest.mark.parametrize("goal", ["TARGET", "PIN", "POLE"])
    @pytest.mark.parametrize("met", [True, False])
    def test_marks_are_centered_with_the_given_size(self, goal, met):
        mark = GoalView(goal, ORIGIN, AWAY, 0.1, met).lines[0]
        assert np.linalg.norm(mark.points - AWAY, axis=1).max() == pytest.approx(0.1, rel=0.3)
        assert mark.rows.max() < len(mark.points)


class TestViews:
    def test_lines_go_from_effectors_to_targets(self, rig):
        (view,) = views(rig)
        assert view.kind == "TARGET"
        assert not view.met
        assert view.effector == pytest.approx(np.array(rig.matrix_world @ rig.pose.bones["forearm.L"].tail), abs=1e-5)
        assert view.place == pytest.approx((0.4, -0.3, 1.2))

    def test_targets_of_a_live_rig_are_not_missed_while_it_is_dragged(self, rig):
        """Targets follow when the drag ends, so they are not missed until then."""
        rig.fabrik.live = True
        drag = begin_drag(bpy.context, rig, "forearm.L")
        drag.step(drag.start + np.array((0.0, -0.2, 0.3)))
        assert views(rig) == []
        drag.finish(bpy.context)
        (view,) = views(rig)
        assert view.met

    def test_a_solved_target_is_drawn_as_met(self, rig):
        rig.fabrik.effectors[0].target.location = rig.matrix_world @ Vector((0.4, -0.3, 1.2))
        bpy.ops.fabrik.solve()
        (view,) = views(rig)
        assert view.met
        assert goal_overlay.labels(rig, bpy.context.scene) == []

    def test_the_label_is_the_error_in_the_scene_s_units(self, rig):
        tip = rig.matrix_world @ rig.pose.bones["forearm.L"].tail
        rig.fabrik.effectors[0].target.location = tip + Vector((0.0, 0.0, 0.125))
        bpy.context.view_layer.update()
        bpy.context.scene.unit_settings.system = "METRIC"
        assert [text for _, text in goal_overlay.labels(rig, bpy.context.scene)] == ["12.5 cm"]
        bpy.context.scene.unit_settings.system = "IMPERIAL"
        ((_, text),) = goal_overlay.labels(rig, bpy.context.scene)
        assert text.endswith(("in", '"'))

    def test_a_live_rig_shows_why_it_misses_its_target(self, rig):
        bpy.context.scene.unit_settings.system = "METRIC"
        rig.fabrik.effectors[0].target.location = (0.0, 0.0, 50.0)
        bpy.context.view_layer.update()
        ((_, still),) = goal_overlay.labels(rig, bpy.context.scene)
        rig.fabrik.live = True
        bpy.context.view_layer.update()
        ((_, text),) = goal_overlay.labels(rig, bpy.context.scene)
        assert ":" not in still
        assert text.endswith(" m: out of reach")
        rig.fabrik.effectors[0].target.location = rig.matrix_world @ rig.pose.bones["forearm.L"].tail
        bpy.context.view_layer.update()
        assert goal_overlay.labels(rig, bpy.context.scene) == []
        rig.fabrik.live = False

    def test_points_on_bones_and_target_bones_have_views(self, rig):
        other = scenes.make_rig([("tip", "", (0.2, 0.3, 1.1), (0.2, 0.3, 1.4))], "Other")
        effector = rig.fabrik.effectors[0]
        effector.point, effector.offset = "OFFSET", (0.1, 0.2, 0.3)
        effector.target, effector.target_bone = other, "tip"
        (view,) = views(rig)
        bone = rig.pose.bones["forearm.L"]
        assert view.effector == pytest.approx(
            np.array(rig.matrix_world @ bone.matrix @ Vector((0.1, 0.2, 0.3))), abs=1e-5
        )
        assert view.place == pytest.approx((0.2, 0.3, 1.1), abs=1e-5)

    def test_pins_and_pole_targets_have_views(self, rig):
        effector = rig.fabrik.effectors[0]
        effector.target, effector.pin_location = None, (0.1, 0.2, 0.3)
        effector.bend_target = scenes.empty_at((1.0, 2.0, 3.0), "Pole")
        pin, bend = views(rig)
        assert (pin.kind, bend.kind) == ("PIN", "POLE")
        assert pin.place == pytest.approx(np.array(rig.matrix_world @ Vector((0.1, 0.2, 0.3))), abs=1e-5)
        assert bend.place == pytest.approx((1.0, 2.0, 3.0))
        ((_, text),) = goal_overlay.labels(rig, bpy.context.scene)
        assert text.startswith("pin ")

    def test_invalid_values_are_left_out(self, rig):
        rig.fabrik.effectors[0].target = None
        assert views(rig) == []
        rig.fabrik.effectors[0].bone = "nobody"
        assert views(rig) == []


class TestDrawing:
    def test_drawings_consist_of_line_ends_and_colors(self, rig):
        for width, (ends, colors) in joined(lines(rig)).items():
            assert width > 0.0
            assert len(ends) == len(colors) > 0
            assert len(ends) % 2 == 0

    def test_missed_goals_are_thicker(self, rig):
        missed = joined(lines(rig))
        rig.fabrik.effectors[0].target.location = rig.matrix_world @ rig.pose.bones["forearm.L"].tail
        met = joined(lines(rig))
        assert min(missed) >= 2 * max(met)

    def test_rigs_with_effectors_are_shown_in_object_and_pose_mode_unless_it_is_off(self, rig):
        scenes.make_rig(name="Without")
        scenes.make_active(rig.fabrik.effectors[0].target)
        assert drawing_handlers.shown_rigs(bpy.context) == [rig]
        scenes.make_active(rig)
        bpy.ops.object.mode_set(mode="POSE")
        assert drawing_handlers.shown_rigs(bpy.context) == [rig]
        bpy.context.scene.fabrik_show_goals = False
        assert drawing_handlers.shown_rigs(bpy.context) == []

    def test_a_redraw_checks_only_armatures(self, rig):
        """Otherwise a redraw would take milliseconds in a scene of thousands of objects, with or without a rig."""
        few = scenes.steps_of(lambda: drawing_handlers.shown_rigs(bpy.context))
        for place in range(200):
            scenes.empty_at((place, 0.0, 0.0))
        bpy.context.view_layer.update()
        assert drawing_handlers.shown_rigs(bpy.context) == [rig]
        assert scenes.steps_of(lambda: drawing_handlers.shown_rigs(bpy.context)) == few

    def test_added_and_removed_rigs_are_noticed(self, rig):
        shown = lambda: {thing.name for thing in drawing_handlers.shown_rigs(bpy.context)}  # noqa: E731
        bpy.ops.ed.undo_push(message="one rig")
        assert shown() == {"Rig"}
        rig.select_set(True)
        bpy.ops.object.duplicate()
        assert shown() == {"Rig", "Rig.001"}
        bpy.ops.ed.undo_push(message="two rigs")
        bpy.ops.ed.undo()
        assert shown() == {"Rig"}
        bpy.ops.ed.redo()
        assert shown() == {"Rig", "Rig.001"}
        bpy.data.objects.remove(bpy.data.objects["Rig"])
        assert shown() == {"Rig.001"}
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        assert shown() == set()

    def test_rigs_of_other_view_layers_are_not_drawn(self, rig):
        apart = bpy.data.collections.new("Apart")
        bpy.context.scene.collection.children.link(apart)
        apart.objects.link(rig)
        bpy.context.scene.collection.objects.unlink(rig)
        assert drawing_handlers.shown_rigs(bpy.context) == [rig]
        bpy.context.view_layer.layer_collection.children["Apart"].exclude = True
        assert drawing_handlers.shown_rigs(bpy.context) == []
        bpy.context.view_layer.layer_collection.children["Apart"].exclude = False
        assert drawing_handlers.shown_rigs(bpy.context) == [rig]

    def test_hidden_rigs_are_not_drawn(self, rig):
        rig.hide_set(True)
        assert drawing_handlers.shown_rigs(bpy.context) == []


def test_labels_do_not_overlap():
    rng = np.random.default_rng(5)
    places, widths = [tuple(place) for place in rng.uniform(0, 80, (12, 2))], list(rng.uniform(20, 60, 12))
    found = goal_overlay.apart(places, widths, 15.0)
    for one, (left, bottom) in enumerate(found):
        assert left == places[one][0]
        assert bottom >= places[one][1]
        for other, (x, y) in enumerate(found[:one]):
            beside = left >= x + widths[other] or x >= left + widths[one]
            assert beside or abs(bottom - y) >= 15.0 - 1e-9
    far = [(0.0, 0.0), (0.0, 100.0), (500.0, 0.0)]
    assert goal_overlay.apart(far, [40.0] * 3, 15.0) == far


def test_an_overlay_with_an_error_does_not_hide_the_others(rig):
    """Fixed: they share a draw handler. In background mode, drawing any overlay is an error."""
    limited.write_limit(rig.pose.bones["head"], Hinge("X", 0.0, 1.0))
    limited.select(rig, ("head",), active="head")
    bpy.ops.fabrik.pin(bones="head")
    bpy.context.scene.fabrik_show_limits = True
    window, names = bpy.context.window_manager.windows[0], set()
    area = next(area for area in window.screen.areas if area.type == "VIEW_3D")
    sys.setprofile(lambda frame, *_event: names.add(frame.f_code.co_name))
    try:
        with bpy.context.temp_override(window=window, area=area), pytest.raises(SystemError):
            drawing_handlers.draw_scene()
    finally:
        sys.setprofile(None)
    assert names >= {"draw_limits", "draw_over"}
