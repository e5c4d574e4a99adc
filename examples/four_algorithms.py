"""Four algorithms: SDCA, accelerated SDCA, Pegasos and mini-batch Pegasos.

All four minimise the same objective here, that of the smooth hinge: accelerated
mini-batch SDCA (ASDCA) is defined for smooth losses only, and distances from different
optima could not be compared. The other three take the plain hinge as well. SDCA is the
published algorithm, by ``accelerate=False``.

**Three shapes of data**: few columns (simulated), far more columns than rows (gene
expression), many rows of three columns (skin colours). An epoch visits as many rows as
there are, so that it is the same work for all. The error of Pegasos falls about like
one over the number of steps, whether it takes rows one by one or in batches; SDCA soon
gains a constant factor with every epoch. On many rows ASDCA is the first to come close;
on few rows it starts slowly.

**One choice at a time**: the order of the rows, the last model or the average of the
second half of the run, and Pegasos' projection to a ball that contains the optimum.
Rows drawn with replacement and permutations do equally well. A cyclic order leaves SDCA
a hundred times farther from the optimum, although the rows are in random order, and a
thousand times if they are sorted by class; Pegasos (seen at the ends of epochs) does
not mind. Averages are several times closer to the optimum than last models, for both.
The projection matters within the first epoch only, where Pegasos' steps are long.

**Four strengths of regularisation**, from 1 to ``1/n``: where it is strong, Pegasos is
the best in the first epoch; where it is weak, all are slower, and ASDCA is the best
from the second epoch to the fifteenth.

None of it matters much for predictions: the second table compares the test accuracy of
all of them, last or averaged, to that of the true coefficients behind the labels. The
script fails if a model is more than 0.02 below.

``python examples/four_algorithms.py [--quick]`` looks for the gene expression in the
folder that ``SDCA_RS_DATA`` names, and otherwise simulates something of that shape.
Skin colours come from that folder or from OpenML.
"""

import warnings
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import fetch_openml
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from common import MissingDataError, arguments, load, load_or_fetch, save, skip
from sdca_rs import Asdca, Pegasos, Sdca
from sdca_rs.plotting import ConvergenceDisplay

OUTPUTS = ("last", "average")
TOLERATED = 0.02


class Problem(NamedTuple):
    """Training and test rows, and how to fit them."""

    name: str
    train: np.ndarray
    test: np.ndarray
    train_y: np.ndarray
    test_y: np.ndarray
    lam: float
    batch: int
    epochs: int


def algorithms(batch):
    """Return the four."""
    return {
        "SDCA": (Sdca, {"first_epoch": "sdca", "accelerate": False}),
        f"ASDCA, {batch} rows a step": (Asdca, {"batch_size": batch}),
        "Pegasos": (Pegasos, {"batch_size": 1}),
        f"Pegasos, {batch} rows a step": (Pegasos, {"batch_size": batch}),
    }


def simulated(rng):
    """Draw labels from a noisy linear score; return the true coefficients, too."""
    beta, X = rng.normal(size=10), rng.normal(size=(21_000, 10))
    noise = 0.3 * np.linalg.norm(beta) * rng.normal(size=len(X))
    y = np.where(X @ beta + noise > 0, 1, -1)
    parts = X[:1000], X[1000:], y[:1000], y[1000:]
    return Problem("simulated", *parts, lam=0.01, batch=10, epochs=50), beta


def genes(quick, rng):
    """Load gene expression, or simulate what has its shape."""
    name = "genes"
    try:
        X, y = load("gene_all")
    except MissingDataError as missing:
        name, d = "stand-in for genes", 2000 if quick else 12625
        skip(f"gene expression (a simulated 128 x {d} instead of it)", missing)
        y = rng.choice([-1, 1], size=128)
        X = rng.normal(size=(128, d))
        X[:, :100] += 0.5 * y[:, None]
    return scaled(name, X, y, 96, lam=0.01, batch=10, epochs=50)


def skin(quick):
    """Load or download the skin colours."""
    X, y = load_or_fetch("skin", fetch_skin)
    rows = 20_000 if quick else 200_000
    return scaled("skin", X, y, rows, lam=1e-4, batch=100, epochs=10)


def fetch_skin():
    """Download the skin colours; class 1 is skin."""
    source = {"name": "skin-segmentation", "version": 1, "parser": "liac-arff"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the one that announces a second attempt
        X, y = fetch_openml(
            **source, as_frame=False, return_X_y=True, n_retries=1, delay=0.1
        )
    return X, np.where(y == "1", 1, -1)


def scaled(name, X, y, rows, **settings):
    """Split; scale to columns of equal variance and rows of norm 1 on the average."""
    train, test, train_y, test_y = train_test_split(
        X, y, train_size=rows, stratify=y, random_state=0
    )
    scaler = StandardScaler().fit(train)
    train, test = (scaler.transform(Z) / Z.shape[1] ** 0.5 for Z in (train, test))
    return Problem(name, train, test, train_y, test_y, **settings)


def fits(problem, algorithm, n_seeds, **options):
    """Fit with several seeds and record the way."""
    estimator, own = algorithm
    study = {"lam": problem.lam, "max_iter": problem.epochs, "tol": 0}
    study |= {"sampling": "random", "record_every": problem.epochs / 100}
    study |= {**own, **options}
    return [
        estimator("smooth_hinge", random_state=seed, **study).fit(
            problem.train, problem.train_y
        )
        for seed in range(n_seeds)
    ]


def optimum(problem):
    """Return the lower bound of the objective that a long run proves."""
    exact = Sdca("smooth_hinge", lam=problem.lam, tol=1e-11, random_state=0)
    return exact.fit(problem.train, problem.train_y).dual_objective_


def draw(ax, runs, best, title, legend=True, dashed=()):
    """Draw how far above the optimum the objectives of some fits are."""
    display = ConvergenceDisplay.from_estimators(
        runs, y="primal", reference=best, distance=True, xscale="log", ax=ax
    )
    for line in dashed:  # what lies on top of another line
        display.lines_[line].set_linestyle((0, (3, 2)))
    ax.set(title=title, ylabel="objective above its optimum")
    if not ax.get_subplotspec().is_first_col():
        ax.set_ylabel("")
    ax.legend(loc="lower left", fontsize=8).set_visible(legend)


def scores(models, problem):
    """Return the share of the test rows that each model classifies correctly."""
    return [model.score(problem.test, problem.test_y) for model in models]


def draw_data_sets(problems, n_seeds, folder):
    """Draw the four algorithms on each data set, and print how far they come."""
    size = (4.4 * len(problems), 4.2)
    figure, axes = plt.subplots(
        1, len(problems), figsize=size, sharey=True, layout="constrained"
    )
    print(f"\nobjective above its optimum, mean of {n_seeds} seeds")
    for ax, problem in zip(axes, problems, strict=True):
        (n, d), best, runs = problem.train.shape, optimum(problem), {}
        epochs = [1, problem.epochs // 5, problem.epochs]
        heads = [f"epoch {epoch}" for epoch in epochs] + ["test accuracy"]
        print(f"\n{problem.name}: {n} x {d}, lam = {problem.lam:g}")
        print(" " * 26 + "".join(f"{head:>15s}" for head in heads))
        for name, algorithm in algorithms(problem.batch).items():
            runs[name] = fits(problem, algorithm, n_seeds)
            ways = [model.history_ for model in runs[name]]
            means = np.mean(
                [np.interp(epochs, way["epoch"], way["primal"]) for way in ways], axis=0
            )
            print(f"{name:26s}" + "".join(f"{P - best:15.1e}" for P in means), end="")
            print(f"{np.mean(scores(runs[name], problem)):15.3f}")
        title = rf"{problem.name}: {n} x {d}, $\lambda$ = {problem.lam:g}"
        draw(ax, runs, best, title, dashed=[3])
    axes[0].set_ylim(bottom=1e-9)
    save(figure, folder, "data_sets")


def draw_choices(problem, n_seeds, folder):
    """Draw what the order, the output and the projection change."""
    order = np.argsort(problem.train_y)
    by_class = {"train": problem.train[order], "train_y": problem.train_y[order]}
    names = algorithms(1)

    def run(name, where=problem, **options):
        return fits(where, names[name], n_seeds, **options)

    panels = {
        f"{name}: order of the rows": {
            "random, with replacement": run(name, record_every=1),
            "permutations": run(name, record_every=1, sampling="permutation"),
            "cyclic": run(name, record_every=1, sampling="cyclic"),
            "cyclic, sorted by class": run(
                name, problem._replace(**by_class), record_every=1, sampling="cyclic"
            ),
        }
        for name in ("SDCA", "Pegasos")
    }
    panels["last model, or average of the second half"] = {
        f"{name}, {output}": run(name, output=output)
        for name in ("SDCA", "Pegasos")
        for output in OUTPUTS
    }
    start = {"max_iter": 5, "record_every": 0.05}
    start = {"max_iter": 5, "record_every": 0.05}
    panels["Pegasos: projection, first epochs"] = {
        f"{text}, {rows} a step": run("Pegasos", project=project, **batch, **start)
        for rows, batch in (("1 row", {}), ("10 rows", {"batch_size": 10}))
        for text, project in (("not projected", False), ("projected", True))
    }
    figure, axes = plt.subplots(2, 2, figsize=(10.5, 8), layout="constrained")
    for ax, (title, runs) in zip(axes.flat, panels.items(), strict=True):
        draw(ax, runs, optimum(problem), title)
    for ax in axes.flat[:3]:
        ax.set_ylim(1e-6, 5)
    figure.suptitle(rf"{problem.name}, $\lambda$ = {problem.lam:g}")
    save(figure, folder, "choices")


def draw_lambdas(problem, beta, n_seeds, folder):
    """Draw four strengths of regularisation, and compare the predictions."""
    names, lambdas = algorithms(problem.batch), (1, 0.1, 0.01, 0.001)
    figure, axes = plt.subplots(
        1, len(lambdas), figsize=(13, 4), sharey=True, layout="constrained"
    )
    of_beta, lowest = np.mean(np.sign(problem.test @ beta) == problem.test_y), 1
    print(f"\ntest accuracy ({problem.name}, worst of {n_seeds} seeds)")
    print(f"\n{'lam':7s}{'output':9s}" + "".join(f"{name:>25s}" for name in names))
    for ax, lam in zip(axes, lambdas, strict=True):
        problem = problem._replace(lam=lam)
        for output in OUTPUTS:
            runs = {
                name: fits(problem, algorithm, n_seeds, output=output)
                for name, algorithm in names.items()
            }
            worst = [min(scores(group, problem)) for group in runs.values()]
            lowest = min(lowest, *worst)
            print(f"{lam:<7g}{output:9s}" + "".join(f"{a:25.3f}" for a in worst))
            if output == "last":
                title = rf"$\lambda$ = {lam:g}"
                draw(ax, runs, optimum(problem), title, ax is axes[0], dashed=[3])
    axes[0].set_ylim(bottom=1e-9)
    figure.suptitle(f"{problem.name}: four strengths of regularisation")
    save(figure, folder, "lambdas")
    print(f"the true coefficients: {of_beta:.3f}; the worst model: {lowest:.3f}")
    assert lowest >= of_beta - TOLERATED, "a model predicts badly"


def main(args):
    """Fit, draw and print; fail if a model predicts badly."""
    n_seeds = 2 if args.quick else 5
    rng = np.random.default_rng(0)
    easy, beta = simulated(rng)
    problems = [easy, genes(args.quick, rng)]
    try:
        problems.append(skin(args.quick))
    except MissingDataError as missing:
        skip("skin", missing)
    draw_data_sets(problems, n_seeds, args.out)
    draw_choices(easy._replace(lam=0.001), n_seeds, args.out)
    draw_lambdas(easy, beta, n_seeds, args.out)


if __name__ == "__main__":
    main(arguments(__doc__, "four_algorithms"))
