/** Types of the endpoints' answers; nothing of the endpoints is loaded by the browser. */
import type { actionEndpoints } from "#gateway/operations/api/actions.ts";
import type {
  AttentionGroup,
  AttentionItem,
  attentionEndpoints,
  Action as OneAction,
} from "#gateway/operations/api/attention.ts";
import type { configurationEndpoints } from "#gateway/operations/api/configuration.ts";
import type { dropEndpoints } from "#gateway/operations/api/drops.ts";
import type { AnswerOf, Shown } from "#gateway/operations/api/endpoint.ts";
import type { fileEndpoints } from "#gateway/operations/api/files.ts";
import type { LiveEvents as Events } from "#gateway/operations/api/live.ts";
import type { migrationEndpoints } from "#gateway/operations/api/migrations.ts";
import type { overviewEndpoints } from "#gateway/operations/api/overview.ts";
import type { peopleEndpoints } from "#gateway/operations/api/people.ts";
import type { playgroundEndpoints } from "#gateway/operations/api/playground.ts";
import type { readingEndpoints } from "#gateway/operations/api/readings.ts";
import type { triggerEndpoints } from "#gateway/operations/api/triggers.ts";

export type Me = AnswerOf<typeof peopleEndpoints.me>;

export type Action = OneAction;
export type Attention = AnswerOf<typeof attentionEndpoints.attention>;
export type Group = Shown<AttentionGroup>;
export type Item = Shown<AttentionItem>;

type Previews = AnswerOf<typeof actionEndpoints.preview>;
export type Preview = Previews["items"][number];
export type PreviewDetail = NonNullable<Preview["detail"]>;
export type ReplayDetail = Extract<PreviewDetail, { readonly action: "replay" }>;
export type Done = AnswerOf<typeof actionEndpoints.command>["items"][number];
export type Subject = Preview["subject"];

export type FilesFound = AnswerOf<typeof fileEndpoints.files>;
export type FileRow = FilesFound["files"][number];
export type FilePage = AnswerOf<typeof fileEndpoints.file>;
export type FileRun = FilePage["runs"][number];
export type InputPage = AnswerOf<typeof fileEndpoints.fileInput>;
export type Readings = AnswerOf<typeof fileEndpoints.fileReadings>;
export type Payload = AnswerOf<typeof fileEndpoints.filePayload>;
export type Origin = AnswerOf<typeof readingEndpoints.readingOrigin>["found"][number];
export type Spot = NonNullable<Item["place"]>;

export type MapperFacts = AnswerOf<typeof playgroundEndpoints.mappers>[number];
export type Mapped = AnswerOf<typeof playgroundEndpoints.map>;
export type Proposed = AnswerOf<typeof playgroundEndpoints.propose>;

export type Overview = AnswerOf<typeof overviewEndpoints.overview>;
export type History = AnswerOf<typeof overviewEndpoints.history>;
export type Calendar = AnswerOf<typeof overviewEndpoints.calendar>;

export type DropFacts = AnswerOf<typeof dropEndpoints.drops>[number];
export type Finding = AnswerOf<typeof dropEndpoints.check>[number];
export type HostKeys = AnswerOf<typeof dropEndpoints.hostKey>;

export type TriggerFacts = AnswerOf<typeof triggerEndpoints.triggers>[number];
export type NameTest = AnswerOf<typeof triggerEndpoints.test>;
export type MapperRuns = AnswerOf<typeof playgroundEndpoints.mapperRuns>;

export type Configuration = AnswerOf<typeof configurationEndpoints.configuration>;
export type Validation = AnswerOf<typeof configurationEndpoints.validate>;

export type LiveEvents = Shown<Events>;

export type MigrationFacts = AnswerOf<typeof migrationEndpoints.migrations>[number];
export type MigrationPlaces = AnswerOf<typeof migrationEndpoints.places>;
export type UndoPreview = AnswerOf<typeof migrationEndpoints.previewUndo>;
