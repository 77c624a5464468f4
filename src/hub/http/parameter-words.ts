/** Descriptions of parameters and fields by their names, where their schema says nothing more precise. */

/** By the name in lower case. */
const WORDS: Readonly<Record<string, string>> = {
  // In addresses.
  realm: "Any name; the tokens are the same.",
  siteid: "Id of the site.",
  formname: "Name of the form.",
  groupname: "Name of the group of the form.",
  fieldname: "Name of the field.",
  sliceid: "Id of the slice.",
  claimtype: "Type of the claim.",
  email: "Address for messages, unique in the hub.",
  firstname: "First name.",
  lastname: "Last name.",
  businessid: "Identifier that the account gives to the user.",
  roles: "Names of the roles of the user in the account.",
  guid: "The `token` of the file trigger.",
  rest: "Anything: this hub does not have the resource.",
  // Alarms.
  templateids: "Templates of alarms.",
  alarmids: "Alarms.",
  severities: "Severities of templates.",
  kinds: "Kinds of conditions.",
  condition: "When an alarm is present.",
  notifications: "Who is notified when an alarm changes, beside the readers of events.",
  template: "The template, as POST /alarms/template takes it.",
  webhooks: "Receivers of a signed POST of each change.",
  comment: "A comment, kept with the alarm.",
  // Tokens.
  grant_type: "How the caller signs in.",
  client_id: "The client, as the hub was configured with it.",
  client_secret: "Its secret.",
  username: "Name of the user.",
  password: "Password of the user.",
  refresh_token: "The refresh token of an earlier answer.",
  scope: "Scopes of the token, with spaces between them.",
  account: "Id of the account that the token is for.",
  acr_values: "`accountId:<id>`, the older form of `account`.",
  // Lists.
  id: "Id of the entity.",
  ids: "Several ids.",
  displaylevel: "How much of each entity or row is shown.",
  customfilter: "Expression that entities have to fulfil.",
  odmsqlfilter: "Selection of sources.",
  viewid: "Id of a stored view, whose filter is used.",
  "paging.pagenumber": "Page, from 0.",
  "paging.itemsperpage": "Entries of one page.",
  pagenumber: "Page, from 0.",
  itemsperpage: "Entries of one page.",
  includeitemscount: "Adds the header `x-total-count`, the count over all pages.",
  siteids: "Ids of several sites.",
  state: "Only entities in this state.",
  states: "Only entities in one of these states.",
  tags: "Labels.",
  tag: "Label.",
  name: "Name that people read.",
  names: "Several names.",
  eans: "Several EANs.",
  serialnumbers: "Several serial numbers.",
  meternumbers: "Several meter numbers.",
  sourceids: "Ids of several sources.",
  variabletypeids: "Ids of several variable types.",
  variableids: "Ids of several variables.",
  "calculatedfilter.impactingvariableid": "Only variables that are calculated from this one.",
  ingestiontype: "How the file comes.",
  filename: "Name of the file.",
  clouditemtypeid: "Kind of file.",
  file: "The content of the file.",
  // Sites, sources, variables.
  typeid: "Type of the site, an id of `GET /sitetypes`.",
  timezoneid: "IANA name of the time zone.",
  street: "Street and number.",
  postalcode: "Postal code.",
  city: "City.",
  country: "Country.",
  clientdata: "Data of the client's own, which the hub keeps as they are, and values of forms.",
  serialnumber: "Serial number, by which a push can name the source.",
  ean: "EAN, by which a push can name the source.",
  meternumber: "Meter number, by which a push can name the source.",
  sourcetypeid: "Type of the source, an id of `GET /sourceTypes`.",
  energytypeid: "Type of energy, an id of `GET /energyTypes`.",
  energyusageid: "Usage of the energy, an id of `GET /energyUsages`.",
  gatewaytypeid: "Type of the gateway, an id of `GET /gatewayTypes`.",
  description: "Text for people.",
  localisation: "Where the source is, for people.",
  meteraddress: "Address of the meter.",
  sourceid: "Id of the source.",
  variabletypeid: "Type of the variable, an id of `GET /variableTypes`.",
  unitid: "Unit of the values, an id of `GET /units`.",
  granularity: "Length of the periods, in the time base.",
  granularitytimebase: "Time base of the granularity, an id of `GET /timePeriods`.",
  quantitytype: "Kind of the quantity, an id of `GET /quantityTypes`.",
  aggregate: "How values of a period become one.",
  mappingconfig: "Key by which a push names the variable beside an identifier of its source.",
  isversioned: "Whether earlier versions of points are kept.",
  versionsmax: "Versions kept for a point.",
  divider: "Stored and shown; the hub divides nothing by it.",
  calculated: "Formulas that calculate the points; a plain variable has none.",
  // Changes by JSON Patch.
  op: "Operation of the JSON Patch.",
  path: "What it changes.",
  // Forms and patterns of names.
  groups: "Groups of the form.",
  displayheader: "Whether the name of the group is shown.",
  fields: "Fields of the group.",
  required: "Whether a value has to be given.",
  filtertype: "How the name of a file and the value are compared.",
  // Data.
  variableid: "Id of the variable.",
  accountid: "Id of the account.",
  from: "Beginning of the period, included.",
  to: "End of the period, not included.",
  fromdateutc: "Beginning of the period, included.",
  todateutc: "End of the period, not included.",
  includetoboundary: "Includes the end of the period.",
  usereportingtimezone: "Uses the time zone of the site.",
  aggregation: "How the values of a period become one.",
  aggregations: "Several aggregations side by side.",
  targetunits: "Units into which the values are converted.",
  unittransformation: "Another name of TargetUnits.",
  pagingorder: "Order of the rows.",
  versiontag: "Only versions with this label.",
  allversions: "Shows every version of a point.",
  asof: "Shows what was valid at this moment.",
  versionsince: "Only points whose latest version was stored at this instant or later.",
  whatif: "Only reports what would be removed.",
  // Pushes.
  operationid: "Id of the push, by which its outcome is asked for.",
  operationtimeoutsec: "Seconds that applying the push may take.",
  webhookurl: "Address to which the outcome is sent.",
  sourceserialnumber: "Serial number of the source.",
  sourceean: "EAN of the source.",
  sourcename: "Name of the source.",
  version: "Label of the version.",
  data: "The readings.",
  date: "Moment of the reading (ISO 8601).",
  value: "The value.",
};

export function wordsOfParameter(name: string): string | undefined {
  return WORDS[name.toLowerCase()];
}

type Json = Readonly<Record<string, unknown>>;

/** The JSON Schema, with words for the properties that have none of their own, at every depth. */
export function withWords(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withWords);
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([key, inner]) => {
      if (["default", "example", "examples", "enum", "const"].includes(key)) return [key, inner];
      return [key, key === "properties" ? propertiesOf(inner as Json) : withWords(inner)];
    }),
  );
}

function propertiesOf(properties: Json): Json {
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => {
      const description = wordsOfParameter(name);
      return [name, { ...(description === undefined ? {} : { description }), ...(withWords(property) as Json) }];
    }),
  );
}
