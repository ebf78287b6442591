"""The marker sets that studios and laboratories use: which label stands for which landmark.

A label is written here in small letters without side, prefix or separators: "R.Knee.Lat" as "kneelat".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ...human.body_parts import FINGERS


@dataclass(frozen=True, eq=False)
class Preset:
    """A marker set. sided: landmarks by labels that have a side; middle: by those that have none."""

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

_PLUG_IN_GAIT: Final = Preset(
    "Plug-in Gait",
    "Vicon's set for gait, of the legs or the full body, with the medial markers of its successors",
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
        "smh": "second toe's ball", "fmh": "big toe's ball", "vmh": "little toe's ball", "hlx": "big toe",
    },
    _TRUNK | {"sacr": "sacrum", "ariel": "crown"},
)  # fmt: skip
_VICON_41: Final = Preset(
    "CMU / Vicon 41",
    "The 41 markers of the CMU motion-capture database, with waist markers and a marker on each shin",
    _VICON_UPPER | _VICON_LOWER | {"fwt": "asis", "bwt": "back of waist", "shn": "shank", "toe": "second toe's ball"},
    _TRUNK,
)
_HELEN_HAYES: Final = Preset(
    "Helen Hayes / gait2354",
    "The Helen Hayes set as Motion Analysis and OpenSim's gait2354 label it",
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
    },
    {
        "vsacral": "sacrum", "sacral": "sacrum", "sacrum": "sacrum", "sternum": "sternum", "c7": "c7", "t10": "t10",
        "tophead": "crown", "fronthead": "forehead", "rearhead": "rear of head", "backhead": "rear of head",
        "clavicle": "jugular notch", "xiphoid": "xiphoid",
    },
)  # fmt: skip
_RAJAGOPAL: Final = Preset(
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
_KEYPOINTS: Final = {
    "hip": "hip", "knee": "knee", "ankle": "ankle", "heel": "heel", "shoulder": "shoulder", "elbow": "elbow",
    "wrist": "wrist", "eye": "eye", "ear": "ear",
}  # fmt: skip
_OPENPOSE: Final = Preset(
    "Pose2Sim / OpenPose",
    "The keypoints of OpenPose, HALPE and COCO as Pose2Sim writes them",
    _KEYPOINTS | {"bigtoe": "big toe", "smalltoe": "little toe", "hand": "middle of hand"},
    {
        "hip": "middle of hips", "midhip": "middle of hips", "chip": "middle of hips", "neck": "middle of shoulders",
        "head": "crown", "nose": "nose",
    },
)  # fmt: skip


def _hand_keypoints() -> dict[str, str]:
    """MediaPipe's joints of the hand, with and without "hand" and "finger" in their labels."""
    told = {"thumb": ("cmc", "mcp", "ip", "tip")} | dict.fromkeys(FINGERS[1:], ("mcp", "pip", "dip", "tip"))
    keypoints = {"handwrist": "wrist"}
    for finger, joints in told.items():
        for joint, place in zip(joints, ("1", "2", "3", "tip"), strict=True):
            for start in (finger, f"{finger}finger", f"hand{finger}", f"hand{finger}finger"):
                keypoints[start + joint] = f"{finger} {place}"
    return keypoints


_MEDIAPIPE: Final = Preset(
    "MediaPipe / FreeMoCap",
    "The landmarks of MediaPipe's body and hands as FreeMoCap names them",
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

PRESETS: Final[Mapping[str, Preset]] = MappingProxyType(
    {
        "PLUG_IN_GAIT": _PLUG_IN_GAIT,
        "VICON_41": _VICON_41,
        "HELEN_HAYES": _HELEN_HAYES,
        "RAJAGOPAL": _RAJAGOPAL,
        "OPENPOSE": _OPENPOSE,
        "MEDIAPIPE": _MEDIAPIPE,
    }
)
