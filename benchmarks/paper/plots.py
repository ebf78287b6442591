"""The figures, as small SVG files."""

import matplotlib as mpl
import numpy as np

from benchmarks.paper import chain, convergence, table1

mpl.use("svg")
mpl.rcParams |= {
    "svg.fonttype": "none",
    "svg.hashsalt": "fabrik",
    "font.size": 9.0,
    "axes.grid": True,
    "grid.alpha": 0.3,
}

from matplotlib import pyplot as plt  # noqa: E402  it has to be told first how to draw

FLOOR = 1e-6


def draw_convergence(courses, path):
    """Figures 11 and 12: the distance to the target over iterations and over time."""
    figure, (over_iterations, over_time) = plt.subplots(1, 2, figsize=(9.0, 3.4), sharey=True, layout="constrained")
    for number, (name, course) in enumerate(courses.items()):
        trace = course.trace
        errors = np.maximum(trace.errors, FLOOR)
        style = {
            "color": f"C{number}",
            "linewidth": 2.4 if name == table1.OURS else 1.1,
            "marker": ".",
            "markersize": 3.0,
        }
        over_iterations.plot(range(len(errors)), errors, label=name, **style)
        over_time.plot(1000.0 * np.array(trace.seconds[1:]), errors[1:], **style)
    for axes, label in ((over_iterations, "iterations"), (over_time, "ms")):
        axes.set(xlabel=label, yscale="log", xscale="symlog" if label == "iterations" else "log")
        axes.axhline(chain.TOLERANCE, color="black", linewidth=0.6, linestyle=":")
    over_iterations.set(ylabel="distance to the target, mm", xlim=(0.0, None))
    figure.legend(*over_iterations.get_legend_handles_labels(), loc="outside right center", fontsize=8.0)
    _save(figure, path)


def draw_poses(courses, path):
    """Figure 9: the final chain of each method, seen perpendicular to the plane of root, tip and target."""
    start, wanted = chain.joints(chain.slightly_bent()), convergence.target()
    along = start[-1] / np.linalg.norm(start[-1])
    aside = wanted - along * (wanted @ along)
    view = np.stack([aside / np.linalg.norm(aside), along])
    figure, panels = plt.subplots(2, 4, figsize=(9.0, 5.4), sharex=True, sharey=True, layout="constrained")
    for axes, (name, course) in zip(panels.flat, courses.items(), strict=True):
        for points, style in ((start, {"color": "0.8"}), (course.joints, {"color": "C0"})):
            axes.plot(*(view @ points.T), marker="o", markersize=3.0, linewidth=1.4, **style)
        axes.plot(*(view @ wanted), marker="x", color="C3")
        axes.set_title(name, fontsize=8.5)
        axes.set_aspect("equal")
    _save(figure, path)


def draw_lengths(path, most=60):
    """Figure 10: the errors of the lengths of Follow-the-Leader's links."""
    figure, axes = plt.subplots(figsize=(4.6, 2.8), layout="constrained")
    counts = np.arange(1, most + 1)
    beyond = table1.targets(False)[0]
    for name, wanted in (("reachable target", convergence.target()), ("unreachable target", beyond)):
        changes = [convergence.stretch_after(convergence.follow_the_leader, wanted, count) for count in counts]
        axes.plot(counts, 100.0 * np.array(changes), label=name)
    axes.set(xlabel="iterations", ylabel="greatest change of a length, %", yscale="log")
    axes.legend(fontsize=8.0)
    _save(figure, path)


def draw_tracks(tracks, path):
    """The largest joint movement at each step, divided by the target's largest step, for each method on the chain."""
    figure, panels = plt.subplots(len(tracks), 1, figsize=(9.0, 1.1 * len(tracks)), sharex=True, layout="constrained")
    for axes, (name, ratios) in zip(panels, tracks.items(), strict=True):
        axes.plot(np.round(ratios, 3), linewidth=0.8)
        axes.set_title(name, fontsize=8.5, loc="left")
        axes.set(ylim=(0.0, 4.0))
    panels[-1].set(xlabel="step")
    figure.supylabel("largest joint step / largest target step", fontsize=8.5)
    _save(figure, path)


def _save(figure, path):
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    path.write_text("\n".join(line.rstrip() for line in path.read_text(encoding="utf-8").splitlines()) + "\n", "utf-8")
