"""A scikit-learn classifier with intervals: the logistic fit of this project behind the interface people know."""

import secrets
import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surepick import validate
from surepick._arrays import Floats
from surepick.baselines import interval_wald
from surepick.confidence import Intervals, in_given_order, interval_anytime, interval_corrected
from surepick.confidence.result import Data
from surepick.errors import InvalidInput, MissingExtra
from surepick.glm import Fit, FitStatus, Tally, fit, probability_of_yes
from surepick.linalg import norms

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise MissingExtra(
        "surepick.sklearn needs scikit-learn, which is not installed; run: pip install 'surepick[sklearn]'."
    ) from error

Method = Literal["auto", "corrected", "anytime", "wald"]
Scale = Literal["probability", "log-odds"]

LARGEST_SEPARATED_LOGIT = 10.0
"""Where a direction separates the classes, ‖θ‖ is capped at this over the longest row, so that no row of the data is
given log-odds beyond it (a probability beyond 0.99995). The cap is a choice, not an estimate; hence the warning."""


class LogisticModel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Logistic regression by maximum likelihood, with confidence intervals for every prediction.

    Sample weights are repeat counts: a row of weight 3 is three equal answers. The intercept is one more coordinate of
    θ, of a feature that is always one: `ridge` penalises it like the others, and `norm_bound` includes it.

    Parameters
    ----------
    fit_intercept : bool
        Whether to add a constant feature.
    ridge : float
        Adds (ridge/2)·‖θ‖² to the negative log-likelihood. It shifts predictions only: no theorem here covers
        penalised estimates, so intervals are always those of the answers themselves.
    norm_bound : float or None
        A length that the true θ is known not to exceed. Predictions come from the likeliest θ within it, and the
        corrected theorem uses it; without it that theorem spends a fifth of delta on bounding θ.
    data : "adaptive" or "fixed"
        Whether the rows may have been chosen in view of earlier answers (then they must come in the order in which they
        were answered), or not.

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_, n_features_in_, feature_names_in_
        As for scikit-learn's binary classifiers.
    fit_ : surepick.Fit
        The fit with its status and optimality gap.
    answers_ : surepick.Tally
        The rows (with the constant feature last), their weights, and those of the class `classes_[1]`;
        `surepick.confidence` turns them into intervals with all conditions and details.

    >>> model = LogisticModel(fit_intercept=False).fit([[1.0]] * 4, ["yes", "yes", "no", "yes"])
    >>> model.predict_proba([[1.0]]).round(3).tolist()
    [[0.25, 0.75]]
    """

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        ridge: float = 0.0,
        norm_bound: float | None = None,
        data: Data = "adaptive",
    ) -> None:
        self.fit_intercept = fit_intercept
        self.ridge = ridge
        self.norm_bound = norm_bound
        self.data = data

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "LogisticModel":
        """Fit to one answer per row, or to `sample_weight` equal answers per row.

        Warns where a direction separates the classes and neither ridge nor norm_bound is given: the likelihood then has
        no maximum, predictions come from a capped fit (LARGEST_SEPARATED_LOGIT) and intervals are infinite.
        """
        validate.one_of("data", self.data, ("adaptive", "fixed"))
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        tally, classes = _counted(self._design(rows), labels, sample_weight)
        result = fit(tally, ridge=self.ridge, norm_bound=self.norm_bound)
        theta = result.theta
        if not result.converged:
            warnings.warn(result.status.sentence, ConvergenceWarning, stacklevel=2)
        if result.status is FitStatus.SEPARATED:
            longest = float(norms(tally.asked().vectors).max())
            theta = fit(tally, norm_bound=LARGEST_SEPARATED_LOGIT / longest).theta
        self.classes_ = classes
        self.fit_ = result
        self.answers_ = tally
        # Drawn once: all intervals of one model are of one random order of its answers.
        self.order_seed_ = secrets.randbits(32)
        self.coef_ = theta[None, : rows.shape[1]]
        self.intercept_ = theta[rows.shape[1] :] if self.fit_intercept else np.zeros(1)
        self.n_iter_ = result.iterations
        return self

    def decision_function(self, X: ArrayLike) -> Floats:
        """Log-odds of `classes_[1]`, one per row."""
        rows = self._checked_rows(X)
        return np.asarray(rows @ self.coef_[0] + self.intercept_[0])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The likelier class of every row."""
        second = self.decision_function(X) > 0
        return np.asarray(self.classes_[second.astype(np.intp)])

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probabilities of both classes, in the order of `classes_`."""
        logits = self.decision_function(X)
        return np.column_stack([probability_of_yes(-logits), probability_of_yes(logits)])

    def predict_interval(
        self, X: ArrayLike, *, delta: float = 0.05, method: Method = "auto", scale: Scale = "probability"
    ) -> tuple[Floats, Floats]:
        """Lower and upper ends of an interval for `classes_[1]` at every row, all at once with probability 1 − delta.

        method="auto" takes the proved one for the data: "anytime" where they may be adaptive, "corrected" where they
        are fixed. "wald" is the customary one, asymptotic and for each row by itself. Where nothing finite is proved
        the interval is infinite ((0, 1) as probabilities) and a warning says why; "auto" gives such intervals
        throughout where no estimate exists, "anytime" asked for by name may still bound one end.
        """
        validate.one_of("method", method, ("auto", "corrected", "anytime", "wald"))
        validate.one_of("scale", scale, ("probability", "log-odds"))
        if method == "corrected" and self.data == "adaptive":
            raise InvalidInput(
                "method 'corrected' needs rows that did not depend on the answers, got data='adaptive'; "
                "use method='anytime', or LogisticModel(data='fixed') if that is so."
            )
        points = self._design(self._checked_rows(X))
        if method == "auto":
            exists = self._unpenalised().status is not FitStatus.SEPARATED
            method = "anytime" if self.data == "adaptive" and exists else "corrected"
        result = self._intervals(points, delta, method)
        if result.reason:
            warnings.warn(result.reason, stacklevel=2)
        if scale == "log-odds":
            return result.low, result.high
        return probability_of_yes(result.low), probability_of_yes(result.high)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _intervals(self, points: Floats, delta: float, method: Method) -> Intervals:
        if method == "anytime":
            fixed = self.data == "fixed"
            answers = self.answers_ if fixed else in_given_order(self.answers_.asked())
            return interval_anytime(answers, points, delta=delta, data=self.data, order_seed=self.order_seed_)
        plain = self._unpenalised()
        if method == "wald":
            return interval_wald(self.answers_, points, delta=delta, fitted=plain)
        return interval_corrected(
            self.answers_,
            points,
            delta=delta,
            data="fixed",
            norm_bound=self.norm_bound,
            order_seed=self.order_seed_,
            fitted=plain,
        )

    def _unpenalised(self) -> Fit:
        return self.fit_ if self.ridge == 0 and self.norm_bound is None else fit(self.answers_)

    def _checked_rows(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64))

    def _design(self, rows: Floats) -> Floats:
        return np.column_stack([rows, np.ones(len(rows))]) if self.fit_intercept else rows


def _counted(rows: Floats, labels: NDArray[Any], sample_weight: ArrayLike | None) -> tuple[Tally, NDArray[Any]]:
    """Rows and labels as counts of the second class, and the two classes."""
    check_classification_targets(labels)
    kind = type_of_target(labels, input_name="y")
    if kind != "binary":
        raise InvalidInput(
            f"Only binary classification is supported. The type of the target is {kind}, with "
            f"{len(np.unique(labels))} classes; fit one model per pair of classes, or sklearn's OneVsRestClassifier."
        )
    if sample_weight is None:
        weights = np.ones(len(labels), dtype=np.int64)
    else:
        weights = validate.counts("sample_weight", sample_weight, length=len(labels))
    if not weights.any():
        raise InvalidInput("Every sample_weight is zero, so there are no answers to fit; give some rows a weight.")
    classes = np.unique(labels[weights > 0])
    if len(classes) == 1:
        raise InvalidInput(
            f"y must hold two classes, got one class ({classes[0]!s}) in all rows of positive sample_weight; "
            "a model needs answers of both kinds."
        )
    return Tally(rows, weights, np.where(labels == classes[1], weights, 0)), classes
