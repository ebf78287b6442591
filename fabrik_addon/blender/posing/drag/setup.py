"""The setup of a drag: the dragged bones, those that follow, and those that are held or skipped."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import bpy
import numpy as np

from ....core import Effector
from ....core.arrays import FloatArray
from ....core.model.prismatic import moved_with
from ...control.posed_rig import posed_rig
from ...goals.effectors import closes, core_effector
from ...goals.goals import root_mode
from ...goals.loops import Partner
from ...goals.pins import pins
from ...limits.mirror import opposite_bone
from ...rig.armature import RigError, Tree, check_unscaled, tree_below
from ...rig.locks import OTHERWISE
from ...rig.posture_masses import keeps_orientation, trunk_of_animal
from ...rig.spaces import BONE_HEAD, armature_point
from ...rig.stretch import present_factors, stretched
from ...settings.effector import FabrikEffector
from ...settings.rig import rig_settings
from ...settings.why_not import enabled_effectors
from .part import DragPart, Grip

_ALONG: Final = np.array((1.0, 1.0, 1.0))
_MIRRORED: Final = np.array((-1.0, 1.0, 1.0))


@dataclass(frozen=True)
class DragSettings:
    """Settings of a drag.

    Attributes:
        reach: "WHOLE" rig, to the nearest "PIN", or a number of "BONES".
        bones: that number, the dragged bone included.
        root: "AUTO", "FIXED", "FREE" or "FOLLOW"; None for the rig's own setting.
        keep_orientation: feet and heads keep their orientation in the world while they are dragged.
        others: bones that are dragged by the same translation, except those that are pinned, that constraints move, and
            that are above or below another dragged bone.
    """

    reach: str = "WHOLE"
    bones: int = 3
    root: str | None = None
    keep_orientation: bool = True
    others: tuple[str, ...] = ()


class DragSetup:
    """An armature at the start of a drag.

    Attributes:
        point, settings: which end of the bones is dragged, and how.
        dragged: the dragged bones, the first one first, with (3,) their factors on the translation.
        owned: bones that constraints move, with the reason: nothing above them follows.
        frozen: bones that cannot be keyed, with the reason: they follow rigidly.
    """

    def __init__(self, armature: bpy.types.Object, bone: str, point: str, settings: DragSettings) -> None:
        """Read the armature. Raises RigError if the bone cannot be dragged."""
        self._armature, self.point, self.settings = armature, point, settings
        self._posed = posed_rig(armature)
        self.owned, self.frozen = self._posed.owned, self._posed.frozen
        if bone in self.owned:
            raise RigError(f"Bone {bone!r} can't be dragged: {self.owned[bone]}; {OTHERWISE}")
        self.dragged: dict[str, FloatArray] = {}
        left_out = {*self.owned, *(pin.bone for pin in pins(armature))}
        others = [name for name in settings.others if name not in left_out]
        # If a whole limb is selected, its end is dragged.
        others.sort(key=lambda name: -len(armature.pose.bones[name].parent_recursive))
        for name in (bone, *others):
            if name in self._lines():
                continue
            self.dragged[name] = _ALONG
            other = opposite_bone(armature, armature.pose.bones[name]) if armature.pose.use_mirror_x else None
            if other is not None and other.name not in self.owned and other.name not in self._lines():
                self.dragged[other.name] = _MIRRORED
        self._held = [pin for pin in pins(armature) if pin.bone not in self.dragged]
        self._loops = [
            (each, partner)
            for each in enabled_effectors(armature)
            if (partner := closes(armature, each)) and each.bone in armature.pose.bones and each.bone != partner.bone
        ]
        self._trees = {name: tree for tree in self._present_trees() for name in tree.skeleton.names}

    def _lines(self) -> set[str]:
        """The dragged bones, and all above and below them."""
        bones = [self._armature.pose.bones[name] for name in self.dragged]
        return {each.name for bone in bones for each in (bone, *bone.parent_recursive, *bone.children_recursive)}

    def _present_trees(self) -> Iterator[Tree]:
        """The rig's bones at their current lengths, since dragging does not stretch them."""
        return (stretched(self._armature, tree) for tree in self._posed.trees())

    @property
    def root(self) -> str | None:
        """How the root moves; None for the rig's own setting."""
        return self.settings.root

    @property
    def pinned(self) -> dict[str, str]:
        """The pinned bones, with their displayed names."""
        return {pin.bone: pin.shown_bone for pin in self._held}

    @cached_property
    def tops(self) -> list[str]:
        """The uppermost bones that follow; none of them is below another one. The first is that of the first bone."""
        found = dict.fromkeys(self._top(bone) for bone in self.dragged)
        bones = self._armature.pose.bones
        tops = [top for top in found if not any(above.name in found for above in bones[top].parent_recursive)]
        path = self._path(next(iter(self.dragged)))
        return sorted(tops, key=lambda top: top not in path)

    def parts(self, *, turning: bool) -> list[DragPart]:
        """The parts of the rig that follow; turning: whether the dragged bones get a target rotation."""
        return [self._part(top, turning=turning) for top in self.tops]

    def left_alone(self, parts: Sequence[DragPart]) -> list[str]:
        """Notes on bones that cannot follow since something else moves them."""
        way = {name for part in parts for name in part.on_the_way}
        alone = {name: reason for name, reason in self.frozen.items() if name in way}
        for top in self.tops:
            above = self._armature.pose.bones[top].parent
            if above is not None and above.name in self.owned:
                alone[above.name] = self.owned[above.name]
        return [f"Bone {name!r} was not changed: {reason}" for name, reason in alone.items()]

    def _top(self, bone: str) -> str:
        """The uppermost bone that follows when a bone is dragged."""
        path = self._path(bone)
        if self.settings.reach == "PIN":
            pinned = {pin.bone for pin in self._held}
            places = [place for place, name in enumerate(path[:-1]) if name in pinned]
            return path[places[-1] + 1] if places else path[0]
        if self.settings.reach == "BONES":
            # A bone that is held by its head does not rotate itself.
            turning = path[:-1] if self.point == "HEAD" and len(path) > 1 else path
            return turning[max(0, len(turning) - self.settings.bones)]
        return path[0]

    def _path(self, bone: str) -> list[str]:
        """The bones that may follow a bone, uppermost first, itself included."""
        skeleton = self._trees[bone].skeleton
        path = [skeleton.names[each] for each in skeleton.path(skeleton.index(bone))]
        first = max((place + 1 for place, name in enumerate(path) if name in self.owned), default=0)
        return path[first:]

    def _part(self, top: str, *, turning: bool) -> DragPart:
        """The part of the rig from one bone down, with all dragged or pinned bones on it."""
        tree = tree_below(self._trees[top], self._posed.stands(self._trees[top]), top, self.owned, self.frozen)
        names = tree.skeleton.names
        root = self._root_mode(top, names)
        leads = top in self.dragged and root != "FIXED"
        grips = [
            self._grip(bone, turning=turning and not leads, stays=bone == top and root == "FIXED")
            for bone in self.dragged
            if bone in names
        ]
        if leads and (turning or not self._held or trunk_of_animal(self._armature)):
            grip = grips[0]
            effector = replace(grip.effector, rotation_weight=1.0, priority=grip.effector.priority - 1)
            grips.append(replace(grip, effector=effector, armature_position=np.full(3, np.nan)))
        grips += [_pin_grip(pin) for pin in self._held if pin.bone in names]
        grips += [grip for each, partner in self._loops for grip in self._loop_grips(each, partner, names)]
        by_ik = self._posed.held_by_ik([grip.effector.bone for grip in grips])
        grips += [self._ik_grip(end) for end in by_ik if end in names]
        skeleton = self._trees[top].skeleton
        ends = {end for grip in grips for end in (grip.effector.bone, grip.effector.target_bone) if end}
        way = [skeleton.names[bone] for end in ends for bone in skeleton.path(skeleton.index(end))]
        check_unscaled(self._armature, way)
        factors = present_factors(self._armature, names)
        grips = [replace(grip, effector=moved_with([grip.effector], factors)[0]) for grip in grips]
        # If the number of bones is set, no others should follow; a body without support rotates as a whole.
        left = {bone for bones in by_ik.values() for bone in bones}
        follows = self.settings.reach == "WHOLE"
        hangs = follows and rig_settings(self._armature).free_limbs_hang and (bool(self._held) or not leads)
        return DragPart(self._armature, tree, grips, self.frozen, root, follows=follows, hangs=hangs, left=left)

    def _root_mode(self, top: str, names: Sequence[str]) -> str:
        """How the uppermost of the named bones moves; one that is not a root, or is locked, does not."""
        if top in self.frozen or not self._posed.may_move_freely(top):
            return "FIXED"
        pinned = any(pin.bone in names for pin in self._held)
        dragged = top if top in self.dragged else next(iter(self.dragged))
        return root_mode(self._armature, pinned=pinned, dragged=dragged, top=top, setting=self.settings.root)

    @property
    def _kept(self) -> list[FabrikEffector]:
        """The constraints of the dragged bones: pins and closed loops."""
        return [*self._held, *(effector for effector, _ in self._loops)]

    def _loop_grips(self, effector: FabrikEffector, partner: Partner, names: Sequence[str]) -> Iterator[Grip]:
        """The grips that keep a loop closed: on both sides, or on the following side if the other one does not move."""
        one = replace(core_effector(effector), rotation_weight=0.0)
        other = Effector(partner.bone, partner.offset, one.weight, priority=one.priority)
        if one.bone in names and other.bone in names:
            closed = replace(one, target_bone=partner.bone, target_offset=partner.offset)
            yield Grip(closed, np.zeros(3))
        elif one.bone in names:
            yield self._still(one, other)
        elif other.bone in names:
            yield self._still(other, one)

    def _still(self, follower: Effector, leader: Effector) -> Grip:
        """A grip that holds a point at the current position of another point."""
        bone = self._armature.pose.bones[leader.bone]
        point = "TAIL" if leader.offset is None else "OFFSET"
        place = np.array(armature_point(bone, point, leader.offset or BONE_HEAD), dtype=np.float64)
        return Grip(follower, place)

    def _grip(self, bone: str, *, turning: bool, stays: bool) -> Grip:
        """The grip on a dragged bone, released before any pin; stays: whether the bone's head cannot move."""
        pose_bone = self._armature.pose.bones[bone]
        kept = keeps_orientation(self._armature, bone) if self.settings.keep_orientation and not stays else 0.0
        effector = Effector(
            bone,
            offset=None if self.point == "TAIL" else BONE_HEAD,
            rotation_weight=1.0 if turning else kept,
            priority=1 + max((each.priority for each in self._kept), default=-1),
        )
        position = np.array(armature_point(pose_bone, self.point), dtype=np.float64)
        rotation = np.array(pose_bone.matrix.to_quaternion(), dtype=np.float64)
        return Grip(effector, position, rotation, self.dragged[bone])

    def _ik_grip(self, bone: str) -> Grip:
        """A grip that keeps a limb's end at its IK control, as far as the drag allows."""
        priority = 2 + max((each.priority for each in self._kept), default=-1)
        place = np.array(self._armature.pose.bones[bone].head, dtype=np.float64)
        return Grip(Effector(bone, offset=BONE_HEAD, priority=priority), place, is_pin=False)


def _pin_grip(pin: FabrikEffector) -> Grip:
    """The grip of a pinned bone."""
    place, turned = (np.array(each, dtype=np.float64) for each in (pin.pin_location, pin.pin_rotation))
    return Grip(core_effector(pin), place, turned)
