import { Link } from 'react-router';
import { useObjects } from '../../api/hooks';
import { isPipeline, stagesOf } from '../../api/pipeline';
import type { LooseObject } from '../../api/types';
import { text } from '../../text/en';
import { pipelines as t } from '../../text/pipelines';
import { Age } from '../../ui/Age';
import { DataTable, type DataColumn } from '../../ui/DataTable';
import { Loading } from '../../ui/Loading';
import { BuildPhase, newestBuilds, type Build } from '../overview/Builds';
import { buildsPath, Stages } from './Pipeline';

/** maxRuns is the maximum number of builds on a build configuration's page. */
const maxRuns = 10;

/** Runs shows a build configuration's latest builds. For a pipeline, it shows their stages. */
export default function Runs({ config }: { config: LooseObject }) {
  const { namespace = '', name } = config.metadata;
  const { items, loaded } = useObjects<Build>(buildsPath(namespace), { labelSelector: `openshift.io/build-config.name=${name}` });
  if (!loaded) {
    return <Loading />;
  }
  const newest = newestBuilds(items, maxRuns);
  const columns: DataColumn<Build>[] = isPipeline(config)
    ? [{ title: t.stages, cell: (build) => <Stages stages={stagesOf(build as unknown as LooseObject)} /> }]
    : [
        { title: text.details.status, cell: (build) => <BuildPhase phase={build.status?.phase} /> },
        { title: text.details.message, cell: (build) => build.status?.message ?? '-' },
      ];
  return (
    <DataTable
      label={isPipeline(config) ? t.runs : text.overview.builds}
      items={newest}
      keyOf={(build) => build.metadata.uid}
      empty={isPipeline(config) ? t.none : text.builds.none}
      columns={[
        { title: t.run, cell: (build) => <Link to={`/project/${namespace}/builds.build.openshift.io/${build.metadata.name}`}>{build.metadata.name}</Link> },
        ...columns,
        { title: text.age, cell: (build) => <Age of={build.metadata.creationTimestamp} /> },
      ]}
    />
  );
}
