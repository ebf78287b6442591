"""Poses of a body over many frames, to the channels of its controls; and whether the rig then stands so."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass

import bpy
import numpy as np

from ...core import forward_kinematics
from ...core.arrays import FloatArray, IntArray
from ...core.model.skeleton import Skeleton
from ...core.rotations import angle_between
from ..rig.rotation_modes import local_rotation
from ..settings.control import FabrikControlRig
from .switches import keyed_switches, set_along
from .writer import ControlWriter, Deviation, deviations, said

# Radians: a control that is turned by less stays as it is.
_STILL = 1e-5
# So many frames are looked at for whether the rig stands as it was solved.
_LOOKED_AT = 9


@dataclass(frozen=True, eq=False)
class TakeChannels:
    """What channels hold over F frames: those of bones, or of a control rig's controls.

    rotations: by bone or control (F, 4) local rotations. bodies: the bone that is solved of each. locations: by what is
    moved (F, 3) what its location holds. switches: by path the value of what hands limbs from IK to FK. left: sentences
    on limbs that could not stay on IK.
    """

    rotations: Mapping[str, FloatArray]
    bodies: Mapping[str, str]
    locations: Mapping[str, FloatArray]
    switches: Mapping[str, float]
    left: tuple[str, ...] = ()


def control_channels(
    context: bpy.types.Context,
    rig: bpy.types.Object,
    kept: FabrikControlRig,
    skeleton: Skeleton,
    rotations: FloatArray,
    heads: FloatArray,
) -> Generator[float, None, TakeChannels]:
    """The channels for (F, J, 4) local rotations and (F, 3) root heads of a tree of the body; limbs go to FK now.

    Those that stay on IK have their IK controls placed, frame by frame: these are the steps. Of controls that carry no
    bone that is solved those are there that must move for the body to stand as wanted.
    """
    writer = ControlWriter(context.view_layer.update, rig, kept, skeleton, baked=True)
    model = writer.made_ready()
    pose = model.pose(forward_kinematics(skeleton, rotations, heads))
    found = {name: pose.rotations[:, place] for place, name in enumerate(model.controls)}
    present = {name: local_rotation(rig.pose.bones[name]) for name in found}
    moved = {name: turned for name, turned in found.items() if angle_between(turned, present[name]).max() > _STILL}
    bodies = {row.control: row.name for row in kept.carriers}
    locations = {} if pose.place is None else {model.place: pose.place}
    placed, left = yield from _placed(rig, writer, rotations, heads)
    idle = {row.control for row in kept.carriers if row.switch in writer.limbs}
    moved = {name: turned for name, turned in moved.items() if name not in idle}
    moved |= {name: channels[:, 3:] for name, channels in placed.items()}
    locations |= {name: channels[:, :3] for name, channels in placed.items()}
    bodies |= {name: kept.controls[name].stands_for for name in placed}
    switches = keyed_switches(
        kept, set_along(kept, writer.on_fk | {path: kept.switches[path].ik for path in writer.limbs})
    )
    return TakeChannels(moved, bodies, locations, switches, tuple(left))


def _placed(
    rig: bpy.types.Object, writer: ControlWriter, rotations: FloatArray, heads: FloatArray
) -> Generator[float, None, tuple[dict[str, FloatArray], list[str]]]:
    """By IK control (F, 7) its location and rotation over the frames, and sentences on limbs that were taken out.

    A limb that is not where it should be on some frame goes to FK, on all of them. The rig is posed, and left so.
    """
    found = {name: np.empty((len(heads), 7)) for limb in writer.limbs.values() for name in limb.controls}
    left = []
    writer.put_on_ik()
    for row in range(len(heads) if found else 0):
        writer.write(rotations[row], heads[row], exactly=True)
        left += [f"{sentence} on one frame" for sentence in writer.leave_ik()]
        staying = {name for limb in writer.limbs.values() for name in limb.controls}
        found = {name: channels for name, channels in found.items() if name in staying}
        for name, channels in found.items():
            bone = rig.pose.bones[name]
            channels[row, :3], channels[row, 3:] = bone.location, local_rotation(bone)
        yield row / len(heads)
    return found, left


def off_their_channels(
    context: bpy.types.Context,
    rig: bpy.types.Object,
    kept: FabrikControlRig,
    skeleton: Skeleton,
    wanted: FloatArray,
    frames: IntArray,
) -> list[str]:
    """Go to some of F frames and look whether the body stands at (F, J, 4, 4); a sentence on each bone that does not.

    The scene is left on another frame.
    """
    worst: dict[str, Deviation] = {}
    for row in np.unique(np.linspace(0, len(frames) - 1, _LOOKED_AT).astype(int)).tolist():
        context.scene.frame_set(int(frames[row]))
        for each in deviations(rig, kept, skeleton.names, wanted[row]):
            worst[each.bone] = max(worst.get(each.bone, each), each, key=lambda one: one.distance)
    return [said(kept, each) for each in worst.values()]
