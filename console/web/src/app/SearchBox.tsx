import { SearchInput } from '@patternfly/react-core';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import { text } from '../text/en';

/** SearchBox searches for a project's objects. It is available on all pages. */
export function SearchBox({ project }: { project: string }) {
  const navigate = useNavigate();
  const [value, setValue] = useState('');
  const search = () => {
    if (value.trim() !== '') {
      void navigate(`/project/${project}/search?${new URLSearchParams({ filter: value.trim() })}`);
      setValue('');
    }
  };
  return (
    <SearchInput
      aria-label={text.search.box(project)}
      placeholder={text.search.title}
      value={value}
      onChange={(_, changed) => setValue(changed)}
      onClear={() => setValue('')}
      onSearch={search}
      submitSearchButtonLabel={text.search.title}
    />
  );
}
