"""The errors people can cause, each with one sentence that names the thing and what to do."""


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
