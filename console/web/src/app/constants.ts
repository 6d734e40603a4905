import type { ExtensionPage } from './extensions';

declare global {
  interface Window {
    /** OPENSHIFT_CONSTANTS contains the values that an administrator's scripts can change. */
    OPENSHIFT_CONSTANTS?: Partial<Constants>;
  }
}

/** NavigationEntry is an entry that a script adds to the navigation of projects. */
interface NavigationEntry {
  label: string;
  /** href is a URL, or a path below the project, such as /overview. */
  href?: string;
  secondaryNavSections?: { header?: string; items?: { label: string; href: string }[] }[];
}

/** CatalogCategory is a category of the catalog. Scripts add subcategories. */
interface CatalogCategory {
  id: string;
  label: string;
  subCategories: { id: string; label: string; tags: string[] }[];
}

/**
 * Constants contains the constants of OpenShift 3.11's console that have an effect, and PAGES. The
 * functions in this file check the values, because scripts can set any value.
 */
interface Constants {
  /** CLI maps the names of downloads to addresses. */
  CLI: Record<string, string>;
  /** HELP maps entries of the help menu to addresses. */
  HELP: Record<string, string>;
  /** PAGES contains additional pages. */
  PAGES: ExtensionPage[];
  PROJECT_NAVIGATION: NavigationEntry[];
  APP_LAUNCHER_NAVIGATION: { title: string; href: string; tooltip?: string }[];
  /** SAAS_OFFERINGS contains applications outside the cluster that the catalog lists first. */
  SAAS_OFFERINGS: { title: string; url: string; description?: string }[];
  SERVICE_CATALOG_CATEGORIES: CatalogCategory[];
  /** MEMBERSHIP_WHITELIST contains the cluster roles that the page Membership offers. */
  MEMBERSHIP_WHITELIST?: string[];
  /** CREATE_FROM_URL_WHITELIST contains the projects whose templates and images links can name. */
  CREATE_FROM_URL_WHITELIST?: string[];
  /** AVAILABLE_KINDS_BLACKLIST contains kinds that the page Other resources omits. */
  AVAILABLE_KINDS_BLACKLIST: (string | { kind: string; group: string })[];
  /** SECURITY_CHECK_WHITELIST contains resources that forms create without asking. */
  SECURITY_CHECK_WHITELIST: { resource: string; group: string }[];
  /** EVENTS_TO_SHOW maps the reasons of normal events to whether they are notifications. */
  EVENTS_TO_SHOW: Record<string, boolean>;
  /** QUOTA_NOTIFICATION_MESSAGE maps the resources of quotas to a message, which can have links. */
  QUOTA_NOTIFICATION_MESSAGE: Record<string, string>;
  /** GUIDED_TOURS sets whether the tour starts on a user's first visit. */
  GUIDED_TOURS: { landing_page_tour: { enabled: boolean; auto_launch: boolean } };
  DEFAULT_HPA_CPU_TARGET_PERCENT: number;
  DISABLE_COPY_LOGIN_COMMAND: boolean;
  DISABLE_WILDCARD_ROUTES: boolean;
  DISABLE_SERVICE_CATALOG_LANDING_PAGE: boolean;
}

/** defaults contains the initial values. Scripts can change lists and objects in place. */
const defaults: Constants = {
  CLI: {},
  HELP: {},
  PAGES: [],
  PROJECT_NAVIGATION: [],
  APP_LAUNCHER_NAVIGATION: [],
  SAAS_OFFERINGS: [],
  SERVICE_CATALOG_CATEGORIES: Object.entries({ languages: 'Languages', databases: 'Databases', middleware: 'Middleware', 'ci-cd': 'CI/CD', other: 'Other' }).map(
    ([id, label]) => ({ id, label, subCategories: [] }),
  ),
  AVAILABLE_KINDS_BLACKLIST: [],
  SECURITY_CHECK_WHITELIST: [],
  EVENTS_TO_SHOW: {},
  QUOTA_NOTIFICATION_MESSAGE: {},
  GUIDED_TOURS: { landing_page_tour: { enabled: true, auto_launch: false } },
  DEFAULT_HPA_CPU_TARGET_PERCENT: 80,
  DISABLE_COPY_LOGIN_COMMAND: false,
  DISABLE_WILDCARD_ROUTES: true,
  DISABLE_SERVICE_CATALOG_LANDING_PAGE: false,
};

/** defineConstants sets the constants to their defaults, before scripts run. */
export function defineConstants(): void {
  window.OPENSHIFT_CONSTANTS = { ...structuredClone(defaults), ...window.OPENSHIFT_CONSTANTS };
}

/** constant returns the value that scripts have set, or the default. */
export const constant = (name: keyof Constants): unknown => window.OPENSHIFT_CONSTANTS?.[name] ?? defaults[name];

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';

/** isURL reports whether a value is the URL of a page, and not, for instance, of a script. */
export const isURL = (value: unknown): value is string => isText(value) && /^https?:\/\//.test(value);

type Loose = Record<string, unknown>;

const objectsIn = (value: unknown): Loose[] => (Array.isArray(value) ? value : []).filter((item) => typeof item === 'object' && item !== null);

const textsIn = (value: unknown): string[] | undefined => (Array.isArray(value) ? value.filter(isText) : undefined);

/** Link is a link to another page. */
export interface Link {
  label: string;
  url: string;
  description: string;
}

const linksIn = (name: keyof Constants, address: string, description: string): Link[] =>
  objectsIn(constant(name))
    .filter((item) => isText(item.title) && isURL(item[address]))
    .map((item) => ({ label: item.title as string, url: item[address] as string, description: isText(item[description]) ? item[description] : '' }));

/** launcherLinks returns the entries of the application launcher. */
export const launcherLinks = (): Link[] => linksIn('APP_LAUNCHER_NAVIGATION', 'href', 'tooltip');

/** featuredApplications returns the applications that the catalog lists first. */
export const featuredApplications = (): Link[] => linksIn('SAAS_OFFERINGS', 'url', 'description');

/** NavigationSection is an entry of the navigation, or a section if it has a label. */
export interface NavigationSection {
  label?: string;
  /** entries contains paths of the console, or URLs. */
  entries: { label: string; path: string }[];
}

/** ownNavigation returns what scripts add to the navigation of a project. */
export function ownNavigation(project: string): NavigationSection[] {
  const entriesOf = (items: Loose[]) =>
    items
      .filter(({ label, href }) => isText(label) && (isURL(href) || (isText(href) && href.startsWith('/'))))
      .map(({ label, href }) => ({ label: label as string, path: isURL(href) ? href : `/project/${project}${href as string}` }));
  return objectsIn(constant('PROJECT_NAVIGATION')).flatMap((item): NavigationSection[] => {
    const secondary = objectsIn(item.secondaryNavSections).flatMap(({ items }) => entriesOf(objectsIn(items)));
    const section = secondary.length > 0 && isText(item.label) ? { label: item.label, entries: secondary } : { entries: entriesOf([item]) };
    return section.entries.length > 0 ? [section] : [];
  });
}

/** Category is a category that scripts add to the catalog. It contains all items with a tag. */
export interface Category {
  id: string;
  label: string;
  tags: string[];
}

/** ownCategories returns the categories that scripts add to the catalog. */
export function ownCategories(): Category[] {
  return objectsIn(constant('SERVICE_CATALOG_CATEGORIES'))
    .flatMap(({ subCategories }) => objectsIn(subCategories))
    .filter(({ id, label }) => isText(id) && isText(label))
    .map(({ id, label, tags }) => ({ id: id as string, label: label as string, tags: textsIn(tags) ?? [id as string] }));
}

/** listedRoles returns the names of the cluster roles for members, if scripts have set them. */
export const listedRoles = (): string[] | undefined => textsIn(constant('MEMBERSHIP_WHITELIST'));

/** mayLink reports whether a link can name templates and images of a project. */
export const mayLink = (namespace: string): boolean => textsIn(constant('CREATE_FROM_URL_WHITELIST'))?.includes(namespace) ?? true;

/** isHidden reports whether the page Other resources omits a kind. */
export function isHidden({ kind, group }: { kind: string; group: string }): boolean {
  const value = constant('AVAILABLE_KINDS_BLACKLIST');
  return (textsIn(value) ?? []).includes(kind) || objectsIn(value).some((item) => item.kind === kind && item.group === group);
}

/** isUnchecked reports whether forms create objects of a resource without asking. */
export const isUnchecked = ({ name, group }: { name: string; group: string }): boolean =>
  objectsIn(constant('SECURITY_CHECK_WHITELIST')).some((item) => item.resource === name && item.group === group);

const valueOf = (name: keyof Constants, key: string): unknown => {
  const values = constant(name);
  return typeof values === 'object' && values !== null && Object.hasOwn(values, key) ? (values as Loose)[key] : undefined;
};

/** isNotification reports whether scripts have made events with a reason notifications, or not. */
export function isNotification(reason: string): boolean | undefined {
  const value = valueOf('EVENTS_TO_SHOW', reason);
  return typeof value === 'boolean' ? value : undefined;
}

/** quotaMessage returns the message for users who have reached the limit of a resource. */
export function quotaMessage(resource: string): string {
  const value = valueOf('QUOTA_NOTIFICATION_MESSAGE', resource);
  return isText(value) ? value : '';
}

/** autoscalerTarget returns the CPU usage at which new autoscalers add pods, in percent. */
export function autoscalerTarget(): string {
  const value = constant('DEFAULT_HPA_CPU_TARGET_PERCENT');
  return String(Number.isInteger(value) && (value as number) > 0 ? value : defaults.DEFAULT_HPA_CPU_TARGET_PERCENT);
}

const tourSetting = (name: string): unknown => {
  const tour = valueOf('GUIDED_TOURS', 'landing_page_tour');
  return typeof tour === 'object' && tour !== null ? (tour as Loose)[name] : undefined;
};

/** offersTour reports whether the help menu contains the tour. */
export const offersTour = (): boolean => tourSetting('enabled') !== false;

/** startsTour reports whether the tour starts on a user's first visit. */
export const startsTour = (): boolean => offersTour() && tourSetting('auto_launch') === true;
