/** rollout contains the text about replacing an application's pods. */
export const rollout = {
  title: 'Rollout',
  progress: (done: number, total: number) => `${done} of ${total} updated`,
  cancel: 'Cancel deployment',
  route: 'Create route',
  autoscaler: 'Add autoscaler',
};
