"""Reads settings and stored data without creating them, and tracks features that need handlers.

Some features need Blender handlers or draw callbacks. These are added at the first use, and stay until another file is
opened, because undo can restore a feature that was switched off. Settings can be changed on library overrides, and are
kept when the file is saved.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import bpy
from bpy.app.handlers import persistent
from bpy.props import CollectionProperty
from bpy.types import Context, PropertyGroup

# The window manager's settings of this name always have their defaults.
UNSET: Final = "fabrik_unset"


def seen(rig: Any) -> Any:
    """The settings of an object, or their defaults, for reading only."""
    return rig.fabrik if rig.is_property_set("fabrik") else getattr(bpy.data.window_managers[0], UNSET)


# Functions that are called once, when the file first uses a feature that needs handlers; empty from then on.
LISTENERS: Final[list[Callable[[], None]]] = []


def listen(handler: Callable[..., None], *names: str, on: bool) -> None:
    """Add a handler to Blender's lists of handlers, or remove it. names: the lists in `bpy.app.handlers`."""
    for handlers in (getattr(bpy.app.handlers, name) for name in names):
        if on != (handler in handlers):
            (handlers.append if on else handlers.remove)(handler)


def note_use(_group: Any = None, _context: Context | None = None) -> None:
    """Report that a feature is used; the update function of properties that turn one on."""
    while LISTENERS:
        LISTENERS.pop()()


def update_live_pose(group: PropertyGroup, _context: Context) -> None:
    """Handle a change of a setting that a live rig's pose depends on."""
    rig: Any = group.id_data
    note_use()
    if rig.fabrik.live:
        rig.update_tag(refresh={"OBJECT"})


# Timers for work that must not be done while drawing. They end when the add-on is disabled.
_TIMERS: Final[list[Callable[[], float | None]]] = []


def call_later(timer: Callable[[], float | None], seconds: float) -> None:
    """Run a timer after some seconds, unless it is already running."""
    if timer not in _TIMERS:
        _TIMERS.append(timer)
    if not bpy.app.timers.is_registered(timer):
        bpy.app.timers.register(timer, first_interval=seconds)


def when_ready(task: Callable[[], float | None]) -> None:
    """Call a function as soon as Blender allows access to its data, which it does not while it enables an extension."""
    if hasattr(bpy.data, "objects"):
        task()
    elif not bpy.app.background:
        call_later(task, 0.0)


def stop_timers() -> None:
    """Stop all timers."""
    while _TIMERS:
        timer = _TIMERS.pop()
        if bpy.app.timers.is_registered(timer):
            bpy.app.timers.unregister(timer)


def values_of(item: Any) -> dict[str, Any]:
    """The values of a list item, in the order of their declaration."""
    return {each.identifier: getattr(item, each.identifier) for each in item.bl_rna.properties if not each.is_readonly}


def add_item(items: Any, **values: Any) -> Any:
    """Add an item to a list, and set its values in this order; returns the item."""
    item = items.add()
    for name, value in values.items():
        setattr(item, name, value)
    return item


# Owners that have settings only while a file is being saved, each with the name of the property.
_LENT: Final[list[tuple[Any, str]]] = []
_SAVED: Final = ("save_post", "save_post_fail")
_Group = TypeVar("_Group", bound=type)


def poses_live_rigs(group: _Group) -> _Group:
    """Make every change of a property group update a live rig, except changes of lists; returns the class."""
    for declared in group.__annotations__.values():
        if declared.function is not CollectionProperty:
            declared.keywords.setdefault("update", update_live_pose)
    return group


@persistent  # type: ignore[untyped-decorator]
def keep_overrides(*_arguments: object) -> None:
    """Create empty settings on the linked originals of overridden rigs that have settings, before a file is saved.

    Blender 5.0 compares an override with its original property by property only if the original has the property group.
    Otherwise it records that the whole group is replaced, and fails to replace it when the file is opened.
    """
    _forget_lent()
    for rig in bpy.data.objects:
        original: Any = rig.override_library and rig.override_library.reference
        if original is not None and rig.type == "ARMATURE" and rig.is_property_set("fabrik"):
            _lend(original, "fabrik")
    if _LENT:
        listen(_forget_lent, *_SAVED, on=True)


def _forget_lent(*_arguments: object) -> None:
    """Remove the empty settings that `keep_overrides` created on linked originals, after the file was saved."""
    listen(_forget_lent, *_SAVED, on=False)
    # Inner groups come last, so they are removed before the groups that own them.
    while _LENT:
        with suppress(ReferenceError):
            holder, name = _LENT.pop()
            holder.property_unset(name)


def _lend(holder: Any, name: str) -> None:
    """Create a property group and the groups in it; Blender creates each when it is first accessed."""
    if not holder.is_property_set(name):
        _LENT.append((holder, name))
    group = getattr(holder, name)
    for inner in group.bl_rna.properties:
        is_group = inner.type == "POINTER" and inner.identifier != "rna_type"
        if is_group and isinstance(getattr(group, inner.identifier), PropertyGroup):
            _lend(group, inner.identifier)
