/** pipelines are the texts of pipelines. */
export const pipelines = {
  title: 'Pipeline',
  stages: 'Stages of the pipeline',
  none: 'The pipeline has no stages yet',
  stage: (name: string, status: string, duration: string) => `Stage ${name}: ${status}, ${duration}`,
  paused: (duration: string) => `${duration} waiting`,
  statuses: {
    SUCCESS: 'Complete',
    FAILED: 'Failed',
    ABORTED: 'Aborted',
    IN_PROGRESS: 'Running',
    PAUSED_PENDING_INPUT: 'Waits for input',
    NOT_EXECUTED: 'Not run',
    UNSTABLE: 'Unstable',
  } as Record<string, string>,
  input: 'The pipeline waits for a decision',
  proceed: 'Proceed',
  abort: 'Abort',
  answered: 'The answer is recorded. The pipeline continues soon.',
  jenkins: 'Decide in Jenkins',
  runs: 'Recent runs',
  run: 'Run',
};
