import { Alert, ClipboardCopy, Form, FormGroup, Grid, GridItem, TextInput } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { bytes } from '../../api/image';
import { prunable, readStore, sizeOf, tagsOf, usersOf, type Image, type Store } from '../../api/images';
import { admin } from '../../text/admin';
import { text } from '../../text/en';
import { DataTable, type DataColumn } from '../../ui/DataTable';
import { Failure } from '../../ui/Failure';
import { Loading } from '../../ui/Loading';
import { Panel } from '../../ui/Panel';
import { StackPage } from '../../ui/StackPage';

const t = admin.images;
const minute = 60_000;

/** maxShown limits the images of a table. */
const maxShown = 100;

/** Component shows what uses the images of the cluster, and what pruning would remove. */
export function Component() {
  const [revisions, setRevisions] = useState('3');
  const [minutes, setMinutes] = useState('60');
  const younger = Math.max(0, Number(minutes) || 0) * minute;
  const store = useQuery({ queryKey: ['image-store', younger], queryFn: () => readStore(younger), staleTime: minute });
  if (store.error) {
    return <Failure error={store.error} retry={() => void store.refetch()} />;
  }
  const retention = { revisions: Math.max(0, Number(revisions) || 0), younger };
  return (
    <StackPage title={t.title} body={t.body}>
      <Panel title={t.preview}>
        <Form onSubmit={(event) => event.preventDefault()}>
          <Grid hasGutter md={6}>
            <GridItem>
              <FormGroup label={t.keepRevisions} fieldId="keep-revisions">
                <TextInput id="keep-revisions" type="number" min={0} value={revisions} onChange={(_, value) => setRevisions(value)} />
              </FormGroup>
            </GridItem>
            <GridItem>
              <FormGroup label={t.keepYounger} fieldId="keep-younger">
                <TextInput id="keep-younger" type="number" min={0} value={minutes} onChange={(_, value) => setMinutes(value)} />
              </FormGroup>
            </GridItem>
          </Grid>
        </Form>
        {store.data ? <Preview store={store.data} retention={retention} /> : <Loading />}
        <p>{t.command}</p>
        <ClipboardCopy isReadOnly hoverTip="Copy" clickTip="Copied" textAriaLabel={t.command}>
          {`oc adm prune images --keep-tag-revisions=${retention.revisions} --keep-younger-than=${younger / minute}m --confirm`}
        </ClipboardCopy>
      </Panel>
      {store.data && <Usage store={store.data} />}
    </StackPage>
  );
}

function columnsOf(store: Store): DataColumn<Image>[] {
  return [
    { title: t.image, cell: ({ metadata }) => metadata.name.slice(0, 19), mono: true },
    { title: t.streams, cell: (image) => tagsOf(image, store.streams).join(', ') || text.none },
    { title: t.size, cell: (image) => bytes(sizeOf(image)) },
    { title: t.users, cell: (image) => usersOf(image, store).join(', ') || text.none },
  ];
}

const bySize = (images: Image[]) => [...images].sort((a, b) => sizeOf(b) - sizeOf(a)).slice(0, maxShown);
const sum = (images: Image[]) => bytes(images.reduce((total, image) => total + sizeOf(image), 0));

function Preview({ store, retention }: { store: Store; retention: { revisions: number; younger: number } }) {
  const images = useMemo(() => prunable(store, retention, Date.now()), [store, retention.revisions, retention.younger]);
  return (
    <>
      <Alert isInline component="h3" variant="info" isLiveRegion title={images.length === 0 ? t.nothing : t.removes(images.length, sum(images))}>
        {t.previewBody}
      </Alert>
      {images.length > 0 && <DataTable label={t.preview} items={bySize(images)} keyOf={({ metadata }) => metadata.uid} empty={t.nothing} columns={columnsOf(store)} />}
    </>
  );
}

function Usage({ store }: { store: Store }) {
  const projects = useMemo(() => byProject(store), [store]);
  return (
    <>
      <Panel title={t.storage}>
        <DataTable
          label={t.storage}
          items={projects}
          keyOf={({ project }) => project}
          empty={t.none}
          columns={[
            { title: t.project, cell: ({ project }) => project },
            { title: t.count, cell: ({ images }) => images.length },
            { title: t.size, cell: ({ images }) => sum(images) },
          ]}
        />
      </Panel>
      <Panel title={t.all}>
        {store.images.length > maxShown && <p>{t.trimmed(maxShown, store.images.length)}</p>}
        <DataTable label={t.all} items={bySize(store.images)} keyOf={({ metadata }) => metadata.uid} empty={t.none} columns={columnsOf(store)} />
      </Panel>
    </>
  );
}

/** byProject returns the images in the image streams of each project. */
function byProject({ images, streams }: Store): { project: string; images: Image[] }[] {
  const byName = new Map(images.map((image) => [image.metadata.name, image]));
  const projects = new Map<string, Set<Image>>();
  for (const { metadata, status } of streams) {
    const own = projects.get(metadata.namespace ?? '') ?? new Set<Image>();
    for (const item of (status?.tags ?? []).flatMap(({ items }) => items ?? [])) {
      const image = byName.get(item.image);
      if (image) {
        own.add(image);
      }
    }
    projects.set(metadata.namespace ?? '', own);
  }
  return [...projects].map(([project, own]) => ({ project, images: [...own] })).filter(({ images: own }) => own.length > 0).sort((a, b) => a.project.localeCompare(b.project));
}
