import type { Certificate } from "../../archive/manifest/manifest.ts";

/** Proofs that a user can require, weakest first; `any` accepts whatever the gateway allows. */
export const requiredProofs = ["any", "counted", "hashed"] as const;
export type RequiredProof = (typeof requiredProofs)[number];

const strength: Readonly<Record<Certificate["proof"], number>> = {
  none: 0,
  exhausted: 1,
  counted: 2,
  hashed: 3,
};

/** The weaker of two proofs: it holds for rows proven by either. */
export function weakerProof(a: Certificate["proof"], b: Certificate["proof"]): Certificate["proof"] {
  return strength[a] < strength[b] ? a : b;
}

/** Whether a proof is as strong as the one required. */
export function isProofEnough(proof: Certificate["proof"], required: RequiredProof): boolean {
  return strength[proof] >= strength[required === "any" ? "exhausted" : required];
}
