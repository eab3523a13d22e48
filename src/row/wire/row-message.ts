import type { DescMessage } from "@bufbuild/protobuf";
import { file_example_history_v1_rows } from "../../gen/example/history/v1/rows_pb.ts";
import type { RowType } from "../../model/profile/table.ts";

const messages = new Map(file_example_history_v1_rows.messages.map((message) => [message.name, message]));

/** The protobuf message of a table's rows. */
export function rowMessage({ rowType }: { readonly rowType: RowType }): DescMessage {
  return messages.get(rowType)!;
}
