"""OpenSim's gait2354 set-up: the model and its marker weights, its own inverse kinematics, and a rig made of it.

The inverse kinematics solves OpenSim's problem in plain code: coordinates that minimize Σ weight · distance² on every
frame, with a knee that slides on splines. Its results are the reference for ours.
"""

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fabrik_addon.core import Ball, Effector, Fixed, Hinge, Skeleton

ROOT = "ground_pelvis"
HELD = ("subtalar", "mtp")
STEPS = 40
NUDGE = 1e-6


@dataclass(frozen=True)
class Axis:
    """One of a joint's six axes of movement: along or about a direction, as a function of a coordinate or constant."""

    direction: np.ndarray
    coordinate: str
    amount: object

    def value(self, coordinates):
        return self.amount(coordinates[self.coordinate]) if self.coordinate else 0.0


@dataclass(frozen=True)
class Joint:
    """From a parent body to a child; axes: three rotations, then three translations, in the parent's frame."""

    name: str
    parent: str
    child: str
    offset: np.ndarray
    axes: list
    ranges: dict

    @property
    def fixed(self):
        return self.name.startswith(HELD)

    @property
    def coordinates(self):
        return [] if self.fixed else list(self.ranges)

    def placed(self, coordinates):
        """(F, 3, 3) and (F, 3) of the child in the parent's frame."""
        turn = np.eye(3)
        for axis in self.axes[:3]:
            turn = turn @ turned_about(axis.direction, np.asarray(axis.value(coordinates)))
        shift = sum(np.asarray(axis.value(coordinates))[..., None] * axis.direction for axis in self.axes[3:])
        return turn, self.offset + shift


@dataclass(frozen=True)
class Marker:
    """A point on a body, and its weight."""

    name: str
    body: str
    place: np.ndarray
    weight: float


class Model:
    """The parts of a model, and the weights of a set-up file, that inverse kinematics needs."""

    def __init__(self, model_file, setup_file):
        tree = ET.parse(model_file)
        self.joints = [_joint(element) for element in tree.iter("CustomJoint")]
        weights = _weights(ET.parse(setup_file))
        markers = [_marker(element, weights) for element in tree.iter("Marker")]
        self.markers = [marker for marker in markers if marker.weight > 0]
        self.names = [name for joint in self.joints for name in joint.coordinates]

    @cached_property
    def weights(self):
        return np.array([marker.weight for marker in self.markers])

    def place(self, values):
        """Body name to (F, 3, 3) and (F, 3), for coordinate values (F, C)."""
        coordinates = dict.fromkeys((name for joint in self.joints for name in joint.ranges), np.zeros(len(values)))
        coordinates |= dict(zip(self.names, values.T, strict=True))
        placed = {"ground": (np.broadcast_to(np.eye(3), (len(values), 3, 3)), np.zeros((len(values), 3)))}
        for joint in self.joints:
            turn, place = joint.placed(coordinates)
            above, origin = placed[joint.parent]
            placed[joint.child] = (
                above @ turn,
                origin + np.einsum("fij,...fj->fi", above, np.broadcast_to(place, origin.shape)),
            )
        return placed

    def points(self, values):
        """(F, M, 3) the markers."""
        placed = self.place(values)
        return np.stack([placed[m.body][1] + placed[m.body][0] @ m.place for m in self.markers], axis=1)

    def solve(self, targets):
        """(F, C) coordinates that fit the targets (F, M, 3), by damped Gauss-Newton with a differenced Jacobian."""
        values = np.zeros((len(targets), len(self.names)))
        values[:, [self.names.index(f"pelvis_t{axis}") for axis in "xyz"]] = np.nanmean(targets, axis=1)
        root = np.sqrt(self.weights)[:, None]
        for _ in range(STEPS):
            here = self.points(values)
            rows = (np.nan_to_num(targets - here) * root).reshape(len(values), -1)
            jacobian = np.stack([self._slope(values, here, c) for c in range(values.shape[1])], axis=-1)
            seen = ~np.isnan(targets)
            jacobian = (jacobian * root[..., None] * seen[..., None]).reshape(len(values), rows.shape[1], -1)
            across = np.swapaxes(jacobian, 1, 2)
            square = across @ jacobian + 1e-6 * np.eye(values.shape[1])
            step = np.linalg.solve(square, across @ rows[..., None])[..., 0]
            values = values + step * np.minimum(1.0, 0.5 / np.abs(step).max(axis=1))[:, None]
        return values

    def _slope(self, values, here, column):
        nudged = values.copy()
        nudged[:, column] += NUDGE
        return (self.points(nudged) - here) / NUDGE

    def rig(self, walked):
        """The model as a rig, its knee centers at their mean over (F, C) coordinates."""
        return Rig(self, walked)


class Rig:
    """Bodies as bones: a bone's frame has its hinge's axis along X, else it is its body's own."""

    def __init__(self, model, walked):
        joints = model.joints
        names = [joint.child for joint in joints]
        self.frames = {joint.child: _bone_frame(joint) for joint in joints}
        rest, heads = [], {"ground": np.zeros(3)}
        for joint in joints:
            heads[joint.child] = heads[joint.parent] + self._center(model, joint, walked)
            rest.append(_matrix(self.frames[joint.child], heads[joint.child]))
        parents = [names.index(joint.parent) if joint.parent in names else -1 for joint in joints]
        lengths = [self._length(joint, joints, heads) for joint in joints]
        self.skeleton = Skeleton(names, parents, rest, lengths)
        self.limits = {joint.child: limit for joint in joints if (limit := _limit(joint)) is not None}
        self.effectors = [Effector(m.body, tuple(self.frames[m.body].T @ m.place), m.weight) for m in model.markers]

    @staticmethod
    def _center(model, joint, walked):
        """(3,) the mean position of the child's head in the parent's body frame."""
        if joint.name == ROOT:
            return np.zeros(3)
        coordinates = dict.fromkeys(joint.ranges, np.zeros(1)) | dict(zip(model.names, walked.T, strict=True))
        return np.broadcast_to(joint.placed(coordinates)[1], (1, 3) if joint.fixed else (len(walked), 3)).mean(axis=0)

    @staticmethod
    def _length(joint, joints, heads):
        below = [
            np.linalg.norm(heads[other.child] - heads[joint.child]) for other in joints if other.parent == joint.child
        ]
        return max(below, default=0.1) or 0.1


def _bone_frame(joint):
    """(3, 3) a bone's axes in its body's frame."""
    if _is_hinge(joint):
        x = joint.axes[0].direction / np.linalg.norm(joint.axes[0].direction)
        y = np.array([0.0, 1.0, 0.0])
        y = y - (y @ x) * x
        y /= np.linalg.norm(y)
        return np.stack([x, y, np.cross(x, y)], axis=1)
    return np.eye(3)


def _is_hinge(joint):
    return len(joint.coordinates) == 1


def _limit(joint):
    if joint.fixed:
        return Fixed()
    if joint.name == ROOT:
        return None
    ranges = [joint.ranges[name] for name in joint.coordinates]
    if _is_hinge(joint):
        return Hinge("X", *ranges[0])
    # Y is the body's long axis, whose coordinate is the last of the three.
    return Ball(min(abs(end) for pair in ranges[:2] for end in pair), ranges[2])


def _matrix(turn, place):
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = turn, place
    return matrix


def turned_about(axis, angle):
    """(..., 3, 3) rotations about a unit axis by (...) angles (Rodrigues)."""
    x, y, z = axis / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    angle = angle[..., None, None]
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * (cross @ cross)


def spline(x, y):
    """The cubic spline whose ends have the third derivative of the cubics through the first and last four points.

    Forsythe, Malcolm and Moler's SPLINE (1977), which SIMM and OpenSim use.
    """
    h, slope = np.diff(x), np.diff(y) / np.diff(x)
    second = np.diff(slope)
    n = len(x)
    matrix, right = np.zeros((n, n)), np.zeros(n)
    for i in range(1, n - 1):
        matrix[i, i - 1 : i + 2] = h[i - 1], 2.0 * (h[i - 1] + h[i]), h[i]
        right[i] = second[i - 1]
    matrix[0, :2] = -h[0], h[0]
    matrix[-1, -2:] = h[-1], -h[-1]
    right[0] = (second[1] / (x[3] - x[1]) - second[0] / (x[2] - x[0])) * h[0] ** 2 / (x[3] - x[0])
    right[-1] = -(second[-1] / (x[-1] - x[-3]) - second[-2] / (x[-2] - x[-4])) * h[-1] ** 2 / (x[-1] - x[-4])
    c = np.linalg.solve(matrix, right)
    b, d = slope - h * (c[1:] + 2.0 * c[:-1]), np.diff(c) / h

    def value(at):
        i = np.clip(np.searchsorted(x, at) - 1, 0, n - 2)
        s = at - x[i]
        return y[i] + s * (b[i] + s * (3.0 * c[i] + s * d[i]))

    return value


def _joint(element):
    frames = {f.get("name"): f for f in element.iter("PhysicalOffsetFrame")}
    parent = frames[element.findtext("socket_parent_frame")]
    child = frames[element.findtext("socket_child_frame")]
    # No joint frame of this model is rotated, and each child's is at its body's origin.
    assert not np.any([_numbers(f.findtext("orientation")) for f in (parent, child)])
    assert not np.any(_numbers(child.findtext("translation")))
    ranges = {c.get("name"): tuple(_numbers(c.findtext("range"))) for c in element.iter("Coordinate")}
    return Joint(
        element.get("name"),
        parent.findtext("socket_parent").split("/")[-1],
        child.findtext("socket_parent").split("/")[-1],
        _numbers(parent.findtext("translation")),
        [_axis(axis) for axis in element.iter("TransformAxis")],
        ranges,
    )


def _axis(element):
    direction = _numbers(element.findtext("axis"))
    coordinate = (element.findtext("coordinates") or "").strip()
    scale = float(element.findtext("MultiplierFunction/scale") or 1.0)
    found = element.find(".//SimmSpline")
    if found is not None:
        curve = spline(_numbers(found.findtext("x")), _numbers(found.findtext("y")))
        return Axis(direction, coordinate, lambda value: scale * curve(value))
    if (constant := element.findtext(".//Constant/value")) is not None:
        assert float(constant) == 0.0
        return Axis(direction, "", None)
    slope, start = _numbers(element.findtext(".//LinearFunction/coefficients"))
    return Axis(direction, coordinate, lambda value: scale * (slope * value + start))


def _weights(tree):
    tasks = (task for task in tree.iter("IKMarkerTask") if task.findtext("apply").strip() == "true")
    return {task.get("name"): float(task.findtext("weight")) for task in tasks}


def _marker(element, weights):
    name = element.get("name")
    body = element.findtext("socket_parent_frame").split("/")[-1]
    return Marker(name, body, _numbers(element.findtext("location")), weights.get(name, 0.0))


def _numbers(text):
    return np.array(text.split(), dtype=float)
