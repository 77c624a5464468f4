/** Code lists, as far as readings need them. */

/** Measurement units (UN/ECE Recommendation 20) to symbols. */
const UNITS: Readonly<Record<string, string>> = {
  WHR: "Wh",
  KWH: "kWh",
  MWH: "MWh",
  GWH: "GWh",
  WTT: "W",
  KWT: "kW",
  MAW: "MW",
  K3: "kvarh",
  KVH: "kvarh",
  MAH: "Mvarh",
  KVR: "kvar",
  MAR: "Mvar",
  KVA: "kVA",
  MVA: "MVA",
  MTQ: "m³",
  NM3: "Nm³",
  CEL: "°C",
  P1: "%",
  D54: "W/m²",
  MTS: "m/s",
  VLT: "V",
  AMP: "A",
  HTZ: "Hz",
};

/** The symbol of a unit code; an unknown code stays as it is, so that the check of units reports it. */
export function unitSymbol(code: string): string {
  const upper = code.toUpperCase();
  return Object.hasOwn(UNITS, upper) ? (UNITS[upper] ?? code) : code;
}

/** Quantity qualifiers (code list 6063, with those of EDI@Energy and Ediel) to words. */
const QUALITIES: Readonly<Record<string, string>> = {
  "220": "actual",
  "136": "actual",
  "67": "substituted",
  "99": "estimated",
  "201": "proposed",
  "187": "forecast",
  "20": "unusable",
  "79": "energy",
  Z18: "preliminary",
};

/** Quantities that a meter measured, or energies that were settled: they need no quality tag. */
export const GOOD: ReadonlySet<string> = new Set(["220", "136", "79"]);

export function qualityOf(qualifier: string): string {
  return Object.hasOwn(QUALITIES, qualifier) ? (QUALITIES[qualifier] ?? qualifier) : qualifier;
}
