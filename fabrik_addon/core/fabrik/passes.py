"""The two passes of FABRIK over rigid bodies (the paper's section 4, with bodies instead of points).

Forward, leaves to root: every body is moved rigidly onto its children and effectors. Backward, root to leaves: every
body's head is moved to its parent, then the body is rotated about it and clamped to its limit. With one attachment for
each body and no limits this is Algorithm 1.

Two rules help limited joints to reach. In the forward pass, a body whose limit is active moves without rotating, so
that its parents receive its real target. A ball and the hinges after it are one limb of variable length (see `limbs`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..arrays import SINGLE, TINY, BoolArray, FloatArray, lengths
from ..backend.array import Backend, Condition, Quaternion, Scalar, Vector
from ..kernel.bodies import Bodies, Pose
from ..kernel.goals import Goals, State
from ..rotations import quaternion_from_matrix
from .chain import NO_CHANGE
from .limbs import Attachment, Body, HingeLimb, SweepPose, carried_frame, carried_head, place_bodies

# The weight of a body's current head in a fit, relative to its aims.
_HEAD_SHARE = 0.05


class Aim(NamedTuple):
    """The target position of an attachment and its weight (0: nothing below it is seen)."""

    attachment: Attachment
    point: Vector
    weight: Scalar


@dataclass(frozen=True)
class SweepTargets:
    """The targets of the next sweep on every frame.

    Attributes:
        positions: E points.
        weights: E weights.
        pulls: for each body, the weight of its pull on its parent: the mean weight of the visible effectors at or
            below it.
        orientations: by body, the target orientation, and the fraction of the rotation to it that one sweep applies.
    """

    positions: list[Vector]
    weights: list[Scalar]
    pulls: list[Scalar]
    orientations: dict[int, tuple[Quaternion, Scalar]]


@dataclass(frozen=True)
class Sweep(SweepPose):
    """A pose during a sweep; the passes change it in place.

    Attributes:
        targets: of the effectors.
        bound: for each body, whether its limit was active in the last backward pass.
        aims: for each body, its aims in the last forward pass.
    """

    targets: SweepTargets
    bound: list[Condition]
    aims: dict[int, list[Aim]]


class Passes:
    """Both passes for one set of bodies, parents first, on one backend.

    Args:
        backend: that of `links`.
        bodies, goals: of the problem.
        links: the same bodies as the passes see them.
        limbs: their limbs of a ball and hinges.
        plain: the paper's method with limits: clamp in both passes, without the two rules.
    """

    def __init__(
        self,
        backend: Backend,
        bodies: Bodies,
        goals: Goals,
        links: Sequence[Body],
        limbs: Sequence[HingeLimb],
        plain: bool,
    ) -> None:
        self.backend, self.bodies, self.goals, self.links, self.plain = backend, bodies, goals, links, plain
        self.limbs = {} if plain else {limb.ball: limb for limb in limbs}
        self.in_limbs = {hinge for limb in self.limbs.values() for hinge in limb.hinges}

    def sweep(self, pose: Sweep, local: Sequence[Quaternion]) -> list[Quaternion]:
        """Run one forward and one backward pass, in place; returns the local rotations of the pose.

        local: the local rotation from which each body rotates: current if limited, else the start's.
        """
        root = pose.heads[0]
        for index in reversed(range(len(self.links))):
            pose.aims[index] = [self._aim(attachment, pose) for attachment in self.links[index].attachments]
            if index in self.limbs:
                self._meet_limb(index, pose)
            elif index not in self.in_limbs:
                self._meet(index, pose)
        if not self.bodies.free_root:
            pose.heads[0] = root
        return self._backward_pass(pose, local)

    def _aim(self, attachment: Attachment, pose: Sweep) -> Aim:
        """The aim of an attachment: the weighted centroid of the targets of its effectors and child bodies (4.1)."""
        children, effectors, targets = attachment.children, attachment.effectors, pose.targets
        if len(children) == 1 and not effectors:
            return Aim(attachment, pose.heads[children[0]], targets.pulls[children[0]])
        wanted = [(pose.heads[child], targets.pulls[child]) for child in children]
        wanted += [(targets.positions[effector], targets.weights[effector]) for effector in effectors]
        point, weight = wanted[0]
        if len(wanted) == 1:
            return Aim(attachment, point, weight)
        total = point * weight
        for other, share in wanted[1:]:
            total, weight = total + other * share, weight + share
        return Aim(attachment, total * (1.0 / self.backend.maximum(weight, TINY)), weight)

    def _meet(self, index: int, pose: Sweep) -> None:
        """Forward step of one body: move it to its aims. Rotate it too, unless its limit is active.

        A body with a target rotation gets the rotation first; then its head is placed accordingly.
        """
        backend, aims, head, frame = self.backend, pose.aims[index], pose.heads[index], pose.orientations[index]
        is_turned = index in pose.targets.orientations
        if is_turned:
            turned = self._rotated_toward(frame, *pose.targets.orientations[index])
            moved = self._translated(aims, head, turned)
        elif len(aims) == 1:
            moved, turned = self._point_on_line(aims[0], head, frame), frame
        else:
            moved, turned = self._fit(aims, head, frame)
        bound = pose.bound[index]
        if self.links[index].limit is not None and not self.plain and backend.any_of(bound):
            moved = backend.select(bound, self._translated(aims, head, frame), moved)
            turned = backend.select(bound, frame, turned)
        pose.heads[index], pose.orientations[index] = moved, turned
        if self.plain and not is_turned and len(aims) == 1:
            self._clamp_forward(index, aims[0], pose)

    def _rotated_toward(self, frame: Quaternion, wanted: Quaternion, share: Scalar) -> Quaternion:
        """A frame rotated part of the way to another: 0 keeps it, 1 reaches the other."""
        turn = rotation_vector(self.backend, wanted @ frame.conjugated())
        return (self.backend.exp_map(turn * share) @ frame).normalized()

    def _point_on_line(self, aim: Aim, head: Vector, frame: Quaternion) -> Vector:
        """The new head: on the line from the aim to the old head, at the body's length (FABRIK's basic step)."""
        backend, point = self.backend, head
        alike = (head - aim.point).length_squared <= TINY
        if backend.any_of(alike):
            point = backend.select(alike, aim.point - frame @ aim.attachment.offset, head)
        return backend.select(aim.weight > 0, backend.point_on_line(aim.point, point, aim.attachment.distance), head)

    def _translated(self, aims: list[Aim], head: Vector, frame: Quaternion) -> Vector:
        if len(aims) == 1:
            position = aims[0].point - frame @ aims[0].attachment.offset
            return self.backend.select(aims[0].weight > 0, position, head)
        total = _total(aims)
        position = sum_vectors([(aim.point - frame @ aim.attachment.offset) * aim.weight for aim in aims])
        return self.backend.select(total > 0, position * (1.0 / self.backend.maximum(total, TINY)), head)

    def _fit(self, aims: list[Aim], head: Vector, frame: Quaternion) -> tuple[Vector, Quaternion]:
        """The weighted best rigid fit of a body to its aims.

        Its current head has a small weight, so that the fit is determined. Iterative extraction of the rotation (Müller
        et al. 2016).
        """
        total = _total(aims)
        share = total * _HEAD_SHARE + TINY
        scale = 1.0 / (total + share)
        middle = sum_vectors([aim.attachment.offset * aim.weight for aim in aims]) * scale
        wanted = (sum_vectors([aim.point * aim.weight for aim in aims]) + head * share) * scale
        pairs = [(aim.attachment.offset - middle, aim.point - wanted, aim.weight) for aim in aims]
        pairs.append((-middle, head - wanted, share))
        turned = self._rotate_onto(pairs, frame)
        return wanted - turned @ middle, turned

    def _rotate_onto(self, pairs: list[tuple[Vector, Vector, Scalar]], frame: Quaternion) -> Quaternion:
        """Rotate a frame about a center so that its points (the first of each pair) are closer to the wanted points."""
        arms = [(frame @ offset, wanted, weight) for offset, wanted, weight in pairs]
        torque = sum_vectors([arm.cross(wanted) * weight for arm, wanted, weight in arms])
        grip = sum(arm.dot(wanted) * weight for arm, wanted, weight in arms)
        # Use the angle: the simpler torque / |grip| grows without bound as the grip vanishes, which causes pops.
        size = torque.length
        angle = self.backend.atan2(size, grip)
        return (self.backend.exp_map(torque * (angle / (size + TINY))) @ frame).normalized()

    def _meet_limb(self, index: int, pose: Sweep) -> None:
        """Forward step of a limb: move its head along the line from its aim until the distance is a possible length."""
        backend, limb, head = self.backend, self.limbs[index], pose.heads[index]
        aim = pose.aims[limb.hinges[-1]][0]
        line = head - aim.point
        length = backend.sqrt(backend.maximum(line.length_squared, TINY))
        slid = aim.point + line * (backend.clamp(length, *limb.range) / length)
        if self.links[index].limit is not None:
            current = pose.point(limb.hinges[-1], limb.end(self.links)) - head
            slid = backend.select(pose.bound[index], aim.point - current, slid)
        pose.heads[index] = backend.select(aim.weight > 0, slid, head)

    def _clamp_forward(self, index: int, aim: Aim, pose: Sweep) -> None:
        """The paper's forward clamp: rotate the body, moving its head, so that the limit of the next body holds."""
        backend, frame = self.backend, pose.orientations[index]
        turned = backend.rotation_between(frame @ aim.attachment.offset, aim.point - pose.heads[index])
        frame = (turned @ frame).normalized()
        child = aim.attachment.children[0] if len(aim.attachment.children) == 1 else None
        limit = None if child is None else self.links[child].limit
        if child is not None and limit is not None and self.links[child].inherits_rotation:
            turn = self.links[child].rest_turn
            local = limit.clamp(backend, ((frame @ turn).conjugated() @ pose.orientations[child]).normalized())
            frame = (pose.orientations[child] @ local.conjugated() @ turn.conjugated()).normalized()
        seen = aim.weight > 0
        pose.orientations[index] = backend.select(seen, frame, pose.orientations[index])
        pose.heads[index] = backend.select(seen, aim.point - frame @ aim.attachment.offset, pose.heads[index])

    def _backward_pass(self, pose: Sweep, local: Sequence[Quaternion]) -> list[Quaternion]:
        rotations = list(local)
        for index, body in enumerate(self.links):
            if body.parent >= 0:
                pose.heads[index] = carried_head(body, pose)
            carried = carried_frame(body, pose)
            unturned = carried @ rotations[index]
            if index in self.limbs:
                frame = self._rotate_limb(index, pose, carried, unturned, rotations)
            elif index in self.in_limbs:
                frame = unturned
            else:
                frame = self._rotate_body(index, pose, unturned)
                if index in pose.targets.orientations:
                    frame = self._rotated_toward(frame, *pose.targets.orientations[index])
                frame, rotations[index] = self._clamped(index, pose, carried, frame)
            pose.orientations[index] = frame
        return rotations

    def _rotate_body(self, index: int, pose: Sweep, unturned: Quaternion) -> Quaternion:
        """Backward step of one body: its frame, rotated about its head to match its aims.

        For a single aim, this is the shortest rotation, without roll.
        """
        backend, aims, head = self.backend, pose.aims[index], pose.heads[index]
        if len(aims) == 1:
            aim = aims[0]
            turn = backend.rotation_between(unturned @ aim.attachment.offset, aim.point - head)
            return backend.select(aim.weight > 0, (turn @ unturned).normalized(), unturned)
        pairs = [(aim.attachment.offset, aim.point - head, aim.weight) for aim in aims]
        return backend.select(_total(aims) > 0, self._rotate_onto(pairs, pose.orientations[index]), unturned)

    def _rotate_limb(
        self, index: int, pose: Sweep, carried: Quaternion, unturned: Quaternion, rotations: list[Quaternion]
    ) -> Quaternion:
        """Backward step of a limb: bend its hinges to the length, rotate it onto the target, clamp, aim once more."""
        backend, limb = self.backend, self.limbs[index]
        aim = pose.aims[limb.hinges[-1]][0]
        line, seen = aim.point - pose.heads[index], aim.weight > 0
        bends, span = limb.bend(backend, self.links, line.length)
        frame, local = unturned, rotations[index]
        for _ in range(2):
            aimed = (backend.rotation_between(frame @ span, line) @ frame).normalized()
            frame, local = self._clamped(index, pose, carried, aimed)
            # The limit did not change the frame.
            if frame is aimed:
                break
        for hinge, bend in zip(limb.hinges, bends, strict=True):
            rotations[hinge] = backend.select(seen, bend, rotations[hinge])
        rotations[index] = backend.select(seen, local, rotations[index])
        return backend.select(seen, frame, unturned)

    def _clamped(
        self, index: int, pose: Sweep, carried: Quaternion, frame: Quaternion
    ) -> tuple[Quaternion, Quaternion]:
        """The frame clamped to the body's limit, and its local rotation; records whether the limit was active."""
        limit, local = self.links[index].limit, (carried.conjugated() @ frame).normalized()
        if limit is None:
            return frame, local
        inside = limit.clamp(self.backend, local)
        pose.bound[index] = inside is not local and self.backend.absolute(local.dot(inside)) < 1.0 - SINGLE
        return (frame if inside is local else carried @ inside), inside

    def sweep_frames(self, state: State, max_sweeps: int, at_once: int = 1) -> None:
        """Sweep F frames in place until each is solved, stops moving, or reaches the largest number of sweeps.

        at_once: the number of sweeps between two checks.
        """
        frames, part = np.arange(len(state.weights)), state
        rest = state.pose.local.copy()
        bound = np.zeros(rest.shape[:2], dtype=bool)
        times = 1 if self.goals.loops else at_once
        for done in range(0, max_sweeps, times):
            pose, before = self._after_sweeps(part, rest[frames], bound, times), part.residual
            residual = self.goals.residual(pose, part.wanted)
            part = replace(part, pose=pose, residual=residual, iterations=part.iterations + times)
            moved = lengths(residual - before) > NO_CHANGE * part.tolerances
            part.stationary = ~(moved & (part.weights > 0.0)).any(axis=1)
            is_going = part.unmet() & ~part.stationary
            if not is_going.all() and done + times < max_sweeps:
                going = np.flatnonzero(is_going)
                state.put(frames, part)
                frames, part, bound = frames[going], part.part(going), bound[going]
                if not len(frames):
                    return
        state.put(frames, part)

    def _after_sweeps(self, state: State, rest: FloatArray, bound: BoolArray, times: int) -> Pose:
        """The pose after some sweeps; limited bodies rotate from their current rotation, others from `rest`.

        rest: (F, B, 4). bound: (F, B) as in `Sweep`, changed in place.
        """
        backend = self.backend
        local, begun = backend.quaternions(state.pose.local), backend.quaternions(rest)
        placed = place_bodies(self.links, local, backend.vector(state.pose.root))
        flags: list[Condition] = [backend.scalar(flag) > 0.5 for flag in bound.T.astype(float)]
        pose = Sweep(placed.heads, placed.orientations, self._targets(state), flags, {})
        for _ in range(times):
            turning = [begun[body] if each.limit is None else local[body] for body, each in enumerate(self.links)]
            local = self.sweep(pose, turning)
        for body, flag in enumerate(flags):
            bound[:, body] = flag
        root = backend.stack([pose.heads[0]], len(rest))[:, 0]
        return self.bodies.pose(backend.stack(local, len(rest)), root, state.pose.factors)

    def _targets(self, state: State) -> SweepTargets:
        """The targets of the next sweep; for a loop, both sides go to the midpoint between them."""
        backend, goals = self.backend, self.goals
        count, oriented = goals.count, goals.oriented
        points, weights = state.wanted.points, state.weights[:, :count]
        if goals.loops:
            found = goals.points(state.pose)
            middle = 0.5 * (found[:, goals.loops] + found[:, count:])
            points = np.concatenate([points, middle], axis=1)
            points[:, goals.loops] = middle
            weights = np.concatenate([weights, weights[:, goals.loops]], axis=1)
        orientations: dict[int, tuple[Quaternion, Scalar]] = {}
        if len(oriented):
            shares = np.where(state.weights[:, count:] > 0.0, goals.shares, 0.0)
            wanted = quaternion_from_matrix(state.wanted.frames)
            for index, holder in enumerate(goals.on[oriented].tolist()):
                orientations[holder] = backend.quaternion(wanted[:, index]), backend.scalar(shares[:, index])
        below = goals.below.T
        pulls = weights @ below / np.maximum((weights > 0.0) @ below, 1.0)
        return SweepTargets(
            [backend.vector(points[:, end]) for end in range(points.shape[1])],
            [backend.scalar(weight) for weight in weights.T],
            [backend.scalar(pull) for pull in pulls.T],
            orientations,
        )


def sum_vectors(vectors: Sequence[Vector]) -> Vector:
    """The sum of at least one vector."""
    total = vectors[0]
    for vector in vectors[1:]:
        total = total + vector
    return total


def _total(aims: list[Aim]) -> Scalar:
    return sum((aim.weight for aim in aims[1:]), aims[0].weight)


def rotation_vector(backend: Backend, rotation: Quaternion) -> Vector:
    """Axis times angle of a unit quaternion, radians, at most π."""
    axis = backend.vector_of((rotation.x, rotation.y, rotation.z))
    sine = axis.length
    angle = 2.0 * backend.atan2(sine, backend.absolute(rotation.w))
    scale = backend.select(sine > TINY, angle / backend.maximum(sine, TINY), 2.0)
    return axis * backend.select(rotation.w < 0, -scale, scale)
