/** Of passwords in the hubs of tests: there are thousands of them, and each would hash for half a second. */
export const LITTLE_HASHING = { memory: 8, passes: 1 } as const;
