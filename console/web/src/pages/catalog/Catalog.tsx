import { Button, Card, CardBody, CardHeader, CardTitle, EmptyState, Gallery, Label, PageSection, SearchInput, Title, ToggleGroup, ToggleGroupItem, Toolbar, ToolbarContent, ToolbarItem } from '@patternfly/react-core';
import { lazy, Suspense, useEffect } from 'react';
import { useNavigate, useParams, useSearchParams } from 'react-router';
import { useCatalog, type Item } from '../../api/catalog';
import { useUser } from '../../api/hooks';
import { own } from '../../api/own';
import { useStore } from '../../api/store';
import { featuredApplications, ownCategories } from '../../app/constants';
import { persistent } from '../../app/load';
import { startOnce, touring } from '../../app/tour';
import { text } from '../../text/en';
import { Failure } from '../../ui/Failure';
import { Loading } from '../../ui/Loading';
import { useTitle } from '../../ui/useTitle';
import { Featured } from './Featured';
import { filterItems } from './filter';
import { ItemIcon } from './ItemIcon';
import { recentItems, remember } from './recent';

const Tour = lazy(persistent(() => import('./Tour')));

const categories: Record<string, (item: Item) => boolean> = {
  all: () => true,
  languages: (item) => item.kind === 'builder',
  templates: (item) => item.kind === 'template',
  services: (item) => item.kind === 'service',
  databases: (item) => item.tags.includes('database'),
};

/** inCategory returns a function that reports whether a category contains an item. */
function inCategory(id: string): (item: Item) => boolean {
  const added = ownCategories().find((category) => category.id === id);
  const byTags = added && ((item: Item) => item.tags.some((tag) => added.tags.includes(tag)));
  return own(categories, id) ?? byTags ?? (() => true);
}

/** forms contains the forms that create applications without a catalog item. */
const forms = ['git', 'image', 'dockerfile'] as const;

/** addressOf returns a form's address, with the project in which the form creates objects. */
const addressOf = (path: string, project: string | undefined) => `/catalog/${path}${project === undefined ? '' : `?project=${project}`}`;

/** Component shows the catalog of objects that users can create. */
export function Component() {
  const { project } = useParams();
  useTitle(text.catalog.title, project);
  const catalog = useCatalog(project);
  const navigate = useNavigate();
  const [query, setQuery] = useSearchParams();
  const filter = query.get('filter') ?? '';
  const category = query.get('category') ?? 'all';
  const set = (key: string, value: string) => {
    const next = new URLSearchParams(query);
    next.set(key, value);
    setQuery(next, { replace: true });
  };
  const onTour = useStore(touring);
  useEffect(startOnce, []);
  const added = ownCategories().filter(({ id }) => own(categories, id) === undefined);
  if (catalog.error) {
    return <Failure error={catalog.error} project={project} retry={() => void catalog.refetch()} />;
  }
  const shown = filterItems(catalog.data ?? [], filter).filter(inCategory(category));
  return (
    <>
      <PageSection>
        <div className="console-row">
          <Title headingLevel="h1" className="console-grow">
            {text.catalog.title}
          </Title>
          <div className="console-row" data-tour="forms">
            {forms.map((name) => (
              <Button key={name} variant="secondary" onClick={() => void navigate(addressOf(name, project))}>
                {text.catalog[name]}
              </Button>
            ))}
          </div>
        </div>
      </PageSection>
      <PageSection isFilled>
        <Toolbar>
          <ToolbarContent>
            <ToolbarItem data-tour="search">
              <SearchInput aria-label={text.catalog.search} placeholder={text.catalog.search} value={filter} onChange={(_, value) => set('filter', value)} onClear={() => set('filter', '')} />
            </ToolbarItem>
            <ToolbarItem data-tour="categories">
              <ToggleGroup aria-label={text.catalog.category}>
                {[...Object.keys(categories).map((id) => ({ id, label: text.catalog.categories[id] })), ...added].map(({ id, label }) => (
                  <ToggleGroupItem key={id} text={label} isSelected={id === category} onChange={() => set('category', id)} />
                ))}
              </ToggleGroup>
            </ToolbarItem>
          </ToolbarContent>
        </Toolbar>
        {onTour && !catalog.isPending && (
          <Suspense>
            <Tour />
          </Suspense>
        )}
        {catalog.isPending ? (
          <Loading />
        ) : shown.length === 0 ? (
          <EmptyState headingLevel="h2" titleText={text.catalog.none} />
        ) : (
          <>
            {filter === '' && category === 'all' && <Suggestions items={catalog.data} project={project} />}
            <Tiles items={shown} project={project} id="all" />
          </>
        )}
      </PageSection>
    </>
  );
}

/** Suggestions shows the featured applications, and the items that the user has used recently. */
function Suggestions({ items, project }: { items: Item[]; project: string | undefined }) {
  const user = useUser()?.metadata.name;
  const featured = featuredApplications();
  const recent = recentItems(items, user);
  return (
    <>
      {featured.length > 0 && (
        <>
          <Title headingLevel="h2">{text.catalog.featured}</Title>
          <Featured applications={featured} />
        </>
      )}
      {recent.length > 0 && (
        <>
          <Title headingLevel="h2">{text.catalog.recent}</Title>
          <Tiles items={recent} project={project} id="recent" />
        </>
      )}
      {featured.length + recent.length > 0 && <Title headingLevel="h2">{text.catalog.all}</Title>}
    </>
  );
}

function Tiles({ items, project, id }: { items: Item[]; project: string | undefined; id: string }) {
  const navigate = useNavigate();
  const user = useUser()?.metadata.name;
  const open = (item: Item) => {
    if (user !== undefined) {
      remember(item, user);
    }
    void navigate(addressOf(item.path, project));
  };
  return (
    <Gallery hasGutter minWidths={{ default: '100%', sm: '17rem' }}>
      {items.map((item) => {
        const tile = `${id}-${item.path.replaceAll('/', '-')}`;
        return (
          <Card key={item.path} isClickable id={tile}>
            <CardHeader selectableActions={{ onClickAction: () => open(item), selectableActionId: `${tile}-action`, selectableActionAriaLabelledby: `${tile}-title`, name: tile }}>
              <div className="console-titled">
                <ItemIcon {...item} />
                <CardTitle id={`${tile}-title`}>{item.title}</CardTitle>
              </div>
            </CardHeader>
            <CardBody>
              <Label isCompact>{text.catalog.kinds[item.kind]}</Label> {item.provider && <small>{text.catalog.by(item.provider)}</small>}
              <p>{item.description}</p>
            </CardBody>
          </Card>
        );
      })}
    </Gallery>
  );
}
