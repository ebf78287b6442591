"""Restores frame, mode and pose, including poses that are not keyed."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ..settings.rig import rig_settings

_CHANNELS = {"location": 3, "rotation_quaternion": 4, "rotation_axis_angle": 4, "rotation_euler": 3, "scale": 3}


class PoseKeeper:
    """The frame of a scene and the pose of an armature when this object is created.

    Going to another frame and back loses hand poses of animated channels; this restores them.
    """

    def __init__(self, scene: bpy.types.Scene, rig: bpy.types.Object) -> None:
        """Record frame and pose."""
        self._scene, self._rig = scene, rig
        self._frame, self._subframe = scene.frame_current, scene.frame_subframe
        kept = rig_settings(rig).control
        paths = [each.name for each in (*kept.switches, *kept.along) if has_switch(rig, each.name)]
        self._switches = {path: read_switch(rig, path) for path in paths}
        self._pose = {name: read_channel(rig, name, width) for name, width in _CHANNELS.items()}

    def restore(self, keyed: Collection[str] = ()) -> None:
        """Restore frame and pose; the `keyed` bones get their animated pose on that frame.

        If the armature, its bones or the scene no longer exist, nothing is restored.
        """
        with suppress(ReferenceError):
            if len(self._rig.pose.bones) == len(self._pose["location"]):
                self._put_back_all(keyed)

    def _put_back_all(self, keyed: Collection[str]) -> None:
        if keyed or (self._scene.frame_current, self._scene.frame_subframe) != (self._frame, self._subframe):
            # New curves take effect only after the frame is set.
            self._scene.frame_set(self._frame, subframe=self._subframe)
        if not keyed:
            write_switches(self._rig, self._switches)
        rows = [row for row, bone in enumerate(self._rig.pose.bones) if bone.name in keyed]
        changed = [self._put_back(name, width, rows) for name, width in _CHANNELS.items()]
        if any(changed):
            self._rig.update_tag(refresh={"DATA"})

    def _put_back(self, name: str, width: int, keyed_rows: list[int]) -> bool:
        """Restore one channel of all bones except the keyed ones; returns whether that changed anything."""
        present = read_channel(self._rig, name, width)
        wanted = self._pose[name].copy()
        wanted[keyed_rows] = present[keyed_rows]
        if np.array_equal(wanted, present):
            return False
        self._rig.pose.bones.foreach_set(name, wanted.ravel())
        return True


@contextmanager
def in_object_mode(context: bpy.types.Context) -> Iterator[None]:
    """Object mode inside the block; afterwards the active object and its mode are restored."""
    objects = context.view_layer.objects
    active = objects.active
    mode = "OBJECT" if active is None else active.mode
    _set_mode(context, "OBJECT")
    try:
        yield
    finally:
        _set_mode(context, "OBJECT")
        objects.active = active
        _set_mode(context, mode)


def _set_mode(context: bpy.types.Context, mode: Any) -> None:
    active = context.view_layer.objects.active
    if active is not None and active.mode != mode:
        bpy.ops.object.mode_set(mode=mode)


def read_channel(rig: bpy.types.Object, name: str, width: int) -> npt.NDArray[np.float32]:
    """(N, width) a channel of all bones."""
    values = np.empty(len(rig.pose.bones) * width, dtype=np.float32)
    rig.pose.bones.foreach_get(name, values)
    return values.reshape(-1, width)


def has_switch(rig: bpy.types.Object, path: str) -> bool:
    """Whether a number still exists at its path, since its bone may have been renamed."""
    try:
        read_switch(rig, path)
    except (ValueError, KeyError, AttributeError):
        return False
    return True


def read_switch(rig: bpy.types.Object, path: str) -> float:
    """The value of a rig's custom property or other number, by its path."""
    holder, name = _held(rig, path)
    # By its path a custom property is returned in single precision.
    value: float = holder[name] if path.endswith("]") else getattr(holder, name)
    return value


def write_switch(rig: bpy.types.Object, path: str, value: float) -> None:
    """Set a number of a rig, by its path, with its type."""
    holder, name = _held(rig, path)
    if path.endswith("]"):
        holder[name] = type(holder[name])(value)
    else:
        setattr(holder, name, value)
    rig.update_tag()


def write_switches(rig: bpy.types.Object, values: Mapping[str, float]) -> None:
    """Write the values that differ from the current ones."""
    for path, value in values.items():
        if read_switch(rig, path) != value:
            write_switch(rig, path, value)


def _held(rig: bpy.types.Object, path: str) -> tuple[Any, str]:
    """The data-block or bone that has a number, and the number's name there."""
    is_custom = path.endswith("]")
    holder, _, name = path.rpartition("[" if is_custom else ".")
    return rig.path_resolve(holder) if holder else rig, bpy.utils.unescape_identifier(name[1:-2]) if is_custom else name
