/** topology contains the texts of drawings. */
export const topology = {
  title: 'Topology',
  body: 'What depends on what, from routes on the left to the sources of images on the right. Each box opens its object.',
  empty: 'Nothing in this project to draw',
  emptyBody: 'Create an application from the catalog first.',
  uses: (names: string) => `Uses ${names}.`,
  usedBy: (names: string) => `Used by ${names}.`,
  alone: 'Connected to nothing.',
  table: 'The same as a table',
  from: 'Object',
  to: 'Uses',
  ready: (have: number, want: number) => `${have}/${want} ready`,
  admitted: 'served',
  refused: 'not served',
};
