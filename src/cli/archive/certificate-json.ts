import type { Certificate } from "../../archive/manifest/manifest.ts";

/**
 * A certificate in a report. Counts are numbers, as elsewhere in it (the manifest keeps 64-bit counts as text); times,
 * keys and sums of hashes stay text.
 */
export function certificateJson(certificate: Certificate) {
  const { gatewayRows, rowHash } = certificate;
  return {
    ...certificate,
    gatewayRows: gatewayRows === null ? null : Number(gatewayRows),
    rowHash: rowHash === null ? null : { ...rowHash, rows: Number(rowHash.rows) },
  };
}
