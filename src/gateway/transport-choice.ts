/** How to speak to a gateway; `auto` finds out what it offers. */
export const transportChoices = ["auto", "rest", "rpc"] as const;
export type TransportChoice = (typeof transportChoices)[number];
