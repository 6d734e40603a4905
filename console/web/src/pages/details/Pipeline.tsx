import { ActionList, ActionListItem, Alert, Button, Label } from '@patternfly/react-core';
import { useRights } from '../../api/hooks';
import { own } from '../../api/own';
import { answer, formatDuration, inputsOf, jenkinsOf, stagesOf, testsOf, type Stage, type Tests } from '../../api/pipeline';
import type { LooseObject } from '../../api/types';
import { pipelines as t } from '../../text/pipelines';
import { DataTable } from '../../ui/DataTable';
import { Outcome } from '../../ui/Outcome';
import { useRequest } from '../../ui/useRequest';

const colors: Record<string, 'green' | 'red' | 'blue' | 'orange' | 'grey'> = {
  SUCCESS: 'green', FAILED: 'red', ABORTED: 'red', IN_PROGRESS: 'blue', PAUSED_PENDING_INPUT: 'orange', UNSTABLE: 'orange',
};

export const buildsPath = (namespace: string) => `/apis/build.openshift.io/v1/namespaces/${encodeURIComponent(namespace)}/builds`;

/**
 * Pipeline shows a build's stages, and lets the user make the decisions that the build waits for.
 */
export default function Pipeline({ build }: { build: LooseObject }) {
  const { namespace = '', name } = build.metadata;
  const rights = useRights(namespace);
  const { isBusy, isDone, error, send } = useRequest();
  const mayDecide = rights.may('patch', 'build.openshift.io', 'builds', name);
  const jenkins = jenkinsOf(build);
  const tests = testsOf(build);
  const isRunning = ['New', 'Pending', 'Running'].includes((build.status as { phase?: string } | undefined)?.phase ?? '');
  const inputs = isRunning ? inputsOf(build) : [];
  const decide = (index: number, decision: 'proceed' | 'abort') => {
    const input = inputs[index];
    if (input) {
      send(() => answer(`${buildsPath(namespace)}/${encodeURIComponent(name)}`, input, decision));
    }
  };
  return (
    <>
      <Stages stages={stagesOf(build)} />
      {tests && <TestResults tests={tests} />}
      {inputs.map((input, index) => (
        <Alert
          key={input.id}
          isInline
          component="h3"
          variant="info"
          title={input.message || t.input}
          actionLinks={
            jenkins ? (
              <a href={jenkins} target="_blank" rel="noreferrer">
                {t.jenkins}
              </a>
            ) : (
              mayDecide && (
                <ActionList>
                  <ActionListItem>
                    <Button isDisabled={isBusy} onClick={() => decide(index, 'proceed')}>{input.proceedText || t.proceed}</Button>
                  </ActionListItem>
                  <ActionListItem>
                    <Button variant="danger" isDisabled={isBusy} onClick={() => decide(index, 'abort')}>
                      {t.abort}
                    </Button>
                  </ActionListItem>
                </ActionList>
              )
            )
          }
        >
          {input.message ? t.input : undefined}
        </Alert>
      ))}
      <Outcome error={error} isDone={isDone && inputs.length === 0 && isRunning} done={t.answered} />
    </>
  );
}

/** Stages draws stages in order, with their durations. */
export function Stages({ stages }: { stages: Stage[] }) {
  if (stages.length === 0) {
    return <p>{t.none}</p>;
  }
  return (
    <ol className="console-stages" aria-label={t.stages}>
      {stages.map((stage, index) => {
        const status = own(t.statuses, stage.status) ?? stage.status;
        return (
          <li key={index}>
            <strong>{stage.name}</strong>
            <Label color={own(colors, stage.status) ?? 'grey'}>{status}</Label>
            <span>{stage.status === 'NOT_EXECUTED' ? '-' : formatDuration(stage.duration)}</span>
            {stage.paused > 0 && <span>{t.paused(formatDuration(stage.paused))}</span>}
          </li>
        );
      })}
    </ol>
  );
}

/** TestResults shows the numbers of tests, and the names of failed tests. */
function TestResults({ tests }: { tests: Tests }) {
  const more = tests.failed - tests.failures.length;
  return (
    <>
      <p>{t.testCounts(tests.total, tests.failed, tests.skipped, formatDuration(tests.duration))}</p>
      {tests.failures.length > 0 && (
        <DataTable
          label={t.tests}
          items={tests.failures}
          keyOf={(failure) => tests.failures.indexOf(failure).toString()}
          empty=""
          columns={[
            { title: t.test, cell: ({ suite, name }) => [suite, name].filter(Boolean).join('.') },
            { title: t.message, cell: ({ message }) => message },
          ]}
        />
      )}
      {more > 0 && <p>{t.moreFailures(more)}</p>}
    </>
  );
}
