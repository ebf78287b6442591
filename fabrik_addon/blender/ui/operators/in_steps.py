"""Operators with long work: with a window, in small steps with progress and Esc."""

import time
from collections.abc import Generator
from contextlib import suppress
from typing import Any, ClassVar

import bpy
from bpy.types import Context, Event, Timer

from ...settings.why_not import rig_at_hand
from ..translations import said, told
from .base import OnRig, says_why_not
from .watch import Watch

# Seconds of work between two updates of the window, and between two calls.
_WORK = 0.1
_PAUSE = 0.001
_PERCENT = 100


class InSteps(OnRig):
    """Base of an operator that works in steps: `steps` is a generator, and `done` receives its result.

    The scene may only be changed in the last step.
    """

    doing: ClassVar[str]
    """The name of the work, for the status bar."""
    _steps: Generator[float, None, Any]
    _timer: Timer
    _watch: Watch

    def steps(self, context: Context) -> Generator[float, None, Any]:
        """The work; yields the share done."""
        raise NotImplementedError

    def done(self, result: Any) -> set[str]:
        """Report the result; returns the operator's return value."""
        raise NotImplementedError

    @says_why_not
    def execute(self, context: Context) -> set[str]:
        """Do all of the work at once."""
        from ....markers.steps import finish

        return self.done(finish(self.steps(context)))

    def invoke(self, context: Context, _event: Event) -> set[str]:
        """Start the work while the window stays responsive."""
        if bpy.app.background or context.window is None:
            return self.execute(context)
        from ....core.errors import FabrikError

        try:
            self._steps = self.steps(context)
            share = next(self._steps)
        except StopIteration as end:
            return self.done(end.value)
        except FabrikError as error:
            return self._failed(str(error))
        self._watch = Watch(rig_at_hand(context))
        manager: Any = context.window_manager
        self._timer = manager.event_timer_add(_PAUSE, window=context.window)
        manager.progress_begin(0, _PERCENT)
        manager.modal_handler_add(self)
        self._show(context, share)
        return {"RUNNING_MODAL"}

    def modal(self, context: Context, event: Event) -> set[str]:
        """Continue a little, or stop on Esc; no other event reaches the scene meanwhile."""
        from ....core.errors import FabrikError

        if event.type == "ESC":
            self.cancel(context)
            self.report({"INFO"}, told(f"Canceled {said(self.doing)}; nothing was changed"))
            return {"CANCELLED"}
        if event.type != "TIMER":
            return {"RUNNING_MODAL"}
        lost = self._watch.why_lost()
        if lost:
            self.cancel(context)
            return self._failed(f"{lost}, so {said(self.doing)} it was canceled: start it again")
        try:
            self._show(context, self._work())
        except StopIteration as end:
            self._clear(context)
            return self.done(end.value)
        except FabrikError as error:
            self._clear(context)
            return self._failed(str(error))
        except BaseException:
            self._clear(context)
            raise
        return {"RUNNING_MODAL"}

    def cancel(self, context: Context) -> None:
        """Stop without changes; Blender also calls it, for example when the window closes."""
        # What the work would restore may no longer exist.
        with suppress(ReferenceError):
            self._steps.close()
        self._clear(context)

    def _work(self) -> float:
        """Work for a moment; returns the share done."""
        until = time.perf_counter() + _WORK
        share = next(self._steps)
        while time.perf_counter() < until:
            share = next(self._steps)
        return share

    def _show(self, context: Context, share: float) -> None:
        """Show the share done in the status bar and at the pointer."""
        percent = int(_PERCENT * share)
        context.window_manager.progress_update(percent)
        line = said(
            "FABRIK: {doing} {rig}, {percent} %   |   Esc: stop",
            doing=said(self.doing),
            rig=self._watch.name,
            percent=percent,
        )
        context.workspace.status_text_set(line)

    def _clear(self, context: Context) -> None:
        """Remove watch, timer, progress and status text."""
        self._watch.stop()
        context.window_manager.event_timer_remove(self._timer)
        context.window_manager.progress_end()
        context.workspace.status_text_set(None)

    def _failed(self, reason: str) -> set[str]:
        self.report({"ERROR"}, told(reason))
        return {"CANCELLED"}
