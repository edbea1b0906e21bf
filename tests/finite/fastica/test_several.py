"""All components, against scikit-learn on the same starts."""

import warnings

import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.finite.fastica.iteration import components, decorrelated, fastica
from hdica.ingredients.contrasts import make_contrast
from tests.finite.fastica.reference import white

FUN = {"exp": "exp", "logcosh": "logcosh", "kurtosis": "cube"}
ALGORITHM = {"deflation": "deflation", "symmetric": "parallel"}


@pytest.mark.parametrize("how", [*ALGORITHM])
@pytest.mark.parametrize("name", [*FUN])
@pytest.mark.parametrize(("n", "d", "sources"), [(800, 4, 4), (3000, 12, 12), (1001, 5, 4)])
def test_the_components_are_those_of_scikit_learn_to_ten_digits(n, d, sources, name, how):
    from sklearn.decomposition import FastICA

    y = white(n, d, seed=d, sources=sources)
    start = np.random.default_rng(1).standard_normal((d, d))
    ours = components(
        y, start, make_contrast(name), symmetric=how == "symmetric", tolerance=1e-10, most=300
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = FastICA(
            algorithm=ALGORITHM[how], whiten=False, fun=FUN[name], w_init=start, tol=1e-10,
            max_iter=300,
        ).fit(y)  # fmt: skip
    assert np.max(np.abs(ours.w - theirs.components_)) < 1e-10
    assert max(ours.iterations) == theirs.n_iter_
    assert np.allclose(ours.w @ ours.w.T, np.eye(d), atol=1e-12)


def test_the_first_component_is_that_of_one_unit():
    y, start = white(700, 6), np.random.default_rng(2).standard_normal((3, 6))
    contrast = make_contrast("exp")
    several, one = components(y, start, contrast), fastica(y, start[:1], contrast)
    assert np.array_equal(several.w[0], one.w[0])
    assert several.score[0] == one.score[0]
    assert several.w.shape == (3, 6)
    assert np.allclose(several.w @ several.w.T, np.eye(3), atol=1e-13)


def test_fewer_components_than_dimensions_all_at_once():
    y = white(4000, 6, sources=3)
    start = np.random.default_rng(3).standard_normal((3, 6))
    found = components(y, start, make_contrast("kurtosis"), symmetric=True)
    assert np.all(found.converged)
    assert np.all(found.iterations == found.iterations[0])
    assert np.allclose(found.w @ found.w.T, np.eye(3), atol=1e-13)
    assert np.all(found.score < -1.5)  # signs have an excess kurtosis of -2


def test_decorrelation_is_the_nearest_orthonormal_frame():
    w = np.random.default_rng(0).standard_normal((3, 5))
    u, _, vt = np.linalg.svd(w, full_matrices=False)
    assert np.allclose(decorrelated(w), u @ vt, atol=1e-13)


def test_refusals():
    y, contrast = white(60, 3), make_contrast("exp")
    with pytest.raises(HdicaError, match="at most 3 orthogonal"):
        components(y, np.ones((4, 3)), contrast)
    with pytest.raises(HdicaError, match="linearly dependent"):
        components(y, np.ones((2, 3)), contrast, symmetric=True)
