/** The thread that compresses kept files: `kept-packer.ts` says how. */
import { diskTasks } from "#core/threads/disk-work.ts";
import { type PackAnswer, type PackOrder, performPacking } from "./kept-packer.ts";

export const perform = diskTasks<unknown, PackOrder, PackAnswer>(performPacking);
