package builder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	gateway "github.com/moby/buildkit/frontend/gateway/client"
	"github.com/moby/buildkit/solver/pb"
	buildv1 "github.com/openshift/api/build/v1"
)

// hook runs the post-commit hook in a container of the new image. The hook's changes do not become
// part of the image.
func (r *run) hook(ctx context.Context, c gateway.Client, result *gateway.Result) error {
	spec := r.Build.Spec.PostCommit
	if spec.Script == "" && len(spec.Command) == 0 && len(spec.Args) == 0 {
		return nil
	}
	if result.Ref == nil {
		return errors.New("run post-commit hook: the image is empty")
	}
	config, err := configOf(result)
	if err != nil {
		return err
	}
	fmt.Fprintln(r.Out, "Running post commit hook ...")
	return r.timed(buildv1.StagePostCommit, buildv1.StepExecPostCommitHook, func() error {
		container, err := c.NewContainer(ctx, gateway.NewContainerRequest{Mounts: []gateway.Mount{{Dest: "/", Ref: result.Ref, MountType: pb.MountType_BIND}}})
		if err != nil {
			return fmt.Errorf("run post-commit hook: %w", err)
		}
		defer container.Release(context.WithoutCancel(ctx))
		process, err := container.Start(ctx, gateway.StartRequest{
			Args: hookCommand(spec, config.Config.Entrypoint), Env: config.Config.Env, User: first(r.user, withGroup(config.Config.User)),
			Cwd: first(config.Config.WorkingDir, "/"), Stdout: nopCloser{r.Out}, Stderr: nopCloser{r.Out},
		})
		if err != nil {
			return fmt.Errorf("run post-commit hook: %w", err)
		}
		if err := process.Wait(); err != nil {
			return fmt.Errorf("run post-commit hook: %w", err)
		}
		return nil
	})
}

// hookCommand returns the command of a hook. Args contains the positional parameters of a script,
// or the arguments of a command.
func hookCommand(spec buildv1.BuildPostCommitSpec, entrypoint []string) []string {
	const shell = "/bin/sh"
	switch {
	case spec.Script != "":
		return slices.Concat([]string{shell, "-ic", spec.Script, shell}, spec.Args)
	case len(spec.Command) > 0:
		return slices.Concat(spec.Command, spec.Args)
	}
	return slices.Concat(entrypoint, spec.Args)
}

// nopCloser is a writer whose Close method is a no-op.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
