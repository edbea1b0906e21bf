"""Long names of the variables."""

from hdica.analysis.statistics.names import AGREEMENT

LONG_NAMES = {
    **AGREEMENT,
    "tpr": "true positive rate, mean over seeds",
    "tpr_se": "standard error of the true positive rate",
    "tpr_limit": "limit of the true positive rate",
    "fpr": "false positive rate, mean over seeds",
    "fpr_se": "standard error of the false positive rate",
    "fpr_limit": "limit of the false positive rate",
    "misclassified": "misclassified share, mean over seeds",
    "misclassified_se": "standard error of the misclassified share",
    "misclassified_limit": "limit of the misclassified share",
    "area_limit": "area under the limit's true against false positive rate",
}
