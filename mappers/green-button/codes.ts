/** Code lists of ESPI (NAESB REQ.21), as far as readings need them. */

/** UnitSymbol codes to symbols. */
export const UNITS: Readonly<Record<string, string>> = {
  "5": "A",
  "29": "V",
  "31": "J",
  "33": "Hz",
  "38": "W",
  "42": "m³",
  "61": "VA",
  "63": "var",
  "71": "VAh",
  "72": "Wh",
  "73": "varh",
  "106": "Ah",
  "119": "ft³",
  "125": "m³/h",
  "128": "gal",
  "130": "imp gal",
  "132": "Btu",
  "133": "Btu/h",
  "134": "L",
  "137": "L/h",
  "155": "Pa",
  "169": "thm",
};

export const COMMODITIES: Readonly<Record<string, string>> = {
  "0": "none",
  "1": "electricity",
  "4": "air",
  "7": "gas",
  "8": "propane",
  "9": "water",
  "10": "steam",
  "11": "wastewater",
  "12": "heat",
  "13": "cold",
};

export const KINDS: Readonly<Record<string, string>> = {
  "0": "none",
  "3": "currency",
  "4": "current",
  "8": "demand",
  "12": "energy",
  "15": "frequency",
  "37": "power",
  "38": "powerFactor",
  "40": "quantityPower",
  "54": "voltage",
  "155": "volumetricFlow",
};

/** Kind of a reading type that holds money. */
export const CURRENCY_KIND = "3";

/** From the view of the customer's meter: forward is delivered to the customer. */
export const FLOWS: Readonly<Record<string, string>> = {
  "0": "none",
  "1": "delivered",
  "4": "net",
  "19": "received",
  "20": "total",
};

export const QUALITIES: Readonly<Record<string, string>> = {
  "0": "valid",
  "7": "manually-edited",
  "8": "estimated-using-reference-day",
  "9": "estimated-using-linear-interpolation",
  "10": "questionable",
  "11": "derived",
  "12": "projected",
  "13": "mixed",
  "14": "raw",
  "15": "normalized-for-weather",
  "16": "other",
  "17": "validated",
  "18": "verified",
  "19": "revenue-quality",
};

/** Qualities that report no problem. */
export const GOOD: ReadonlySet<string> = new Set(["0", "17", "18", "19"]);

/** Codes that a list lacks stay numbers. */
export function named(list: Readonly<Record<string, string>>, code: string): string {
  return Object.hasOwn(list, code) ? (list[code] ?? code) : code;
}
