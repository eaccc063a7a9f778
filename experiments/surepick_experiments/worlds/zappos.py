"""The real shoe catalogue, UT-Zap50K: labels and GIST features as its authors distribute them, in MATLAB files.

zappos-labels.mat holds `mturkOrder`, one matrix per attribute with rows (image, image, attribute, answer, ...) counted
from 1, answer 1 for "the first more", 2 for "the second more"; zappos-gist.mat holds `gistfeats`, with one row of
960 numbers per image.
"""

from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat

from surepick._arrays import Floats
from surepick.errors import InvalidInput
from surepick.glm import Tally, fit
from surepick.identify import Problem
from surepick.judges.simulated import World

ATTRIBUTES = ("open", "pointy", "sporty", "comfort")


def load_zappos(
    folder: Path, attribute: str, *, dimension: int = 25, pairs: int = 5000, items: int | None = None, seed: int = 0
) -> World:
    """Items labelled for the attribute (or `items` random ones), features reduced by PCA, θ* fitted to the votes.

    As in Jun et al. 2021: the logistic fit of all comparisons of the attribute is taken as the truth, and `pairs`
    random pairs of items can be asked.
    """
    if attribute not in ATTRIBUTES:
        raise InvalidInput(f"There is no attribute {attribute!r}; there are {', '.join(ATTRIBUTES)}.")
    labels = _read(folder / "zappos-labels.mat", "mturkOrder").ravel()
    if len(labels) < len(ATTRIBUTES):
        raise InvalidInput(f"mturkOrder must hold one matrix for each of {', '.join(ATTRIBUTES)}, got {len(labels)}.")
    votes = np.asarray(labels[ATTRIBUTES.index(attribute)], dtype=np.float64)
    votes = votes[np.isin(votes[:, 3], (1, 2))]
    gist = np.asarray(_read(folder / "zappos-gist.mat", "gistfeats"), dtype=np.float64)
    first, second = votes[:, 0].astype(np.int64) - 1, votes[:, 1].astype(np.int64) - 1
    if len(votes) == 0 or min(first.min(), second.min()) < 0 or max(first.max(), second.max()) >= len(gist):
        raise InvalidInput(
            f"The labels of {attribute!r} name images that the {len(gist)} rows of gistfeats do not have."
        )
    reduced = principal_components(gist, dimension)
    tally = Tally.from_answers(reduced[first] - reduced[second], (votes[:, 3] == 1).astype(np.int64)).merged()
    estimate = fit(tally)
    if not estimate.converged:
        estimate = fit(tally, ridge=1e-3 * len(votes))
    rng = np.random.default_rng(seed)
    shown = np.unique(np.concatenate([first, second]))
    if items is not None:
        shown = np.sort(rng.choice(len(gist), size=min(items, len(gist)), replace=False))
    problem = Problem.from_pairs(
        reduced[shown], names=[f"image {image + 1}" for image in shown], pairs=pairs, seed=seed
    )
    return World(f"zappos-{attribute}", problem, estimate.theta)


def principal_components(features: Floats, dimension: int) -> Floats:
    """Coordinates along the directions of largest spread, scaled so that the first has a standard deviation of one."""
    centred = features - features.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    scores = centred @ vectors[:, ::-1][:, : min(dimension, features.shape[1])]
    return np.asarray(scores / scores[:, 0].std())


def _read(path: Path, name: str) -> Any:
    try:
        return loadmat(str(path))[name]
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {str(path)!r}; download UT-Zap50K and name its data folder.") from None
    except KeyError:
        raise InvalidInput(f"{str(path)!r} has no variable {name!r}; it is not a file of UT-Zap50K.") from None
    except (NotImplementedError, ValueError) as error:
        raise InvalidInput(f"{str(path)!r} is not a MATLAB file that SciPy reads ({error}).") from None
