"""Measures the two questions of docs/fleet.md on the same rows, laid out in several ways:
    row_groups.py FOLDER [SPARK]    writes a line of JSON for each layout to the standard output
FOLDER is what crates/canter/tests/peers/fleet.py leaves behind (a data set `signals` and the page's queries), SPARK the
interpreter of an environment with pyspark: without it only DuckDB is asked. The layouts but canter's own are written by pyarrow,
with zstd of level 1: row groups of several sizes; rows in a random order; one table of all messages by time, in place of a table
for each message. A question's time is the processor time of all threads in ms, the least of five runs in DuckDB, of one run in
Spark after one on the first layout."""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

GROUP_ROWS = 122_880
QUESTIONS = ("lost.sql", "histogram.sql")


def tables(folder):
    """The files of a data set: path below the data set, rows."""
    import pyarrow.parquet

    for path in sorted(folder.rglob("*.parquet")):
        yield path.relative_to(folder), pyarrow.parquet.ParquetFile(path).read()


def write(path, table, rows):
    import pyarrow.parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(table, path, row_group_size=rows, compression="zstd", compression_level=1)


def by_message(source, target, rows, is_shuffled=False):
    for path, table in tables(source):
        if is_shuffled:
            order = list(range(len(table)))
            random.Random(1).shuffle(order)
            table = table.take(order)
        write(target / path, table, rows)


def by_time(source, target):
    """A table for each vehicle, date and bus: the messages are a column, and each signal is one."""
    import pyarrow

    drives = {}
    for path, table in tables(source):
        message, *folders, _ = path.parts
        names = pyarrow.array([message.split("=")[1]] * len(table))
        drives.setdefault("/".join(folders), []).append(table.append_column("name", names))
    for folders, parts in drives.items():
        table = pyarrow.concat_tables(parts, promote_options="default").sort_by("stamp")
        write(target / "message=Engine" / folders / "part.parquet", table, GROUP_ROWS)


def layouts(folder):
    """Writes each layout: its name, its folder."""
    own = folder / "signals"
    yield "canter decode", own
    for rows in (15_360, GROUP_ROWS, 491_520):
        target = folder / f"groups-{rows}"
        by_message(own, target, rows)
        yield f"by message and time, groups of {rows} rows", target
    by_message(own, folder / "shuffled", GROUP_ROWS, is_shuffled=True)
    yield f"by message, rows in a random order, groups of {GROUP_ROWS} rows", folder / "shuffled"
    by_time(own, folder / "by-time")
    yield f"one table by time, groups of {GROUP_ROWS} rows", folder / "by-time"


def size_bytes(folder):
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def least_ms(runs, run, processor_s):
    def used():
        before = processor_s()
        run()
        return processor_s() - before

    return round(1000 * min(used() for _ in range(runs)))


def by_duckdb(folder, data_set):
    import duckdb

    only = " WHERE name = 'Engine'" if data_set.name == "by-time" else ""
    base = duckdb.connect()
    base.sql(f"""CREATE VIEW engine AS SELECT epoch_ns(stamp) AS stamp_ns, * EXCLUDE stamp
        FROM read_parquet('{data_set}/message=Engine/**/*.parquet', hive_partitioning = true, union_by_name = true){only}""")
    queries = [(folder / question).read_text() for question in QUESTIONS]
    answers = [base.sql(query).fetchall() for query in queries]
    times = [least_ms(5, lambda query=query: base.sql(query).fetchall(), time.process_time) for query in queries]
    return answers, times


def by_spark(folder, data_set, spark):
    only = "name = 'Engine'" if data_set.name == "by-time" else "true"
    engine = spark.read.option("mergeSchema", "true").parquet(f"{data_set}/message=Engine").withColumnRenamed("stamp", "stamp_ns").where(only)
    engine.createOrReplaceTempView("engine")
    queries = [(folder / question).read_text() for question in QUESTIONS]
    answers, times = [], []
    for query in queries:
        times.append(least_ms(1, lambda query=query: answers.append([tuple(row) for row in spark.sql(query).collect()]), java_s))
    return answers, times


def java_s():
    """The processor time of this process's children that run, in seconds: of Spark's Java."""
    children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    fields = [pathlib.Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split() for child in children]
    return sum(int(one[11]) + int(one[12]) for one in fields) / os.sysconf("SC_CLK_TCK")


def spark_main(folder, data_sets):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.sql.legacy.parquet.nanosAsLong", "true")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    by_spark(folder, data_sets[0], spark)  # Java compiles what runs often: the first layout would look slow
    for data_set in data_sets:
        print(json.dumps(by_spark(folder, data_set, spark)), flush=True)


def main(folder, python=None):
    written = list(layouts(folder))
    first, rows = None, []
    for name, data_set in written:
        answers, (lost, histogram) = by_duckdb(folder, data_set)
        first = first or answers
        assert answers == first, f"{name}: other answers"
        rows.append({
            "layout": name,
            "engine_bytes": size_bytes(data_set / "message=Engine"),
            "bytes": size_bytes(data_set),
            "duckdb_lost_cpu_ms": lost,
            "duckdb_histogram_cpu_ms": histogram,
        })
        print(json.dumps(rows[-1]), file=sys.stderr if python else sys.stdout, flush=True)
    if python:
        ask_spark(folder, python, written, rows, first)
    for _, data_set in written:
        if data_set.name != "signals":
            shutil.rmtree(data_set)


def ask_spark(folder, python, written, rows, first):
    """Prints the rows with Spark's times."""
    command = [python, __file__, "spark", str(folder), *(str(data_set) for _, data_set in written)]
    environment = {**os.environ, "PATH": f"{pathlib.Path(python).absolute().parent}:{os.environ['PATH']}"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as asked:
        for row, line in zip(rows, asked.stdout):
            answers, (lost, histogram) = json.loads(line)
            assert [[tuple(one) for one in answer] for answer in answers] == first, f"{row['layout']}: other answers by Spark"
            print(json.dumps({**row, "spark_lost_cpu_ms": lost, "spark_histogram_cpu_ms": histogram}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "spark":
        spark_main(pathlib.Path(sys.argv[2]), [pathlib.Path(one) for one in sys.argv[3:]])
    else:
        main(pathlib.Path(sys.argv[1]).absolute(), *sys.argv[2:])
