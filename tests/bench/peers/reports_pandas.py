"""The tables of all reports by pandas: facts in memory, landed as Parquet by date, then grouped.

A process of its own: `python -m tests.bench.peers.reports_pandas URL DIRECTORY ZONE`. It leaves out
`peaks` and `chains`' top conversations, for which pandas has no operation.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bullpen.reports.facts.read import StoreAddress
from bullpen.reports.facts.tables import ATTEMPTS, EVENTS, FactTable
from tests.bench.peers.reports_duckdb import fact_stream
from tests.bench.process_tree import TreeMeter

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

HOUR = 3_600_000
PERCENTILES = (0.5, 0.9, 0.95, 0.99)
SUMS = ("runs", "messages", "input_tokens", "output_tokens", "micros", "failed", "run_time")


def read(address: StoreAddress, table: FactTable) -> pd.DataFrame:
    """All landed facts of a table."""
    return fact_stream(address, table).read_all().to_pandas()


def add_days(rows: pd.DataFrame, column: str, zone: str) -> None:
    """Add the local day and hour of a time."""
    import pandas as pd

    there = pd.to_datetime(rows[column], unit="ms", utc=True).dt.tz_convert(zone)
    rows["day"] = there.dt.date
    rows["hour"] = there.dt.hour


def land(rows: pd.DataFrame, column: str, directory: Path) -> None:
    """Write the facts by UTC date."""
    import pandas as pd

    dated = rows.assign(date=pd.to_datetime(rows[column], unit="ms", utc=True).dt.date)
    dated.to_parquet(directory, partition_cols=["date"], compression="zstd")


def compute(a: pd.DataFrame, e: pd.DataFrame, results: Path) -> None:
    """Write the tables of the reports, one file each."""
    import numpy as np
    import pandas as pd

    def save(name: str, rows: pd.DataFrame | pd.Series) -> None:
        frame = rows.to_frame() if isinstance(rows, pd.Series) else rows
        frame.columns = [str(each) for each in frame.columns]
        frame.reset_index().to_parquet(results / f"{name}.parquet")

    def by(rows: pd.DataFrame, *names: str) -> Any:
        return rows.groupby(list(names), dropna=False, sort=False)

    a["micros"] = np.floor(a["cost"] * 1_000_000 + 0.5).astype("int64")
    a["run_time"] = (a["finished_at"] - a["started_at"]).clip(lower=0)
    a["runs"] = 1
    a["failed"] = a["micros"].where(a["outcome"] != "completed", 0)
    a["bad"] = a["outcome"].isin(["failed", "crashed"]).astype("int64")
    a["done"] = a["messages"].where(a["outcome"] == "completed", 0)
    enqueued = e[e["type"] == "message_enqueued"].assign(came=1)
    dead = e[e["type"] == "message_dead"].assign(died=1)
    keys = ["day", "hour", "agent", "team_id", "channel"]
    happened = pd.concat(
        [enqueued[[*keys, "came"]], dead[[*keys, "died"]], a[[*keys, "done", "runs", "bad"]]]
    )
    save("throughput", by(happened, *keys).sum())
    first, last = a["claimed_at"] // HOUR, (a["finished_at"] - 1) // HOUR
    parts = a.loc[
        a.index.repeat((last - first + 1).clip(lower=0)), ["agent", "claimed_at", "finished_at"]
    ]
    parts["since"] = (parts["claimed_at"] // HOUR + parts.groupby(level=0).cumcount()) * HOUR
    end = np.minimum(parts["finished_at"], parts["since"] + HOUR)
    parts["busy"] = end - np.maximum(parts["claimed_at"], parts["since"])
    save("concurrency", by(parts, "since", "agent")["busy"].sum())

    delivered = e[(e["type"] == "response_delivered") & e["waited"].notna()]
    known = a[a["available_at"].notna()]
    stages = (
        known.assign(
            stage="waiting", ms=(known["claimed_at"] - known["available_at"]).clip(lower=0)
        ),
        a.assign(stage="running", ms=a["run_time"]),
        delivered.assign(stage="delivering", ms=delivered["waited"].astype("int64")),
    )
    durations = pd.concat([each[["day", "hour", "agent", "stage", "ms"]] for each in stages])
    grouped = by(durations, "day", "hour", "agent", "stage")["ms"]
    save("latency", grouped.agg(["count", "sum", "max"]))
    save("percentiles", grouped.quantile(list(PERCENTILES), interpolation="higher").unstack())
    ms = durations["ms"].to_numpy()
    doublings = np.maximum(np.frexp(ms.astype("float64"))[1].astype("int64") - 6, 0)
    durations["bucket"] = doublings * 32 + (ms >> doublings)
    save("latency_buckets", by(durations, "day", "agent", "stage", "bucket").size())

    sums = ["runs", "messages", "dead", "run_time", "wait"]
    save("retries", by(a, "day", "agent", "attempt", "outcome", "error_kind")[sums].sum())
    save("retries_by_hand", by(e[e["type"] == "message_retried"], "day", "agent").size())
    errors = a[a["fingerprint"].notna()].rename(columns={"error_kind": "kind"})
    save(
        "failures",
        by(
            errors.sort_values("finished_at"), "day", "fingerprint", "kind", "agent", "sender_id"
        ).agg(
            error=("error", "last"),
            runs=("runs", "sum"),
            first=("finished_at", "min"),
            last=("finished_at", "max"),
        ),
    )
    pair = ["day", "from_agent", "agent", "team_id", "channel"]
    handed = enqueued[enqueued["from_agent"].notna()]
    ran = a[a["from_agent"].notna()]
    both = pd.concat([handed[[*pair, "came"]], ran[[*pair, "runs", "bad", "micros", "run_time"]]])
    save("handoffs", by(both, *pair).sum())
    parents = by(handed, "day", "from_agent", "parent_id").size().rename("handoffs").reset_index()
    save("fan_out", by(parents, "day", "from_agent", "handoffs").size())
    chains = by(a, "conversation_id").agg(
        depth=("hop", "max"), runs=("runs", "sum"), agents=("agent", "nunique"),
        micros=("micros", "sum"), end=("finished_at", "max"), day=("day", "min"),
    )  # fmt: skip
    save("chains", by(chains, "day", "depth")[["runs", "agents", "micros"]].sum())
    usage = ("day", "agent", "provider", "model", "team_id", "channel")
    save("usage", by(a, *usage)[list(SUMS)].sum())
    save("usage_by_sender", by(a, "day", "channel", "sender_id", "sender")[list(SUMS)].sum())
    people = enqueued[enqueued["from_agent"].isna()]
    save(
        "people",
        by(people, "day", "channel", "sender_id", "sender").agg(
            messages=("came", "sum"), conversations=("conversation_id", "nunique"),
            first=("created_at", "min"), last=("created_at", "max"),
        ),
    )  # fmt: skip
    responses = e[e["type"].str.startswith("response_")]
    save(
        "delivery",
        by(responses, "day", "channel", "type")[["tries", "parts", "waited"]].agg(
            ["sum", "count", "max"]
        ),
    )
    waited = by(delivered, "day", "channel")["waited"]
    save("delivery_percentiles", waited.quantile([0.5, 0.95], interpolation="higher").unstack())


def main(url: str, directory: str, zone: str) -> None:
    """Read, land, compute, and print what all of it used."""
    with TreeMeter() as meter:
        address, top = StoreAddress(url), Path(directory)
        facts = {table.name: read(address, table) for table in (ATTEMPTS, EVENTS)}
        for table in (ATTEMPTS, EVENTS):
            land(facts[table.name], table.time, top / table.name)
            add_days(facts[table.name], table.time, zone)
        results = top / "results"
        results.mkdir()
        compute(facts["attempts"], facts["events"], results)
        done = meter.used()
    print(json.dumps({"cpu": done.cpu, "wall": done.wall, "memory": meter.memory}))


if __name__ == "__main__":
    main(*sys.argv[1:])
