"""Finds and sets IK/FK switches. Custom properties in drivers are candidates; trials show which are switches."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from bpy.types import Context, Object, PoseBone

from ..rig.keyframes import bone_in_path, bone_path
from ..rig.pose_writer import moved_by, read_switch, write_switches
from ..settings.control import FabrikCarrier, FabrikControlRig, moves

# A constraint of at least this influence overrides those before it.
_ON: Final = 0.9
_COPIES: Final = ("COPY_TRANSFORMS", "COPY_ROTATION")
# The end of an influence's data path. It is used as a switch if IK is always on.
_INFLUENCE: Final = ".influence"
_TAKES_OVER: Final = ("COPY_TRANSFORMS", "COPY_ROTATION", "ARMATURE", "CHILD_OF", "IK")


def dependents(rig: Object) -> dict[str, set[str]]:
    """For each bone, the bones that may follow it, and itself."""
    after = {bone.name: set[str]() for bone in rig.pose.bones}
    pairs = [(bone.parent.name, bone.name) for bone in rig.data.bones if bone.parent]
    for bone in rig.pose.bones:
        for constraint in bone.constraints:
            moved = [each.name for each in moved_by(bone, constraint)]
            # All bones of a chain rotate together.
            pairs += [(leader, each) for leader in (*targets_of(constraint, rig), *moved) for each in moved]
    for curve in rig.animation_data.drivers if rig.animation_data else ():
        driven = bone_in_path(curve.data_path)
        for target in (each for variable in curve.driver.variables for each in variable.targets):
            if target.id in (rig, rig.data):
                pairs.append((bone_in_path(target.data_path) or target.bone_target, driven))
    for leader, follower in pairs:
        if leader in after and follower in after:
            after[leader].add(follower)
    reached = {}
    for name in after:
        seen, waiting = {name}, [name]
        while waiting:
            new = after[waiting.pop()] - seen
            seen |= new
            waiting += new
        reached[name] = seen
    return reached


def batches(controls: Sequence[str], after: Mapping[str, set[str]]) -> list[list[str]]:
    """The controls in groups, such that no bone follows two controls of a group."""
    # Each group, and the bones that follow its controls.
    made: list[tuple[list[str], set[str]]] = []
    for control in sorted(controls, key=lambda name: (-len(after[name]), name)):
        group, moved = next((each for each in made if each[1].isdisjoint(after[control])), ([], set()))
        if not group:
            made.append((group, moved))
        group.append(control)
        moved |= after[control]
    return [group for group, _ in made]


def targets_of(constraint: Any, rig: Object) -> list[str]:
    """The rig's own bones that a constraint uses."""
    found = [each.subtarget for each in getattr(constraint, "targets", ()) if each.target == rig]
    if getattr(constraint, "target", None) == rig:
        found.append(constraint.subtarget)
    if getattr(constraint, "pole_target", None) == rig:
        found.append(constraint.pole_subtarget)
    return [name for name in found if name]


@dataclass(frozen=True)
class Switch:
    """A number from 0 to 1 that switches a limb between IK and FK: a custom property, or the influence of an IK.

    It is identified by its path from the armature object.

    bones: the bones whose constraints it drives. takes_over: the bones that they follow at the switch's other value.
    along: paths that are set to the same value. only_ik: whether the rig has no FK for these bones; then they are on FK
    only while they are posed.
    """

    path: str
    bones: frozenset[str]
    takes_over: frozenset[str] = frozenset()
    along: tuple[str, ...] = ()
    only_ik: bool = False

    def values(self, value: float) -> dict[str, float]:
        """The values to set, by path."""
        return dict.fromkeys((self.path, *self.along), value)


def possible_switches(context: Context, rig: Object) -> list[Switch]:
    """The properties that make bones follow other bones if their value changes from 0 to 1, or from 1 to 0."""
    driving = _driving(rig)
    values = {path: read_switch(rig, path) for path in driving}
    write_switches(rig, {path: round(value) for path, value in values.items()})
    before = _leaders(context, rig)
    write_switches(rig, {path: 1 - round(value) for path, value in values.items()})
    after = _leaders(context, rig)
    write_switches(rig, values)
    context.view_layer.update()
    found = []
    for path, bones in sorted(driving.items()):
        # A bone without an active constraint follows itself.
        gained = {target for bone in bones for target in after[bone] or (bone,) if after[bone] != before[bone]}
        if gained:
            found.append(Switch(path, frozenset(bones), frozenset(gained)))
    return found


def permanent_iks(rig: Object) -> list[Switch]:
    """The IK constraints that are always on, as switches, because their influence can release the bones of the chain.

    Each switch includes the influence of a constraint by which the limb's end copies the same bone.
    """
    driven = {curve.data_path for curve in rig.animation_data.drivers} if rig.animation_data else set()
    lone: list[tuple[PoseBone, Any, str]] = []
    for bone in rig.pose.bones:
        for each in bone.constraints:
            path = each.path_from_id() + _INFLUENCE
            if moves(each) and path not in driven and getattr(each, "target", None) == rig:
                lone.append((bone, each, path))
    found = []
    for bone, ik, path in [row for row in lone if row[1].type == "IK"]:
        along = [row for row in lone if row[1].type in _COPIES and row[1].subtarget == ik.subtarget]
        along = [row for row in along if bone in row[0].parent_recursive]
        bones = frozenset({each.name for each in moved_by(bone, ik)} | {row[0].name for row in along})
        found.append(Switch(path, bones, bones, tuple(row[2] for row in along), only_ik=True))
    return found


def custom_numbers(rig: Object) -> list[str]:
    """The paths of the numbers that may be changed in trials of the rig."""
    stretching = [bone_path(bone.name, "ik_stretch") for bone in rig.pose.bones if bone.ik_stretch > 0.0]
    return sorted({*_driving(rig), *(path for each in permanent_iks(rig) for path in each.values(0.0)), *stretching})


def limbs_of(setup: FabrikControlRig) -> dict[str, list[FabrikCarrier]]:
    """The bones of each limb, from its root to its end, by the path of the limb's IK/FK switch."""
    limbs: dict[str, list[FabrikCarrier]] = {}
    for row in setup.carriers:
        if row.switch:
            limbs.setdefault(row.switch, []).append(row)
    return limbs


def with_linked_values(setup: FabrikControlRig, values: Mapping[str, float]) -> dict[str, float]:
    """The values of some limbs' switches, and of the properties that are set with them, by path."""
    found = {setup.switches[limb].path: value for limb, value in values.items()}
    for row in setup.along:
        if row.switch in values:
            found[row.name] = row.ik if values[row.switch] == setup.switches[row.switch].ik else row.fk
    return found


def keyed_switches(setup: FabrikControlRig, values: Mapping[str, float]) -> dict[str, float]:
    """The switches to key, so that limbs are on the same controls when the animation is played.

    A limb without FK is always on IK, and values set along with a switch have no effect on FK.
    """
    idle = {row.name: row.fk for row in setup.along}
    return {path: value for path, value in values.items() if not path.endswith(_INFLUENCE) and value != idle.get(path)}


def _driving(rig: Object) -> dict[str, set[str]]:
    """The bones whose constraints a custom property from 0 to 1 drives, by path of the property.

    If another property drives such a property, the driving one is listed instead.
    """
    found: dict[str, set[str]] = {}
    drivers = list(rig.animation_data.drivers) if rig.animation_data else []
    sources: dict[str, list[Any]] = {
        curve.data_path: [each for variable in curve.driver.variables for each in variable.targets] for curve in drivers
    }
    for curve in drivers:
        name, _, number = curve.data_path.rpartition(".")
        bone: PoseBone | None = rig.pose.bones.get(bone_in_path(curve.data_path))
        if bone is None or ".constraints[" not in curve.data_path:
            continue
        constraint: Any = None
        if number in ("influence", "mute"):
            with suppress(ValueError):
                constraint = rig.path_resolve(name)
        moved = {bone.name} if constraint is None else {each.name for each in moved_by(bone, constraint)}
        for target in sources[curve.data_path]:
            value: Any = None
            others = sources.get(target.data_path, [])
            source = others[0] if len(others) == 1 else target
            if source.id == rig and source.data_path.endswith('"]'):
                with suppress(KeyError, ValueError):
                    value = read_switch(rig, source.data_path)
            if isinstance(value, (bool, int, float)) and 0.0 <= value <= 1.0:
                found.setdefault(source.data_path, set()).update(moved)
    return found


def _leaders(context: Context, rig: Object) -> dict[str, tuple[str, ...]]:
    """For each bone, the bones that it follows through the last of its overriding constraints."""
    rig.update_tag()
    context.view_layer.update()
    evaluated = rig.evaluated_get(context.evaluated_depsgraph_get())
    found: dict[str, tuple[str, ...]] = {}
    for bone, own in zip(evaluated.pose.bones, rig.pose.bones, strict=True):
        found.setdefault(bone.name, ())
        for constraint, mine in zip(bone.constraints, own.constraints, strict=True):
            if constraint.type in _TAKES_OVER and not constraint.mute and constraint.influence > _ON:
                found.update((each.name, tuple(targets_of(mine, rig))) for each in moved_by(own, mine))
    return found
