/** The parts of a hub for the gateway in its process; `platform.ts` joins the two. */
import type { StoredFiles } from "./files/service.ts";
import type { MasterData } from "./master-data/service.ts";
import type { HubStore } from "./store/store.ts";
import type { MintInnerToken } from "./token/inner.ts";

export interface HubInside {
  accountIds(): Promise<readonly number[]>;
  /** A token to push to an account, and to read it. */
  readonly mint: MintInnerToken;
  readonly store: Pick<HubStore, "files" | "fileTriggers" | "operations" | "zones">;
  /** Null when there is no folder for the bytes of files. */
  readonly files: StoredFiles | null;
  readonly masterData: MasterData;
}
