import { expect, it } from 'vitest';
import { Rights } from '../../api/rights';
import type { LooseObject } from '../../api/types';
import { tabsOf } from './tabs';

const rights = (...rules: [verb: string, resource: string, group?: string][]) => new Rights(rules.map(([verb, resource, group = '']) => ({ verbs: [verb], apiGroups: [group], resources: [resource] })));
const keys = (kind: string, of: Rights) => tabsOf({ kind, metadata: { name: 'front' }, spec: {} } as unknown as LooseObject, of).map(({ key }) => key);

it.each([
  ['Pod', rights(), ['details', 'yaml', 'events']],
  ['Pod', rights(['get', 'pods/log']), ['details', 'logs', 'yaml', 'events']],
  ['Pod', rights(['create', 'pods/exec']), ['details', 'terminal', 'files', 'yaml', 'events']],
  ['Build', rights(['get', 'pods/log']), ['details', 'yaml', 'events']],
  ['Build', rights(['get', 'builds/log', 'build.openshift.io']), ['details', 'logs', 'yaml', 'events']],
  ['StatefulSet', rights(), ['details', 'pods', 'history', 'environment', 'yaml', 'events']],
  ['BuildConfig', rights(), ['details', 'environment', 'settings', 'yaml', 'events']],
])('shows the tabs of a %s that the user may see', (kind, of, tabs) => {
  expect(keys(kind, of)).toEqual(tabs);
});
