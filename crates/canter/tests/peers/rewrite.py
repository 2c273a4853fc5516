"""Writes a recording anew by the library that others read it with: rewrite.py IN OUT, both .mf4 or both .parquet."""
import sys

if sys.argv[1].endswith(".mf4"):
    from asammdf import MDF

    with MDF(sys.argv[1]) as mdf:
        mdf.configure(write_fragment_size=64 << 10)
        mdf.save(sys.argv[2], compression=1, overwrite=True)
else:
    import pyarrow.parquet as parquet

    # One file, not its folders: these become columns.
    table = parquet.ParquetFile(sys.argv[1]).read()
    parquet.write_table(table, sys.argv[2], compression="zstd", row_group_size=1000)
