"""Adult, trained on synthetic rows and tested on real ones (TSTR).

    python benchmarks/adult.py

The set's own split (32,561 training rows, 16,281 test rows) and schema, epsilon = 1, delta = 1e-5,
replace-one adjacency, the heterogeneous variant with class-reweighted objective and, for
comparison, the joint one. Test ROC AUC of three classifiers trained on a synthetic table of the
training size, and total variation distances to the training table, beside the real rows. Writes
``results/adult.md``.
"""

from __future__ import annotations

import pandas as pd
from _common import Stopwatch, loader, mean_and_spread, parser, write_result

from skdpgen import DPMERFSynthesizer, Schema
from skdpgen.evaluation import fidelity_scores, tstr_scores

EPSILON, DELTA = 1.0, 1e-5
# A public choice: amounts of money and survey weights spread over decades.
LOG_SCALED = ("capital-gain", "capital-loss", "fnlwgt")


def evaluate(
    table: pd.DataFrame, train: pd.DataFrame, test: pd.DataFrame, schema: Schema
) -> dict[str, float]:
    """AUC per classifier, and mean total variation distance of one- and two-way marginals."""
    scores = tstr_scores(table, test, schema, random_state=0)
    auc = scores[scores["metric"] == "roc_auc"].set_index("classifier")["score"]
    fidelity = fidelity_scores(train, table, schema)
    uniform = fidelity[fidelity["binning"] == "uniform"].set_index("order")["mean"]
    return {**auc.to_dict(), "TV 1-way": uniform[1], "TV 2-way": uniform[2]}


def main() -> None:
    """Run the benchmark."""
    options = parser(__doc__.splitlines()[0]).parse_args()
    load = loader(options.data)
    train, test, _ = load.train_test("adult")
    schema = Schema.from_dict(load.schema("adult"))
    scaled = schema.with_columns({name: {"scale": "log1p"} for name in LOG_SCALED})
    rows = [{"trained on": "real rows", **evaluate(train, train, test, schema), "seconds": 0.0}]
    for class_weight in ("balanced", None):
        for seed in range(options.fits):
            with Stopwatch() as watch:
                synth = DPMERFSynthesizer(
                    EPSILON, DELTA, schema=scaled, class_weight=class_weight, random_state=seed
                ).fit(train)
                synthetic = synth.sample(len(train))
            name = "imbalanced (class_weight='balanced')" if class_weight else "joint objective"
            found = evaluate(synthetic, train, test, schema)
            rows.append({"trained on": name, **found, "seconds": watch.wall})
            print(rows[-1], flush=True)
    results = pd.DataFrame(rows).groupby("trained on", sort=False)
    table = results.agg(mean_and_spread).reset_index()
    write_result(
        "adult",
        "Adult, epsilon = 1, delta = 1e-5, replace-one",
        "python benchmarks/adult.py",
        table,
        f"{options.fits} fits: mean (smallest-largest) of the ROC AUC on the test rows. TV: mean "
        "total variation distance to the training rows over all one- and two-way marginals, "
        "numbers in 16 uniform bins. Seconds: fit and sample, wall clock.",
    )
    print(synthetic.describe(include="all").T.to_string())


if __name__ == "__main__":
    main()
