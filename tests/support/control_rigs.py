"""Small control rigs: like those of Auto-Rig Pro and CloudRig, and hand-made ones."""

from itertools import pairwise

import bpy
import numpy as np
import pytest
from mathutils import Vector

from fabrik_addon.core import forward_kinematics

# The allowed error of the evaluated body.
METERS, DEGREES = 1e-4, 0.05

_SPINE = (
    ("hips", "", (0, 0, 1.0), (0, 0, 1.12)),
    ("spine", "hips", (0, 0, 1.12), (0, 0.02, 1.28)),
    ("chest", "spine", (0, 0.02, 1.28), (0, 0, 1.48)),
    ("neck", "chest", (0, 0, 1.48), (0, -0.02, 1.58)),
    ("head", "neck", (0, -0.02, 1.58), (0, -0.02, 1.75)),
    ("shoulder.L", "chest", (0.02, 0, 1.44), (0.17, 0.01, 1.44)),
)
# The bones to which the limbs are attached, and the limbs' joints; the last two are the ends.
_LIMBS = {
    "arm": ("shoulder.L", ("arm.L", "forearm.L", "hand.L")),
    "leg": ("hips", ("thigh.L", "shin.L", "foot.L", "toe.L")),
}
_JOINTS = {
    "arm": ((0.17, 0.01, 1.44), (0.43, 0.04, 1.42), (0.68, 0, 1.42), (0.78, -0.01, 1.42)),
    "leg": ((0.1, 0, 0.95), (0.1, -0.03, 0.5), (0.1, 0.01, 0.09), (0.1, -0.11, 0.03), (0.1, -0.18, 0.03)),
}
_POLES = {"arm": (0.43, 0.6, 1.42), "leg": (0.1, -0.7, 0.5)}


def _limb(kind):
    """(name, parent, head, tail) of a limb's bones."""
    parent, names = _LIMBS[kind]
    joints = _JOINTS[kind]
    return list(zip(names, (parent, *names), joints[:-1], joints[1:], strict=False))


def _other_side(bones):
    return [
        (_mirrored(name), _mirrored(parent), *((-x, y, z) for x, y, z in ends))
        for name, parent, *ends in bones
        if name.endswith(".L")
    ]


def _mirrored(name):
    return name[:-2] + ".R" if name.endswith(".L") else name


class _Maker:
    """Builds an armature: first its bones, then, after `pose`, their constraints."""

    def __init__(self, name):
        self.rig = bpy.data.objects.new(name, bpy.data.armatures.new(name))
        bpy.context.scene.collection.objects.link(self.rig)
        bpy.context.view_layer.objects.active = self.rig
        bpy.ops.object.mode_set(mode="EDIT")
        self.shape = bpy.data.objects.new(f"{name} shape", None)
        self.shaped = []

    def bone(self, name, parent, head, tail, *, shape=False, deform=False):
        made = self.rig.data.edit_bones.new(name)
        made.head, made.tail, made.use_deform = head, tail, deform
        made.parent = self.rig.data.edit_bones[parent] if parent else None
        limb = next((kind for kind in _JOINTS if any(each[:-2] in name for each in _LIMBS[kind][1])), "leg")
        # Limbs bend about their X axis, as in animators' rigs.
        made.align_roll(np.cross(_bend(limb, np.sign(head[0])), made.y_axis))
        if shape:
            self.shaped.append(name)

    def pose(self):
        bpy.ops.object.mode_set(mode="OBJECT")
        for name in self.shaped:
            self.rig.pose.bones[name].custom_shape = self.shape
        bpy.context.view_layer.update()

    def constrain(self, bone, kind, target, **values):
        made = self.rig.pose.bones[bone].constraints.new(kind)
        made.target, made.subtarget = self.rig, target
        for key, value in values.items():
            setattr(made, key, value)
        return made

    def child_of(self, bone, target):
        rest = self.rig.data.bones[target].matrix_local
        self.constrain(bone, "CHILD_OF", target, inverse_matrix=rest.inverted())

    def armature(self, bone, *targets):
        made = self.rig.pose.bones[bone].constraints.new("ARMATURE")
        for place, name in enumerate(targets):
            target = made.targets.new()
            target.target, target.subtarget, target.weight = self.rig, name, float(place == 0)
        return made

    def ik(self, upper, lower, target, pole):
        """An IK constraint over two bones that does not move them at rest."""
        bones = self.rig.data.bones
        base, end = bones[upper], bones[lower]
        normal = (end.tail_local - base.head_local).cross(bones[pole].head_local - base.head_local)
        aside = normal.cross(base.tail_local - base.head_local)
        axis = base.matrix_local.to_3x3() @ Vector((1, 0, 0))
        angle = axis.angle(aside)
        if axis.cross(aside).dot(base.tail_local - base.head_local) > 0.0:
            angle = -angle
        self.constrain(
            lower,
            "IK",
            target,
            chain_count=2,
            pole_target=self.rig,
            pole_subtarget=pole,
            pole_angle=angle,
            use_stretch=False,
        )

    def property(self, bone, name, value):
        self.rig.pose.bones[bone][name] = value
        self.rig.pose.bones[bone].id_properties_ui(name).update(min=0, max=1)
        return f'pose.bones["{bone}"]["{name}"]'

    def drive(self, driven, data_path, path, expression="var"):
        curve = driven.driver_add(data_path)
        variable = curve.driver.variables.new()
        variable.targets[0].id, variable.targets[0].data_path = self.rig, path
        curve.driver.expression = expression


def _bend(limb, side):
    """The axis about which a limb is bent at rest."""
    joints = np.array(_JOINTS[limb][:3]) * (side or 1.0, 1.0, 1.0)
    return np.cross(*np.diff(joints, axis=0))


def _half(head, tail):
    return tuple((np.array(head) + np.array(tail)) / 2)


def _beside(head):
    """The tail of a short bone at a position."""
    return tuple(np.array(head) + np.array((0, 0, 0.08)))


def _limbs():
    """The bones of all limbs, by limb."""
    return [bones for kind in _LIMBS for bones in (_limb(kind), _other_side(_limb(kind)))]


def _pole(bones):
    """The position of a limb's pole, by its bones."""
    x, *rest = _POLES["arm" if len(bones) == 3 else "leg"]
    return x * np.sign(bones[2][2][0]), *rest


def arp_like(name="Arp"):
    """A rig like Auto-Rig Pro's: controls `c_…`, stacked Copy Transforms, stretch and twist bones; 0 is IK, 1 is FK."""
    make = _Maker(name)
    spine = [*_SPINE, *_other_side(_SPINE)]
    limbs = _limbs()
    make.bone("c_traj", "", (0, 0, 0), (0, 0.3, 0), shape=True)
    for bone, parent, *ends in spine:
        make.bone(f"c_{bone}", f"c_{parent}" if parent else "c_traj", *ends, shape=True)
        make.bone(f"mch_{bone}", "c_traj", *ends)
        make.bone(bone, parent, *ends, deform=True)
    for bones in limbs:
        _arp_limb_bones(make, bones)
    make.pose()
    for bone, *_ in spine:
        make.constrain(f"mch_{bone}", "COPY_TRANSFORMS", f"c_{bone}")
        make.constrain(bone, "COPY_TRANSFORMS", f"mch_{bone}")
    for bones in limbs:
        _arp_limb_constraints(make, [bone for bone, *_ in bones])
    bpy.context.view_layer.update()
    return make.rig


def _arp_limb_bones(make, bones):
    (_, base, *_), end = bones[0], bones[2]
    for place, (bone, parent, head, tail) in enumerate(bones):
        make.bone(f"c_{bone}_fk", f"c_{base}" if place == 0 else f"c_{parent}_fk", head, tail, shape=True)
        make.bone(bone, parent, head, tail, deform=place > 1)
        if place < 2:
            make.bone(f"{bone}_ik", f"c_{base}" if place == 0 else f"{parent}_ik", head, tail)
            make.bone(f"{bone}_twist", bone, head, _half(head, tail), deform=True)
            make.bone(f"{bone}_stretch", bone, _half(head, tail), tail, deform=True)
    make.bone(f"c_{end[0]}_ik", "", *end[2:], shape=True)
    pole = _pole(bones)
    make.bone(f"c_{end[0]}_pole", "", pole, _beside(pole), shape=True)
    for bone, _, head, tail in bones[3:]:
        make.bone(f"c_{bone}_ik", f"c_{end[0]}_ik", head, tail, shape=True)


def _arp_limb_constraints(make, bones):
    end = bones[2]
    make.ik(f"{bones[0]}_ik", f"{bones[1]}_ik", f"c_{end}_ik", f"c_{end}_pole")
    make.rig.pose.bones[f"c_{end}_pole"].lock_rotation = (True, True, True)
    make.child_of(f"c_{end}_ik", "c_traj")
    make.child_of(f"c_{end}_pole", "c_traj")
    path = make.property(f"c_{end}_ik", "ik_fk_switch", 0.0)
    for place, bone in enumerate(bones):
        kind = "COPY_TRANSFORMS" if place < 2 else "COPY_ROTATION"
        make.constrain(bone, kind, f"{bone}_ik" if place < 2 else f"c_{bone}_ik")
        fk = make.constrain(bone, kind, f"c_{bone}_fk")
        make.drive(fk, "influence", path)
    for bone, below in pairwise(bones[:3]):
        make.constrain(f"{bone}_stretch", "STRETCH_TO", below)
        make.constrain(f"{bone}_twist", "DAMPED_TRACK", below)


def cloud_like(name="Cloud"):
    """A rig like CloudRig's: FK-, IK- and STR- controls, parents by Armature constraints; 1 is IK, 0 is FK."""
    make = _Maker(name)
    spine = [*_SPINE, *_other_side(_SPINE)]
    limbs = _limbs()
    make.bone("root", "", (0, 0, 0), (0, 0.3, 0), shape=True)
    make.bone("Properties", "", (1, 0, 0), (1, 0, 0.1), shape=True)
    make.bone("MSTR-torso", "root", (0, 0, 1.0), (0, 0.2, 1.0), shape=True)
    for bone, parent, *ends in spine:
        make.bone(f"FK-{bone}", f"FK-{parent}" if parent else "MSTR-torso", *ends, shape=True)
        _str_bones(make, bone, f"FK-{bone}", *ends)
    for bones in limbs:
        _cloud_limb_bones(make, bones)
    make.pose()
    for bone, *_ in spine:
        make.constrain(f"DEF-{bone}", "STRETCH_TO", f"STR-TIP-{bone}")
    for number, bones in enumerate(limbs):
        _cloud_limb_constraints(make, bones, f"ik_limb_{number}")
    bpy.context.view_layer.update()
    return make.rig


def _str_bones(make, bone, parent, head, tail):
    """A deform bone between two controls that stretch it; the controls are children of another bone."""
    make.bone(f"STR-{bone}", parent, head, _beside(head), shape=True)
    make.bone(f"STR-TIP-{bone}", parent, tail, _beside(tail), shape=True)
    make.bone(f"DEF-{bone}", f"STR-{bone}", head, tail, deform=True)


def _cloud_limb_bones(make, bones):
    (first, base, *_), end = bones[0], bones[2]
    make.bone(f"HNG-{first}", "", *bones[0][2:])
    make.bone(f"P-IK-{end[0]}", "", *end[2:])
    make.bone(f"IK-MSTR-{end[0]}", f"P-IK-{end[0]}", *end[2:], shape=True)
    pole = _pole(bones)
    make.bone(f"P-POLE-{end[0]}", "", pole, _beside(pole))
    make.bone(f"POLE-{end[0]}", f"P-POLE-{end[0]}", pole, _beside(pole), shape=True)
    for place, (bone, parent, *ends) in enumerate(bones):
        make.bone(f"FK-{bone}", f"HNG-{first}" if place == 0 else f"FK-{parent}", *ends, shape=True)
        up = (f"FK-{base}", f"IK-{parent}", f"IK-MSTR-{bone}", f"IK-{parent}")[place]
        make.bone(f"IK-{bone}", up, *ends, shape=place == 3)
        make.bone(f"ORG-{bone}", f"ORG-{parent}" if place else f"FK-{base}", *ends)
        _str_bones(make, bone, f"ORG-{bone}", *ends)


def _cloud_limb_constraints(make, bones, switch):
    names = [bone for bone, *_ in bones]
    base, end = bones[0][1], names[2]
    make.armature(f"HNG-{names[0]}", f"FK-{base}", "root")
    make.armature(f"P-IK-{end}", "root", "FK-hips", "FK-chest")
    make.armature(f"P-POLE-{end}", "root", f"IK-MSTR-{end}")
    make.ik(f"IK-{names[0]}", f"IK-{names[1]}", f"IK-MSTR-{end}", f"POLE-{end}")
    make.rig.pose.bones[f"POLE-{end}"].lock_rotation = (True, True, True)
    path = make.property("Properties", switch, 1.0)
    for bone in names:
        make.constrain(f"ORG-{bone}", "COPY_TRANSFORMS", f"FK-{bone}")
        make.drive(make.constrain(f"ORG-{bone}", "COPY_TRANSFORMS", f"IK-{bone}"), "influence", path)
        make.constrain(f"DEF-{bone}", "STRETCH_TO", f"STR-TIP-{bone}")


def hand_made(name="Hand", *, switched=True):
    """A rig without mechanism: the mesh's bones are controls. Its IK is always on or can be switched (1 is on)."""
    make = _Maker(name)
    limbs = _limbs()
    make.bone("root", "", (0, 0, 0), (0, 0.3, 0), shape=True)
    for bone, parent, *ends in [*_SPINE, *_other_side(_SPINE)]:
        make.bone(bone, parent or "root", *ends, shape=True, deform=True)
    for bones in limbs:
        for place, (bone, parent, *ends) in enumerate(bones):
            make.bone(bone, parent, *ends, shape=switched or place > 2, deform=True)
        end, *ends = bones[2][0], *bones[2][2:]
        make.bone(f"{end}_ik", "root", *ends, shape=True)
        pole = _pole(bones)
        make.bone(f"{end}_pole", "root", pole, _beside(pole), shape=True)
    make.pose()
    for upper, lower, end in ([bone for bone, *_ in bones[:3]] for bones in limbs):
        make.ik(upper, lower, f"{end}_ik", f"{end}_pole")
        copying = make.constrain(end, "COPY_ROTATION", f"{end}_ik")
        make.rig.pose.bones[f"{end}_pole"].lock_rotation = (True, True, True)
        if switched:
            path = make.property("root", f"ik_{end}", 1.0)
            for each in (make.rig.pose.bones[lower].constraints[0], copying):
                make.drive(each, "influence", path)
    bpy.context.view_layer.update()
    return make.rig


def only_ik(name="Only"):
    """The rig without an IK/FK switch for its limbs; bones on IK have no custom shapes."""
    return hand_made(name, switched=False)


def bend_as_on_ik(rig, bones):
    """Bend the joints whose names contain a part by hand, as their IK bends them: FK can bend them in any direction."""
    for row in rig.fabrik.control.carriers:
        if row.hinge and bones in row.name:
            joint = rig.pose.bones[row.name]
            joint["fabrik_limit"], joint["fabrik_hinge_axis"] = "HINGE", row.hinge
            joint["fabrik_hinge"] = [row.hinge_low, row.hinge_high]


def assert_same(one, other):
    """Check that matrices (B, 4, 4) of bones equal others within the allowed error of a body."""
    assert one[:, :3, 3] == pytest.approx(other[:, :3, 3], abs=METERS)
    ours, theirs = (each[:, :3, :3] / np.linalg.norm(each[:, :3, :3], axis=1, keepdims=True) for each in (one, other))
    assert np.degrees(np.linalg.norm(ours - theirs, axis=1)).max() < DEGREES


def stands_as_solved(rig, result):
    """Check every bone of the body on every frame; only the direction for bones whose twist the rig computes itself."""
    (tree,) = result.trees
    skeleton, solution = tree.problem.tree.skeleton, tree.solution
    wanted = forward_kinematics(skeleton, solution.rotations, solution.root_location)
    swings = {row.name for row in rig.fabrik.control.carriers if row.found == "SWINGS"}
    assert len(swings) <= 2
    for row, frame in enumerate(result.frames.tolist()):
        bpy.context.scene.frame_set(frame)
        posed = np.array([rig.pose.bones[name].matrix for name in skeleton.names])
        axes = posed[:, :3, :3] / np.linalg.norm(posed[:, :3, :3], axis=1, keepdims=True)
        assert np.linalg.norm(posed[:, :3, 3] - wanted[row, :, :3, 3], axis=1).max() < METERS
        cosines = np.einsum("jab,jab->jb", axes, wanted[row, :, :3, :3])
        full = [name not in swings for name in skeleton.names]
        off = np.degrees(np.arccos(np.clip(cosines, -1.0, 1.0)))
        assert off[:, 1].max() < DEGREES
        assert off[full].max() < DEGREES
