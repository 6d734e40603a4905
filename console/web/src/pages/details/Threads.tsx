import { Button, ExpandableSection, Label } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import type { Jolokia } from '../../api/jolokia';
import { text } from '../../text/en';
import { Loading } from '../../ui/Loading';
import { Outcome } from '../../ui/Outcome';

/** Threads shows a JVM's threads with their stacks. */
export function Threads({ agent, uid }: { agent: Jolokia; uid: string }) {
  const threads = useQuery({ queryKey: ['threads', uid], queryFn: () => agent.threads() });
  if (threads.error) {
    return <Outcome error={threads.error} />;
  }
  if (!threads.data) {
    return <Loading />;
  }
  return (
    <>
      {threads.data.map((thread) => (
        <ExpandableSection
          key={thread.threadId}
          isIndented
          toggleContent={
            <span>
              {thread.threadName} <Label isCompact>{thread.threadState}</Label>
            </span>
          }
        >
          <pre className="console-mono">
            {(thread.stackTrace ?? []).map((frame) => `${frame.className}.${frame.methodName} (${frame.fileName ?? '?'}:${frame.lineNumber})`).join('\n') || text.none}
          </pre>
        </ExpandableSection>
      ))}
      <div>
        <Button variant="secondary" onClick={() => void threads.refetch()}>
          {text.editor.reload}
        </Button>
      </div>
    </>
  );
}
