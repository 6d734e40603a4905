import { Button, Card, CardBody, CardHeader, CardTitle, EmptyState, Gallery, Label, PageSection, SearchInput, Title, ToggleGroup, ToggleGroupItem, Toolbar, ToolbarContent, ToolbarGroup, ToolbarItem } from '@patternfly/react-core';
import { useNavigate, useParams, useSearchParams } from 'react-router';
import { useCatalog, type Item } from '../../api/catalog';
import { useUser } from '../../api/hooks';
import { own } from '../../api/own';
import { text } from '../../text/en';
import { Failure } from '../../ui/Failure';
import { Loading } from '../../ui/Loading';
import { useTitle } from '../../ui/useTitle';
import { filterItems } from './filter';
import { ItemIcon } from './ItemIcon';
import { recentItems, remember } from './recent';

const categories: Record<string, (item: Item) => boolean> = {
  all: () => true,
  languages: (item) => item.kind === 'builder',
  templates: (item) => item.kind === 'template',
  services: (item) => item.kind === 'service',
  databases: (item) => item.tags.includes('database'),
};

/** forms contains the forms that create applications without a catalog item. */
const forms = ['git', 'image', 'dockerfile'] as const;

/** addressOf returns a form's address, with the project in which the form creates objects. */
const addressOf = (path: string, project: string | undefined) => `/catalog/${path}${project === undefined ? '' : `?project=${project}`}`;

/** Component shows the catalog of objects that users can create. */
export function Component() {
  const { project } = useParams();
  useTitle(text.catalog.title, project);
  const catalog = useCatalog(project);
  const user = useUser()?.metadata.name;
  const navigate = useNavigate();
  const [query, setQuery] = useSearchParams();
  const filter = query.get('filter') ?? '';
  const category = query.get('category') ?? 'all';
  const set = (key: string, value: string) => {
    const next = new URLSearchParams(query);
    next.set(key, value);
    setQuery(next, { replace: true });
  };
  if (catalog.error) {
    return <Failure error={catalog.error} project={project} retry={() => void catalog.refetch()} />;
  }
  const shown = filterItems(catalog.data ?? [], filter).filter((item) => (own(categories, category) ?? categories.all)?.(item));
  const recent = filter === '' && category === 'all' ? recentItems(catalog.data ?? [], user) : [];
  return (
    <>
      <PageSection>
        <Title headingLevel="h1">{text.catalog.title}</Title>
      </PageSection>
      <PageSection isFilled>
        <Toolbar>
          <ToolbarContent>
            <ToolbarItem>
              <SearchInput aria-label={text.catalog.search} placeholder={text.catalog.search} value={filter} onChange={(_, value) => set('filter', value)} onClear={() => set('filter', '')} />
            </ToolbarItem>
            <ToolbarItem>
              <ToggleGroup aria-label={text.catalog.category}>
                {Object.keys(categories).map((name) => (
                  <ToggleGroupItem key={name} text={text.catalog.categories[name]} isSelected={name === category} onChange={() => set('category', name)} />
                ))}
              </ToggleGroup>
            </ToolbarItem>
            <ToolbarGroup className="console-wrap">
              {forms.map((name) => (
                <ToolbarItem key={name}>
                  <Button variant="secondary" onClick={() => void navigate(addressOf(name, project))}>
                    {text.catalog[name]}
                  </Button>
                </ToolbarItem>
              ))}
            </ToolbarGroup>
          </ToolbarContent>
        </Toolbar>
        {catalog.isPending ? (
          <Loading />
        ) : shown.length === 0 ? (
          <EmptyState headingLevel="h2" titleText={text.catalog.none} />
        ) : (
          <>
            {recent.length > 0 && (
              <>
                <Title headingLevel="h2">{text.catalog.recent}</Title>
                <Tiles items={recent} project={project} id="recent" />
                <Title headingLevel="h2">{text.catalog.all}</Title>
              </>
            )}
            <Tiles items={shown} project={project} id="all" />
          </>
        )}
      </PageSection>
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
