"""Questions to the store of Bullpen, in Spark: a notebook as a script.

    python bullpen_in_spark.py DIRECTORY

Editors run each cell that begins with `# %%`. The store is that of the environment: BULLPEN_HOME
and BULLPEN_DATABASE_URL, as for every command. The stream writes Parquet files into DIRECTORY;
when the script runs again, only the new events are added.
"""

# %% Open Spark and register the data source. Everything listens on this machine only.
import os
import sys

os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bullpen.reports.spark import register

directory = sys.argv[1] if len(sys.argv) > 1 else "bullpen-events"

spark = (
    SparkSession.builder.master("local[*]")
    .appName("bullpen in Spark")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.shuffle.partitions", os.cpu_count() or 1)
    .getOrCreate()
)
register(spark)

# %% Which agents work, how many of their runs fail, and what do they cost?
attempts = spark.read.format("bullpen").option("table", "attempts").load()

print("Runs by agent")
(
    attempts.groupBy("agent")
    .agg(
        F.count("*").alias("runs"),
        F.count_if(F.col("outcome") != "completed").alias("not_completed"),
        F.round(F.sum("cost"), 2).alias("cost"),
    )
    .orderBy("agent")
    .show(truncate=False)
)

# %% How long do messages wait for their agent? Only the columns that the query needs are read.
waits = (
    spark.read.format("bullpen")
    .options(table="attempts", columns="agent,available_at,started_at")
    .load()
    .withColumn("wait", F.greatest(F.col("started_at") - F.col("available_at"), F.lit(0)))
)

print("Milliseconds until the start of a run")
(
    waits.groupBy("agent")
    .agg(
        F.percentile("wait", F.lit(0.5)).cast("bigint").alias("median"),
        F.percentile("wait", F.lit(0.95)).cast("bigint").alias("p95"),
    )
    .orderBy("agent")
    .show(truncate=False)
)

# %% What failed most often? The database selects the rows.
failed = (
    spark.read.format("bullpen")
    .options(table="attempts", columns="fingerprint,error,agent,sender_id")
    .option("where", "outcome = 'failed'")
    .load()
)

print("Most frequent errors")
(
    failed.groupBy("fingerprint")
    .agg(
        F.count("*").alias("runs"),
        F.count_distinct("sender_id").alias("senders"),
        F.max("error").alias("example"),
    )
    .orderBy(F.desc("runs"), "fingerprint")
    .show(5, truncate=60)
)

# %% Keep all events in Parquet. The checkpoint makes each row arrive exactly once.
query = (
    spark.readStream.format("bullpen")
    .option("table", "events")
    .load()
    .withColumn("date", F.to_date(F.timestamp_millis("created_at")))
    .writeStream.format("parquet")
    .partitionBy("date")
    .option("path", f"{directory}/events")
    .option("checkpointLocation", f"{directory}/checkpoint")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()

print("Events by type")
events = spark.read.parquet(f"{directory}/events")
events.groupBy("type").count().orderBy("type").show(truncate=False)

# %%
spark.stop()
