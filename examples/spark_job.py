"""Learn from a Spark table: windows are counted on the cluster, and only they come here.

spark-submit examples/spark_job.py 'log/*.parquet' schema.toml model.json
"""

import argparse

from pyspark.sql import SparkSession

import rspmn
from rspmn import Schema
from rspmn.learn import LearnConfig, learn_rspmn


def main() -> None:
    """Count windows on Spark, learn from them, write the model."""
    parser = argparse.ArgumentParser(description="Learn from a Spark table.")
    parser.add_argument("log")
    parser.add_argument("schema")
    parser.add_argument("model")
    parser.add_argument("--terminated", default="terminated")
    parser.add_argument("--max-windows", type=int, default=LearnConfig().max_windows)
    arguments = parser.parse_args()
    spark = SparkSession.builder.appName("rspmn").getOrCreate()
    table = spark.read.parquet(arguments.log)
    schema = Schema.load(arguments.schema)
    config = LearnConfig(max_windows=arguments.max_windows)
    with rspmn.store_windows(table, schema, terminated=arguments.terminated) as windows:
        print(f"{len(windows)} distinct windows of {windows.lengths.steps} steps")
        model, info = learn_rspmn(windows, config)
    model.save(arguments.model)
    print(f"{arguments.model}: {info.interfaces} interface nodes")
    spark.stop()


if __name__ == "__main__":
    main()
