"""The JSON file of a bone map: the source bone that each bone of a rig follows.

``{"fabrik_bone_map": 1, "bones": {"hips": "Hips", "chest": {"source": "Spine2", "before": "Spine1", "share": 0.4}}}``
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from ..core.readers import shown
from ..markers.mapping.marker_map import MapError, file_text, json_map, unknown_names, write_json
from .pairs import Pair

_FORMAT: Final = "fabrik_bone_map"
_VERSION: Final = 1


def read_bone_map(path: str | os.PathLike[str]) -> tuple[Pair, ...]:
    """Read a map; raises MapError, one sentence that names the file, if it is missing or invalid."""
    path = Path(path)
    try:
        return _pairs(json_map(file_text(path), _FORMAT, _VERSION, "map of bones").get("bones"))
    except MapError as trouble:
        raise MapError(f"{path.name}: {trouble}") from None
    except RecursionError:
        raise MapError(f"{path.name}: it is nested too deeply for a map: choose another") from None


def write_bone_map(path: str | os.PathLike[str], pairs: Iterable[Pair]) -> None:
    """Write a map that `read_bone_map` reads back; raises MapError if the file cannot be written."""
    write_json(Path(path), {_FORMAT: _VERSION, "bones": {pair.bone: _as_json(pair) for pair in pairs}})


def check_bone_map(pairs: Sequence[Pair], bones: Sequence[str], sources: Sequence[str]) -> None:
    """Raise MapError naming every bone of the map that does not exist."""
    problems = [
        unknown_names("bone", "bones of the rig", (pair.bone for pair in pairs), bones),
        unknown_names("bone of the source", "bones of the source", (pair.source for pair in pairs), sources),
        unknown_names("bone of the source", "bones of the source", (p.before for p in pairs if p.before), sources),
    ]
    found = "; ".join(problem for problem in problems if problem)
    if found:
        raise MapError(f"the bone map contains {found}: choose another map, or fix it")


def _pairs(bones: object) -> tuple[Pair, ...]:
    if not isinstance(bones, dict) or not bones:
        raise MapError("the map has no bones: add some")
    return tuple(_pair(bone, told) for bone, told in bones.items())


def _pair(bone: str, told: object) -> Pair:
    if isinstance(told, str):
        return Pair(bone, told)
    if not isinstance(told, dict) or not isinstance(told.get("source"), str):
        raise MapError(f"bone {bone!r}: it must be a bone's name or an object with 'source', not {shown(told)}")
    before, share = told.get("before", ""), told.get("share", 1.0)
    if not isinstance(before, str) or isinstance(share, bool) or not isinstance(share, int | float):
        raise MapError(f"bone {bone!r}: 'before' must be a bone's name and 'share' a number")
    if not 0.0 <= share <= 1.0:
        raise MapError(f"bone {bone!r}: the share is {share}, it must be from 0 to 1")
    return Pair(bone, told["source"], before, float(share))


def _as_json(pair: Pair) -> object:
    return {"source": pair.source, "before": pair.before, "share": pair.share} if pair.before else pair.source
