"""Makes the report of a bake, and stores a part of it with the rig."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import bpy
import numpy as np

from ...core import Solution, Status
from ...core.arrays import FloatArray, IntArray
from ...markers.report.doubts import posture_doubts, result_doubts
from ...markers.report.figures import Report, ReportError
from ...markers.report.text import csv_text, replace_file, rotations_line
from ..capture.matching import matching_doubts_of, of_take, why_another_speed
from ..capture.takes import new_record_of, take_name
from ..control.posed_rig import posed_rig
from ..goals.effectors import follows_markers
from ..limits.constraints import is_own
from ..rig.armature import object_scale
from ..settings.rig import rig_settings
from ..settings.why_not import mapped_markers
from .jobs import BakedTree, BakeSettings, animated_limits

# If the trees of a rig have different statuses on a frame, the frame gets the first of these.
_WORST_FIRST: Final = (
    Status.STALLED,
    Status.UNREACHABLE,
    Status.LIMITED,
    Status.FITTED,
    Status.SOLVED,
    Status.UNSEEN,
)


def make_report(trees: Sequence[BakedTree], frames: IntArray) -> Report:
    """The errors of the effectors or markers of all trees, in world meters, on frames (F,)."""
    errors = np.concatenate([tree.solution.errors * tree.scale[:, None] for tree in trees], axis=1)
    status = np.stack([tree.solution.status for tree in trees])
    rank = np.array([_WORST_FIRST.index(each) for each in sorted(Status)])
    worst = [_WORST_FIRST[place] for place in rank[status].min(axis=0).tolist()]
    weights = [effector.weight for tree in trees for effector in tree.problem.effectors]
    return Report(
        errors,
        [name for tree in trees for name in tree.problem.names],
        frames.tolist(),
        worst,
        weights if len(set(weights)) > 1 else None,
        filled=[
            replace(span, first=int(frames[span.first]), last=int(frames[span.last]))
            for tree in trees
            for span in tree.filled
        ],
        limits={
            tree.solution.skeleton.names[bone]: 100.0 * share
            for tree in trees
            for bone, share in enumerate(tree.solution.binding.mean(axis=0).tolist())
            if share
        },
        # Targets of effectors are never rejected.
        outliers=np.concatenate(
            [np.zeros(tree.solution.errors.shape, bool) if tree.outliers is None else tree.outliers for tree in trees],
            axis=1,
        ),
        doubts=[doubt for tree in trees for doubt in tree.doubts],
        rotations={bone: off for tree in trees for bone, off in tree.turned_off.items()},
    )


def take_notes(trees: Sequence[BakedTree], meter: float) -> Iterator[str]:
    """Short lines about gaps, outliers and feet; meter: armature units per meter."""
    spans = [span for tree in trees for span in tree.filled]
    if spans:
        longest = max(spans, key=lambda span: span.count)
        yield f"Gaps: {len(spans)}, longest {longest.count} frames ({longest.bone})"
    stances = [stance for tree in trees for stance in tree.stances]
    if stances:
        before = max(stance.drift_before for stance in stances) / meter
        after = max(stance.drift_after for stance in stances) / meter
        yield (
            f"Feet: {len(stances)} contacts, drift up to {1000 * before:.1f} mm before planting, "
            f"{1000 * after:.1f} mm after"
        )


def export_report(rig: bpy.types.Object, path: str | os.PathLike[str]) -> None:
    """Write the report of the rig's last bake as CSV.

    Raises ReportError if there is none, or if it can't be written.
    """
    text = rig_settings(rig).capture.report
    if text is None:
        raise ReportError(f"{rig.name!r} has no report: bake its markers first")
    replace_file(Path(path), text.as_string())


@dataclass(frozen=True)
class BakeResult:
    """The result of a bake.

    Attributes:
        report: the error of each effector, in world meters.
        frames: (F,) the frames with keys.
        trees: the result for each tree of bones.
        warnings: sentences about reasons why the rig may not show the result.
        timings: seconds for "sample", "solve" and "write".
        notes: lines about gaps and feet.
        take: the name of the recording or the source; "" for effectors, or for markers that were selected one by one.
    """

    report: Report
    frames: IntArray
    trees: tuple[BakedTree, ...]
    warnings: tuple[str, ...]
    timings: dict[str, float]
    notes: tuple[str, ...] = ()
    take: str = ""

    @property
    def solutions(self) -> tuple[Solution, ...]:
        """The poses of each tree."""
        return tuple(tree.solution for tree in self.trees)

    @property
    def lines(self) -> tuple[str, str, str]:
        """The result in short lines: bones and frames, errors, and the worst frame."""
        total, wrong = self.report.total(), self.report.outliers
        left_out = 0 if wrong is None else int(wrong.sum())
        met = f"RMS {1000.0 * total.rms:.1f} mm, worst {1000.0 * total.max:.1f} mm"
        if left_out:
            met = f"RMS {1000.0 * total.rms:.1f} mm, worst {1000.0 * total.max:.1f} mm, {left_out} samples left out"
        bones = sum(len(tree.bones) for tree in self.trees)
        return (
            f"{bones} bones, {len(self.frames)} frames{of_take(self.take)}",
            met,
            f"{total.worst_marker}, frame {total.worst_frame}",
        )

    @property
    def line(self) -> str:
        """The result in one line."""
        (what, met, _), total = self.lines, self.report.total()
        return f"{what}: {met} ({total.worst_marker}, frame {total.worst_frame})"


def make_result(
    armature: bpy.types.Object,
    settings: BakeSettings,
    trees: tuple[BakedTree, ...],
    report: Report,
    matrices: FloatArray,
    seconds: dict[str, float],
    take: str = "",
) -> BakeResult:
    """Make the result of a bake, and store the part that the sidebar shows with the rig.

    matrices: (F, 4, 4) world matrices of the armature. take: the name of a motion without markers.
    """
    keyed = [bone for tree in trees for bone in tree.bones]
    left = (sentence for tree in trees for sentence in tree.problem.left_alone)
    speed = why_another_speed(bpy.context.scene, armature) if follows_markers(armature, settings.source) else ""
    warnings = (
        *([speed] if speed and not take else []),
        *_warnings(armature, keyed),
        *animated_limits(armature, keyed, settings.frames),
        *left,
    )
    own = (note for tree in trees for note in tree.notes)
    notes = (*own, *take_notes(trees, 1.0 / float(object_scale(matrices[0]))), *rotations_line(report))
    by_markers = not take and follows_markers(armature, settings.source)
    if by_markers:
        size = max(tree.problem.tree.skeleton.size * float(np.median(tree.scale)) for tree in trees)
        # Bones that constraints move, among the bones with markers and their parents.
        bones = armature.pose.bones
        carrying = [bones[marker.bone] for marker in mapped_markers(armature) if marker.bone in bones]
        chains = {each.name for bone in carrying for each in (bone, *bone.parent_recursive)}
        moved = sorted(chains & posed_rig(armature).owned.keys(), key=bones.find)
        found = result_doubts(report, size, moved)
        unseen = {row.name for row in report.per_marker() if row.coverage == 0.0}
        report = replace(report, doubts=(*matching_doubts_of(armature, unseen), *found))
    if by_markers or take:
        lying = [doubt for tree in trees for doubt in posture_doubts(tree.solution, matrices)]
        report = replace(report, doubts=(*report.doubts, *lying))
    take = take or (take_name(armature) if by_markers else "")
    result = BakeResult(report, settings.frames, trees, warnings, seconds, notes, take)
    rig_settings(armature).last_result = "\n".join((*result.lines, *notes))
    rig_settings(armature).capture.doubts = "\n".join(report.doubts)
    if by_markers or take:
        # Store the errors in the list of markers, and the whole report as text.
        capture = rig_settings(armature).capture
        for row in report.per_marker():
            entry = capture.markers.get(row.name)
            if entry is not None:
                errors = (-1.0, 0.0) if np.isnan(row.rms) else (row.rms, row.max)
                entry.figures = *errors, row.worst_frame or 0, row.coverage
        capture.worst_frame = report.worst_frame or 0
        text = capture.report or bpy.data.texts.new(f"{take or armature.name} FABRIK report.csv")
        text.clear()
        text.write(csv_text(report))
        capture.report = text
    if by_markers:
        animated = armature.animation_data
        # The action of the topmost NLA strip, if there is no current action.
        new_record_of(armature).action = animated.action or animated.nla_tracks[-1].strips[-1].action
    return result


def _warnings(armature: bpy.types.Object, bones: Sequence[str]) -> Iterator[str]:
    """Sentences about reasons why the rig does not show its new keys."""
    if armature.data.pose_position == "REST":
        yield f"{armature.name!r} is in rest position: switch it to pose position to see the motion"
    for bone in bones if posed_rig(armature).by_channels else ():
        kinds = armature.pose.bones[bone].constraints
        active = [kind.name for kind in kinds if not kind.mute and kind.influence > 0.0 and not is_own(kind)]
        if active:
            yield f"Bone {bone!r} has constraints that change the baked motion: {', '.join(active)}"
