"""The options of the commands, and the help that explains them."""

from __future__ import annotations

import argparse
import math
import sys

from sdca_rs._cli._formats import FORMATS
from sdca_rs._cli._light import loss_names

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

SUCCESS, FAILURE, USAGE, NOT_CONVERGED, INTERRUPTED = 0, 1, 2, 3, 130

_MAIN = """\
Linear models by stochastic dual coordinate ascent, each with a certificate: a proof of
how far it is from the best model that there is.
"""

_MAIN_MORE = """\
examples:
  sdca-rs train heart.svm heart.json           logistic regression, C = 1
  sdca-rs predict new.svm heart.json           a label for each row
  sdca-rs certify heart.svm heart.json         how far from the best model?
  sdca-rs inspect heart.json                   what is in the file?
  sdca-rs train houses.csv --target price --loss squared --standardise

files:
  The name says the format: .csv, .tsv, .parquet and .npz; all others are svmlight
  (libsvm). .gz and .bz2 may follow, except for Parquet and npz. Standard input is "-".

exit codes:
  0  success
  1  the data or the model cannot be used; the message says what was found
  2  wrong usage of the command
  3  train: the tolerance was not reached, the model is written all the same;
     certify --at-most: the gap is larger
  130  interrupted a second time, nothing is written

"sdca-rs COMMAND --help" explains the options of a command, and "sdca-rs train --help"
how to choose a loss and C, and what LIBLINEAR's options are called here.
"""

_TRAIN = """\
Train a model on DATA and write it to MODEL (default: the name of the data, in the
current folder, and ".json").

The objective is C times the sum of the losses of the rows, plus half the sum of squared
coefficients. The intercept is free, without a penalty.
"""

_TRAIN_MORE = """\
which loss?
  two or more classes   log: probabilities (the default); hinge: support vector
                        machine; squared_hinge: LIBLINEAR's default
  numbers               squared: the mean; absolute or huber: despite outliers;
                        quantile with -p 0.9: a bound that 90 % do not exceed;
                        poisson: counts

which C?
  Small values mean small coefficients. Compare some by cross-validation:
      sdca-rs train data.svm -c 0.01,0.1,1,10 --cv 5
  Columns of very different sizes need --standardise: shifted by their means (not those
  of sparse rows) and divided by their standard deviations. The model remembers both.

what the certificate says:
  "objective 0.3231, no model is below 0.32309: at most 0.0031 % above the best" is
  proved from all rows at the end of the fit. "converged" means that the gap is at most
  --tol times the objective. A larger --tol is faster, and 1e-3 is often enough.

tables (CSV, Parquet):
  --target names the column to predict. Columns of numbers are taken as they are, and
  columns of text get one column of zeros and ones for each category. The model
  remembers names and categories. Empty cells among numbers are refused.

LIBLINEAR's options:
  -s 0, 7      --loss log                   -c C         the same
  -s 1, 2      --loss squared_hinge         -p EPSILON   the same, --loss-param
  -s 3         --loss hinge                 -e EPSILON   --tol; here the gap relative
  -s 11, 12    --loss squared_epsilon_                   to the objective
                      insensitive           -B 1         the same
  -s 13        --loss epsilon_insensitive   -B -1        --no-intercept; the default of
                                                         LIBLINEAR
  -s 4, 5, 6   not here                     -wLABEL X    -w LABEL=X
  -C           -c 0.01,0.1,1 --cv 5         -v K         the same, --cv; a model is
  -q           the same, --quiet                         trained all the same
"""

_PREDICT = """\
Write a prediction for each row of DATA to OUTPUT (default: standard output). MODEL is a
file of "sdca-rs train", of the method save of an estimator, or of LIBLINEAR.

If DATA has labels, as svmlight files have, the score goes to standard error.
"""

_PREDICT_MORE = """\
examples:
  sdca-rs predict new.svm model.json predictions.txt
  sdca-rs predict new.csv model.json --proba
"""

_CERTIFY = """\
Prove how far a model is from the best one for DATA, which should be the rows that it
was trained on. Files of LIBLINEAR do not say which C they were trained with: give it by
-c.
"""

_CERTIFY_MORE = """\
examples:
  sdca-rs certify heart.svm heart.json
  liblinear-train -s 3 -c 0.1 -B 1 heart.svm heart.model
  sdca-rs certify heart.svm heart.model -c 0.1

what it prints:
  The objective of the model, the mean loss plus |w|^2 / (2 C n) for n rows; a value
  that no model can be below, which a fit of its own proves; and the distance of the two
  in per cent of the objective. If that is small, the model is as good as any other for
  this loss and C. If it is large, the model may be bad or the bound loose: a smaller
  --tol makes the bound tighter.

  LIBLINEAR regularises its bias (-B 1): there it is the coefficient of a last column of
  ones. The certificate is about that very objective. The intercept of "sdca-rs train"
  is free, so that the two have different objectives and different best values.
"""

_INSPECT = "Say what is in a model file of sdca-rs or LIBLINEAR."


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse arguments; like argparse, exit with a message if they are wrong."""
    root, commands = _parsers()
    given = list(sys.argv[1:] if argv is None else argv)
    if given and given[0] in commands:
        # Options may be between DATA and MODEL.
        args = commands[given[0]].parse_intermixed_args(given[1:])
        args.command = given[0]
        return args
    return root.parse_args(given)


def _parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Return the parser of all commands, and those of each."""
    root = _Parser(prog="sdca-rs", description=_MAIN, epilog=_MAIN_MORE)
    root.add_argument("--version", action=_Version, nargs=0, help="print it and exit")
    commands = root.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=_Parser
    )

    train = commands.add_parser(
        "train", help="fit a model to data", description=_TRAIN, epilog=_TRAIN_MORE
    )
    train.add_argument("data", metavar="DATA", help="training rows")
    train.add_argument("model", metavar="MODEL", nargs="?", help="the file to write")
    _add_objective(train, "log", several=True)
    train.add_argument(
        "-s",
        dest="solver_type",
        type=int,
        metavar="TYPE",
        help="LIBLINEAR's number of a loss, in place of --loss: see below",
    )
    train.add_argument(
        "-B",
        dest="bias",
        type=_number,
        metavar="BIAS",
        help="as LIBLINEAR: a last column of this value, whose coefficient is "
        "regularised, in place of a free intercept; none if it is negative",
    )
    train.add_argument(
        "--no-intercept",
        dest="intercept",
        action="store_false",
        help="a model without intercept",
    )
    train.add_argument(
        "-w",
        "--class-weight",
        action="append",
        metavar="LABEL=WEIGHT",
        help="weight of the rows of a class, for each class again; or balanced",
    )
    train.add_argument(
        "--standardise",
        action="store_true",
        help="shift and scale columns of numbers; the model remembers how",
    )
    train.add_argument(
        "-v",
        "--cv",
        type=_folds,
        metavar="K",
        help="choose C by K-fold cross-validation, and train on all rows then",
    )
    _add_stop(train, 1e-4)
    train.add_argument(
        "--max-time", type=_positive, metavar="SECONDS", help="stop then"
    )
    train.add_argument(
        "--seed", type=_count, default=0, help="of the order of the rows (default: 0)"
    )
    _add_input(train)
    train.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="COLUMN",
        help="leave out a column of a table; may be given again",
    )
    train.add_argument(
        "--categorical",
        action="append",
        default=[],
        metavar="COLUMN",
        help="take a column of a table as text, such as a number that is a code",
    )

    predict = commands.add_parser(
        "predict",
        help="apply a model to rows",
        description=_PREDICT,
        epilog=_PREDICT_MORE,
    )
    predict.add_argument("data", metavar="DATA", help="rows")
    predict.add_argument("model", metavar="MODEL", help="the model")
    predict.add_argument("output", metavar="OUTPUT", nargs="?", help="file to write")
    numbers = predict.add_mutually_exclusive_group()
    numbers.add_argument(
        "--proba",
        "-b",
        action="store_true",
        help="add the probability of each class (loss log); the first line has the "
        "labels",
    )
    numbers.add_argument(
        "--scores", action="store_true", help="add signed scores in the same way"
    )
    _add_input(predict)

    certify = commands.add_parser(
        "certify",
        help="prove how far a model is from the best",
        description=_CERTIFY,
        epilog=_CERTIFY_MORE,
    )
    certify.add_argument("data", metavar="DATA", help="the rows of training")
    certify.add_argument("model", metavar="MODEL", help="the model")
    _add_objective(certify, "that of the model", several=False)
    _add_stop(certify, 1e-4)
    certify.add_argument(
        "--at-most",
        type=_positive,
        metavar="SHARE",
        help="exit with code 3 if the gap is more than this share of the objective",
    )
    _add_input(certify)

    inspect = commands.add_parser(
        "inspect", help="say what is in a model", description=_INSPECT
    )
    inspect.add_argument("model", metavar="MODEL", help="the model")
    inspect.add_argument(
        "--top",
        type=_count,
        default=10,
        metavar="N",
        help="how many of the largest coefficients to list (default: 10)",
    )
    return root, dict(commands.choices)


class _Version(argparse.Action):
    def __call__(self, *_: Any) -> None:
        # It takes some time to find out.
        import sdca_rs

        print(sdca_rs.__version__)
        sys.exit(SUCCESS)


class _Parser(argparse.ArgumentParser):
    """A parser whose help keeps the line breaks of its texts."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            **settings,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )


def _add_objective(command: Any, default: str, *, several: bool) -> None:
    command.add_argument(
        "-l",
        "--loss",
        type=_loss,
        metavar="LOSS",
        help=f"{', '.join(loss_names())} (default: {default})",
    )
    command.add_argument(
        "-c",
        "--C",
        dest="C",
        type=_grid,
        default=[1.0] if several else None,
        metavar="C",
        help="weight of the losses against the penalty"
        + (
            " (default: 1); several, with commas between them, for --cv"
            if several
            else " (default: that of the model)"
        ),
    )
    command.add_argument(
        "-p",
        "--loss-param",
        type=_number,
        metavar="NUMBER",
        help="the shape of the loss: the quantile of quantile (default: 0.5), the "
        "epsilon of epsilon_insensitive, the width of huber",
    )


def _add_stop(command: Any, tol: float) -> None:
    command.add_argument(
        "-e",
        "--tol",
        type=_positive,
        default=tol,
        metavar="TOL",
        help=f"stop when the gap is this share of the objective (default: {tol:g})",
    )
    command.add_argument(
        "--max-iter",
        type=_at_least_one,
        default=1000,
        metavar="N",
        help="stop after so many passes over the rows (default: 1000)",
    )


def _add_input(command: Any) -> None:
    command.add_argument(
        "-t",
        "--target",
        metavar="COLUMN",
        help="of a table: the column to predict, by name or by number from 1",
    )
    command.add_argument(
        "--format", choices=FORMATS, help="of the data, if the name does not say it"
    )
    command.add_argument(
        "--delimiter",
        type=_delimiter,
        metavar="CHARACTER",
        help="between the cells of a CSV file (default: the first line tells)",
    )
    command.add_argument(
        "--no-header",
        dest="header",
        action="store_false",
        help="the first line of a CSV file is a row; columns are called 1, 2, ...",
    )
    base = command.add_mutually_exclusive_group()
    base.add_argument(
        "--zero-based",
        dest="zero_based",
        action="store_const",
        const=True,
        default=None,
        help="indices of an svmlight file count from 0 (default: if there is a 0, or "
        "the model says so)",
    )
    base.add_argument(
        "--one-based",
        dest="zero_based",
        action="store_const",
        const=False,
        help="indices of an svmlight file count from 1",
    )
    command.add_argument(
        "-j",
        "--jobs",
        type=int,
        default=-1,
        metavar="N",
        help="threads; the result does not depend on it (default: one per processor)",
    )
    command.add_argument(
        "-q", "--quiet", action="store_true", help="say nothing but errors and warnings"
    )


# Types of arguments; argparse makes messages of what they raise.


def _checked(
    convert: Callable[[str], Any], accepts: Callable[[Any], bool], expected: str
) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            value = convert(text)
        except ValueError:
            value = None
        if value is None or not accepts(value):
            raise argparse.ArgumentTypeError(f"found {text!r}, expected {expected}")
        return value

    return parse


def _loss(text: str) -> str:
    if text in loss_names():
        return text
    from sdca_rs._losses import require_loss

    try:
        return require_loss(text).name
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


_number = _checked(float, math.isfinite, "a number")
_positive = _checked(float, lambda x: 0 < x < math.inf, "a number > 0")
_count = _checked(int, lambda n: 0 <= n < 2**32, "an integer from 0 to 2^32 - 1")
_at_least_one = _checked(int, lambda n: n >= 1, "an integer >= 1")
_folds = _checked(int, lambda n: n >= 2, "an integer >= 2, the number of folds")
_delimiter = _checked(
    lambda text: {"tab": "\t", "\\t": "\t"}.get(text, text),
    lambda text: len(text) == 1,
    "a single character, or tab",
)
_grid = _checked(
    lambda text: [float(part) for part in text.split(",")],
    lambda values: all(0 < value < math.inf for value in values),
    "a number > 0, or several with commas between them",
)
