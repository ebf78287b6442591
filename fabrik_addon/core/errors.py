"""The errors people can cause, each with one sentence that names the thing and what to do."""

from collections.abc import Collection


class FabrikError(Exception):
    """Base of every error that this package raises about its input."""


class SkeletonError(FabrikError):
    """A skeleton that cannot be solved: shapes, parents, lengths or rest matrices."""


class TargetError(FabrikError):
    """Effectors or targets that do not fit the skeleton or each other."""


class LimitError(FabrikError):
    """A joint limit that makes no sense, or that names no bone."""


class OptionsError(FabrikError):
    """A solver option outside its range."""


def first_few(names: Collection[str], most: int = 4) -> str:
    """Some of many names for a sentence, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(list(names)[:most]) + more
