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

// Git is a repository to clone.
type Git struct {
	// URL is the repository's URL. Its scheme is http, https, ssh (also as user@host:path) or git.
	URL string
	// Ref is a branch, a tag, a full reference or a commit. Empty means the server's default
	// branch.
	Ref    string
	Secret Secret
	Proxy  Proxy
	// Limit caps the size, memory and idle time of the clone.
	Limit *Limit
	// Forbidden reports whether connections to an address are forbidden. Builds use LocalAddress.
	Forbidden func(netip.Addr) bool
	// Out receives Clone's log.
	Out io.Writer
}

// Proxy contains the proxies for http and https, and the hosts that are reached without a proxy, in
// the format of the NO_PROXY environment variable.
type Proxy struct{ HTTP, HTTPS, No string }

// remote is the name of the clone's remote.
const remote = "origin"

// cancelTimeout is the maximum time that Clone waits for a canceled clone to stop.
const cancelTimeout = 5 * time.Second

// Clone fetches a commit and its submodules into dir, and returns the commit. Credentials,
// including credentials in the URL, appear neither in errors nor in the clone. A submodule's server
// receives the credentials only if it is also the repository's server.
func (g *Git) Clone(ctx context.Context, dir string) (commit *object.Commit, err error) {
	err = g.guard(ctx, "clone", func(ctx context.Context, g *Git) error {
		commit, err = g.clone(ctx, dir)
		return err
	})
	if err != nil {
		return nil, err
	}
	return commit, nil
}

// guard calls fetch with a copy of g whose URL has no credentials. The context of fetch is canceled
// when the limit is exceeded.
func (g *Git) guard(ctx context.Context, verb string, fetch func(context.Context, *Git) error) error {
	clone := *g
	clone.URL, clone.Secret = separateCredentials(g.URL, g.Secret)
	ctx, stop := g.Limit.watch(ctx)
	defer stop()
	if err := until(ctx, func() error { return fetch(ctx, &clone) }); err != nil {
		return fmt.Errorf("%s %q: %w", verb, Anonymous(g.URL), err)
	}
	return nil
}

// until calls fetch and returns when fetch returns. It also returns when ctx is done, because
// go-git can miss the cancellation of a context. If go-git does not stop within cancelTimeout, its
// goroutine runs until the process exits.
func until(ctx context.Context, fetch func() error) (err error) {
	results := make(chan error, 1)
	go func() { results <- fetch() }()
	select {
	case err = <-results:
	case <-ctx.Done():
		select {
		case <-results:
		case <-time.After(cancelTimeout):
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
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
	if err := g.submodules(ctx, tree, maxSubmoduleDepth); err != nil {
		return nil, err
	}
	return repository.CommitObject(commit)
}

// fetch fetches the commit that the reference refers to. If the server lists the reference, fetch
// does not fetch the commit's history.
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
	if ref := findReference(refs, g.Ref); ref != nil {
		local := plumbing.NewRemoteReferenceName(remote, "built")
		if err := get(1, config.RefSpec(fmt.Sprintf("+%s:%s", ref.Name(), local))); err != nil {
			return plumbing.ZeroHash, err
		}
		return commitOf(repository, local.String())
	}
	if !plumbing.IsHash(g.Ref) {
		return plumbing.ZeroHash, fmt.Errorf("branch, tag or commit %q does not exist", g.Ref)
	}
	if err := get(0, "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"); err != nil {
		return plumbing.ZeroHash, err
	}
	return commitOf(repository, g.Ref)
}

// findReference returns the server's reference for ref, or nil.
func findReference(refs []*plumbing.Reference, ref string) *plumbing.Reference {
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
		if match := byName[name]; match != nil {
			return match
		}
	}
	return nil
}

// commitOf returns the commit that a name in the clone refers to. It peels annotated tags.
func commitOf(repository *git.Repository, name string) (plumbing.Hash, error) {
	hash, err := repository.ResolveRevision(plumbing.Revision(name + "^{commit}"))
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("find commit %q: %w", name, err)
	}
	return *hash, nil
}

// auth returns the credentials for a URL. It returns nil if there are none, or if the URL's
// protocol, host or port differs from the repository's.
func (g *Git) auth(to string) (transport.AuthMethod, error) {
	main, err := transport.NewEndpoint(g.URL)
	if err != nil {
		return nil, errors.New("the URL is not valid")
	}
	endpoint, err := transport.NewEndpoint(to)
	if err != nil {
		return nil, errors.New("the URL of a submodule is not valid")
	}
	if !sameServer(endpoint, main) {
		return nil, nil
	}
	return g.Secret.auth(endpoint)
}

func sameServer(a, b *transport.Endpoint) bool {
	return a.Protocol == b.Protocol && a.Host == b.Host && a.Port == b.Port
}

// separateCredentials moves the user name and password from an http or https URL to the secret,
// because the clone stores the URL.
func separateCredentials(raw string, secret Secret) (string, Secret) {
	parsed, err := url.Parse(raw)
	if err != nil || parsed.User == nil || !isWeb(parsed) {
		return raw, secret
	}
	secret.User = parsed.User.Username()
	if password, ok := parsed.User.Password(); ok {
		secret.Password = password
	}
	parsed.User = nil
	return parsed.String(), secret
}

func isWeb(u *url.URL) bool { return u.Scheme == "http" || u.Scheme == "https" }

// Anonymous returns a URL without its password, for use in logs and images. It also removes the
// user name from http and https URLs, because the user name can be a token.
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
