"""What every operator's poll does with the reason that keeps it from running."""

from typing import Any


def can_run(operator: Any, reason: str) -> bool:
    """Whether an operator's class can run: there is no reason against it. Where there is one its button says so."""
    if reason:
        operator.poll_message_set(reason)
    return not reason
