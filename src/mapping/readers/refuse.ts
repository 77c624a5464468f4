import type { RowFault } from "../rejections.ts";

/** Refuses one row of the file, by an object that remembers its place; reading goes on. */
export type RefuseRow = (row: object, fault: RowFault) => void;
