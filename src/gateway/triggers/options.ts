import { z } from "zod";
import { duration } from "#core/quantities.ts";
import { fileTrigger } from "#wire/trigger.ts";
import { FINISH_AFTER } from "../states.ts";
import { expectOptions } from "./expectation.ts";

const wire = fileTrigger.shape;

/** A VersionTag: free text for the service; visible characters here, since people type it again. */
export const versionTag = z
  .string()
  .regex(/^[^\p{C}\s](?:[^\p{C}]{0,198}[^\p{C}\s])?$/u, "expected 1 to 200 visible characters");

/** The specification's fields under its names, with the fields of Headgate beside them. */
export const triggerOptions = z.strictObject({
  from: z.literal("file").optional().describe("file, or left out: this entry is the trigger itself."),
  name: z
    .string()
    .min(1)
    .describe("Name of the trigger, for logs, runs and metrics; unique.")
    .meta({ examples: ["monthly"] }),
  mapper: z
    .string()
    .min(1)
    .describe("Name of the mapper that turns the file into readings.")
    .meta({ examples: ["standard"] }),
  service: z
    .string()
    .min(1)
    .optional()
    .describe("Name of the service that the readings go to. May be left out when there is only one."),
  rows: z
    .enum(["strict", "lenient"])
    .default("strict")
    .describe(
      "strict: one bad row keeps the whole file back, in quarantine. lenient: the good rows are " +
        "pushed and the bad ones reported.",
    ),
  rejectShare: z
    .number()
    .min(0)
    .max(1)
    .default(0.1)
    .describe(
      "With rows: lenient, the share of a file's rows, from 0 to 1, that may be refused. Above it " +
        "nothing of the file is pushed, as if it were strict: so many bad rows rather mean another " +
        "format. 1 tolerates all but a file without any good row.",
    )
    .meta({ examples: [0.01, 1] }),
  empty: z
    .literal("expected")
    .optional()
    .describe(
      "A file whose rows are all left out, by settings of its mapper or because they stand for no value, needs " +
        "attention. expected: such files are usual.",
    ),
  drops: z
    .array(z.string().min(1))
    .min(1)
    .optional()
    .describe("Names of the drops whose files this trigger may claim; all of them when left out."),
  lane: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Runs of one lane that share a target deliver in the order of their arrival. By default a lane " +
        "is one drop and one trigger; triggers that name the same lane share it.",
    ),
  version: z
    .union([z.enum(["run"]), z.strictObject({ tag: versionTag })])
    .optional()
    .describe(
      "run: readings that the mapper gives no version carry the id of their run as VersionTag, so " +
        "that a delivery can be distinguished from others, and sent again replaces its own entry instead of " +
        "making a further version. A replay is a run of its own, and so has a tag of its own. `{ tag: " +
        "TEXT }`: they carry this tag, and whatever is delivered with it later replaces them.",
    ),
  operationPrefix: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,64}$/, "expected up to 64 letters, digits, dots, hyphens or underscores")
    .optional()
    .describe("Goes in front of the operation ids of this trigger's runs.")
    .meta({ examples: ["plant-7"] }),
  finishAfter: z
    .enum(FINISH_AFTER)
    .optional()
    .describe(
      "When the source file may be archived or deleted: once the service accepted every batch, or " +
        "once it is known that all is stored. By default accepted for archiving, confirmed for " +
        "deleting.",
    ),
  expect: expectOptions
    .optional()
    .describe(
      "When a file is expected. A missing one becomes a warning in runs, health and metrics, and a " +
        "webhook where one is configured.",
    ),
  fileNamePatternMatches: wire.fileNamePatternMatches
    .describe("Conditions on the base name of the file, case-sensitive. An empty list matches nothing.")
    .meta({ examples: [[{ filterType: "StartsWith", value: "acme_" }]] }),
  fileTriggerCombination: wire.fileTriggerCombination.describe("And: every condition must hold. Or: any one."),
  fileType: wire.fileType.describe("Format of the file, as the service names it."),
  ingestionType: wire.ingestionType.describe(
    "How the file came: SendViaFtp for local, SFTP and FTP drops, UploadInStorage for POST /storage, " +
      "SendViaHttp for POST /api/generic.",
  ),
  triggerType: wire.triggerType.describe("Added: fires when a matching file appears."),
  state: wire.state.describe("Active and Updated fire; Inactive and Deleted do not."),
  token: wire.token.describe("GUID of the trigger, as the route POST /api/generic/{guid} names it."),
  metadata: wire.metadata.describe("Settings for the mapper."),
});
export type TriggerOptions = z.output<typeof triggerOptions>;

/** The settings of a trigger that its service cannot know, for all triggers of that service. */
const forAll = triggerOptions.pick({
  rows: true,
  rejectShare: true,
  empty: true,
  version: true,
  operationPrefix: true,
  finishAfter: true,
}).shape;

const EVERY_LEAST_MS = 10;

/** An entry of the section that stands for all triggers of an account at its service. */
export const serviceTriggersOptions = z.strictObject({
  from: z.literal("service").describe("service: this entry stands for all triggers of the account at its service."),
  service: z
    .string()
    .min(1)
    .optional()
    .describe("Name of the service whose triggers are read, and that their readings go to."),
  every: duration("5m")
    .refine((ms) => ms >= EVERY_LEAST_MS, `expected at least ${EVERY_LEAST_MS}ms`)
    .describe(
      "How often the triggers are read. A change at the service takes effect within this time, without a restart. " +
        "While the service cannot be reached, the triggers that it listed last stay in force.",
    ),
  confirmEmpty: z
    .int()
    .positive()
    .default(3)
    .describe(
      "How many readings, `every` apart, must find no trigger at all before those that the service listed before are " +
        "given up: a service that lost its data must not leave every file unmatched. 3 by default; 1: at once.",
    ),
  mappings: z
    .record(z.string().min(1), z.string().min(1))
    .default({})
    .describe(
      "Mappers by the names of mappings at the service. A mapping that is not named here is the mapper of the same " +
        "name. A trigger without a mapping is bound by its file type, such as `IndexIs`; unless named here, " +
        "OpisenseStandard is the mapper `standard`, and OpisenseManualLoad and IndexIs are `meter-index`.",
    )
    .meta({ examples: [{ "ACME hourly v2": "acme-hourly" }] }),
  drops: triggerOptions.shape.drops.describe(
    "Names of the drops whose files these triggers may claim; all of them when left out.",
  ),
  ...forAll,
});
export type ServiceTriggersOptions = z.output<typeof serviceTriggersOptions>;

/** The section, for entries that may have more fields than those above. */
export function triggerList<Trigger extends typeof triggerOptions, FromService extends typeof serviceTriggersOptions>(
  trigger: Trigger,
  fromService: FromService,
) {
  const entry = z.discriminatedUnion("from", [trigger, fromService]);
  return z
    .union([z.array(entry), fromService.transform((one) => [one])])
    .default([])
    .describe(
      "Rules that claim files by their names. When several match, the first in this order claims. An entry " +
        "`from: service` stands for the triggers that the account has at its service, in the order of their ids; " +
        "instead of a list, that entry alone may be given.",
    );
}

export const triggersOptions = triggerList(triggerOptions, serviceTriggersOptions);
