/** Registers and statuses in the words of three languages. */
import { plain } from "./columns.ts";

const REGISTER_WORDS: Readonly<Record<string, string>> = {
  afname: "offtake",
  offtake: "offtake",
  prelevement: "offtake",
  consommation: "offtake",
  injectie: "injection",
  injection: "injection",
  dag: "day",
  day: "day",
  jour: "day",
  nacht: "night",
  night: "night",
  nuit: "night",
  actief: "active",
  active: "active",
  actif: "active",
  reactief: "reactive",
  reactive: "reactive",
  inductief: "inductive",
  inductive: "inductive",
  inductif: "inductive",
  capacitief: "capacitive",
  capacitive: "capacitive",
  capacitif: "capacitive",
  piekvermogen: "peak-power",
};

/** `Afname Dag` is `offtake-day`; unknown words stay, in lower case. */
export function registerOf(text: string): string {
  return plain(text)
    .split(" ")
    .map((word) => (Object.hasOwn(REGISTER_WORDS, word) ? REGISTER_WORDS[word] : word))
    .join("-");
}

const STATUSES: Readonly<Record<string, string>> = {
  gevalideerd: "validated",
  validated: "validated",
  valide: "validated",
  uitgelezen: "read",
  read: "read",
  lu: "read",
  geschat: "estimated",
  estimated: "estimated",
  estime: "estimated",
  "geen verbruik": "no-consumption",
  "no consumption": "no-consumption",
  "pas de consommation": "no-consumption",
};

/** The status as a word; unknown words stay, in lower case. */
export function statusOf(text: string): string {
  const word = plain(text);
  return Object.hasOwn(STATUSES, word) ? (STATUSES[word] ?? word) : word;
}

export const GOOD: ReadonlySet<string> = new Set(["", "validated", "read"]);

const CALORIFIC: Readonly<Record<string, string>> = {
  voorlopig: "provisional",
  provisional: "provisional",
  provisoire: "provisional",
  definitief: "final",
  final: "final",
  definitif: "final",
};

/** Whether the energy of gas was computed with a provisional or the final calorific value. */
export function calorificOf(text: string): string {
  const word = plain(text);
  return Object.hasOwn(CALORIFIC, word) ? (CALORIFIC[word] ?? word) : word;
}
