"""Write the tables of README.md and of the documentation that are made from data of the package.

    python scripts/readme_tables.py [--check]

They are those of the cards of the networks and of the bundled weights, and the zero-shot scores.

A table stands between `<!-- NAME: … -->` and `<!-- end of NAME -->`.  With `--check` nothing is written, and
the exit code is 1 if a table is stale.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path

from aanet.evaluation import markdown, paper
from aanet.evaluation.zero_shot.bundled import Standings
from aanet.models import zoo
from aanet.models.complexity import complexity
from aanet.models.weights import files

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
EVALUATING = ROOT / "docs/evaluating.md"
ALONE = "network alone"  # the key of scores without upscaling and post-processing
# Sets of real pairs, by their keys in the cards of weights, and the percentage that is usual for each.
SETS = {
    "motorcycle": ("Motorcycle", "bad2"),
    "middlebury": ("Middlebury 2005 and 2006", "bad2"),
    "kitti2015": ("KITTI 2015", "d1"),
}
PERCENTAGES = {"bad2": "bad-2", "d1": "D1"}


def networks() -> list[str]:
    """Ours beside the paper's figures; ablations, whose size is not published, are left out."""
    headings = ["name", "parameters", "paper", "GMACs by the paper's rules", "paper", "total GMACs"]
    rows = []
    for name, card in zoo.NETWORKS.items():
        published = paper.COMPARISON_3D.get(name) or paper.SIZE.get(name)
        if card.in_paper and published is None:
            continue
        ours = complexity(name)
        parameters, macs = f"{ours.parameters / 1e6:.2f} M", f"{ours.paper_macs / 1e9:.2f}"
        row = [f"`{name}`", parameters, f"{published.parameters_m:.2f} M" if published else "–"]
        row += [macs, f"{published.macs_g:.2f}" if published else "–", f"{ours.total_macs / 1e9:.1f}"]
        rows.append([*row, *map(str, (ours.conv3d, ours.deform_convs, ours.csa_modules))])
    return markdown.table([*headings, "3D convs", "deformable", "CSA"], rows)


def weights() -> list[str]:
    """The bundled weights with their scores on real pairs, beside SGBM."""
    sets = [f"{title}: EPE, {PERCENTAGES[percentage]}" for title, percentage in SETS.values()]
    rows: list[list[str]] = []
    sgbm: dict[str, dict[str, float]] = {}
    for name in sorted(files.bundled_names(), key=lambda name: list(zoo.NETWORKS).index(name.split(":")[0])):
        facts = files.facts(name)
        sgbm = facts["scores"]["sgbm"]
        size = f"{files.bundled_file(name).stat().st_size / 1e6:.1f} MB"
        rows.append([f"`{name}`", size, f"{facts['hours']:g} h", *_scores(facts["scores"][name], sgbm)])
        rows.append([f"`{name}`, {ALONE}", "", "", *_scores(facts["scores"][ALONE], sgbm)])
    rows.append(["SGBM", "–", "–", *_scores(sgbm, sgbm)[:-1], "–"])
    return markdown.table(["weights", "size", "training", *sets, "better than SGBM"], rows)


def _scores(scores: dict[str, dict[str, float]], sgbm: dict[str, dict[str, float]]) -> list[str]:
    """The cells of the sets, and how many of all figures are better than those of SGBM."""
    cells = [
        f"{scores[key]['epe']:.2f} px, {scores[key][percentage]:.1f} %"
        for key, (_, percentage) in SETS.items()
    ]
    better = [scores[key][metric] < sgbm[key][metric] for key in sgbm for metric in sgbm[key]]
    return [*cells, f"{sum(better)} of {len(better)}"]


def zero_shot() -> list[str]:
    """Where the bundled weights stand among published zero-shot scores, and what is needed to read that."""
    standings = Standings.of(files.bundled_names())
    if standings is None:
        raise SystemExit("There are no zero-shot scores: run scripts/zero_shot_scores.py.")
    columns, rows = standings.table()
    notes = [f"- {what}: {words}" for what, words in standings.lines()]
    return [*markdown.table(["", *(column.title for column in columns)], rows), "", *notes]


Tables = dict[str, Callable[[], list[str]]]
TABLES: Tables = {"networks": networks, "weights": weights}
OTHER_PAGES: dict[Path, Tables] = {EVALUATING: {"zero-shot": zero_shot}}


def with_tables(text: str, tables: Tables | None = None, page: str = "README.md") -> str:
    """The text of a page with its tables as they should be; by default the README."""
    for name, make in (TABLES if tables is None else tables).items():
        pattern = rf"(<!-- {name}: [^\n]*-->\n).*?(<!-- end of {name} -->)"
        table = "\n".join(["", *make(), "", ""])
        text, found = re.subn(pattern, lambda m, table=table: m[1] + table + m[2], text, flags=re.DOTALL)
        if found != 1:
            raise SystemExit(f"{page} has no place for the table {name}.")
    return text


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say whether the tables are stale")
    arguments = parser.parse_args()
    for page, tables in {README: TABLES, **OTHER_PAGES}.items():
        before = page.read_text(encoding="utf-8")
        after = with_tables(before, tables, page.name)
        if arguments.check and after != before:
            raise SystemExit(f"The tables of {page.name} are stale: run scripts/readme_tables.py.")
        if after != before:
            page.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
