"""What ``benchmarks/results`` says, as tables and pictures for the pages that sum up."""

import re
from pathlib import Path

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
CLASSIFIERS = {"LR": "logistic", "XGB": "boosted", "RF": "forest"}
# Stays on one line.
SLASH = "\N{NO-BREAK SPACE}/\N{NO-BREAK SPACE}"
COLORS = {
    "skdpgen, default": "#0a7d91",
    "skdpgen, SlicedFDivSynthesizer": "#5bb5a2",
    "skdpgen, DP-MERF of the paper": "#c9a227",
    "dpmm AIM": "#b5542a",
    "dpmm MST": "#7c6a9c",
    "dpmm PrivBayes": "#8a8d4b",
    "smartnoise-synth MST": "#6b7280",
}


def table(name):
    """Read the first table of a result, a dict of texts for each line."""
    lines = (RESULTS / f"{name}.md").read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
    return [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]


def comparisons():
    """Yield name, number of training rows, number of columns and table of each comparison."""
    found = []
    for path in RESULTS.glob("compare_*.md"):
        size = re.search(
            r"([\d,]+) training rows, [\d,]+ test rows, (\d+) columns", path.read_text()
        )
        rows = int(size[1].replace(",", ""))
        found.append((path.stem.removeprefix("compare_"), rows, int(size[2]), table(path.stem)))
    return sorted(found, key=lambda entry: entry[1])


def number(cell):
    """Read the mean of a cell such as ``0.899 (0.897-0.900)``; None without one."""
    match = re.match(r"[\d.]+", cell)
    return float(match[0]) if match else None


def metric(rows):
    """Name the score of a table: ``AUC`` or ``acc.``."""
    return "AUC" if "LR AUC" in rows[0] else "acc."


def mean_score(row, score):
    """Average a line over the three classifiers; None where a fit has failed."""
    values = [number(row[f"{name} {score}"]) for name in CLASSIFIERS]
    return None if None in values else sum(values) / len(values)


def _pick(rows, trained, epsilon="1", adjacency="add-remove"):
    wanted = (trained, epsilon, adjacency)
    return next(
        row for row in rows if (row["trained on"], row["epsilon"], row["adjacency"]) == wanted
    )


def _list_table(head, rows):
    lines = [".. list-table::", "   :header-rows: 1", "   :class: result-table", ""]
    for row in [head, *rows]:
        lines += [("   * - " if at == 0 else "     - ") + cell for at, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


def by_size():
    """Set scores on real rows beside scores on synthetic ones, by the size of the table."""
    out = []
    for name, n_rows, n_columns, rows in comparisons():
        score = metric(rows)
        real = next(row for row in rows if row["trained on"] == "real rows")
        ours = _pick(rows, "skdpgen, default")
        out.append(
            [
                f":doc:`{name} </benchmarks/generated/compare_{name}>`",
                f"{n_rows:,}",
                str(n_columns),
                "ROC AUC" if score == "AUC" else "accuracy",
                *(
                    f"{number(real[f'{c} {score}']):.3f}{SLASH}{number(ours[f'{c} {score}']):.3f}"
                    for c in CLASSIFIERS
                ),
                f"{number(ours['TV 1-way']):.3f}{SLASH}{number(ours['TV 2-way']):.3f}",
            ]
        )
    head = ["table", "rows", "columns", "score"]
    return _list_table([*head, *CLASSIFIERS.values(), "TV, 1- / 2-way"], out)


def by_epsilon():
    """Set the scores on Adult beside each other, by epsilon and relation."""
    rows = table("compare_adult")
    out = [["real rows", "", *(f"{number(rows[0][f'{c} AUC']):.3f}" for c in CLASSIFIERS), ""]]
    for row in rows:
        if row["trained on"] == "skdpgen, default":
            out.append(
                [
                    row["epsilon"],
                    row["adjacency"],
                    *(f"{number(row[f'{c} AUC']):.3f}" for c in CLASSIFIERS),
                    f"{number(row['TV 1-way']):.3f}{SLASH}{number(row['TV 2-way']):.3f}",
                ]
            )
    return _list_table(["epsilon", "relation", *CLASSIFIERS.values(), "TV, 1- / 2-way"], out)


def draw(folder):
    """Draw the pictures of the page that sums up."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    style = {"svg.hashsalt": "skdpgen", "font.size": 10, "axes.spines.top": False}
    style |= {"axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25}
    with matplotlib.rc_context(style):
        _save(plt, _auc_and_seconds(plt), folder / "auc_and_seconds.svg")
        _save(plt, _two_way(plt), folder / "two_way.svg")
        _save(plt, _over_epsilon(plt), folder / "over_epsilon.svg")


def _save(plt, figure, path):
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)


def _method(label):
    return next((name for name in COLORS if label.startswith(name)), None)


def _fits(rows):
    """Yield method, score, two-way distance and CPU seconds of the fits at epsilon = 1."""
    score = metric(rows)
    for row in rows:
        method = _method(row["trained on"])
        compared = row["epsilon"] == "1" and row["adjacency"] == "add-remove" and method
        if compared and number(row["CPU s"]) is not None:
            yield method, mean_score(row, score), number(row["TV 2-way"]), number(row["CPU s"])


def _legend(figure, axes):
    seen = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            seen.setdefault(label, handle)
    order = [name for name in COLORS if name in seen]
    figure.legend(
        [seen[name] for name in order],
        order,
        loc="upper center",
        ncols=4,
        frameon=False,
        bbox_to_anchor=(0.5, 0.01),
    )


def _auc_and_seconds(plt):
    sets = [entry for entry in comparisons() if metric(entry[3]) == "AUC"]
    figure, grid = plt.subplots(-(-len(sets) // 3), 3, figsize=(8.4, 5.4), layout="tight")
    axes = grid.ravel()
    for ax in axes[len(sets) :]:
        ax.set_axis_off()
    for ax, (name, n_rows, _, rows) in zip(axes, sets, strict=False):
        real = mean_score(rows[0], "AUC")
        ax.axhline(real, color="#444", linewidth=1.2, linestyle="--")
        for method, score, _, seconds in _fits(rows):
            marker = "o" if method.startswith("skdpgen") else "s"
            ax.scatter(seconds, score, s=45, color=COLORS[method], marker=marker, label=method)
        ax.set_xscale("log")
        ax.set_xlim(3, 3000)
        ax.set_title(f"{name}\n{n_rows:,} rows", fontsize=10)
        ax.set_xlabel("CPU seconds")
    for ax in grid[:, 0]:
        ax.set_ylabel("mean ROC AUC")
    _legend(figure, axes)
    return figure


def _two_way(plt):
    sets = comparisons()
    figure, ax = plt.subplots(figsize=(9, 3.2), layout="tight")
    for at, (_, _, _, rows) in enumerate(sets):
        ax.plot(
            [at - 0.3, at + 0.3], [number(rows[0]["TV 2-way"])] * 2, color="#444", lw=1, ls="--"
        )
        for method, _, distance, _ in _fits(rows):
            marker = "o" if method.startswith("skdpgen") else "s"
            ax.scatter(at, distance, s=45, color=COLORS[method], marker=marker, label=method)
    ax.set_xticks(
        range(len(sets)), [f"{name}\n{n_rows:,}" for name, n_rows, _, _ in sets], fontsize=8
    )
    ax.set_ylim(0)
    ax.set_ylabel("two-way total variation")
    _legend(figure, [ax])
    return figure


def _over_epsilon(plt):
    rows = table("compare_adult")
    figure, ax = plt.subplots(figsize=(8, 3.2), layout="tight")
    ax.axhline(mean_score(rows[0], "AUC"), color="#444", lw=1, ls="--", label="real rows")
    ours, aim = "skdpgen, default", "dpmm AIM, light settings"
    lines = {
        (ours, "add-remove"): ("skdpgen, add-remove", COLORS[ours], "o-"),
        (ours, "replace-one"): ("skdpgen, replace-one", COLORS[ours], "o:"),
        (aim, "add-remove"): ("dpmm AIM, light", COLORS["dpmm AIM"], "s-"),
    }
    for (trained, adjacency), (label, color, style) in lines.items():
        points = [
            (float(row["epsilon"]), mean_score(row, "AUC"))
            for row in rows
            if row["trained on"] == trained and row["adjacency"] == adjacency
        ]
        ax.plot(*zip(*sorted(points), strict=True), style, color=color, label=label)
    ax.set_xscale("log")
    ax.set_xticks([0.2, 1, 10], ["0.2", "1", "10"])
    ax.set_xlabel("epsilon")
    ax.set_ylabel("mean ROC AUC on real test rows")
    ax.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
