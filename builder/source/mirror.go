package source

import (
	"context"
	"errors"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// SameServer reports whether two repository URLs have the same protocol, host and port.
func SameServer(a, b string) bool {
	first, err := transport.NewEndpoint(a)
	if err != nil {
		return false
	}
	second, err := transport.NewEndpoint(b)
	return err == nil && sameServer(first, second)
}

// Mirror fetches all branches and tags, with their history, into the bare repository at dir. It
// ignores Ref. Credentials appear neither in errors nor in the repository.
func (g *Git) Mirror(ctx context.Context, dir string) error {
	return g.guard(ctx, "fetch", func(ctx context.Context, g *Git) error { return g.mirror(ctx, dir) })
}

func (g *Git) mirror(ctx context.Context, dir string) error {
	if err := g.install(ctx); err != nil {
		return err
	}
	store := limitedFiles{osfs.New(dir, osfs.WithBoundOS()), g.Limit}
	repository, err := git.Init(filesystem.NewStorage(store, cache.NewObjectLRUDefault()), nil)
	if err != nil {
		return err
	}
	server, err := repository.CreateRemote(&config.RemoteConfig{Name: remote, URLs: []string{g.URL}})
	if err != nil {
		return err
	}
	auth, err := g.auth(g.URL)
	if err != nil {
		return err
	}
	refs, err := server.ListContext(ctx, &git.ListOptions{Auth: auth})
	if err != nil {
		return err
	}
	err = server.FetchContext(ctx, &git.FetchOptions{
		Auth: auth, RefSpecs: []config.RefSpec{"+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"}, Tags: git.NoTags, Force: true,
	})
	if err != nil && !errors.Is(err, git.NoErrAlreadyUpToDate) {
		return err
	}
	head := findReference(refs, "")
	if head == nil || !head.Name().IsBranch() {
		return nil
	}
	return repository.Storer.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, head.Name()))
}
