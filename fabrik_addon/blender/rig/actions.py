"""Actions, their slots and NLA strips: the only module that knows how Blender stores curves in an action.

Each animated data-block has a slot, and its curves are in the slot's channel bag, on the only strip of the only layer.
"""

from collections.abc import Collection
from typing import Any

import bpy
import numpy as np

from ...core.errors import FabrikError


class KeyframeError(FabrikError):
    """An action that cannot be written; the message names it."""


def new_action(owner: bpy.types.Object, name: str) -> bpy.types.Action:
    """A new, empty action that animates `owner`. Its former action is kept in the file, even if unused.

    Raises KeyframeError if the owner's action cannot be replaced.
    """
    animation = _animation_data(owner)
    previous = animation.action
    action = bpy.data.actions.new(name)
    animation.action = action
    if previous is not None and previous.library is None and previous.users == 0:
        previous.use_fake_user = True
    animation.action_slot = _new_slot(action, owner)
    return action


def check_action(owner: bpy.types.Object, *, new: bool) -> None:
    """Raise KeyframeError, with the reason, if the owner's action cannot be replaced (`new`) or written."""
    _check_owner(owner)
    animation = owner.animation_data
    if not new and animation is not None and animation.action is not None and not animation.action.is_editable:
        name = animation.action.name
        raise KeyframeError(f"Action {name!r} is linked from another file: bake to a new action instead")


def check_not_shared(owner: bpy.types.Object) -> None:
    """Raise KeyframeError if another object is animated by the owner's current slot, since it would change too."""
    animation = owner.animation_data
    slot: Any = None if animation is None else animation.action_slot
    others = [] if slot is None else [each.name for each in slot.users() if each != owner]
    if others:
        name = animation.action.name
        raise KeyframeError(
            f"Action {name!r} also animates {others[0]!r} with the same slot: bake to a new action instead"
        )


def new_action_like(owner: bpy.types.Object, name: str, *, without: Collection[str] = ()) -> bpy.types.Action:
    """A new action that animates `owner` like its current one, without the data paths in `without`.

    The current action is kept in the file. Raises KeyframeError if it cannot be replaced.
    """
    animation = _animation_data(owner)
    previous = animation.action
    if previous is None:
        return new_action(owner, name)
    slot = animation.action_slot
    action = previous.copy()
    action.name = name
    animation.action = action
    previous.use_fake_user = previous.use_fake_user or (previous.library is None and previous.users == 0)
    animation.action_slot = _new_slot(action, owner) if slot is None else action.slots[slot.identifier]
    channels = channels_of(action, owner)
    for curve in [curve for curve in channels.fcurves if curve.data_path in without]:
        channels.fcurves.remove(curve)
    return action


def current_or_new_action(owner: bpy.types.Object, name: str) -> bpy.types.Action:
    """The action that animates `owner`, with a slot for it; a new one called `name` if there is none.

    Raises KeyframeError if the action cannot be written, such as one linked from another file.
    """
    animation = _animation_data(owner)
    action = animation.action
    if action is None:
        return new_action(owner, name)
    check_action(owner, new=False)
    if animation.action_slot is None:
        animation.action_slot = _own_slot(action, owner)
    return action


def new_strip_action(owner: bpy.types.Object, name: str) -> bpy.types.Action:
    """A new, empty action for `owner`, which is not assigned to it. It becomes a strip once it has keys.

    Raises KeyframeError if the owner's animation cannot be changed.
    """
    _check_owner(owner)
    action = bpy.data.actions.new(name)
    _new_slot(action, owner)
    return action


def add_strip(owner: bpy.types.Object, action: bpy.types.Action) -> bpy.types.NlaStrip:
    """Play an action as an NLA strip on a new track above all others, on the frames of its keys.

    The owner's current action, which would hide every strip, becomes a strip below it, as with Blender's Push Down.
    """
    animation = _animation_data(owner)
    present = animation.action
    if present is not None and present != action:
        # Make the current action a strip with the same influence, blending and extrapolation, so that it plays the
        # same.
        slot, influence = animation.action_slot, animation.action_influence
        blend_type, extrapolation = animation.action_blend_type, animation.action_extrapolation
        animation.action = None
        strip = _new_strip(animation, present, slot)
        strip.blend_type, strip.extrapolation = blend_type, extrapolation
        if influence < 1.0:
            # A strip uses its own influence only if the influence is animated. This sets the value of its single key.
            strip.influence = influence
            strip.use_animated_influence = True
    return _new_strip(animation, action, _own_slot(action, owner))


def channels_of(action: bpy.types.Action, owner: bpy.types.Object) -> Any:
    """The channel bag of `action` for `owner`, with its curves and groups; made if it does not exist."""
    layer = action.layers[0] if action.layers else action.layers.new("Layer")
    strip: Any = layer.strips[0] if layer.strips else layer.strips.new(type="KEYFRAME")
    return strip.channelbag(_own_slot(action, owner), ensure=True)


def _animation_data(owner: bpy.types.Object) -> bpy.types.AnimData:
    """The owner's animation data, made if it does not exist, with an action that may be replaced."""
    _check_owner(owner)
    return owner.animation_data or owner.animation_data_create()


def _new_strip(
    animation: bpy.types.AnimData, action: bpy.types.Action, slot: bpy.types.ActionSlot | None
) -> bpy.types.NlaStrip:
    """A strip of an action, on a new track above all others, on the frames of its keys."""
    track = animation.nla_tracks.new()
    track.name = action.name
    first = action.frame_range[0]
    strip = track.strips.new(action.name, int(np.floor(first)), action)
    # Blender makes strips on whole frames.
    strip.frame_end_raw += first - strip.frame_start_raw
    strip.frame_start_raw = first
    if slot is not None:
        strip.action_slot = slot
    return strip


def _check_owner(owner: bpy.types.Object) -> None:
    """Raise KeyframeError if the owner cannot be animated in its current state."""
    if owner.library is not None:
        raise KeyframeError(f"{owner.name!r} is linked from another file: make a library override first")
    if owner.animation_data is not None and owner.animation_data.use_tweak_mode:
        raise KeyframeError(f"{owner.name!r} has an NLA strip in tweak mode: leave tweak mode first")


def _new_slot(action: bpy.types.Action, owner: bpy.types.Object) -> bpy.types.ActionSlot:
    return action.slots.new(id_type=owner.id_type, name=owner.name)


def _own_slot(action: bpy.types.Action, owner: bpy.types.Object) -> bpy.types.ActionSlot:
    """The slot of an action for its owner: the assigned slot, the slot with the owner's name, or a new slot.

    Never returns a slot with another name, which may animate something else.
    """
    animation = owner.animation_data
    if animation is not None and animation.action == action and animation.action_slot is not None:
        return animation.action_slot
    own = (slot for slot in action.slots if slot.target_id_type == owner.id_type and slot.name_display == owner.name)
    return next(own, None) or _new_slot(action, owner)


def is_layered(armature: bpy.types.Object) -> bool:
    """Whether an armature has no action, but active NLA strips."""
    animation = armature.animation_data
    return animation is not None and animation.action is None and len(animation.nla_tracks) > 0


def active_strips(armature: bpy.types.Object) -> list[bpy.types.NlaStrip]:
    """The strips of an armature that have an action and are not muted."""
    tracks = [track for track in armature.animation_data.nla_tracks if not track.mute]
    return [strip for track in tracks for strip in track.strips if not strip.mute and strip.action is not None]
