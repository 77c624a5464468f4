/** The words of migrations. */
export const MIGRATIONS = {
  none: "There are no migrations. `headgate migrate plan` begins one.",
  states: { planned: "Planned", running: "Running", stopped: "Stopped", undone: "Undone" },
  progress: (done: string, all: string) => `${done} of ${all} files`,
  files: "Files",
  readings: "Readings",
  points: (mapped: string, accepted: string, rejected: string) =>
    `${mapped} mapped · ${accepted} accepted · ${rejected} rejected`,
  recent: (minutes: number) => (minutes === 1 ? "Last minute" : `Last ${minutes} minutes`),
  rate: (files: string, points: string) => `${files} files · ${points} readings`,
  through: "Through",
  byTriggers: "by triggers",
  tag: "Version tag",
  folder: "Folder",
  report: "with report.html",
  id: "Id",
  nothing: "none yet",
  findings: "Files that need a person, by cause",
  cut: "There are more than were counted here.",
  columns: { state: "State", what: "Cause", files: "Files", example: "Example" },
  undone: (points: string) => `${points} readings were removed by`,
  running: "running",
};
