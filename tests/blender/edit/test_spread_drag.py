"""Dragging over time: the frames before and after the current one follow, and nothing else changes."""

import bpy
import numpy as np
import pytest
from support import scenes, takes
from support.dragging import farthest_outside, person, world
from support.takes import go_to

from fabrik_addon.blender.edit.holds import add_hold
from fabrik_addon.blender.edit.spread_drag import Spread, begin_spread, contacts_near, contacts_on
from fabrik_addon.blender.edit.take import EditedTake
from fabrik_addon.blender.goals.body import floor_of
from fabrik_addon.blender.goals.effectors import pin_bones
from fabrik_addon.blender.posing.drag import DragSettings
from fabrik_addon.blender.rig import keyframes
from fabrik_addon.blender.rig.armature import property_name
from fabrik_addon.blender.rig.keyframes import bone_path, new_action, write_curves
from fabrik_addon.core.channels import to_channels
from fabrik_addon.core.errors import FabrikError
from fabrik_addon.markers.feet import span_of_contact

FRAMES = np.arange(1, 102)
HERE, SPREAD = 51, 30
FEET = ("foot.L", "foot.R", "toe.L", "toe.R")
INSIDE = np.abs(FRAMES - HERE) < SPREAD

pytestmark = pytest.mark.usefixtures("clean_scene")


@pytest.fixture
def walk():
    """The walking person, with a key on every frame, on the edited frame."""
    rig = takes.walking_human()
    go_to(HERE)
    return rig


def drag(**options):
    options.setdefault("spread", SPREAD)
    assert bpy.ops.fabrik.drag(**options) == {"FINISHED"}


def places(rig, bones):
    return [rig.pose.bones.find(bone) for bone in bones]


def roughest(keys):
    """The largest change of any channel from key to key."""
    return max(np.abs(np.diff(values[:, 1])).max() for values in keys.values())


class TestWalk:
    """Properties of every drag of a dense take. The person's toes bend beyond their limits by themselves."""

    @pytest.mark.one_blender
    @pytest.mark.parametrize(
        ("options", "moved"),
        [
            ({"bone": "hand.R", "translation": (0.0, 0.0, 0.2)}, ()),
            ({"bone": "hand.L", "translation": (0.2, 0.0, 0.0)}, ()),
            ({"bone": "hand.R", "translation": (0.0, 0.0, 0.0), "rotation": (0.5, 0.0, 0.3)}, ()),
            ({"bone": "chest", "translation": (0.0, 0.0, 0.0), "rotation": (0.0, 0.0, 0.5)}, ()),
            ({"bone": "hips", "point": "HEAD", "translation": (0.0, 0.0, -0.05)}, ()),
            ({"bone": "foot.L", "point": "HEAD", "translation": (0.0, 0.0, 0.05)}, ("foot.L", "toe.L")),
        ],
    )
    def test_changes_fade_out_without_jerks(self, walk, options, moved):
        bone, end = options["bone"], options.get("point", "TAIL").lower()
        keys, before, was = takes.curves(walk), takes.poses(walk, FRAMES), world(walk, bone, end)
        drag(**options)
        assert np.linalg.norm(world(walk, bone, end) - was - options["translation"]) < 1e-4
        after = takes.poses(walk, FRAMES)
        assert np.array_equal(after[~INSIDE], before[~INSIDE])
        for path, now in takes.curves(walk).items():
            assert np.array_equal(now[:, 0], keys[path][:, 0])
            assert np.array_equal(now[~INSIDE], keys[path][~INSIDE])
        heads, old = after[..., :3, 3], before[..., :3, 3]
        assert takes.accelerations(heads).max() < 1.5 * takes.accelerations(old).max()
        standing = places(walk, [foot for foot in FEET if foot not in moved])
        assert np.abs(heads - old)[:, standing].max() < 1e-4
        for frame in range(HERE - SPREAD + 1, HERE + SPREAD, 6):
            go_to(frame)
            assert farthest_outside(walk, but=("toe.L", "toe.R")) < 1e-4

    def test_the_offset_fades_out_by_the_falloff(self, walk):
        place = walk.pose.bones.find("hand.R")
        before = takes.poses(walk, FRAMES)[:, place]
        drag(bone="hand.R", point="HEAD", translation=(0.0, 0.0, 0.2))
        moved = (takes.poses(walk, FRAMES)[:, place] - before)[:, :3, 3]
        share = np.clip(1.0 - np.abs(FRAMES - HERE) / SPREAD, 0.0, 1.0)
        assert np.abs(moved - (share**3 * (10 - 15 * share + 6 * share**2))[:, None] * (0.0, 0.0, 0.2)).max() < 1e-3

    def test_a_rotation_fades_out_as_well(self, walk):
        place = walk.pose.bones.find("hand.R")
        before = takes.poses(walk, FRAMES)[:, place, :3, :3]
        drag(bone="hand.R", translation=(0.0, 0.0, 0.0), rotation=(0.0, 0.0, 0.6))
        turns = takes.poses(walk, FRAMES)[:, place, :3, :3] @ np.swapaxes(before, 1, 2)
        angle = np.arccos(np.clip(0.5 * (np.trace(turns, axis1=1, axis2=2) - 1.0), -1.0, 1.0))
        assert angle[HERE - 1] == pytest.approx(0.6, abs=1e-3)
        assert angle[HERE - 1 - SPREAD // 2] == pytest.approx(0.3, abs=2e-3)
        assert angle[~INSIDE].max() < 1e-3

    def test_bones_outside_the_dragged_chain_keep_their_keys(self, walk):
        keys = takes.curves(walk)
        drag(bone="hand.R", translation=(0.1, 0.0, 0.0))
        changed = {
            path for (path, index), now in takes.curves(walk).items() if not np.array_equal(now, keys[path, index])
        }
        assert any("hand.R" in path for path in changed)
        assert not [path for path in changed if any(name in path for name in ("head", "neck", "arm.L", "toe"))]

    @pytest.mark.one_blender
    @pytest.mark.parametrize(("hand", "shift"), [("hand.R", (0.0, 0.0, 0.4)), ("hand.L", (0.0, 0.0, 0.2))])
    def test_a_raised_hand_leaves_the_head_in_place(self, walk, hand, shift):
        """Fixed: on all frames; the head moved by 7 and 9 cm."""
        place = walk.pose.bones.find("head")
        before, was = takes.poses(walk, FRAMES)[:, place], world(walk, hand)
        drag(bone=hand, translation=shift)
        assert np.linalg.norm(world(walk, hand) - was - shift) < 1e-4
        assert np.linalg.norm(takes.poses(walk, FRAMES)[:, place, :3, 3] - before[:, :3, 3], axis=1).max() < 0.01

    @pytest.mark.one_blender
    @pytest.mark.parametrize(
        ("here", "shift"), [(45, (0.019, -0.046, 0.012)), (71, (-0.118, -0.069, 0.004)), (55, (0.052, -0.064, 0.007))]
    )
    def test_hips_end_where_they_were_dragged(self, walk, here, shift):
        """Fixed: they ended 12, 28 and 16 mm away."""
        was, path = self.drag_hips(walk, here, shift)
        assert self.told < 1e-4
        assert np.linalg.norm(world(walk, "hips") - was - shift) < 1e-4
        assert self.held.left_alone == []
        now = takes.poses(walk, FRAMES)[..., :3, 3]
        assert takes.accelerations(now).max() < 1.5 * takes.accelerations(path).max()

    @pytest.mark.one_blender
    def test_hips_out_of_reach_end_where_the_drag_showed_them(self, walk):
        was, path = self.drag_hips(walk, 45, (0.06, -0.14, 0.04))
        off = np.linalg.norm(world(walk, "hips") - was - (0.06, -0.14, 0.04))
        assert off > 0.01
        assert off == pytest.approx(self.told, abs=1e-4)
        assert takes.accelerations(takes.poses(walk, FRAMES)[..., :3, 3]).max() < 1.5 * takes.accelerations(path).max()

    def drag_hips(self, walk, here, shift):
        """Drag the hips on a frame. Returns their tail, and the heads of all bones, before the drag."""
        go_to(here)
        was, path = world(walk, "hips"), takes.poses(walk, FRAMES)[..., :3, 3]
        self.held = begin_spread(bpy.context, walk, "hips", Spread(20))
        for share in np.linspace(0.0, 1.0, 6)[1:]:
            self.told = self.held.step(self.held.start + share * np.array(shift)).error
        self.held.finish(bpy.context)
        bpy.context.view_layer.update()
        return was, path

    @pytest.mark.one_blender
    def test_pins_keep_their_paths(self, walk):
        pin_bones(walk, ["hand.L"])
        place = walk.pose.bones.find("hand.L")
        before = takes.poses(walk, FRAMES)[:, place]
        drag(bone="chest", translation=(0.0, 0.05, 0.0))
        assert np.abs(takes.poses(walk, FRAMES)[:, place] - before).max() < 1e-4

    def test_one_undo_reverts_the_whole_edit(self, walk):
        bpy.ops.ed.undo_push(message="before")
        keys = takes.curves(walk)
        bpy.ops.fabrik.drag("EXEC_DEFAULT", True, bone="hand.R", translation=(0.0, 0.0, 0.2), spread=SPREAD)
        rig = bpy.context.object
        assert any(not np.array_equal(now, keys[path]) for path, now in takes.curves(rig).items())
        bpy.ops.ed.undo()
        rig = bpy.data.objects["Rig"]
        assert all(np.array_equal(now, keys[path]) for path, now in takes.curves(rig).items())

    def test_the_header_shows_why_the_hand_lags_behind_the_mouse(self, walk):
        held = begin_spread(bpy.context, walk, "hand.R", Spread(SPREAD), settings=DragSettings(root="FIXED"))
        assert held.step(held.start + np.array((0.0, 0.0, 0.05))).line == ""
        result = held.step(held.start + np.array((0.0, 0.0, 3.0)))
        assert result.error > 1.0
        assert result.why == "shoulder.R is at its limit"
        assert result.line.endswith(" short: shoulder.R is at its limit")

    def test_a_planted_foot_that_stops_the_head_has_no_target(self, walk):
        held = begin_spread(bpy.context, walk, "head", Spread(SPREAD))
        assert held.step(held.start + np.array((0.0, 0.0, 1.0))).why == "foot.R is held in place"

    def test_esc_restores_everything(self, walk):
        before = scenes.digest()
        held = begin_spread(bpy.context, walk, "hand.R", Spread(SPREAD))
        held.step(held.start + np.array((0.0, 0.0, 0.2)))
        assert scenes.digest() != before
        held.cancel()
        assert scenes.digest() == before


@pytest.mark.one_blender
@pytest.mark.parametrize(
    ("options", "exact"),
    [
        ({"bone": "hips", "point": "HEAD", "translation": (0.0, 0.0, 0.0), "rotation": (0.0, 0.0, -0.3)}, True),
        ({"bone": "hips", "point": "HEAD", "translation": (0.0, 0.0, 0.05)}, False),
        ({"bone": "head", "translation": (0.0, 0.0, 0.1)}, False),
    ],
)
def test_limbs_that_become_straight_do_not_jerk(options, exact):
    """Knees are nearly straight on some frames near frame 250 of the walk, and 5 cm up is out of reach."""
    frames = np.arange(1, 62)
    rig = takes.walking_human(61, first=219)
    go_to(31)
    bone, end = options["bone"], options.get("point", "TAIL").lower()
    before, was = takes.poses(rig, frames), world(rig, bone, end)
    drag(**options)
    moved = world(rig, bone, end) - was
    assert (np.linalg.norm(moved - options["translation"]) < 1e-4) == exact
    assert exact or moved[2] > 0.005
    after = takes.poses(rig, frames)
    heads, old = after[..., :3, 3], before[..., :3, 3]
    assert takes.accelerations(heads).max() < 1.2 * takes.accelerations(old).max()
    assert np.abs(heads - old)[:, places(rig, FEET)].max() < 1e-4


@pytest.mark.one_blender
@pytest.mark.parametrize(
    ("bone", "point", "shift"),
    [
        ("hand.R", "TAIL", (0.0, -0.3, 0.1)),
        ("foot.L", "TAIL", (0.0, 0.0, 0.2)),
        ("foot.L", "TAIL", (0.0, -0.3, 0.1)),
        ("hips", "HEAD", (0.0, -0.3, 0.1)),
    ],
)
def test_joints_accelerate_no_more_after_a_large_drag(bone, point, shift):
    """With each frame solved by itself, knees jumped by up to 20 cm per frame squared."""
    frames = np.arange(1, 142)
    rig = takes.walking_human(141, first=130)
    go_to(71)
    before = takes.poses(rig, frames)[..., :3, 3]
    drag(bone=bone, point=point, translation=shift, spread=60)
    after = takes.poses(rig, frames)[..., :3, 3]
    assert takes.accelerations(after).max() < 1.2 * takes.accelerations(before).max()
    held = places(rig, [foot for foot in FEET if not bone.startswith("foot") or foot[-1] != bone[-1]])
    assert np.abs(after - before)[:, held].max() < 3e-4


@pytest.mark.one_blender
def test_hips_that_are_lowered_keep_the_trunk_upright_on_all_frames():
    """Fixed: on the frames next to the dragged one, the trunk leaned by up to 40 degrees."""
    frames = np.arange(1, 142)
    rig = takes.walking_human(141, first=130)
    go_to(71)
    before = takes.poses(rig, frames)[:, rig.pose.bones.find("chest"), :3, :3]
    drag(bone="hips", point="HEAD", translation=(0.0, 0.0, -0.2), spread=60)
    after = takes.poses(rig, frames)[:, rig.pose.bones.find("chest"), :3, :3]
    turned = np.arccos(np.clip(0.5 * (np.trace(after @ before.swapaxes(1, 2), axis1=1, axis2=2) - 1.0), -1.0, 1.0))
    assert np.degrees(turned.max()) < 15.0


@pytest.mark.one_blender
def test_a_lifted_foot_bends_its_knee_and_the_hips_stay(walk):
    """As in a drag of one frame. Fixed: the hips followed by 13 mm."""
    go_to(33)
    knee, hips = (walk.pose.bones[name] for name in ("shin.L", "hips"))
    bent, place = knee.matrix_channel.to_quaternion(), np.array(hips.head)
    drag(bone="foot.L", translation=(0.0, 0.0, 0.2))
    assert np.degrees(knee.matrix_channel.to_quaternion().rotation_difference(bent).angle) > 20.0
    assert np.linalg.norm(np.array(hips.head) - place) < 0.007


@pytest.mark.one_blender
def test_the_contact_moves_with_a_planted_foot(walk):
    """All frames of the contact inside the span move equally; beyond the span nothing changes."""
    foot, other = places(walk, ("foot.R", "foot.L"))
    before, here, spread = takes.poses(walk, FRAMES), 42, 46
    go_to(here)
    contacts = contacts_near(bpy.context.scene, walk, EditedTake.of_bone(walk, "hips"), here)
    first, last = span_of_contact(contacts, "foot.R", here)
    assert here - spread < first < here < last < here + spread
    drag(bone="foot.R", point="HEAD", translation=(-0.05, 0.0, 0.0), spread=spread)
    after = takes.poses(walk, FRAMES)
    moved = (after - before)[..., :3, 3]
    whole = (first <= FRAMES) & (last >= FRAMES)
    assert np.abs(moved[whole, foot] - (-0.05, 0.0, 0.0)).max() < 1e-4
    outside = np.abs(FRAMES - here) >= spread
    assert np.array_equal(after[outside], before[outside])
    assert np.abs(moved[:, other]).max() < 1e-5
    heads, old = after[..., :3, 3], before[..., :3, 3]
    assert takes.accelerations(heads).max() < 1.5 * takes.accelerations(old).max()


@pytest.mark.one_blender
def test_a_foot_returns_if_the_span_ends_inside_its_contact(walk):
    foot = walk.pose.bones.find("foot.R")
    before = takes.poses(walk, FRAMES)
    spread = begin_spread(bpy.context, walk, "foot.R", Spread(8), point="HEAD")
    assert [sentence for sentence in spread.left_alone if "'foot.R' is in contact from frame 8 to 76" in sentence]
    spread.cancel()
    drag(bone="foot.R", point="HEAD", translation=(-0.03, 0.0, 0.0), spread=8)
    after = takes.poses(walk, FRAMES)
    moved = (after - before)[:, foot, :3, 3]
    assert np.abs(moved[np.abs(FRAMES - HERE) <= 6] - (-0.03, 0.0, 0.0)).max() < 1e-5
    assert np.array_equal(after[np.abs(FRAMES - HERE) >= 8], before[np.abs(FRAMES - HERE) >= 8])


@pytest.mark.one_blender
def test_a_foot_stops_at_the_floor(walk):
    """The left foot is in the air between frames 24 and 60; its sole goes down to the floor and no deeper."""
    points = [place for place in floor_of_feet(walk) if place[0] in {"foot.L", "toe.L"}]
    before = lowest(walk, points)
    walk.fabrik.use_floor, walk.fabrik.floor_height = True, float(before.min()) + 0.005
    here = 25 + int(before[24:60].argmax())
    assert before[here - 1] > walk.fabrik.floor_height + 0.02
    go_to(here)
    drag(bone="foot.L", point="HEAD", translation=(0.0, 0.0, -0.2), rotation=(0.0, 0.0, 0.0))
    after = lowest(walk, points)
    assert after[here - 1] == pytest.approx(walk.fabrik.floor_height, abs=2e-3)
    assert (after > np.minimum(before, walk.fabrik.floor_height) - 2e-3).all()


def floor_of_feet(rig):
    rig.fabrik.use_floor = True
    return floor_of(rig).points


def lowest(rig, points):
    """(F,) the height of the lowest of some points on bones."""
    posed = takes.poses(rig, FRAMES)
    return np.min([posed[:, rig.pose.bones.find(bone), 2] @ (*place, 1.0) for bone, place in points], axis=0)


def test_the_next_markers_and_contacts_end_a_spread(walk):
    hand = walk.pose.bones.find("hand.R")
    for frame in (10, 45, 70, 90):
        bpy.context.scene.timeline_markers.new("mark", frame=frame)
    before = takes.poses(walk, FRAMES)[:, hand, :3, 3]
    walk.fabrik.drag.spread_to = {"MARKERS"}
    drag(bone="hand.R", translation=(0.0, 0.0, 0.1))
    moved = np.abs(takes.poses(walk, FRAMES)[:, hand, :3, 3] - before).max(axis=1) > 1e-6
    assert FRAMES[moved].tolist() == list(range(46, 70))
    take = EditedTake.of_bone(walk, "hips")
    contacts = contacts_on(bpy.context.scene, walk, take, FRAMES.astype(float))
    ends = sorted(end for contact in contacts for end in (contact.first, contact.last))
    first, last = max(end for end in ends if end < HERE), min(end for end in ends if end > HERE)
    before = takes.poses(walk, FRAMES)[:, hand, :3, 3]
    walk.fabrik.drag.spread_to = {"CONTACTS"}
    drag(bone="hand.R", translation=(0.0, 0.0, 0.01))
    moved = np.abs(takes.poses(walk, FRAMES)[:, hand, :3, 3] - before).max(axis=1) > 1e-6
    assert (FRAMES[moved][0] > first, FRAMES[moved][-1] < last) == (True, True)
    assert moved[HERE - 1]


def test_another_frame_is_edited_without_a_frame_change(walk):
    go_to(5)
    place = walk.pose.bones.find("hand.R")
    before, shown = takes.poses(walk, FRAMES)[:, place, :3, 3], world(walk, "hand.R")
    drag(bone="hand.R", point="HEAD", translation=(0.0, 0.0, 0.1), frame=HERE)
    assert bpy.context.scene.frame_current == 5
    assert np.abs(world(walk, "hand.R") - shown).max() == 0.0
    moved = takes.poses(walk, FRAMES)[:, place, :3, 3] - before
    assert moved[HERE - 1] == pytest.approx((0.0, 0.0, 0.1), abs=1e-5)
    assert np.abs(moved[~INSIDE]).max() == 0.0


def test_sparse_curves_get_new_keys_only_at_the_current_frame_and_the_ends():
    rig = takes.walking_human(step=8)
    go_to(HERE + 2)
    keys, was = takes.curves(rig), world(rig, "hand.R")
    assert HERE + 2 not in keys[next(iter(keys))][:, 0]
    before = takes.poses(rig, FRAMES)
    drag(bone="hand.R", translation=(0.0, 0.0, 0.2), spread=18)
    ends = HERE + 2 - 18, HERE + 2, HERE + 2 + 18
    new = {path: np.setdiff1d(now[:, 0], keys[path][:, 0]) for path, now in takes.curves(rig).items()}
    assert {frame for frames in new.values() for frame in frames.tolist()} <= set(ends)
    assert any("hand.R" in path and len(frames) == 3 for (path, _), frames in new.items())
    assert not [path for (path, _), frames in new.items() if len(frames) and "head" in path]
    go_to(HERE + 2)
    assert np.linalg.norm(world(rig, "hand.R") - was - (0.0, 0.0, 0.2)) < 1e-4
    after = takes.poses(rig, FRAMES)
    outside = (ends[0] >= FRAMES) | (ends[2] <= FRAMES)
    assert np.abs(after[outside] - before[outside]).max() < 1e-6


@pytest.mark.parametrize("kind", ["AUTO", "AUTO_CLAMPED", "FREE", "ALIGNED", "VECTOR"])
def test_curves_outside_the_span_keep_their_bezier_shape(kind):
    rig = takes.walking_human(step=8)
    for curve in keyframes.curves(rig):
        for key in curve.keyframe_points:
            key.interpolation, key.handle_left_type, key.handle_right_type = "BEZIER", kind, kind
        curve.update()
    before = takes.poses(rig, FRAMES)
    go_to(HERE + 2)
    drag(bone="hand.R", translation=(0.0, 0.0, 0.2), spread=20)
    after = takes.poses(rig, FRAMES)
    outside = np.abs(FRAMES - HERE - 2) >= 20
    assert np.abs(after[outside] - before[outside]).max() < 1e-5
    assert np.abs(after - before).max() > 0.1


def going_round():
    """A hundred frames of the walk as a cyclic action."""
    rig = takes.walking_human()
    for curve in keyframes.curves(rig):
        keys = curve.keyframe_points
        # A cycle ends in the pose in which it begins, except for the distance that the person has walked.
        if "rotation" in curve.data_path:
            keys[-1].co[1] = keys[0].co[1]
        curve.modifiers.new("CYCLES")
        curve.update()
    return rig


def test_a_span_longer_than_a_loop_is_limited_to_one_cycle():
    rig = going_round()
    go_to(30)
    rounds = np.arange(1, 202)
    before = takes.poses(rig, rounds)
    spread = begin_spread(bpy.context, rig, "hand.R", Spread(80), point="HEAD")
    assert spread.left_alone == ["The motion repeats every 100 frames: the change fades out within one cycle"]
    spread.step(spread.start + np.array((0.0, 0.0, 0.1)))
    spread.finish(bpy.context)
    moved = (takes.poses(rig, rounds) - before)[:, rig.pose.bones.find("hand.R"), :3, 3]
    assert np.abs(moved[100:200] - moved[:100]).max() < 1e-5
    share = np.clip(1.0 - np.abs(np.arange(-20, 81) - 30) / 50, 0.0, 1.0)
    lift = 0.1 * share**3 * (10 - 15 * share + 6 * share**2)
    assert np.abs(moved[79:180] - lift[:, None] * (0.0, 0.0, 1.0)).max() < 2e-3
    with pytest.raises(FabrikError, match="more than one cycle of 100 frames"):
        add_hold(bpy.context, rig, "hand.R", (10.0, 115.0))


@pytest.mark.parametrize("here", [3, 98, 101, 203])
def test_a_span_over_the_seam_of_a_loop_stays_a_loop(here):
    rig = going_round()
    go_to(here)
    rounds = np.arange(1, 302)
    before, keys = takes.poses(rig, rounds), takes.curves(rig)
    was = world(rig, "hand.R")
    drag(bone="hand.R", translation=(0.0, 0.0, 0.1), spread=20)
    assert np.linalg.norm(world(rig, "hand.R") - was - (0.0, 0.0, 0.1)) < 1e-4
    after = takes.poses(rig, rounds)
    for path, now in takes.curves(rig).items():
        assert np.array_equal(now[:, 0], keys[path][:, 0])
        assert np.abs((now[-1] - now[0]) - (keys[path][-1] - keys[path][0])).max() < 1e-6
    hand = rig.pose.bones.find("hand.R")
    moved = (after - before)[:, hand, :3, 3]
    assert np.abs(moved[100:200] - moved[:100]).max() < 1e-5
    assert np.abs(moved[200:300] - moved[:100]).max() < 1e-5
    assert (np.abs(moved[:100]).max(axis=1) > 1e-6).sum() == 39


def test_auto_keying_off_changes_this_frame_only(walk):
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = False
    keys, was = takes.curves(walk), world(walk, "hand.R")
    drag(bone="hand.R", translation=(0.0, 0.0, 0.1))
    assert np.linalg.norm(world(walk, "hand.R") - was - (0.0, 0.0, 0.1)) < 1e-4
    assert all(np.array_equal(now, keys[path]) for path, now in takes.curves(walk).items())


def test_without_keys_only_the_current_frame_is_dragged():
    rig = person()
    was = world(rig, "forearm.L")
    drag(bone="forearm.L", translation=(-0.05, 0.0, 0.1))
    assert np.linalg.norm(world(rig, "forearm.L") - was - (-0.05, 0.0, 0.1)) < 1e-3
    assert rig.animation_data is None or not takes.curves(rig)


@pytest.mark.parametrize("mode", ["XYZ", "ZYX", "AXIS_ANGLE"])
def test_a_spread_drag_works_in_other_rotation_modes(mode):
    rig = person(mode=mode)
    turns, _ = scenes.smooth_motion(rig, 41, 2)
    action = new_action(rig, "Waves")
    for place, bone in enumerate(rig.pose.bones):
        channel, values = property_name(mode), to_channels(mode, turns[:, place])
        write_curves(action, rig, bone_path(bone.name, channel), np.arange(1, 42), values, bone.name)
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
    frames = np.arange(1, 42)
    before, rough = takes.poses(rig, frames), roughest(takes.curves(rig))
    go_to(21)
    was = world(rig, "forearm.R")
    drag(bone="forearm.R", translation=(0.05, 0.05, 0.0), spread=15)
    assert np.linalg.norm(world(rig, "forearm.R") - was - (0.05, 0.05, 0.0)) < 1e-4
    after = takes.poses(rig, frames)
    assert np.array_equal(after[np.abs(frames - 21) >= 15], before[np.abs(frames - 21) >= 15])
    assert roughest(takes.curves(rig)) < rough + 0.5
