# %% [markdown]
# # We watched the experiment while it ran. Can we still trust it?
#
# Three versions of a page are tried on visitors. To lose fewer sales the better-looking version is shown more often
# as data come in. Everybody does it, and it spoils the numbers: an arm that was unlucky early is pulled less, so its
# mean stays too low, and a test on "the arm that looked worst" rejects far too often. How bad is it, and what helps?

# %%
import numpy as np

from equinoise import bandits, inference

means = np.linspace(1.0, 0.05, 20)
runs = {
    name: bandits.simulate(name, means, horizon=500, n_replicates=10_000, seed=0, **options)
    for name, options in {
        "ucb": {},
        "private-ucb": {"epsilon": 0.05, "width": "published"},
        "width-only": {"epsilon": 0.05, "width": "published"},
        "uniform": {},
    }.items()
}
for name, run in runs.items():
    print(f"{name:>12}: mean |bias| {run.mean_absolute_bias:.4f}, regret {run.regret[:, -1].mean():6.1f}")

# %%
from equinoise.report import figures

axes = figures.bandit_bias(None, [(run.label, run) for run in runs.values()])

# %% [markdown]
# Two things at once: the private bandit's means are nearly unbiased, and it pays for that with the regret of uniform
# play. The control `width-only` (same widths, no noise, no privacy) is as unbiased: what removes the bias is that the
# arms are pulled evenly. What privacy adds is a *proof*: whatever the data, the bias is at most e^ε − 1 times the mean.
#
# ## A live experiment

# %%
test = bandits.PrivateUCB(["red", "green", "blue"], epsilon=0.1, horizon=600, noise="float", seed=7)
truth = {"red": 0.30, "green": 0.34, "blue": 0.50}
visitors = np.random.default_rng(3)
for _ in range(600):
    arm = test.select()
    test.update(arm, float(visitors.random() < truth[arm]))
test.to_frame()

# %% [markdown]
# The choices are private, so they say little about any single reward, and a p-value for an arm that *the choices*
# pointed out can be corrected. Here: the arm that was pulled most, against a conversion of 0.3.

# %%
frame = test.to_frame().set_index("arm")
arm = frame["pulls"].idxmax()
successes = round(float(frame.loc[arm, "pulls"] * frame.loc[arm, "mean"]))
p = float(inference.binomial_test(successes, int(frame.loc[arm, "pulls"]), 0.3, alternative="greater"))
corrected = float(inference.adjusted_p_value(p, epsilon=0.1, n=600))
print(f"{arm}: {frame.loc[arm, 'mean']:.3f}, plain p = {p:.1e}, corrected p = {corrected:.1e}")

# %% [markdown]
# **Answer.** Report the private means with their bound, and the corrected p-value. The correction is honest and not
# free: once ε √n passes about 3 it says nothing, so it is for strong effects, small ε or short experiments.
