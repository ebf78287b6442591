"""The state of each marker of a rig's list, in one word."""

from typing import Any, Final

from ..settings.markers import FabrikMarker

# Metres of a marker's error from which it is fair, and from which it is bad.
FAIR: Final = 0.02
BAD: Final = 0.05


def marker_state(rig: Any, marker: FabrikMarker) -> str:
    """One of GONE (no such object or bone), FREE (on no bone), OFF, READY (not baked yet), GOOD, FAIR, BAD."""
    if marker.target is None or (marker.bone and marker.bone not in rig.data.bones):
        return "GONE"
    if not marker.bone:
        return "FREE"
    if not marker.enabled or marker.weight == 0.0:
        return "OFF"
    if marker.error < 0.0:
        return "READY"
    return "GOOD" if marker.error < FAIR else "FAIR" if marker.error < BAD else "BAD"
