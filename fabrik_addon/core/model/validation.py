"""Checks all input of a solve before anything is computed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..arrays import SINGLE, FloatArray, lengths
from ..errors import LimitError, OptionsError, SkeletonError, TargetError
from ..limits.base import Limit
from ..readers import LARGEST, number, numbers, shown, whole
from ..rotations import IDENTITY
from .effector import Effector
from .options import Options
from .skeleton import Skeleton
from .targets import PosePrior


def checked_parts(
    skeleton: Skeleton,
    effectors: Iterable[Effector],
    limits: Mapping[str, Limit] | None,
    slides: Mapping[str, tuple[float, float]] | None,
    root: str,
    options: Options | None,
) -> tuple[tuple[Effector, ...], dict[str, Limit], dict[str, tuple[float, float]], Options]:
    """The effectors, limits, slides and options of a problem; raises a FabrikError for invalid ones."""
    if not isinstance(skeleton, Skeleton):
        raise SkeletonError(f"The skeleton is {shown(skeleton)}: give a Skeleton")
    check_root(root)
    try:
        points = tuple(effectors)
    except TypeError:
        raise TargetError(f"The effectors are {shown(effectors)}: give a list of Effector") from None
    check_effectors(skeleton, points)
    limits = {} if limits is None else limits
    slides = {} if slides is None else slides
    check_limits(skeleton, limits)
    check_slides(skeleton, slides)
    if not isinstance(options, Options | None):
        raise OptionsError(f"The options are {shown(options)}: give Options or None")
    ends = {name: (float(low), float(high)) for name, (low, high) in slides.items()}
    points = tuple(
        replace(point, offset=_read(point.offset), target_offset=_read(point.target_offset)) for point in points
    )
    return points, dict(limits), ends, options or Options()


def check_effectors(skeleton: Skeleton, effectors: Sequence[Effector]) -> None:
    """Raise TargetError for invalid effectors."""
    if not effectors:
        raise TargetError("There is no effector: name at least one bone that is to reach a target")
    for effector in effectors:
        if not isinstance(effector, Effector):
            raise TargetError(f"One of the effectors is {shown(effector)}: each must be an Effector")
        if effector.bone not in skeleton:
            raise TargetError(f"The effector's bone {shown(effector.bone)} must be one of the skeleton's")
        _check_values(f"The effector of bone {effector.bone!r} has", effector)
        if effector.target_bone is not None:
            _check_loop(f"The effector of bone {effector.bone!r} has", effector, skeleton)


def _check_values(what: str, effector: Effector) -> None:
    """Raise TargetError for invalid numbers of an effector."""
    if not 0.0 < number(effector.weight) <= LARGEST:
        raise TargetError(f"{what} weight {shown(effector.weight)}: it must be a finite number, more than 0")
    if not 0.0 <= number(effector.rotation_weight) <= 1.0:
        raise TargetError(f"{what} rotation weight {shown(effector.rotation_weight)}: it must be from 0 to 1")
    priority = whole(effector.priority)
    if priority is None or abs(priority) > LARGEST:
        raise TargetError(f"{what} priority {shown(effector.priority)}: it must be a whole number")
    if effector.offset is not None and _read(effector.offset) is None:
        raise TargetError(f"{what} an offset that must be three finite numbers")


def _check_loop(what: str, effector: Effector, skeleton: Skeleton) -> None:
    """Raise TargetError for a loop that cannot be closed."""
    if effector.target_bone not in skeleton:
        raise TargetError(f"{what} the target bone {shown(effector.target_bone)}: it must be one of the skeleton's")
    if effector.target_bone == effector.bone:
        raise TargetError(f"{what} its own bone for a target: choose another")
    if effector.target_offset is not None and _read(effector.target_offset) is None:
        raise TargetError(f"{what} a target offset that must be three finite numbers")


def _read(offset: object) -> tuple[float, float, float] | None:
    """Three finite numbers; None for anything else."""
    if not isinstance(offset, tuple):
        array = numbers(offset)
        offset = () if array is None or array.shape != (3,) else tuple(array.tolist())
    found = [number(each) for each in offset]
    return (found[0], found[1], found[2]) if len(found) == 3 and all(abs(each) <= LARGEST for each in found) else None


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


def check_root(root: str) -> None:
    """Raise OptionsError for an unknown root mode."""
    if not isinstance(root, str) or root not in {"FIXED", "FREE"}:
        raise OptionsError(f"The root is {shown(root)}: it must be 'FIXED' or 'FREE'")


def _given(what: str, values: object, frames: int | None, *shape: int) -> FloatArray:
    """Numbers of one pose or of F, in the given shape; raises TargetError for other shapes or numbers too large.

    frames: F; None for any number. NaN is allowed.
    """
    array = numbers(values)
    if array is None:
        raise TargetError(f"{what} {shown(values)}: numbers are needed")
    several = array.shape[1:] == shape if frames is None else array.shape == (frames, *shape)
    if not several and array.shape != shape:
        needed = ", ".join(map(str, (f"[{'F' if frames is None else frames},]", *shape))).replace("],", "]")
        raise TargetError(f"{what} shape {array.shape}: it must be ({needed})")
    return array


def _points(what: str, name: str, values: object, frames: int | None, count: int) -> FloatArray:
    """([F,] E, 3) points; if one coordinate of a point is NaN, all are."""
    array = _given(what, values, frames, count, 3)
    far = np.argwhere(np.abs(array) > LARGEST)
    if len(far):
        raise TargetError(f"The {name} of effector {far[0][-2]} is infinite or too far; use NaN for none")
    return np.where(np.isnan(array).any(axis=-1, keepdims=True), np.nan, array)


def checked_targets(targets: npt.ArrayLike, count: int) -> tuple[FloatArray, bool]:
    """(F, E, 3) targets, and whether they were those of one pose (E, 3)."""
    array = _points("The targets have", "target", targets, None, count)
    return (array[None], True) if array.ndim == 2 else (array, False)


def checked_bend_targets(bend_targets: npt.ArrayLike | None, frames: int, count: int) -> FloatArray:
    """(F, E, 3) poles toward which limbs bend; NaN for none."""
    if bend_targets is None:
        return np.broadcast_to(np.nan, (frames, count, 3))
    array = _points("The bend targets have", "bend target", bend_targets, frames, count)
    return np.broadcast_to(array, (frames, count, 3))


def _unit(array: FloatArray) -> FloatArray:
    """Quaternions scaled to unit length; NaN if a component is, infinite if they have no length or are too long."""
    far = (np.abs(array) > LARGEST).any(axis=-1, keepdims=True)
    norms = lengths(np.where(far, 0.0, array))[..., None]
    usable = norms >= SINGLE
    return np.where(np.isnan(norms), np.nan, np.where(usable, array, np.inf) / np.where(usable, norms, 1.0))


def checked_target_rotations(target_rotations: npt.ArrayLike | None, frames: int, count: int) -> FloatArray:
    """(F, E, 4) target rotations of effectors' bones, unit quaternions; NaN for none."""
    if target_rotations is None:
        return np.broadcast_to(np.nan, (frames, count, 4))
    array = _unit(_given("The target rotations have", target_rotations, frames, count, 4))
    wrong = np.argwhere(np.isinf(array))
    if len(wrong):
        raise TargetError(
            f"The target rotation of effector {wrong[0][-2]} is infinite or has no length; use NaN where there is none"
        )
    return np.broadcast_to(array, (frames, count, 4))


def checked_weights(weights: npt.ArrayLike | None, effectors: Sequence[Effector], frames: int) -> FloatArray:
    """(F, E) weights, the effectors' own when None; zero disables the target on that frame."""
    own, count = [effector.weight for effector in effectors], len(effectors)
    array = _given("The weights have", own if weights is None else weights, frames, count)
    if not ((array >= 0.0) & (array <= LARGEST)).all():
        raise TargetError("A weight is negative or not finite: each must be a number of 0 or more")
    return np.broadcast_to(array, (frames, count))


def checked_prior(prior: PosePrior | None, skeleton: Skeleton, frames: int) -> PosePrior | None:
    """The prior on F frames; raises TargetError for invalid rotations or weights."""
    if prior is None:
        return None
    if not isinstance(prior, PosePrior):
        raise TargetError(f"The prior is {shown(prior)}: it must be a PosePrior")
    rotations, count = checked_start(prior.rotations, skeleton, frames), len(skeleton)
    weights = _given("The prior's weights have", prior.weights, frames, count)
    if not ((weights >= 0.0) & (weights <= LARGEST)).all():
        raise TargetError("The prior's weights must be finite numbers of 0 or more")
    return PosePrior(rotations, np.broadcast_to(weights, (frames, count)))


def checked_start(start: npt.ArrayLike | None, skeleton: Skeleton, frames: int) -> FloatArray:
    """(F, J, 4) unit start rotations; None: the rest pose."""
    count = len(skeleton)
    if start is None:
        return np.broadcast_to(IDENTITY, (frames, count, 4))
    array = _unit(_given("The start pose has", start, frames, count, 4))
    if not np.isfinite(array).all():
        raise TargetError("The start pose has a rotation that is not finite or has no length: give quaternions")
    return np.broadcast_to(array, (frames, count, 4))


def checked_root_location(start_location: npt.ArrayLike | None, skeleton: Skeleton, frames: int) -> FloatArray:
    """(F, 3) the root's head to start from; at rest when None."""
    location = skeleton.rest[0, :3, 3] if start_location is None else start_location
    array = _given("start_location has", location, frames, 3)
    if not (np.abs(array) <= LARGEST).all():
        raise TargetError("start_location must be finite")
    return np.broadcast_to(array, (frames, 3))
