package source

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5"
)

// maxSubmoduleDepth is the maximum nesting depth of submodules.
const maxSubmoduleDepth = 10

// submodules fetches the submodules of a checked-out commit, recursively.
func (g *Git) submodules(ctx context.Context, tree *git.Worktree, depth int) error {
	modules, err := tree.Submodules()
	if err != nil {
		return fmt.Errorf("read submodules: %w", err)
	}
	if len(modules) > 0 && depth == 0 {
		return fmt.Errorf("submodules are nested deeper than %d levels", maxSubmoduleDepth)
	}
	for _, module := range modules {
		if err := g.submodule(ctx, module, depth); err != nil {
			return fmt.Errorf("fetch submodule %q: %w", module.Config().Name, err)
		}
	}
	return nil
}

func (g *Git) submodule(ctx context.Context, module *git.Submodule, depth int) error {
	if err := module.Init(); err != nil && !errors.Is(err, git.ErrSubmoduleAlreadyInitialized) {
		return err
	}
	repository, err := module.Repository()
	if err != nil {
		return err
	}
	server, err := repository.Remote(remote)
	if err != nil {
		return err
	}
	auth, err := g.auth(server.Config().URLs[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(g.Out, "Cloning submodule %q ...\n", module.Config().Path)
	if err := module.UpdateContext(ctx, &git.SubmoduleUpdateOptions{Auth: auth}); err != nil {
		return err
	}
	tree, err := repository.Worktree()
	if err != nil {
		return err
	}
	return g.submodules(ctx, tree, depth-1)
}
