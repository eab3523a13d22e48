import json
import sys
import pyarrow as pa, pyarrow.parquet as pq, requests

base, out = sys.argv[1:]
tables = ["fills", "orders", "bars", "order-book", "factors", "events", "portfolio/equity", "portfolio/metrics"]
for instance in requests.get(f"{base}/instances").json()["instances"]:
    name = instance["instanceId"]
    for run in requests.get(f"{base}/history/runs", {"instance": name}).json()["runs"]:
        asked = {"instance": name, "run_id": run["run_id"]}
        for table in tables:
            with requests.get(f"{base}/history/{table}", asked, stream=True) as answer:
                rows = [json.loads(line) for line in answer.iter_lines()]
            pq.write_table(pa.Table.from_pylist(rows), f"{out}/{table.replace('/', '-')}.{name}.{run['run_id']}.parquet")
