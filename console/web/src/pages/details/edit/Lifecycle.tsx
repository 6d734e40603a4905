import type { LooseObject } from '../../../api/types';
import { edits } from '../../../text/edits';
import type { Values } from '../../forms/model';
import { containersOf, containersPath } from '../environment';
import type { DialogProps } from '../dialogs';
import { isSame, partsOf, setField, type Edit } from './edit';
import { EditDialog } from './EditDialog';
import { handlerInputs, handlerOf, handlerValues, type Handler } from './handler';

const t = edits.lifecycle;

type Name = keyof typeof t.hooks;

const hooks = Object.keys(t.hooks) as Name[];

const lifecycleOf = (container: object) => (container as { lifecycle?: object }).lifecycle;

const partsOfWorkload = (object: LooseObject) => partsOf<Handler>(object, hooks, lifecycleOf, '/lifecycle');

/**
 * lifecycle changes the actions that a workload's containers run after they start and before they
 * stop.
 */
export const lifecycle: Edit = {
  title: t.action,
  sections: (object) =>
    partsOfWorkload(object).map(({ container, name, prefix }) => ({
      title: t.hooks[name as Name](container.name),
      help: t.help[name as Name],
      inputs: handlerInputs(prefix, ['exec', 'httpGet', 'sleep']),
    })),
  values: (object) => Object.assign({}, ...partsOfWorkload(object).map(({ prefix, value }) => handlerValues(prefix, value))) as Values,
  operations: (object, values) => {
    const changed = partsOfWorkload(object).filter(({ prefix, value }) => !isSame(handlerValues(prefix, value), values));
    const root = '/' + containersPath(object.kind).join('/');
    const missing = containersOf(object).flatMap((container, index) =>
      lifecycleOf(container) === undefined && changed.some((part) => part.container === container) ? [{ op: 'add', path: `${root}/${index}/lifecycle`, value: {} }] : [],
    );
    return [...missing, ...changed.flatMap(({ prefix, path, value }) => setField(path, value, handlerOf(prefix, values, value)))];
  },
};

/** Lifecycle is the dialog for the lifecycle hooks of a workload's containers. */
export default function Lifecycle(props: DialogProps) {
  return <EditDialog edit={lifecycle} {...props} />;
}
