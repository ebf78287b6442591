"""The door: what a solve is asked for is checked here, before anything is worked out."""

from collections.abc import Mapping, Sequence
from numbers import Integral

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, lengths
from ..errors import LimitError, OptionsError, TargetError
from ..limits.base import Limit
from ..rotations import NO_TURN
from .effector import Effector
from .skeleton import Skeleton
from .targets import PosePrior

_NO_LENGTH = 1e-6
# Squares of what is farther do not fit into single precision.
FARTHEST = 1e15


def check_effectors(skeleton: Skeleton, effectors: Sequence[Effector]) -> None:
    """Raises TargetError for what cannot be an effector."""
    if not effectors:
        raise TargetError("There is no effector: name at least one bone that is to reach a target")
    for effector in effectors:
        if effector.bone not in skeleton.names:
            raise TargetError(f"The effector's bone {effector.bone!r} must be one of the skeleton's")
        if not (np.isfinite(effector.weight) and effector.weight > 0):
            raise TargetError(
                f"The effector of bone {effector.bone!r} has weight {effector.weight}: it must be more than 0"
            )
        if effector.offset is not None and not _is_point(effector.offset):
            raise TargetError(f"The effector of bone {effector.bone!r} has an offset that must be three finite numbers")
        if not 0.0 <= effector.rotation_weight <= 1.0:
            raise TargetError(
                f"The effector of bone {effector.bone!r} has rotation weight {effector.rotation_weight}: "
                "it must be from 0 to 1"
            )
        if not isinstance(effector.priority, Integral):
            raise TargetError(
                f"The effector of bone {effector.bone!r} has priority {effector.priority!r}: it must be a whole number"
            )
        _check_loop(skeleton, effector)


def _check_loop(skeleton: Skeleton, effector: Effector) -> None:
    """Raises TargetError for a loop that cannot be closed."""
    if effector.target_bone is None:
        return
    if effector.target_bone not in skeleton.names:
        raise TargetError(
            f"The effector of bone {effector.bone!r} has the target bone {effector.target_bone!r}: "
            "it must be one of the skeleton's"
        )
    if effector.target_bone == effector.bone:
        raise TargetError(f"The effector of bone {effector.bone!r} has its own bone for a target: choose another")
    if effector.target_offset is not None and not _is_point(effector.target_offset):
        raise TargetError(
            f"The effector of bone {effector.bone!r} has a target offset that must be three finite numbers"
        )


def _is_point(values: object) -> bool:
    """Whether they are three finite numbers."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return array.shape == (3,) and bool(np.isfinite(array).all())


def check_limits(skeleton: Skeleton, limits: Mapping[str, Limit]) -> None:
    """Raises LimitError naming a bone that is not there or a limit that is none."""
    for name, limit in limits.items():
        if name not in skeleton.names:
            raise LimitError(f"There is a limit for bone {name!r}: it must be one of the skeleton's")
        if not isinstance(limit, Limit):
            raise LimitError(f"The limit of bone {name!r} is {limit!r}: use Ball, Hinge, Fixed or Polygon")


def check_slides(skeleton: Skeleton, slides: Mapping[str, tuple[float, float]]) -> None:
    """Raises LimitError naming a bone that is not there or cannot slide so."""
    for name, ends in slides.items():
        if name not in skeleton.names:
            raise LimitError(f"There is a slide for bone {name!r}: it must be one of the skeleton's")
        if np.shape(ends) != (2,):
            raise LimitError(f"The slide of bone {name!r} is {ends!r}: two factors are needed, the lower one first")
        low, high = ends
        if not (np.isfinite(high) and 0.0 < low <= high):
            raise LimitError(
                f"The slide of bone {name!r} is from {low} to {high}: "
                "two factors above 0 are needed, the lower one first"
            )
        if skeleton.lengths[skeleton.index(name)] == 0:
            raise LimitError(f"Bone {name!r} has no length, so it cannot slide: leave its slide out")


def check_root(root: str) -> None:
    """Raises OptionsError for an unknown root mode."""
    if not isinstance(root, str) or root not in {"FIXED", "FREE"}:
        raise OptionsError(f"The root is {root!r}: it must be 'FIXED' or 'FREE'")


def checked_targets(targets: npt.ArrayLike, count: int) -> tuple[FloatArray, bool]:
    """(F, E, 3) targets, and whether they were one pose's (E, 3)."""
    array = np.asarray(targets, dtype=np.float64)
    if array.ndim not in {2, 3} or array.shape[-2:] != (count, 3):
        raise TargetError(
            f"The targets have shape {array.shape}, but ([F,] {count}, 3) is needed for {count} effectors"
        )
    if (np.abs(array) > FARTHEST).any():
        effector = int(np.argwhere(np.abs(array) > FARTHEST)[0][-2])
        raise TargetError(f"The target of effector {effector} is infinite or too far; use NaN where it is not seen")
    array = np.where(np.isnan(array).any(axis=-1, keepdims=True), np.nan, array)
    one = array.ndim == 2
    return (array[None] if one else array), one


def _given(what: str, values: npt.ArrayLike, frames: int, *shape: int) -> FloatArray:
    """Values of one pose or of F, as they are given; raises TargetError for any other shape."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape not in {shape, (frames, *shape)}:
        needed = ", ".join(map(str, shape))
        raise TargetError(f"{what} shape {array.shape}, but ([{frames},] {needed}) is needed")
    return array


def checked_bend_targets(bend_targets: npt.ArrayLike | None, frames: int, count: int) -> FloatArray:
    """(F, E, 3) points toward which limbs bend, NaN where there is none."""
    if bend_targets is None:
        return np.broadcast_to(np.nan, (frames, count, 3))
    array = _given("The bend targets have", bend_targets, frames, count, 3)
    if (np.abs(array) > FARTHEST).any():
        effector = int(np.argwhere(np.abs(array) > FARTHEST)[0][-2])
        raise TargetError(f"The bend target of effector {effector} is infinite or too far; use NaN for none")
    missing = np.isnan(array).any(axis=-1, keepdims=True)
    return np.broadcast_to(np.where(missing, np.nan, array), (frames, count, 3))


def checked_target_rotations(target_rotations: npt.ArrayLike | None, frames: int, count: int) -> FloatArray:
    """(F, E, 4) unit quaternions that effectors' bones are to have, NaN where there is none."""
    if target_rotations is None:
        return np.broadcast_to(np.nan, (frames, count, 4))
    array = _given("The target rotations have", target_rotations, frames, count, 4)
    norms = lengths(array)[..., None]
    wrong = np.isinf(norms) | (norms < _NO_LENGTH)
    if wrong.any():
        effector = int(np.argwhere(wrong)[0][-2])
        raise TargetError(
            f"The target rotation of effector {effector} is infinite or has no length; use NaN where there is none"
        )
    return np.broadcast_to(array / norms, (frames, count, 4))


def checked_weights(weights: npt.ArrayLike | None, effectors: Sequence[Effector], frames: int) -> FloatArray:
    """(F, E) weights, the effectors' own when None; zero: the target does not count on that frame."""
    own, count = [effector.weight for effector in effectors], len(effectors)
    array = _given("The weights have", own if weights is None else weights, frames, count)
    if not (np.isfinite(array) & (array >= 0.0)).all():
        raise TargetError("A weight is negative or not finite: each must be a number of 0 or more")
    return np.broadcast_to(array, (frames, count))


def checked_prior(prior: PosePrior | None, skeleton: Skeleton, frames: int) -> PosePrior | None:
    """The prior on F frames; raises TargetError where its rotations or weights make no sense."""
    if prior is None:
        return None
    rotations, count = checked_start(prior.rotations, skeleton, frames), len(skeleton)
    weights = np.asarray(prior.weights, dtype=np.float64)
    if weights.shape not in {(count,), (frames, count)} or not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise TargetError(f"The prior's weights must be ([{frames},] {count}) finite numbers of 0 or more")
    return PosePrior(rotations, np.broadcast_to(weights, (frames, count)))


def checked_start(start: npt.ArrayLike | None, skeleton: Skeleton, frames: int) -> FloatArray:
    """(F, J, 4) unit start rotations, the rest pose when None."""
    count = len(skeleton)
    if start is None:
        return np.broadcast_to(NO_TURN, (frames, count, 4))
    array = _given("The start pose has", start, frames, count, 4)
    norms = lengths(array)[..., None]
    if not (np.isfinite(norms).all() and (norms > _NO_LENGTH).all()):
        raise TargetError("The start pose has a rotation that is not finite or has no length: give quaternions")
    return np.broadcast_to(array / norms, (frames, count, 4))


def checked_root_location(start_location: npt.ArrayLike | None, skeleton: Skeleton, frames: int) -> FloatArray:
    """(F, 3) the root's head to start from, its rest place when None."""
    place = skeleton.rest[0, :3, 3] if start_location is None else start_location
    array = _given("start_location has", place, frames, 3)
    if not np.isfinite(array).all():
        raise TargetError("start_location must be finite")
    return np.broadcast_to(array, (frames, 3))
