import type { Certificate } from "../../archive/manifest/manifest.ts";

/**
 * A certificate in a report, where counts are numbers like those beside them; the manifest has what a gateway says in 64
 * bits as text. Times, keys and sums of hashes stay text, all of them.
 */
export function certificateJson(certificate: Certificate) {
  const { gatewayRows, rowHash } = certificate;
  return {
    ...certificate,
    gatewayRows: gatewayRows === null ? null : Number(gatewayRows),
    rowHash: rowHash === null ? null : { ...rowHash, rows: Number(rowHash.rows) },
  };
}
