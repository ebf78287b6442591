"""The masses of a body's bones."""

import numpy as np
import pytest
from support import humans

from fabrik_addon.human.masses import body_masses


def lengths_of(rows):
    return {row.name: float(np.linalg.norm(row.tail - row.head)) for row in rows}


@pytest.mark.parametrize("fingers", [True, False])
def test_the_masses_of_a_human_are_those_of_the_table(fingers):
    """The arms, the legs and the rest have de Leva's shares for any number of bones."""
    masses = body_masses(lengths_of(humans.human(fingers=fingers)))
    assert sum(mass.share for mass in masses.values()) == pytest.approx(1.0)
    arm = sum(
        masses[name].share for name in masses if name.endswith(".L") and not is_leg(name) and "shoulder" not in name
    )
    leg = sum(masses[name].share for name in masses if name.endswith(".L") and is_leg(name))
    assert arm == pytest.approx(0.0263 + 0.0150 + 0.00585, abs=2e-3)
    assert leg == pytest.approx(0.1447 + 0.0457 + 0.0133, abs=2e-3)
    assert masses["upper_arm.R"] == masses["upper_arm.L"]


def is_leg(name):
    return name.split(".")[0] in {"thigh", "shin", "foot", "toe"}


def test_the_mass_of_a_segment_without_bones_goes_to_its_neighbor():
    """A rig without a spine, a neck and hands weighs as much as a whole one."""
    lengths = lengths_of(humans.human(fingers=False))
    whole = body_masses(lengths)
    few = body_masses({name: lengths[name] for name in lengths if name.split(".")[0] not in {"spine", "neck", "hand"}})
    assert sum(mass.share for mass in few.values()) == pytest.approx(1.0)
    assert few["hips"].share == pytest.approx(whole["hips"].share + whole["spine"].share, rel=1e-2)
    assert few["forearm.L"].share == pytest.approx(whole["forearm.L"].share + whole["hand.L"].share, rel=1e-2)


def test_the_mass_of_a_segment_without_bones_is_at_the_tail_of_its_neighbor():
    """A forearm without a hand keeps its own center of mass, and has the hand's mass at the wrist."""
    lengths = lengths_of(humans.human(fingers=False))
    handless = body_masses({name: lengths[name] for name in lengths if not name.startswith(("hand", "foot", "toe"))})
    for bone, own, missing in (
        ("forearm.L", (1.50, 0.457), 0.585),
        ("shin.R", (4.57, 0.444), 1.33),
    ):
        expected = (own[0] * own[1] + missing * 1.0) / (own[0] + missing)
        assert handless[bone].center == pytest.approx(expected)
    assert handless["upper_arm.L"].center == body_masses(lengths)["upper_arm.L"].center


def test_masses_of_other_rigs_follow_from_size():
    """A bone that is twice as long is eight times as heavy; the smallest bone is not weightless."""
    masses = body_masses({"one": 1.0, "two": 2.0, "speck": 0.0})
    assert masses["two"].share == pytest.approx(8.0 * masses["one"].share)
    assert masses["speck"].share > 0.0
    assert {mass.center for mass in masses.values()} == {0.5}
