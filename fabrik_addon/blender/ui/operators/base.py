"""Base classes of operators: polls with reasons, the bones to work on, and reports.

An operator has a method `run`, which calls one function and returns a line about the result and sentences about what
was skipped.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, TypeAlias

import bpy
from bpy.props import StringProperty
from bpy.types import Context, Event

from ...settings.why_not import rig_at_hand, why_no_rig
from ..translations import told

# A line about the result, and a sentence for each skipped thing.
Done: TypeAlias = tuple[str, Sequence[str]]
Bones: TypeAlias = Sequence[bpy.types.PoseBone]

_Runs: TypeAlias = Callable[..., set[str]]


def says_why_not(method: _Runs) -> _Runs:
    """Decorate `execute`, `invoke` or `modal` of an operator to report a FabrikError in one line and cancel."""

    def guarded(self: Any, *arguments: Any) -> set[str]:
        from ....core.errors import FabrikError

        try:
            return method(self, *arguments)
        except FabrikError as error:
            self.report({"ERROR"}, told(str(error)))
            return {"CANCELLED"}

    # Blender counts the arguments of a method.
    @wraps(method)
    def at_once(self: Any, context: Context) -> set[str]:
        return guarded(self, context)

    @wraps(method)
    def on_event(self: Any, context: Context, event: Event) -> set[str]:
        return guarded(self, context, event)

    return on_event if "event" in signature(method).parameters else at_once


class OnRig:
    """An operator on the current rig, usually the active armature.

    Attributes:
        why_not: returns why the operator can't run on an object, or ""; the button's tooltip shows it.
    """

    bl_options: Any = {"REGISTER", "UNDO"}
    # Methods that Blender adds to operators.
    report: Callable[[set[str], str], None]
    poll_message_set: Callable[[str], None]
    properties: Any
    why_not: Any = staticmethod(why_no_rig)

    @classmethod
    def poll(cls, context: Context) -> bool:
        """Whether `why_not` has no reason."""
        reason: str = cls.why_not(rig_at_hand(context))
        if reason:
            cls.poll_message_set(told(reason))
        return not reason

    @says_why_not
    def execute(self, context: Context) -> set[str]:
        """Run and report the result, or report an error in one line."""
        done, left = self.run(context, rig_at_hand(context))
        for sentence in left:
            self.report({"WARNING"}, told(sentence))
        self.report({"INFO"}, told(done))
        return {"FINISHED"}

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        """Do the work."""
        raise NotImplementedError

    def given(self, *names: str) -> dict[str, Any]:
        """The properties that a script or a dialog has set, with their values."""
        return {name: getattr(self, name) for name in names if self.properties.is_property_set(name)}


class OnJson(OnRig):
    """An operator with a file browser for JSON files."""

    filename_ext = ".json"
    filter_glob: StringProperty(default="*.json", options={"HIDDEN"})


class OnBones(OnRig):
    """An operator on some bones of the active armature."""

    bones: StringProperty(
        name="Bones",
        description="Bone names, separated by commas. Defaults to the selected bones, or the active bone",
        options={"SKIP_SAVE"},
    )

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        """Run with the chosen bones."""
        return self.run_on(context, rig, self.chosen(context, rig))

    def chosen(self, context: Context, rig: bpy.types.Object) -> Bones:
        """The names of the bones to work on."""
        from ...settings.selection import chosen_bones

        return chosen_bones(context, rig, self.bones)

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        """Do the work."""
        raise NotImplementedError


def chosen_path(operator: Any) -> Path:
    """The file that was chosen in an operator's file browser."""
    return Path(bpy.path.abspath(operator.filepath))


def bones_of(number: int) -> str:
    """A number of bones in words."""
    return f"{number} bone" if number == 1 else f"{number} bones"
