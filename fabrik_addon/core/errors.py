"""The errors caused by invalid input; each message names what is wrong and what to do."""

from collections.abc import Collection


class FabrikError(Exception):
    """Base of all errors that this package raises about its input."""


class SkeletonError(FabrikError):
    """An invalid skeleton: shapes, parents, lengths or rest matrices."""


class TargetError(FabrikError):
    """Effectors or targets that do not match the skeleton or each other."""


class LimitError(FabrikError):
    """An invalid joint limit, or one for an unknown bone."""


class OptionsError(FabrikError):
    """A solver option outside its range."""


def first_few(names: Collection[str], count: int = 4) -> str:
    """The first few of many names, and the number of the others, for a message."""
    more = f", and {len(names) - count} more" if len(names) > count else ""
    return ", ".join(list(names)[:count]) + more


def bones_of(number: int) -> str:
    """The number of bones as text: "1 bone", "2 bones"."""
    return f"{number} bone" if number == 1 else f"{number} bones"
