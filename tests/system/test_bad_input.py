"""Whatever comes in: one clear sentence or a number that is right, never a crash, a warning or a silent surprise."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from surepick import InvalidInput, SurepickError, Tally, fit
from surepick.baselines import interval_faury, interval_li, interval_printed, interval_wald
from surepick.confidence import ConfidenceSet, interval_anytime, interval_corrected

GOOD = Tally([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [40, 50, 60], [10, 30, 40])
QUERY = [[1.0, -1.0]]

INTERVALS = {
    "corrected": lambda answers, queries, **o: interval_corrected(answers, queries, **{"data": "fixed", **o}),
    "corrected, norm": lambda answers, queries, **o: interval_corrected(
        answers, queries, **{"data": "fixed", "norm_bound": 1.0, **o}
    ),
    "ellipsoid": lambda answers, queries, **o: interval_corrected(
        answers, queries, **{"data": "fixed", "form": "ellipsoid", "kappa": 0.1, **o}
    ),
    "printed": lambda answers, queries, **o: interval_printed(answers, queries, **{"data": "fixed", **o}),
    "printed, norm": lambda answers, queries, **o: interval_printed(
        answers, queries, **{"data": "fixed", "norm_bound": 1.0, "form": "known", **o}
    ),
    "wald": lambda answers, queries, **o: interval_wald(answers, queries, **o),
    "li": lambda answers, queries, **o: interval_li(answers, queries, **{"data": "fixed", "norm_bound": 1.0, **o}),
    "faury": lambda answers, queries, **o: interval_faury(answers, queries, **{"norm_bound": 1.0, **o}),
    "anytime": lambda answers, queries, **o: interval_anytime(answers, queries, **{"data": "fixed", **o}),
}


def sentence(call, *parts: str) -> None:
    """The call is refused by one sentence that shows what was received."""
    with pytest.raises(InvalidInput) as caught:
        call()
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    for part in parts:
        assert part in message


@pytest.mark.parametrize("method", INTERVALS)
class TestEveryMethod:
    @pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 1.5, math.nan, math.inf, "0.05", None, True, [0.05]])
    def test_refuses_a_delta_that_is_no_probability(self, method, delta):
        sentence(lambda: INTERVALS[method](GOOD, QUERY, delta=delta), "delta", repr(delta))

    @pytest.mark.parametrize(
        ("queries", "part"),
        [
            ([1.0, 2.0], "[vector]"),
            ([[1.0]], "2 columns"),
            ([[1.0, 2.0, 3.0]], "2 columns"),
            ([[1.0, math.nan]], "nan"),
            ([[math.inf, 1.0]], "inf"),
            (np.zeros((0, 2)), "empty"),
            ([[1.0, 2.0], [3.0]], "numbers only"),
            ([["1", "2"]], "numbers only"),
            (None, "None"),
            ([[1e200, 0.0]], "1e+200"),
            ([[1e-200, 0.0]], "1e-200"),
        ],
    )
    def test_refuses_queries_it_cannot_use(self, method, queries, part):
        sentence(lambda: INTERVALS[method](GOOD, queries), "queries", part)

    @pytest.mark.parametrize(
        "answers",
        [
            None,
            3,
            "answers",
            [],
            [GOOD, None],
            [[1.0, 0.0]],
            np.eye(2),
            [GOOD, Tally([[1.0]], [1], [1])],
            Tally(np.zeros((0, 2)), [], []),
            Tally([[1.0, 0.0]], [0], [0]),
            [Tally([[1.0, 0.0]], [0], [0])],
            Tally([[0.0, 0.0]], [5], [2]),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_refuses_what_are_no_answers(self, method, answers):
        sentence(lambda: INTERVALS[method](answers, QUERY))

    def test_refuses_unknown_words(self, method):
        if method not in ("wald", "faury"):
            sentence(lambda: INTERVALS[method](GOOD, QUERY, data="fixxed"), "'adaptive', 'fixed'", "'fixxed'")
        if method.startswith(("corrected", "printed")):
            sentence(lambda: INTERVALS[method](GOOD, QUERY, form="oval"), "'oval'")

    def test_knows_nothing_outside_the_span(self, method):
        flat = Tally([[1.0, 1.0], [2.0, 2.0]], [4000, 4000], [1500, 1000])
        result = INTERVALS[method](flat, [[1.0, 1.0], [1.0, 0.0]])
        if method == "faury":  # the norm bound itself keeps the interval finite
            assert np.isfinite(result.half_width).all()
            return
        assert (result.low[1], result.high[1]) == (-math.inf, math.inf)
        if method != "anytime":
            assert "1 of 2 queries lie outside the span" in result.reason

    def test_leaves_its_arguments_alone(self, method):
        vectors, pulls, wins, queries = np.eye(2), np.array([50, 60]), np.array([20, 30]), np.array(QUERY)
        before = [array.copy() for array in (vectors, pulls, wins, queries)]
        INTERVALS[method](Tally(vectors, pulls, wins), queries)
        for old, new in zip(before, (vectors, pulls, wins, queries), strict=True):
            np.testing.assert_array_equal(old, new)

    def test_takes_batches_and_duplicated_rows_like_one_tally(self, method):
        if method in ("anytime", "corrected"):
            pytest.skip("the order of answers enters")
        batches = [Tally(GOOD.vectors, GOOD.pulls // 2, GOOD.wins // 2) for _ in range(2)]
        stacked = Tally(*(np.concatenate([getattr(b, name) for b in batches]) for name in ("vectors", "pulls", "wins")))
        one, two, three = (INTERVALS[method](each, QUERY) for each in (GOOD, batches, stacked))
        if one.method.endswith("(anytime)"):
            pytest.skip("the anytime interval stands in, and the order of answers enters")
        np.testing.assert_allclose([two.low, two.high], [one.low, one.high], rtol=1e-6)
        np.testing.assert_allclose([three.low, three.high], [one.low, one.high], rtol=1e-6)


@pytest.mark.parametrize("bound", [0.0, -1.0, math.nan, math.inf, "1", [1.0], True])
def test_norm_bounds_are_positive_numbers(bound):
    for method in ("corrected, norm", "printed, norm", "li", "faury"):
        sentence(lambda method=method: INTERVALS[method](GOOD, QUERY, norm_bound=bound), "norm_bound", repr(bound))
    sentence(lambda: fit(GOOD, norm_bound=bound), "norm_bound", repr(bound))


@pytest.mark.parametrize("kappa", [0.0, -0.1, 0.26, 1.0, math.nan, "0.1", [0.1], True])
def test_kappa_is_a_variance(kappa):
    for method in ("corrected", "printed"):
        sentence(lambda method=method: INTERVALS[method](GOOD, QUERY, kappa=kappa), "kappa", repr(kappa))


@pytest.mark.parametrize(
    "bounds", [-1.0, math.nan, "1", [1.0], [1.0, -1.0, 1.0], [1.0, math.nan, 1.0], [[1.0, 1.0, 1.0]], [1.0, [2.0], 3.0]]
)
def test_logit_bounds_are_bounds(bounds):
    for method in ("corrected", "printed"):
        sentence(lambda method=method: INTERVALS[method](GOOD, QUERY, logit_bounds=bounds), "logit_bounds")


@pytest.mark.parametrize("size", [1e-90, 1e-3, 30.0, 200.0, 1e4, 1e90, 1e300])
@pytest.mark.parametrize("method", ["corrected, norm", "printed, norm", "li", "faury"])
def test_extreme_norm_bounds_neither_crash_nor_warn(method, size):
    result = INTERVALS[method](GOOD, QUERY, norm_bound=size)
    assert np.all(result.low <= result.high)
    assert len(result.reason) < 1000


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"ridge": -1.0}, "-1.0"),
        ({"ridge": math.nan}, "nan"),
        ({"ridge": "1"}, "'1'"),
        ({"start": [1.0]}, "2 numbers"),
        ({"start": [1.0, math.inf]}, "inf"),
        ({"equality": ([1.0], 0.0)}, "2 numbers"),
        ({"equality": ([0.0, 0.0], 0.0)}, "zero"),
        ({"equality": ([1.0, 0.0], math.nan)}, "nan"),
        ({"equality": ([1.0, 0.0],)}, "pair"),
        ({"equality": 3.0}, "pair"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"tolerance": math.nan}, "tolerance"),
        ({"max_iterations": 0}, "max_iterations"),
        ({"max_iterations": 2.5}, "max_iterations"),
    ],
)
def test_options_of_the_fit_are_checked(options, part):
    sentence(lambda: fit(GOOD, **options), part)


@pytest.mark.parametrize("data", [None, 3, "rows", [[1.0]], np.eye(2), [GOOD]])
def test_a_fit_needs_a_tally(data):
    sentence(lambda: fit(data), "Tally")


@pytest.mark.parametrize(
    "tally", [Tally(np.zeros((0, 2)), [], []), Tally([[1.0]], [0], [0]), Tally([[0.0]], [3], [1])], ids=str
)
def test_a_fit_needs_answers_about_something(tally):
    sentence(lambda: fit(tally))


@pytest.mark.parametrize("theta", [[1.0], [[1.0, 2.0]], [math.nan, 0.0], ["1", "2"], None])
def test_points_are_checked(theta):
    for call in (GOOD.loss, GOOD.gradient, GOOD.information, ConfidenceSet.of(GOOD, data="fixed").log_evidence):
        sentence(lambda call=call: call(theta), "theta")


# Anything at all.

SCALES = st.sampled_from([1e-90, 1e-60, 1e-12, 1e-3, 1.0, 1.0, 1.0, 1e3, 1e12, 1e60, 1e99])


@st.composite
def strange_tallies(draw, largest: int = 10**15) -> Tally:
    """Few rows, small integers and ties, wild units, zero, repeated and collinear columns, few or many answers."""
    dimension, rows = draw(st.integers(1, 4)), draw(st.integers(1, 8))
    entries = st.one_of(st.integers(-2, 2).map(float), st.floats(-1, 1, width=16).map(lambda x: round(x, 4)))
    vectors = draw(hnp.arrays(np.float64, (rows, dimension), elements=entries))
    if dimension > 1 and draw(st.booleans()):
        vectors[:, -1] = vectors[:, 0] * draw(st.sampled_from([0.0, 1.0, -2.0, 1 / 3]))
    units = draw(st.one_of(SCALES, hnp.arrays(np.float64, dimension, elements=SCALES)))
    most = draw(st.sampled_from([1, 2, 30, 10**4, largest]))
    pulls = np.array(draw(st.lists(st.integers(0, most), min_size=rows, max_size=rows)))
    shares = np.array(draw(st.lists(st.sampled_from([0.0, 1e-3, 0.3, 0.5, 1.0]), min_size=rows, max_size=rows)))
    with np.errstate(under="ignore"):
        return Tally(vectors * units, pulls, np.floor(pulls * shares))


@settings(max_examples=150)
@given(strange_tallies())
def test_a_fit_of_anything_is_right_or_says_that_it_is_not(tally):
    try:
        result = fit(tally)
    except SurepickError:
        return
    if result.converged:
        assert np.isfinite(result.theta).all()
        assert result.gap <= 1e-5
        asked = tally.asked()
        norms = result.inverse_norms(asked.vectors)
        assert np.isfinite(norms).all()
        # The score vanishes in every direction, measured in its own standard deviation.
        gradient = tally.gradient(result.theta)
        deviation = np.sqrt(np.diag(result.information))
        resolution = 1e-15 * (asked.pulls @ np.abs(asked.vectors))
        assert np.all(np.abs(gradient) <= 1e-5 * deviation + resolution)
    elif result.direction is not None:
        along = tally.vectors @ result.direction
        size = np.abs(tally.vectors) @ np.abs(result.direction)
        assert np.all(along[(tally.wins == tally.pulls) & (tally.pulls > 0)] >= -1e-9 * size.max())
        assert np.all(along[(tally.wins == 0) & (tally.pulls > 0)] <= 1e-9 * size.max())
        assert np.isnan(result.theta).all()
    else:
        assert "not reached" in result.status.sentence


@settings(max_examples=25)
@given(strange_tallies(largest=10**6), st.sampled_from([1e-6, 0.05, 0.9]), st.sampled_from([1e-3, 1.0, 50.0]))
@example(Tally([[1e99, 1e-99]], [5], [2]), 0.05, 1.0)
@example(
    Tally([[-2e-60, -7e98], [2e-60, 3e98], [1e-60, 1e98], [0.0, -7e98]], [22, 14, 20, 22], [6, 14, 6, 11]), 0.05, 1.0
)
@example(Tally([[0.0, 0.0], [1e60, -2e60]], [0, 1], [0, 1]), 0.05, 1.0)
def test_intervals_of_anything_are_ordered_and_infinite_where_nothing_is_known(tally, delta, bound):
    queries = np.vstack([tally.vectors[:2], np.eye(tally.dimension)[:1] * np.abs(tally.vectors).max(initial=1.0)])
    for method, interval in INTERVALS.items():
        options = {"norm_bound": bound} if method in ("corrected, norm", "printed, norm", "li", "faury") else {}
        try:
            result = interval(tally, queries, delta=delta, **options)
        except SurepickError:
            continue
        assert not np.isnan(result.low).any()
        assert not np.isnan(result.high).any()
        assert np.all(result.low <= result.high)
        known = np.isfinite(result.half_width) & np.isfinite(result.centre)
        slack = 1e-9 * (np.abs(result.low) + np.abs(result.high))[known]
        assert np.all(result.low[known] <= result.centre[known] + slack)
        assert np.all(result.centre[known] <= result.high[known] + slack)
        assert result.valid or result.reason
        if method.startswith(("corrected", "ellipsoid", "printed")) and not result.valid:
            broken = [c.name for c in result.conditions if not c.holds]
            if broken != ["queries in the span"] and not result.method.endswith("(anytime)"):
                assert np.isinf(result.half_width).all()
