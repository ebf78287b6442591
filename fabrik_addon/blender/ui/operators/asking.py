"""What all operators do with what keeps them from running: before, in their polls, and while they are at it."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

from bpy.types import Context

_Execute: TypeAlias = Callable[[Any, Context], set[str]]


def can_run(operator: Any, reason: str) -> bool:
    """Whether an operator's class can run: there is no reason against it. Where there is one its button says so."""
    if reason:
        operator.poll_message_set(reason)
    return not reason


def says_why_not(execute: _Execute) -> _Execute:
    """An operator's `execute` that says in one line what has kept it from doing anything, where a FabrikError tells."""

    @wraps(execute)
    def run(self: Any, context: Context) -> set[str]:
        from ....core.errors import FabrikError

        try:
            return execute(self, context)
        except FabrikError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}

    return run
