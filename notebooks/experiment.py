# %% [markdown]
# # We watched the experiment while it ran. Can we still trust it?
#
# Three versions of a page are tried on visitors. To lose fewer sales the better-looking version is shown more often
# as data come in. This is common, and it biases the numbers: an arm that was unlucky early is pulled less, so its
# mean stays too low, and a test of "the arm that looked worst" rejects far too often. How bad is it, and what helps?

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
# The private bandit's means are nearly unbiased, and its regret is that of uniform play. The control `width-only` (same
# widths, no noise, no privacy) is as unbiased: what removes the bias is that the arms are pulled evenly. Privacy adds a
# *proof*: whatever the data, no mean is off by more than tanh(ε/4) in expectation.
#
# ## A live experiment

# %%
test = bandits.PrivateUCB(["red", "green", "blue"], epsilon=0.1, horizon=600, noise="float", seed=7)
truth = {"red": 0.30, "green": 0.34, "blue": 0.50}
visitors = np.random.default_rng(3)
for _ in range(600):
    arm = test.select()
    test.update(arm, float(visitors.random() < truth[arm]))
test.report(control="red")

# %% [markdown]
# This answer holds whenever one looks, and whatever policy chose. The choices are private: they reveal little about any single reward. Therefore a p-value can be shifted when *the
# choices* alone decided which arm to test. Here it is the arm that was pulled most, against a conversion rate of 0.3.

# %%
frame = test.to_frame().set_index("arm")
arm = frame["pulls"].idxmax()
successes = round(float(frame.loc[arm, "pulls"] * frame.loc[arm, "mean"]))
pulls = int(frame.loc[arm, "pulls"])
p = inference.binomial_test(successes, pulls, 0.3, alternative="greater")
shifted = inference.shifted_p_value(successes, pulls, 0.3, epsilon=0.1)
print(f"{arm}: {frame.loc[arm, 'mean']:.3f}, plain p = {p:.1e}, shifted p = {shifted:.1e}")

# %% [markdown]
# **Answer.** Yes, when the bandit is private: report its means with their bound, and the shifted p-value. It
# holds for whatever the choices suggested; an effect that ε alone could have made is never shown.
