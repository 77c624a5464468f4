/** Applies the master data of a hub's files for the gateway inside it. */
import { basename } from "node:path/posix";
import type { InnerGateway } from "#gateway/gateway.ts";
import type { MasterData } from "#hub/master-data/service.ts";
import { fileIdOf } from "./hub-drop.ts";

/** `accountOf`: the account of a drop. */
export function structureOf(
  masterData: Pick<MasterData, "apply">,
  accountOf: (drop: string) => number,
): InnerGateway["applyStructure"] {
  return ({ run, drop, path, inputPath, settings }, signal) => {
    const at = path.indexOf("!/");
    const fileName = at === -1 ? basename(path) : path.slice(at + 2);
    const file = { accountId: accountOf(drop), fileId: fileIdOf(path), fileName, path: inputPath, run, settings };
    return masterData.apply(file, signal);
  };
}
