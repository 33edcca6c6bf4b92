"""Print the expected cost of 100 million and a billion rows on 10 and 100 machines, from measured constants.

    python benchmarks/plan_out_of_core.py

Rows have 50 columns in float32, and 20 clusters; machines have 16 cores, each with a worker.
"""

from __future__ import annotations

from measure import markdown_table

from fiedler import estimate

CORES = 16


def main() -> None:
    rows = []
    for n_rows in (10**8, 10**9):
        for n_machines in (10, 100):
            cost = estimate(n_rows, 50, 20, dtype="float32", n_workers=CORES * n_machines)
            rows.append(
                {
                    "rows": f"{n_rows:,}",
                    "machines": n_machines,
                    "GB of memory, all workers": round(cost.peak_bytes / 1e9),
                    "TB of disk": round(cost.disk_bytes / 1e12, 2),
                    "hours": f"{cost.seconds / 3600:.2g}",
                }
            )
    print(markdown_table(rows))


if __name__ == "__main__":
    main()
