"""Base classes of the operators: checks, work in steps with progress and Esc, and detection of changed rigs."""

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from inspect import get_annotations, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import bpy
from bpy.types import Context, Event, Object, PoseBone, Timer, UILayout

from ... import OnUse
from ...settings.declare import String
from ...settings.in_use import listen
from ...settings.rig import ASIDE
from ...settings.why_not import rig_at_hand, why_no_rig
from ..translations import ui_message, ui_text

if TYPE_CHECKING:
    from ....core import errors
    from ....markers import steps as work_steps
    from ...control import set_up
    from ...settings import selection
else:
    errors, set_up = map(OnUse, ("..core.errors", ".control.set_up"))
    selection, work_steps = map(OnUse, (".settings.selection", "..markers.steps"))

# A line about the result, and a sentence for each skipped item.
Done: TypeAlias = tuple[str, Sequence[str]]
Bones: TypeAlias = Sequence[PoseBone]

_Runs: TypeAlias = Callable[..., set[str]]
_Class = TypeVar("_Class", bound=type)


def reports_errors(method: _Runs) -> _Runs:
    """Decorate `execute`, `invoke` or `modal` of an operator to report a FabrikError in one line and cancel."""

    def guarded(self: Any, *arguments: Any) -> set[str]:
        try:
            return method(self, *arguments)
        except errors.FabrikError as error:
            self.report({"ERROR"}, ui_message(str(error)))
            return {"CANCELLED"}

    # Blender checks the number of arguments.
    if "event" in signature(method).parameters:
        return wraps(method)(lambda self, context, event: guarded(self, context, event))  # noqa: PLW0108
    return wraps(method)(lambda self, context: guarded(self, context))  # noqa: PLW0108


def report_all(operator: Any, done: str, warnings: Iterable[str]) -> set[str]:
    """Report a translated result, then warnings, and redraw all editors; returns {"FINISHED"}.

    The status bar shows the last message.
    """
    # `set_channel` only redraws viewports.
    for area in bpy.context.screen.areas if bpy.context.screen else ():
        area.tag_redraw()
    operator.report({"INFO"}, done)
    for warning in warnings:
        operator.report({"WARNING"}, warning)
    return {"FINISHED"}


def set_up_first(operator: Any, context: Context, rig: Object | None = None) -> None:
    """Set up a control rig that is not set up yet, and report it; with windows, as an undo step of its own."""
    line, left = set_up.set_up_first(context, rig or rig_at_hand(context))
    if line:
        if not bpy.app.background:
            bpy.ops.ed.undo_push(message=ui_message("Set Up Control Rig"))
        report_all(operator, ui_message(line), map(ui_message, left))


def ask_first(operator: Any, context: Context, event: Event, title: str, message: str) -> set[str]:
    """Ask for confirmation before an operator runs; title and message are translated."""
    asked = context.window_manager.invoke_confirm
    return set(asked(operator, event, title=title, message=message, confirm_text=ui_text("Apply")))


def keyword(declared: Any) -> Any:
    """Declare a rig's setting as a hidden keyword of an operator, for scripts. Its value applies only to one call."""
    kept = {name: value for name, value in declared.keywords.items() if name != "update"}
    return declared.function(**kept | {"options": kept.get("options", set()) | {"SKIP_SAVE", "HIDDEN"}})


def takes(options: Mapping[str, Any]) -> Callable[[_Class], _Class]:
    """Decorate an operator that takes declared settings as keywords."""

    def with_keywords(cls: _Class) -> _Class:
        cls.__annotations__ = get_annotations(cls) | {name: keyword(declared) for name, declared in options.items()}
        return cls

    return with_keywords


class OnRig:
    """An operator on the current rig, usually the active armature. The `bl_idname` of FABRIK_OT_pin is fabrik.pin."""

    bl_idname: str
    bl_options: Any = {"REGISTER", "UNDO"}
    # What it does; returns its report.
    run: Callable[[Context, Object], Done]
    # Methods and properties that Blender adds to operators.
    report: Callable[[set[str], str], None]
    poll_message_set: Callable[[str], None]
    properties: Any
    # Options that change what a button does, so that it shows the tooltip of the option.
    described_by: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.bl_idname = cls.__name__.lower().replace("_ot_", ".")

    @staticmethod
    def why_not(_rig: Object, /) -> str:
        """Why the operator can't run on an editable rig, and what to do, for the button's tooltip; "" if it can."""
        return ""

    @classmethod
    def poll(cls, context: Context) -> bool:
        """Whether there is an editable rig, and the operator can run on it."""
        rig = rig_at_hand(context)
        reason = why_no_rig(rig) or cls.why_not(rig)
        if reason:
            cls.poll_message_set(ui_message(reason))
        return not reason

    @classmethod
    def description(cls, _context: Context, properties: Any) -> str:
        """The tooltip of an option in `described_by` that a button sets; "" for the tooltip of the operator."""
        for name in cls.described_by:
            value, option = getattr(properties, name), properties.bl_rna.properties[name]
            if value and properties.is_property_set(name):
                option = option.enum_items[value] if option.type == "ENUM" else option
                return str(bpy.app.translations.pgettext_tip(option.description))
        return ""

    @reports_errors
    def execute(self, context: Context) -> set[str]:
        """Run and report the result, or report an error in one line."""
        done, left = self.run(context, rig_at_hand(context))
        return report_all(self, ui_message(done), map(ui_message, left))

    def given(self, *names: str) -> dict[str, Any]:
        """The properties that a script or a dialog has set, with their values."""
        own = [name for name in names if name in self.properties.bl_rna.properties]
        return {name: getattr(self, name) for name in own if self.properties.is_property_set(name)}

    def given_or(self, settings: Any, names: Iterable[str]) -> dict[str, Any]:
        """The values of properties by name; those that are not given come from a property group."""
        return {name: getattr(settings, name) for name in names} | self.given(*names)


class OnJson(OnRig):
    """An operator with a file browser for JSON files."""

    filename_ext = ".json"
    filter_glob: String(default="*.json")


class OnBones(OnRig):
    """An operator on some bones of the active armature."""

    bones: String(
        "Bones", "Bone names, separated by commas. Defaults to the selected bones, or the active bone", options=ASIDE
    )

    def chosen(self, context: Context, rig: Object) -> Bones:
        """The bones to work on."""
        return selection.chosen_bones(context, rig, self.bones)


def chosen_path(operator: Any) -> Path:
    """The file that was chosen in an operator's file browser."""
    if not operator.filepath:
        raise errors.FabrikError("No file is chosen: choose one")
    return Path(bpy.path.abspath(operator.filepath))


class Watch:
    """Detects whether a rig has changed since a modal operator started, until `stop`.

    After an undo or the removal of bones, references must not be used anymore.
    """

    def __init__(self, rig: Object) -> None:
        self.name = rig.name
        self._rig, self._mode = rig, rig.mode
        self._undone = False
        listen(self._note_undo, "undo_post", "redo_post", on=True)

    def stop(self) -> None:
        """Stop detecting changes."""
        listen(self._note_undo, "undo_post", "redo_post", on=False)

    def why_lost(self) -> str:
        """The reason why the operator cannot continue with the rig; "" if it can."""
        if self._undone:
            return f"An undo or redo happened while {self.name!r} was being processed"
        try:
            mode = self._rig.mode
        except ReferenceError:
            return f"{self.name!r} was deleted during processing"
        return "" if mode == self._mode else f"The mode of {self.name!r} changed during processing"

    def _note_undo(self, *_arguments: object) -> None:
        self._undone = True


# Seconds of work between two updates of the window, and seconds between two timer events.
_WORK = 0.1
_PAUSE = 0.001


class InSteps(OnRig):
    """An operator that works in `steps` and passes their result to `done`.

    If the steps are closed before their end, they must leave the scene as it was. A control rig is set up first.
    """

    doing: ClassVar[str]
    """The name of the task for the status bar."""
    # The steps of the task, which yield progress, and a function that reports their result.
    steps: Callable[[Context], Generator[float, None, Any]]
    done: Callable[[Any], set[str]]
    _steps: Generator[float, None, Any]
    _timer: Timer
    _watch: Watch

    @reports_errors
    def execute(self, context: Context) -> set[str]:
        """Run all steps at once."""
        set_up_first(self, context)
        return self.done(work_steps.finish(self.steps(context)))

    @reports_errors
    def invoke(self, context: Context, event: Event) -> set[str]:
        """Start the steps; the window stays responsive."""
        if bpy.app.background or context.window is None:
            return self.execute(context)
        set_up_first(self, context)
        return self.start(context, self.steps(context), rig_at_hand(context))

    def start(self, context: Context, steps: Generator[float, None, Any], rig: Object) -> set[str]:
        """Run steps on a rig while the window stays responsive."""
        self._steps, self._watch = steps, Watch(rig)
        manager: Any = context.window_manager
        self._timer = manager.event_timer_add(_PAUSE, window=context.window)
        manager.progress_begin(0, 100)
        manager.modal_handler_add(self)
        self._show(context, 0.0)
        return {"RUNNING_MODAL"}

    @reports_errors
    def modal(self, context: Context, event: Event) -> set[str]:
        """Continue, or stop on Esc; block other events."""
        if event.type == "ESC":
            self.cancel(context)
            self.report({"INFO"}, ui_message(f"Canceled {ui_text(self.doing)}; nothing was changed"))
            return {"CANCELLED"}
        if event.type != "TIMER":
            return {"RUNNING_MODAL"}
        if lost := self._watch.why_lost():
            self.cancel(context)
            raise errors.FabrikError(f"{lost}, so {ui_text(self.doing)} it was canceled: start it again")
        try:
            until, share = time.perf_counter() + _WORK, next(self._steps)
            while time.perf_counter() < until:
                share = next(self._steps)
            self._show(context, share)
        except StopIteration as end:
            self._clear(context)
            return self.done(end.value)
        except BaseException:
            self._clear(context)
            raise
        return {"RUNNING_MODAL"}

    def cancel(self, context: Context) -> None:
        """Stop without changes; Blender also calls this when a window or a dialog closes."""
        if not hasattr(self, "_steps"):
            return
        # Closing the steps restores data that may not exist anymore.
        with suppress(ReferenceError):
            self._steps.close()
        self._clear(context)

    def _show(self, context: Context, share: float) -> None:
        percent = int(100.0 * share)
        context.window_manager.progress_update(percent)
        doing, rig = ui_text(self.doing), self._watch.name
        line = ui_text("FABRIK: {doing} {rig}, {percent} %   |   Esc: stop", doing=doing, rig=rig, percent=percent)
        context.workspace.status_text_set(line)

    def _clear(self, context: Context) -> None:
        self._watch.stop()
        context.window_manager.event_timer_remove(self._timer)
        context.window_manager.progress_end()
        context.workspace.status_text_set(None)


def folded(layout: UILayout, label: str, of: str) -> UILayout | None:
    """Add a sub-panel to a layout, at first closed; returns its layout, None while closed. of: the panel's class."""
    header, body = layout.panel(f"fabrik_{of}_{label}", default_closed=True)
    header.label(text=ui_text(label), translate=False)
    return body
