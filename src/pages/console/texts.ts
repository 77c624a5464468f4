/** Every word that the console shows, here and in the folder beside, so that it can be translated in one place. */
import { CONFIGURATION } from "./texts/configuration.ts";
import { DROPS } from "./texts/drops.ts";
import { EVENTS } from "./texts/events.ts";
import { FILES } from "./texts/files.ts";
import { MIGRATIONS } from "./texts/migrations.ts";
import { files, many, plural } from "./texts/numbers.ts";
import { OVERVIEW, PLAYGROUND } from "./texts/tools.ts";
import { TRIGGERS } from "./texts/triggers.ts";

/** A column without a name is called `column 3` already. */
function columnWords(column: string): string {
  return /^column \d/.test(column) ? column : `column ${column}`;
}

/** Of files, in the order in which a filter lists them. */
const STANDINGS = {
  delivered: "Delivered",
  unconfirmed: "Unconfirmed",
  empty: "Empty",
  duplicate: "Duplicate",
  skipped: "Skipped",
  quarantined: "Quarantined",
  discarded: "Discarded",
  held: "Held",
  unmatched: "Unmatched",
  cancelled: "Cancelled",
  settling: "Settling",
  pending: "Pending",
};

export const TEXTS = {
  pages: {
    attention: "Needs attention",
    files: "Files",
    file: "File",
    readings: "Find a reading",
    overview: "Overview",
    drops: "Drops",
    triggers: "Triggers",
    playground: "Playground",
    configuration: "Configuration",
    migrations: "Migrations",
  },
  pagesLabel: "Pages",
  skip: "Skip to the content",
  menu: "Menu",
  notFound: "There is no such page",
  loading: "Loading …",
  more: "Show more",
  close: "Close",
  signOut: "Sign out",
  roles: { viewer: "viewer", operator: "operator" },
  viewerCannot: "Only an operator may do this; you are signed in as a viewer.",
  times: "Times:",
  showIn: (zone: string) => (zone === "UTC" ? "Show UTC" : `Show ${zone}`),
  connectionLost: "The connection to the gateway is interrupted. What is shown may be out of date.",
  ago: (length: string) => `${length} ago`,
  showRest: (length: number) => `Show all ${length.toLocaleString()} characters`,
  ofRows: (shown: number, all: number) => `${Math.min(shown, all).toLocaleString()} of ${all.toLocaleString()} rows`,
  faults: {
    unreachable: "The gateway cannot be reached.",
    ended: "Your session has ended.",
    signIn: "Sign in again",
  },
  place: {
    sheet: (name: string) => `sheet ${name}`,
    row: (row: number) => `row ${row}`,
    column: columnWords,
  },
  standings: Object.keys(STANDINGS),
  /** Of files, runs and concerns. */
  states: {
    ...STANDINGS,
    container: "Container",
    claimed: "Claimed",
    fetched: "Fetched",
    opened: "Opened",
    mapping: "Mapping",
    mapped: "Mapped",
    emptied: "All rows left out",
    delivering: "Delivering",
    accepted: "Accepted",
    confirmed: "Confirmed",
    occupied: "Changed after it was finished",
    finish: "Not archived or deleted",
    configuration: "Configuration refused",
    late: "Late",
    lane: "Lane waits",
    drop: "Drop in trouble",
    service: "Service in trouble",
    trigger: "Trigger in trouble",
    spool: "Spool",
    ok: "In order",
    paused: "Paused",
    trouble: "In trouble",
    done: "Done",
    refused: "Refused",
    missing: "Missing",
    "on-time": "On time",
  } as Readonly<Record<string, string>>,
  batchStates: {
    ready: "Ready",
    sending: "Sending",
    accepted: "Accepted",
    rejected: "Rejected",
    split: "Split",
  },
  events: EVENTS,
  inbox: {
    none: "Nothing needs attention.",
    unmatched: (count: number) => `No trigger claims these ${count.toLocaleString()} files`,
    total: (total: number, isCut: boolean) =>
      `${isCut ? "More than " : ""}${many(total, "matter needs", "matters need")} attention.`,
    kinds: "Kinds",
    all: "All",
    count: (count: number) => `${count.toLocaleString()}×`,
    show: (count: number) => (count === 1 ? "Show it" : `Show ${count.toLocaleString()}`),
    hide: "Hide",
    of: (title: string) => `of ${title}`,
    since: "since",
    from: "from",
    to: "to",
    gateway: "Gateway",
    columns: { file: "File", reason: "Reason", affected: "Affected", since: "Since" },
    chooseAll: "Choose all that are shown",
    choose: (name: string) => `Choose ${name}`,
    shown: (shown: number, all: number) => `${shown.toLocaleString()} of ${all.toLocaleString()}`,
    mapped: (mapped: number, accepted: number) =>
      `${many(mapped, "reading", "readings")}${accepted === 0 ? "" : `, ${accepted.toLocaleString()} accepted`}`,
    discards: (count: number) => `${many(count, "reading", "readings")} would be discarded`,
    refused: (count: string, message: string, column: string | null) =>
      `${count} × ${column === null ? "" : `${columnWords(column)}: `}${message}`,
    andMore: (count: number) => `and ${count.toLocaleString()} more`,
    tryIt: "Try it in the playground",
  },
  actions: {
    label: "Actions",
    /** Names of the buttons, by the word of the command line that hints have. */
    named: {
      ...{ replay: "Replay…", provision: "Provision…", release: "Release…", recheck: "Check again…" },
      ...{ cancel: "Cancel the run…", forget: "Forget…", pause: "Pause…", resume: "Resume…" },
    } as Readonly<Record<string, string>>,
    chosen: (count: number, all: number) =>
      count === 0 ? "Choose files to act on them." : `${count.toLocaleString()} of ${all.toLocaleString()} chosen`,
    buttons: {
      replay: (count: number, isOne: boolean) => (isOne ? "Replay…" : `Replay ${count}…`),
      provision: (count: number, isOne: boolean) => (isOne ? "Provision…" : `Provision for ${count}…`),
      release: (count: number, isOne: boolean) => (isOne ? "Release…" : `Release ${count}…`),
      recheck: (count: number, isOne: boolean) => (isOne ? "Check again…" : `Check ${count} again…`),
      cancel: (count: number, isOne: boolean) => (isOne ? "Cancel the run…" : `Cancel ${count} runs…`),
      forget: (count: number, isOne: boolean) => (isOne ? "Forget…" : `Forget ${count}…`),
      pause: (count: number, isOne: boolean) => (isOne ? "Pause…" : `Pause ${count}…`),
      resume: (count: number, isOne: boolean) => (isOne ? "Resume…" : `Resume ${count}…`),
    },
    titles: {
      replay: (count: number, name: string) => `Replay ${count === 1 ? name : files(count)}`,
      provision: (count: number, name: string) => `Provision what ${count === 1 ? name : files(count)} needs`,
      release: (count: number, name: string) => `Release ${count === 1 ? name : files(count)}`,
      recheck: (count: number, name: string) => `Check ${count === 1 ? name : files(count)} again`,
      cancel: (count: number, name: string) => `Cancel ${count === 1 ? `the run of ${name}` : `${count} runs`}`,
      forget: (count: number, name: string) => `Forget ${count === 1 ? name : files(count)}`,
      pause: (count: number, name: string) => `Pause ${count === 1 ? name : count}`,
      resume: (count: number, name: string) => `Resume ${count === 1 ? name : count}`,
    },
    previewing: "Finding out what this would do …",
    waitForPreview: "The consequence is shown first.",
    byTrigger: (name: string) => `By trigger ${name}`,
    withRows: { strict: "Rows: strict", lenient: "Rows: lenient" },
    withMapper: (name: string) => `With mapper ${name}`,
    withSettings: "With the settings of the playground",
    options: {
      rejectedOnly: "Only readings that the service has not accepted",
      overwrite: "Overwrite dates that later files have delivered",
      discard: "Send readings that the service will discard, too",
    },
    optionHints: {
      rejectedOnly: "The others are left as they are.",
      overwrite: "Otherwise the values of later files stay.",
      overwriteOfRelease: "Otherwise what later files have delivered is left out.",
      discard: "Otherwise the run stays held while there are such readings.",
    },
    refusedCount: (refused: number, all: number) => `${refused} of ${all} would be refused; the others are performed.`,
    notPreviewed: (shown: number, all: number) =>
      `Shown for the first ${shown}; the same is done for all ${all.toLocaleString()}.`,
    typeName: (name: string) => `This cannot be undone. Type the path to confirm: ${name}`,
    typeCount: (count: number) => `This cannot be undone. Type the number of files to confirm: ${count}`,
    typeFirst: "Type the text above first.",
    why: "Why (optional)",
    whyHint: "Kept in the history with your name.",
    progress: (done: number, all: number) =>
      all > 50 ? `${done.toLocaleString()} of ${all.toLocaleString()} …` : "Working …",
    leave: "Leave as it is",
    result: (done: number, refused: number) =>
      refused === 0
        ? `Done: ${done.toLocaleString()}`
        : `Done: ${done.toLocaleString()}, refused: ${refused.toLocaleString()}`,
    follow: "Follow it",
  },
  consequence: {
    by: "By",
    creates: "This would be created:",
    impossible: "This cannot be created:",
    readings: (count: number) => plural(count, "reading", "readings"),
    discards: () => "would be discarded by the service",
    stays: (count: number) =>
      plural(count, "accepted reading stays at the service", "accepted readings stay at the service"),
    unanswered: (count: number) =>
      plural(count, "batch was sent and not answered", "batches were sent and not answered"),
    versions: (count: number) => plural(count, "version", "versions"),
    runs: (count: number) => plural(count, "run", "runs"),
    added: (count: number) => plural(count, "new reading", "new readings"),
    changed: (count: number) => plural(count, "changed reading", "changed readings"),
    unchanged: () => "sent again with the same value",
    acceptedBefore: () => "left out, since they were accepted before",
    dropped: () => "no longer in the file; they stay at the service",
    refusedRows: (count: number) => plural(count, "refused row", "refused rows"),
    noDifference: "No reading would change.",
    differences: "Readings that would change",
    columns: { target: "Target", date: "Date", version: "Version", before: "Before", after: "After" },
    none: "none",
    notSent: "not sent",
    later: (count: number) => `${many(count, "reading has", "readings have")} a later value, delivered by`,
    notKept: (count: number) => `The payload of ${many(count, "run", "runs")} is no longer kept, and not compared.`,
  },
  ...FILES,
  overview: OVERVIEW,
  configuration: CONFIGURATION,
  drops: DROPS,
  migrations: MIGRATIONS,
  triggers: TRIGGERS,
  playground: PLAYGROUND,
} as const;
