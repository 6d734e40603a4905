package builder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/moby/buildkit/client/llb"
	gateway "github.com/moby/buildkit/frontend/gateway/client"
	"github.com/moby/buildkit/solver/pb"

	"github.com/slipway-platform/slipway/builder/source"
)

// saveArtifacts takes over what the image that this build replaces has kept for the next one. Without it, the build only takes longer: problems are logged.
func (a *assembly) saveArtifacts(ctx context.Context) bool {
	if a.output() == "" || a.scripts.path("save-artifacts") == "" {
		return false
	}
	err := a.runSaveArtifacts(ctx)
	if err != nil {
		fmt.Fprintf(a.Out, "No artifacts of an earlier build: %v\n", err)
		return false
	}
	fmt.Fprintln(a.Out, "Artifacts of the earlier build are used")
	return true
}

func (a *assembly) runSaveArtifacts(ctx context.Context) error {
	state, config, err := a.pullImage(ctx, a.output())
	if err != nil {
		return err
	}
	if a.scripts.own {
		state = state.File(a.copyOf(a.folder(scriptsFolder), "scripts"), llb.WithCustomName("[internal] add scripts"))
	}
	result, err := solve(ctx, a.c, state, nil)
	if err != nil {
		return err
	}
	container, err := a.c.NewContainer(ctx, gateway.NewContainerRequest{Mounts: []gateway.Mount{{Dest: "/", Ref: result.Ref, MountType: pb.MountType_BIND}}})
	if err != nil {
		return err
	}
	defer container.Release(context.WithoutCancel(ctx))
	root, err := os.OpenRoot(filepath.Join(a.Work, artifactsFolder))
	if err != nil {
		return err
	}
	defer root.Close()
	writer, extracted := a.extractTo(ctx, root)
	process, err := container.Start(ctx, gateway.StartRequest{
		Args: []string{"/bin/sh", "-c", `"$0"`, a.scripts.path("save-artifacts")}, Env: config.Config.Env, User: a.user,
		Cwd: first(config.Config.WorkingDir, "/"), Stdout: writer, Stderr: open{a.Out},
	})
	if err == nil {
		err = process.Wait()
	}
	writer.CloseWithError(err)
	return errors.Join(err, extracted())
}

// extractTo extracts to a directory what is written as an archive to the writer, which the caller closes before it asks what became of it.
func (r *run) extractTo(ctx context.Context, root *os.Root) (writer *io.PipeWriter, result func() error) {
	reader, writer := io.Pipe()
	extracted := make(chan error, 1)
	go func() {
		err := source.Extract(ctx, reader, root, r.Limit)
		if err == nil {
			_, err = io.Copy(io.Discard, reader) // what follows the end of an archive
		}
		reader.CloseWithError(err)
		extracted <- err
	}()
	return writer, func() error { return <-extracted }
}
