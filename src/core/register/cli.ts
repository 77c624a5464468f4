/** The codes of the command line; a section of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

export const COMMAND_ERRORS = {
  "HG-CLI-001": {
    title: "an option has a value that it cannot have",
    hint: "`headgate COMMAND --help` shows the options with an example.",
  },
  "HG-CLI-002": {
    title: "nothing has this name",
    hint: "`headgate runs` lists the runs; a file that was never seen at a drop is not in the ledger.",
  },
  "HG-CLI-003": {
    title: "there is no ledger yet",
    hint: "Start the gateway first: `headgate gateway -c FILE`, or the hub that it is inside: `headgate hub -c FILE`.",
  },

  "HG-CLI-004": {
    title: "the samples are not here",
    hint: "The demo runs from a checkout of the project; the published package comes without `samples/`.",
  },
  "HG-CLI-005": {
    title: "this folder exists and is not the demo's",
    hint: "It was left unchanged. Name another folder with --state, or move this one away.",
  },

  "HG-CLI-006": {
    title: "the file cannot be mapped",
    hint: "Correct the file or the settings of the mapper; the place is named before the reason.",
  },
  "HG-CLI-007": {
    title: "another demo is running in this folder",
    hint: "End the other one, or name another folder for this one with --state.",
  },
  "HG-CLI-008": {
    title: "the folder of the demo cannot be used",
    hint: "Check that this user may write there, or name another folder with --state.",
  },
  "HG-CLI-009": {
    title: "the file exists already",
    hint: "It was left unchanged. Name another file with --output, or move this one away.",
  },
} as const satisfies Record<string, RegisterEntry>;
