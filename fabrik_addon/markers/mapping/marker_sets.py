"""The marker sets of studios and laboratories, with the landmark of each label.

Labels are written here in lower case without side, prefix or separators: "R.Knee.Lat" as "kneelat".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...human.naming_schemes import FINGER_JOINTS


@dataclass(frozen=True, eq=False)
class MarkerSet:
    """A marker set. sided: landmarks by labels with a side. middle: landmarks by labels without a side."""

    title: str
    description: str
    sided: Mapping[str, str]
    middle: Mapping[str, str]


_TRUNK: Final = {"c7": "c7", "t10": "t10", "clav": "jugular notch", "strn": "xiphoid"}
_VICON_UPPER: Final = {
    "fhd": "front of head", "bhd": "back of head", "bak": "back", "bac": "back",
    "sho": "acromion", "upa": "upper arm", "elb": "outer elbow", "frm": "forearm",
    "wra": "thumb side of wrist", "wrb": "little finger side of wrist", "fin": "knuckles",
}  # fmt: skip
_VICON_LOWER: Final = {
    "thi": "thigh", "kne": "outer knee", "ank": "outer ankle", "hee": "heel", "toe": "second toe's ball",
    "mt5": "little toe's ball", "mt1": "big toe's ball",
}  # fmt: skip

_PLUG_IN_GAIT: Final = MarkerSet(
    "Plug-in Gait",
    "Vicon's gait set for legs or full body, including the medial markers of newer versions",
    _VICON_UPPER
    | _VICON_LOWER
    | {
        "asi": "asis", "asis": "asis", "psi": "psis", "psis": "psis", "tib": "shank",
        "upb": "upper arm", "upc": "upper arm",
        "wri": "back of wrist", "mwri": "little finger side of wrist", "melb": "inner elbow", "elbm": "inner elbow",
        "knm": "inner knee", "mkne": "inner knee", "knem": "inner knee", "kax": "outer knee",
        "med": "inner ankle", "anm": "inner ankle", "mank": "inner ankle", "ankm": "inner ankle", "mma": "inner ankle",
        "thap": "front of thigh", "thad": "front of thigh", "tiap": "front of shank", "tiad": "front of shank",
        "ttu": "tibial tuberosity", "tht": "trochanter", "gtr": "trochanter",
        "knl": "outer knee", "anl": "outer ankle", "5th": "little toe's ball", "1st": "big toe's ball",
        # Labels of the Human Body Model.
        "lek": "outer knee", "mek": "inner knee", "lee": "outer elbow", "mee": "inner elbow",
        "lw": "thumb side of wrist", "mw": "little finger side of wrist", "ati": "front of shank",
        "smh": "second toe's ball", "fmh": "big toe's ball", "vmh": "little toe's ball", "hlx": "big toe",
    },
    _TRUNK
    | {"sacr": "sacrum", "ariel": "crown", "jn": "jugular notch", "nave": "front of waist", "thead": "crown"},
)  # fmt: skip
_VICON_41: Final = MarkerSet(
    "CMU / Vicon 41",
    "The 41 markers of the CMU motion-capture database, with waist markers and a marker on each shin",
    _VICON_UPPER
    | _VICON_LOWER
    | {
        "fwt": "asis", "bwt": "back of waist", "shn": "shank",
        # Labels of AMASS's SSM set, and of other Vicon sets with more than 41 markers.
        "fsh": "front of shoulder", "bsh": "back of shoulder", "elbin": "inner elbow", "iel": "inner elbow",
        "iwr": "thumb side of wrist", "owr": "little finger side of wrist",
        "ihan": "index knuckle", "ohan": "little knuckle", "ihand": "index knuckle", "ohand": "little knuckle",
        "thm": "thumb", "thmb": "thumb", "kni": "inner knee", "kneein": "inner knee", "ankin": "inner ankle",
        "fsho": "front of shoulder", "bsho": "back of shoulder", "elbo": "outer elbow", "frma": "forearm",
        "wria": "thumb side of wrist", "wrib": "little finger side of wrist", "hel": "inner heel",
    },
    _TRUNK | {"ariel": "crown", "mfwt": "front of waist", "mbwt": "sacrum", "l3": "lumbar spine"},
)  # fmt: skip
_HELEN_HAYES: Final = MarkerSet(
    "Helen Hayes / gait2354",
    "The Helen Hayes set, with the labels used by Motion Analysis and OpenSim's gait2354",
    {
        "asis": "asis", "hip": "asis", "psis": "psis", "iliaccrest": "iliac crest", "trochanter": "trochanter",
        "thigh": "thigh", "thighupper": "upper thigh", "thighfront": "front of thigh", "thighrear": "rear of thigh",
        "knee": "outer knee", "kneelat": "outer knee", "kneelateral": "outer knee",
        "kneemed": "inner knee", "kneemedial": "inner knee", "patella": "kneecap",
        "shank": "shank", "shankupper": "upper shank", "shankfront": "front of shank", "shankrear": "rear of shank",
        "ankle": "outer ankle", "anklelat": "outer ankle", "anklelateral": "outer ankle",
        "anklemed": "inner ankle", "anklemedial": "inner ankle",
        "heel": "heel", "midfootsup": "top of foot", "midfootlat": "outer side of foot",
        "toe": "second toe's ball", "toetip": "tip of toes", "toelat": "little toe's ball", "toemed": "big toe's ball",
        "shoulder": "acromion", "acromium": "acromion", "acromion": "acromion", "bicep": "biceps", "biceps": "biceps",
        "elbow": "outer elbow", "elbowlat": "outer elbow", "elbowmed": "inner elbow", "forearm": "forearm",
        "wrist": "back of wrist", "wristlat": "thumb side of wrist", "wristmed": "little finger side of wrist",
        "offset": "back", "scapula": "back", "temple": "temple", "fronthead": "front of head",
        "rearhead": "back of head", "backhead": "back of head",
        # Davis's set as used by BTS, with wands on thigh and shank, and the fibula's head as the second knee marker.
        "should": "acromion", "bar1": "thigh", "knee1": "outer knee", "bar2": "shank", "knee2": "upper shank",
        "mall": "outer ankle", "met": "little toe's ball",
    },
    {
        "vsacral": "sacrum", "sacral": "sacrum", "sacrum": "sacrum", "sternum": "sternum", "c7": "c7", "t10": "t10",
        "tophead": "crown", "fronthead": "forehead", "rearhead": "rear of head", "backhead": "rear of head",
        "clavicle": "jugular notch", "xiphoid": "xiphoid",
    },
)  # fmt: skip
_RAJAGOPAL: Final = MarkerSet(
    "Rajagopal",
    "The markers of Rajagopal's full-body OpenSim model",
    {
        "acr": "acromion", "ash": "front of shoulder", "psh": "back of shoulder", "sjc": "shoulder",
        "lel": "outer elbow", "mel": "inner elbow", "ejc": "elbow",
        "ua1": "upper arm", "ua2": "upper arm", "ua3": "upper arm",
        "fasuperior": "forearm", "faradius": "thumb side of wrist", "faulna": "little finger side of wrist",
        "asi": "asis", "asis": "asis", "psi": "psis", "psis": "psis", "hjc": "hip",
        "th1": "thigh", "th2": "thigh", "th3": "thigh", "th4": "thigh",
        "lfc": "outer knee", "mfc": "inner knee", "kjc": "knee",
        "tb1": "shank", "tb2": "shank", "tb3": "shank", "tb4": "shank",
        "lmal": "outer ankle", "mmal": "inner ankle", "ajc": "ankle",
        "cal": "heel", "cal2": "outer heel", "cal3": "inner heel",
        "toe": "second toe's ball", "mt1": "big toe's ball", "mt5": "little toe's ball", "toetip": "big toe",
    },
    {"c7": "c7", "clav": "jugular notch", "t10": "t10", "strn": "xiphoid", "sacrum": "sacrum"},
)  # fmt: skip
_BONY_LANDMARKS: Final = MarkerSet(
    "Bony Landmarks",
    "Codes for palpated landmarks by van Sint Jan (used by Qualisys and OptiTrack Biomech), ISB and IOR",
    {
        "ah": "front of head", "ph": "back of head", "fhd": "front of head", "bhd": "back of head",
        "caj": "acromion", "sae": "acromion", "ac": "acromion", "a": "acromion", "hgt": "shoulder",
        "aa": "back of shoulder", "saa": "back of shoulder", "ai": "back", "sia": "back", "ts": "back",
        "ua": "upper arm", "hle": "outer elbow", "hme": "inner elbow", "el": "outer elbow", "em": "inner elbow",
        "ael": "outer elbow", "uoa": "olecranon", "aol": "olecranon", "fra": "forearm",
        "rsp": "thumb side of wrist", "usp": "little finger side of wrist",
        "rs": "thumb side of wrist", "us": "little finger side of wrist",
        "rstyl": "thumb side of wrist", "ustyl": "little finger side of wrist",
        "wts": "thumb side of wrist", "wps": "little finger side of wrist",
        "hm2": "index knuckle", "hm5": "little knuckle", "hts": "index knuckle", "hps": "little knuckle",
        "ias": "asis", "ips": "psis", "asis": "asis", "psis": "psis", "ict": "iliac crest",
        "ftc": "trochanter", "gt": "trochanter", "th": "thigh", "sk": "shank",
        "fle": "outer knee", "fme": "inner knee", "le": "outer knee", "me": "inner knee",
        "lk": "outer knee", "mk": "inner knee", "la": "outer ankle", "ma": "inner ankle",
        "fax": "upper shank", "hf": "upper shank", "ttc": "tibial tuberosity", "tt": "tibial tuberosity",
        "fal": "outer ankle", "tam": "inner ankle", "lm": "outer ankle", "mm": "inner ankle",
        "fcc": "heel", "ca": "heel", "fm1": "big toe's ball", "fm2": "second toe's ball", "fm5": "little toe's ball",
        "fm": "big toe's ball", "sm": "second toe's ball", "vm": "little toe's ball", "dp1": "big toe",
    },
    {
        "sjn": "jugular notch", "ij": "jugular notch", "sxs": "xiphoid", "px": "xiphoid",
        "cv7": "c7", "c7": "c7", "tv2": "t2", "t2": "t2", "tv7": "t8", "tv8": "t8", "t8": "t8", "mai": "t8",
        "tv10": "t10", "t10": "t10", "l1": "lumbar spine", "l3": "lumbar spine", "lv3": "lumbar spine",
        "l5": "sacrum", "lv5": "sacrum", "sacr": "sacrum",
    },
)  # fmt: skip
_OPTITRACK: Final = MarkerSet(
    "OptiTrack / Qualisys Animation",
    "OptiTrack's Baseline set, and Qualisys' animation and sports sets with In and Out in their labels",
    {
        "head": "temple", "back": "back", "shouldertop": "acromion", "shoulderback": "back of shoulder",
        "uarmhigh": "upper arm", "uarm": "upper arm", "arm": "upper arm",
        "elbowout": "outer elbow", "elbowin": "inner elbow",
        "wristin": "thumb side of wrist", "wristout": "little finger side of wrist",
        "handin": "index knuckle", "handout": "little knuckle", "hand2": "index knuckle", "hand": "knuckles",
        "waistfront": "asis", "waistback": "back of waist", "waist": "iliac crest",
        "thigh": "thigh", "thighfront": "front of thigh", "thighfrontlow": "front of thigh",
        "kneeout": "outer knee", "kneein": "inner knee",
        "shin": "shank", "shinfront": "front of shank", "shinfronthigh": "front of shank",
        "ankleout": "outer ankle", "anklein": "inner ankle", "heel": "heel", "heelback": "heel",
        "toeout": "little toe's ball", "toein": "big toe's ball", "toetip": "big toe",
        "forefoot2": "second toe's ball", "forefoot5": "little toe's ball",
        "forefootout": "little toe's ball", "forefootin": "big toe's ball",
    },
    {
        "headtop": "crown", "headfront": "forehead", "headside": "middle of head", "backtop": "c7", "spinetop": "c7",
        "chest": "sternum", "spinethoracic2": "t2", "spinethoracic12": "t10", "waistback": "sacrum",
        "waistfront": "front of waist",
    },
)  # fmt: skip
_KEYPOINTS: Final = {
    "hip": "hip", "knee": "knee", "ankle": "ankle", "heel": "heel", "shoulder": "shoulder", "elbow": "elbow",
    "wrist": "wrist", "eye": "eye", "ear": "ear",
}  # fmt: skip
_OPENPOSE: Final = MarkerSet(
    "Pose2Sim / OpenPose",
    "The keypoints of OpenPose, HALPE and COCO, as written by Pose2Sim",
    _KEYPOINTS
    | {"bigtoe": "big toe", "smalltoe": "little toe", "hand": "middle of hand", "ball": "second toe's ball"},
    {
        "hip": "middle of hips", "midhip": "middle of hips", "chip": "middle of hips", "pelvis": "middle of hips",
        "spinebase": "middle of hips", "bodycenter": "middle of hips",
        "neck": "middle of shoulders", "spineshoulder": "middle of shoulders",
        "head": "crown", "nose": "nose", "headjoint": "base of skull", "thorax": "middle of shoulders",
    },
)  # fmt: skip


def _hand_keypoints() -> dict[str, str]:
    """The joints of MediaPipe's hand, under labels with and without "hand" and "finger"."""
    keypoints = {"handwrist": "wrist"}
    for finger, joints in FINGER_JOINTS.items():
        for joint, place in zip(joints, ("1", "2", "3", "tip"), strict=True):
            for start in (finger, f"{finger}finger", f"hand{finger}", f"hand{finger}finger"):
                keypoints[start + joint] = f"{finger} {place}"
    return keypoints


_MEDIAPIPE: Final = MarkerSet(
    "MediaPipe / FreeMoCap",
    "The body and hand landmarks of MediaPipe, with FreeMoCap's names",
    _KEYPOINTS
    | {
        "eyeinner": "inner eye", "eyeouter": "outer eye", "mouth": "mouth", "pinky": "little knuckle",
        "index": "index knuckle", "thumb": "thumb", "footindex": "big toe", "handmiddle": "middle of hand",
    }
    | _hand_keypoints(),
    {
        "nose": "nose", "headcenter": "middle of head", "neckcenter": "middle of shoulders",
        "hipscenter": "middle of hips",
    },
)  # fmt: skip

PRESETS: Final[Mapping[str, MarkerSet]] = {
    "PLUG_IN_GAIT": _PLUG_IN_GAIT,
    "VICON_41": _VICON_41,
    "HELEN_HAYES": _HELEN_HAYES,
    "RAJAGOPAL": _RAJAGOPAL,
    "BONY_LANDMARKS": _BONY_LANDMARKS,
    "OPTITRACK": _OPTITRACK,
    "OPENPOSE": _OPENPOSE,
    "MEDIAPIPE": _MEDIAPIPE,
}
