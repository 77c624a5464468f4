/** Types of the endpoints' answers; nothing of the endpoints is loaded by the browser. */
import type {
  AttentionGroup,
  AttentionItem,
  attentionEndpoints,
  Action as OneAction,
} from "../../operations/api/attention.ts";
import type { dropEndpoints } from "../../operations/api/drops.ts";
import type { AnswerOf, Shown } from "../../operations/api/endpoint.ts";
import type { fileEndpoints } from "../../operations/api/files.ts";
import type { overviewEndpoints } from "../../operations/api/overview.ts";
import type { peopleEndpoints } from "../../operations/api/people.ts";
import type { playgroundEndpoints } from "../../operations/api/playground.ts";
import type { readingEndpoints } from "../../operations/api/readings.ts";
import type { triggerEndpoints } from "../../operations/api/triggers.ts";

export type Me = AnswerOf<typeof peopleEndpoints.me>;

export type Action = OneAction;
export type Attention = AnswerOf<typeof attentionEndpoints.attention>;
export type Group = Shown<AttentionGroup>;
export type Item = Shown<AttentionItem>;

export type Subject =
  | { readonly run: string }
  | { readonly drop: string; readonly path: string }
  | { readonly kind: "drop" | "trigger"; readonly name: string };

interface Answered<Status> {
  readonly subject: Subject;
  readonly status: Status;
  readonly words: string;
  readonly code: string | null;
  readonly hint: string | null;
}

export interface Preview extends Answered<"ok" | "refused"> {
  readonly detail: PreviewDetail | null;
}

export interface Done extends Answered<"done" | "refused"> {
  readonly run: string | null;
}

export interface ReplayDetail {
  readonly action: "replay";
  readonly trigger: string;
  readonly mapper: string;
  readonly readings: Readonly<
    Record<"mapped" | "sent" | "added" | "changed" | "unchanged" | "acceptedBefore" | "dropped", number>
  >;
  readonly refusedRows: number;
  readonly differences: readonly {
    readonly target: string;
    readonly date: string;
    readonly version: string | null;
    readonly before: number | null;
    readonly after: number | null;
  }[];
  readonly later: readonly (Readonly<Record<"run" | "file" | "from" | "to", string>> & { readonly readings: number })[];
  readonly notKept: readonly string[];
}

type Counted<Action extends string, Names extends string> = { readonly action: Action } & Readonly<
  Record<Names, number>
>;
export type PreviewDetail =
  | ReplayDetail
  | (Counted<"provision", "count"> & Readonly<Record<"creates" | "impossible", readonly string[]>>)
  | (Counted<"release", "readings" | "discards"> & { readonly overtaken: string | null })
  | Counted<"cancel", "acceptedPoints" | "unanswered">
  | Counted<"forget", "versions" | "runs" | "acceptedPoints" | "unanswered">;

export type FileRow = AnswerOf<typeof fileEndpoints.files>["files"][number];
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
