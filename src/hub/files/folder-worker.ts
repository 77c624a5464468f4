/** The thread of the stored bytes: `folder-work.ts` says what it does. */
import { diskTasks } from "#core/threads/disk-work.ts";
import { type FolderAnswer, type FolderOrder, performInFolder } from "./folder-work.ts";

export const perform = diskTasks<null, FolderOrder, FolderAnswer>(performInFolder);
