import CodeIcon from '@patternfly/react-icons/dist/esm/icons/code-icon';
import CubesIcon from '@patternfly/react-icons/dist/esm/icons/cubes-icon';
import DatabaseIcon from '@patternfly/react-icons/dist/esm/icons/database-icon';
import type { Item } from '../../api/catalog';
import { own } from '../../api/own';
import { logos } from './logos';

/**
 * ItemIcon shows the image of a catalog item, the logo of its icon class, or an icon for its kind.
 * It has no text, because it is next to the title.
 */
export function ItemIcon({ icon: { image, name }, tags, kind }: Pick<Item, 'icon' | 'tags' | 'kind'>) {
  const logo = own(logos, name.replace(/^icon-/, ''));
  if (image || logo) {
    return (
      <span className="console-logo" aria-hidden="true">
        {image ? <img src={image} alt="" /> : <svg viewBox="0 0 24 24">{logo && <path d={logo.path} fill={`#${logo.hex}`} />}</svg>}
      </span>
    );
  }
  const Generic = tags.includes('database') ? DatabaseIcon : kind === 'builder' ? CodeIcon : CubesIcon;
  return (
    <span className="console-logo" aria-hidden="true">
      <Generic />
    </span>
  );
}
