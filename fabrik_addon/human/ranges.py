"""The ranges of a human's joints: one table, in degrees from the anatomical zero, with the sources.

AAOS: American Academy of Orthopaedic Surgeons, *Joint Motion: Method of Measuring and Recording* (1965) and *The
Clinical Measurement of Joint Motion* (1994). AMA: American Medical Association, *Guides to the Evaluation of Permanent
Impairment*. Both are tabulated in Norkin and White, *Measurement of Joint Motion*, and in Reese and Bandy, *Joint Range
of Motion and Muscle Length Testing*. Figures without a norm are marked "chosen".

Figures are larger than the norm if recorded people exceeded it (`make bench`, part "natural-hidden": one waves, one
dabs, one dances). With the norm, the 95th percentile of their poses was outside by 12.5 degrees at the trunk, 9.2 at
the head, 1.3 at the upper arm and 39 at the thigh. Now it is 3.4, 0.1, 0 and 0.9 degrees. Elbows and knees are outside
by 5.6 and 6.2 degrees, but still do not go beyond straight, since a slightly bent rest pose causes that.
"""

from dataclasses import dataclass, replace
from typing import Final, TypeAlias


@dataclass(frozen=True)
class BallRange:
    """The range of a ball joint, degrees.

    Attributes:
        flexion, extension: forward and back; for the hand toward the palm and away from it, for the foot up and down,
            for the collar bone forward and back.
        abduction, adduction: away from the body and toward it; up and down for the collar bone, to the thumb's side and
            the little finger's for the hand.
        internal, external: twist about the bone; pronation and supination for the hand, eversion and inversion for the
            foot.
    """

    flexion: float
    extension: float
    abduction: float
    adduction: float
    internal: float = 0.0
    external: float = 0.0

    def shared(self, bones: int) -> "BallRange":
        """The range of each of several bones that together form one joint of the table."""
        return BallRange(*(value / bones for value in vars(self).values()))

    def from_rest(self, flexed: float, abducted: float = 0.0, pronated: float = 0.0) -> "BallRange":
        """This range relative to a rest pose that is rotated by these degrees from the anatomical zero."""
        return BallRange(
            self.flexion - flexed,
            self.extension + flexed,
            self.abduction - abducted,
            self.adduction + abducted,
            self.internal - pronated,
            self.external + pronated,
        )


@dataclass(frozen=True)
class HingeRange:
    """The range of a hinge joint: how far it bends, and how far beyond straight it goes, degrees."""

    flexion: float
    extension: float


Range: TypeAlias = BallRange | HingeRange

# The whole lumbar and thoracic spine, and the whole neck with the head: divided among the bones that a rig has.
TRUNK: Final = BallRange(80, 25, 35, 35, 45, 45)  # AAOS
# Higher bones of the trunk twist farther: lumbar vertebrae by 1...3 degrees each, thoracic ones by 4...9 (White and
# Panjabi, *Clinical Biomechanics of the Spine*, 1990). Divided evenly, people twisted 20 degrees too far at the top.
NECK: Final = BallRange(50, 60, 45, 45, 80, 80)  # AMA; AAOS has 45 forward, back and sideways, twist 60

# Sternoclavicular joint: up 45, down 5…10, forward and back 15; the acromioclavicular joint adds about 10. Twist:
# chosen; raising the arm rolls the real bone back much farther.
COLLAR: Final = BallRange(25, 25, 45, 10, 10, 10)

# AAOS, the whole shoulder; inward twist from AMA (AAOS: 70). Adduction is chosen between an arm beside the trunk (0)
# and one in front of it (up to 75).
SHOULDER_HANGING: Final = BallRange(180, 60, 180, 30, 90, 90)
# The same joint with the arm held level to the side: horizontal flexion 135 and extension 45 (AAOS).
SHOULDER_LEVEL: Final = replace(SHOULDER_HANGING, flexion=135, extension=45)

# AAOS has 45 to the side and 45 outward, but a dancer's legs reach 61 and 110 to the side and are rotated out by 75.
# With 60 to the side, the markers of that dance are missed by 9.8 mm RMS; with 90, by 5.8.
HIP: Final = BallRange(120, 30, 90, 30, 45, 60)
WRIST: Final = BallRange(80, 70, 20, 30, 80, 80)  # AAOS; the twist is the forearm's pronation and supination
# AAOS, with the subtalar joint's eversion and inversion. Up: 20 (AAOS) without load, 30…40 under the body's weight, as
# in a squat. Sideways: chosen.
ANKLE: Final = BallRange(35, 50, 10, 20, 15, 35)
KNUCKLE: Final = BallRange(90, 45, 20, 20)  # AAOS; sideways 10…40, which differs from finger to finger
# Carpometacarpal: across the palm 15…45 and back 20 (AAOS: 15 and 20), away from the palm 70 from the side of the hand.
# Rigs rest with the thumb about 30 degrees out.
THUMB_ROOT: Final = BallRange(40, 20, 40, 30)
# The ring and little finger's metacarpals cup the palm by 10…25; the index and middle finger's hardly move.
PALM: Final = BallRange(15, 0, 5, 5)
CUPPING_PALMS: Final = ("ring", "pinky")

ELBOW: Final = HingeRange(150, 0)  # AAOS
KNEE: Final = HingeRange(150, 0)  # AMA; AAOS has 135, with which nobody can squat
TOE_ROOT: Final = HingeRange(45, 70)  # AAOS, the big toe
TOE: Final = HingeRange(60, 0)  # AAOS 35…60
FINGER_MIDDLE: Final = HingeRange(100, 0)  # AAOS
FINGER_END: Final = HingeRange(90, 0)  # AAOS
THUMB_MIDDLE: Final = HingeRange(50, 0)  # AAOS
THUMB_END: Final = HingeRange(80, 20)  # AAOS
