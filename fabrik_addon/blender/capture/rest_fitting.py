"""Changes a rig's rest pose to the proportions of a recorded person."""

from collections.abc import Iterable, Iterator, Sequence

import bpy
import numpy as np
from mathutils import Vector

from ...core import Skeleton
from ..rig.armature import RigError
from ..rig.pose_keeper import in_object_mode


def check_fittable(rig: bpy.types.Object) -> None:
    """Raise RigError if a rig's bones can't be edited."""
    if rig.override_library is not None or rig.data.library is not None or rig.data.override_library is not None:
        raise RigError(
            f"The bones of {rig.name!r} are linked from another file: set Proportions to an option other than Fit Rig"
        )
    if rig.data.users > 1:
        raise RigError(f"The armature of {rig.name!r} is used by {rig.data.users} objects: make it single-user first")


def fit_rest(context: bpy.types.Context, rig: bpy.types.Object, skeletons: Sequence[tuple[Skeleton, float]]) -> None:
    """Move the heads and tails of a rig's bones to their positions in skeletons, divided by a scale; keeps rolls.

    Bones that are in no skeleton do not change. Mode, selection and active object are as before.
    """
    places = dict(_places(skeletons))
    with in_object_mode(context):
        context.view_layer.objects.active = rig
        bpy.ops.object.mode_set(mode="EDIT")
        for bone in rig.data.edit_bones:
            if bone.name in places:
                bone.head, bone.tail = places[bone.name]


def _places(skeletons: Iterable[tuple[Skeleton, float]]) -> Iterator[tuple[str, tuple[Vector, Vector]]]:
    """Each bone's head and tail in armature space."""
    for skeleton, scale in skeletons:
        rest = np.array(skeleton.rest)
        heads = rest[:, :3, 3] / scale
        tails = heads + rest[:, :3, 1] * (skeleton.lengths / scale)[:, None]
        for name, head, tail in zip(skeleton.names, heads, tails, strict=True):
            yield name, (Vector(head), Vector(tail))
