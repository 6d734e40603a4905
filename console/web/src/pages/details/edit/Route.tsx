import type { LooseObject } from '../../../api/types';
import { edits } from '../../../text/edits';
import type { Values } from '../../forms/model';
import { portOf, routeForm, tlsOf } from '../../forms/route';
import type { DialogProps } from '../dialogs';
import { setField, textsOf, type Edit } from './edit';
import { EditDialog } from './EditDialog';

const t = edits.route;

/** tlsFields maps the form's keys to the fields of a route's TLS settings. */
const tlsFields = {
  termination: 'termination',
  insecure: 'insecureEdgeTerminationPolicy',
  certificate: 'certificate',
  key: 'key',
  authority: 'caCertificate',
  destination: 'destinationCACertificate',
};

const keys = ['path', 'port', ...Object.keys(tlsFields)];

interface Spec {
  path?: string;
  port?: { targetPort?: string | number };
  to?: { name?: string };
  tls?: Record<string, string>;
}

const specOf = (object: LooseObject) => object.spec as Spec;

function valuesOf(object: LooseObject): Values {
  const { path, port, to, tls } = specOf(object);
  const secure = Object.fromEntries(Object.entries(tlsFields).map(([key, field]) => [key, tls?.[field] ?? '']));
  // The form needs the service's name, because the user can select one of the service's ports.
  return { ...textsOf(['path'], '', { path }), port: String(port?.targetPort ?? ''), service: to?.name ?? '', ...secure };
}

/** without returns a copy of an object without the given fields. */
function without(of: Record<string, string> | undefined, names: string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(of ?? {}).filter(([name]) => !names.includes(name)));
}

/**
 * route changes a route's path, port and TLS settings. The Traffic tab changes the route's
 * services.
 */
export const route: Edit = {
  title: t.action,
  sections: () => [{ title: t.title, inputs: routeForm.inputs.filter(({ key }) => keys.includes(key)) }],
  values: valuesOf,
  operations: (object, values) => {
    const before = valuesOf(object);
    const isChanged = (names: string[]) => names.some((name) => values[name] !== before[name]);
    const { path, port, tls } = specOf(object);
    const secured = tlsOf(values);
    const wantedPath = values.termination === 'passthrough' ? '' : values.path;
    return [
      ...(wantedPath === (path ?? '') ? [] : setField('/spec/path', path, wantedPath || undefined)),
      ...(isChanged(['port']) ? setField('/spec/port', port, portOf(values)) : []),
      ...(isChanged(Object.keys(tlsFields)) ? setField('/spec/tls', tls, secured && { ...without(tls, Object.values(tlsFields)), ...secured }) : []),
    ];
  },
};

/** Route is the dialog for a route. */
export default function Route(props: DialogProps) {
  return <EditDialog edit={route} {...props} />;
}
