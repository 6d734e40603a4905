package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"path/filepath"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/slipway-platform/slipway/internal/redact"
)

// Git is a repository to build from.
type Git struct {
	// URL is where it is: http, https, ssh (also as user@host:path) or git.
	URL string
	// Ref is a branch, a tag, a full reference or a commit; empty: the server's default branch.
	Ref    string
	Secret Secret
	Proxy  Proxy
	// Limit bounds the clone.
	Limit *Limit
	// Forbidden tells which addresses are not asked; Own is for builds.
	Forbidden func(netip.Addr) bool
	// Out is the log.
	Out io.Writer
}

// Proxy is how servers are reached: the proxies for http and https, and the hosts that need none, as in the variable NO_PROXY.
type Proxy struct{ HTTP, HTTPS, No string }

// remote is what the server is called in the clone.
const remote = "origin"

// Clone fetches a commit and its submodules to dir and says which commit it is. Secrets are in no error and not in the clone, those of the URL neither. Only
// submodules of the same server get the repository's credentials.
func (g *Git) Clone(ctx context.Context, dir string) (*object.Commit, error) {
	apart := *g
	apart.URL, apart.Secret = separate(g.URL, g.Secret)
	ctx, stop := g.Limit.watch(ctx)
	defer stop()
	commit, err := apart.cloneDuring(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("clone %q: %w", Anonymous(g.URL), err)
	}
	return commit, nil
}

// cloneDuring clones until its context ends. go-git does not always notice that: what does not end soon after is left to the end of the process.
func (g *Git) cloneDuring(ctx context.Context, dir string) (commit *object.Commit, err error) {
	type result struct {
		commit *object.Commit
		err    error
	}
	cloned := make(chan result, 1)
	go func() {
		commit, err := g.clone(ctx, dir)
		cloned <- result{commit, err}
	}()
	select {
	case r := <-cloned:
		commit, err = r.commit, r.err
	case <-ctx.Done():
		const soon = 5 * time.Second
		select {
		case <-cloned:
		case <-time.After(soon):
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return commit, err
}

func (g *Git) clone(ctx context.Context, dir string) (*object.Commit, error) {
	if err := g.install(ctx); err != nil {
		return nil, err
	}
	files := limitedFiles{osfs.New(dir, osfs.WithBoundOS()), g.Limit}
	store := limitedFiles{osfs.New(filepath.Join(dir, git.GitDirName), osfs.WithBoundOS()), g.Limit}
	repository, err := git.Init(filesystem.NewStorage(store, cache.NewObjectLRUDefault()), files)
	if err != nil {
		return nil, err
	}
	server, err := repository.CreateRemote(&config.RemoteConfig{Name: remote, URLs: []string{g.URL}})
	if err != nil {
		return nil, err
	}
	auth, err := g.auth(g.URL)
	if err != nil {
		return nil, err
	}
	commit, err := g.fetch(ctx, repository, server, auth)
	if err != nil {
		return nil, err
	}
	tree, err := repository.Worktree()
	if err != nil {
		return nil, err
	}
	if err := tree.Checkout(&git.CheckoutOptions{Hash: commit, Force: true}); err != nil {
		return nil, fmt.Errorf("check out commit %s: %w", commit, err)
	}
	if err := g.submodules(ctx, tree, deepest); err != nil {
		return nil, err
	}
	return repository.CommitObject(commit)
}

// fetch gets the commit that the reference means, without its history where the server can tell it apart.
func (g *Git) fetch(ctx context.Context, repository *git.Repository, server *git.Remote, auth transport.AuthMethod) (plumbing.Hash, error) {
	refs, err := server.ListContext(ctx, &git.ListOptions{Auth: auth})
	if err != nil {
		return plumbing.ZeroHash, err
	}
	get := func(depth int, specs ...config.RefSpec) error {
		err := server.FetchContext(ctx, &git.FetchOptions{Auth: auth, Depth: depth, RefSpecs: specs, Tags: git.NoTags, Force: true})
		if errors.Is(err, git.NoErrAlreadyUpToDate) {
			err = nil
		}
		return err
	}
	if found := choose(refs, g.Ref); found != nil {
		local := plumbing.NewRemoteReferenceName(remote, "built")
		if err := get(1, config.RefSpec(fmt.Sprintf("+%s:%s", found.Name(), local))); err != nil {
			return plumbing.ZeroHash, err
		}
		return commitOf(repository, local.String())
	}
	if !plumbing.IsHash(g.Ref) {
		return plumbing.ZeroHash, fmt.Errorf("there is no branch, tag or commit %q", g.Ref)
	}
	if err := get(0, "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"); err != nil {
		return plumbing.ZeroHash, err
	}
	return commitOf(repository, g.Ref)
}

// choose finds what a reference of a user means among a server's.
func choose(refs []*plumbing.Reference, ref string) *plumbing.Reference {
	byName := map[plumbing.ReferenceName]*plumbing.Reference{}
	for _, r := range refs {
		byName[r.Name()] = r
	}
	if ref == "" || ref == plumbing.HEAD.String() {
		head := byName[plumbing.HEAD]
		if head != nil && head.Type() == plumbing.SymbolicReference {
			return byName[head.Target()]
		}
		return head
	}
	for _, name := range []plumbing.ReferenceName{plumbing.ReferenceName(ref), plumbing.NewBranchReferenceName(ref), plumbing.NewTagReferenceName(ref)} {
		if found := byName[name]; found != nil {
			return found
		}
	}
	return nil
}

// commitOf is the commit that a name of the clone means, also of a tag with a message.
func commitOf(repository *git.Repository, name string) (plumbing.Hash, error) {
	hash, err := repository.ResolveRevision(plumbing.Revision(name + "^{commit}"))
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("find commit %q: %w", name, err)
	}
	return *hash, nil
}

// auth is the secret for a URL, if it is of the repository's server.
func (g *Git) auth(to string) (transport.AuthMethod, error) {
	main, err := transport.NewEndpoint(g.URL)
	if err != nil {
		return nil, errors.New("the URL cannot be read")
	}
	endpoint, err := transport.NewEndpoint(to)
	if err != nil {
		return nil, errors.New("the URL of a submodule cannot be read")
	}
	if endpoint.Protocol != main.Protocol || endpoint.Host != main.Host || endpoint.Port != main.Port {
		return nil, nil
	}
	return g.Secret.auth(endpoint)
}

// separate takes user and password of a URL over to the secret: the clone has the URL in it.
func separate(raw string, secret Secret) (string, Secret) {
	parsed, err := url.Parse(raw)
	if err != nil || parsed.User == nil || !isWeb(parsed) {
		return raw, secret
	}
	secret.User = parsed.User.Username()
	if password, given := parsed.User.Password(); given {
		secret.Password = password
	}
	parsed.User = nil
	return parsed.String(), secret
}

func isWeb(u *url.URL) bool { return u.Scheme == "http" || u.Scheme == "https" }

// Anonymous is a URL without its password, for logs and images. Web servers also take tokens in place of a user.
func Anonymous(raw string) string {
	parsed, err := url.Parse(raw)
	if err != nil || parsed.User == nil {
		return redact.Text(raw)
	}
	if isWeb(parsed) {
		parsed.User = nil
	}
	return parsed.Redacted()
}
