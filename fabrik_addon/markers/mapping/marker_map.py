"""The bone and the point on it for each marker, and the JSON file that stores them.

``{"fabrik_marker_map": 1, "markers": {"LKnee": {"bone": "thigh.L", "point": "TAIL", "weight": 1.0}, "LFHD": {"bone":
"head", "offset": [0.05, 0.1, 0.08]}, "LToe": "foot.L"}}``: a name alone means the bone's tail.
"""

import difflib
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from ...core.errors import FabrikError, number, shown, three_numbers
from ..whole_files import write_text

Point = Literal["HEAD", "TAIL", "OFFSET"]
_Entry = TypeVar("_Entry")

_FORMAT: Final = "fabrik_marker_map"
_VERSION: Final = 1
# From this similarity (0 to 1), an unknown name counts as a misspelling of a known one.
_LIKENESS: Final = 0.7
_LONGEST_WHOLE: Final = 15
_ENTRY_KEYS: Final = frozenset({"bone", "point", "offset", "weight"})


class MapError(FabrikError):
    """A marker map that cannot be read, or does not fit the rig or recording."""


@dataclass(frozen=True)
class MappedMarker:
    """A marker and the point it is fixed to.

    offset: meters in the bone's rest frame, from its head; only if ``point`` is "OFFSET". weight: 0 or more. Raises
    MapError if point and offset contradict each other or if a number is invalid.
    """

    marker: str
    bone: str
    point: Point = "TAIL"
    offset: tuple[float, float, float] | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        who = f"marker {self.marker!r}"
        if not self.marker or not self.bone:
            raise MapError(f"{who} on bone {self.bone!r}: both must have a name")
        if self.point not in ("HEAD", "TAIL", "OFFSET"):
            raise MapError(f"{who}: the point must be HEAD, TAIL or OFFSET, not {shown(self.point)}")
        if (self.point == "OFFSET") != (self.offset is not None):
            raise MapError(f"{who}: with an offset the point must be OFFSET, not {self.point}")
        if self.offset is not None and three_numbers(self.offset) is None:
            raise MapError(f"{who}: the offset must be three finite numbers, not {shown(self.offset)}")
        if not 0.0 <= number(self.weight) < math.inf:
            raise MapError(f"{who}: the weight must be a number of 0 or more, not {shown(self.weight)}")

    def scaled(self, factor: float) -> "MappedMarker":
        """The same with its offset times a factor."""
        if self.offset is None:
            return self
        x, y, z = self.offset
        return replace(self, offset=(x * factor, y * factor, z * factor))


def read_map(path: str | os.PathLike[str]) -> tuple[MappedMarker, ...]:
    """Read the entries of a marker map, in the file's order.

    Raises MapError, one sentence that names the file, if the file is missing, empty, not JSON or of an unknown version,
    or if an entry is invalid.
    """
    return read_json_map(path, _FORMAT, "marker map", _entries)


def write_map(path: str | os.PathLike[str], entries: Iterable[MappedMarker]) -> None:
    """Write a marker map that ``read_map`` reads back unchanged.

    Raises MapError if a marker occurs twice, and WriteError if the file cannot be written.
    """
    entries = tuple(entries)
    _check_once(entries)
    markers = {entry.marker: _as_json(entry) for entry in entries}
    write_json_map(path, _FORMAT, {"markers": markers})


def check_map(entries: Sequence[MappedMarker], marker_names: Iterable[str], bone_names: Iterable[str]) -> None:
    """Raise MapError naming every marker and bone of the map that is not among the given names."""
    _check_once(entries)
    if found := unknown_names(
        ("marker", "markers", (entry.marker for entry in entries), tuple(marker_names)),
        ("bone", "bones", (entry.bone for entry in entries), tuple(bone_names)),
    ):
        raise MapError(f"the marker map contains {found}: choose another map, or fix it")


def unknown_names(*groups: tuple[str, str, Iterable[str], Sequence[str]]) -> str:
    """A phrase that lists the unknown names in a map; "" if all are known. groups: arguments of `_unknown_names`."""
    return "; ".join(filter(None, (_unknown_names(*group) for group in groups)))


def _unknown_names(one: str, many: str, wanted: Iterable[str], known: Sequence[str]) -> str:
    """A phrase that lists the unknown names; "" if all are known."""
    there = set(known)
    missing = [name for name in dict.fromkeys(wanted) if name not in there]
    if not missing:
        return ""
    listed = ", ".join(repr(name) for name in missing)
    close = difflib.get_close_matches(missing[0], known, n=1, cutoff=_LIKENESS)
    hint = f" (did you mean {close[0]!r}?)" if close and len(missing) == 1 else ""
    return f"unknown {one if len(missing) == 1 else many} {listed}{hint}"


def _check_once(entries: Iterable[MappedMarker]) -> None:
    counts = Counter(entry.marker for entry in entries)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise MapError(f"marker {twice[0]!r} is mapped more than once: remove all but one entry")


def _entries(content: Mapping[str, object]) -> tuple[MappedMarker, ...]:
    markers = content.get("markers")
    if not isinstance(markers, dict) or not markers:
        raise MapError("the map has no markers: add some")
    return tuple(_entry(marker, raw_value) for marker, raw_value in markers.items())


def read_json_map(
    path: str | os.PathLike[str], key: str, what: str, entries: Callable[[Mapping[str, object]], tuple[_Entry, ...]]
) -> tuple[_Entry, ...]:
    """Read a JSON file; `key` holds its version. entries: converts its object, and may raise MapError.

    Raises MapError, one sentence that names the file; what: the kind of file, for this sentence.
    """
    path = Path(path)
    try:
        return entries(_json_map(path, key, what))
    except MapError as trouble:
        raise MapError(f"{path.name}: {trouble}") from None
    except RecursionError:
        raise MapError(f"{path.name}: it is nested too deeply for a map: choose another") from None


def write_json_map(path: str | os.PathLike[str], key: str, content: Mapping[str, object]) -> None:
    """Write a JSON file that `read_json_map` reads back; raises WriteError."""
    write_text(Path(path), json.dumps({key: _VERSION, **content}, indent=2, ensure_ascii=False) + "\n")


def _json_map(path: Path, key: str, what: str) -> dict[str, object]:
    """The JSON object in a map's file; raises MapError if it cannot be read, or is not a map."""

    def whole(digits: str) -> float:
        """A JSON integer; a long one as a float, since Python refuses to read more than 4,300 digits as an integer."""
        return int(digits) if len(digits) <= _LONGEST_WHOLE else float(digits)

    try:
        text = path.read_text(encoding="utf-8-sig")
        content: object = json.loads(text, object_pairs_hook=_pairs_once, parse_int=whole)
    except FileNotFoundError:
        raise MapError(f"there is no such file in {path.absolute().parent}: choose another") from None
    except OSError as trouble:
        raise MapError(f"cannot be read ({trouble.strerror}, {path}): choose another") from None
    except UnicodeDecodeError:
        raise MapError("the file is not UTF-8 text: save it in this encoding") from None
    except json.JSONDecodeError as trouble:
        raise MapError(f"it is not valid JSON ({trouble.msg}, line {trouble.lineno}): fix it") from None
    if not isinstance(content, dict) or key not in content:
        raise MapError(f"it is not a {what}, since it has no {key!r}: choose another file")
    if content[key] != _VERSION:
        raise MapError(f"version {shown(content[key])} of the map is not known: save it again as version {_VERSION}")
    return content


def _pairs_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object; raises MapError if a key occurs twice, since JSON would only keep the last value."""
    for key, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            raise MapError(f"{key!r} occurs more than once: remove one")
    return dict(pairs)


def _entry(marker: str, raw_value: object) -> MappedMarker:
    """The mapping of a marker from its JSON value, which is a bone's name or an object."""
    if isinstance(raw_value, str):
        return MappedMarker(marker, raw_value)
    if not isinstance(raw_value, dict):
        raise MapError(f"marker {marker!r}: it must be a bone's name or an object, not {shown(raw_value)}")
    if strange := sorted(set(raw_value) - _ENTRY_KEYS):
        raise MapError(f"marker {marker!r}: {strange[0]!r} must be one of {sorted(_ENTRY_KEYS)}")
    bone = raw_value.get("bone")
    if not isinstance(bone, str):
        raise MapError(f"marker {marker!r}: 'bone' must be a bone's name, not {shown(bone)}")
    offset: Any = raw_value.get("offset")
    offset = tuple(offset) if isinstance(offset, list) else offset
    point: Any = raw_value.get("point", "TAIL" if offset is None else "OFFSET")
    point = point.upper() if isinstance(point, str) else point
    return MappedMarker(marker, bone, point, offset, raw_value.get("weight", 1.0))


def _as_json(entry: MappedMarker) -> object:
    if entry.point == "TAIL" and entry.weight == 1.0:
        return entry.bone
    place = {"point": entry.point} if entry.offset is None else {"offset": list(entry.offset)}
    return {"bone": entry.bone, **place, **({} if entry.weight == 1.0 else {"weight": entry.weight})}
