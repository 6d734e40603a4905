/** topology contains the text of the topology page. */
export const topology = {
  title: 'Topology',
  body: 'Dependencies, from routes on the left to the sources of images on the right. Each box opens its object.',
  empty: 'This project has no objects to show',
  emptyBody: 'Create an application from the catalog first.',
  uses: (names: string) => `Uses ${names}.`,
  usedBy: (names: string) => `Used by ${names}.`,
  alone: 'Not connected.',
  table: 'The same as a table',
  from: 'Object',
  to: 'Uses',
  ready: (have: number, want: number) => `${have}/${want} ready`,
  admitted: 'served',
  refused: 'not served',
};
