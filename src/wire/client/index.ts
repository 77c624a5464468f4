/** The HTTP client of the service. A separate entry, so that importing the schemas alone loads no HTTP library. */
export {
  askFor,
  eachItem,
  identifiersOf,
  listAccount,
  type Structure,
  type VariableFacts,
} from "./account-structure.ts";
export { listFileTriggers } from "./file-triggers.ts";
export { type HttpBody, type HttpTimeouts, orAborted } from "./http.ts";
export type { PushAnswer } from "./service.ts";
export {
  type ClientOptions,
  type Page,
  type ServiceAccess,
  ServiceClient,
} from "./service.ts";
export type { Token, TokenMint } from "./token.ts";
