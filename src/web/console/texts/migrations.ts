/** The words of migrations. */
import { many } from "./numbers.ts";

export const MIGRATIONS = {
  none: "There are no migrations. `headgate migrate plan` begins one.",
  states: { planned: "Planned", running: "Running", stopped: "Stopped", ended: "Ended", undone: "Undone" },
  progress: (done: number, all: number) => `${done.toLocaleString()} of ${many(all, "file", "files")}`,
  files: "Files",
  readings: "Readings",
  points: (mapped: string, accepted: string, rejected: string) =>
    `${mapped} mapped · ${accepted} accepted · ${rejected} rejected`,
  recent: (minutes: number) => (minutes === 1 ? "Last minute" : `Last ${minutes} minutes`),
  rate: (files: number, points: number) => `${many(files, "file", "files")} · ${many(points, "reading", "readings")}`,
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
  undone: (points: number) => `${many(points, "reading was", "readings were")} removed by`,
  running: "running",
};
