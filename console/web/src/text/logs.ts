/** logs contains the labels of a log's options. */
export const logs = {
  pod: 'Pod',
  none: 'No pod has a log',
  times: 'Show times',
  since: 'Lines of',
  periods: { '': 'the whole log', '300': 'the last 5 minutes', '3600': 'the last hour', '86400': 'the last day' } as Record<string, string>,
};
