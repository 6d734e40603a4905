import { Alert, Button, Checkbox, SearchInput, Toolbar, ToolbarContent, ToolbarItem } from '@patternfly/react-core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useId, useMemo, useRef, useState, type ReactNode } from 'react';
import { LogStream, maxLines } from '../api/logs';
import { useStore } from '../api/store';
import { text } from '../text/en';
import { parseLine } from './ansi';
import { download } from './download';
import { Interrupted } from './Interrupted';
import { Outcome } from './Outcome';

interface LogViewProps {
  path: string;
  name: string;
  /**
   * previous specifies whether to show the log of the previous container. If it is undefined, the
   * user cannot choose.
   */
  previous?: boolean;
  onPrevious?: (previous: boolean) => void;
  tools?: ReactNode;
  /** label is the log's name for screen readers, if a page has several logs. */
  label?: string;
}

const lineHeight = 20;

/**
 * LogView shows a log as it grows. It renders only visible lines, and never interprets their
 * content as markup.
 */
export function LogView({ path, name, previous, onPrevious, tools, label = text.logs.label }: LogViewProps) {
  const id = useId();
  const stream = useMemo(() => new LogStream(path), [path]);
  useEffect(() => {
    const own = stream;
    void own.run();
    return () => own.close();
  }, [stream]);
  const state = useStore(stream);
  const [following, setFollowing] = useState(true);
  const [wrap, setWrap] = useState(false);
  const [search, setSearch] = useState('');
  const scroll = useRef<HTMLDivElement>(null);
  const wanted = search.toLowerCase();
  const lines = useMemo(() => (wanted === '' ? state.lines : state.lines.filter((line) => line.toLowerCase().includes(wanted))), [state.lines, wanted]);
  const virtualizer = useVirtualizer({ count: lines.length, getScrollElement: () => scroll.current, estimateSize: () => lineHeight, overscan: 30 });
  useEffect(() => {
    if (following && lines.length > 0) {
      virtualizer.scrollToIndex(lines.length - 1, { align: 'end' });
    }
  }, [following, lines.length, virtualizer]);
  return (
    <>
      <Toolbar>
        <ToolbarContent>
          {tools && <ToolbarItem>{tools}</ToolbarItem>}
          <ToolbarItem>
            <SearchInput aria-label={text.logs.search} placeholder={text.logs.search} value={search} onChange={(_, value) => setSearch(value)} onClear={() => setSearch('')} resultsCount={search === '' ? undefined : lines.length} />
          </ToolbarItem>
          <ToolbarItem alignSelf="center">
            <Checkbox id={`${id}-wrap`} label={text.logs.wrap} isChecked={wrap} onChange={(_, checked) => setWrap(checked)} />
          </ToolbarItem>
          {previous !== undefined && (
            <ToolbarItem alignSelf="center">
              <Checkbox id={`${id}-previous`} label={text.logs.previous} isChecked={previous} onChange={(_, checked) => onPrevious?.(checked)} />
            </ToolbarItem>
          )}
          <ToolbarItem>
            <Button variant="secondary" onClick={() => setFollowing(!following)}>
              {following ? text.logs.pause : text.logs.follow}
            </Button>
          </ToolbarItem>
          <ToolbarItem>
            <Button variant="link" onClick={() => download(`${name}.log`, state.lines.join('\n') + '\n')}>
              {text.logs.download}
            </Button>
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      <Interrupted snapshots={[{ loaded: true, connection: state.connection }]} />
      <Outcome error={state.error} />
      {state.dropped > 0 && <Alert isInline isPlain component="h2" variant="info" title={text.logs.trimmed(maxLines)} />}
      <div
        className={wrap ? 'console-log wrap' : 'console-log'}
        ref={scroll}
        role="log"
        aria-label={label}
        aria-live="off"
        tabIndex={0}
        onWheel={(event) => event.deltaY < 0 && setFollowing(false)}
      >
        <div style={{ height: virtualizer.getTotalSize(), position: 'relative' }}>
          {virtualizer.getVirtualItems().map((item) => (
            <div key={item.key} ref={virtualizer.measureElement} data-index={item.index} style={{ position: 'absolute', insetInline: 0, top: item.start, minHeight: lineHeight }}>
              {parseLine(lines[item.index] ?? '').map((span, index) => (
                <span key={index} className={[span.color === undefined ? '' : `color-${span.color}`, span.bold ? 'bold' : ''].join(' ')}>
                  {span.text}
                </span>
              ))}
            </div>
          ))}
        </div>
      </div>
      {state.ended && !state.error && <p>{state.lines.length === 0 ? text.logs.empty : text.logs.ended}</p>}
    </>
  );
}
