"""Reads tables of a run over HTTP the ways that people do in Python: requests or urllib, and each kind of data frame.

Standard input: a JSON object with base, instance, run, tables (name, path and columns with their kinds), readers, and,
where wanted, token and verify. Prints one JSON object a table and reader: rows, the count that the header promised, the
sums of the exact columns by the reader's own arithmetic, the first and the last row, and a hash over all rows. Values
are shown as on the wire, doubles as the hexadecimal text of their bits, times as UNIX nanoseconds.
"""

import decimal
import hashlib
import io
import json
import math
import os
import struct
import sys
import tempfile

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import requests

decimal.getcontext().prec = 76
asked = json.load(sys.stdin)
ndjson = "application/x-ndjson"
arrow = "application/vnd.apache.arrow.stream"
csv = "text/csv"

session = requests.Session()
session.trust_env = False
if "token" in asked:
    session.headers["Authorization"] = "Bearer " + asked["token"]
if "verify" in asked:
    session.verify = asked["verify"]


def get(table, accept, stream=False, **headers):
    response = session.get(
        asked["base"] + table["path"],
        params={"instance": asked["instance"], "run_id": asked["run"]},
        headers={"Accept": accept, **headers},
        stream=stream,
        timeout=60,
    )
    response.raise_for_status()
    assert response.headers["content-type"].split(";")[0] == accept, response.headers
    return response


def exact(value):
    """An exact number in the canonical text: no exponent, no trailing zeros; nothing where there is none."""
    if value is None or value == "":
        return ""
    text = format(decimal.Decimal(value), "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def double(value):
    value = float(value)
    return "NaN" if math.isnan(value) else struct.pack(">d", value).hex()


def shown(kind, value):
    if kind == "exact":
        return exact(value)
    if kind == "double":
        return double(value)
    if kind == "string":
        assert isinstance(value, str), value
        return value
    return str(int(value))


def names_of(table, kind):
    return [name for name, its in table["columns"] if its == kind]


def filled(values):
    """What a table lacks, as None: pandas and Arrow have marks of their own for it."""
    return [None if value is None or value is pd.NA else value for value in values]


# each reader gives the count promised, columns of values, and sums of the exact columns


def ndjson_json(table):
    response = get(table, ndjson, stream=True)
    rows = [json.loads(line) for line in response.iter_lines()]
    columns = {name: [row[name] for row in rows] for name, _ in table["columns"]}
    sums = {name: sum(map(decimal.Decimal, filter(None, columns[name]))) for name in names_of(table, "exact")}
    return response, columns, sums


def ndjson_pandas(table):
    response = get(table, ndjson)
    frame = pd.read_json(io.BytesIO(response.content), lines=True, dtype=False, precise_float=True)
    return response, *of_text_frame(table, frame)


def ndjson_pandas_by_address(table):
    """pandas asks by itself, with urllib."""
    query = "instance={instance}&run_id={run}".format(**asked)
    options = {"Authorization": "Bearer " + asked["token"]} if "token" in asked else None
    address = asked["base"] + table["path"] + "?" + query
    frame = pd.read_json(address, lines=True, dtype=False, precise_float=True, storage_options=options)
    return None, *of_text_frame(table, frame)


def of_text_frame(table, frame):
    assert list(frame.columns) == [name for name, _ in table["columns"]], frame.columns
    sums = {name: frame[name].map(lambda text: decimal.Decimal(text or 0)).sum() for name in names_of(table, "exact")}
    return {name: frame[name].tolist() for name in frame.columns}, sums


def ndjson_polars(table):
    response = get(table, ndjson)
    frame = pl.read_ndjson(io.BytesIO(response.content), infer_schema_length=None)
    return response, frame.to_dict(as_series=False), text_sums(table, frame)


def text_sums(table, frame):
    """Exact sums by polars of numbers that came as texts."""
    names = names_of(table, "exact")
    numbers = [pl.when(pl.col(name) != "").then(pl.col(name)).cast(pl.Decimal(38, 18)).sum() for name in names]
    return frame.select(numbers).rows(named=True)[0] if names else {}


def ndjson_duckdb(table):
    response = get(table, ndjson, stream=True)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "rows.ndjson")
        with open(file, "wb") as out:
            for chunk in response.iter_content(1 << 16):
                out.write(chunk)
        types = {name: "DOUBLE" for name in names_of(table, "double")}
        rows = duckdb.read_json(file)
        # NaN is a text in JSON, so that DuckDB is told what a double is
        list_of = ", ".join(f'"{name}"::{types.get(name, "VARCHAR")} AS "{name}"' for name in rows.columns)
        found = rows.select(list_of)
        return response, columns_of(found), sums_of(found, table, lambda name: f"nullif({name}, '')::DECIMAL(38,18)")


def columns_of(relation):
    rows = relation.fetchall()
    return {name: [row[i] for row in rows] for i, name in enumerate(relation.columns)}


def sums_of(relation, table, number):
    names = names_of(table, "exact")
    if not names:
        return {}
    sums = relation.aggregate(", ".join(f"sum({number(name)})" for name in names)).fetchall()[0]
    return dict(zip(names, sums))


def arrow_pyarrow(table):
    response = get(table, arrow, stream=True)
    response.raw.decode_content = True
    found = pa.ipc.open_stream(response.raw).read_all()
    types = {field.name: str(field.type) for field in found.schema}
    for name, kind in table["columns"]:
        if kind == "timestamp":
            assert types[name] == "timestamp[ns]", types
        if kind == "exact":
            assert types[name].startswith("decimal128("), types
    columns = {
        name: (found[name].cast(pa.int64()) if kind == "timestamp" else found[name]).to_pylist()
        for name, kind in table["columns"]
    }
    return response, columns, {name: pc.sum(found[name]).as_py() for name in names_of(table, "exact")}


def arrow_polars(table):
    response = get(table, arrow)
    frame = pl.read_ipc_stream(response.content)
    plain = frame.with_columns(pl.col(name).to_physical() for name in names_of(table, "timestamp"))
    numbers = names_of(table, "exact")
    sums = frame.select(pl.col(numbers).sum()).rows(named=True)[0] if numbers else {}
    return response, plain.to_dict(as_series=False), sums


def arrow_duckdb(table):
    response = get(table, arrow, stream=True)
    response.raw.decode_content = True
    reader = pa.ipc.open_stream(response.raw)
    rows = duckdb.from_arrow(reader.read_all())
    columns = ", ".join(
        f'epoch_ns("{name}") AS "{name}"' if kind == "timestamp" else f'"{name}"' for name, kind in table["columns"]
    )
    return response, columns_of(rows.select(columns)), sums_of(rows, table, lambda name: f'"{name}"')


def arrow_pandas(table):
    response = get(table, arrow)
    frame = pa.ipc.open_stream(response.content).read_all().to_pandas(types_mapper=pd.ArrowDtype)
    columns = {
        name: filled(frame[name].astype("int64[pyarrow]") if kind == "timestamp" else frame[name])
        for name, kind in table["columns"]
    }
    return response, columns, {name: frame[name].sum() for name in names_of(table, "exact")}


def csv_pandas(table):
    response = get(table, csv)
    frame = pd.read_csv(io.StringIO(response.text), dtype=str, keep_default_na=False)
    for name in names_of(table, "timestamp"):
        frame[name] = pd.to_datetime(frame[name]).astype("datetime64[ns, UTC]").astype("int64")
    return response, *of_text_frame(table, frame)


def csv_polars(table):
    response = get(table, csv)
    frame = pl.read_csv(io.BytesIO(response.content), infer_schema=False).fill_null("")
    texts = pl.col(names_of(table, "timestamp"))
    times = texts.str.to_datetime(time_unit="ns", time_zone="UTC").to_physical()
    return response, frame.with_columns(times).to_dict(as_series=False), text_sums(table, frame)


readers = {
    "ndjson, json": ndjson_json,
    "ndjson, pandas": ndjson_pandas,
    "ndjson, pandas by address": ndjson_pandas_by_address,
    "ndjson, polars": ndjson_polars,
    "ndjson, duckdb": ndjson_duckdb,
    "arrow, pyarrow": arrow_pyarrow,
    "arrow, polars": arrow_polars,
    "arrow, duckdb": arrow_duckdb,
    "arrow, pandas": arrow_pandas,
    "csv, pandas": csv_pandas,
    "csv, polars": csv_polars,
}

for table in asked["tables"]:
    for name in asked.get("readers", readers):
        response, columns, sums = readers[name](table)
        fields = [[shown(kind, value) for value in columns[column]] for column, kind in table["columns"]]
        rows = list(zip(*fields))
        text = "".join("\x1f".join(row) + "\n" for row in rows)
        seen = {
            "table": table["name"],
            "reader": name,
            "rows": len(rows),
            "sums": {column: exact(sums[column] or 0) for column in names_of(table, "exact")},
            "first": rows[0],
            "last": rows[-1],
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
        }
        if response is not None:
            seen["promised"] = int(response.headers["runvault-rows"])
        print(json.dumps(seen))
