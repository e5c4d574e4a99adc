"""Draw the figures of the user guide: losses, regularisation, a certificate.

``python examples/figures.py`` writes them to ``docs/images``.
"""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from sdca_rs import Sdca

BLUE, GREEN, RED, GREY = "#1f6f8b", "#1a936f", "#d1495b", "#8a8f98"


def draw_losses(folder):
    """Draw the losses over the margin and over the residual."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    m = np.linspace(-2.5, 2.5, 501)
    short = np.maximum(0, 1 - m)
    curves = {
        "hinge": (short, BLUE, "-"),
        "squared_hinge": (short**2, RED, "-"),
        "smooth_hinge": (
            np.where(short <= 1, short**2 / 2, short - 0.5),
            BLUE,
            "--",
        ),
        "log": (np.logaddexp(0, -m), GREEN, "-"),
        "modified_huber": (np.where(m >= -1, short**2, -4 * m), RED, "--"),
    }
    for name, (value, color, dash) in curves.items():
        left.plot(m, value, color=color, ls=dash, label=name)
    left.set(
        xlabel="margin y p: right side →",
        ylabel="loss",
        title="classification",
        ylim=(0, 7),
    )
    r = np.linspace(-3, 3, 501)
    curves = {
        "squared": (r**2 / 2, RED, "-"),
        "absolute": (abs(r), BLUE, "-"),
        "huber (1.35)": (
            np.where(abs(r) <= 1.35, r**2 / 2, 1.35 * (abs(r) - 1.35 / 2)),
            GREEN,
            "-",
        ),
        "epsilon_insensitive (0.5)": (np.maximum(0, abs(r) - 0.5), BLUE, "--"),
        "quantile (0.9)": (np.maximum(0.9 * r, -0.1 * r), GREY, "-"),
    }
    for name, (value, color, dash) in curves.items():
        right.plot(r, value, color=color, ls=dash, label=name)
    right.set(xlabel="residual y - p", title="regression", ylim=(0, 4))
    for axis in (left, right):
        axis.legend(fontsize=8, loc="upper center")
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    save(figure, folder, "losses")


def draw_regularisation(folder):
    """Draw accuracy and time of fits against C."""
    X, y = make_classification(
        1200, 200, n_informative=12, n_redundant=20, flip_y=0.08, random_state=3
    )
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.6, random_state=0)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    values = np.geomspace(1e-5, 10, 25)
    scores = [
        (model.score(X, y), model.score(X_test, y_test))
        for model in (Sdca("log", C=C, random_state=0).fit(X, y) for C in values)
    ]
    figure, axis = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    train, test = np.transpose(scores)
    axis.semilogx(values, train, color=GREY, label="rows of the fit")
    axis.semilogx(values, test, color=BLUE, lw=2, label="new rows")
    best = values[test.argmax()]
    axis.axvline(best, color=GREEN, lw=1, ls="--")
    axis.annotate(
        "the best C",
        (best, axis.get_ylim()[0]),
        xytext=(4, 6),
        textcoords="offset points",
        color=GREEN,
    )
    axis.set(xlabel="C: less regularisation →", ylabel="accuracy")
    axis.legend()
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
    save(figure, folder, "regularisation")


def draw_certificate(folder):
    """Draw how objective and lower bound close in on the optimum."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = Sdca(
        "hinge", C=0.1, tol=1e-6, record_every=0.25, accelerate=False, random_state=0
    ).fit(X, y)
    epoch, P, D = (model.history_[key] for key in ("epoch", "primal", "dual"))
    shown = (epoch >= 0.25) & (epoch <= 8)
    epoch, P, D = epoch[shown], P[shown], D[shown]
    figure, axis = plt.subplots(figsize=(7.6, 4), layout="constrained")
    axis.fill_between(epoch, D, P, color=GREEN, alpha=0.18)
    axis.plot(epoch, P, color=BLUE, lw=2)
    axis.plot(epoch, D, color=GREEN, lw=2)
    axis.axhline(model.dual_objective_, color="black", lw=0.8, ls=":")
    at = np.searchsorted(epoch, 1.5)
    axis.annotate(
        "objective P of the model so far",
        (epoch[2], P[2]),
        xytext=(12, 4),
        textcoords="offset points",
        color=BLUE,
    )
    axis.annotate(
        "lower bound D: no linear model is below",
        (epoch[3], D[3]),
        xytext=(12, -14),
        textcoords="offset points",
        color=GREEN,
    )
    axis.annotate(
        "",
        (epoch[at], P[at]),
        xytext=(epoch[at], D[at]),
        arrowprops={"arrowstyle": "<->", "color": "black"},
    )
    axis.annotate(
        "gap = P $-$ D",
        (epoch[at], (P[at] + 3 * D[at]) / 4),
        xytext=(6, -3),
        textcoords="offset points",
    )
    axis.annotate(
        "the best possible objective,\nalways between the two",
        (5.2, model.dual_objective_),
        xytext=(5.2, 0.1),
        arrowprops={"arrowstyle": "->", "color": GREY},
    )
    axis.set(xlabel="epochs", ylabel="objective")
    axis.spines[["top", "right"]].set_visible(False)
    save(figure, folder, "certificate")


def save(figure, folder, name):
    """Write a picture and say where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", dpi=140)
    plt.close(figure)
    print(f"picture: {folder / name}.png")


if __name__ == "__main__":
    docs = Path(__file__).parents[1] / "docs" / "images"
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else docs
    for draw in (draw_losses, draw_regularisation, draw_certificate):
        draw(target)
