"""`make bench-guard`: compares important times, relative to plain Python in the same run, with those in a file.

Fails if one of them is more than 30 % worse. `--update` stores the current ones; commit that only on purpose.
"""

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path
from time import process_time

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
KEPT = Path(__file__).with_name("guard.json")
WORSE = 1.3
ROUNDS = 9
ATTEMPTS = 3
CHAIN_TARGETS, FRAMES, PERSON_POSES, DRAG_STEPS = 40, 2000, 10, 100


def main():
    import fabrik_addon

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true", help="keep the present ratios")
    arguments = parser.parse_args()
    fabrik_addon.register()
    try:
        status = _keep() if arguments.update else _compare()
    finally:
        fabrik_addon.unregister()
    sys.stdout.flush()
    os._exit(status)  # Blender's module sometimes crashes at exit


def _keep():
    ratios = _ratios()
    KEPT.write_text(json.dumps(ratios, indent=2) + "\n", encoding="utf-8")
    print(KEPT.read_text(encoding="utf-8"))
    return 0


def _compare():
    """0 if no ratio is much worse than the stored one. Worse results are measured again, because timings vary."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    best = dict.fromkeys(kept, float("inf"))
    for _ in range(ATTEMPTS):
        best = {name: min(best[name], ratio) for name, ratio in _ratios().items()}
        worse = [name for name in kept if best[name] > WORSE * kept[name]]
        if not worse:
            break
    for name, ratio in best.items():
        print(f"{'WORSE' if name in worse else 'ok':6}{name}: {ratio:.4g}, kept {kept[name]:.4g}")
    return 1 if worse else 0


def _ratios():
    """Seconds of each measure divided by those of plain Python FABRIK: medians of interleaved rounds."""
    from benchmarks.tables import interleaved

    runs = _runs()
    seconds = interleaved(ROUNDS, {name: run for name, (run, _) in runs.items()}, process_time)
    each = {name: spent / runs[name][1] for name, spent in seconds.items()}
    baseline = each.pop("plain Python")
    return {name: round(spent / baseline, 4) for name, spent in each.items()}


def _runs():
    """The measured functions by name, and the number of poses that each solves."""
    import numpy as np
    from support import plain_fabrik

    from benchmarks import cases

    rng = np.random.default_rng(8)
    chain = cases.free_chain(10)
    few, many = chain.targets(rng, CHAIN_TARGETS), chain.targets(rng, FRAMES)
    points = [(0.0, 0.0, cases.BONE * place) for place in range(11)]
    lengths, wanted = [cases.BONE] * 10, [tuple(target) for target in few[:, 0].tolist()]
    person = cases.human()
    poses, motion = person.targets(rng, PERSON_POSES), person.motion(rng, FRAMES // 4, every=50)

    def each(solver, targets):
        for target in targets:
            solver.solve(target)

    def plain():
        for target in wanted:
            plain_fabrik.solve(points, lengths, target, 1e-5 * 0.9, 1000)

    return {
        "plain Python": (plain, CHAIN_TARGETS),
        "chain of 10, one pose": (partial(each, chain.solver(), few), CHAIN_TARGETS),
        "chain of 10, a frame in arrays": (partial(chain.solver().solve, many), FRAMES),
        "human with limits, one pose": (partial(each, person.solver(), poses), PERSON_POSES),
        "human with limits, a frame in arrays": (partial(person.solver().solve, motion), FRAMES // 4),
        "human dragged, a step": (partial(_led, "Dragged"), DRAG_STEPS),
        "human live, a step": (partial(_led, "Live"), DRAG_STEPS),
    }


def _led(method):
    """A hand that is dragged out of reach and back, with the feet pinned."""
    from benchmarks import natural_paths

    rig = natural_paths.open_human()
    path = natural_paths.Path3("", "hand.L", ((0.8, -0.8, 0.4),))
    natural_paths.follow(rig, path, path.there_and_back()[::2][:DRAG_STEPS], getattr(natural_paths, method))


if __name__ == "__main__":
    main()
