"""Hypothesis strategies for the tests of joint limits: limits of every kind, rotations, limited trees."""

import numpy as np
from hypothesis import strategies as st
from support.rigs import random_tree

from fabrik_addon.core import Ball, Effector, Fixed, Hinge, LimitError, Polygon

PI = np.pi

# Whole degrees and special values: zero, a right angle, 180°.
leans = st.one_of(st.sampled_from([0.0, PI / 2, PI]), st.integers(2, 180).map(np.radians).map(float))
signed = st.one_of(st.sampled_from([0.0, -PI, PI, PI / 2]), st.floats(-PI, PI))


@st.composite
def ranges(draw, widest=2 * PI):
    """(low, high) of any kind: one-sided, without rest, wide, or without width."""
    low = draw(signed)
    return low, low + draw(st.one_of(st.sampled_from([0.0, PI, widest]), st.floats(0.0, widest)))


@st.composite
def balls(draw):
    """Ball limits: round, four-sided or flat."""
    cone = draw(st.one_of(leans, st.tuples(leans, leans, leans, leans)))
    return Ball(cone, draw(ranges()))


@st.composite
def hinges(draw):
    """Hinge limits with any axis and any range."""
    return Hinge(draw(st.sampled_from("XYZ")), *draw(ranges()))


@st.composite
def polygons(draw):
    """Star-shaped outlines around a swing: convex or not, either winding, rest inside or outside."""
    center = np.array(draw(st.tuples(st.floats(-1.2, 1.2), st.floats(-1.2, 1.2))))
    count = draw(st.integers(3, 8))
    radii = np.array(draw(st.lists(st.floats(0.1, 1.3), min_size=count, max_size=count)))
    # Avoid gaps of 180° between two corners, since the star would not enclose its center.
    angles = (
        2
        * PI
        * (np.arange(count) + np.array(draw(st.lists(st.floats(0, 0.4), min_size=count, max_size=count))))
        / count
    )
    corners = center + radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    order = slice(None, None, draw(st.sampled_from([1, -1])))
    try:
        return Polygon([tuple(corner) for corner in corners[order].tolist()], draw(ranges()))
    except LimitError:  # too far out, or edges too close to each other
        return Polygon([(0.5, 0.1), (0.9, 0.4), (0.4, 0.8)], draw(ranges()))


limits = st.one_of(balls(), hinges(), polygons(), st.just(Fixed()))


@st.composite
def rotations(draw, count=8):
    """(count, 4) unit quaternions, including rotations by 180° and identities."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = rng.normal(size=(count, 4))
    values[0] = draw(
        st.sampled_from([(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (1, 1, 0, 0), (-1, 0, 0, 0)])
    )
    values[1, draw(st.integers(0, 3))] = 0.0
    return values / np.linalg.norm(values, axis=1, keepdims=True)


@st.composite
def limited_trees(draw):
    """A random tree, limits for most of its bones, effectors on some."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(1, 9))
    skeleton = random_tree(rng, count, inheriting=draw(st.sampled_from([1.0, 0.8])))
    chosen = {name: draw(limits) for name in skeleton.names if draw(st.integers(0, 3))}
    effectors = [
        Effector(
            skeleton.names[draw(st.integers(0, count - 1))],
            None if draw(st.booleans()) else tuple(rng.normal(size=3) * 0.2),
            draw(st.floats(0.1, 3.0)),
        )
        for _ in range(draw(st.integers(1, 4)))
    ]
    return skeleton, chosen, effectors
