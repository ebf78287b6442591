"""Long work that runs all its steps at once."""

from functools import wraps

from fabrik_addon.markers.calibrate.calibrate import calibrate_steps, refined_steps
from fabrik_addon.markers.steps import finish
from fabrik_addon.markers.take import solve_take_steps
from fabrik_addon.retarget.take import retarget_steps


def at_once(steps):
    """Turn a function of steps into one that runs them all and returns their result."""

    @wraps(steps)
    def straight_through(*args, **choices):
        return finish(steps(*args, **choices))

    return straight_through


calibrate, refined = at_once(calibrate_steps), at_once(refined_steps)
solve_take, retarget = at_once(solve_take_steps), at_once(retarget_steps)
