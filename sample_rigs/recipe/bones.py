"""Bones of the recipes: two points and the direction of the local X axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Point = tuple[float, float, float]

SIDES = ("L", "R")


@dataclass(frozen=True)
class Bone:
    """A bone at rest, in armature space and meters.

    Attributes:
        name: the bone's name.
        parent: the parent's name, "" for the root.
        head: position of its head.
        tail: position of its tail.
        x_axis: approximate direction of its local X axis, which is made perpendicular to the bone.
    """

    name: str
    parent: str
    head: Point
    tail: Point
    x_axis: Point = (1.0, 0.0, 0.0)

    @property
    def length(self) -> float:
        """Distance from head to tail, meters."""
        return float(np.linalg.norm(np.subtract(self.tail, self.head)))

    @property
    def rotation(self) -> FloatArray:
        """(3, 3) rest rotation, whose columns are the bone's X, Y and Z axes in armature space."""
        y = np.subtract(self.tail, self.head) / self.length
        x = np.asarray(self.x_axis) - np.dot(self.x_axis, y) * y
        x /= np.linalg.norm(x)
        return np.stack([x, y, np.cross(x, y)], axis=1)

    def mirrored(self) -> Bone:
        """The same bone on the other side of the plane x = 0, rotated as by Blender's Symmetrize.

        Reflecting all three axes would give a left-handed frame, so X is reversed. A positive rotation about X then
        bends both elbows.
        """
        return replace(
            self,
            name=other_side(self.name),
            parent=other_side(self.parent),
            head=_reflected(self.head),
            tail=_reflected(self.tail),
            x_axis=(self.x_axis[0], -self.x_axis[1], -self.x_axis[2]),
        )


def other_side(name: str) -> str:
    """Swap the suffixes .L and .R; other names stay the same."""
    if name.endswith(".L"):
        return name[:-1] + "R"
    return name[:-1] + "L" if name.endswith(".R") else name


def chain(names: Sequence[str], points: Sequence[Point], parent: str, x_axis: Point) -> list[Bone]:
    """Connected bones through `points` (one more than names), the first one a child of `parent`."""
    parents = [parent, *names[:-1]]
    ends = zip(names, parents, points[:-1], points[1:], strict=True)
    return [Bone(name, above, head, tail, x_axis) for name, above, head, tail in ends]


def with_mirror(bones: Sequence[Bone]) -> tuple[Bone, ...]:
    """All bones, followed by mirrored copies of all left ones."""
    return (*bones, *(bone.mirrored() for bone in bones if bone.name.endswith(".L")))


def _reflected(point: Point) -> Point:
    return (-point[0] if point[0] else 0.0, point[1], point[2])
