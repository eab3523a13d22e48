"""Pages whole tables of a run over Connect in binary, with modules generated from the project's proto files.

Arguments: folder of the modules, address, instance, run, page size, tables. Prints one JSON object a row: its table and
its fields, integers as text and doubles as the hexadecimal text of their bits, so that nothing is rounded on the way.
"""

import json
import struct
import sys

modules, address, instance, run, page_size, *tables = sys.argv[1:]
sys.path.insert(0, modules)

from example.history.v1.history_service_connect import HistoryServiceClientSync  # noqa: E402
from example.history.v1.history_service_pb import PreviewTableRequest, RowSelection  # noqa: E402


def shown(value):
    if isinstance(value, float):
        return struct.pack(">d", value).hex()
    return str(value)


with HistoryServiceClientSync(address) as client:
    for table in tables:
        token = ""
        while True:
            page = client.preview_table(
                PreviewTableRequest(
                    table=table,
                    selection=RowSelection(instance_id=instance, run_id=run),
                    page_size=int(page_size),
                    page_token=token,
                )
            )
            for preview in page.rows:
                row = preview.row.value
                fields = {name: shown(getattr(row, name)) for name in type(row).__slots__}
                print(json.dumps({"table": table, "fields": fields}))
            token = page.next_page_token
            if token == "":
                break
