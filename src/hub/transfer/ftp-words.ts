/** Commands, codes and features of the FTP server. */
import type { TreeReason } from "./file-tree.ts";

/** Commands that need no sign-in. */
export const OPEN = new Set(["USER", "PASS", "AUTH", "PBSZ", "PROT", "FEAT", "SYST", "OPTS", "QUIT", "NOOP", "HELP"]);
export const CODE_OF: Readonly<Record<TreeReason, number>> = {
  missing: 550,
  denied: 550,
  exists: 550,
  full: 552,
  failed: 550,
};
export const FEATURES = ["EPSV", "UTF8", "SIZE", "MDTM", "MFMT", "REST STREAM", "TVFS", "MLST type*;size*;modify*;"];
export const ALIASES: Readonly<Record<string, string>> = {
  XPWD: "PWD",
  XCWD: "CWD",
  XMKD: "MKD",
  XRMD: "RMD",
  XCUP: "CDUP",
};
