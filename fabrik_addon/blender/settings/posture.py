"""What is kept on a rig of how it stands: the pose that it likes best, its balance and its floor."""

from bpy.props import BoolProperty, CollectionProperty, EnumProperty, FloatProperty, FloatVectorProperty
from bpy.types import PropertyGroup

from .live import poses_live_rigs
from .moment import Moment
from .overrides import overridable

PREFERRED_POSES = (
    ("START", "Start", "The pose in which a drag begins, or that live goes on from"),
    ("REST", "Rest", "The rest pose"),
    ("KEPT", "Kept", "The pose that was kept by the button beside this"),
)
BALANCES = (
    (
        "AUTO",
        "Auto",
        (
            "The center of mass stays over pinned feet and other pins as low as they are; "
            "a higher pin holds the body, so it may lean"
        ),
    ),
    ("ON", "On", "The centre of mass stays over what is pinned of the feet, as far as the goals allow"),
    ("OFF", "Off", "The centre of mass goes where the goals take it"),
)


@overridable
class FabrikStoredBone(PropertyGroup):
    """How a bone stood when its pose was kept; its name is the bone's."""

    rotation: FloatVectorProperty(
        name="Rotation", description="Its local rotation", size=4, subtype="QUATERNION", default=(1.0, 0.0, 0.0, 0.0)
    )
    location: FloatVectorProperty(name="Location", description="What its location channels held", subtype="XYZ")


@overridable
@poses_live_rigs
class PostureSettings:
    """What dragging, live posing and solving heed beside the goals. A mixin of the rig's settings."""

    preferred_pose: EnumProperty(
        name="Preferred Pose",
        description="The pose that the rig stays near to, of all that meet the goals",
        items=PREFERRED_POSES,
    )
    kept_pose: CollectionProperty(
        name="Kept Pose", description="The pose that was kept to be preferred", type=FabrikStoredBone
    )
    solved_from: CollectionProperty(
        name="Solved From", description="The pose before the present one was solved", type=FabrikStoredBone
    )
    # What tells the solved pose from any other.
    solved = Moment()
    balance: EnumProperty(name="Balance", description="Whether the body keeps its balance", items=BALANCES)
    free_limbs_hang: BoolProperty(
        name="Free Limbs Hang",
        description="In a drag of the whole rig, arms, legs and the head hang where nothing drags or pins them, "
        "instead of following the trunk rigidly",
        default=True,
    )
    use_floor: BoolProperty(name="Floor", description="Feet, hands and knees do not go through the floor")
    use_self_collision: BoolProperty(
        name="Self-Collision",
        description="Arms, legs, head and trunk of a human rig do not go into each other",
        default=True,
    )
    show_capsules: BoolProperty(
        name="Show Capsules", description="Draw the capsules that Self-Collision keeps out of each other"
    )
    floor_height: FloatProperty(
        name="Floor Height",
        description="Where the floor is, along the world's Z axis",
        unit="LENGTH",
        precision=4,
    )
