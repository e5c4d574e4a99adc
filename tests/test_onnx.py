"""Models go to ONNX by skl2onnx, and predict the same in onnxruntime."""

import numpy as np
import onnxruntime
import pytest
from skl2onnx import to_onnx
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdca_rs import Sdca, losses

LABELS = [np.array(["ham", "eggs", "spam"]), np.array([-1, 3, 7])]


def run(stock, X, **options):
    """Predict by what skl2onnx makes of an estimator."""
    known = {"zipmap": False, **options} if hasattr(stock, "predict_proba") else options
    onnx = to_onnx(stock, X[:1], options=known or None)
    # Its complaint about a shape that skl2onnx declares is of no use.
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        onnx.SerializeToString(), settings, providers=["CPUExecutionProvider"]
    )
    outputs = session.run(None, {session.get_inputs()[0].name: X})
    return [np.asarray(output) for output in outputs]


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 4))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("names", LABELS, ids=["strings", "integers"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "loss", [loss.name for loss in losses() if loss.task == "classification"]
)
def test_classes_and_scores(loss, n_classes, names, dtype, X):
    y = names[np.digitize(X @ [1, 2, 0, 0], [-1, 1][: n_classes - 1])]
    model = Sdca(loss, random_state=0).fit(X, y)
    X = np.vstack([X, 30 * X]).astype(dtype)
    labels, scores = run(model.to_sklearn(), X, raw_scores=True)
    expected = model.decision_function(X)
    if n_classes == 2:
        expected = np.column_stack([-expected, expected])
    atol = 1e-3 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(scores, expected, atol=atol)
    # The scores of two classes can be as good as equal.
    first, second = np.sort(expected)[:, [-1, -2]].T
    is_clear = first - second > 2 * atol
    assert is_clear.mean() > 0.9
    assert (labels == model.predict(X))[is_clear].all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities(n_classes, X):
    y = np.digitize(X @ [1, 2, 0, 0], [-1, 1][: n_classes - 1])
    model = Sdca("log", random_state=0).fit(X, y)
    labels, probabilities = run(model.to_sklearn(), X)
    assert (labels == model.predict(X)).all()
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-12)


def test_a_pipeline(X):
    y = np.where(X @ [1, 2, 0, 0] > 0.3, "ham", "eggs")
    pipe = make_pipeline(StandardScaler(), Sdca("log", random_state=0)).fit(X, y)
    stock = make_pipeline(*pipe[:-1], pipe[-1].to_sklearn())
    labels, probabilities = run(stock, X)
    assert (labels == pipe.predict(X)).all()
    np.testing.assert_allclose(probabilities, pipe.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize(
    "loss", [loss.name for loss in losses() if loss.task == "regression"]
)
def test_targets(loss, X):
    y = np.exp(X @ [0.1, 0.2, 0.0, 0.0])
    model = Sdca(loss, random_state=0).fit(X, y)
    [predicted] = run(model.to_sklearn(), X)
    np.testing.assert_allclose(predicted.ravel(), model.predict(X), rtol=1e-10)
