"""What LIBLINEAR's solver types minimise."""

from __future__ import annotations


class SolverType:
    """One of LIBLINEAR's types: its loss as ours, or why we have none."""

    def __init__(self, name: str, loss: str | None, why: str = "") -> None:
        self.name = name
        self.loss = loss
        self.why = why


_L1 = "an L1 penalty, which sdca-rs does not have"

# By the number that `-s` takes.
SOLVER_TYPES = {
    0: SolverType("L2R_LR", "log"),
    1: SolverType("L2R_L2LOSS_SVC_DUAL", "squared_hinge"),
    2: SolverType("L2R_L2LOSS_SVC", "squared_hinge"),
    3: SolverType("L2R_L1LOSS_SVC_DUAL", "hinge"),
    4: SolverType("MCSVM_CS", None, "one problem for all classes (Crammer and Singer)"),
    5: SolverType("L1R_L2LOSS_SVC", None, _L1),
    6: SolverType("L1R_LR", None, _L1),
    7: SolverType("L2R_LR_DUAL", "log"),
    11: SolverType("L2R_L2LOSS_SVR", "squared_epsilon_insensitive"),
    12: SolverType("L2R_L2LOSS_SVR_DUAL", "squared_epsilon_insensitive"),
    13: SolverType("L2R_L1LOSS_SVR_DUAL", "epsilon_insensitive"),
    21: SolverType("ONECLASS_SVM", None, "a problem without labels"),
}
