"""Effectors, which are points of bones that have targets: their paths, reach and targets; and the options of a solve.

All input of a solve is checked here. Targets are given for each frame, and so are the poses that it starts from.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..arrays import SINGLE, FloatArray, IntArray, lengths, squares
from ..errors import (
    LARGEST,
    LimitError,
    OptionsError,
    SkeletonError,
    TargetError,
    number,
    numbers,
    shaped,
    shown,
    three_numbers,
    whole,
)
from ..limits import Limit
from ..rotations import IDENTITY, conjugate, product, rotation_vector_from_quaternion
from .skeleton import Skeleton


@dataclass(frozen=True)
class Effector:
    """A point of a bone that has a target.

    Attributes:
        bone: the bone's name.
        offset: the point in the bone's frame; None is its tail (0, length, 0).
        weight: the weight of this target relative to the others, more than zero.
        rotation_weight: the weight of the target's rotation, 0 to 1. At 1 a radian counts as much as a tenth of the
            path length from the root, and a sweep applies the whole rotation; below that a fraction of it.
        priority: 0 is met first; if not all targets can be met, effectors with a higher number give way.
        target_bone: the target is a point on this bone of the same skeleton (a closed loop); both sides move. The
            effector's entry among the targets is ignored, and may be NaN.
        target_offset: that point in the frame of `target_bone`; None is its tail.
    """

    bone: str
    offset: tuple[float, float, float] | None = None
    weight: float = 1.0
    rotation_weight: float = 0.0
    priority: int = 0
    target_bone: str | None = None
    target_offset: tuple[float, float, float] | None = None


def loops_of(effectors: Sequence[Effector]) -> tuple[int, ...]:
    """(K,) indices of the effectors that close loops."""
    return tuple(index for index, effector in enumerate(effectors) if effector.target_bone is not None)


def with_partners(effectors: Sequence[Effector]) -> list[Effector]:
    """The E effectors, followed by the K partners of those that close loops, in the same order.

    A partner is a point fixed to the target bone, which the effector should meet.
    """
    partners = [
        Effector(effector.target_bone, effector.target_offset, effector.weight)
        for effector in effectors
        if effector.target_bone is not None
    ]
    return [*effectors, *partners]


def with_factors_applied(effectors: Sequence[Effector], factors: Mapping[str, float]) -> list[Effector]:
    """The effectors of stretched bones: each point is moved along Y by its bone's length factor."""

    def moved(effector: Effector) -> Effector:
        if effector.offset is None or effector.bone not in factors:
            return effector
        x, y, z = effector.offset
        return replace(effector, offset=(x, y * factors[effector.bone], z))

    return [moved(effector) for effector in effectors]


def participants(skeleton: Skeleton, effectors: Sequence[Effector]) -> list[int]:
    """Bones between the root and some effector, parents first."""
    wanted: set[int] = set()
    for effector in effectors:
        bone = skeleton.index(effector.bone)
        while bone >= 0 and bone not in wanted:
            wanted.add(bone)
            bone = int(skeleton.parents[bone])
    return sorted(wanted)


def on_moving_bone(skeleton: Skeleton, effector: Effector) -> Effector:
    """The effector, or the same point on the parent if it is a bone's head, which the bone itself does not move."""
    bone = skeleton.index(effector.bone)
    parent = skeleton.parents[bone]
    if parent < 0 or effector.rotation_weight > 0.0 or effector_offset(skeleton, effector).any():
        return effector
    x, y, z = skeleton.head_offsets[bone].tolist()
    return replace(effector, bone=skeleton.names[parent], offset=(x, y, z))


def effector_offset(skeleton: Skeleton, effector: Effector) -> FloatArray:
    """(3,) the effector's point in its bone's frame."""
    if effector.offset is None:
        return np.array([0.0, skeleton.lengths[skeleton.index(effector.bone)], 0.0])
    return np.array(effector.offset, dtype=np.float64)


@dataclass(frozen=True)
class Reaches:
    """How far each of E effectors can be from the root's head, whatever the rotations.

    Attributes:
        far: (E,) the sum of the path's lengths; infinite for an effector that closes a loop.
        near: (E,) the longest length minus all others, at least zero.
        tolerance_lengths: (E,) the lengths of which tolerances are fractions: `far`, at least the root bone's length.
    """

    far: FloatArray
    near: FloatArray
    tolerance_lengths: FloatArray


def path_reaches(skeleton: Skeleton, effectors: Sequence[Effector]) -> Reaches:
    """The reach of every effector; infinite for an effector that closes a loop."""
    # For the path from the root's head to each bone's head: the sum and the largest of the distances between joints.
    sums, longest, steps = np.zeros(len(skeleton)), np.zeros(len(skeleton)), lengths(skeleton.head_offsets)
    for bone, parent in enumerate(skeleton.parents):
        if parent >= 0:
            sums[bone], longest[bone] = sums[parent] + steps[bone], max(longest[parent], steps[bone])
    bones = [skeleton.index(effector.bone) for effector in effectors]
    ends = np.array([math.hypot(*effector_offset(skeleton, effector)) for effector in effectors])
    far = sums[bones] + ends
    near = np.maximum(2.0 * np.maximum(longest[bones], ends) - far, 0.0)
    closed = np.array([effector.target_bone is not None for effector in effectors])
    whole = np.maximum(far, skeleton.lengths[0])
    # Tolerances need a positive length: an effector on the head of a root without length uses the longest bone.
    whole = np.where(whole > 0.0, whole, skeleton.lengths.max() or 1.0)
    return Reaches(np.where(closed, np.inf, far), np.where(closed, 0.0, near), whole)


@dataclass(frozen=True)
class Options:
    """The options of a solve.

    Attributes:
        tolerance: the allowed error, as a fraction of each effector's path length from the root, and in radians for a
            rotation.
        max_sweeps: the largest number of forward-and-backward sweeps; with 0, the finish alone solves, which is enough
            if the start pose is close.
        finish: end with the exact finish after a few sweeps; False uses sweeps alone.
        most_steps: the largest number of steps of the finish. Fits gain almost nothing after 30.
        plain: the paper's plain method: sweeps only, limits clamped in both passes.
        restarts: the number of other start poses inside the limits that are tried if limits seem to keep a target
            away. With 16, a robot of five hinges missed 2 of 120.
        repair_pops: solve frames that pop or fail again, starting from neighboring frames. A frame's pose then depends
            on those frames.
        chunk: the number of frames solved at once, so that memory does not grow with the length of an action.

    Raises:
        OptionsError: naming the value out of range.
    """

    tolerance: float = 1e-4
    max_sweeps: int = 1000
    finish: bool = True
    most_steps: int = 60
    plain: bool = False
    restarts: int = 32
    repair_pops: bool = False
    chunk: int = 2000

    def __post_init__(self) -> None:
        if not 0.0 < number(self.tolerance) <= LARGEST:
            raise OptionsError(f"The tolerance is {shown(self.tolerance)}: it must be a number above zero")
        for name, least in (("max_sweeps", 0), ("most_steps", 0), ("restarts", 0), ("chunk", 1)):
            value = whole(getattr(self, name))
            if value is None or not least <= value <= LARGEST:
                raise OptionsError(
                    f"{name} is {shown(getattr(self, name))}: it must be a whole number, at least {least}"
                )
        for name in ("finish", "plain", "repair_pops"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise OptionsError(f"{name} is {shown(getattr(self, name))}: it must be True or False")


class Frames:
    """A dataclass whose fields are arrays over frames or contain such arrays; other values are for all frames."""

    def part(self, frames: IntArray | slice) -> Self:
        """A copy with some of the frames, `frames` (N,)."""
        return type(self)(**{name: _part(value, frames) for name, value in vars(self).items()})


def _part(value: Any, frames: IntArray | slice) -> Any:
    if isinstance(value, Frames):
        return value.part(frames)
    return value[frames] if isinstance(value, np.ndarray) else value


@dataclass(frozen=True)
class PosePrior(Frames):
    """Local rotations that a pose is expected to have: Σ weight · angle² is added to the least-squares cost.

    Attributes:
        rotations: ([F,] J, 4) unit quaternions.
        weights: ([F,] J) weights of squared radians relative to weight · distance² of the targets; 0: no expectation.
    """

    rotations: FloatArray
    weights: FloatArray

    def of(self, bones: Sequence[int]) -> "PosePrior":
        """The prior of some of the bones."""
        return PosePrior(self.rotations[:, bones], self.weights[:, bones])

    def away(self, local: FloatArray) -> FloatArray:
        """(F, J, 3) rotation vectors from `local` (F, J, 4) to the expected rotations, in the carried frames."""
        return rotation_vector_from_quaternion(product(self.rotations, conjugate(local)))

    def cost(self, local: FloatArray) -> FloatArray:
        """(F,) Σ weight · angle²; local: (F, J, 4)."""
        return np.asarray((self.weights * squares(self.away(local))).sum(axis=1))


@dataclass(frozen=True)
class Targets(Frames):
    """Targets of E effectors on F frames and the poses from which they are solved, in armature space.

    Attributes:
        positions: (F, E, 3) target positions; NaN if a target is not seen.
        weights: (F, E) of the targets.
        rotations: (F, E, 4) target rotations of the effectors' bones, unit quaternions w x y z; NaN for none.
        bend: (F, E, 3) poles of the limbs that end at the effectors; NaN for none.
        start: (F, J, 4) local rotations of the poses to start from.
        roots: (F, 3) the root's head in these poses.
        prior: F expected poses of all J bones; None for none.
    """

    positions: FloatArray
    weights: FloatArray
    rotations: FloatArray
    bend: FloatArray
    start: FloatArray
    roots: FloatArray
    prior: PosePrior | None = None

    def __len__(self) -> int:
        return len(self.positions)

    def seen_from(self, origins: FloatArray) -> "Targets":
        """The targets and poses relative to other `origins` (F, 3)."""
        away = origins[:, None]
        return replace(self, positions=self.positions - away, bend=self.bend - away, roots=self.roots - origins)


def checked_parts(
    skeleton: Skeleton,
    effectors: Iterable[Effector],
    limits: Mapping[str, Limit] | None,
    slides: Mapping[str, tuple[float, float]] | None,
    root: str,
    options: Options | None,
) -> tuple[Skeleton, tuple[Effector, ...], dict[str, Limit], dict[str, tuple[float, float]], bool, Options]:
    """The fields of a `Problem`; raises the FabrikError for the first invalid part."""
    if not isinstance(skeleton, Skeleton):
        raise SkeletonError(f"The skeleton is {shown(skeleton)}: give a Skeleton")
    if not isinstance(root, str) or root not in {"FIXED", "FREE"}:
        raise OptionsError(f"The root is {shown(root)}: it must be 'FIXED' or 'FREE'")
    try:
        given = tuple(effectors)
    except TypeError:
        raise TargetError(f"The effectors are {shown(effectors)}: give a list of Effector") from None
    if not given:
        raise TargetError("There is no effector: name at least one bone that is to reach a target")
    points = tuple(_checked_effector(skeleton, effector) for effector in given)
    limits = {} if limits is None else limits
    slides = {} if slides is None else slides
    check_limits(skeleton, limits)
    check_slides(skeleton, slides)
    if not isinstance(options, Options | None):
        raise OptionsError(f"The options are {shown(options)}: give Options or None")
    ends = {name: (float(low), float(high)) for name, (low, high) in slides.items()}
    return skeleton, points, dict(limits), ends, root == "FREE", options or Options()


def _checked_effector(skeleton: Skeleton, effector: Effector) -> Effector:
    """The effector with offsets as tuples; raises TargetError for another type, an unknown bone or invalid numbers."""
    if not isinstance(effector, Effector):
        raise TargetError(f"One of the effectors is {shown(effector)}: each must be an Effector")
    if effector.bone not in skeleton:
        raise TargetError(f"The effector's bone {shown(effector.bone)} must be one of the skeleton's")
    what, target = f"The effector of bone {effector.bone!r} has", effector.target_bone
    if not 0.0 < number(effector.weight) <= LARGEST:
        raise TargetError(f"{what} weight {shown(effector.weight)}: it must be a finite number, more than 0")
    if not 0.0 <= number(effector.rotation_weight) <= 1.0:
        raise TargetError(f"{what} rotation weight {shown(effector.rotation_weight)}: it must be from 0 to 1")
    priority = whole(effector.priority)
    if priority is None or abs(priority) > LARGEST:
        raise TargetError(f"{what} priority {shown(effector.priority)}: it must be a whole number")
    offset, target_offset = three_numbers(effector.offset), three_numbers(effector.target_offset)
    if effector.offset is not None and offset is None:
        raise TargetError(f"{what} an offset that must be three finite numbers")
    if target is not None and target not in skeleton:
        raise TargetError(f"{what} the target bone {shown(target)}: it must be one of the skeleton's")
    if target == effector.bone:
        raise TargetError(f"{what} its own bone as its target: choose another")
    if target is not None and effector.target_offset is not None and target_offset is None:
        raise TargetError(f"{what} a target offset that must be three finite numbers")
    return replace(effector, offset=offset, target_offset=target_offset)


def check_limits(skeleton: Skeleton, limits: Mapping[str, Limit]) -> None:
    """Raise LimitError naming an unknown bone or an invalid limit."""
    if not isinstance(limits, Mapping):
        raise LimitError(f"The limits are {shown(limits)}: give a dictionary of bone names and limits")
    for name, limit in limits.items():
        if name not in skeleton:
            raise LimitError(f"There is a limit for bone {shown(name)}: it must be one of the skeleton's")
        if not isinstance(limit, Limit):
            raise LimitError(f"The limit of bone {name!r} is {shown(limit)}: use Ball, Hinge, Fixed or Polygon")


def check_slides(skeleton: Skeleton, slides: Mapping[str, tuple[float, float]]) -> None:
    """Raise LimitError naming an unknown bone or an invalid slide."""
    if not isinstance(slides, Mapping):
        raise LimitError(f"The slides are {shown(slides)}: give a dictionary of bone names and two factors each")
    for name, ends in slides.items():
        if name not in skeleton:
            raise LimitError(f"There is a slide for bone {shown(name)}: it must be one of the skeleton's")
        factors = numbers(ends)
        if factors is None or factors.shape != (2,):
            raise LimitError(f"The slide of bone {name!r} is {shown(ends)}: give two factors, the lower one first")
        low, high = factors
        if not 0.0 < low <= high <= LARGEST:
            raise LimitError(
                f"The slide of bone {name!r} is from {low} to {high}: "
                "give two finite factors above 0, the lower one first"
            )
        if skeleton.lengths[skeleton.index(name)] == 0:
            raise LimitError(f"Bone {name!r} has no length, so it cannot slide: remove its slide")


def _points(what: str, name: str, values: object, frames: int | None, count: int) -> FloatArray:
    """([F,] E, 3) points; if one coordinate of a point is NaN, all are."""
    array = shaped(TargetError, what, values, frames, count, 3)
    far = np.argwhere(np.abs(array) > LARGEST)
    if len(far):
        raise TargetError(f"The {name} of effector {far[0][-2]} is infinite or too far; use NaN for none")
    return np.where(np.isnan(array).any(axis=-1, keepdims=True), np.nan, array)


def _unit(array: FloatArray) -> FloatArray:
    """Quaternions scaled to unit length; NaN if a component is NaN, infinite if their length is zero or too large."""
    far = (np.abs(array) > LARGEST).any(axis=-1, keepdims=True)
    norms = lengths(np.where(far, 0.0, array))[..., None]
    usable = norms >= SINGLE
    return np.where(np.isnan(norms), np.nan, np.where(usable, array, np.inf) / np.where(usable, norms, 1.0))


def checked_targets(
    skeleton: Skeleton,
    effectors: Sequence[Effector],
    targets: npt.ArrayLike,
    weights: npt.ArrayLike | None,
    target_rotations: npt.ArrayLike | None,
    bend_targets: npt.ArrayLike | None,
    prior: PosePrior | None,
    start: npt.ArrayLike | None,
    start_location: npt.ArrayLike | None,
) -> tuple[Targets, bool]:
    """The targets and start poses of F frames from arguments of `Solver.solve`, and whether these were for one pose.

    Raises TargetError for invalid ones. Without weights, the effectors' own are used; a weight of zero disables the
    target on that frame.
    """
    count = len(effectors)
    positions = _points("The targets have", "target", targets, None, count)
    is_one, positions = positions.ndim == 2, positions.reshape(-1, count, 3)
    frames = len(positions)
    turned, bend = np.full((count, 4), np.nan), np.full((count, 3), np.nan)
    if target_rotations is not None:
        turned = _unit(shaped(TargetError, "The target rotations have", target_rotations, frames, count, 4))
        wrong = np.argwhere(np.isinf(turned))
        if len(wrong):
            raise TargetError(
                f"The target rotation of effector {wrong[0][-2]} is infinite or has no length; use NaN for none"
            )
    if bend_targets is not None:
        bend = _points("The bend targets have", "bend target", bend_targets, frames, count)
    own = [effector.weight for effector in effectors] if weights is None else weights
    pulls = shaped(TargetError, "The weights have", own, frames, count)
    if not ((pulls >= 0.0) & (pulls <= LARGEST)).all():
        raise TargetError("A weight is negative or not finite: each must be a number of 0 or more")
    if not isinstance(prior, PosePrior | None):
        raise TargetError(f"The prior is {shown(prior)}: it must be a PosePrior")
    if prior is not None:
        rotations, bones = checked_start(prior.rotations, skeleton, frames), len(skeleton)
        shares = shaped(TargetError, "The prior's weights have", prior.weights, frames, bones)
        if not ((shares >= 0.0) & (shares <= LARGEST)).all():
            raise TargetError("The prior's weights must be finite numbers of 0 or more")
        prior = PosePrior(rotations, np.broadcast_to(shares, (frames, bones)))
    shape = frames, count
    return Targets(
        positions,
        np.broadcast_to(pulls, shape),
        np.broadcast_to(turned, (*shape, 4)),
        np.broadcast_to(bend, (*shape, 3)),
        checked_start(start, skeleton, frames),
        checked_root_location(start_location, skeleton, frames),
        prior,
    ), is_one


def checked_start(start: npt.ArrayLike | None, skeleton: Skeleton, frames: int) -> FloatArray:
    """(F, J, 4) unit start rotations; None: the rest pose."""
    count = len(skeleton)
    if start is None:
        return np.broadcast_to(IDENTITY, (frames, count, 4))
    array = _unit(shaped(TargetError, "The start pose has", start, frames, count, 4))
    if not np.isfinite(array).all():
        raise TargetError("The start pose has a rotation that is not finite or has no length: give quaternions")
    return np.broadcast_to(array, (frames, count, 4))


def checked_root_location(start_location: npt.ArrayLike | None, skeleton: Skeleton, frames: int) -> FloatArray:
    """(F, 3) start positions of the root's head; None: at rest."""
    location = skeleton.rest[0, :3, 3] if start_location is None else start_location
    array = shaped(TargetError, "start_location has", location, frames, 3)
    if not (np.abs(array) <= LARGEST).all():
        raise TargetError("start_location must be finite")
    return np.broadcast_to(array, (frames, 3))
