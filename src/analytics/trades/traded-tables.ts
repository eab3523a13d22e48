import { commonDecimal } from "../../duckdb/exact-vector.ts";
import { type DecimalType, type ExactTypes, exactType } from "../../model/profile/exact-types.ts";
import type { TableName } from "../../model/profile/table.ts";

/** The tables from which trades are computed. */
export const tradedTables = ["fills", "bars", "equity"] as const satisfies readonly TableName[];

/** The type that prices of fills and bars are read as, so that they can be compared. */
export function pricesTogether(exactTypes: (table: TableName) => ExactTypes): DecimalType {
  const ofBars = ["low", "high", "close"].map((column) => exactType(exactTypes("bars"), column));
  return commonDecimal([exactType(exactTypes("fills"), "price"), ...ofBars]);
}
