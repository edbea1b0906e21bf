"""Long names of the variables."""

from hdica.analysis.densities.names import FEATURE
from hdica.analysis.statistics.names import AGREEMENT

EXPONENT = {
    "": "a in {d} ~ n^-a",
    "_low": "lower end of the 95 % interval of a for {d}",
    "_high": "upper end of the 95 % interval of a for {d}",
    "_n_from": "smallest n in the fit of a for {d}",
    "_resolved": "1 where a for {d} is determined by the data",
}


def _distance(name: str, words: str) -> dict[str, str]:
    return {
        name: f"{words} distance of one run, mean over seeds",
        f"{name}_se": f"standard error of the {words} distance",
        f"{name}_expected": f"{words} distance of as many independent entries",
        f"{name}_pooled": f"{words} distance of the law pooled over seeds",
        f"{name}_pooled_expected": f"{words} distance of as many pooled independent entries",
        **{f"{name}_exponent{k}": text.format(d=words) for k, text in EXPONENT.items()},
    }


LONG_NAMES = {
    **AGREEMENT,
    **_distance("ks", "Kolmogorov-Smirnov"),
    **_distance("w1", "Wasserstein-1"),
    "outside": "share of entries outside the edges",
    "outside_limit": "share of the limit's mass outside the edges",
    "xi": FEATURE,
}
