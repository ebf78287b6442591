"""The state of each marker in a rig's list."""

from typing import Any, Final

from ..settings.markers import FabrikMarker

# Errors of a marker in meters that count as fair, and as bad.
FAIR: Final = 0.02
BAD: Final = 0.05


def marker_state(rig: Any, marker: FabrikMarker) -> str:
    """One of GONE (no object or bone), FREE (not assigned), OFF, READY (not baked yet), GOOD, FAIR and BAD."""
    if marker.target is None or (marker.bone and marker.bone not in rig.data.bones):
        return "GONE"
    if not marker.bone:
        return "FREE"
    if not marker.enabled or marker.weight == 0.0:
        return "OFF"
    if marker.error < 0.0:
        return "READY"
    return "GOOD" if marker.error < FAIR else "FAIR" if marker.error < BAD else "BAD"
