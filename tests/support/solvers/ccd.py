"""Cyclic coordinate descent (Wang and Chen 1991; with limits, Welman 1993): one joint after the other, tips first."""

from math import atan2

import numpy as np


def ccd(figure, targets):
    """One full iteration: every joint once.

    targets: (E, 3) of the figure's end effectors.
    """
    for bone in figure.bones[::-1]:
        asked = [
            arc(tip - figure.heads[bone], target - figure.heads[bone])
            for tip, target, rides in zip(figure.tips, targets, figure.rides[bone], strict=True)
            if rides
        ]
        figure.turn(bone, sum(asked) / len(asked))


def arc(start, end):
    """The rotation vector (3,) of the shortest rotation from one direction to another."""
    (ax, ay, az), (bx, by, bz) = start, end
    cross = np.array([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])
    sine = np.sqrt(cross @ cross)
    if sine == 0.0:
        return cross
    return cross * (atan2(sine, start @ end) / sine)
