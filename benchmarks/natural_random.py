"""Smooth random paths in and out of reach: joints are no faster than the mouse, and none pops at full reach."""

import os
from dataclasses import dataclass

import numpy as np

from benchmarks.natural_paths import NOW, DraggedFromStart, Path3, follow, open_human
from benchmarks.tables import Aim, Part, table

STEPS = 1000
# Twelve paths. Two of them are measured unless FABRIK_NATURAL_PATHS names others, such as "0 1 2". All take half an
# hour.
PATHS = [int(number) for number in os.environ.get("FABRIK_NATURAL_PATHS", "0 3").split()]
DRAGGED = ("hand.L", "hand.R", "head", "upper_chest", "hips", "forearm.L")
# The steps that are solved from the drag's start. That is slow, and each is independent of the steps before it.
WINDOW = slice(400, 440)
# The largest movement of a joint relative to that of the target.
LOOSE = 5.0
# Degrees: a bone that rotates by more in a step out of reach pops visibly.
POP = 15.0


@dataclass(frozen=True)
class Followed:
    """One path of N steps.

    ratios: (N,) largest movement of a joint divided by the target's; NaN out of reach. turns: (N,) largest rotation of
    a bone in degrees; NaN in reach. milliseconds: (N,). in_reach: (N,). joint: the one with the largest ratio, and its
    step.
    """

    ratios: np.ndarray
    turns: np.ndarray
    milliseconds: np.ndarray
    in_reach: np.ndarray
    joint: str


def measure_random():
    """Each path with a drag and with a live rig, and a part of it solved from the drag's start."""
    rig, rows, aims = open_human(), [], []
    for number in PATHS:
        bone = DRAGGED[number % len(DRAGGED)]
        shifts = random_shifts(number, STEPS)
        for method, make in {"from the drag's start": DraggedFromStart, **NOW}.items():
            steps = shifts[WINDOW] if make is DraggedFromStart else shifts
            found = followed(follow(rig, Path3("", bone, ()), steps, make))
            rows.append((f"{number}, {bone}", method, *_row(found)))
            if method in NOW:
                aims += _aims(f"path {number}, {bone}, {method}", found)
    header = (
        "path", "solved", "steps in reach", "a joint as far as the target", "which, on which step", f"above {LOOSE:g}×",
        "steps out of reach", "largest turn", f"above {POP:g}°", "ms in reach, 99th", "ms out of reach, 99th",
    )  # fmt: skip
    title = f"Natural: {len(PATHS)} of 12 smooth random paths of {STEPS} steps, feet pinned"
    return Part(table(title, header, rows), tuple(aims))


def random_shifts(seed, steps):
    """(steps, 3) meters along a smooth closed random path, about half of it out of reach."""
    random, time = np.random.default_rng(seed), np.linspace(0.0, 2.0 * np.pi, steps, endpoint=False)
    size = 0.25 if seed % 2 else 0.5
    waves = [random.normal(size=(2, 3)) / wave for wave in range(1, 5)]
    path = sum(
        np.outer(np.sin(wave * time), each[0]) + np.outer(np.cos(wave * time) - 1.0, each[1])
        for wave, each in enumerate(waves, start=1)
    )
    return size * path / np.abs(path).max() + 0.0


def followed(track):
    """The figures of a track without its first step, which may come from far away."""
    gone = np.linalg.norm(np.diff(track.shifts, axis=0), axis=1)
    joints = np.linalg.norm(np.diff(track.matrices[1:, :, :3, 3], axis=0), axis=-1)
    both = track.both_in_reach[1:]
    ratios = np.where(both, joints.max(axis=1) / gone, np.nan)
    worst = int(np.nan_to_num(ratios).argmax())
    return Followed(
        ratios,
        np.where(track.in_reach[1:], np.nan, track.turns[1:].max(axis=1)),
        1000.0 * track.seconds[1:],
        track.in_reach[1:],
        f"{track.names[joints[worst].argmax()]}, {worst + 2}",
    )


def _row(found):
    reach = found.in_reach
    times = [found.milliseconds[chosen] for chosen in (reach, ~reach)]
    return (
        int(reach.sum()), f"{_largest(found.ratios):.1f}", found.joint, int((found.ratios > LOOSE).sum()),
        int((~reach).sum()), f"{_largest(found.turns):.0f}°", int((found.turns > POP).sum()),
        *("" if not len(each) else "{:.1f}, {:.1f}".format(*np.percentile(each, (50, 99))) for each in times),
    )  # fmt: skip


def _aims(name, found):
    return [
        Aim.at_most(
            "Random paths: distance of a joint, relative to the target's",
            LOOSE,
            _largest(found.ratios),
            "times",
            case=name,
        ),
        Aim.at_most(
            f"Random paths: steps above {POP:g}° out of reach", 0, int((found.turns > POP).sum()), "", case=name
        ),
    ]


def _largest(values):
    """The largest value, ignoring NaN; 0 if all are NaN."""
    return float(np.nan_to_num(values).max(initial=0.0))
