"""Print the expected cost of 100 million and a billion rows on 10 and 100 machines, from measured constants.

    python benchmarks/plan_out_of_core.py

Rows have 50 columns in float32, and 20 clusters; machines have 16 cores, each with a worker, and write to and read from
shared storage at 1 GB per second each.
"""

from __future__ import annotations

from measure import markdown_table

from fiedler import estimate

CORES, BYTES_PER_SECOND = 16, 1e9


def main() -> None:
    rows = []
    for n_rows in (10**8, 10**9):
        for n_machines in (10, 100):
            cost = estimate(n_rows, 50, 20, dtype="float32", n_workers=CORES * n_machines)
            transfer = cost.moved_bytes / (BYTES_PER_SECOND * n_machines)
            rows.append(
                {
                    "rows": f"{n_rows:,}",
                    "machines": n_machines,
                    "blocks": cost.n_blocks,
                    "tasks": cost.n_tasks,
                    "GB a worker": round(cost.worker_bytes / 1e9, 2),
                    "GB of the client": round(cost.client_bytes / 1e9, 1),
                    "TB of disk": round(cost.disk_bytes / 1e12, 2),
                    "TB moved": round(cost.moved_bytes / 1e12, 2),
                    "hours of computing": f"{cost.seconds / 3600:.2g}",
                    "hours of transfer": f"{transfer / 3600:.2g}",
                }
            )
    print(markdown_table(rows))


if __name__ == "__main__":
    main()
