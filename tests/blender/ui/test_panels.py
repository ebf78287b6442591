"""The sidebar: what it shows in each state, and that it computes nothing.

There is no window here, so the panels draw on a layout that notes what it is given; the names of properties, operators
and icons are checked against Blender's own.
"""

import inspect

import bpy
import pytest
from support import scenes

from fabrik_addon.blender.ui.panels import markers as marker_panel
from fabrik_addon.blender.ui.panels import rig as panels

pytestmark = pytest.mark.usefixtures("clean_scene")

ICONS = set(bpy.types.UILayout.bl_rna.functions["label"].parameters["icon"].enum_items.keys())


class Layout:
    """Stands in for Blender's layout: notes labels, properties and buttons, and whether they are greyed."""

    def __init__(self, notes=None, parent=None):
        self.notes = [] if notes is None else notes
        self.parent, self.enabled, self.active = parent, True, True

    def row(self, **_options):
        return Layout(self.notes, self)

    column = row

    def label(self, text="", icon="NONE"):
        assert icon in ICONS
        self._note("label", text)

    def prop(self, owner, name, **_options):
        assert name in owner.bl_rna.properties
        self._note("prop", name)

    def prop_search(self, owner, name, source, collection, **_options):
        assert name in owner.bl_rna.properties
        assert collection in source.bl_rna.properties
        self._note("prop", name)

    def template_list(self, kind, _name, owner, collection, active_owner, active, **_options):
        assert hasattr(bpy.types, kind)
        assert collection in owner.bl_rna.properties
        assert active in active_owner.bl_rna.properties
        self._note("list", collection)

    def operator(self, name, text="", icon="NONE"):
        assert icon in ICONS
        # Raises KeyError for an operator that Blender does not know.
        getattr(bpy.ops.fabrik, name.split(".")[1]).get_rna_type()
        self._note("button", f"{name} {text}".strip())
        return Layout()

    def _note(self, kind, text):
        self.notes.append((kind, text, self.is_enabled()))

    def is_enabled(self):
        return self.enabled and (self.parent is None or self.parent.is_enabled())

    def texts(self, kind):
        return [text for noted, text, _ in self.notes if noted == kind]

    def greyed(self):
        return [text for _, text, enabled in self.notes if not enabled]


class Stage:
    """What a panel's draw function needs of `self`."""

    def __init__(self, panel):
        self.panel, self.layout = panel, Layout()

    def draw_rig(self, *arguments):
        self.panel.draw_rig(self, *arguments)


def draw(panel):
    stage = Stage(panel)
    before = scenes.digest()
    panel.draw(stage, bpy.context)
    assert scenes.digest() == before
    return stage.layout


@pytest.fixture
def rig():
    made = scenes.make_rig()
    scenes.make_active(made)
    return made


ABOUT_MARKERS = (
    marker_panel.FABRIK_PT_marker_list,
    marker_panel.FABRIK_PT_calibration,
    marker_panel.FABRIK_PT_marker_bake,
    marker_panel.FABRIK_PT_marker_report,
    marker_panel.FABRIK_PT_bake_options,
)
ABOUT_RIGS = (
    panels.FABRIK_PT_effectors,
    panels.FABRIK_PT_effector_ways,
    panels.FABRIK_PT_solve,
    panels.FABRIK_PT_drag,
    panels.FABRIK_PT_bake,
    *ABOUT_MARKERS,
)
ALL = (*ABOUT_RIGS, panels.FABRIK_PT_markers)


@pytest.mark.parametrize("panel", ALL)
def test_panels_are_in_the_sidebar_s_fabrik_tab(panel):
    assert getattr(bpy.types, panel.__name__).is_registered
    assert (panel.bl_space_type, panel.bl_region_type, panel.bl_category) == ("VIEW_3D", "UI", "FABRIK")


@pytest.mark.parametrize("panel", ABOUT_RIGS)
def test_without_an_armature_it_says_what_to_select(panel):
    assert draw(panel).notes == [("label", "Select an armature", True)]


def test_without_an_active_bone_add_is_greyed_and_says_why(rig):
    layout = draw(panels.FABRIK_PT_effectors)
    assert layout.greyed() == ["fabrik.add_effector", "fabrik.pin"]
    assert layout.texts("label") == ["Pick a bone in Pose mode, then Add"]


def test_with_an_active_bone_it_says_what_add_will_do(rig):
    rig.data.bones.active = rig.data.bones["head"]
    layout = draw(panels.FABRIK_PT_effectors)
    assert layout.greyed() == []
    assert layout.texts("label") == ["Add a target for head, or pin it"]


def test_details_of_the_active_effector(rig):
    rig.data.bones.active = rig.data.bones["head"]
    effector = scenes.aim(rig, "head", scenes.empty_at((0, 0, 0)))
    assert draw(panels.FABRIK_PT_effectors).texts("prop") == ["name", "bone", "point", "kind", "target"]
    effector.point, effector.target = "OFFSET", scenes.make_rig(name="Other")
    scenes.make_active(rig)
    found = draw(panels.FABRIK_PT_effectors).texts("prop")
    assert found == ["name", "bone", "point", "offset", "kind", "target", "target_bone"]
    effector.kind = "PIN"
    assert draw(panels.FABRIK_PT_effectors).texts("prop")[-2:] == ["kind", "pin_location"]


def test_ways_of_the_active_effector(rig):
    panel = panels.FABRIK_PT_effector_ways
    assert draw(panel).texts("label") == ["Add an effector first"]
    effector = scenes.aim(rig, "head", scenes.empty_at((0, 0, 0)))
    layout = draw(panel)
    assert layout.texts("prop") == ["bend_target", "use_rotation", "rotation_weight", "weight", "priority"]
    assert layout.greyed() == ["rotation_weight"]
    effector.use_rotation, effector.bend_target = True, scenes.make_rig(name="Other")
    scenes.make_active(rig)
    layout = draw(panel)
    assert layout.texts("prop")[:3] == ["bend_target", "bend_bone", "use_rotation"]
    assert layout.greyed() == []
    effector.kind = "PIN"
    assert "hold_rotation" in draw(panel).texts("prop")


def draw_line(rig, effector):
    layout, kept = Layout(), rig.fabrik
    panels.FABRIK_UL_effectors.draw_item(None, bpy.context, layout, kept, effector, 0, kept, "active_effector")
    return layout


def test_line_of_the_list(rig):
    effector = scenes.aim(rig, "head", scenes.empty_at((0, 0, 0)))
    layout = draw_line(rig, effector)
    assert layout.texts("prop") == ["enabled"]
    assert layout.texts("label") == ["head", "Target"]
    effector.target, effector.bone = None, ""
    layout = draw_line(rig, effector)
    assert layout.texts("label") == ["No bone", "No target"]


def test_pinned_line_of_the_list(rig):
    effector = scenes.aim(rig, "head", None, kind="PIN")
    assert draw_line(rig, effector).texts("label") == ["head", "Pinned"]


def test_pose_is_greyed_until_there_is_something_to_reach_and_says_what_to_do(rig):
    layout = draw(panels.FABRIK_PT_solve)
    assert "pick a bone in Pose mode" in " ".join(layout.texts("label"))
    buttons = ["fabrik.solve Solve", "fabrik.solve From Rest", "fabrik.key_pose", "fabrik.snap_targets"]
    assert layout.greyed() == ["live", "influence", "root", *buttons]


def test_pose_has_live_the_root_both_starts_and_keys_in_that_order(rig):
    scenes.aim(rig, "head", scenes.empty_at((0, 0, 0)))
    layout = draw(panels.FABRIK_PT_solve)
    assert [text.split()[0] for kind, text, _ in layout.notes if kind != "label"] == [
        "live",
        "influence",
        "root",
        "fabrik.solve",
        "fabrik.solve",
        "fabrik.key_pose",
        "fabrik.snap_targets",
    ]
    assert layout.greyed() == ["influence"]


def test_live_says_what_keeps_it_and_that_renders_need_a_bake(rig):
    effector = scenes.aim(rig, "head", scenes.empty_at((0, 0, 0)))
    rig.fabrik.live = True
    assert draw(panels.FABRIK_PT_solve).texts("label") == ["Off in renders: bake first"]
    effector.bone = "nobody"
    bpy.context.view_layer.update()
    assert "'nobody'" in " ".join(draw(panels.FABRIK_PT_solve).texts("label"))
    effector.enabled = False
    bpy.context.view_layer.update()
    assert "live" not in draw(panels.FABRIK_PT_solve).greyed(), "it can be switched off"
    rig.fabrik.live = False


def test_drag_says_where_it_works(rig):
    layout = draw(panels.FABRIK_PT_drag)
    assert layout.texts("label") == ["Bones are dragged in Pose mode"]
    assert layout.texts("prop") == ["reach", "bones", "root"]
    assert layout.greyed() == ["bones"]


def test_markers_can_be_imported_without_a_rig():
    assert draw(panels.FABRIK_PT_markers).texts("button") == ["fabrik.import_markers Import Markers"]


def test_bake_shows_the_range_it_will_use(rig):
    assert draw(panels.FABRIK_PT_bake).greyed() == ["frame_start", "frame_end"]
    rig.fabrik.bake.use_scene_range = False
    layout = draw(panels.FABRIK_PT_bake)
    assert layout.greyed() == []
    assert layout.texts("prop") == [
        "use_scene_range",
        "frame_start",
        "frame_end",
        "step",
        "start",
        "mend_jumps",
        "action",
    ]
    assert layout.texts("button") == ["fabrik.bake Bake"]


def test_bake_shows_how_the_last_one_went():
    rig, _ = scenes.walking_rig(3)
    assert draw(panels.FABRIK_PT_bake).texts("label") == []
    bpy.ops.fabrik.bake(frame_start=1, frame_end=3)
    assert draw(panels.FABRIK_PT_bake).texts("label")[0] == "11 bones, 3 frames"
    assert "\n".join(draw(panels.FABRIK_PT_bake).texts("label")) == rig.fabrik.last_result


def kinds():
    """What Blender knows of the settings and the operators."""
    rig = bpy.types.Object.bl_rna.properties["fabrik"].fixed_type
    yield from (rig, rig.properties["effectors"].fixed_type, rig.properties["bake"].fixed_type)
    for name in dir(bpy.ops.fabrik):
        yield getattr(bpy.ops.fabrik, name).get_rna_type()


def test_without_markers_the_list_says_what_to_do(rig):
    layout = draw(marker_panel.FABRIK_PT_marker_list)
    assert layout.texts("label") == ["Import markers, then match them"]
    assert layout.texts("list") == []


def test_the_active_marker_s_details_are_shown(rig):
    marker = rig.fabrik.capture.markers.add()
    marker.name, marker.bone, marker.target = "LASI", "hips", scenes.empty_at((0, 0, 0))
    layout = draw(marker_panel.FABRIK_PT_marker_list)
    assert layout.texts("list") == ["markers"]
    assert layout.texts("prop") == ["target", "bone", "point", "weight"]
    assert layout.texts("button")[-1] == "fabrik.marker_bone"
    marker.point = "OFFSET"
    assert "offset" in draw(marker_panel.FABRIK_PT_marker_list).texts("prop")


def test_report_says_what_to_do_until_there_is_one(rig):
    assert draw(marker_panel.FABRIK_PT_marker_report).texts("label") == ["Bake to see how well it fits"]
    capture = rig.fabrik.capture
    capture.report, rig.fabrik.last_result = bpy.data.texts.new("report"), "11 bones\nRMS 2 mm"
    marker = capture.markers.add()
    marker.name, marker.error, marker.worst, marker.coverage = "LASI", 0.002, 0.005, 80.0
    labels = draw(marker_panel.FABRIK_PT_marker_report).texts("label")
    assert labels == ["11 bones", "RMS 2 mm", "LASI: RMS 2.0, worst 5.0 mm", "Seen on 80 % of the frames"]


def test_reference_frames_are_greyed_until_they_count(rig):
    assert draw(marker_panel.FABRIK_PT_calibration).greyed() == ["reference_start", "reference_end"]
    rig.fabrik.capture.use_reference = True
    assert draw(marker_panel.FABRIK_PT_calibration).greyed() == []


def test_every_property_and_operator_has_a_name_and_a_tooltip_without_a_full_stop():
    assert len(list(kinds())) >= 3 + 5
    for kind in kinds():
        shown = [prop for prop in kind.properties if prop.identifier not in {"rna_type", "name"} and not prop.is_hidden]
        texts = [prop.description for prop in shown] + [item.description for prop in shown for item in items(prop)]
        texts += [kind.description] if "_OT_" in kind.identifier else []
        assert all(prop.name for prop in shown)
        assert all(text and not text.endswith(".") for text in texts), kind.identifier


def items(prop):
    return prop.enum_items if prop.type == "ENUM" else ()


def test_panels_do_not_compute():
    for module in (panels, marker_panel):
        source = inspect.getsource(module)
        assert "numpy" not in source
        assert "view_layer" not in source
