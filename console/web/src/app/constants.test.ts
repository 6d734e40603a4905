import { afterEach, describe, expect, it } from 'vitest';
import {
  autoscalerTarget,
  constant,
  defineConstants,
  featuredApplications,
  isHidden,
  isNotification,
  isUnchecked,
  launcherLinks,
  listedRoles,
  mayLink,
  offersTour,
  ownCategories,
  ownNavigation,
  quotaMessage,
  startsTour,
} from './constants';

afterEach(() => {
  delete window.OPENSHIFT_CONSTANTS;
});

/** run defines the constants as before a script, and runs the script. */
function run(script: (constants: NonNullable<typeof window.OPENSHIFT_CONSTANTS>) => void) {
  defineConstants();
  script(window.OPENSHIFT_CONSTANTS ?? {});
}

describe('A script for the console of OpenShift 3.11', () => {
  it('adds entries and sections to the navigation', () => {
    run(({ PROJECT_NAVIGATION }) =>
      PROJECT_NAVIGATION?.push(
        { label: 'Dashboard', href: 'https://example.com/dashboard' },
        { label: 'Costs', href: '/extension/costs' },
        { label: 'Git', secondaryNavSections: [{ items: [{ label: 'Branches', href: 'https://example.com/branches' }] }, { header: 'More', items: [{ label: 'Tags', href: '/pods' }] }] },
        { label: 'Script', href: 'javascript:alert(1)' },
        { label: '', href: '/pods' },
      ),
    );
    expect(ownNavigation('shop')).toEqual([
      { entries: [{ label: 'Dashboard', path: 'https://example.com/dashboard' }] },
      { entries: [{ label: 'Costs', path: '/project/shop/extension/costs' }] },
      { label: 'Git', entries: [{ label: 'Branches', path: 'https://example.com/branches' }, { label: 'Tags', path: '/project/shop/pods' }] },
    ]);
  });

  it('adds applications to the masthead and to the catalog', () => {
    run((constants) => {
      constants.APP_LAUNCHER_NAVIGATION = [{ title: 'Account', href: 'https://example.com/me', tooltip: 'View the account' }, { title: 'Script', href: 'javascript:alert(1)' }];
      constants.SAAS_OFFERINGS = [{ title: 'Mail', url: 'https://example.com/mail', description: 'Read mail' }, { title: 'Relative', url: '/mail' }];
    });
    expect(launcherLinks()).toEqual([{ label: 'Account', url: 'https://example.com/me', description: 'View the account' }]);
    expect(featuredApplications()).toEqual([{ label: 'Mail', url: 'https://example.com/mail', description: 'Read mail' }]);
  });

  it('adds categories to the catalog', () => {
    run(({ SERVICE_CATALOG_CATEGORIES }) => SERVICE_CATALOG_CATEGORIES?.find(({ id }) => id === 'languages')?.subCategories.push({ id: 'go', label: 'Go', tags: ['golang'] }));
    expect(ownCategories()).toEqual([{ id: 'go', label: 'Go', tags: ['golang'] }]);
  });

  it('restricts roles, links, kinds and checks', () => {
    run((constants) => {
      constants.MEMBERSHIP_WHITELIST = ['view', 'auditor'];
      constants.CREATE_FROM_URL_WHITELIST = ['openshift', 'shared'];
      constants.AVAILABLE_KINDS_BLACKLIST = ['Binding', { kind: 'Ingress', group: 'extensions' }];
      constants.SECURITY_CHECK_WHITELIST = [{ resource: 'rolebindings', group: 'rbac.authorization.k8s.io' }];
    });
    expect(listedRoles()).toEqual(['view', 'auditor']);
    expect(['openshift', 'shared', 'other'].map(mayLink)).toEqual([true, true, false]);
    const kinds = [['Binding', ''], ['Ingress', 'extensions'], ['Ingress', 'networking.k8s.io']];
    expect(kinds.map(([kind = '', group = '']) => isHidden({ kind, group }))).toEqual([true, true, false]);
    const resources = [['rolebindings', 'rbac.authorization.k8s.io'], ['rolebindings', ''], ['roles', 'rbac.authorization.k8s.io']];
    expect(resources.map(([name = '', group = '']) => isUnchecked({ name, group }))).toEqual([true, false, false]);
  });

  it('changes messages, defaults and the tour', () => {
    run((constants) => {
      Object.assign(constants.EVENTS_TO_SHOW ?? {}, { Pulled: true, BuildStarted: false });
      constants.QUOTA_NOTIFICATION_MESSAGE = { pods: 'Ask for more' };
      constants.DEFAULT_HPA_CPU_TARGET_PERCENT = 60;
      constants.DISABLE_COPY_LOGIN_COMMAND = true;
      if (constants.GUIDED_TOURS) {
        constants.GUIDED_TOURS.landing_page_tour.auto_launch = true;
      }
    });
    expect(['Pulled', 'BuildStarted', 'Killing', 'constructor'].map(isNotification)).toEqual([true, false, undefined, undefined]);
    expect(['pods', 'services', 'toString'].map(quotaMessage)).toEqual(['Ask for more', '', '']);
    expect([autoscalerTarget(), constant('DISABLE_COPY_LOGIN_COMMAND'), startsTour()]).toEqual(['60', true, true]);
  });
});

it('uses the defaults without a script, and for values of another type', () => {
  const values = () => [
    [launcherLinks(), featuredApplications(), ownNavigation('shop'), ownCategories(), listedRoles(), mayLink('other')],
    [isHidden({ kind: 'Pod', group: '' }), isUnchecked({ name: 'pods', group: '' }), quotaMessage('pods')],
    [autoscalerTarget(), offersTour(), startsTour()],
  ];
  const expected = [
    [[], [], [], [], undefined, true],
    [false, false, ''],
    ['80', true, false],
  ];
  expect(values()).toEqual(expected);
  for (const value of [null, 'text', {}]) {
    run((constants) => [...Object.keys(constants), 'MEMBERSHIP_WHITELIST', 'CREATE_FROM_URL_WHITELIST'].forEach((name) => Object.assign(constants, { [name]: value })));
    expect(values()).toEqual(expected);
  }
  run((constants) => Object.keys(constants).forEach((name) => Object.assign(constants, { [name]: [null, 1, 'text', {}] })));
  expect([launcherLinks(), featuredApplications(), ownNavigation('shop'), ownCategories()]).toEqual([[], [], [], []]);
});
