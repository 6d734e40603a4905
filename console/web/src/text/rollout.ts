/** rollout are the texts about replacing the pods of an application. */
export const rollout = {
  title: 'Rollout',
  progress: (done: number, total: number) => `${done} of ${total} updated`,
  cancel: 'Cancel deployment',
  route: 'Create route',
  autoscaler: 'Add autoscaler',
};
