/** Heading of the documentation. */
export const ALARM_TAG = "Alarms";
