"""Keys a pose: the bones posed since their last key, the whole body, or the selected bones."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np
from bpy.types import Context, Object, PoseBone

from ...core.channels import from_channels, to_channels
from ...core.errors import FabrikError
from ..control.posed_rig import posed_rig
from ..control.writer import held_by_ik
from ..goals.effectors import check_followed
from ..goals.problem import find_problems
from ..rig.armature import RigError, local_rotation, property_name
from ..rig.keyframes import RigCurves, action_frame, check_action, curves
from ..rig.keying import key_channels, key_in_steps, locked_note, why_no_key
from ..rig.pose_writer import HeldChannels, read_switch
from ..settings.control import solved_parents
from ..settings.in_use import add_item
from ..settings.rig import rig_settings
from ..settings.selection import picked_bones
from ..settings.why_not import enabled_effectors

# A channel that differs by less from its keys counts as unchanged.
_ROUNDING: Final = 1e-6
# A bone and the name of one of its properties.
_Channel: TypeAlias = tuple[str, str]


def note_posed(
    rig: Object, changed: Mapping[_Channel, Sequence[float]], switched: Mapping[str, float] = MappingProxyType({})
) -> None:
    """Record that bones have been posed, and that their poses have no keys yet.

    changed: former values by bone and property. switched: former values of switches, by path. They are ignored for
    bones and switches that are already recorded.
    """
    unkeyed = rig_settings(rig).unkeyed
    for name in dict.fromkeys(bone for bone, _ in changed):
        if name not in unkeyed:
            bone = rig.pose.bones[name]
            channel = property_name(bone.rotation_mode)
            turned = from_channels(bone.rotation_mode, changed.get((name, channel), getattr(bone, channel)))
            add_item(unkeyed, name=name, rotation=turned, location=changed.get((name, "location"), bone.location))
    for path, value in switched.items():
        if path not in unkeyed:
            add_item(unkeyed, name=path, value=value)


def forget_posed(rig: Object, bones: Iterable[str]) -> None:
    """Remove keyed bones and switches from the record of what drags have changed."""
    unkeyed = rig_settings(rig).unkeyed
    for name in bones:
        if name in unkeyed:
            unkeyed.remove(unkeyed.find(name))


def key_pose(context: Context, rig: Object, bones: str = "POSED") -> list[str]:
    """Insert keys on the current frame; returns the names of the bones that got one.

    Args:
        context: its scene and selection are used.
        rig: the armature.
        bones: "POSED": the bones changed by drags since their last key, or posed by effectors. "WHOLE": all bones that
            can be keyed; on a control rig, the controls in use. "SELECTED": the selected bones.

    Raises:
        FabrikError: if there is nothing to key, the action cannot be written, a switch of a control rig is missing, or
            the active keying set has none of those bones or a missing property; nothing is changed.
    """
    check_action(rig, new=False, tweaked=True)
    posed, read = posed_rig(rig), RigCurves(rig, curves(rig))
    frame = action_frame(rig, context.scene.frame_current_final)
    if bones == "SELECTED":
        chosen: list[_Channel] = [pair for bone in picked_bones(context, rig) for pair in _all_channels(bone)]
    elif bones == "WHOLE":
        parents, left = solved_parents(rig), {**posed.owned, **posed.frozen}
        free = [name for name in parents if name not in left]
        chosen = list(posed.keyed(free, [name for name in free if not parents[name]]))
    else:
        chosen = []
        if enabled_effectors(rig):
            # Key the channels that Solve and Live write.
            check_followed(context.scene, rig)
            trees = find_problems(rig, limbs=held_by_ik(rig, context.view_layer.update))
            roots = [problem.tree.skeleton.names[0] for problem in trees if problem.free_root]
            written = (problem.tree.skeleton.names[bone] for problem in trees for bone in problem.written)
            chosen += posed.keyed(list(written), roots)
            chosen += [(bone, "scale") for problem in trees for bone in problem.slides]
        for pair, was in _before(rig).items():
            bone = rig.pose.bones[pair[0]]
            then = read.values(pair[0], np.array([frame]), pair[1])[0] if read.channel(*pair) else was
            if pair in _all_channels(bone) and np.abs(np.array(getattr(bone, pair[1])) - then).max() > _ROUNDING:
                chosen.append(pair)
        chosen = list(dict.fromkeys(chosen))
    if not chosen:
        raise RigError(
            f"No bone of {rig.name!r} was posed since its last key: drag one, or set Bones to Key to Whole Body"
        )
    switches = posed.switches({bone for bone, _ in chosen})
    turned = dict.fromkeys(bone for bone, channel in chosen if channel not in ("location", "scale"))
    held = HeldChannels(rig, turned)
    for bone in [rig.pose.bones[name] for name in turned if read.channel(name)]:
        # Use the values nearest to the existing keys. Otherwise the rotation between two keys might take the longer
        # path.
        near = read.values(bone.name, np.array([frame]))[0]
        values = to_channels(bone.rotation_mode, local_rotation(bone)[None], previous=near)
        setattr(bone, property_name(bone.rotation_mode), values[0])
    try:
        keyed = key_channels(context, rig, chosen, automatic=False, before=_before(rig))
        if not keyed:
            raise RigError(locked_note(rig, chosen) or why_no_key(context, automatic=False))
    except FabrikError:
        held.restore()
        raise
    switched = {kept.name: kept.value for kept in rig_settings(rig).unkeyed if kept.name not in rig.pose.bones}
    for path in switches:
        key_in_steps(context, rig, path, switched.get(path, read_switch(rig, path)))
    forget_posed(rig, [*keyed, *switches])
    return keyed


def _before(rig: Object) -> dict[_Channel, tuple[float, ...]]:
    """The former values of the channels of bones posed since their last key."""
    found: dict[_Channel, tuple[float, ...]] = {}
    for kept in rig_settings(rig).unkeyed:
        bone: PoseBone | None = rig.pose.bones.get(kept.name)
        if bone is not None:
            mode, rotation = bone.rotation_mode, np.array(kept.rotation, dtype=np.float64)
            channel = property_name(mode)
            values = to_channels(mode, rotation[None], previous=np.array(getattr(bone, channel)))
            found[kept.name, channel] = tuple(values[0].tolist())
            found[kept.name, "location"] = tuple(kept.location)
    return found


def _all_channels(bone: PoseBone) -> list[_Channel]:
    """The rotation channel of a bone, and its location channel if it is not connected."""
    channels = [property_name(bone.rotation_mode), *(() if bone.bone.use_connect else ("location",))]
    return [(bone.name, channel) for channel in channels]
