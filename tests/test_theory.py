"""Sufficient numbers of iterations: they are those of the theorems, and suffice."""

import inspect
import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest

from sdca_rs import Asdca, Pegasos, Sdca, theory
from sdca_rs.theory import (
    AveragedRun,
    asdca_iterations,
    asdca_theta,
    pegasos_iterations,
    sdca_lipschitz_iterations,
    sdca_lipschitz_summary,
    sdca_sgd_iterations,
    sdca_smooth_averaged_iterations,
    sdca_smooth_iterations,
)

ROWS = {"n_samples": 1000}
PROBLEM = {"lam": 0.01, "eps": 1e-3, "radius": 1.5}
KINK = PROBLEM | {"lipschitz": 0.8}
SMOOTH = PROBLEM | {"gamma": 0.7}
START = {"initial_gap": 0.9}

# All bounds, with arguments for which the dependence on eps outweighs that on n.
BOUNDS = {
    "lipschitz": (sdca_lipschitz_iterations, ROWS | KINK | START),
    "lipschitz half": (
        sdca_lipschitz_iterations,
        ROWS | KINK | START | {"average_from": 0.5},
    ),
    "summary": (sdca_lipschitz_summary, ROWS | KINK | START),
    "sgd": (sdca_sgd_iterations, ROWS | KINK),
    "sgd half": (sdca_sgd_iterations, ROWS | KINK | {"average_from": 0.5}),
    "smooth": (sdca_smooth_iterations, ROWS | SMOOTH | START),
    "smooth average": (sdca_smooth_averaged_iterations, ROWS | SMOOTH | START),
    "smooth half": (
        sdca_smooth_averaged_iterations,
        ROWS | SMOOTH | START | {"average_from": 0.5},
    ),
    "asdca": (asdca_iterations, ROWS | SMOOTH | START | {"batch_size": 10}),
    "pegasos": (pegasos_iterations, KINK | START | {"project": True}),
    "pegasos unprojected": (pegasos_iterations, KINK),
    "pegasos random": (
        pegasos_iterations,
        KINK | START | {"project": True, "delta": 0.2},
    ),
    "pegasos unprojected random": (
        pegasos_iterations,
        KINK | {"delta": 0.2},
    ),
}
FUNCTIONS = {name: getattr(theory, name) for name in theory.__all__}
FUNCTIONS.pop("AveragedRun")


def length(bound, **changes):
    function, arguments = BOUNDS[bound]
    run = function(**(arguments | changes))
    return run.iterations if isinstance(run, AveragedRun) else run


def scaled(arguments, **factors):
    changes = {n: arguments[n] * f for n, f in factors.items() if n in arguments}
    return arguments | changes


def first_step(share, T):
    return math.floor(Fraction(share) * T)


# --- the numbers are those of the formulas --------------------------------------------


@pytest.mark.parametrize(
    ("n", "lam", "published"), [(452, 0.05, 401_549), (48_842, 0.1, 629_840)]
)
def test_published_numbers(n, lam, published):
    run = sdca_lipschitz_summary(n, lam=lam, eps=1e-3)
    assert run.iterations == published
    assert type(run.iterations) is int
    assert type(run.average_from_step) is int


def lipschitz_burn_in(n, lam, L, R, g):
    """``t0``: where ``(1 - 1/n)^t g <= exp(-t/n) g`` is ``2 L^2 R^2 / (lam n)``."""
    return max(0, math.ceil(n * math.log(g * lam * n / (2 * L**2 * R**2))))


def lipschitz_gap(run, n, lam, L, R, t0):
    """Bound of the dual's distance at ``T0``, and what the steps after it add."""
    T, T0 = run
    assert min(T0 - t0, T - T0 - n) >= 0
    return (
        8 * L**2 * R**2 / (lam * (2 * n + T0 - t0)),
        2 * L**2 * R**2 / (lam * (T - T0)),
    )


# Many steps for eps; many for n; a start that is good already.
LIPSCHITZ = [
    (1000, 0.01, 1e-3, 0.8, 1.5, 0.9),
    (1000, 5.0, 0.01, 2.0, 0.3, 3.0),
    (300, 0.01, 0.1, 1.0, 4.0, 0.5),
    (1, 0.5, 0.2, 1.0, 1.0, 1.0),
]


@pytest.mark.parametrize(("n", "lam", "eps", "L", "R", "g"), LIPSCHITZ)
def test_lipschitz_is_the_theorem(n, lam, eps, L, R, g):
    run = sdca_lipschitz_iterations(
        n, lam=lam, eps=eps, lipschitz=L, radius=R, initial_gap=g
    )
    t0 = lipschitz_burn_in(n, lam, L, R, g)
    tight = 1 + 1e-12
    assert max(lipschitz_gap(run, n, lam, L, R, t0)) <= eps / 2 * tight
    # One step less in either part is not enough.
    T, T0 = run
    if T0 - t0 > 0:
        less = AveragedRun(T - 1, T0 - 1)
        assert lipschitz_gap(less, n, lam, L, R, t0)[0] > eps / 2
    if T - T0 - n > 0:
        less = AveragedRun(T - 1, T0)
        assert lipschitz_gap(less, n, lam, L, R, t0)[1] > eps / 2


@pytest.mark.parametrize(("n", "lam", "eps", "L", "R", "g"), LIPSCHITZ)
def test_summary_is_the_theorem_with_longer_parts(n, lam, eps, L, R, g):
    problem = {"lam": lam, "eps": eps, "lipschitz": L, "radius": R, "initial_gap": g}
    run = sdca_lipschitz_summary(n, **problem)
    t0 = lipschitz_burn_in(n, lam, L, R, g)
    assert run.iterations == n + t0 + math.ceil(20 * L**2 * R**2 / (lam * eps) - 1e-9)
    assert max(lipschitz_gap(run, n, lam, L, R, t0)) <= eps / 2
    assert run.iterations >= sdca_lipschitz_iterations(n, **problem).iterations


@pytest.mark.parametrize("share", [0.1, 0.5, 0.97])
@pytest.mark.parametrize(("n", "lam", "eps", "L", "R", "g"), LIPSCHITZ)
def test_lipschitz_at_a_given_share_is_the_smallest(n, lam, eps, L, R, g, share):
    run = sdca_lipschitz_iterations(
        n, lam=lam, eps=eps, lipschitz=L, radius=R, initial_gap=g, average_from=share
    )
    t0 = lipschitz_burn_in(n, lam, L, R, g)
    assert run.average_from_step == first_step(share, run.iterations)
    assert sum(lipschitz_gap(run, n, lam, L, R, t0)) <= eps
    T = run.iterations - 1
    T0 = first_step(share, T)
    assert (
        min(T0 - t0, T - T0 - n) < 0
        or sum(lipschitz_gap(AveragedRun(T, T0), n, lam, L, R, t0)) > eps
    )


@pytest.mark.parametrize("share", [None, 0.5])
@pytest.mark.parametrize(("n", "lam", "eps", "L", "R", "g"), LIPSCHITZ)
def test_sgd_is_an_epoch_and_then_sdca_from_where_it_ends(n, lam, eps, L, R, g, share):
    problem = {"lam": lam, "eps": eps, "lipschitz": L, "radius": R}
    run = sdca_sgd_iterations(n, **problem, average_from=share)
    t0 = n + math.ceil(n * math.log(math.log(math.e * n)) - 1e-9)
    left = 2 * L**2 * R**2 * math.log(math.e * n) / (lam * n)
    if share is None:
        rest = sdca_lipschitz_iterations(n, **problem, initial_gap=left)
        assert run == (n + rest.iterations, n + rest.average_from_step)
        assert max(lipschitz_gap(run, n, lam, L, R, t0)) <= eps / 2 * (1 + 1e-12)
    else:
        assert sum(lipschitz_gap(run, n, lam, L, R, t0)) <= eps


SMOOTHS = [
    (1000, 0.01, 1e-3, 0.7, 1.5, 0.9),
    (50, 1e-5, 0.02, 4.0, 1.0, 0.7),
    (500, 1.0, 1e-6, 0.1, 3.0, 20.0),
]


@pytest.mark.parametrize(("n", "lam", "eps", "gamma", "R", "g"), SMOOTHS)
def test_smooth_inverts_its_bound(n, lam, eps, gamma, R, g):
    problem = {"lam": lam, "eps": eps, "gamma": gamma, "radius": R, "initial_gap": g}
    k = n + R**2 / (lam * gamma)
    T = sdca_smooth_iterations(n, **problem)
    assert k * g * math.exp(-T / k) <= eps < k * g * math.exp(-(T - 1) / k)

    for share in (0.0, 0.3, 0.5):
        T, T0 = sdca_smooth_averaged_iterations(n, **problem, average_from=share)
        assert first_step(share, T) == T0
        assert k * g * math.exp(-T0 / k) / (T - T0) <= eps
        T, T0 = T - 1, first_step(share, T - 1)
        assert k * g * math.exp(-T0 / k) / (T - T0) > eps


@pytest.mark.parametrize(("n", "lam", "eps", "gamma", "R", "g"), SMOOTHS)
def test_smooth_average_takes_the_best_share(n, lam, eps, gamma, R, g):
    problem = {"lam": lam, "eps": eps, "gamma": gamma, "radius": R, "initial_gap": g}
    k = n + R**2 / (lam * gamma)
    T, T0 = sdca_smooth_averaged_iterations(n, **problem)
    assert k * g * math.exp(-T0 / k) / (T - T0) <= eps
    firsts = np.arange(0, 2 * T)
    best = np.min(firsts + np.ceil(k * g * np.exp(-firsts / k) / eps))
    assert best <= T <= best + 1


def test_theta_is_the_least_of_its_terms():
    def theta(s, m):
        # gamma lam n / R^2 = s
        return asdca_theta(4000, batch_size=m, lam=0.01 * s, gamma=0.1, radius=2.0)

    for s, m, expected in [
        (50.0, 10, 0.25),
        (4.0, 100, math.sqrt(4 / 100) / 4),
        (0.01, 10, 0.01 / 4),
    ]:
        assert theta(s, m) == pytest.approx(expected, rel=1e-12)
    for s, m in itertools.product(np.geomspace(1e-4, 1e4, 25), [1, 3, 40, 4000]):
        # The last one of the paper is never smaller than all others.
        terms = (1, (s / m) ** 0.5, s, s ** (2 / 3) / m ** (1 / 3))
        assert theta(s, m) == pytest.approx(min(terms) / 4, rel=1e-12)


@pytest.mark.parametrize("m", [1, 7, 500])
@pytest.mark.parametrize(("n", "lam", "eps", "gamma", "R", "g"), SMOOTHS[::2])
def test_asdca_inverts_its_bound(n, lam, eps, gamma, R, g, m):
    problem = {"lam": lam, "gamma": gamma, "radius": R}
    theta = asdca_theta(n, batch_size=m, **problem)
    T = asdca_iterations(n, batch_size=m, eps=eps, initial_gap=g, **problem)
    rate = theta * m / n
    assert g * math.exp(-rate * T) <= eps < g * math.exp(-rate * (T - 1))
    assert (1 - rate) ** T * g <= eps


@pytest.mark.parametrize("g", [1.0, 0.3])
@pytest.mark.parametrize("eps", [0.5, 1e-2, 1e-5])
@pytest.mark.parametrize(("L", "R", "lam"), [(1, 1, 0.05), (0.8, 3, 0.2), (4, 1, 1e-6)])
@pytest.mark.parametrize("delta", [None, 0.01, 0.9])
@pytest.mark.parametrize("project", [True, False])
def test_pegasos_inverts_its_bound(L, R, lam, eps, g, project, delta):
    c = (math.sqrt(lam * g) + L * R) ** 2 if project else 4 * L**2 * R**2
    T = pegasos_iterations(
        lam=lam,
        eps=eps,
        lipschitz=L,
        radius=R,
        project=project,
        initial_gap=g,
        delta=delta,
    )

    def bound(T):
        if delta is None:
            return c * (1 + math.log(T)) / (2 * lam * T)
        return 42 * c * math.log(T / delta) / (lam * T)

    assert bound(T) <= eps * (1 + 1e-12)
    assert bound(T - 1) > eps * (1 - 1e-12)


def test_pegasos_random_needs_a_radius_beside_lam():
    """The theorem is for ``lam <= (L R)^2 / (4 g)``: smaller rows gain nothing."""

    def random_iterate(radius):
        return pegasos_iterations(
            lam=0.25, eps=0.1, lipschitz=2.0, radius=radius, initial_gap=4.0, delta=0.1
        )

    assert random_iterate(0.01) == random_iterate(1.0) < random_iterate(1.01)
    # The bound in expectation does gain.
    problem = {"lam": 0.25, "eps": 0.1, "lipschitz": 2.0, "initial_gap": 4.0}
    assert pegasos_iterations(radius=0.01, **problem) < pegasos_iterations(**problem)


def test_pegasos_random_is_sufficient_from_there_on():
    """For delta near 1 the formula is small at T = 1, and larger at T = 2."""
    lam, eps, delta = 1e-3, 15_000.0, 0.999
    T = pegasos_iterations(lam=lam, eps=eps, project=True, delta=delta)
    c = (math.sqrt(lam) + 1) ** 2
    later = [42 * c * math.log(t / delta) / (lam * t) for t in range(T, 100)]
    assert T > 1
    assert max(later) <= eps


# --- laws -----------------------------------------------------------------------------


@pytest.mark.parametrize("bound", BOUNDS)
def test_more_is_needed_for_a_harder_problem(bound):
    _, arguments = BOUNDS[bound]
    here = length(bound)
    harder = {"eps": 0.9, "radius": 1.1, "lipschitz": 1.1, "gamma": 0.9}
    if "half" not in bound or "smooth" in bound:
        harder |= {"lam": 0.9}
    if "pegasos" not in bound and "asdca" not in bound:
        harder |= {"n_samples": 2}
    # Only the ball of Pegasos depends on the start, and the logarithm of the others.
    harder |= {"initial_gap": 1.1}
    for name, factor in harder.items():
        if name in arguments:
            assert length(bound, **scaled(arguments, **{name: factor})) > here, name


@pytest.mark.parametrize("bound", BOUNDS)
def test_units_do_not_matter(bound):
    _, arguments = BOUNDS[bound]
    here = length(bound)
    # w in other units: rows and coefficients change together. Powers of 2 are exact.
    assert length(bound, **scaled(arguments, radius=2, lam=4)) == here
    # P in other units.
    units = {"lam": 4, "eps": 4, "lipschitz": 4, "gamma": 1 / 4}
    start = {} if bound.startswith("sgd") else {"initial_gap": 4 * 0.9}
    if bound.startswith("pegasos unprojected"):
        start = {"initial_gap": 4.0}
    assert length(bound, **(scaled(arguments, **units) | start)) == here
    # A row x under phi(p) is the row 2x under phi(p / 2).
    assert (
        length(bound, **scaled(arguments, radius=2, lipschitz=1 / 2, gamma=4)) == here
    )


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_start_that_is_good_enough(bound):
    function, arguments = BOUNDS[bound]
    run = function(**arguments | {"eps": 1e9})
    if isinstance(run, AveragedRun):
        assert 0 <= run.average_from_step < run.iterations
    else:
        assert 0 <= run <= 3


def test_the_shortest_average_is_of_one_iterate():
    run = sdca_smooth_averaged_iterations(
        9, lam=1.0, eps=1e300, gamma=1.0, initial_gap=1e-300
    )
    assert run == (1, 0)
    assert run.average_from == 0.0


def test_average_from_is_the_share():
    run = sdca_lipschitz_iterations(452, lam=0.05, eps=1e-3)
    assert run.average_from == run.average_from_step / run.iterations
    for epochs in range(-(-run.iterations // 452), 1000):
        T = 452 * epochs
        assert T - run.average_from * T >= run.iterations - run.average_from_step
        assert run.average_from * T >= run.average_from_step


def test_rounding_errors_do_not_cost_a_step():
    shapes = itertools.product(
        ["0.1", "0.3", "0.01", "0.07", "0.001"],
        ["0.1", "0.03", "0.007", "0.0001"],
        ["0.2", "0.3", "0.7", "0.8", "1.2"],
    )
    for lam, eps, L in shapes:
        exact = 1 + math.ceil(20 * Fraction(L) ** 2 / (Fraction(lam) * Fraction(eps)))
        run = sdca_lipschitz_summary(
            1, lam=float(lam), eps=float(eps), lipschitz=float(L), initial_gap=1e-9
        )
        assert run.iterations == exact, (lam, eps, L)


# --- bad arguments --------------------------------------------------------------------

# What is expected, of which arguments, and values and types that are not it.
CHECKS = [
    (
        "a finite number > 0",
        ["lam", "eps", "lipschitz", "gamma", "radius", "initial_gap"],
        [0, -1.0, math.nan, math.inf, 10**400],
        ["1", None, True, 1j, [1.0, 2.0]],
    ),
    ("an integer >= 1", ["n_samples"], [0, -3, 2**63], ["3", None, 10.0, True]),
    (
        "an integer from 1 to n_samples=100",
        ["batch_size"],
        [0, -3, 101],
        ["3", None, 10.0, True],
    ),
    (
        "0, 1), or None",
        ["average_from"],
        [1, -0.1, math.nan, math.inf],
        ["0.5", True, [0.5, 0.6]],
    ),
    (
        "a number above 0 and below 1, or None",
        ["delta"],
        [0, 1, -0.1, math.nan],
        ["0.5", True],
    ),
    ("True or False", ["project"], [], [None, 1, "yes"]),
]


def good_arguments(function):
    offered = {
        "n_samples": 100,
        "batch_size": 10,
        "lam": 0.1,
        "eps": 0.01,
        "gamma": 1.0,
    }
    names = inspect.signature(function).parameters
    return {name: value for name, value in offered.items() if name in names}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_bad_arguments_are_refused(function):
    arguments = good_arguments(function)
    function(**arguments)
    checked = set()
    for expected, names, bad, wrong_types in CHECKS:
        for name in set(names) & set(inspect.signature(function).parameters):
            checked.add(name)
            told = rf"(?s)^{name}: found .*expected .*{re.escape(expected)}"
            for value in bad:
                with pytest.raises(ValueError, match=told):
                    function(**arguments | {name: value})
            for value in wrong_types:
                with pytest.raises(TypeError, match=told):
                    function(**arguments | {name: value})
    assert checked == set(inspect.signature(function).parameters)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_only_the_number_of_rows_may_be_positional(function):
    kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    if function is not pegasos_iterations:
        assert kinds.pop(0) is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert set(kinds) == {inspect.Parameter.KEYWORD_ONLY}


def test_numpy_numbers_are_numbers():
    run = sdca_lipschitz_summary(np.int32(452), lam=np.float64(0.05), eps=1e-3)
    assert run.iterations == 401_549
    assert type(run.iterations) is int


def test_averaging_from_the_start_suffices_for_smooth_losses_only():
    run = sdca_smooth_averaged_iterations(100, lam=1, eps=0.1, gamma=1, average_from=0)
    assert run == (1010, 0)
    for function in (sdca_lipschitz_iterations, sdca_sgd_iterations):
        with pytest.raises(ValueError, match=r"^average_from: found 0, expected .*\(0"):
            function(100, lam=0.1, eps=0.1, average_from=0)


@pytest.mark.parametrize("bound", BOUNDS)
def test_no_number_is_returned_beyond_counting(bound):
    for extreme in ({"eps": 5e-324, "lam": 1e-300}, {"lam": 1e-300}, {"lam": 5e-324}):
        with pytest.raises(ValueError, match=r"^lam, eps: found .*fewer than 2\^63"):
            length(bound, **extreme)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_extreme_constants_give_a_number_or_an_error(bound, size):
    function, arguments = BOUNDS[bound]
    for name in ("lam", "eps", "radius", "lipschitz", "gamma", "initial_gap"):
        if name not in arguments:
            continue
        run, refusal = None, None
        try:
            run = function(**arguments | {name: size})
        except ValueError as error:
            refusal = str(error)
        if refusal is not None:
            assert re.search(r": found .*expected ", refusal)
        else:
            T = run.iterations if isinstance(run, AveragedRun) else run
            assert 0 <= T < 2**63


def test_constants_whose_product_is_lost_are_refused():
    with pytest.raises(ValueError, match=r"^lipschitz, radius: found .* is 0\.0"):
        pegasos_iterations(lam=0.1, eps=0.1, lipschitz=1e-200, radius=1e-10)
    with pytest.raises(ValueError, match=r"^lipschitz, radius: found .* is inf"):
        sdca_sgd_iterations(9, lam=0.1, eps=0.1, lipschitz=1e200)
    with pytest.raises(ValueError, match=r"^gamma, lam, radius: found .* is 0\.0"):
        asdca_theta(9, batch_size=1, lam=1e-200, gamma=1e-200)


# --- fits of that length --------------------------------------------------------------


def separate_rows(n, seed):
    """Rows that do not see each other: what is not visited stays, as the bounds say."""
    return np.eye(n), np.where(np.arange(n) % 2, 1, -1)


def crowded_rows(n, seed):
    """Few columns and labels without sense: the rows contradict each other."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X / np.linalg.norm(X, axis=1)[:, None], rng.permutation(np.arange(n) % 2)


def mean_gap(rows, n, iterations, **settings):
    """Mean certificate after so many iterations, rounded up to epochs."""
    gaps = []
    for seed in range(40):
        fit = Sdca(
            fit_intercept=False,
            sampling="random",
            tol=0,
            max_iter=math.ceil(iterations / n),
            random_state=seed,
            **{"first_epoch": "sdca", **settings},
        ).fit(*rows(n, seed))
        assert fit.history_["gap"][-1] == fit.duality_gap_
        gaps.append(fit.duality_gap_)
    return np.mean(gaps)


# Last number: a share of the run that is not enough, so that the test sees something.
@pytest.mark.parametrize("output", ["average", "random"])
@pytest.mark.parametrize("average_from", [None, 0.5])
@pytest.mark.parametrize(
    ("rows", "lam", "eps", "too_short"),
    [
        (separate_rows, 10.0, 0.008, 0.4),
        (crowded_rows, 0.5, 0.05, 0.2),
        (crowded_rows, 0.01, 0.1, 0.01),
    ],
)
def test_lipschitz_iterations_suffice(rows, lam, eps, too_short, output, average_from):
    n = 100
    run = sdca_lipschitz_iterations(n, lam=lam, eps=eps, average_from=average_from)
    fit = {"loss": "hinge", "lam": lam, "output": output}
    fit["average_from"] = run.average_from
    assert mean_gap(rows, n, run.iterations, **fit) <= eps
    assert mean_gap(rows, n, too_short * run.iterations, **fit) > eps


@pytest.mark.parametrize("output", ["average", "random"])
def test_sgd_iterations_suffice(output):
    n, lam, eps = 100, 1.0, 0.1
    run = sdca_sgd_iterations(n, lam=lam, eps=eps)
    fit = {"loss": "hinge", "lam": lam, "output": output, "first_epoch": "sgd"}
    fit["average_from"] = run.average_from
    assert mean_gap(crowded_rows, n, run.iterations, **fit) <= eps
    assert mean_gap(crowded_rows, n, 0.25 * run.iterations, **fit) > eps


@pytest.mark.parametrize(
    ("loss", "gamma", "initial_gap"), [("log", 4, 0.6932), ("smooth_hinge", 1, 0.5)]
)
@pytest.mark.parametrize(
    ("rows", "lam", "eps", "too_short", "outputs"),
    [
        # One of the last iterates, at random, has the gap of the bound here: its mean
        # over a few seeds would be as often above as below.
        (separate_rows, 1.0, 1e-4, 0.5, ["average"]),
        (crowded_rows, 0.01, 1e-3, 0.2, ["average", "random"]),
    ],
)
def test_smooth_iterations_suffice(
    loss, gamma, initial_gap, rows, lam, eps, too_short, outputs
):
    n = 100
    problem = {"lam": lam, "eps": eps, "gamma": gamma, "initial_gap": initial_gap}
    fit = {"loss": loss, "lam": lam}
    T = sdca_smooth_iterations(n, **problem)
    assert mean_gap(rows, n, T, **fit) <= eps
    assert mean_gap(rows, n, too_short * T, **fit) > eps
    for average_from, output in itertools.product([None, 0.5], outputs):
        run = sdca_smooth_averaged_iterations(n, **problem, average_from=average_from)
        fit |= {"output": output, "average_from": run.average_from}
        assert mean_gap(rows, n, run.iterations, **fit) <= eps
        assert mean_gap(rows, n, too_short * run.iterations, **fit) > eps


def test_radius_and_lipschitz_constant_count():
    """The quantile loss for rows of norm 3, whose start is not 1 either."""
    n, lam, eps, tau = 100, 90.0, 0.01, 0.8
    y = np.full(n, 2.0)
    problem = {"lam": lam, "lipschitz": tau, "radius": 3.0, "initial_gap": tau * 2.0}
    run = sdca_lipschitz_iterations(n, eps=eps, **problem)
    fit = {"loss": "quantile", "loss_param": tau, "lam": lam, "output": "average"}
    fit["average_from"] = run.average_from

    def rows(n, seed):
        return 3 * np.eye(n), y

    assert mean_gap(rows, n, run.iterations, **fit) <= eps
    assert mean_gap(rows, n, 0.5 * run.iterations, **fit) > eps


def hard_rows(n, seed):
    """Rows of length 1 whose labels a narrow margin makes hard to learn."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X /= np.linalg.norm(X, axis=1)[:, None]
    return X, np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1, -1)


def excess_and_optimum(rows, n, lam, seed, **settings):
    """How far above the optimum a run ends, and its gap."""
    X, y = rows(n, seed)
    optimum = Sdca(lam=lam, fit_intercept=False, tol=1e-7, max_iter=10**5)
    optimum.set_params(loss=settings["loss"], random_state=0).fit(X, y)
    estimator = settings.pop("estimator")
    fit = estimator(
        lam=lam, fit_intercept=False, tol=0, random_state=seed, **settings
    ).fit(X, y)
    return fit.objective_ - optimum.dual_objective_, fit.duality_gap_


@pytest.mark.parametrize("output", ["average", "random"])
@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("batch_size", [1, 10])
@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_pegasos_iterations_suffice(loss, batch_size, project, output):
    n, lam, eps = 100, 0.1, 0.1
    # P(0) is 1 for the hinge and log 2 for the log loss.
    g = 1.0 if loss == "hinge" else math.log(2)
    T = pegasos_iterations(lam=lam, eps=eps, project=project, initial_gap=g)
    steps = n // batch_size

    def mean_excess(iterations):
        return np.mean(
            [
                excess_and_optimum(
                    hard_rows,
                    n,
                    lam,
                    seed,
                    estimator=Pegasos,
                    loss=loss,
                    batch_size=batch_size,
                    sampling="random",
                    project=project,
                    output=output,
                    average_from=0.0,
                    max_iter=math.ceil(iterations / steps),
                )[0]
                for seed in range(20)
            ]
        )

    assert mean_excess(T) <= eps
    # Far fewer steps are not enough, so that the test sees something.
    if (loss, batch_size, output) == ("hinge", 10, "random"):
        assert mean_excess(steps) > eps


@pytest.mark.parametrize("project", [False, True])
def test_half_of_the_iterates_of_pegasos_are_good(project):
    n, lam, eps, delta = 50, 0.25, 1.0, 0.1
    T = pegasos_iterations(lam=lam, eps=eps, project=project, delta=delta)
    excesses = [
        excess_and_optimum(
            hard_rows,
            n,
            lam,
            seed,
            estimator=Pegasos,
            loss="hinge",
            batch_size=1,
            sampling="random",
            project=project,
            output="random",
            average_from=0.0,
            max_iter=math.ceil(T / n),
        )[0]
        for seed in range(20)
    ]
    # Of all runs but a tenth, at least half of the iterates.
    assert np.mean(np.array(excesses) <= eps) >= (1 - delta) / 2


@pytest.mark.parametrize(
    ("loss", "gamma", "g"), [("log", 4, 0.6932), ("smooth_hinge", 1, 0.5)]
)
@pytest.mark.parametrize("batch_size", [1, 10, 100])
@pytest.mark.parametrize(
    ("rows", "lam", "eps", "too_short"),
    [(separate_rows, 0.1, 1e-4, 0.15), (crowded_rows, 0.01, 1e-3, 0.02)],
)
def test_asdca_iterations_suffice(
    rows, lam, eps, too_short, batch_size, loss, gamma, g
):
    n = 100
    T = asdca_iterations(
        n, batch_size=batch_size, lam=lam, eps=eps, gamma=gamma, initial_gap=g
    )

    def means(iterations):
        runs = [
            excess_and_optimum(
                rows,
                n,
                lam,
                seed,
                estimator=Asdca,
                loss=loss,
                batch_size=batch_size,
                max_iter=max(1, math.ceil(iterations * batch_size / n)),
            )
            for seed in range(10)
        ]
        return np.mean(runs, axis=0)

    assert means(T)[0] <= eps
    assert means(too_short * T)[1] > eps
