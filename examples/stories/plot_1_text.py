"""
Text with many classes
======================

Short texts are sorted into some thirty classes. The texts are paragraphs of the
docstrings of scikit-learn, and the class of a paragraph is the module that it comes
from: real text that every reader of this page has on disk.
"""

# %%
# The texts
# ---------
#
# The source files are parsed, not imported. Paragraphs of fewer than eight words say
# too little, and modules with few paragraphs are left out.

import ast
import time
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from sdca_rs import SdcaClassifier

root = Path(sklearn.__file__).parent
texts, modules = [], []
for path in sorted(root.glob("*/**/*.py")):
    module = path.relative_to(root).parts[0]
    if module in ("externals", "tests") or "tests" in path.parts:
        continue
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.Module):
            for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
                if len(paragraph.split()) >= 8:
                    texts.append(paragraph)
                    modules.append(module)

size = Counter(modules)
kept = [i for i, module in enumerate(modules) if size[module] >= 60]
texts = [texts[i] for i in kept]
modules = np.array([modules[i] for i in kept])
print(f"{len(texts)} paragraphs, {len(set(modules))} classes")

# %%
# From text to numbers
# --------------------
#
# Words and pairs of words, weighted by how rare they are. The rows have norm 1, which
# is the case that coordinate ascent likes best: :math:`C = 1` is a good first choice.

train, test, y, y_test = train_test_split(
    texts, modules, test_size=0.25, random_state=0, stratify=modules
)
vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
X = vectorizer.fit_transform(train)
X_test = vectorizer.transform(test)
print(f"{X.shape[0]} rows, {X.shape[1]} columns, {X.nnz / X.shape[0]:.0f} words a row")

# %%
# Fit
# ---
#
# One model for each class against the rest, all of them on the same rows, which are not
# copied. Each of the models has its own certificate.

start = time.perf_counter()
model = SdcaClassifier("squared_hinge", C=1, random_state=0).fit(X, y)
ours = time.perf_counter() - start

start = time.perf_counter()
peer = LinearSVC(C=1, random_state=0).fit(X, y)
theirs = time.perf_counter() - start

gap = (model.duality_gap_ / model.objective_).max()
print(f"SdcaClassifier: {ours:.2f} s, accuracy {model.score(X_test, y_test):.3f}")
print(f"LinearSVC:      {theirs:.2f} s, accuracy {peer.score(X_test, y_test):.3f}")
print(f"largest relative gap of all classes: {gap:.1e}")

# %%
# What the model has learnt
# -------------------------
#
# The words with the largest coefficients of some classes.

words = vectorizer.get_feature_names_out()
for name in ("cluster", "linear_model", "metrics", "tree"):
    row = model.coef_[list(model.classes_).index(name)]
    top = ", ".join(words[row.argsort()[:-7:-1]])
    print(f"{name:13s} {top}")

# %%
# Which classes are confused
# --------------------------

predicted = model.predict(X_test)
right = {c: np.mean(predicted[y_test == c] == c) for c in model.classes_}
names = sorted(right, key=right.get)
figure, axis = plt.subplots(figsize=(7, 6), layout="constrained")
axis.barh(names, [right[c] for c in names], color="#1f6f8b")
axis.set(xlabel="share of a class that is recognised", xlim=(0, 1))
axis.tick_params(axis="y", labelsize=8)
axis.spines[["top", "right"]].set_visible(False)
plt.show()
