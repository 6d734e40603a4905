import { Alert } from '@patternfly/react-core';
import { useEffect, useState } from 'react';
import type { Snapshot } from '../api/watch';
import { text } from '../text/en';

/** noticeDelay is the delay before an interruption is shown. Most interruptions end earlier. */
const noticeDelay = 2000;

/** Interrupted shows that a page might be out of date, until its watches are connected again. */
export function Interrupted({ snapshots }: { snapshots: Pick<Snapshot<unknown>, 'loaded' | 'connection'>[] }) {
  const interrupted = snapshots.some((snapshot) => snapshot.loaded && snapshot.connection === 'interrupted');
  const [shown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(interrupted), interrupted ? noticeDelay : 0);
    return () => clearTimeout(timer);
  }, [interrupted]);
  return shown ? <Alert isInline component="h2" variant="warning" isLiveRegion title={text.connection.interrupted} /> : null;
}
