"""Texts shown for a rig but not saved with it: results of the last bake or live pose."""

from typing import Any, Final

_TEXTS: Final[dict[tuple[object, ...], str]] = {}


class Moment:
    """A text of a property group, not saved with the file; "" at first.

    per_take: whether each take of the rig has its own text.
    """

    def __init__(self, *, per_take: bool = False) -> None:
        self._per_take = per_take

    def __set_name__(self, _owner: type, name: str) -> None:
        """Store the attribute's name."""
        self._name = name

    def __get__(self, group: Any, _owner: type) -> str:
        """The text."""
        return _TEXTS.get(self._key(group), "")

    def __set__(self, group: Any, text: str) -> None:
        """Set the text."""
        _TEXTS[self._key(group)] = text

    def _key(self, group: Any) -> tuple[object, ...]:
        rig = group.id_data
        take = rig.fabrik.capture.take if self._per_take else None
        return rig.session_uid, self._name, None if take is None else take.session_uid
