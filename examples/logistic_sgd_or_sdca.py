"""Logistic regression, SGD or SDCA: settings, stopping, features, and "local minima".

Two data sets, arrhythmia (452 rows, 279 columns) and adult (48842 rows, 108 columns
after one-hot encoding), and two ways to fit a logistic regression: stochastic gradient
descent with constant or falling steps (:class:`sdca_rs.Pegasos`) and stochastic dual
coordinate ascent (:class:`sdca_rs.Sdca`), as published (``accelerate=False``).

**Settings.** Held-out accuracy against the step ``eta0`` and against ``lam``. SGD has
to be given a step, and a step ten times too long or too short costs points; coordinate
ascent has none. Both need ``lam``. For small ``lam`` SGD may *look* better: on
arrhythmia it has by far the better accuracy there, and by far the worse objective. It
has stopped long before the optimum, which happens to regularise. Who wants that can say
so with a larger ``lam``, and then both predict alike.

**Stopping.** The theorems say how many steps suffice for data of the worst kind
(:mod:`sdca_rs.theory`). For rows of norm 1, ``eps = 1e-3`` and a loss of slope at most
1 these are 401,549 steps for 452 rows with ``lam = 0.05``, and 629,840 for 48,842 rows
with ``lam = 0.1``. That the loss is smooth makes the first number 5,789. A certificate
looks at the data at hand and stops after a fraction of these. It serves SGD as well:
with ``lam`` as large as this, SGD is there sooner than SDCA on rows of norm 1, but ten
times later on arrhythmia's columns of variance 1.

**Features.** Products of columns (``PolynomialFeatures``) and the Gaussian kernel
(``RBFSampler``, ``Nystroem``), in a pipeline before the same linear solvers.

**"Trapped in a local minimum"** is how a lower accuracy of SDCA has been explained.
There is none to be trapped in: ``P`` is convex and the dual ``D`` concave. From 20
random dual points, with 20 orders of the rows, all runs end at one value, and every
single one carries the proof, ``P - D``, that no model is better by more than that. What
differs is the number of test errors, and that is a question to ``lam``, not to the
solver.
"""

import socket
import warnings
from tempfile import TemporaryDirectory
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import fetch_openml, load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.model_selection import (
    GridSearchCV,
    ShuffleSplit,
    train_test_split,
    validation_curve,
)
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler, normalize
from sklearn.utils.extmath import row_norms

from common import MissingDataError, arguments, load, load_or_fetch, save, skip
from sdca_rs import Pegasos, Sdca, theory
from sdca_rs.plotting import ConvergenceDisplay

LAMS = np.logspace(-5, 0, 6)
STEPS = np.logspace(-5, 0, 11)
EPS = 1e-3


class Data(NamedTuple):
    """A data set, ``lam`` for the theorems, and how many splits validate on it."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    lam: float
    repeats: int


def main():
    """Run the four parts on each set."""
    args = arguments(__doc__, "logistic_sgd_or_sdca")
    # SGD for a set number of epochs does not converge; what that means is shown.
    warnings.simplefilter("ignore", ConvergenceWarning)
    sets = load_sets(args.quick)
    size = {"figsize": (11.5, 4.2 * len(sets)), "layout": "constrained"}
    figures = {
        name: plt.subplots(len(sets), 2, squeeze=False, **size)
        for name in ("settings", "stopping", "no_local_minimum")
    }
    settings, stopping, minima = (axes for _, axes in figures.values())
    for row, data in enumerate(sets):
        print(f"\n=== {data.name}: {len(data.y)} training rows ===")
        lam = compare_settings(data, settings[row])
        compare_stopping(data, stopping[row])
        search_local_minima(data, max(lam, 1e-3), minima[row])
        compare_features(data, 60 if args.quick else 200)
    for name, (figure, _) in figures.items():
        save(figure, args.out, name)


def load_sets(quick):
    """Load both sets, or a bundled one if neither can be had."""
    sets = []
    try:
        X, y = load("arrhythmia") if quick else load_or_fetch("arrhythmia", arrhythmia)
        parts = split(X, y)
        sets.append(Data("arrhythmia", *parts, lam=0.05, repeats=10))
    except MissingDataError as missing:
        skip("arrhythmia", missing)
    try:
        X, y = load("adult_onehot") if quick else load_or_fetch("adult_onehot", adult)
        first = np.arange(len(y)) < 32561
        parts = X[first], y[first], X[~first], y[~first]
        if quick:
            parts = X[:3000], y[:3000], X[-3000:], y[-3000:]
        sets.append(Data("adult", *parts, lam=0.1, repeats=1))
    except MissingDataError as missing:
        skip("adult", missing)
    if not sets:
        print("in their place: breast cancer, which scikit-learn brings along")
        parts = split(*load_breast_cancer(return_X_y=True))
        sets.append(Data("breast cancer", *parts, lam=0.05, repeats=5))
    return sets


def split(X, y):
    """Return the training and the test part."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    return X, y, X_test, y_test


def arrhythmia():
    """Download arrhythmia, any kind against none; medians for what is missing."""
    socket.setdefaulttimeout(20)
    X, y = fetch_openml(
        "arrhythmia", version=1, as_frame=False, return_X_y=True, n_retries=1
    )
    fill = SimpleImputer(strategy="median", keep_empty_features=True)
    return fill.fit_transform(X.astype(float)), np.where(y.astype(str) == "1", -1, 1)


def adult():
    """Download adult: its 6 numbers, and a column for each other value."""
    import pandas as pd

    socket.setdefaulttimeout(20)
    X, y = fetch_openml("adult", version=2, return_X_y=True, n_retries=1)
    numbers = X.select_dtypes("number")
    kinds = pd.get_dummies(X.drop(columns=numbers.columns), dtype=float)
    columns = np.hstack([numbers.to_numpy(float), kinds.to_numpy(float)])
    return columns, np.where(y.astype(str).str.startswith(">"), 1, -1)


def sdca(**options):
    """Return a logistic regression by coordinate ascent as it was published."""
    published = {"tol": 1e-3, "accelerate": False, "random_state": 0}
    return Sdca("log", **{**published, **options})


def sgd(rate, **options):
    """Return one by 10 epochs of stochastic gradient descent."""
    defaults = {"tol": 1e-3, "max_iter": 10, "random_state": 0}
    return Pegasos("log", learning_rate=rate, **{**defaults, **options})


def compare_settings(data, axes):
    """Draw validation curves; return the ``lam`` they choose."""
    cv = ShuffleSplit(data.repeats, test_size=0.3, random_state=0)

    def curve(axis, model, name, values, label):
        pipe = make_pipeline(StandardScaler(), model)
        key = f"{type(model).__name__.lower()}__{name}"
        scores = validation_curve(
            pipe, data.X, data.y, param_name=key, param_range=values, cv=cv
        )[1].mean(axis=1)
        (line,) = axis.plot(values, scores, "o-", ms=3.5, label=label)
        return values[scores.argmax()], scores.max(), line.get_color()

    right = axes[1]
    lam, best, color = curve(right, sdca(max_iter=300), "lam", LAMS, "SDCA")
    axes[0].axhline(best, color=color, label="SDCA: no step to choose")
    axes[0].plot([], [])  # so that SGD has the same colours in both panels
    chosen = {}
    for rate, power in (("constant", ""), ("invscaling", " / sqrt(t)")):
        label, model = f"SGD, step eta0{power}", sgd(rate, lam=lam)
        values = STEPS[lam * STEPS <= 1]
        chosen[rate], score, _ = curve(axes[0], model, "eta0", values, label)
        label = f"SGD, step {chosen[rate]:.2g}{power}"
        curve(right, sgd(rate, eta0=chosen[rate]), "lam", LAMS, label)
        assert abs(score - best) < 0.03, (rate, score, best)
    axes[0].set(title=f"{data.name}: the step of SGD (lam = {lam:g})", xlabel="eta0")
    right.set(title=f"{data.name}: regularisation", xlabel="lam")
    for axis in axes:
        axis.set(xscale="log", ylabel="held-out accuracy")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)

    print(f"{'':15s} {'lam':>7s} {'P':>9s} {'P / D - 1':>9s} {'test acc.':>9s}")
    for strength in sorted({1e-4, lam}):
        ours = sdca(lam=strength)
        models = {"SDCA": ours}
        for rate, eta0 in chosen.items():
            models[f"SGD, {rate}"] = sgd(rate, lam=strength, eta0=eta0)
        for label, model in models.items():
            pipe = make_pipeline(StandardScaler(), model).fit(data.X, data.y)
            print(
                f"{label:15s} {strength:7.0e} {model.objective_:9.5f} "
                f"{model.objective_ / ours.dual_objective_ - 1:9.2%} "
                f"{pipe.score(data.X_test, data.y_test):9.4f}"
            )
            # SDCA is trapped nowhere: SGD finds no model that it has missed.
            assert model.objective_ >= ours.dual_objective_
    return lam


def compare_stopping(data, axes):
    """Set the steps that a certificate needs beside those that suffice by theorems."""
    X, y = np.vstack([data.X, data.X_test]), np.hstack([data.y, data.y_test])
    X, lam = StandardScaler().fit_transform(X), data.lam
    print(f"\nsteps to a gap of {EPS:g}, {len(y)} rows, lam = {lam:g}")
    print(
        f"{'':24s} {'R':>6s} {'any data, |slope| <= 1':>23s} {'... and smooth':>14s} "
        f"{'certificate':>12s}"
    )
    panels = [("rows of norm 1", normalize(X), 1.0), ("columns of variance 1", X, None)]
    for axis, (rows, Z, radius) in zip(axes, panels, strict=True):
        radius = radius or row_norms(Z).max()
        known = {"lam": lam, "eps": EPS, "radius": radius}
        lipschitz = theory.sdca_lipschitz_summary(len(y), **known).iterations
        smooth = theory.sdca_smooth_iterations(
            len(y), gamma=4, initial_gap=np.log(2), **known
        )
        study = {
            "lam": lam, "fit_intercept": False, "tol": 0, "record_every": 0.05,
            "callback": lambda progress: progress.gap <= EPS,
        }  # fmt: skip
        often = {"max_iter": 1000, "record_every": min(0.05, 100 / len(y))}
        models = {
            "SDCA, as in the theorem": sdca(
                sampling="random", first_epoch="sdca", **study
            ),
            "SDCA": sdca(**study),
            "SGD, step 1 / (lam t)": sgd("pegasos", **{**study, **often}),
        }
        histories = {}
        for label, model in models.items():
            history = model.fit(Z, y).history_
            steps = history["epoch"] * len(y)
            histories[label] = {**history, "steps": steps}
            bounds = (lipschitz, smooth)
            if label.startswith("SGD"):
                bounds = (theory.pegasos_iterations(**known), None)
            shown = " ".join(
                f"{bound:{width},d}" if bound else " " * width
                for bound, width in zip(bounds, (23, 14), strict=True)
            )
            print(f"{label:24s} {radius:6.1f} {shown} {round(steps[-1]):12,d}")
            assert model.stop_reason_ == "callback"
            assert model.duality_gap_ <= EPS
            assert steps[-1] < min(bound for bound in bounds if bound)
        ConvergenceDisplay.from_histories(
            histories, x="steps", ax=axis, xscale="log", line_kw={"lw": 1.5}
        )
        axis.axhline(EPS, color="0.3", lw=1, ls="--", label=f"gap {EPS:g}")
        axis.axvline(lipschitz, color="C4", ls=":", label="SDCA: enough for any data")
        axis.axvline(smooth, color="C5", ls=":", label="... and a smooth loss")
        axis.set(title=f"{data.name}, {rows}", ylabel="P \N{MINUS SIGN} D")
        axis.get_legend().remove()
    axes[1].legend(fontsize=8, loc="upper right")


def search_local_minima(data, lam, axes, n_runs=20):
    """Start at random dual points, in many orders of the rows: all end at one value."""
    X = StandardScaler().fit_transform(data.X)
    rng = np.random.default_rng(0)
    runs = []
    for seed in range(n_runs):
        model = sdca(lam=lam, tol=1e-5, record_every=0.5, random_state=seed)
        model.set_params(warm_start=True, max_iter=1).fit(X, data.y)
        # Any numbers between 0 and the sign of the row's class; their sum, which the
        # intercept wants to be 0, is seen to by the solver.
        share = rng.uniform(0, rng.uniform(), (1, len(data.y)))
        model.dual_coef_ = share * np.where(data.y == model.classes_[1], 1, -1)
        runs.append(model.set_params(max_iter=1000).fit(X, data.y))
    P, D, gap = np.transpose(
        [(run.objective_, run.dual_objective_, run.duality_gap_) for run in runs]
    )
    start = np.array([run.history_["primal"][0] for run in runs])
    coef = np.vstack([run.coef_ for run in runs])
    print(
        f"\n{n_runs} random starts, lam = {lam:g}: P from {start.min():.2f} ... "
        f"{start.max():.2f} to {P.min():.7f} ... {P.max():.7f}, largest gap "
        f"{gap.max():.1e}"
    )
    assert all(run.stop_reason_ == "converged" for run in runs)
    assert np.ptp(start) > 100 * gap.max()
    assert np.ptp(P) <= gap.max()
    assert D.max() <= P.min() + 1e-12
    # Not only the objective, the model is one: each is within sqrt(gap / lam) of it.
    apart = np.linalg.norm(coef - coef[0], axis=1)
    assert (apart <= np.sqrt(gap / lam) + np.sqrt(gap[0] / lam)).all()

    for key, color, label in (("primal", "C0", "P"), ("dual", "C1", "D")):
        lines = [
            axes[0].plot(run.history_["epoch"], run.history_[key], color=color, lw=0.8)[
                0
            ]
            for run in runs
        ]
        lines[0].set_label(label)
    level = D.max()
    axes[0].set(title=f"{data.name}: {n_runs} random starts, one optimum", xlim=(0, 6))
    axes[0].set(ylim=(-level, 4 * level), xlabel="epochs", ylabel="objective")
    axes[0].grid(alpha=0.3)
    axes[0].legend()
    ConvergenceDisplay.from_estimators({"SDCA": runs}, quantiles=(0, 1), ax=axes[1])
    axes[1].set_title(f"{data.name}: the proof of each run (mean, and all between)")
    axes[1].get_legend().remove()


def compare_features(data, n_components):
    """Fit linear models of products of columns, and of the Gaussian kernel."""
    n, d = data.X.shape
    pairs = PolynomialFeatures(2, interaction_only=True, include_bias=False)
    few = PCA(20, svd_solver="covariance_eigh")
    polynomial = FeatureUnion(
        [("columns", "passthrough"), ("products", make_pipeline(few, pairs))]
    )
    kernel = {"gamma": 0.2 / d, "random_state": 0}
    kernel["n_components"] = min(n // 2, n_components)
    maps = {
        "none": [],
        "polynomial": [polynomial],
        "Gaussian, RBFSampler": [RBFSampler(**kernel)],
        "Gaussian, Nystroem": [Nystroem(**kernel)],
    }
    print(
        f"\n{'features':21s} {'columns':>7s} {'lam':>6s}  {'':4s} {'P / D - 1':>9s} "
        f"{'epochs':>6s} {'test acc.':>9s}"
    )
    cv = ShuffleSplit(min(3, data.repeats), test_size=0.3, random_state=0)
    for name, steps in maps.items():
        steps = [StandardScaler(), *steps, *([StandardScaler()] if steps else [])]

        def search(model, grid, steps=steps):
            # The memory keeps the mapped rows of each split for all of the grid.
            with TemporaryDirectory() as memory:
                pipe = make_pipeline(*steps, model, memory=memory)
                found = GridSearchCV(pipe, grid, cv=cv).fit(data.X, data.y)
            best = found.best_estimator_
            return best[-1], best.score(data.X_test, data.y_test)

        ours, ours_score = search(sdca(), {"sdca__lam": LAMS[2:]})
        peer = sgd("invscaling", lam=ours.lam)
        peer, peer_score = search(peer, {"pegasos__eta0": STEPS[4::2]})
        for model, score in ((ours, ours_score), (peer, peer_score)):
            print(
                f"{name:21s} {model.n_features_in_:7d} {ours.lam:6.0e}  "
                f"{'SDCA' if model is ours else 'SGD':4s} "
                f"{model.objective_ / ours.dual_objective_ - 1:9.2%} "
                f"{model.n_iter_:6d} {score:9.4f}"
            )
        assert ours.duality_gap_ <= ours.tol * ours.objective_
        assert peer.objective_ >= ours.dual_objective_


if __name__ == "__main__":
    main()
