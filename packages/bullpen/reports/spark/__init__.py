"""Spark: the session that the job uses, and the data source `bullpen` for sessions of your own.

Only this package, the job and functions.py import pyspark; this module imports it at the first use:

    from bullpen.reports.spark import register

    register(spark)
    spark.read.format("bullpen").option("table", "attempts").load()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bullpen.reports.spark.source import BullpenDataSource as BullpenDataSource
    from bullpen.reports.spark.source import register as register
else:

    def __getattr__(name: str) -> object:
        if name not in ("BullpenDataSource", "register"):
            raise AttributeError(name)
        from bullpen.reports.spark import source

        return getattr(source, name)
