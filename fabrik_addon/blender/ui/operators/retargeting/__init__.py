"""The operators of retargeting."""

from . import bone_list, retarget

CLASSES = (*bone_list.CLASSES, *retarget.CLASSES)
