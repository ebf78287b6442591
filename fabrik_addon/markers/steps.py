"""Long work in small steps: generators that yield their progress, 0 to 1, and return the result."""

from collections.abc import Callable, Generator
from typing import TypeVar

_Result = TypeVar("_Result")


def within(first: float, last: float, steps: Generator[float, None, _Result]) -> Generator[float, None, _Result]:
    """Run steps as a part of longer work: their progress goes from `first` to `last`. Returns their result."""
    while True:
        try:
            yield first + (last - first) * next(steps)
        except StopIteration as end:
            result: _Result = end.value
            return result


def finish(steps: Generator[float, None, _Result], each: Callable[[float], None] | None = None) -> _Result:
    """Run all steps and return their result; `each` is called with the progress, 0 to 1, and may raise to stop."""
    while True:
        try:
            share = next(steps)
        except StopIteration as end:
            result: _Result = end.value
            return result
        if each is not None:
            each(share)
