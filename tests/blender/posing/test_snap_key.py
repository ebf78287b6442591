"""From a pose to its targets and back, and keys for solved poses."""

from pathlib import Path

import bpy
import numpy as np
import pytest
from mathutils import Quaternion, Vector
from support import scenes

from fabrik_addon.blender.posing.snap_targets import snap_targets
from fabrik_addon.blender.rig import keyframes
from fabrik_addon.blender.settings.limit_properties import read_limit

HUMAN = Path(__file__).parents[3] / "sample_rigs" / "human.blend"
HUMAN_ENDS = ("hand.L", "hand.R", "foot.L", "foot.R", "head")
FK_TO_IK_DEG = 0.1

pytestmark = pytest.mark.usefixtures("clean_scene")


@pytest.fixture
def rig():
    """A posed person far from the origin, with targets away from its effectors."""
    made = scenes.place(scenes.make_rig(mode="MIXED"), scale=2.0)
    for bone in scenes.ENDS:
        scenes.aim(made, bone, scenes.empty_at((0.1, 0.2, 0.3), f"{bone} target"))
    scenes.pose(made, scenes.smooth_motion(made, 1, 3)[0][0])
    scenes.make_active(made)
    return made


def update():
    bpy.context.view_layer.update()


def rotations(rig):
    """(N, 3, 3) armature-space rotations."""
    update()
    return np.array([bone.matrix.to_3x3().normalized() for bone in rig.pose.bones])


def apart_deg(first, second):
    """The largest angle between two sets of rotations."""
    traces = np.einsum("nij,nij->n", first, second)
    chord = np.linalg.norm(first - second, axis=(1, 2)) / np.sqrt(8.0)
    assert (traces > 0).all()
    return np.degrees(2.0 * np.arcsin(np.clip(chord, 0.0, 1.0))).max()


def tips(rig):
    update()
    return {each.bone: rig.matrix_world @ rig.pose.bones[each.bone].tail for each in rig.fabrik.effectors}


def pose_inside_limits(rig, rng):
    """A random pose inside the limits; the free bones rotate by up to half a radian."""
    for bone in rig.pose.bones:
        limit = read_limit(bone)
        turn = Vector(rng.uniform(-0.5, 0.5, 3))
        wanted = Quaternion(turn, turn.length) if limit is None else Quaternion(limit.sample(rng.uniform(size=3)))
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = wanted


class TestOutsideLimits:
    """A pose outside its limits, to which no solving can go."""

    @pytest.fixture
    def bent(self):
        """A person whose elbow is bent to the back by 60 degrees."""
        bpy.ops.wm.open_mainfile(filepath=str(HUMAN))
        rig = bpy.data.objects["Rig"]
        scenes.make_active(rig)
        for bone in HUMAN_ENDS:
            scenes.aim(rig, bone, scenes.empty_at((0.1, 0.2, 0.3), f"{bone} target"))
        rig.pose.bones["forearm.L"].rotation_quaternion = Quaternion((1.0, 0.0, 0.0), np.radians(-60.0))
        update()
        return rig

    def test_bones_outside_limits_are_named_with_the_remedy(self, bent):
        before = rotations(bent)
        count, sentences = snap_targets(bpy.context, bent)
        assert count == len(HUMAN_ENDS)
        (sentence,) = sentences
        assert sentence.startswith("Bones outside their limits, by up to ")
        assert "forearm.L; " in sentence
        assert sentence.endswith("use Clamp Pose first")
        assert apart_deg(rotations(bent), before) < 1e-6
        assert not snap_targets(bpy.context, bent, clamp=True)[1]

    def test_after_clamping_and_snapping_a_solve_changes_nothing(self, bent):
        assert bpy.ops.fabrik.snap_targets(clamp=True) == {"FINISHED"}
        before = rotations(bent)
        bpy.ops.fabrik.solve()
        assert apart_deg(rotations(bent), before) < FK_TO_IK_DEG


class TestSnap:
    def test_targets_move_to_their_effectors(self, rig):
        assert bpy.ops.fabrik.snap_targets() == {"FINISHED"}
        for bone, tip in tips(rig).items():
            place = bpy.data.objects[f"{bone} target"].matrix_world.translation
            assert tuple(place) == pytest.approx(tuple(tip), abs=1e-5)

    def test_after_snapping_a_solve_changes_nothing(self, rig):
        before = rotations(rig)
        bpy.ops.fabrik.snap_targets()
        bpy.ops.fabrik.solve()
        assert apart_deg(rotations(rig), before) < 0.01

    def test_parents_scales_and_chains_of_targets(self, rig):
        """A target under a rotated, scaled parent, and one that is parented to another target."""
        carrier = scenes.place(scenes.empty_at((1, 2, 3), "Carrier"), scale=0.3)
        first, second = (rig.fabrik.effectors[place].target for place in (1, 2))
        first.parent, second.parent = carrier, first
        first.scale = (2.0, 2.0, 2.0)
        bpy.ops.fabrik.snap_targets()
        for effector in (rig.fabrik.effectors[1], rig.fabrik.effectors[2]):
            place = effector.target.matrix_world.translation
            assert tuple(place) == pytest.approx(tuple(tips(rig)[effector.bone]), abs=1e-4)
        assert tuple(first.scale) == (2.0, 2.0, 2.0)

    def test_a_target_bone_of_another_rig(self, rig):
        bones = [("base", "", (0, 0, 0), (0, 0, 1)), ("tip", "base", (0.2, 0.3, 1.1), (0.2, 0.3, 1.4))]
        other = scenes.place(scenes.make_rig(bones, "Other"), (0.1, 0, 0), 0.2, scale=0.5)
        scenes.make_active(rig)
        rig.fabrik.effectors[0].target, rig.fabrik.effectors[0].target_bone = other, "tip"
        bpy.ops.fabrik.snap_targets()
        update()
        place = other.matrix_world @ other.pose.bones["tip"].head
        assert tuple(place) == pytest.approx(tuple(tips(rig)["head"]), abs=1e-4)

    def test_a_target_with_rotation_is_rotated_too(self, rig):
        effector = rig.fabrik.effectors[1]
        effector.hold_rotation = True
        kept = rig.fabrik.effectors[2].target.matrix_world.to_quaternion()
        snap_targets(bpy.context, rig)
        update()
        turn = (rig.matrix_world @ rig.pose.bones[effector.bone].matrix).to_quaternion()
        assert effector.target.matrix_world.to_quaternion().rotation_difference(turn).angle < 1e-3
        assert rig.fabrik.effectors[2].target.matrix_world.to_quaternion().rotation_difference(kept).angle < 1e-3

    def test_pins_move_to_the_pose(self, rig):
        pin = rig.fabrik.effectors[3]
        pin.target, pin.pin_location = None, (9.0, 9.0, 9.0)
        bpy.ops.fabrik.snap_targets()
        assert tuple(pin.pin_location) == pytest.approx(tuple(rig.pose.bones[pin.bone].tail), abs=1e-5)
        turn = rig.pose.bones[pin.bone].matrix.to_quaternion()
        assert Quaternion(pin.pin_rotation).rotation_difference(turn).angle < 1e-4

    def test_targets_that_cannot_be_moved_stay_and_are_named(self, rig):
        held = rig.fabrik.effectors[0].target
        held.constraints.new("LIMIT_LOCATION")
        before = held.matrix_world.copy()
        moved, stays = snap_targets(bpy.context, rig)
        assert (moved, stays) == (4, ["Target 'head target' was not moved: it has constraints"])
        assert held.matrix_world == before

    def test_if_no_target_can_be_moved_the_reason_is_reported(self, rig):
        marker = scenes.import_positions(np.zeros((3, 1, 3)), ["m"])["m"]
        for effector in rig.fabrik.effectors:
            effector.target = marker
        with pytest.raises(RuntimeError, match="'m' was not moved: it is a recorded marker"):
            bpy.ops.fabrik.snap_targets()

    def test_pole_targets_move_to_the_side_that_bends(self, rig):
        pole = scenes.empty_at((0.3, 4.0, 1.0), "Pole")
        effector = rig.fabrik.effectors[1]
        effector.bend_target = pole
        for other in rig.fabrik.effectors:
            other.enabled = other == effector
        before = rotations(rig)
        bpy.ops.fabrik.snap_targets()
        bpy.ops.fabrik.solve()
        assert apart_deg(rotations(rig), before) < FK_TO_IK_DEG

    def test_live_continues_from_the_snapped_pose(self, rig):
        rig.fabrik.live = True
        update()
        before = rotations(rig)
        bpy.ops.fabrik.snap_targets()
        assert apart_deg(rotations(rig), before) < 0.01
        rig.fabrik.influence = 0.0
        assert apart_deg(rotations(rig), before) < 0.01
        rig.fabrik.live = False


def open_human():
    """The sample person, with an effector on each of its ends."""
    bpy.ops.wm.open_mainfile(filepath=str(HUMAN))
    rig = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    scenes.make_active(rig)
    for bone in HUMAN_ENDS:
        bpy.ops.fabrik.add_effector(bone=bone)
    return rig


class TestRoundTrip:
    @pytest.mark.parametrize("options", [{}, {"hold_rotation": True}], ids=["places", "rotations"])
    def test_fk_to_ik_to_fk_on_the_sample_person(self, options):
        rig = open_human()
        for effector in rig.fabrik.effectors:
            for name, value in options.items():
                setattr(effector, name, value)
        rng = np.random.default_rng(4)
        worst = 0.0
        for _ in range(20):
            pose_inside_limits(rig, rng)
            before = rotations(rig)
            bpy.ops.fabrik.snap_targets()
            bpy.ops.fabrik.solve()
            worst = max(worst, apart_deg(rotations(rig), before))
        assert worst < FK_TO_IK_DEG

    def test_fk_to_ik_to_fk_with_bend_targets(self):
        rig = open_human()
        for effector in list(rig.fabrik.effectors)[:4]:
            effector.bend_target = scenes.empty_at((0.0, -1.0, 1.0), f"{effector.bone} pole")
        rng = np.random.default_rng(5)
        worst = 0.0
        for _ in range(10):
            pose_inside_limits(rig, rng)
            before = rotations(rig)
            bpy.ops.fabrik.snap_targets()
            bpy.ops.fabrik.solve()
            worst = max(worst, apart_deg(rotations(rig), before))
        assert worst < FK_TO_IK_DEG


class TestKeyPose:
    def keyed(self, rig):
        """Bone to number of keys on its curves."""
        found = {}
        for curve in keyframes.curves(rig):
            found.setdefault(curve.data_path.split('"')[1], []).append(len(keyframes.keys(curve)))
        return found

    def test_the_solved_bones_get_keys_and_no_others(self, rig):
        for effector in rig.fabrik.effectors:
            effector.enabled = effector.bone == "forearm.L"
        bpy.ops.fabrik.solve()
        bpy.context.scene.frame_set(7)
        assert bpy.ops.fabrik.key_pose() == {"FINISHED"}
        assert set(self.keyed(rig)) == {"hips", "spine", "upper_arm.L", "forearm.L"}
        assert {count for counts in self.keyed(rig).values() for count in counts} == {1}
        assert all(keyframes.keys(curve)[0, 0] == 7 for curve in keyframes.curves(rig))

    def test_a_free_root_gets_its_location(self, rig):
        rig.fabrik.root = "FREE"
        bpy.ops.fabrik.key_pose()
        assert sum(curve.data_path.endswith("location") for curve in keyframes.curves(rig)) == 3

    def test_a_keyed_pose_returns_with_its_frame(self, rig):
        before = rotations(rig)
        bpy.ops.fabrik.key_pose()
        scenes.reset(rig)
        bpy.context.scene.frame_set(1)
        assert apart_deg(rotations(rig), before) < 1e-3

    def test_a_second_key_does_not_rotate_the_long_way_around(self, rig):
        bone = rig.pose.bones["hips"]
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = (1.0, 0.0, 0.0, 0.0)
        bpy.ops.fabrik.key_pose()
        bpy.context.scene.frame_set(5)
        bone.rotation_quaternion = (-0.99, -0.1, 0.0, 0.0)
        bpy.ops.fabrik.key_pose()
        assert bone.rotation_quaternion[0] > 0.9

    def test_if_nothing_is_posed_a_message_says_so(self):
        scenes.make_active(scenes.make_rig())
        with pytest.raises(RuntimeError, match="No bone of 'Rig' was posed since its last key"):
            bpy.ops.fabrik.key_pose()
