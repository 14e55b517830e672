"""How private a mechanism is that adds up items and Laplace draws: exactly, from which draw enters where.

A mechanism is described by three arrays: `draws` float64[outputs, draws], how much of each draw is in each
output; `scale` float64[draws]; and `items` float64[outputs, items], how much of each item is.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog


def worst_loss(draws, scale, change):
    """The largest log-likelihood ratio when the items' part of outputs moves by `change` float64[outputs].

    Outputs are o = draws z + items x. The density of o is log-concave with tails exp(-N(o)), N(v) the least
    sum of |z_i|/scale_i with draws z = v. By the substitution z + z* no ratio exceeds N(change), and along
    o = r change it tends to N(change) as r grows: the supremum is N(change), a linear program. Where every
    output has one draw of its own there is a single z.
    """
    n_draws = len(scale)
    if draws.shape == (n_draws, n_draws):
        return float((np.abs(np.linalg.solve(draws, change)) / scale).sum())
    cost = np.concatenate([1.0 / scale, 1.0 / scale])
    result = linprog(cost, A_eq=np.hstack([draws, -draws]), b_eq=change, bounds=(0, None), method="highs")
    assert result.status == 0
    return float(result.fun)


def worst_item_losses(draws, scale, items, sensitivity):
    """The largest ratio for each item, when it alone changes by `sensitivity`; float64[items]."""
    return np.array([worst_loss(draws, scale, sensitivity * column) for column in items.T])


def log_density(draws, scale, mean, outputs):
    """ln of the joint density of outputs, where every output has one draw of its own."""
    z = np.linalg.solve(draws, outputs - mean)
    jacobian = np.linalg.slogdet(draws)[1]
    return float((-np.abs(z) / scale - np.log(2.0 * scale)).sum() - jacobian)
