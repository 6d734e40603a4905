import { Alert, Button } from '@patternfly/react-core';
import { FitAddon } from '@xterm/addon-fit';
import { Terminal as Screen } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import { useEffect, useRef, useState } from 'react';
import { ExecSession } from '../../api/exec';
import { text } from '../../text/en';
import { withAdoptedStyles } from '../../ui/styleSheets';
import type { TabProps } from './tabs';
import { WithContainer } from './WithContainer';

/** shell is a command that starts bash if the image contains it, and sh otherwise. */
const shell = ['/bin/sh', '-c', 'TERM=xterm-256color; export TERM; if command -v bash >/dev/null 2>&1; then exec bash; fi; exec sh'];

/** Terminal is the tab with a shell in a pod's container. */
export default function Terminal({ project, object }: TabProps) {
  const [attempt, setAttempt] = useState(0);
  return (
    <WithContainer object={object}>
      {(container) => <Session key={`${container} ${attempt}`} namespace={project ?? ''} pod={object.metadata.name} container={container} again={() => setAttempt(attempt + 1)} />}
    </WithContainer>
  );
}

/** background is the color of console-terminal in the style sheet. */
const background = '#151515';

interface SessionProps {
  namespace: string;
  pod: string;
  container: string;
  again: () => void;
}

function Session({ namespace, pod, container, again }: SessionProps) {
  const host = useRef<HTMLDivElement>(null);
  const [ended, setEnded] = useState<{ reason?: string }>();
  useEffect(() => {
    const element = host.current;
    if (!element) {
      return undefined;
    }
    const screen = new Screen({ cursorBlink: true, fontFamily: "'Red Hat Mono', monospace", fontSize: 13, screenReaderMode: true, theme: { background } });
    const fit = new FitAddon();
    screen.loadAddon(fit);
    withAdoptedStyles(document, () => screen.open(element));
    fit.fit();
    const session = new ExecSession({
      namespace,
      pod,
      container,
      command: shell,
      output: (data) => screen.write(data),
      ended: (reason) => setEnded({ reason }),
    });
    session.onOpen(() => {
      session.resize(screen.cols, screen.rows);
      screen.focus();
    });
    screen.onData((data) => session.write(data));
    screen.onResize(({ cols, rows }) => session.resize(cols, rows));
    const observer = new ResizeObserver(() => fit.fit());
    observer.observe(element);
    return () => {
      observer.disconnect();
      session.close();
      screen.dispose();
    };
  }, [namespace, pod, container]);
  return (
    <>
      <div className="console-terminal" ref={host} role="region" aria-label={text.terminal.label} />
      {ended && (
        <Alert
          isInline
          component="h2"
          variant={ended.reason ? 'warning' : 'info'}
          isLiveRegion
          title={text.terminal.ended}
          actionLinks={
            <Button variant="link" isInline onClick={again}>
              {text.terminal.again}
            </Button>
          }
        >
          {ended.reason}
        </Alert>
      )}
    </>
  );
}
