"""Primal and dual by three roads: one optimum, and a proof that it is one.

A support vector machine can be trained

* on the primal, by subgradient descent on ``P(w)`` (:class:`sdca_rs.Subgradient`);
* on the dual, by projected gradient ascent on ``D(a)``, which moves all dual values
  at once and clips them to their box (:class:`sdca_rs.DualGradient`);
* on the dual, by coordinate ascent, which solves for one dual value at a time
  (``Sdca(sampling="cyclic")``: row after row, in the order of the data; beside it
  ``sampling="permutation"``, a new random order in each epoch; both as published, that
  is with ``accelerate=False``).

An epoch of each costs one pass over the rows. Weak duality says ``D(a) <= P(w)`` for
whatever ``a`` and ``w``. So no two roads can end further apart than their gaps, and the
pictures show it: the primal values come down and the dual values come up to one number.
Coordinate ascent, which uses each step's result in the next one, gets there by far the
soonest. Subgradient descent ends as close to the optimum as the others, but its lower
bound lags far behind, so that it cannot tell.

Test accuracy cannot tell the roads apart once the gap is small. The number of support
vectors, which asks for each row on which side of its kink it is, takes longer to settle
for gradient ascent. On the dual these are the rows with a dual value other than 0; on
the primal they are those inside the margin, a few less, for rows exactly on the margin
do not count.

**A mistake in circulation.** Without an intercept the dual is, with ``c = lam n``,
``Q_kj = y_k y_j x_k.x_j`` and ``U = 1``,

    max  1'a - a'Qa / (2 c),    0 <= a <= U,

and the maximum over ``a_k`` alone, where the slope ``1 - (Qa)_k / c`` vanishes, is

    a_k = clip((c - sum_{j != k} Q_kj a_j) / Q_kk; 0, U).

Some texts clip ``(1 - sum_{j != k} Q_kj a_j / c) / Q_kk`` instead: the factor ``1/c``
is missing on ``Q_kk``. That also settles down, and looks like convergence; but where it
stops, the slope of ``D`` is not 0. It is the maximum of another objective, from which
``(1 - 1/c) Q_kk a_k^2 / 2`` too much is taken off for each row. The last panel has both
updates in a few lines of numpy. Only the gap tells them apart.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from common import arguments, save
from sdca_rs import DualGradient, Sdca, Subgradient
from sdca_rs.plotting import ConvergenceDisplay

C = 0.01
TOL = 2e-5
CYCLIC = "Sdca, cyclic"


def main():
    """Walk the three roads, print where they end, check it, and draw."""
    args = arguments(__doc__, "primal_and_dual")
    n_train, epochs = (400, 2000) if args.quick else (2000, 10_000)
    X, y = make_classification(
        n_train + 2000,
        40,
        n_informative=8,
        n_redundant=10,
        class_sep=0.8,
        flip_y=0.1,
        random_state=0,
    )
    X, X_test, y, y_test = train_test_split(X, y, train_size=n_train, random_state=0)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)

    # No intercept: then the box is the only constraint of the dual.
    study = {"C": C, "fit_intercept": False, "max_iter": epochs, "record_every": 1}
    roads = {
        "Subgradient": Subgradient(tol=1e-4, **study),
        "DualGradient": DualGradient(tol=TOL, **study),
        CYCLIC: Sdca(tol=TOL, sampling="cyclic", accelerate=False, **study),
        "Sdca, permutation": Sdca(tol=TOL, accelerate=False, random_state=0, **study),
    }
    histories = {name: walk(road, X, y, X_test, y_test) for name, road in roads.items()}
    exact = Sdca(**{**study, "max_iter": 100_000}, tol=1e-9, random_state=1).fit(X, y)
    print_table(roads, histories, n_train)
    check(roads, exact)

    small = slice(min(n_train, 400))
    updates = compare_updates(X[small], 2.0 * y[small] - 1, 30)
    draw(histories, exact.dual_objective_, updates, args.out)


def walk(road, X, y, X_test, y_test):
    """Fit; return the history, with test accuracy and support vectors on the way."""
    accuracy, support, sign = [], [], 2.0 * y - 1

    def watch(progress):
        accuracy.append(np.mean((X_test @ progress.coef > 0) == y_test))
        if isinstance(road, Subgradient):
            support.append(np.count_nonzero(sign * (X @ progress.coef) < 1))
        else:
            support.append(progress.support)

    with warnings.catch_warnings():
        # The primal road may not arrive: the table and the gap say so.
        warnings.simplefilter("ignore", ConvergenceWarning)
        road.set_params(callback=watch).fit(X, y)
    return {**road.history_, "test accuracy": accuracy, "support vectors": support}


def print_table(roads, histories, n_train):
    """Print where each road has ended."""
    print(f"hinge loss, {n_train} rows, C = {C:g}, no intercept")
    print(
        f"{'':18s} {'P':>10s} {'D':>10s} {'gap':>8s} {'epochs':>7s} {'ms':>6s} "
        f"{'support':>8s} {'test acc.':>9s}  stopped by"
    )
    for name, road in roads.items():
        run = histories[name]
        print(
            f"{name:18s} {road.objective_:10.7f} {road.dual_objective_:10.7f} "
            f"{road.duality_gap_:8.1e} {road.n_iter_:7d} "
            f"{1e3 * run['seconds'][-1]:6.0f} "
            f"{run['support vectors'][-1]:8.0f} {run['test accuracy'][-1]:9.4f}  "
            f"{road.stop_reason_}"
        )


def check(roads, exact):
    """Make sure that the roads meet, within what their certificates allow."""
    assert exact.stop_reason_ == "converged"
    for name, road in roads.items():
        above = road.objective_ - exact.dual_objective_
        print(f"{name:18s} is at most {above:.1e} above the optimum")
        # Every D is below every P, and the gap bounds how far P is above the optimum.
        assert road.dual_objective_ <= exact.objective_ + 1e-12, name
        assert -1e-12 <= above <= road.duality_gap_ + exact.duality_gap_, name
        assert road.duality_gap_ <= 2e-3 * road.objective_, name
    gradient, cyclic = roads["DualGradient"], roads[CYCLIC]
    for road in (gradient, cyclic):
        assert road.stop_reason_ == "converged"
        assert road.duality_gap_ <= TOL * road.objective_
    assert abs(gradient.objective_ - cyclic.objective_) <= TOL * cyclic.objective_
    n_rows = cyclic.dual_coef_.shape[1]
    reach = sum(np.sqrt(road.duality_gap_ * C * n_rows) for road in (gradient, cyclic))
    assert np.linalg.norm(gradient.coef_ - cyclic.coef_) <= reach
    assert cyclic.n_iter_ < gradient.n_iter_


def compare_updates(X, sign, epochs):
    """Run cyclic coordinate ascent with the right and with the wrong update."""
    n = len(sign)
    c, Q = 1 / C, (sign[:, None] * X) @ (sign[:, None] * X).T

    def ascend(factor):
        a, rows = np.zeros(n), []
        for epoch in range(epochs + 1):
            model = Q @ a / c  # the margins y_i x_i.w, for w = sum_i a_i y_i x_i / c
            primal = np.maximum(0, 1 - model).mean() + a @ model / (2 * n)
            dual = a.mean() - a @ model / (2 * n)
            rows.append((epoch, primal, dual, primal - dual))
            for k in range(n):
                others = Q[k] @ a - Q[k, k] * a[k]
                a[k] = np.clip((1 - others / c) / (Q[k, k] * factor), 0, 1)
        columns = ("epoch", "primal", "dual", "gap")
        return dict(zip(columns, np.array(rows).T, strict=True))

    right, wrong = ascend(1 / c), ascend(1)
    print(
        f"\nthe update in numpy, {n} rows, {epochs} epochs:"
        f"\n  right: P = {right['primal'][-1]:.6f}, D = {right['dual'][-1]:.6f}"
        f"\n  wrong: P = {wrong['primal'][-1]:.6f}, D = {wrong['dual'][-1]:.6f}, and D"
        f" moves no more ({abs(wrong['dual'][-1] - wrong['dual'][-2]):.0e} per epoch)"
    )
    assert right["gap"][-1] < 0.01 * right["primal"][-1]
    assert abs(wrong["dual"][-1] - wrong["dual"][-2]) < 1e-9
    assert wrong["gap"][-1] > 0.1 * right["primal"][-1]
    assert wrong["dual"][-1] < right["dual"][-1] < right["primal"][-1]
    return {"right: / (Q_kk / c)": right, "wrong: / Q_kk": wrong}


def draw(histories, optimum, updates, folder):
    """Draw objectives, gap, accuracy and support of the roads, and the two updates."""
    figure, axes = plt.subplots(2, 3, figsize=(14, 8), layout="constrained")
    roads = ConvergenceDisplay(histories)
    off = {"reference": optimum, "distance": True}
    panels = [
        ("Primal values come down", "P above the optimum", {"y": "primal", **off}),
        ("Dual values come up", "D below the optimum", {"y": "dual", **off}),
        ("Together they prove it: the gap", "P \N{MINUS SIGN} D", {"y": "gap"}),
        ("Predictions settle early", "test accuracy", {"y": "test accuracy"}),
        ("Support settles late", "support vectors", {"y": "support vectors"}),
    ]
    for axis, (title, label, options) in zip(axes.flat, panels, strict=False):
        roads.plot(axis, xscale="log", line_kw={"lw": 1.5}, **options)
        axis.set(title=title, ylabel=label, xlabel="epochs (passes over the rows)")
        axis.get_legend().remove()
    final = [run["test accuracy"][-1] for run in histories.values()]
    axes[1, 0].set_ylim(min(final) - 0.05, max(final) + 0.02)
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4
    )
    axes[1, 2].set_prop_cycle(color=["tab:purple", "tab:brown"])
    ConvergenceDisplay.from_histories(updates, ax=axes[1, 2], line_kw={"lw": 1.5})
    axes[1, 2].set(title="One factor forgotten", ylabel="P \N{MINUS SIGN} D")
    save(figure, folder, "primal_and_dual")


if __name__ == "__main__":
    main()
