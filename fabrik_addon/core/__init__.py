"""FABRIK: inverse kinematics on rigid bodies, with bones, limits and targets. Independent of Blender."""

from .errors import FabrikError, LimitError, OptionsError, SkeletonError, TargetError
from .kernel.bodies import forward_kinematics
from .limits import Ball, Fixed, Hinge, Polygon
from .model.effector import Effector, Options
from .model.skeleton import Skeleton
from .solution import Solution, Status
from .solve import Solver, solve

__all__ = [
    "Ball",
    "Effector",
    "FabrikError",
    "Fixed",
    "Hinge",
    "LimitError",
    "Options",
    "OptionsError",
    "Polygon",
    "Skeleton",
    "SkeletonError",
    "Solution",
    "Solver",
    "Status",
    "TargetError",
    "forward_kinematics",
    "solve",
]
