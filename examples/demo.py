"""Train on raw bundled data, print the certificates, draw the convergence.

Two data sets that scikit-learn bundles, used as they are, without scaling: the
handwritten digits (odd against even) and breast cancer. For each, a support vector
machine and a logistic regression by ``Sdca``, beside what scikit-learn's own estimator
reaches on the same objective at its default settings. The last column is what the dual
bound proves: no model can be better than ``D``.

Run by ``make demo``; or ``python examples/demo.py [folder for the picture]``.
"""

import sys
import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from sdca_rs import Sdca, certify

COLUMNS = "{:33s} {:>9s} {:>9s} {:>9s} {:>7s}  {:10s} {:>14s}"


def main(folder):
    """Fit, print and draw."""
    digits, digit = load_digits(return_X_y=True)
    cells, benign = load_breast_cancer(return_X_y=True)
    problems = [
        ("digits, odd or even", digits, digit % 2 == 1, 1e-2),
        ("breast cancer", cells, benign, 1e-4),
    ]
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for axis, (name, X, y, C) in zip(axes, problems, strict=True):
        print(f"\n{name}: {X.shape[0]} rows, {X.shape[1]} raw columns, C = {C:g}")
        print(
            COLUMNS.format("", "P", "D", "gap", "epochs", "stopped by", "above optimum")
        )
        for color, loss in (("C0", "hinge"), ("C1", "log")):
            ours = Sdca(loss=loss, C=C, record_every=1, random_state=0).fit(X, y)
            print(
                COLUMNS.format(
                    f'Sdca(loss="{loss}")',
                    f"{ours.objective_:.6f}",
                    f"{ours.dual_objective_:.6f}",
                    f"{ours.duality_gap_:.1e}",
                    f"{ours.n_iter_}",
                    ours.stop_reason_,
                    at_most(ours.duality_gap_, ours.dual_objective_),
                )
            )
            peer, why = fit_peer(loss, C, X, y)
            # The same lower bound serves the peer: D bounds every model's objective.
            proof = certify(peer, X, y, fit_intercept=True)
            print(
                COLUMNS.format(
                    f"scikit-learn {type(peer).__name__}",
                    f"{proof.objective:.6f}",
                    "none",
                    "none",
                    f"{max(peer.n_iter_) if loss == 'log' else peer.n_iter_}",
                    why,
                    at_most(proof.gap, proof.dual_objective),
                )
            )
            draw(axis, ours, proof.objective, loss, type(peer).__name__, color)
        axis.set(title=f"{name} (C = {C:g})", xlabel="epochs")
        axis.set_xscale("symlog", linthresh=1)
        axis.set_xlim(left=0)
        axis.set(yscale="log", ylabel="relative to the best lower bound")
        axis.grid(alpha=0.3)
        axis.legend(loc="upper right", fontsize=7)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "convergence.png"
    figure.savefig(path, dpi=120)
    print(
        "\nP: objective of the model. D: proven lower bound of every model's objective."
        "\ngap = P - D. Both columns of scikit-learn's estimators come from certify()."
        f"\n\npicture: {path.resolve()}"
    )


def at_most(gap, bound):
    """Say how far above the optimum a model can be."""
    return f"<= {100 * gap / bound:.2g} %"


def fit_peer(loss, C, X, y):
    """Fit scikit-learn's estimator, and say how it ended."""
    if loss == "hinge":
        peer = LinearSVC(loss="hinge", C=C, random_state=0)
    else:
        peer = LogisticRegression(C=C)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        peer.fit(X, y)
    gave_up = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    return peer, "max_iter" if gave_up else "own rule"


def draw(axis, ours, peer_objective, loss, peer_name, color):
    """Draw the gap, which is known while the fit runs, and the true distance."""
    history, best = ours.history_, ours.dual_objective_
    axis.plot(
        history["epoch"],
        history["gap"] / best,
        color=color,
        label=f"{loss}: gap (P - D)",
    )
    axis.plot(
        history["epoch"],
        (history["primal"] - best) / best,
        color=color,
        lw=0.9,
        ls=":",
        label=f"{loss}: P above the final D",
    )
    axis.axhline(
        (peer_objective - best) / best,
        color=color,
        lw=0.9,
        ls="--",
        label=f"{loss}: where {peer_name} ended",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo"))
