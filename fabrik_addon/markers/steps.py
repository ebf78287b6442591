"""Long work in small steps: generators that yield the share done, 0 to 1, and return the result."""

from collections.abc import Callable, Generator
from functools import wraps
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def within(first: float, last: float, steps: Generator[float, None, _Result]) -> Generator[float, None, _Result]:
    """The steps of a part of the work, whose shares run from `first` to `last`; returns what they return."""
    while True:
        try:
            yield first + (last - first) * next(steps)
        except StopIteration as end:
            result: _Result = end.value
            return result


def finish(steps: Generator[float, None, _Result], each: Callable[[float], None] | None = None) -> _Result:
    """Take all steps and return their result; `each` is told the share done, and may raise to stop."""
    while True:
        try:
            share = next(steps)
        except StopIteration as end:
            result: _Result = end.value
            return result
        if each is not None:
            each(share)


def at_once(steps: Callable[_Arguments, Generator[float, None, _Result]]) -> Callable[_Arguments, _Result]:
    """A function of the same arguments that takes all the steps and returns their result."""

    @wraps(steps)
    def straight_through(*args: _Arguments.args, **choices: _Arguments.kwargs) -> _Result:
        return finish(steps(*args, **choices))

    return straight_through
