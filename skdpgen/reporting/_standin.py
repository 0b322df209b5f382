import numpy as np
import pandas as pd
def plot_marginal(ax, s):
    if pd.api.types.is_numeric_dtype(s) and s.nunique() > 12:
        ax.hist(s.dropna(), bins=24, color="#010206")
    else:
        c = s.astype(str).value_counts(normalize=True)[:8]
        ax.barh([str(x)[:14] for x in c.index][::-1], c.to_numpy()[::-1], color="#010206")
