"""Data stored on a rig for its posture: the preferred pose, balance and floor."""

from bpy.props import BoolProperty, CollectionProperty, EnumProperty, FloatProperty, FloatVectorProperty
from bpy.types import PropertyGroup

from .live import poses_live_rigs
from .moment import Moment
from .overrides import overridable

PREFERRED_POSES = (
    ("START", "Start", "The pose at the start of a drag, or the current pose when Live is on"),
    ("REST", "Rest", "The rest pose"),
    ("KEPT", "Stored", "The pose stored with the pin button"),
)
BALANCES = (
    (
        "AUTO",
        "Auto",
        (
            "Keep the center of mass over pinned feet and other pins at their height. A higher pin "
            "supports the body, so it may lean"
        ),
    ),
    ("ON", "On", "Keep the center of mass over the pinned feet if the targets allow it"),
    ("OFF", "Off", "Do not keep the center of mass over the feet"),
)


@overridable
class FabrikStoredBone(PropertyGroup):
    """The pose of a bone when it was stored; its name is the bone's."""

    rotation: FloatVectorProperty(
        name="Rotation",
        description="Local rotation of the bone",
        size=4,
        subtype="QUATERNION",
        default=(1.0, 0.0, 0.0, 0.0),
    )
    location: FloatVectorProperty(name="Location", description="Location channels of the bone", subtype="XYZ")


@overridable
@poses_live_rigs
class PostureSettings:
    """Settings of dragging, live posing and solving besides the goals. A mixin of the rig's settings."""

    preferred_pose: EnumProperty(
        name="Preferred Pose",
        description="The pose that the rig stays close to while it meets its targets",
        items=PREFERRED_POSES,
    )
    kept_pose: CollectionProperty(
        name="Stored Pose", description="The pose stored as the preferred pose", type=FabrikStoredBone
    )
    solved_from: CollectionProperty(
        name="Pose before Solving", description="The pose from which the current pose was solved", type=FabrikStoredBone
    )
    # A key of the pose that the last solve gave.
    solved = Moment()
    balance: EnumProperty(
        name="Balance", description="Keep the center of mass over the supporting feet", items=BALANCES
    )
    free_limbs_hang: BoolProperty(
        name="Free Limbs Hang",
        description="When the whole rig is dragged, let arms, legs and head hang if they are not dragged or "
        "pinned, instead of following the trunk rigidly",
        default=True,
    )
    use_floor: BoolProperty(name="Floor", description="Keep feet, hands and knees above the floor")
    use_self_collision: BoolProperty(
        name="Self-Collision",
        description="Keep arms, legs, head and trunk of a human rig from intersecting",
        default=True,
    )
    show_capsules: BoolProperty(name="Show Capsules", description="Draw the capsules used by Self-Collision")
    floor_height: FloatProperty(
        name="Floor Height",
        description="Height of the floor on the world's Z axis",
        unit="LENGTH",
        precision=4,
    )
