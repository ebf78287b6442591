"""What is shown of a rig's motion: trails of the selected bones, and ghosts of the frames about the present one."""

from bpy.props import BoolProperty, FloatVectorProperty, IntProperty
from bpy.types import PropertyGroup

from ..overrides import overridable


@overridable
class FabrikMotionView(PropertyGroup):
    """Trails and ghosts."""

    show_trails: BoolProperty(
        name="Trails",
        description="Show the way of the selected bones' tails over the frames, with their keys as dots. "
        "A point of it can be dragged like the bone on that frame",
    )
    trail_frames: IntProperty(
        name="Frames", description="So many frames before and after this one", default=60, min=1, soft_max=250
    )
    show_ghosts: BoolProperty(name="Ghosts", description="Show the pose some frames before and after, as thin bones")
    ghost_count: IntProperty(
        name="Count", description="So many ghosts before, and as many after", default=3, min=1, soft_max=20
    )
    ghost_step: IntProperty(name="Step", description="Frames from one to the next", default=5, min=1, soft_max=50)
    # Okabe and Ito's orange and blue: people who can't tell red from green can tell them apart.
    color_before: FloatVectorProperty(
        name="Before", description="What was before", subtype="COLOR", min=0.0, max=1.0, default=(0.90, 0.62, 0.0)
    )
    color_after: FloatVectorProperty(
        name="After", description="What comes after", subtype="COLOR", min=0.0, max=1.0, default=(0.34, 0.71, 0.91)
    )
