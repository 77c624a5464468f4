/** The words of the configuration. */
import { many } from "./numbers.ts";

export const CONFIGURATION = {
  file: "In force:",
  settings: "Settings",
  search: "Search",
  withDefaults: "Defaults, too",
  hidden: "hidden",
  found: (count: number) => many(count, "setting", "settings"),
  sources: { given: "given", default: "default" },
  columns: {
    ...{ path: "Setting", value: "Value", source: "Source", at: "At", result: "Result", changed: "Changed settings" },
  },
  reloads: "Changes since the start",
  noReloads: "The configuration was not changed since the start.",
  results: { "in force": "In force", refused: "Refused" },
  validation: "Check a text",
  text: "Configuration",
  textHint: "It is neither kept nor applied, and what ${env:…} and ${file:…} name is not read.",
  pasteFirst: "Paste a configuration first.",
  validate: "Check",
  valid: "This is a valid configuration.",
  invalid: "This is no valid configuration.",
  line: (line: number) => `line ${line}`,
};
