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

// saveArtifacts extracts the artifacts from the image that this build replaces, and reports whether
// there are any. Artifacts only speed up the build, so errors are only logged.
func (a *assembly) saveArtifacts(ctx context.Context) bool {
	if a.output() == "" || a.scripts.path("save-artifacts") == "" {
		return false
	}
	err := a.runSaveArtifacts(ctx)
	if err != nil {
		fmt.Fprintf(a.Out, "Cannot use artifacts of an earlier build: %v\n", err)
		return false
	}
	fmt.Fprintln(a.Out, "Using artifacts of an earlier build")
	return true
}

func (a *assembly) runSaveArtifacts(ctx context.Context) error {
	state, config, err := a.pullImage(ctx, a.output())
	if err != nil {
		return err
	}
	if a.scripts.copied {
		state = state.File(a.copyDir(a.dir(scriptsDir), "scripts"), llb.WithCustomName("[internal] add scripts"))
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
	root, err := os.OpenRoot(filepath.Join(a.Work, artifactsDir))
	if err != nil {
		return err
	}
	defer root.Close()
	writer, wait := a.extractTo(ctx, root)
	process, err := container.Start(ctx, gateway.StartRequest{
		Args: []string{"/bin/sh", "-c", `"$0"`, a.scripts.path("save-artifacts")}, Env: config.Config.Env, User: a.user,
		Cwd: first(config.Config.WorkingDir, "/"), Stdout: writer, Stderr: nopCloser{a.Out},
	})
	if err == nil {
		err = process.Wait()
	}
	writer.CloseWithError(err)
	return errors.Join(err, wait())
}

// extractTo returns a writer for a tar archive, which is extracted to root. The caller closes the
// writer, and then calls wait to receive the result.
func (r *run) extractTo(ctx context.Context, root *os.Root) (writer *io.PipeWriter, wait func() error) {
	reader, writer := io.Pipe()
	result := make(chan error, 1)
	go func() {
		err := source.Extract(ctx, reader, root, r.Limit)
		if err == nil {
			_, err = io.Copy(io.Discard, reader) // read the padding after the archive's end
		}
		reader.CloseWithError(err)
		result <- err
	}()
	return writer, func() error { return <-result }
}
