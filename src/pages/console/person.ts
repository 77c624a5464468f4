/** The person who has signed in. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Me } from "./contract.ts";
import { TEXTS } from "./texts.ts";

export const PersonContext = createContext<Me | null>(null);

/** Null when this person may do it, otherwise why not. */
export function useRefusal(): string | null {
  return useContext(PersonContext)?.role === "operator" ? null : TEXTS.viewerCannot;
}
