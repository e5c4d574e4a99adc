"""The command line: what it writes, prints and returns, also if used wrongly."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import StandardScaler

import sdca_rs
from sdca_rs import Sdca, certify, dump_svmlight_file
from sdca_rs._cli import _progress, main

CSV = """\
age,job,city,income,ok
31,clerk,Rome,1000,yes
45,smith,Oslo,1500,no
22,clerk,Oslo,900,yes
60,judge,Rome,5000,no
33,clerk,Oslo,1200,yes
51,smith,Rome,1900,no
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(CSV)
    return tmp_path


@pytest.fixture
def cancer() -> tuple[Any, Any]:
    X, y = load_breast_cancer(return_X_y=True)
    X = sp.csr_matrix(StandardScaler().fit_transform(X))
    dump_svmlight_file(X, y, "cancer.svm", zero_based=False)
    return X, y


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(line: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        found = main(line.split())
        out, err = capsys.readouterr()
        assert found == code, err
        return out, err

    return call


def wrong(run: Any, line: str, message: str, code: int = 1) -> None:
    out, err = run(line, code)
    assert out == ""
    assert re.search(message, err), err
    assert "Traceback" not in err


# train


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "log"},
        {"loss": "hinge", "C": 0.1, "fit_intercept": False},
        {"loss": "squared_hinge", "tol": 1e-3, "random_state": 7},
        {"loss": "smooth_hinge", "loss_param": 0.5},
        {"loss": "squared", "C": 10.0},
    ],
)
def test_a_trained_model_is_that_of_the_estimator(
    run: Any, cancer: Any, options: dict[str, Any]
) -> None:
    X, y = cancer
    words = {
        "loss": "--loss",
        "C": "-c",
        "tol": "-e",
        "random_state": "--seed",
        "loss_param": "-p",
    }
    line = " ".join(
        f"{words[name]} {value}" for name, value in options.items() if name in words
    )
    if "fit_intercept" in options:
        line += " --no-intercept"
    _, err = run(f"train cancer.svm model.json {line}")
    assert re.search("converged after .* at most .* % above the best", err)
    model = sdca_rs.load("model.json")
    expected = Sdca(**({"random_state": 0} | options)).fit(X, y)
    same_model(model, expected)
    assert model.get_params() == expected.get_params() | {"n_jobs": -1}


def same_model(model: Any, expected: Any) -> None:
    for name in ("coef_", "intercept_", "objective_", "dual_objective_", "n_iter_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(expected, name))
    np.testing.assert_array_equal(model.stop_reason_, expected.stop_reason_)
    if hasattr(expected, "classes_"):
        np.testing.assert_array_equal(model.classes_, expected.classes_)


@pytest.mark.parametrize("loss", ["log", "hinge", "squared"])
@pytest.mark.parametrize("base", [0, 1])
def test_both_ways_to_train_give_the_same_file(
    run: Any, monkeypatch: pytest.MonkeyPatch, loss: str, base: int
) -> None:
    X, y = load_iris(return_X_y=True)
    dump_svmlight_file(X, y, "iris.svm", zero_based=base == 0)
    run(f"train iris.svm plain.json --loss {loss} --max-iter 3000")
    monkeypatch.setattr(sdca_rs._cli._train, "_is_plain", lambda args: False)
    run(f"train iris.svm other.json --loss {loss} --max-iter 3000")
    plain, other = (
        json.loads(Path(f"{k}.json").read_text()) for k in ("plain", "other")
    )
    # All parameters, or those that are not defaults: the same.
    params = plain.pop("params"), other.pop("params")
    assert Sdca(**params[0]).get_params() == Sdca(**params[1]).get_params()
    assert plain == other
    assert list(plain) == list(other)
    assert ("input" in plain) == (base == 0)


def test_plain_training_does_not_import_numpy(cancer: Any) -> None:
    code = (
        "import sys; from sdca_rs._cli import main; "
        "code = main(['train', 'cancer.svm', '-q']); "
        "print(code, sorted({'numpy', 'scipy', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0 []\n", done.stderr
    assert sdca_rs.load("cancer.svm.json").classes_.tolist() == [0, 1]


def test_options_may_stand_anywhere(run: Any, cancer: Any) -> None:
    run("train -c 0.1 cancer.svm --loss hinge model.json -q")
    assert sdca_rs.load("model.json").C == 0.1


@pytest.mark.parametrize(
    ("number", "loss"),
    [
        (0, "log"),
        (1, "squared_hinge"),
        (2, "squared_hinge"),
        (3, "hinge"),
        (7, "log"),
        (11, "squared_epsilon_insensitive"),
        (12, "squared_epsilon_insensitive"),
        (13, "epsilon_insensitive"),
    ],
)
def test_solver_types_of_liblinear(
    run: Any, cancer: Any, number: int, loss: str
) -> None:
    run(f"train -s {number} cancer.svm model.json -q")
    assert sdca_rs.load("model.json").loss == loss


def test_a_bias_as_of_liblinear(run: Any, cancer: Any) -> None:
    X, y = cancer
    run("train -s 3 -c 0.2 -B 2 cancer.svm model.json")
    bias = np.full((X.shape[0], 1), 2.0)
    expected = Sdca("hinge", C=0.2, fit_intercept=False, random_state=0)
    expected.fit(sp.hstack([X, bias], format="csr"), y)
    record = json.loads(Path("model.json").read_text())
    assert record["coef"]["rows"] == expected.coef_.tolist()
    out, _ = run("predict cancer.svm model.json")
    wanted = expected.predict(sp.hstack([X, bias], format="csr"))
    assert out.split() == [str(label) for label in wanted]
    # A negative one is none.
    run("train -s 3 -B -1 cancer.svm model.json")
    assert sdca_rs.load("model.json").fit_intercept is False


def test_weights_of_classes(run: Any, cancer: Any) -> None:
    X, y = cancer
    run("train cancer.svm model.json -w 0=2 -w 1=0.5 -q")
    expected = Sdca("log", class_weight={0: 2, 1: 0.5}, random_state=0).fit(X, y)
    same_model(sdca_rs.load("model.json"), expected)
    run("train cancer.svm model.json -w balanced -q")
    assert sdca_rs.load("model.json").class_weight == "balanced"
    wrong(
        run, "train cancer.svm -w 2=1", "-w: found the label '2', expected one of 0, 1"
    )
    wrong(run, "train cancer.svm -w 1=x", "found the weight 'x'")
    wrong(run, "train cancer.svm -w 1=2 --loss squared", "no classes")


def test_cross_validation_chooses_C(run: Any, cancer: Any) -> None:
    _, err = run("train cancer.svm model.json -c 10,0.001,0.1 --cv 4 --loss hinge")
    table = re.findall(
        r"^ +([\d.]+)  (0\.\d{4}) \+- 0\.\d{4}(  \*)?$", err, re.MULTILINE
    )
    assert [row[0] for row in table] == ["0.001", "0.1", "10"]
    best = max(table, key=lambda row: row[1])
    [chosen] = [row for row in table if row[2]]
    assert chosen[1] == best[1]
    assert float(chosen[0]) == sdca_rs.load("model.json").C
    _, err = run("train cancer.svm model.json -v 3 -c 1e-7,1e-6 --loss squared")
    assert "R^2 (3 folds)" in err
    assert "try larger ones" in err
    wrong(run, "train cancer.svm -c 1,2", "2 values, expected one, or --cv")
    wrong(run, "train cancer.svm --cv 500", "--cv: found 500 folds")


def test_a_fit_that_does_not_converge(run: Any, cancer: Any) -> None:
    _, err = run("train cancer.svm model.json --loss hinge -c 1e4 --max-iter 2", code=3)
    assert "warning: the gap is more than 0.0001 of the objective" in err
    assert sdca_rs.load("model.json").stop_reason_ == "max_iter"
    # Quiet or not.
    _, err = run("train cancer.svm model.json -l hinge -c 1e4 --max-iter 2 -q", code=3)
    assert err.count("\n") == 1


def test_a_model_that_exists_stays_if_a_fit_fails(run: Any, cancer: Any) -> None:
    run("train cancer.svm model.json")
    before = Path("model.json").read_bytes()
    Path("cancer.svm").write_text("1 1:1\n0 1:x\n")
    wrong(run, "train cancer.svm model.json", r'cancer\.svm:2:5: found "x"')
    assert Path("model.json").read_bytes() == before
    assert sorted(os.listdir()) == ["cancer.svm", "model.json", "people.csv"]


# Tables.


def test_a_table_with_text(run: Any) -> None:
    _, err = run("train people.csv model.json --target ok --standardise")
    assert "6 rows, 7 columns" in err
    age = np.array([31, 45, 22, 60, 33, 51.0])
    income = np.array([1000, 1500, 900, 5000, 1200, 1900.0])
    numbers = np.column_stack([age, income])
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    job = ["clerk", "smith", "clerk", "judge", "clerk", "smith"]
    city = ["Rome", "Oslo", "Oslo", "Rome", "Oslo", "Rome"]
    one_hot = np.hstack(
        [np.array(column)[:, None] == sorted(set(column)) for column in (job, city)]
    )
    X = sp.csr_matrix(np.hstack([numbers, one_hot]))
    y = np.array(["yes", "no"] * 3)
    expected = Sdca("log", random_state=0).fit(X, y)
    record = json.loads(Path("model.json").read_text())
    assert record["coef"]["rows"] == expected.coef_.tolist()
    assert record["feature_names_in"] == [
        *("age", "income"),
        *("job=clerk", "job=judge", "job=smith", "city=Oslo", "city=Rome"),
    ]
    out, err = run("predict people.csv model.json --proba")
    rows = [line.split() for line in out.splitlines()]
    assert rows[0] == ["labels", "no", "yes"]
    assert [row[0] for row in rows[1:]] == y.tolist()
    np.testing.assert_array_equal(
        np.array([row[1:] for row in rows[1:]], dtype=float), expected.predict_proba(X)
    )
    assert "accuracy 100.00 % (6 of 6 rows)" in err
    proof = certify(expected, X, y)
    out, _ = run("certify people.csv model.json")
    assert f"objective {proof.objective:.9g}, no model is below" in out
    out, _ = run("inspect model.json")
    assert "job: clerk, judge, smith (3)" in out
    assert "standardised" in out


def test_other_columns_and_categories_at_prediction(run: Any) -> None:
    run("train people.csv model.json --target ok --drop city")
    Path("new.csv").write_text(
        "note;job;income;age\nn/a;pope;1000;31\n7;clerk;900;22\n8;9;900;22\n"
    )
    out, err = run("predict new.csv model.json")
    assert len(out.split()) == 3
    assert "'job': 2 rows with a category that the training data did not have" in err
    assert "accuracy" not in err
    Path("new.csv").write_text("age,job\n1,clerk\n")
    wrong(
        run, "predict new.csv model.json", "no column income, expected those of train"
    )
    Path("new.csv").write_text("age,income,job\n1,x,clerk\n")
    wrong(
        run, "predict new.csv model.json", r"new.csv:2: column 'income': found 'x'|text"
    )


def test_targets_that_are_numbers(run: Any) -> None:
    run("train people.csv model.json -t income --loss squared --drop ok --drop job")
    out, err = run("predict people.csv model.json")
    model = json.loads(Path("model.json").read_text())
    assert model["input"]["target"] == "income"
    assert len([float(line) for line in out.split()]) == 6
    assert re.search(r"R\^2 -?\d", err)
    # By number, from 1.
    run("train people.csv other.json -t 4 --loss squared --drop ok --drop job")
    assert Path("other.json").read_bytes() == Path("model.json").read_bytes()


@pytest.mark.parametrize("library", ["pyarrow", "polars", "pandas"])
def test_parquet(run: Any, library: str) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.read_csv("people.csv")
    frame.write_parquet("people.parquet")
    if library == "polars":
        run("train people.csv csv.json -t ok")
        run("train people.parquet parquet.json -t ok")
        assert Path("csv.json").read_bytes() == Path("parquet.json").read_bytes()
    else:
        pytest.importorskip(library)
        from sdca_rs._cli import _read

        try:
            columns = getattr(_read, f"_with_{library}")("people.parquet")
        except ImportError:
            pytest.skip("pandas has no engine here")
        assert [name for name, _ in columns] == frame.columns
        for name, values in columns:
            assert values.tolist() == frame[name].to_list()


def test_parquet_without_a_library(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("x.parquet").write_bytes(b"PAR1")
    for name in ("pyarrow", "polars", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)
    wrong(run, "train x.parquet -t y", "no library that reads Parquet.*pip install")


def test_parquet_with_gaps(run: Any) -> None:
    polars = pytest.importorskip("polars")
    polars.DataFrame({"a": [1.0, None, 2.0], "y": [1, 0, 1]}).write_parquet("x.parquet")
    wrong(
        run, "train x.parquet -t y", "column 'a': found n.* in row 2, expected a number"
    )
    Path("x.parquet").write_text("no parquet")
    wrong(run, "train x.parquet -t y", "x.parquet: found no Parquet")


def test_npz(run: Any, cancer: Any) -> None:
    X, y = cancer
    np.savez("dense.npz", X=X.toarray(), y=y)
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    np.savez("sparse.npz", **parts, shape=X.shape, format=b"csr", y=y)
    run("train cancer.svm svm.json -q")
    expected = sdca_rs.load("svm.json")
    for name in ("dense", "sparse"):
        run(f"train {name}.npz {name}.json -q")
        model = sdca_rs.load(f"{name}.json")
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-2, atol=1e-3)
    sp.save_npz("rows.npz", X.tocsc())
    out, err = run("predict rows.npz sparse.json")
    assert out == run("predict cancer.svm sparse.json")[0]
    assert err == ""
    wrong(run, "train rows.npz", "rows.npz: found no array y")
    np.savez("bad.npz", a=[1])
    wrong(run, "train bad.npz", "found the arrays a, expected X and y")
    np.savez("bad.npz", X=np.array([{}], dtype=object), y=[1])
    wrong(run, "train bad.npz", "bad.npz: found no arrays that can be read")
    np.savez("bad.npz", **(parts | {"indices": X.indices + 99}), shape=X.shape, y=y)
    wrong(run, "train bad.npz", "bad.npz: found no sparse matrix")


def test_standardise_sparse_rows(run: Any) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X[:, 3] = 0.0
    dump_svmlight_file(X, y, "raw.svm", zero_based=False)
    run("train raw.svm model.json --standardise")
    scaled = StandardScaler(with_mean=False).fit_transform(sp.csr_matrix(X))
    expected = Sdca("log", random_state=0).fit(scaled, y)
    record = json.loads(Path("model.json").read_text())
    np.testing.assert_allclose(
        record["certificate"]["objective"], expected.objective_, rtol=1e-4
    )
    out, _ = run("predict raw.svm model.json")
    wanted = expected.predict(scaled).astype(str)
    assert np.mean(np.array(out.split()) == wanted) > 0.99


# predict


def test_predictions_are_those_of_the_estimator(run: Any, cancer: Any) -> None:
    X, y = cancer
    run("train cancer.svm model.json")
    model = sdca_rs.load("model.json")
    out, err = run("predict cancer.svm model.json labels.txt")
    assert out == ""
    assert (
        Path("labels.txt").read_text().split() == model.predict(X).astype(str).tolist()
    )
    right = int((model.predict(X) == y).sum())
    assert f"({right} of {len(y)} rows)" in err
    out, _ = run("predict cancer.svm model.json --scores -q")
    lines = out.splitlines()
    assert lines[0] == "labels 1"
    scores = [float(line.split()[1]) for line in lines[1:]]
    np.testing.assert_array_equal(scores, model.decision_function(X))


def test_several_classes(run: Any) -> None:
    X, y = load_iris(return_X_y=True)
    dump_svmlight_file(X, y, "iris.svm", zero_based=False)
    _, err = run("train iris.svm model.json")
    assert "0 (50 rows), 1 (50 rows), 2 (50 rows)" in err
    assert "worst of 3 classes" in err
    model = sdca_rs.load("model.json")
    out, _ = run("predict iris.svm model.json --proba")
    lines = out.splitlines()
    assert lines[0] == "labels 0 1 2"
    table = np.array([line.split() for line in lines[1:]], dtype=float)
    rows = sp.csr_matrix(X)
    np.testing.assert_array_equal(table[:, 0], model.predict(rows))
    np.testing.assert_array_equal(table[:, 1:], model.predict_proba(rows))
    out, _ = run("certify iris.svm model.json")
    assert re.search("^class 2: objective .* above the best$", out, re.MULTILINE)


def test_columns_that_training_did_not_have(run: Any, cancer: Any) -> None:
    run("train cancer.svm model.json -q")
    Path("new.svm").write_text("0 1:1 900:5\n0 1:1\n0 30:0\n")
    out, err = run("predict new.svm model.json")
    assert len(set(out.split()[:2])) == 1
    assert "left out 870 columns" in err
    # What a model counts from is not guessed anew for each file.
    Path("new.svm").write_text("0 0:1\n")
    wrong(run, "predict new.svm model.json", "expected indices from 1")
    Path("zero.svm").write_text("1 0:1 3:-1\n-1 1:2\n")
    run("train zero.svm zero.json -q")
    Path("new.svm").write_text("1 3:-1\n")
    out, _ = run("predict new.svm zero.json --scores")
    record = json.loads(Path("zero.json").read_text())
    coef = np.zeros(4)
    [row] = record["coef"]["rows"]
    coef[:] = row if record["coef"]["storage"] == "dense" else 0
    if record["coef"]["storage"] == "sparse":
        coef[row["columns"]] = row["values"]
    score = float(out.split()[-1])
    assert score == pytest.approx(-coef[3] + record["intercept"][0])


def test_predictions_through_pipes(cancer: Any) -> None:
    command = [sys.executable, "-m", "sdca_rs"]
    text = Path("cancer.svm").read_bytes()
    subprocess.run([*command, "train", "-", "m.json", "-q"], input=text, check=True)
    done = subprocess.run(
        [*command, "predict", "-", "m.json"],
        input=text,
        capture_output=True,
        check=True,
    )
    assert len(done.stdout.split()) == 569
    assert b"accuracy" in done.stderr
    # A reader that has had enough, as head has.
    process = subprocess.Popen(
        f"{sys.executable} -m sdca_rs predict cancer.svm m.json --proba | head -n 1",
        shell=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = process.communicate()
    assert out == b"labels 0 1\n"
    assert b"Traceback" not in err
    assert b"Broken" not in err


# certify, with LIBLINEAR's files


def liblinear_file(kind: str, labels: str, bias: float, coef: Any) -> None:
    rows = "".join(" ".join(f"{value:.17g}" for value in row) + " \n" for row in coef)
    n_features = len(coef) - (bias >= 0)
    label = f"label {labels}\n" if labels else ""
    Path("model").write_text(
        f"solver_type {kind}\nnr_class {max(2, len(labels.split()))}\n{label}"
        f"nr_feature {n_features}\nbias {bias:g}\nw\n{rows}"
    )


@pytest.mark.parametrize("labels", ["1 0", "0 1"])
@pytest.mark.parametrize("bias", [-1.0, 1.0, 2.0])
def test_a_model_of_liblinear(run: Any, cancer: Any, labels: str, bias: float) -> None:
    X, y = cancer
    if bias >= 0:
        X = sp.hstack([X, np.full((X.shape[0], 1), bias)], format="csr")
    model = Sdca("hinge", C=0.1, fit_intercept=False, tol=1e-6, random_state=0).fit(
        X, y
    )
    sign = 1.0 if labels == "1 0" else -1.0
    liblinear_file("L2R_L1LOSS_SVC_DUAL", labels, bias, sign * model.coef_.T)
    out, _ = run("predict cancer.svm model")
    assert out.split() == model.predict(X).astype(str).tolist()
    out, _ = run("certify cancer.svm model -c 0.1 -e 1e-6")
    found = re.search(r"objective (\S+), no model is below (\S+): at most (\S+) %", out)
    assert found is not None
    assert float(found[1]) == pytest.approx(model.objective_, rel=1e-8)
    assert float(found[2]) == pytest.approx(model.objective_, rel=1e-5)
    assert float(found[3]) < 1e-3
    assert "whose coefficient is regularised" in out
    wrong(run, "certify cancer.svm model", "-c: found none, expected the C that model")
    run("certify cancer.svm model -c 10 --at-most 1e-9", code=3)
    out, _ = run("inspect model")
    assert "L2R_L1LOSS_SVC_DUAL" in out


def test_several_classes_of_liblinear(run: Any) -> None:
    X, y = load_iris(return_X_y=True)
    dump_svmlight_file(X, y, "iris.svm", zero_based=False)
    model = Sdca("log", fit_intercept=False, random_state=0).fit(X, y)
    liblinear_file("L2R_LR", "2 0 1", -1, model.coef_[[2, 0, 1]].T)
    out, _ = run("predict iris.svm model -b")
    table = np.array([line.split() for line in out.splitlines()[1:]], dtype=float)
    np.testing.assert_array_equal(table[:, 0], model.predict(X))
    np.testing.assert_allclose(table[:, 1:], model.predict_proba(X))
    out, _ = run("certify iris.svm model -c 1")
    gaps = [float(share) for share in re.findall(r"at most (\S+) %", out)]
    assert len(gaps) == 3
    assert max(gaps) < 0.02


def test_regression_of_liblinear(run: Any) -> None:
    X, y = load_diabetes(return_X_y=True)
    dump_svmlight_file(X, y, "diabetes.svm", zero_based=False)
    settings = {"loss_param": 0.1, "C": 5.0, "fit_intercept": False, "random_state": 0}
    model = Sdca("epsilon_insensitive", **settings).fit(X, y)
    liblinear_file("L2R_L1LOSS_SVR_DUAL", "", -1, model.coef_[:, None])
    out, _ = run("predict diabetes.svm model")
    np.testing.assert_allclose([float(v) for v in out.split()], model.predict(X))
    out, _ = run("certify diabetes.svm model -c 5")
    assert f"objective {model.objective_:.9g}" in out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("L2R_LR", "L9", r"model:1: found 'L9', expected one of"),
        ("L2R_LR", "ONECLASS_SVM", "model:1: found ONECLASS_SVM"),
        ("nr_class 2", "nr_class x", "model:2: found 'x', expected a number, nr_class"),
        ("label 1 0", "label 1 1", "model:3: found the labels"),
        (
            "nr_feature 30",
            "nr_feature 31",
            "found 30 rows of coefficients, expected 31",
        ),
        ("bias -1", "bias", "found no bias with one value"),
        (
            "bias -1",
            "color blue",
            "model:5: found 'color blue', expected a header line",
        ),
        ("w\n", "", "header line"),
        ("0.5 \n", "0.5 0.5\n", "model:7: found 2 numbers, expected 1"),
        ("0.5 \n", "half\n", "model:7: found 'half', expected numbers"),
        ("0.5 \n", "nan\n", "expected 1 finite coefficients"),
    ],
)
def test_damaged_models_of_liblinear(
    run: Any, cancer: Any, old: str, new: str, message: str
) -> None:
    liblinear_file("L2R_LR", "1 0", -1, np.full((30, 1), 0.5))
    text = Path("model").read_text()
    assert old in text
    Path("model").write_text(text.replace(old, new, 1))
    wrong(run, "predict cancer.svm model", message)


def test_what_has_no_certificate(run: Any, cancer: Any) -> None:
    liblinear_file("L1R_LR", "1 0", -1, np.full((30, 1), 0.5))
    wrong(run, "certify cancer.svm model -c 1", "L1R_LR, which minimises an L1 penalty")
    # But predictions.
    assert len(run("predict cancer.svm model")[0].split()) == 569


# Wrong usage, wrong files.


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "required: COMMAND"),
        ("fit x", "invalid choice: 'fit'"),
        ("train", "required: DATA"),
        ("train a b c", "unrecognized arguments: c"),
        ("train a --loss hinged", "loss: found 'hinged'"),
        ("train a -c 0", "found '0', expected a number > 0"),
        ("train a -c 1,x", "found '1,x', expected a number > 0, or several"),
        ("train a --cv 1", "found '1', expected an integer >= 2"),
        ("train a --tol -1", "expected one argument|found '-1'"),
        ("predict a b --proba --scores", "not allowed with"),
        ("train a --zero-based --one-based", "not allowed with"),
    ],
)
def test_wrong_usage(run: Any, line: str, message: str) -> None:
    wrong(run, line, message, code=2)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train none.svm", "none.svm: found no such file"),
        ("train people.csv", "--target: found none, .*age, job, city, income, ok"),
        ("train people.csv -t nope", "--target: found 'nope', expected a column"),
        (
            "train people.csv -t ok --drop nope",
            "--drop: found 'nope', expected a column",
        ),
        (
            "train people.csv -t ok --loss squared",
            "found the target 'yes', expected num",
        ),
        (
            "train people.csv -t income",
            "found 6 different numbers as targets, expected c",
        ),
        (
            "train people.csv -t ok --no-header",
            "people.csv:1: column '1': found 'age' among numbers",
        ),
        ("train people.csv -t ok --delimiter ;", "'ok', expected a column"),
        ("train people.csv -t ok --format svmlight", 'people.csv:1:1: found "age,job'),
        ("train people.csv nowhere/model.json -t ok", "no folder .*nowhere"),
        (
            "train people.csv -t ok -s 4",
            "-s: found 4 .MCSVM_CS., expected a type that is",
        ),
        ("train people.csv -t ok -s 99", "-s: found 99, expected one of 0, 1"),
        ("train people.csv -t ok -s 3 -l log", "found together with --loss"),
        ("predict people.csv none.json", "none.json: No such file.*expected a model"),
        ("predict people.csv people.csv", "people.csv: found no JSON"),
        ("inspect people.csv", "people.csv: found no JSON"),
        ("train - ", "MODEL: found none, expected a name"),
    ],
)
def test_what_cannot_be_done(run: Any, line: str, message: str) -> None:
    wrong(run, line, message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no text"),
        ("a,b\n", "no rows"),
        ("1,2\n3,4\n", "numbers in the first line, .*--no-header"),
        ("a,a\n1,2\n", "the column name 'a' twice"),
        ("a,b\n1,2\n1\n", "bad.csv:3: found 1 cells, expected 2"),
        (
            "a,b\n1,2\n,1\n",
            "bad.csv:3: column 'a': found an empty cell, expected a num",
        ),
        ("a,b\n1,0\n?,1\n3,0\n", "bad.csv:3: column 'a': found '.' among numbers"),
        ("a,b\n1,0\nnan,1\n", "bad.csv:3: column 'a': found 'nan', expected a number"),
        ('a,b\n"1,2\n', "bad.csv:.* found no CSV"),
        ("a,b\n1,1\n2,1\n", "one class|at least two classes"),
        ("b\n1\n0\n", "no column besides the target"),
    ],
)
def test_tables_that_cannot_be_used(run: Any, text: str, message: str) -> None:
    Path("bad.csv").write_text(text)
    wrong(run, "train bad.csv -t b", message)


def test_text_after_many_numbers(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sdca_rs._cli._read._BLOCK", 3)
    Path("late.csv").write_text("a,b\n" + "1,0\n2,1\n" * 4 + "x,1\n")
    wrong(
        run, "train late.csv -t b", "late.csv:10: column 'a': found 'x', expected a num"
    )
    run("train late.csv -t b --categorical a -q")
    names = json.loads(Path("late.csv.json").read_text())["feature_names_in"]
    assert names == ["a=1", "a=2", "a=x"]


def test_names_of_rows_are_no_categories(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sdca_rs._cli._prepare._MANY", 4)
    rows = "".join(f"name{i},{i % 2}\n" for i in range(9))
    Path("names.csv").write_text(f"who,b\n{rows}")
    wrong(run, "train names.csv -t b", "9 different texts in 9 rows.*--drop who")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"target": "ok"', '"target": 3', "input.target: found 3"),
        ('"bias": null', '"bias": "x"', "input.bias: found 'x'"),
        ('"zero_based"', '"zero"', "input: found"),
        ('"name": "age"', '"name": 3', "input.columns: found"),
        ('"mean": null', '"mean": ["x"]', "input.mean: found no numbers"),
        ('"n_features_in": 7', '"n_features_in": 6', "model.json: "),
    ],
)
def test_damaged_models(run: Any, old: str, new: str, message: str) -> None:
    run("train people.csv model.json -t ok -q")
    text = Path("model.json").read_text()
    assert old in text
    Path("model.json").write_text(text.replace(old, new, 1))
    wrong(run, "predict people.csv model.json", message)


def test_models_for_python(run: Any) -> None:
    run("train people.csv model.json -t ok --drop job --drop city -q")
    model = sdca_rs.load("model.json")
    assert model.feature_names_in_.tolist() == ["age", "income"]
    assert model.classes_.tolist() == ["no", "yes"]
    for options in ("--standardise --drop job --drop city", "", "-B 1 --drop job"):
        run(f"train people.csv model.json -t ok {options} -q")
        with pytest.raises(ValueError, match="input: found rows to be prep"):
            sdca_rs.load("model.json")


# Help, progress and interrupts.


@pytest.mark.parametrize("command", ["train", "predict", "certify", "inspect"])
def test_help_fits_a_terminal(run: Any, command: str) -> None:
    out, _ = run(f"{command} --help")
    assert max(map(len, out.splitlines())) <= 88
    assert f"usage: sdca-rs {command}" in out


def test_the_help_teaches(run: Any) -> None:
    out, _ = run("--help")
    assert "exit codes" in out
    out, _ = run("train --help")
    for word in ("which loss?", "which C?", "certificate says", "LIBLINEAR's options"):
        assert word in out
    assert run("--version")[0].strip() == sdca_rs.__version__


DOCS = Path(__file__).parents[1] / "docs" / "cli.md"

# These may differ in their last digits from one processor to another.
VAGUE = re.compile(r"at most \S+ %|after \d+ epochs")


def printed(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command, by a shell if it needs one."""
    words = shlex.split(line)
    if words[0] == "sdca-rs" and "|" not in words:
        capsys.readouterr()
        main(words[1:])
        out, err = capsys.readouterr()
        return out + err
    done = subprocess.run(line, shell=True, text=True, capture_output=True, check=False)
    return done.stdout + done.stderr


def test_the_page_shows_what_commands_print(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = DOCS.read_text(encoding="utf-8")
    # The command, as it is installed.
    command = folder / "bin" / "sdca-rs"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sdca_rs "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(command.parent), prepend=os.pathsep)
    n_commands = 0
    for language, block in re.findall(
        r"^```(python|console)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE
    ):
        if language == "python":
            exec(compile(block, str(DOCS), "exec"), {})
            continue
        for entry in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, expected = entry.partition("\n")
            if line.startswith("cat "):
                # A file that the page shows.
                Path(line.removeprefix("cat ")).write_text(expected)
                continue
            assert_shown(printed(line, capsys), expected, line)
            n_commands += 1
    assert n_commands >= 8


def assert_shown(found: str, expected: str, line: str) -> None:
    found, expected = (VAGUE.sub("#", text) for text in (found, expected))
    pattern = ".*?".join(map(re.escape, expected.split("...")))
    assert re.fullmatch(pattern, found, re.DOTALL), f"{line}:\n{found}"


def test_examples_of_the_help_run(run: Any, cancer: Any) -> None:
    os.rename("cancer.svm", "heart.svm")
    out, _ = run("--help")
    lines = re.findall(
        r"^  sdca-rs ((?:train|certify|inspect) heart\S+.*?)(?:   |$)", out, re.M
    )
    assert len(lines) == 3
    for line in lines:
        run(line.strip())


def test_time_left() -> None:
    points = [(float(t), 10.0 ** (-t)) for t in range(1, 5)]
    assert _progress.time_left(points, 1e-6) == pytest.approx(2.0)
    assert _progress.time_left(points[:1], 1e-6) is None
    # A gap that does not fall.
    assert _progress.time_left([(1.0, 0.1), (2.0, 0.1)], 1e-6) is None
    assert [_progress.duration(s) for s in (0.1, 89, 600, 9000)] == [
        *("1 s", "89 s", "10 min", "2 h"),
    ]


def test_progress_is_shown(
    run: Any, cancer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_progress, "_LOG", 0.0)
    monkeypatch.setattr("sdca_rs._cli._train._SECONDS", 0.0)
    _, err = run("train cancer.svm model.json -l hinge -c 100")
    assert re.search(
        r"^epoch \d+, gap \S+ of the objective \(tol 0\.0001\), \d+ s", err
    )
    assert "left" in err
    assert "epoch" not in run("train cancer.svm model.json -q")[1]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("options", ["", "--cv 2"])
def test_interrupts(
    run: Any, cancer: Any, monkeypatch: pytest.MonkeyPatch, times: int, options: str
) -> None:
    show = _progress.Watch.__call__

    def interrupted(watch: _progress.Watch, progress: Any) -> bool:
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        return show(watch, progress)

    monkeypatch.setattr(_progress.Watch, "__call__", interrupted)
    monkeypatch.setattr("sdca_rs._cli._train._SECONDS", 0.0)
    line = f"train cancer.svm model.json -l hinge -c 1e4 -e 1e-9 {options}"
    if times == 1:
        # The first one ends the fit.
        _, err = run(line, code=3)
        assert "interrupted: the model so far will be saved" in err
        assert sdca_rs.load("model.json").stop_reason_ == "callback"
    else:
        _, err = run(line, code=130)
        assert not Path("model.json").exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# The package.


def test_every_public_name_is_there() -> None:
    for name in sdca_rs.__all__:
        assert getattr(sdca_rs, name) is not None
        assert name in dir(sdca_rs)
    with pytest.raises(AttributeError, match="no attribute 'Sdcaa'"):
        _ = sdca_rs.Sdcaa
    # What type checkers are told is what there is.
    tree = ast.parse(Path(sdca_rs.__file__).read_text())
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    told = {
        alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module != "typing"
        for alias in node.names
    }
    assert told == set(sdca_rs.__all__)
