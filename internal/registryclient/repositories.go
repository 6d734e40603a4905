package registryclient

import (
	"context"
	"fmt"
	"strings"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// maxRepositories is the maximum number of a registry's repositories that are read.
const maxRepositories = 10_000

// Repositories lists up to 10,000 repositories of a registry such as "registry.example.com". It
// returns the repositories whose names begin with a prefix such as "team/". Docker Hub does not
// support listing repositories.
func (c Client) Repositories(ctx context.Context, registry, prefix string) (names []string, err error) {
	parsed, err := name.NewRegistry(registry, c.Names()...)
	if err != nil {
		return nil, err
	}
	session, err := c.Session()
	if err != nil {
		return nil, err
	}
	pages, err := session.puller.Catalogger(ctx, parsed)
	for read := 0; err == nil && pages.HasNext() && read < maxRepositories; {
		var page *remote.Catalogs
		if page, err = pages.Next(ctx); err != nil {
			break
		}
		read += len(page.Repos)
		for _, repository := range page.Repos {
			// Drop invalid names, as in Tags.
			if strings.HasPrefix(repository, prefix) && reference.NameRegexp.FindString(repository) == repository {
				names = append(names, repository)
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list repositories of %q: %w", registry, explain(err))
	}
	return names, nil
}
