"""Matching and calibration with known truth: published labels, markers without labels, a body at rest."""

from dataclasses import replace

import numpy as np
from support.marker_sets import SETS
from support.steps import calibrate

from benchmarks.tables import Aim, Part, table
from benchmarks.takes import Person, clips
from fabrik_addon.core import forward_kinematics
from fabrik_addon.core.rotations import IDENTITY, angle_between
from fabrik_addon.markers.assign import assign_by_motion
from fabrik_addon.markers.calibrate.size import bones_of, guessed_offsets, points_on, with_factors
from fabrik_addon.markers.clip import Clip

# Errors of the markers' guesses, meters, uniform on each axis; frames of a standing person.
OFF = 0.010
FRAMES = 30
REST_SEEDS, LIMB_SEEDS = 10, 4
LABELS_KEPT = 8
ENDS = (("hand.L", "forearm.L"), ("hand.R", "forearm.R"), ("foot.L", "shin.L"), ("foot.R", "shin.R"))
LIMBS = ("upper_arm.L", "forearm.L", "thigh.L", "shin.L")


def measure_sets():
    """The matched labels of published sets."""
    person, rows = Person(), []
    for name, published in SETS.items():
        matched = person.matched(published.labels)
        bones = {marker.bone for marker in matched}
        example = ", ".join(pair.replace(":", " on ") for pair in published.bones.split()[:2])
        rows.append((name, len(published.labels), len(matched), len(bones), example))
    header = ("set or spelling", "labels", "matched", "bones", "such as")
    share = min(row[2] / row[1] for row in rows)
    aims = (Aim.at_least("Labels that are matched, the lowest share of 25 marker sets", 1.0, share, ""),)
    return Part(table("Marker sets: what is matched by labels alone", header, rows), aims)


def measure_unlabelled():
    """The number of markers whose bones are found by motion, if all labels but eight are removed."""
    person, rows = Person(), []
    for clip in clips():
        truth = {marker.marker: marker.bone for marker in person.matched(clip.names)}
        seen = [name for name in truth if clip.seen[:, clip.names.index(name)].any()]
        for how, kept in (("over the body", _over_the_body(truth, seen)), ("over the list", _over_the_list(seen))):
            rows.append((clip.source, how, *_told(person, clip, truth, [name for name in seen if name not in kept])))
    header = ("take", "eight spread", "without a label", "right by motion", "wrong", "the largest weight of a guess")
    return table("All labels but eight taken away: bones told by motion", header, rows)


def _over_the_body(truth, seen):
    """The eight most important labels: one on each end of the body, two on the hips."""
    chosen = []
    for bones in (("hips",), ("hips",), ("upper_chest", "chest"), ("head",), *ENDS):
        free = [name for name in seen if truth[name] in bones and name not in chosen]
        chosen += sorted(free, key=lambda name, bones=bones: bones.index(truth[name]))[:1]
    return chosen


def _over_the_list(seen):
    """Eight labels, evenly spread over a list."""
    return [seen[place] for place in np.linspace(0, len(seen) - 1, LABELS_KEPT).round().astype(int)]


def _told(person, clip, truth, asked):
    """The numbers of removed labels and of right and wrong bones for these markers, and the largest weight."""
    names = tuple(f"*{place}" if name in asked else name for place, name in enumerate(clip.names))
    known = person.matched(names)
    guesses = assign_by_motion(person.skeleton, known, replace(clip, names=names), person.parts, person.rest)
    told = {guess.entry.marker: guess.entry for guess in guesses}
    found = [told.get(f"*{clip.names.index(name)}") for name in asked]
    right = sum(entry is not None and entry.bone == truth[name] for entry, name in zip(found, asked, strict=True))
    wrong = sum(entry is not None for entry in found) - right
    return len(asked), right, wrong, f"{max((entry.weight for entry in told.values()), default=0.0):g}"


def measure_rest():
    """How well a body at rest is found from markers that are off, and the lengths of limbs."""
    person = Person()
    mapping = person.matched(next(iter(clips())).names)
    rows = [("uniform", seed, *_figures(*_standing(person, mapping, seed)), "-", "-") for seed in range(REST_SEEDS)]
    joints = np.array([float(row[2]) for row in rows])
    angles = np.array([[float(cell) for cell in row[4:6]] for row in rows])
    true, found = [], []
    for seed in range(LIMB_SEEDS):
        factors = _factors(person.skeleton, np.random.default_rng(100 + seed))
        calibration, rest, bones = _standing(person, mapping, seed, factors)
        limbs = [person.skeleton.index(name) for name in LIMBS]
        lengths = calibration.bone_factors[limbs] / calibration.scale
        true.append(np.log(factors[limbs]))
        found.append(np.log(lengths))
        off = np.median(np.abs(lengths / factors[limbs] - 1.0))
        rows.append(("limbs", seed, *_figures(calibration, rest, bones), f"{100.0 * off:.1f}", calibration.pose))
    slope = float(np.polyfit(np.concatenate(true), np.concatenate(found), 1)[0])
    off = 100.0 * float(np.median(np.abs(np.exp(np.concatenate(found) - np.concatenate(true)) - 1.0)))
    aims = (
        Aim.at_most(
            "Calibrated rest pose: median joint error, median of the seeds", 4.0, float(np.median(joints)), "mm"
        ),
        Aim.at_most("Calibrated rest pose: median joint error, worst seed", 4.0, float(joints.max()), "mm"),
        Aim.at_most("Calibrated rest pose: median angle, worst seed", 2.0, float(angles[:, 0].max()), "°"),
        Aim.at_most("Calibrated rest pose: 95th percentile of angles, worst seed", 6.0, float(angles[:, 1].max()), "°"),
        Aim.at_least("Calibrated limbs: slope of log length", 0.85, slope, ""),
        Aim.at_most("Calibrated limbs: median error of length", 3.0, off, "%"),
        Aim.at_most("Calibrated limbs: worst joint", 15.0, max(float(row[3]) for row in rows[REST_SEEDS:]), "mm"),
    )
    header = ("scale", "seed", "joints mm, median", "worst", "angles °, median", "95th", "lengths off %", "taken for")
    return Part(table("A body at rest, markers 10 mm off on each axis: what calibration finds", header, rows), aims)


def _standing(person, mapping, seed, factors=None):
    """A calibration at rest with mapped markers and these lengths, (J, 4, 4) the true bones, and which count."""
    rng = np.random.default_rng(seed)
    bones, guesses = bones_of(person.skeleton, mapping), guessed_offsets(person.skeleton, mapping)
    body = person.skeleton if factors is None else with_factors(person.skeleton, factors)
    grown = guesses if factors is None else guesses * factors[bones][:, None]
    rest = forward_kinematics(body, np.tile(IDENTITY, (1, len(body), 1)))
    places = points_on(rest, bones, grown + rng.uniform(-OFF, OFF, grown.shape))
    places = np.repeat(places, FRAMES, axis=0) + rng.normal(0.0, 0.0005, (FRAMES, *grown.shape))
    standing = Clip(tuple(entry.marker for entry in mapping), 60.0, places, "Z")
    scale = "uniform" if factors is None else "limbs"
    found = calibrate(person.skeleton, mapping, standing, limits=person.limits, scale=scale)
    used = sorted({above for bone in set(bones) for above in person.skeleton.path(bone)})
    return found, rest[0], used


def _figures(calibration, rest, bones):
    """Median and largest distance of joints from their true positions, median and 95th percentile of angles."""
    skeleton, poses, middle = calibration.skeleton, calibration.poses, len(calibration.poses.rotations) // 2
    heads = forward_kinematics(skeleton, poses.rotations[middle], poses.root_location[middle])[:, :3, 3]
    away = 1000.0 * np.linalg.norm(heads[bones] / calibration.scale - rest[bones, :3, 3], axis=1)
    angles = np.degrees(angle_between(poses.rotations[middle, bones[1:]], IDENTITY))
    figures = np.median(away), away.max(), np.median(angles), np.percentile(angles, 95)
    return tuple(f"{figure:.1f}" for figure in figures)


def _factors(skeleton, rng):
    """(J,) lengths of another person: limbs 0.8 to 1.25, equal on both sides, the trunk 0.9 to 1.1."""
    stems = [name.removesuffix(".R").removesuffix(".L") for name in skeleton.names]
    factors = {}
    for name, stem in zip(skeleton.names, stems, strict=True):
        factors.setdefault(stem, rng.uniform(0.9, 1.1) if name == stem else rng.uniform(0.8, 1.25))
    return np.array([factors[stem] for stem in stems])
