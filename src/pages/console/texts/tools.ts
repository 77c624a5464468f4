/** The words of overview, drops, playground, configuration and migrations. */

export const OVERVIEW = {
  healthy: "All parts work, and nothing needs attention.",
  attention: (count: number) =>
    count === 1 ? "1 matter needs attention" : `${count.toLocaleString()} matters need attention`,
  health: "In trouble",
  flow: "Flow",
  drops: (count: number) => many(count, "drop", "drops"),
  servicesOf: (count: number) => many(count, "service", "services"),
  waitingFiles: "Files that wait",
  stages: { mapping: "Mapping", delivery: "Delivery", confirmation: "Confirmation" },
  waiting: "waiting",
  running: (count: number) => `${count.toLocaleString()} running`,
  rate: (rate: string) => `${rate} a minute`,
  history: "History",
  periods: { day: "24 hours", month: "30 days" },
  periodsLabel: "Period",
  series: { files: "Files", points: "Readings", errors: "Errors", delayMs: "Mean delay" },
  asTable: "The numbers as a table",
  steps: (step: string) => `Steps of ${step} in which something happened, the latest first`,
  noSteps: "Nothing happened in this time.",
  spool: "Spool",
  used: (used: string, budget: string) => `${used} of ${budget} used`,
  free: (free: string) => `${free} free on the disk`,
  nodes: "Nodes",
  thisNode: "this one",
  services: "Services",
  serviceStates: { up: "Up", down: "Down", unused: "Not used since the start" },
  breakers: { closed: "Closed", open: "Open: nothing is sent until it is tried again" },
  columns: {
    ...{ node: "Node", drops: "Drops", runs: "Runs", seen: "Last seen", service: "Service", state: "State" },
    ...{ from: "From", breaker: "Breaker", waiting: "Runs waiting", lastError: "Last error" },
  },
  calendar: "Expected files",
  noExpectations: "No trigger says when its files are expected (`expect`).",
  due: (due: string, status: string, arrived: string | null) =>
    `due ${due}: ${status}${arrived === null ? "" : `, came ${arrived}`}`,
};

export const PLAYGROUND = {
  lead: "See what a mapper makes of a file while you change its settings. Nothing is sent to a service.",
  source: "File",
  fileOf: "Input of",
  upload: "Choose a sample of this computer, or drop it here",
  uploading: "The sample is sent …",
  chooseSource: "Choose a sample, or open a file from the inbox.",
  chooseMapper: "Choose a mapper, or let settings be proposed.",
  mapper: "Mapper",
  none: "–",
  blank: "blank",
  yes: "yes",
  no: "no",
  required: "(required)",
  byDefault: (value: string) => `default: ${value}`,
  noJson: "This is not JSON.",
  noNumber: "This is not a number.",
  findSetting: "Find a setting",
  noSetting: "No setting was found.",
  moreSettings: (count: number) => many(count, "more setting", "more settings"),
  asJson: "All settings as JSON",
  rows: "Rows",
  rowsHint: "Strict: one refused row quarantines the file.",
  strict: "Strict",
  lenient: "Lenient",
  fileName: "Name of the file",
  fileNameHint: "Some mappers read the name. Empty: its own.",
  mapping: "The file is mapped …",
  result: "Result",
  toResult: "To the result",
  status: { mapped: "Mapped", failed: "Would be quarantined" },
  summary: (points: number, targets: number) =>
    `${many(points, "reading", "readings")} of ${many(targets, "target", "targets")}`,
  superseded: (count: number) =>
    `${many(count, "reading does", "readings do")} not count: the file repeats the target, date and version.`,
  views: { readings: "Readings", refused: "Refused rows", payload: "Payload", trigger: "Trigger as YAML", log: "Log" },
  viewsLabel: "Views of the result",
  noPayload: "There is no payload.",
  noLog: "The mapper wrote nothing.",
  noRefused: "No row was refused.",
  refusedRows: (shown: number, all: number) =>
    shown === all ? `${many(all, "refused row", "refused rows")}` : `${shown} of ${all.toLocaleString()} refused rows`,
  place: "Place",
  reason: "Reason",
  yamlHint: "A trigger of the configuration that maps files in this way:",
  copy: "Copy",
  copied: "Copied.",
  replay: "Replay with these settings…",
  noReplay: "The file cannot be replayed now.",
  mapFirst: "The file has to be mapped without fault first.",
  seeFile: "See the file",
  propose: "Propose settings",
  proposeHint: "Reads the table of the file, and finds the settings of a bundled mapper that fit it.",
  proposeZone: "Time zone of the file's dates",
  needsZone: "The dates carry no zone: name it first.",
  proposeNow: "Propose",
  noDeclarative: "No bundled mapper reads this file by settings alone.",
  declarative: (mapper: string) => `The mapper ${mapper} reads it.`,
  use: "Use these settings",
  assumed: "Assumed, since the sample does not say:",
  newMapper: "A new mapper for this file",
  case: "Keep as a case",
  caseLabel: "Name of the case",
  caseName: "Lower-case words joined by hyphens, such as summer-time",
  addCase: "Add the case",
  caseAdded: (name: string) => `The case ${name} was added.`,
  versions: "Versions of this mapper",
  columns: {
    ...{ version: "Version", runs: "Runs", quarantined: "In quarantine", first: "First run", last: "Last run" },
  },
};

/** Numbers with their noun. */
export function plural(value: number, one: string, more: string): string {
  return value === 1 ? one : more;
}

export function many(value: number, one: string, more: string): string {
  return `${value.toLocaleString()} ${plural(value, one, more)}`;
}

export function files(value: number): string {
  return many(value, "file", "files");
}
