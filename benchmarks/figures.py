"""The benchmarks' figures, drawn by matplotlib if it is installed (`make bench` installs it)."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[1] / "docs" / "bench"


@dataclass
class Curve:
    """Seconds and bytes against the size of a problem."""

    what: str
    rig: str
    sizes: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)

    def add(self, size, seconds, memory):
        self.sizes.append(size)
        self.seconds.append(seconds)
        self.memory.append(memory)

    def slopes(self, least):
        """Slopes of time and memory on logarithmic axes, from a size on."""
        chosen = np.array(self.sizes) >= least
        sizes = np.log(np.array(self.sizes)[chosen])
        return [float(np.polyfit(sizes, np.log(np.array(y)[chosen]), 1)[0]) for y in (self.seconds, self.memory)]


def growth_figure(curves):
    """Draw time and memory against bones, goals and frames; returns the picture's name beside the results."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    whats = list(dict.fromkeys(curve.what for curve in curves))
    figure, axes = plt.subplots(2, len(whats), figsize=(4.2 * len(whats), 6.0), layout="constrained")
    for curve in curves:
        column = axes[:, whats.index(curve.what)]
        column[0].loglog(curve.sizes, 1e6 * np.array(curve.seconds), "o-", label=curve.rig)
        column[1].loglog(curve.sizes, np.array(curve.memory) / 1e6, "o-", label=curve.rig)
    for place, what in enumerate(whats):
        axes[0, place].set_title(f"{'one call' if what == 'frames' else 'a frame'}, by {what}")
        axes[1, place].set_xlabel(what)
        axes[0, place].legend(frameon=False, fontsize=8)
    axes[0, 0].set_ylabel("µs")
    axes[1, 0].set_ylabel("MB beside the result")
    FOLDER.mkdir(parents=True, exist_ok=True)
    figure.savefig(FOLDER / "growth.png", dpi=90)
    plt.close(figure)
    return "growth.png"
