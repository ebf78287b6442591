"""The roles of bones by their names: every scheme, and names without a meaning."""

import pytest
from support import humans

from fabrik_addon.human.naming_schemes import FINGERS, PARTS, Role, match, role_of


@pytest.mark.parametrize("scheme", humans.SCHEMES)
def test_every_bone_of_every_scheme_is_known(scheme):
    plain = [row.name for row in humans.human()]
    names = [humans.SCHEMES[scheme](name) for name in plain]
    found = match([*names, "hair.001", "ear.L", "Camera"])
    assert found.keys() == set(names)
    for name, was in zip(names, plain, strict=True):
        role, stem, side = found[name], *was.partition(".")[::2]
        assert role.side == side, name
        assert role.part in PARTS
        finger, _, number = stem.partition("_")
        if finger in FINGERS:
            assert (role.part, role.finger, role.number) == ("finger", finger, int(number)), name
        elif stem == "chest":
            assert role.part in {"spine", "chest"}, name
        else:
            assert role.part == stem, name


def test_roles_of_single_names():
    expected = {
        "upper_chest": Role("chest"),
        "palm.04.R": Role("palm", "R", "pinky"),
        "metacarpal2.L": Role("palm", "L", "middle"),
        "index_metacarpal_l": Role("palm", "L", "index"),
        "little_metacarpal": Role("palm", "", "pinky"),
        "leftThumbMetacarpal": Role("finger", "L", "thumb", 1),
        "middle_middle": Role("finger", "", "middle", 2),
        "upperarm02.L": Role("rigid", "L"),
        "lowerleg02.R": Role("rigid", "R"),
        "pelvis.L": Role("rigid", "L"),
        "pelvis": Role("hips"),
        "shoulder01.L": Role("shoulder", "L"),
        "toe3-2.L": Role("toe", "L", number=2),
        "mixamorigRightArm": Role("upper_arm", "R"),
        "mixamorig7:RightToeBase": Role("toe", "R", number=1),
        "someone:mixamorig:LeftUpLeg": Role("thigh", "L"),
        "wrist": Role("hand"),
        "leftupleg": Role("thigh", "L"),
        "mixamorig:rightforearm": Role("forearm", "R"),
        "righthandindex2": Role("finger", "R", "index", 2),
    }
    assert {name: role_of(name) for name in expected} == expected


@pytest.mark.parametrize(
    "name",
    [
        "", "Bone", "Bone.001", "middle", "ring", "earring.L", "hand_ik.L", "ik_hand_l", "DEF-upper_arm.L", "ORG-spine",
        "MCH-foot.L", "upperarm_twist_01_l", "mixamorig:LeftHandIndex4", "mixamorig:HeadTop_End",
        "mixamorig:LeftToe_End", "J_Sec_L_Bust1", "J_Adj_L_FaceEye", "heel.02.L", "breast.L", "hand.L.001", "head.L",
        "left_right_hand", "finger6-1.L", "finger0-1.L", "metacarpal5.L", "palm", "骨", "ﬁnger1-1.L",
    ],
)  # fmt: skip
def test_names_without_meaning(name):
    assert role_of(name) is None


def test_a_bone_named_spine_is_rigifys_hips_only_without_other_hips():
    rigify = ["spine", "spine.001", "spine.002", "spine.003", "spine.004", "spine.005", "spine.006"]
    parts = [role.part for role in match(rigify).values()]
    assert parts == ["hips", "spine", "spine", "chest", "neck", "neck", "head"]
    parts = {name: role.part for name, role in match(["hips", *rigify, "head"]).items()}
    assert set(parts.values()) == {"hips", "spine", "head"}
    assert parts["spine.006"] == "spine"


def test_a_root_is_the_hips_only_if_there_are_none():
    assert match(["root", "spine05"])["root"] == Role("hips")
    assert "root" not in match(["root", "pelvis", "spine_01"])


def test_the_far_halves_of_rigifys_deform_bones_have_no_joint():
    """Exports for games keep only these bones. Fixed: the far halves got limits, so limbs bent in their middle."""
    names = ["DEF-thigh.L", "DEF-thigh.L.001", "DEF-shin.L", "DEF-shin.L.001", "DEF-forearm.R.001", "DEF-hips"]
    found = match([*names, "ORG-thigh.L.001", "thigh.L.001", "DEF-foot.L.001"])
    parts = ["thigh", "rigid", "shin", "rigid", "rigid", "hips"]
    assert {name: role.part for name, role in found.items()} == dict(zip(names, parts, strict=True))


@pytest.mark.parametrize(
    "thumb",
    [
        ("leftThumbProximal", "leftThumbIntermediate", "leftThumbDistal"),
        ("leftThumbMetacarpal", "leftThumbProximal", "leftThumbDistal"),
        ("thumb_01_l", "thumb_02_l", "thumb_03_l"),
        ("thumb_metacarpal.L", "thumb_proximal.L", "thumb_middle.L", "thumb_distal.L"),
    ],
)
def test_thumbs_are_numbered_from_their_first_bone(thumb):
    assert [match(thumb)[name].number for name in thumb] == list(range(1, len(thumb) + 1))


# For each scheme: the bones of trunk, head and left side, and the roles of trunk and head.
OF_MOTION = {
    "CMU": """Hips LowerBack Spine Spine1 Neck Neck1 Head LeftShoulder LeftArm LeftForeArm LeftHand LeftUpLeg LeftLeg
        LeftFoot LeftToeBase | hips spine spine spine neck neck head""",
    "Rokoko": """Hips Spine1 Spine2 Spine3 Neck Head LeftShoulder LeftArm LeftForeArm LeftHand LeftThigh LeftShin
        LeftFoot LeftToe | hips spine spine spine neck head""",
    "SMPL": """m_avg_Pelvis m_avg_Spine1 m_avg_Neck m_avg_Head m_avg_L_Collar m_avg_L_Shoulder m_avg_L_Elbow
        m_avg_L_Wrist m_avg_L_Hip m_avg_L_Knee m_avg_L_Ankle m_avg_L_Foot | hips spine neck head""",
    "SMPL's joints": """pelvis spine1 neck head left_collar left_shoulder left_elbow left_wrist left_hip left_knee
        left_ankle left_foot | hips spine neck head""",
    "Auto-Rig Pro": """root.x spine_01.x spine_02.x neck.x head.x shoulder.l arm_stretch.l forearm_stretch.l hand.l
        thigh_stretch.l leg_stretch.l foot.l toes_01.l | hips spine spine neck head""",
    "Cascadeur": """pelvis stomach chest neck head clavicle_l arm_l forearm_l hand_l thigh_l calf_l foot_l toe_l
        | hips spine chest neck head""",
    "MVN": """Hips Chest Chest2 Neck Head LeftCollar LeftShoulder LeftElbow LeftWrist LeftHip LeftKnee LeftAnkle
        LeftToe | hips chest chest neck head""",
    "DAZ": """hip abdomenLower abdomenUpper chestLower chestUpper neckLower neckUpper head lCollar lShldrBend
        lForearmBend lHand lThighBend lShin lFoot lToe | hips spine spine chest chest neck neck head""",
    "Poser": """hip abdomen chest neck head lCollar lShldr lForeArm lHand lThigh lShin lFoot lToe
        | hips spine chest neck head""",
    "Character Creator": """CC_Base_Hip CC_Base_Waist CC_Base_Spine01 CC_Base_NeckTwist01 CC_Base_Head
        CC_Base_L_Clavicle CC_Base_L_Upperarm CC_Base_L_Forearm CC_Base_L_Hand CC_Base_L_Thigh CC_Base_L_Calf
        CC_Base_L_Foot CC_Base_L_ToeBase | hips spine spine neck head""",
    "iPi": """Hip LowerSpine MiddleSpine Chest Neck Head LClavicle LShoulder LForearm LHand LThigh LShin LFoot LToe
        | hips spine spine chest neck head""",
    "HumanIK": """Character1_Hips Character1_Spine Character1_Neck Character1_Head Character1_LeftShoulder
        Character1_LeftArm Character1_LeftForeArm Character1_LeftHand Character1_LeftUpLeg Character1_LeftLeg
        Character1_LeftFoot Character1_LeftToeBase | hips spine neck head""",
    "DeepMotion": """hips_JNT spine_JNT neck_JNT head_JNT l_shoulder_JNT l_arm_JNT l_forearm_JNT l_hand_JNT l_upleg_JNT
        l_leg_JNT l_foot_JNT l_toebase_JNT | hips spine neck head""",
}
LIMBS = ["shoulder", "upper_arm", "forearm", "hand", "thigh", "shin", "foot", "toe"]


@pytest.mark.parametrize("scheme", OF_MOTION)
def test_bones_of_motion_files_are_known(scheme):
    names, middle = (text.split() for text in OF_MOTION[scheme].split("|"))
    found = match(names)
    assert [found[name].part for name in names] == middle + LIMBS
    assert [found[name].side for name in names] == [""] * len(middle) + ["L"] * len(LIMBS)


def test_names_of_biped_with_spaces_and_its_root_as_prefix():
    known = {
        "Bip01 Pelvis": Role("hips"), "Bip01 Spine1": Role("spine"), "Bip01 Neck": Role("neck"),
        "Bip01 Head": Role("head"), "Bip01 L Clavicle": Role("shoulder", "L"),
        "Bip01 R UpperArm": Role("upper_arm", "R"), "Bip01 L Forearm": Role("forearm", "L"),
        "Bip01 L Thigh": Role("thigh", "L"),
        "Bip01 L Calf": Role("shin", "L"), "Bip01 L Toe0": Role("toe", "L", number=1),
    }  # fmt: skip
    assert match(["Bip01", "Bip01 Footsteps", *known]) == known
